"""Waiting out what passes and stopping at what does not: the one retry policy, for our own clients only.

Transport and proxy never retry. Each attempt is a call of its own in the journal: one that was answered 429, 503 or 529
is settled at 0 before the next is reserved, so that a waiting caller holds no money; one that was lost on the way keeps
its reservation, so that there are few of those.
"""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Literal

from pytest_fusion_audit.errors import FusionAuditError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pytest_fusion_audit.evidence.records import Outcome
    from pytest_fusion_audit.metering.wire.base import ResponseFacts

CEILING_S = 120.0
Kind = Literal["over", "busy", "fault", "lost"]
_BUSY = frozenset({429, 503, 529})  # passes; costs nothing
_FAULT = frozenset({408, 409, 500, 501})  # answered and not billed; passes or not
_QUOTA = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error"})
_CONFIG = frozenset({"model_not_found", "not_found_error", "unsupported_parameter", "unsupported_value"})
_CONFIG |= frozenset({"unknown_parameter", "invalid_parameter", "unsupported_model"})
_NO_CREDIT = re.compile(r"credit balance is too low|exceeded your current quota", re.IGNORECASE)
_NOT_TAKEN = re.compile(
    r"(?:is|are) (?:not supported|not permitted|deprecated|not available|not allowed)|does not support|"
    r"extra inputs|unsupported|unexpected (?:parameter|value|keyword)|unknown parameter",
    re.IGNORECASE,
)


class QuotaExhaustedError(FusionAuditError):
    """The account behind a key has no money left. Waiting does not help: the run stops."""

    def __init__(self, variable: str | None, said: str) -> None:
        self.variable = variable
        super().__init__(
            f"the account behind {variable or 'a server here'} has no quota left ({said}); top it up, then "
            "--fusion-resume"
        )


class KeyRefusedError(FusionAuditError):
    """A provider refused a key: the run is blocked until the variable holds another."""

    def __init__(self, variable: str | None, said: str) -> None:
        self.variable = variable
        if variable is None:
            super().__init__(
                f"a server here refused its placeholder key ({said}); let it take any, no real key goes there"
            )
        else:
            super().__init__(f"the key in {variable} was refused ({said}); set {variable} to a valid key, then go on")


class ConfigError(FusionAuditError):
    """A provider refuses a request as it is, for its model or a parameter; the next one would be refused too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What became of one attempt.

    Attributes:
        facts: what the response says; of an attempt without a response, ``provider_error``.
        status: None when no response came.
        headers: of the response, names in lower case.
        call: id of its call in the journal, None when it was refused before it became one.
        sent: False when the connection was never made.
        stored: it comes from the call store, nobody was asked.
        latency_s: seconds it took, None when unknown.
    """

    facts: ResponseFacts
    status: int | None
    headers: Mapping[str, str] = field(default_factory=dict)
    call: str | None = None
    sent: bool = True
    stored: bool = False
    latency_s: float | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What to do about a reply.

    Attributes:
        kind: ``over`` = it is what the caller gets; ``busy``, ``fault``, ``lost`` = ask again, if that kind has tries
            left.
        wait_s: seconds to wait at least; None = as long as the policy says.
        outcome: outcome of the call when it is over, or when no try is left.
    """

    kind: Kind
    wait_s: float | None = None
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how long.

    Attributes:
        busy: further attempts after 429, 503, 529.
        faults: further attempts after errors that cost nothing.
        losses: further attempts after a time-out, a reset or a broken gateway: each may have been billed.
        ceiling_s: longest wait a server may ask for; beyond it the task is not run.
        initial_s, longest_s, jitter_s: waits that no server asked for double from the first to the second.
        now: the clock that dates in Retry-After are compared with.
    """

    busy: int = 12
    faults: int = 4
    losses: int = 2
    ceiling_s: float = CEILING_S
    initial_s: float = 1.0
    longest_s: float = 60.0
    jitter_s: float = 1.0
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that a server asks to wait, from ``retry-after-ms``, or ``retry-after`` in seconds or as a date.

    None when it does not say, or nothing that can be read; never negative.
    """
    for name, unit in (("retry-after-ms", 1_000.0), ("retry-after", 1.0)):
        stated = _number(headers.get(name))
        if stated is not None:
            return stated / unit
    try:
        date = parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError, TypeError):
        return None
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds())


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def judge(reply: Reply, *, variable: str | None, policy: RetryPolicy) -> Judgement:
    """What to do about a reply.

    Args:
        reply: one attempt.
        variable: name of the variable that holds the key, None for a placeholder.
        policy: ceiling and clock.

    Raises:
        KeyRefusedError, QuotaExhaustedError, ConfigError: asking again is of no use, for this call and for others.
    """
    status = reply.status
    if status is not None:
        _stop_at(status, reply.facts, variable)
    kind: Kind
    if reply.stored:
        return Judgement("over")
    if status is None:
        kind = "lost" if reply.sent else "fault"
    elif status in _BUSY:
        return _busy(status, retry_after(reply.headers, policy.now()), policy)
    elif status in _FAULT:
        kind = "fault"
    elif reply.facts.outcome == "provider_error" and not 400 <= status < 500:
        kind = "lost"  # a broken gateway; a stream that broke off or failed
    else:
        return Judgement("over")
    return Judgement(kind, outcome="provider_error")


def _busy(status: int, wait_s: float | None, policy: RetryPolicy) -> Judgement:
    if wait_s is not None and wait_s > policy.ceiling_s:
        return Judgement("over", outcome="censored_rate_limit")
    return Judgement("busy", wait_s, "censored_rate_limit" if status == 429 else "provider_error")


def account_refused(
    status: int, facts: ResponseFacts, variable: str | None
) -> KeyRefusedError | QuotaExhaustedError | None:
    """Whether a reply says that key or account are refused: then every further call would be."""
    said = f"{status} {facts.error_code or ''}".strip()
    if status == 402 or (
        status >= 400 and (facts.error_code in _QUOTA or _NO_CREDIT.search(facts.error_message or ""))
    ):
        return QuotaExhaustedError(variable, said)
    return KeyRefusedError(variable, said) if status in {401, 403} else None


def _stop_at(status: int, facts: ResponseFacts, variable: str | None) -> None:
    refused = account_refused(status, facts, variable)
    if refused is not None:
        raise refused
    said = f"{status} {facts.error_code or ''}".strip()
    message = facts.error_message or ""
    if status == 404 or (status == 400 and facts.outcome == "provider_error" and _names_a_setting(facts, message)):
        raise ConfigError(
            f"the provider refuses the request as it is ({said}: {message}); correct the model's id or its "
            "capabilities in the panel file"
        )


def _names_a_setting(facts: ResponseFacts, message: str) -> bool:
    return facts.error_code in _CONFIG or _NOT_TAKEN.search(message) is not None


class _AskAgainError(Exception):
    """An attempt after which another may be made."""

    def __init__(self, reply: Reply, judgement: Judgement) -> None:
        super().__init__(f"{judgement.kind}: {reply.status}")
        self.reply, self.judgement = reply, judgement


async def persistently(
    ask: Callable[[], Awaitable[Reply]], *, variable: str | None, policy: RetryPolicy | None = None
) -> Reply:
    """Ask until there is an answer, or no try is left; the last reply has the outcome that the caller records.

    Args:
        ask: makes one attempt; raises only what ends everything (`CostLimitExceeded`, …).
        variable: name of the variable that holds the key, None for a placeholder.
        policy: how often and how long.

    Raises:
        KeyRefusedError, QuotaExhaustedError, ConfigError: see `judge`; and whatever ``ask`` raises.
    """
    import stamina  # noqa: PLC0415 - a replay needs none

    policy = policy or RetryPolicy()
    left = {"busy": policy.busy, "fault": policy.faults, "lost": policy.losses}

    def wait(error: Exception) -> bool | float:
        if not isinstance(error, _AskAgainError) or left[error.judgement.kind] <= 0:
            return False
        left[error.judgement.kind] -= 1
        if error.judgement.wait_s is None:
            return True
        # Later than asked, never sooner, and not all at the same moment.
        return error.judgement.wait_s + random.uniform(0, policy.jitter_s)  # noqa: S311 - no secret

    async def once() -> Reply:
        reply = await ask()
        judgement = judge(reply, variable=variable, policy=policy)
        if judgement.kind != "over":
            raise _AskAgainError(reply, judgement)
        return _recorded(reply, judgement)

    caller = stamina.AsyncRetryingCaller(
        attempts=None,
        timeout=None,
        wait_initial=policy.initial_s,
        wait_max=policy.longest_s,
        wait_jitter=policy.jitter_s,
    )
    try:
        return await caller(wait, once)
    except _AskAgainError as error:
        return _recorded(error.reply, error.judgement)


def _recorded(reply: Reply, judgement: Judgement) -> Reply:
    """The reply with the outcome that its caller records."""
    if judgement.outcome is None:
        return reply
    return replace(reply, facts=replace(reply.facts, outcome=judgement.outcome))
