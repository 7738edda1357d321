"""What the door asks: worst case of a request, cost of its answer, and whether it was the model asked for."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from pytest_fusion_audit.configuration import TokenPricing
from pytest_fusion_audit.metering.endpoints import Endpoint
from pytest_fusion_audit.metering.models import Capabilities
from pytest_fusion_audit.metering.prices import PANEL_FILE, PanelPrice, PriceBook, UnknownPriceError
from pytest_fusion_audit.metering.pricing import DoorPricing, UnboundedRequestError, listed_books
from pytest_fusion_audit.metering.usage import Usage
from pytest_fusion_audit.metering.wire.base import ResponseFacts, request_facts

HOSTS = {"api.openai.com": "openai", "api.anthropic.com": "anthropic", "127.0.0.1": "local", "eu.proxy": "company"}
PANEL = {
    "llama": PanelPrice.from_mapping({"input": 0, "output": 0}),
    "house": PanelPrice.from_mapping({"input": 1, "output": 2}),
}
AT = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.fixture
def pricing():
    return DoorPricing(PriceBook(PANEL, at=AT), HOSTS.__getitem__)


def asked(path="/v1/chat/completions", model="gpt-5.5", **body):
    return request_facts("POST", path, json.dumps({"model": model, **body}).encode())


def messages(model="claude-opus-4-8", **body):
    return asked("/v1/messages", model, **body)


def test_the_requests_own_limit_or_the_models(pricing):
    stated = asked(max_completion_tokens=1000)
    assert pricing.worst_case_of("api.openai.com", stated) == stated.prompt_bytes * 5 + 30_000
    silent = asked()
    assert pricing.worst_case_of("api.openai.com", silent) == silent.prompt_bytes * 5 + 128_000 * 30
    assert pricing.worst_case_of("api.openai.com", stated, batch=True) < pricing.worst_case_of("api.openai.com", stated)


def test_no_limit_and_an_unknown_model_is_refused(pricing):
    with pytest.raises(UnboundedRequestError, match="max_output_tokens"):
        pricing.worst_case_of("eu.proxy", asked(model="house"))
    able = DoorPricing(pricing.book, HOSTS.__getitem__, {"house": Capabilities(max_output_tokens=100)})
    assert able.worst_case_of("eu.proxy", asked(model="house")) > 0


@pytest.mark.parametrize("model", ["gpt-5.5-mini", None])
def test_no_price_is_refused(pricing, model):
    with pytest.raises(UnknownPriceError, match="nothing was sent"):
        pricing.worst_case_of("api.openai.com", asked(model=model, max_tokens=5))


def test_the_tier_and_cache_of_the_request_decide(pricing):
    def worst(tier):
        facts = replace(asked(max_completion_tokens=100_000), service_tier=tier)
        return pricing.worst_case_of("api.openai.com", facts)

    assert worst("priority") > 2 * worst("default")
    assert worst("flex") == worst("default") == worst(None)  # flex may be served, and billed, as standard
    plain, cached = (
        pricing.worst_case_of(
            "api.anthropic.com", messages(max_tokens=0, system=[{"type": "text", "text": "x" * 9999, **more}])
        )
        for more in ({}, {"cache_control": {"type": "ephemeral"}})
    )
    assert cached > 1.2 * plain


def test_input_that_bytes_do_not_bound_is_bounded_by_the_context_window(pricing):
    image = [{"content": [{"type": "image", "source": {"type": "url", "url": "https://x"}}]}]
    assert pricing.worst_case_of("api.anthropic.com", messages(max_tokens=0, messages=image)) == 5_000_000
    picture = [{"content": [{"type": "image_url", "image_url": {"url": "https://x"}}]}]
    with pytest.raises(UnboundedRequestError, match="image_url"):
        pricing.worst_case_of("eu.proxy", asked(model="house", max_tokens=5, messages=picture))


def test_web_searches_need_a_limit_and_other_tools_have_no_price(pricing):
    search = {"type": "web_search_20250305", "name": "web_search"}
    with pytest.raises(UnboundedRequestError, match="max_uses"):
        pricing.worst_case_of("api.anthropic.com", messages(max_tokens=5, tools=[search]))
    bounded = messages(max_tokens=1000, tools=[{**search, "max_uses": 2}])
    assert pricing.worst_case_of("api.anthropic.com", bounded) == 3 * 5_000_000 + 3 * 25_000 + 2 * 10_000
    with pytest.raises(UnboundedRequestError, match="code_execution"):
        pricing.worst_case_of("api.anthropic.com", messages(max_tokens=5, tools=[{"type": "code_execution_20250825"}]))


def test_a_surcharge_nobody_states_is_refused(pricing):
    with pytest.raises(UnboundedRequestError, match="inference_geo"):
        pricing.worst_case_of("api.anthropic.com", messages(max_tokens=5, inference_geo="us"))


def answer(model="gpt-5.5-2026-04-23", **usage):
    return ResponseFacts(model=model, outcome="answered", usage=Usage(**usage) if usage else None)


def test_cost_of_an_answer(pricing):
    def cost(given, request=None, host="api.openai.com", **more):
        return pricing.cost_of(host, request or asked(), given, **more)

    some = {"input_tokens": 1000, "output_tokens": 100}
    assert cost(answer(**some)) == 8_000
    assert cost(answer(model=None, **some)) == 8_000
    assert cost(answer(**some), batch=True) == 4_000
    assert cost(answer(**some), asked(service_tier="flex")) == 4_000
    assert cost(answer(**some), asked(service_tier="priority")) == 20_000  # nothing reported: as asked
    assert cost(answer(**some, service_tier="default"), asked(service_tier="priority")) == 8_000
    assert cost(answer()) is None  # no usage: unknown, not 0
    assert cost(answer(model="gpt-9-surprise", **some)) is None  # no price: unknown, not 0
    assert cost(answer(model="gpt-5.5-pro-2026-05-02", **some)) == 48_000  # its own price, not its sibling's
    assert cost(answer(model="/models/llama.gguf", **some), asked(model="llama"), "127.0.0.1") == 0


@pytest.mark.parametrize(
    ("host", "one", "two", "same"),
    [
        ("api.openai.com", "gpt-5.5", "gpt-5.5", True),
        ("api.openai.com", "gpt-5.5", "gpt-5.5-2026-04-23", True),
        ("api.openai.com", "openai/gpt-5.5", "gpt-5.5-2026-04-23", True),
        ("api.openai.com", "gpt-5.5-2026-04-23", "gpt-5.5", True),
        ("api.openai.com", "gpt-5.5-2026-04-23", "gpt-5.5-2026-04-24", False),
        ("api.openai.com", "gpt-5.5", "gpt-5.5-pro", False),
        ("api.openai.com", "gpt-5.5", "gpt-5", False),
        ("api.openai.com", "gpt-5.5", None, False),
        ("127.0.0.1", "llama", "/models/llama.gguf", True),
    ],
)
def test_another_model_than_asked_is_seen(pricing, host, one, two, same):
    assert pricing.same_model(host, one, two) is same


# --- hosts that state prices of their own


def stated(**prices):
    return {
        name.replace("_", "-"): TokenPricing(input_per_1m_tokens=one, output_per_1m_tokens=two)
        for name, (one, two) in prices.items()
    }


ROUTER = Endpoint(
    host="router.example:8443",
    scheme="https",
    kind="listed",
    provider="openai",
    pricing=stated(house=(3, 4), claude_opus_4_8=(6, 20), odd=(7, 8)),
)
OTHER = Endpoint(host="other.example", scheme="https", kind="listed", provider="openai", pricing=stated(house=(1, 9)))


@pytest.fixture
def listed():
    book = PriceBook(PANEL | {"gpt-5.5": PanelPrice.from_mapping({"input": 1, "output": 90})}, at=AT)
    providers = {endpoint.host: endpoint.provider for endpoint in (ROUTER, OTHER)} | HOSTS
    return DoorPricing(book, providers.__getitem__, {}, listed_books(book, [ROUTER, OTHER]))


def priced(listed, host, model, answered=None, sent=None, **usage):
    usage = Usage(**{"input_tokens": 1000, "output_tokens": 100} | usage)
    facts = replace(asked(model=model, max_tokens=100), sent_model=sent)
    given = ResponseFacts(model=answered, outcome="answered", usage=usage)
    cost = listed.cost_of(host, facts, given)
    assert cost is None or cost <= listed.worst_case_of(host, facts) + 10**5
    return cost


def test_each_host_has_its_own_prices_and_the_dearest_statement_holds(listed):
    assert priced(listed, "eu.proxy", "house") == 1000 + 200
    assert priced(listed, "router.example:8443", "house") == 3000 + 400
    assert priced(listed, "other.example", "house") == max(1000 + 200, 1000 + 900)
    assert priced(listed, "api.openai.com", "gpt-5.5") == max(5000 + 3000, 1000 + 9000)
    with pytest.raises(UnknownPriceError):
        listed.worst_case_of("other.example", asked(model="odd", max_tokens=5))
    assert listed.price("router.example:8443", "odd").model == "odd"
    with pytest.raises(UnknownPriceError):
        listed.price("other.example", "odd")


def test_a_model_stands_in_its_makers_table_whatever_the_host_speaks(listed):
    assert priced(listed, "router.example:8443", "claude-opus-4-8") == max(5000 + 2500, 6000 + 2000)
    silent = asked(model="claude-opus-4-8")
    assert listed.worst_case_of("router.example:8443", silent) > 128_000 * 20  # its own output limit is known


@pytest.mark.parametrize("answered", [None, "house", "vendor/h-1", "vendor/h-1-2026-04-23"])
def test_the_hosts_name_of_a_model_is_priced_by_the_panels(listed, answered):
    assert priced(listed, "router.example:8443", "house", answered, "vendor/h-1") == 3400


def test_another_model_is_priced_by_its_own_name_or_not_at_all(listed):
    assert priced(listed, "router.example:8443", "house", "anthropic/claude-sonnet-4-6", "vendor/h-1") == 4500
    assert priced(listed, "router.example:8443", "house", "vendor/h-2", "vendor/h-1") is None


def test_differences_from_the_table_are_told_for_the_panel_file_and_every_listed_host_once(listed):
    told = [(d.where, d.model, d.field, d.table, d.panel) for d in listed.differences]
    assert told == [
        (PANEL_FILE, "gpt-5.5", "input", 5.0, 1.0),
        (PANEL_FILE, "gpt-5.5", "output", 30.0, 90.0),
        ("router.example:8443", "claude-opus-4-8", "input", 5.0, 6.0),
        ("router.example:8443", "claude-opus-4-8", "output", 25.0, 20.0),
    ]


def test_a_list_of_models_has_no_price(listed):
    assert request_facts("GET", "/v1/models", b"").free
    assert not asked().free
