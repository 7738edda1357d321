"""Results of a batch to settlements: by custom id only, in any order, once."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.metering import batch_anthropic, batch_openai
from pytest_fusion_audit.metering.balances import Balances
from pytest_fusion_audit.metering.batch_book import BATCH_OWNER, BatchBook
from pytest_fusion_audit.metering.batch_settling import settlements
from pytest_fusion_audit.metering.batch_wire import Look, Result
from pytest_fusion_audit.metering.prices import PriceBook
from pytest_fusion_audit.metering.pricing import DoorPricing
from tests.shared_data import shared

REQUEST = json.dumps({"model": "gpt-5.5", "messages": [], "max_completion_tokens": 500}).encode()
PRICING = DoorPricing(PriceBook(), lambda _: "openai")
WORST = 1_000_000


class Bodies:
    """Bodies in memory."""

    def __init__(self):
        self.kept = []

    def get(self, _sha):
        return REQUEST

    def put(self, content):
        self.kept.append(content)
        return f"sha{len(self.kept)}", len(self.kept)


def batch_of(names):
    """A submitted batch with a call for each name, and the state of the money behind it."""
    book, balances = BatchBook(), Balances()
    rows = [
        {
            "e": "batch",
            "id": "b",
            "url": "https://api.openai.com/v1/chat/completions",
            "rows": len(names),
            "owner": "me",
        }
    ]
    facts = {"phase": "3", "reserved": WORST, "owner": f"{BATCH_OWNER}b", "host": "api.openai.com"}
    facts |= {"dialect": "openai.chat", "request": "sha", "key": "k"}
    rows += [{"e": "reserve", "id": name, **facts} for name in names]
    for row in rows:
        book.take_row(row)
        balances.take(row)
    return book, balances


def answer(text, tokens=(1000, 500)):
    return {
        "id": "x",
        "model": "gpt-5.5-2026-04-23",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)},
    }


def test_shared_case_4():
    case = json.loads(shared("cases/04-batch-out-of-order-and-half-price.json").read_text(encoding="utf-8"))
    given_, expected = case["input"], case["expected"]
    book, balances = batch_of(given_["requests_in_order"])
    results = [batch_openai.result_of(row) for row in given_["output_file"] + given_["error_file"]]
    bodies = Bodies()
    for _ in range(given_["times_read"]):
        for row in settlements(
            book.batches["b"], results, Look(ended=True, answered=2), pricing=PRICING, bodies=bodies
        ).rows:
            book.take_row(row)
            balances.take(row)
    endings = book.endings
    assert {name: f"{row['charged'] / 1e6:.6f}" for name, row in endings.items()} == expected["usd"]
    assert {name: "not_run" for name, row in endings.items() if "answer" not in row} == expected["status"]
    texts = {
        name: json.loads(bodies.kept[int(row["answer"][3:]) - 1])["choices"][0]["message"]["content"]
        for name, row in endings.items()
        if "answer" in row
    }
    assert texts == expected["content"]
    assert f"{balances.total().spent / 1e6:.6f}" == expected["total_usd_after_second_read"]


outcomes = st.sampled_from(["answered", "expired", "server_error", "bad_request", "left_out"])


@settings(max_examples=40, deadline=None)
@given(
    st.lists(outcomes, min_size=1, max_size=8),
    st.randoms(use_true_random=False),
    st.booleans(),
    st.integers(min_value=1, max_value=3),
)
def test_every_call_ends_once_whatever_comes_back(kinds, random, admits, times):
    names = [f"c{number}" for number in range(len(kinds))]
    book, balances = batch_of(names)
    rows = [Result("somebody else's", 200, answer("stray"))]
    for name, kind in zip(names, kinds, strict=True):
        rows += {
            "answered": [Result(name, 200, answer(name))] * 2 + [Result(name, 0, code="expired")],
            "expired": [Result(name, 0, code="expired")],
            "server_error": [Result(name, 500, {"error": {"message": "x", "type": "server_error"}})],
            "bad_request": [Result(name, 400, {"error": {"message": "x", "type": "invalid_request_error"}})],
            "left_out": [],
        }[kind]
    random.shuffle(rows)
    counted = Counter(kinds)
    seen = counted["answered"] + 1  # with the stray one
    look = Look(ended=True, answered=seen if admits else seen + counted["left_out"] + 1)
    for _ in range(times):
        for row in settlements(book.batches["b"], rows, look, pricing=PRICING, bodies=Bodies()).rows:
            book.take_row(row)
            balances.take(row)
    total = balances.total()
    assert total.reserved == 0
    assert total.settled == 10_000 * counted["answered"]
    assert total.orphaned == (0 if admits else WORST * counted["left_out"])
    for name, kind in zip(names, kinds, strict=True):
        ending = book.endings[name]
        assert ("answer" in ending) == (kind == "answered")
        if kind in {"expired", "server_error"}:
            assert ending["retry"]
        if kind == "bad_request":
            assert not ending["retry"]


def test_a_200_without_an_answer_is_charged_and_never_given_again():
    book, _ = batch_of(["c0"])
    body = answer("x") | {"choices": []}
    (row,) = settlements(
        book.batches["b"], [Result("c0", 200, body)], Look(ended=True), pricing=PRICING, bodies=Bodies()
    ).rows
    assert row["charged"] == 10_000
    assert "answer" not in row
    assert not row["retry"]


def test_the_tier_that_the_usage_names_does_not_make_it_dearer():
    book, _ = batch_of(["c0"])
    body = answer("x") | {"service_tier": "priority"}
    (row,) = settlements(
        book.batches["b"], [Result("c0", 200, body)], Look(ended=True), pricing=PRICING, bodies=Bodies()
    ).rows
    assert row["charged"] == 10_000


def test_a_prompt_that_does_not_fit_is_kept_like_an_answer():
    book, _ = batch_of(["c0"])
    body = {"error": {"message": "maximum context length", "code": "context_length_exceeded", "type": "x"}}
    (row,) = settled(book, [Result("c0", 400, body)])
    assert (row["charged"], row["outcome"]) == (0, "context_length")
    assert row["answer"] == row["body"]


def test_an_error_of_a_gateway_in_a_row_is_not_billed():
    book, _ = batch_of(["c0"])
    (row,) = settled(book, [Result("c0", 504, {"error": {"message": "x", "type": "timeout"}})])
    assert (row["charged"], row["estimated"], row["retry"]) == (0, False, True)


def settled(book, results):
    return settlements(book.batches["b"], results, Look(ended=True), pricing=PRICING, bodies=Bodies()).rows


def test_a_queue_that_is_full_is_tried_again_and_a_bad_file_is_not():
    for failure, retry in (("token_limit_exceeded", True), ("invalid_json_line", False)):
        book, _ = batch_of(["c0"])
        (row,) = settlements(
            book.batches["b"], [], Look(ended=True, failure=failure), pricing=PRICING, bodies=Bodies()
        ).rows
        assert (row["charged"], row["error"], row["retry"]) == (0, failure, retry)


@pytest.mark.parametrize(
    "line",
    [{}, {"custom_id": 3}, {"custom_id": "c", "result": {"type": "succeeded", "message": None}}, {"custom_id": "c"}],
)
def test_a_line_that_is_no_result_is_none(line):
    assert batch_anthropic.result_of(line) is None


def test_anthropics_errors_are_told_apart():
    def error(kind):
        return {"custom_id": "c", "result": {"type": "errored", "error": {"type": "error", "error": {"type": kind}}}}

    statuses = {kind: batch_anthropic.result_of(error(kind)).status for kind in ("overloaded_error", "api_error", "x")}
    assert statuses == {"overloaded_error": 529, "api_error": 500, "x": 500}
    assert batch_anthropic.result_of(error("invalid_request_error")).status == 400
    flat = {"custom_id": "c", "result": {"type": "errored", "error": {"type": "invalid_request_error"}}}
    assert batch_anthropic.result_of(flat).status == 400
