"""From an answer to the row that settles its call: what it cost, what is kept of it, and whether the run goes on."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pytest_fusion_audit.metering.endpoints import ForeignModelError
from pytest_fusion_audit.metering.ledger import now_utc
from pytest_fusion_audit.metering.retry import account_refused

if TYPE_CHECKING:
    import httpx2

    from pytest_fusion_audit.metering.endpoints import Endpoint
    from pytest_fusion_audit.metering.journal import Row
    from pytest_fusion_audit.metering.scrubbing import Scrubber
    from pytest_fusion_audit.metering.wire.base import RequestFacts, ResponseFacts

#: Answered without having worked on the prompt: settled at 0. Other failures of the kind 502, 504 and 52x come from
#: something between us and the provider, which may have worked and billed: their reservation stays charged.
_UNBILLED = frozenset({400, 401, 402, 403, 404, 405, 408, 409, 413, 415, 422, 429, 500, 501, 503, 529})
#: Fields of a row that hold text of the upstream as it came.
_UPSTREAMS_WORDS = ("type", "finish", "model", "request_id")
_NO_ANSWER = frozenset({"pipeline_error", "provider_error"})
_SAME_AGAIN = frozenset({"context_length", "refused"})


class Pricing(Protocol):
    """What the door asks of a price book; amounts in micro-dollars."""

    def worst_case_of(self, host: str, facts: RequestFacts, *, batch: bool = False) -> int:
        """Most that one attempt can cost. Raises a FusionAuditError when nothing bounds it."""

    def cost_of(self, host: str, facts: RequestFacts, answer: ResponseFacts, *, batch: bool = False) -> int | None:
        """What the answer cost; None when its usage or the price of the model that answered is unknown."""

    def same_model(self, host: str, asked: str | None, answered: str | None) -> bool:
        """Whether the model that answered is the one that was asked for, by the exact-id rule."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """How a call is settled.

    Attributes:
        charged: micro-dollars that count from now on.
        estimated: the cost is unknown, the whole reservation stays charged.
        answered: it is an answer that is given again on resume; an error or a cut stream has to be asked for anew.
        row: what the journal keeps beside the hash of the body.
        stop: why the run has to stop, None when it goes on.
    """

    charged: int
    estimated: bool
    answered: bool
    row: dict[str, Any]
    stop: str | None

    def kept(self, body: str, scrubber: Scrubber | None) -> dict[str, Any]:
        """The row as the journal keeps it: with the hash of the body, and without keys in the upstream's own words."""
        row = {**self.row, "body": body}
        if self.answered:
            row["answer"] = body
        if scrubber is not None:
            row |= {name: scrubber.text(row[name]) for name in _UPSTREAMS_WORDS if isinstance(row.get(name), str)}
            if isinstance(row.get("usage"), dict):
                row["usage"] = scrubber.deep(row["usage"])  # the tier is a word of the upstream too
        return row


def settlement(
    pricing: Pricing,
    call: Row,
    facts: RequestFacts,
    answer: ResponseFacts,
    response: httpx2.Response,
    *,
    latency_s: float | None,
    whole: bool = True,
    batch: bool = False,
    endpoint: Endpoint | None = None,
) -> Settlement:
    """Settle an answer.

    Args:
        pricing: price book of the run.
        call: the row of its reservation.
        facts: what was asked.
        answer: what was answered.
        response: status and headers; its content may have been read.
        latency_s: seconds it took, None after a suspend.
        whole: False for a stream that broke off.
        batch: it was sent in a batch, at the batch price.
        endpoint: where it went; a listed host has to say that a model of the two makers answered.
    """
    host, status, headers = call["host"], response.status_code, response.headers
    cost = 0 if facts.free or status in _UNBILLED else pricing.cost_of(host, facts, answer, batch=batch)
    charged = call["reserved"] if cost is None else cost
    # A prompt that does not fit, or breaks a rule, gets the same refusal every time: it is kept like an answer.
    answered = whole and answer.outcome not in _NO_ANSWER and (status < 400 or answer.outcome in _SAME_AGAIN)
    other = status < 400 and answer.model is not None and not as_asked(pricing, host, facts, answer.model)
    foreign = None
    if endpoint is not None and status < 400 and facts.model is not None and (answered or answer.model is not None):
        foreign = _foreign(endpoint, facts.model, answer.model)
    flags = {
        "usage_unknown": cost is None,
        "usage_inconsistent": answer.usage is not None and answer.usage.inconsistent,
        "over_reservation": charged > call["reserved"],
        "other_model": other,
        "foreign_model": foreign is not None,
    }
    row: dict[str, Any] = {
        "t": now_utc(),
        "status": status,
        "type": headers.get("content-type"),
        "outcome": answer.outcome,
        "finish": answer.finish_reason,
        "model": answer.model,
        "request_id": answer.request_id or headers.get("x-request-id") or headers.get("request-id"),
        "latency_s": latency_s,
        "usage": usage_row(answer),
    }
    if any(flags.values()):
        row["flags"] = [name for name, set_ in flags.items() if set_]
    stop = foreign
    if stop is None and endpoint is not None and call["scope"].get("reuse", True):  # a drill is refused on purpose
        refused = account_refused(status, answer, endpoint.api_key_env)
        stop = None if refused is None else str(refused)
    if stop is None and other and cost is None:
        stop = (
            f"{facts.model} was asked for and {answer.model} answered, which has no known price; "
            "pin the model or add its pricing to the panel file"
        )
    return Settlement(charged, cost is None, answered, row, stop)


def as_asked(pricing: Pricing, host: str, facts: RequestFacts, answered: str) -> bool:
    """Whether the model that answered is the one asked for, by the panel's name of it or by the one that was sent."""
    return any(pricing.same_model(host, name, answered) for name in (facts.model, facts.sent_model) if name is not None)


def _foreign(endpoint: Endpoint, asked: str, answered: str | None) -> str | None:
    try:
        endpoint.check_answered(asked, answered)
    except ForeignModelError as error:
        return str(error)
    return None


def usage_row(answer: ResponseFacts) -> dict[str, Any] | None:
    """Usage as the journal keeps it: input and output always, the rest where it is not 0."""
    usage = answer.usage
    if usage is None:
        return None
    counts = {
        "input": usage.input_tokens,
        "cached": usage.cached_tokens,
        "cache_write_5m": usage.cache_write_5m_tokens,
        "cache_write_1h": usage.cache_write_1h_tokens,
        "output": usage.output_tokens,
        "reasoning": usage.reasoning_tokens,
        "web_searches": usage.web_searches,
    }
    row: dict[str, Any] = {name: count for name, count in counts.items() if count or name in {"input", "output"}}
    if usage.service_tier is not None:
        row["tier"] = usage.service_tier
    return row


class Stopwatch:
    """Seconds since it was made; None when the machine was suspended meanwhile (the boot clock ran on)."""

    def __init__(self) -> None:
        self._began = (time.monotonic(), _boot_time())

    def seconds(self) -> float | None:
        """Elapsed seconds, or None after a suspend."""
        awake = time.monotonic() - self._began[0]
        asleep = (_boot_time() - self._began[1]) - awake
        return None if asleep > 1.0 else round(awake, 6)


def _boot_time() -> float:
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)
