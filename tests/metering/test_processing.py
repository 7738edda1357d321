"""batch, flex or standard: what becomes of a wish."""

from __future__ import annotations

import json

import pytest

from pytest_fusion_audit.metering.processing import after_refusal, processing_for, sent_as


@pytest.mark.parametrize(
    ("prefer", "dialect", "becomes"),
    [
        ("batch", "openai.chat", "batch"),
        ("batch", "openai.responses", "batch"),
        ("batch", "anthropic.messages", "batch"),
        ("batch", "other", "standard"),
        ("flex", "openai.chat", "flex"),
        ("flex", "openai.responses", "flex"),
        ("flex", "anthropic.messages", "standard"),
        ("standard", "openai.chat", "standard"),
    ],
)
def test_a_wish_is_fulfilled_where_the_dialect_knows_it(prefer, dialect, becomes):
    assert processing_for(prefer, dialect) == becomes


def test_an_answer_that_is_needed_now_is_not_batched():
    assert processing_for("batch", "openai.chat", answer_needed_now=True) == "standard"
    assert processing_for("flex", "openai.chat", answer_needed_now=True) == "flex"


@pytest.mark.parametrize("prefer", ["batch", "flex"])
def test_a_tier_without_a_price_of_its_own_is_not_chosen(prefer):
    assert processing_for(prefer, "openai.chat", offered={"standard"}) == "standard"


def test_flex_states_its_tier_and_nothing_else_changes_a_body():
    body = b'{"model":"gpt-5.5","messages":[]}'
    assert json.loads(sent_as("flex", body)) == {"model": "gpt-5.5", "messages": [], "service_tier": "flex"}
    assert sent_as("batch", body) == sent_as("standard", body) == body


@pytest.mark.parametrize(
    ("processing", "status", "code", "then"),
    [
        ("flex", 429, "resource_unavailable", "standard"),
        ("flex", 429, None, "standard"),
        ("flex", 400, "unsupported_value", "standard"),
        ("flex", 429, "insufficient_quota", None),
        ("flex", 400, "context_length_exceeded", None),
        ("flex", 503, None, None),
        ("standard", 429, "rate_limit_exceeded", None),
        ("batch", 429, None, None),
    ],
)
def test_only_a_refusal_of_the_tier_leads_to_the_standard_tier(processing, status, code, then):
    assert after_refusal(processing, status, code) == then
