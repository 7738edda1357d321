"""Usage: breakdowns stay inside their totals (case 1), both makers read alike, unknown is never 0."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.metering.usage import Usage
from pytest_fusion_audit.metering.wire.usages import anthropic_usage, openai_usage

tokens = st.integers(0, 2_000_000)


def chat(total_in, total_out, cached=None, reasoning=None):
    return {
        "prompt_tokens": total_in,
        "completion_tokens": total_out,
        "prompt_tokens_details": None if cached is None else {"cached_tokens": cached},
        "completion_tokens_details": None if reasoning is None else {"reasoning_tokens": reasoning},
    }


def responses(total_in, total_out, cached=None, reasoning=None):
    return {
        "input_tokens": total_in,
        "output_tokens": total_out,
        "input_tokens_details": None if cached is None else {"cached_tokens": cached},
        "output_tokens_details": None if reasoning is None else {"reasoning_tokens": reasoning},
    }


@settings(deadline=None)
@given(tokens, tokens, st.none() | tokens, st.none() | tokens)
def test_chat_and_responses_shapes_of_one_call_read_the_same(total_in, total_out, cached, reasoning):
    ours = openai_usage(chat(total_in, total_out, cached, reasoning))
    assert ours == openai_usage(responses(total_in, total_out, cached, reasoning))
    assert ours is not None
    assert (ours.input_tokens, ours.output_tokens) == (total_in, total_out)  # nothing is added on top
    assert ours.inconsistent == ((cached or 0) > total_in or (reasoning or 0) > total_out)
    assert ours.plain_input_tokens == max(0, total_in - (cached or 0))


@settings(deadline=None)
@given(tokens, tokens, tokens, tokens, tokens)
def test_anthropic_input_leaves_the_cache_out_and_ours_holds_it(plain, read, short, long, out):
    usage = anthropic_usage(
        {
            "input_tokens": plain,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": short + long,
            "cache_creation": {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long},
            "output_tokens": out,
            "service_tier": "standard",
        }
    )
    assert usage == Usage(
        input_tokens=plain + read + short + long,
        cached_tokens=read,
        cache_write_5m_tokens=short,
        cache_write_1h_tokens=long,
        output_tokens=out,
        service_tier="standard",
    )
    assert usage.plain_input_tokens == plain


def test_cache_writes_without_a_kind_are_short_ones():
    usage = anthropic_usage({"input_tokens": 1, "cache_creation_input_tokens": 50, "output_tokens": 2})
    assert (usage.input_tokens, usage.cache_write_5m_tokens, usage.inconsistent) == (51, 50, False)


def test_writes_that_disagree_with_their_kinds_are_marked_and_counted_at_the_larger_figure():
    usage = anthropic_usage(
        {
            "input_tokens": 1,
            "cache_creation_input_tokens": 50,
            "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 70},
            "output_tokens": 2,
        }
    )
    assert (usage.input_tokens, usage.inconsistent) == (81, True)


def test_openai_cache_writes_are_part_of_the_input():
    raw = chat(1000, 5)
    raw["prompt_tokens_details"] = {
        "cached_tokens": 100,
        "cache_write_tokens": 600,
        "cache_write_tokens_details": {"ttl_30m_tokens": 400, "ttl_12h_tokens": 200},
    }
    usage = openai_usage(raw)
    assert (usage.cache_write_5m_tokens, usage.cache_write_1h_tokens, usage.plain_input_tokens) == (400, 200, 300)
    raw["prompt_tokens_details"]["cache_write_tokens"] = 901
    assert openai_usage(raw).inconsistent


def test_fast_mode_is_a_tier():
    assert anthropic_usage({"input_tokens": 1, "output_tokens": 1, "speed": "fast"}).service_tier == "fast"
    assert openai_usage(chat(1, 1), "priority").service_tier == "priority"


@pytest.mark.parametrize(
    "raw", [None, [], "12", {}, chat(None, 5), chat(5, None), chat(-1, 5), chat(5.0, 5), chat("5", 5)]
)
def test_a_usage_without_both_totals_is_unknown(raw):
    assert openai_usage(raw) is None


@pytest.mark.parametrize(
    "raw", [None, {"input_tokens": 5}, {"output_tokens": 5}, {"input_tokens": "5", "output_tokens": 5}]
)
def test_an_anthropic_usage_without_both_totals_is_unknown(raw):
    assert anthropic_usage(raw) is None


def test_work_that_is_listed_apart_makes_the_cost_unknown():
    usage = {"input_tokens": 5, "output_tokens": 5, "iterations": [{"type": "message"}]}
    assert anthropic_usage(usage) is not None
    usage["iterations"].append({"type": "compaction", "input_tokens": 100_000})
    assert anthropic_usage(usage) is None


@pytest.mark.parametrize(
    "details", ["all", [1], {"cached_tokens": "8000"}, {"cached_tokens": -5}, {"cached_tokens": 2.5}]
)
def test_a_breakdown_that_is_no_count_earns_no_discount(details):
    usage = openai_usage({"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": details})
    assert usage == Usage(input_tokens=100, output_tokens=10, inconsistent=True)
