"""The published cases 1, 3, 17, 18 and 20, as they are."""

from __future__ import annotations

import json

from pytest_fusion_audit.metering.models import Capabilities, shaped, temperature_warnings
from pytest_fusion_audit.metering.prices import PanelPrice, PriceBook
from pytest_fusion_audit.metering.wire.base import StreamReader, read_response, response_facts
from pytest_fusion_audit.metering.wire.usages import openai_usage
from tests.shared_data import shared


def case(name):
    content = json.loads(shared(f"cases/{name}.json").read_text(encoding="utf-8"))
    return content["input"], content["expected"]


def book(given):
    return PriceBook({model: PanelPrice.from_mapping(row) for model, row in given["price_table_usd_per_mtok"].items()})


def test_case_1():
    given, expected = case("01-cached-and-reasoning-are-subsets")
    for call in given["calls"]:
        usage = openai_usage(call["usage"])
        assert f"{book(given).cost('openai', call['model'], usage) / 1e6:.6f}" == expected["usd"][call["id"]]
        assert usage.inconsistent == (call["id"] in expected["flags"])


def test_case_2():
    given, expected = case("02-dated-id-and-sibling-lookup")
    for model in ("gpt-5.5-2026-04-23", "gpt-5.5-pro-2026-05-02", "openai/gpt-5.5"):
        assert book(given).resolve("openai", model) == expected["resolved_key"][model]
        cost = book(given).cost("openai", model, openai_usage(given["usage_each"]))
        assert f"{cost / 1e6:.6f}" == expected["usd"][model]
    # under a provider whose models the table does not list, the panel file is the only table
    for model, resolved in expected["resolved_key"].items():
        assert book(given).resolve("company", model) == resolved


def test_case_3():
    given, expected = case("03-stream-ends-without-usage")
    reader = StreamReader("openai.chat")
    reader.feed("\n\n".join([*given["sse"], ""]).encode())
    facts = reader.facts()
    assert (facts.text, facts.usage) == (expected["content"], None)
    bounds = given["reserved"]
    worst = book(given).worst_case(
        "openai",
        facts.model,
        input_tokens_bound=bounds["est_prompt_tokens"],
        max_output_tokens=bounds["max_completion_tokens"],
        cache_write="5m",
    )
    assert f"{worst / 1e6:.6f}" == expected["charged_to_cap_usd"]


def test_case_17():
    given, expected = case("17-first-content-block-is-not-the-text")
    for name, message in given["messages"].items():
        facts = read_response("anthropic.messages", 200, {**message, "usage": given["usage_each"]})
        assert {"answered": "ok"}.get(facts.outcome, facts.outcome) == expected["status"][name]
        assert facts.text == expected["text"].get(name)
        assert facts.usage is not None


def test_case_18():
    given, expected = case("18-parameters-some-models-reject")
    table = {
        model: Capabilities(limit_field=row["token_param"], temperature=row["temperature"])
        for model, row in given["capabilities"].items()
    }
    for overrides in (table, {}):
        for model, row in given["capabilities"].items():
            result = shaped(row["api"], model, given["ask"], overrides=overrides)
            assert result.sent == expected["sent_fields"][model]
            recorded = "not sent" if "temperature" in result.not_sent else result.sent["temperature"]
            assert recorded == expected["recorded_temperature"][model]
        panel = [(row["api"], model) for model, row in given["capabilities"].items()]
        assert (
            list(temperature_warnings(panel, given["sample_temperatures"], overrides))
            == expected["warning_before_spend"]
        )


def test_case_20():
    given, expected = case("20-gateway-says-200-but-is-not-an-answer")
    for name, reply in given["responses"].items():
        body = reply["body"] if isinstance(reply["body"], str) else json.dumps(reply["body"])
        facts = response_facts("openai.chat", reply["status"], reply["content_type"], body.encode(), gateway=True)
        assert {"answered": "scored"}.get(facts.outcome, facts.outcome) == expected["outcome"][name]
        assert expected["must_not_contain_anywhere_in_artifacts"] not in str(facts)
        if name == "g1":
            assert "/v1" in facts.error_message
        if name == "g5":
            assert (facts.text, facts.usage) == (expected["g5_text"], None)
