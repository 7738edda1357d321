"""Capabilities by exact id, never by substring; what a model refuses is recorded as not sent (case 18)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.metering.models import (
    _TABLE,
    Capabilities,
    CapabilityError,
    capabilities,
    shaped,
    temperature_warnings,
)
from pytest_fusion_audit.metering.price_table import table_price

ASK = {"temperature": 0.3, "max_output_tokens": 2048}


@pytest.mark.parametrize(
    ("provider", "model", "sent", "not_sent"),
    [
        ("openai", "gpt-5.5", {"max_completion_tokens": 2048}, {"temperature": 0.3}),
        ("openai", "openai/gpt-5.5-2026-04-23", {"max_completion_tokens": 2048}, {"temperature": 0.3}),
        ("openai", "o1", {"max_completion_tokens": 2048}, {"temperature": 0.3}),
        ("openai", "gpt-4.1-mini", {"max_tokens": 2048, "temperature": 0.3}, {}),
        ("anthropic", "claude-opus-4-8", {"max_tokens": 2048}, {"temperature": 0.3}),
        ("anthropic", "claude-sonnet-4-6", {"max_tokens": 2048, "temperature": 0.3}, {}),
        # names that hold another model's name are other models, and unknown ones get what was asked for
        ("openai", "neo1-coder", {"max_tokens": 2048, "temperature": 0.3}, {}),
        ("openai", "gpt-5.5-lookalike", {"max_tokens": 2048, "temperature": 0.3}, {}),
        ("local", "gpt-5.5", {"max_tokens": 2048, "temperature": 0.3}, {}),
    ],
)
def test_fields_in_the_words_of_the_model(provider, model, sent, not_sent):
    assert shaped(provider, model, ASK) == (sent, not_sent)


def test_a_table_of_our_own_wins():
    mine = {"gpt-5.5": Capabilities(limit_field="max_tokens", temperature=True), "new": Capabilities(temperature=False)}
    assert shaped("openai", "gpt-5.5", ASK, overrides=mine).sent == {"max_tokens": 2048, "temperature": 0.3}
    assert shaped("local", "new", ASK, overrides=mine).not_sent == {"temperature": 0.3}


def test_temperature_comes_back_without_reasoning_where_it_does():
    assert shaped("openai", "gpt-5.4", {**ASK, "effort": "none"}).sent["temperature"] == 0.3
    assert shaped("openai", "gpt-5.4", {**ASK, "effort": "low"}).not_sent == {"temperature": 0.3}
    assert shaped("openai", "gpt-5.5", {**ASK, "effort": "none"}).not_sent == {"temperature": 0.3}


@pytest.mark.parametrize(
    ("provider", "model", "api", "sent"),
    [
        ("openai", "gpt-5.5", None, {"max_completion_tokens": 9, "reasoning_effort": "low", "seed": 1}),
        ("openai", "gpt-5.5", "openai.responses", {"max_output_tokens": 9, "reasoning": {"effort": "low"}}),
        ("anthropic", "claude-opus-4-8", None, {"max_tokens": 9, "output_config": {"effort": "low"}}),
        ("anthropic", "claude-haiku-4-5", None, {"max_tokens": 9, "top_k": 5}),
        ("openai", "gpt-4.1", None, {"max_tokens": 9, "seed": 1}),
    ],
)
def test_effort_seed_and_limit_by_api(provider, model, api, sent):
    asked = {"max_output_tokens": 9, "effort": "low", "seed": 1, "top_k": 5, "top_p": None}
    assert shaped(provider, model, asked, api=api).sent == sent


def test_two_samplers_where_only_one_is_taken():
    result = shaped("anthropic", "claude-sonnet-4-6", {"temperature": 0.2, "top_p": 0.95})
    assert result == ({"temperature": 0.2}, {"top_p": 0.95})


def test_service_tier_goes_where_it_means_something():
    assert shaped("openai", "gpt-5.5", {"service_tier": "flex"}).sent == {"service_tier": "flex"}
    assert shaped("anthropic", "claude-opus-4-8", {"service_tier": "flex"}).not_sent == {"service_tier": "flex"}


@settings(deadline=None)
@given(
    st.sampled_from([*sorted(_TABLE), ("openai", "new"), ("local", "llama")]),
    st.dictionaries(
        st.sampled_from(
            ["temperature", "top_p", "top_k", "seed", "max_output_tokens", "effort", "stop", "service_tier"]
        ),
        st.integers(1, 9) | st.none() | st.sampled_from(["none", "low", "auto"]),
    ),
    st.sampled_from([None, "openai.chat", "openai.responses", "anthropic.messages"]),
)
def test_everything_asked_is_either_sent_or_listed(entry, asked, api):
    result = shaped(*entry, asked, api=api)
    wanted = {field for field, value in asked.items() if value is not None}
    renamed = {
        "max_tokens": "max_output_tokens",
        "max_completion_tokens": "max_output_tokens",
        "reasoning_effort": "effort",
        "reasoning": "effort",
        "output_config": "effort",
    }
    sent = {renamed.get(field, field) for field in result.sent}
    assert sent | set(result.not_sent) == wanted
    assert not sent & set(result.not_sent)
    assert all(asked[field] == value for field, value in result.not_sent.items())


def test_warnings_before_spending():
    panel = [("openai", "gpt-5.5"), ("anthropic", "claude-opus-4-8"), ("openai", "gpt-4.1"), ("local", "llama")]
    warned = temperature_warnings(panel, [0.2, 0.6, 0.9])
    assert list(warned) == ["gpt-5.5", "claude-opus-4-8"]
    assert "0.2, 0.6, 0.9" in warned["gpt-5.5"]
    assert temperature_warnings(panel, [0.2, 0.2]) == {}  # nothing rests on it


def test_unknown_models_are_unknown():
    assert capabilities("openai", "gpt-5.5-mini") is None
    assert capabilities("openai", "claude-opus-4-8") is None
    assert capabilities("anthropic", "claude-opus-4-8").max_output_tokens == 128_000


@pytest.mark.parametrize(("provider", "model"), sorted(_TABLE))
def test_the_table_holds_models_that_have_a_price(provider, model):
    price = table_price(provider, model, datetime.now(UTC))
    assert price is not None
    assert price.context_window is None or price.context_window >= _TABLE[provider, model].max_output_tokens


@pytest.mark.parametrize(
    ("block", "field"),
    [
        ({"max_output_tokens": "4096"}, "max_output_tokens"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"max_output_tokens": True}, "max_output_tokens"),
        ({"temperature": "no"}, "temperature"),
        ({"limit_field": "max"}, "limit_field"),
    ],
)
def test_a_block_that_is_none_is_refused_by_field(block, field):
    with pytest.raises(CapabilityError, match=rf"^capabilities\.{field}: "):
        Capabilities.from_mapping(block)


def test_a_block_beside_other_tools_keys():
    block = {"structured_output": True, "tool_calls": True, "max_output_tokens": 4096, "temperature": False}
    assert Capabilities.from_mapping(block) == Capabilities(max_output_tokens=4096, temperature=False)
