"""The retry policy: forms of Retry-After, what is waited out, what stops at once, what is asked again how often."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fusion_audit.metering.retry import (
    ConfigError,
    KeyRefusedError,
    QuotaExhaustedError,
    Reply,
    RetryPolicy,
    judge,
    persistently,
    retry_after,
)
from pytest_fusion_audit.metering.wire.base import ResponseFacts, response_facts
from tests.metering.server_replies import ERRORS, error
from tests.shared_data import shared

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
POLICY = RetryPolicy(now=lambda: NOW)
ANSWER = Reply(facts=ResponseFacts(outcome="answered", text="x"), status=200)
LOST = Reply(facts=ResponseFacts(outcome="provider_error"), status=None)


def reply(status: int, body: Any, headers: dict[str, str] | None = None, dialect: Any = "openai.chat") -> Reply:
    facts = response_facts(dialect, status, "application/json", json.dumps(body).encode())
    return Reply(facts=facts, status=status, headers=headers or {})


def of_kind(kind: str, dialect: str = "openai.chat", headers: dict[str, str] | None = None) -> Reply:
    return reply(*error(dialect, kind), headers, dialect)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that were waited, without waiting them."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("stamina._core._smart_sleep", sleep)
    return waited


def asked(replies: list[Reply], policy: RetryPolicy = POLICY) -> tuple[Reply, int]:
    """The reply that the caller gets when attempts are answered so, the last one for ever; and how many were made."""
    made = 0

    async def ask() -> Reply:
        nonlocal made
        made += 1
        return replies[min(made, len(replies)) - 1]

    return asyncio.run(persistently(ask, variable="OPENAI_API_KEY", policy=policy)), made


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Mon, 30 Nov 2026 14:00:30 +0200"}, 30.0),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:30 -0000"}, 30.0),
        ({"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "2"}, 2.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "in a while"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_every_form_of_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


@given(st.text(max_size=30), st.text(max_size=30))
def test_whatever_stands_there_is_a_wait_or_nothing(one: str, two: str) -> None:
    found = retry_after({"retry-after": one, "retry-after-ms": two}, NOW)
    assert found is None or 0 <= found < float("inf")


@given(st.integers(0, 10**6))
def test_a_date_and_seconds_say_the_same(seconds: int) -> None:
    date = format_datetime(datetime.fromtimestamp(NOW.timestamp() + seconds, UTC), usegmt=True)
    assert retry_after({"retry-after": date}, NOW) == retry_after({"retry-after": str(seconds)}, NOW) == seconds


@pytest.mark.parametrize("dialect", ["openai.chat", "openai.responses", "anthropic.messages"])
@pytest.mark.parametrize("kind", sorted(ERRORS))
def test_every_error_of_both_makers(kind: str, dialect: str) -> None:
    stopping = {
        "insufficient_quota": QuotaExhaustedError,
        "payment_required": QuotaExhaustedError,
        "key_refused": KeyRefusedError,
        "forbidden": KeyRefusedError,
        "model_not_found": ConfigError,
        "unsupported_parameter": ConfigError,
    }
    if kind in stopping:
        with pytest.raises(stopping[kind]) as refusal:
            judge(of_kind(kind, dialect), variable="SOME_KEY", policy=POLICY)
        assert "SOME_KEY" in str(refusal.value) or kind in {"model_not_found", "unsupported_parameter"}
        assert getattr(refusal.value, "variable", "SOME_KEY") == "SOME_KEY"
        return
    judgement = judge(of_kind(kind, dialect), variable="SOME_KEY", policy=POLICY)
    expected = {
        "rate_limit": ("busy", "censored_rate_limit"),
        "overloaded": ("busy", "provider_error"),
        "unavailable": ("busy", "provider_error"),
        "server_error": ("fault", "provider_error"),
        "context_length": ("over", None),
    }
    assert (judgement.kind, judgement.outcome) == expected[kind]


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (reply(400, {"error": {"message": "Invalid 'messages[0].name'", "type": "invalid_request_error"}}), "over"),
        (reply(400, {"error": {"message": "x", "code": "content_policy_violation"}}), "over"),
        (reply(413, {"error": {"message": "too large", "type": "request_too_large"}}), "over"),
        (reply(408, {}), "fault"),
        (reply(502, {}), "lost"),
        (reply(504, {"error": {"message": "upstream"}}), "lost"),
        (reply(522, {}), "lost"),
        (LOST, "lost"),
        (replace(LOST, sent=False), "fault"),
        (Reply(facts=ResponseFacts(outcome="provider_error", error_code="stream_cut"), status=200), "lost"),
        (Reply(facts=ResponseFacts(outcome="pipeline_error", error_code="html"), status=200), "over"),
        (reply(200, {"choices": None, "error": {"code": 429, "message": "upstream busy"}}), "over"),
        (replace(of_kind("unavailable"), stored=True), "over"),
        (ANSWER, "over"),
    ],
)
def test_other_replies(given: Reply, kind: str) -> None:
    assert judge(given, variable="K", policy=POLICY).kind == kind


def test_a_parameter_that_anthropic_does_not_take_is_a_matter_of_configuration() -> None:
    said = "`temperature` is deprecated for this model."
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": said}}
    with pytest.raises(ConfigError, match=r"`temperature` is deprecated .* correct the model's id or its capabilities"):
        judge(reply(400, body, dialect="anthropic.messages"), variable="K", policy=POLICY)


def test_a_wait_is_never_shorter_than_asked_for(waits: list[float]) -> None:
    busy = [of_kind("rate_limit", headers={"retry-after": str(seconds)}) for seconds in (7, 0, 120)]
    final, made = asked([*busy, ANSWER])
    assert (final, made) == (ANSWER, 4)
    assert [least <= waited <= least + 1 for least, waited in zip((7, 0, 120), waits, strict=True)] == [True] * 3


def test_waits_that_nobody_asked_for_double_up_to_the_longest(waits: list[float]) -> None:
    asked([of_kind("overloaded")], replace(POLICY, busy=9, jitter_s=0))
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_beyond_the_ceiling_the_task_is_not_run(waits: list[float]) -> None:
    final, made = asked([of_kind("rate_limit", headers={"retry-after": "121"}), ANSWER])
    assert (final.facts.outcome, made, waits) == ("censored_rate_limit", 1, [])


@pytest.mark.parametrize(
    ("given", "attempts", "outcome"),
    [
        (of_kind("rate_limit"), 13, "censored_rate_limit"),
        (of_kind("overloaded"), 13, "provider_error"),
        (of_kind("server_error"), 5, "provider_error"),
        (LOST, 3, "provider_error"),
        (replace(LOST, sent=False), 5, "provider_error"),
    ],
)
def test_each_kind_has_tries_of_its_own(waits: list[float], given: Reply, attempts: int, outcome: str) -> None:
    final, made = asked([given])
    assert (final.facts.outcome, made, len(waits)) == (outcome, attempts, attempts - 1)


def test_kinds_are_counted_apart(waits: list[float]) -> None:
    mixed = [LOST, of_kind("rate_limit"), LOST, of_kind("rate_limit"), LOST, ANSWER]
    final, made = asked(mixed)
    assert (final.facts.outcome, made) == ("provider_error", 5)


def test_what_the_attempt_itself_raises_is_not_retried(waits: list[float]) -> None:
    made = 0

    async def ask() -> Reply:
        nonlocal made
        made += 1
        raise ConfigError("no")

    with pytest.raises(ConfigError, match="no"):
        asyncio.run(persistently(ask, variable="K"))
    assert (made, waits) == (1, [])


def test_case_19(waits: list[float]) -> None:
    case = json.loads(shared("cases/19-rate-limit-versus-no-money.json").read_text(encoding="utf-8"))
    policy = RetryPolicy(
        now=lambda: datetime.fromisoformat(case["input"]["now"]), ceiling_s=case["input"]["max_wait_s"]
    )
    found = {}
    for response in case["input"]["responses"]:
        waits.clear()
        given = reply(response["status"], response["body"], response["headers"])
        try:
            final, made = asked([given, ANSWER], policy)
        except QuotaExhaustedError:
            found[response["id"]] = "stop run; 0 retries"
            continue
        if made == 1:
            assert final.facts.outcome == "censored_rate_limit"
            found[response["id"]] = "stop; task not_run_rate_limit"
        else:
            asked_for = retry_after(response["headers"], policy.now())
            assert asked_for is None or waits[0] >= asked_for
            found[response["id"]] = "back off, retry" if asked_for is None else f"wait >={asked_for:g}s, retry"
    assert found == case["expected"]["action"]
