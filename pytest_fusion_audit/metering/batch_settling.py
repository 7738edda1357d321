"""From the results of a batch to the journal rows that settle its calls.

An answer is charged once at the batch price, because it was sent in a batch, whatever tier its usage names. A row that
failed, expired or was cancelled costs nothing and is not a wrong answer: its request goes back to the queue. A request
of which the results say nothing costs nothing either, unless the provider counts more answers than we were given: then
it may have been billed and stays charged.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import httpx2

from pytest_fusion_audit.metering.batch_wire import Result, code_of
from pytest_fusion_audit.metering.ledger import now_utc
from pytest_fusion_audit.metering.settling import settlement
from pytest_fusion_audit.metering.wire.base import read_response, request_facts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_fusion_audit.metering.batch_book import Batch
    from pytest_fusion_audit.metering.batch_wire import Look
    from pytest_fusion_audit.metering.bodies import Bodies
    from pytest_fusion_audit.metering.endpoints import Endpoint
    from pytest_fusion_audit.metering.journal import Row
    from pytest_fusion_audit.metering.scrubbing import Scrubber
    from pytest_fusion_audit.metering.settling import Pricing

#: Statuses of a row that another attempt may get past, beside those from 500 on.
_PASSING = frozenset({408, 409, 429})


@dataclass(slots=True)
class Settlements:
    """Rows for the journal, and why the run has to stop, if it has to."""

    rows: list[Row] = field(default_factory=list)
    stop: str | None = None
    bodies_end: int = 0  # offset of the own pack that must be durable before the rows are written


def settlements(
    batch: Batch,
    results: Iterable[Result],
    look: Look,
    *,
    pricing: Pricing,
    bodies: Bodies,
    scrubber: Scrubber | None = None,
    endpoint: Endpoint | None = None,
) -> Settlements:
    """Settle every open call of a batch that has ended; joined on custom ids only, in whatever order they come.

    Args:
        batch: its open calls are settled; results of other calls (settled before, or nobody's) add nothing.
        results: rows in any order; of two with one id the answered one counts.
        look: what the provider said when it ended.
        pricing: what an answer costs.
        bodies: where requests are read and answers are stored.
        scrubber: takes keys out of what is stored.
        endpoint: where the batch went, see `settlement`.
    """
    found: dict[str, Result] = {}
    for result in results:
        if result.custom_id not in found or (result.answered and not found[result.custom_id].answered):
            found[result.custom_id] = result
    made = Settlements()
    answered = sum(result.answered for result in found.values())
    unseen_answers = look.answered is None or look.answered > answered
    for call, reserve in batch.open.items():
        result = found.get(call, Result(call, 0, code=look.failure or "no_row"))
        if result.body is not None:
            _replied(made, batch, reserve, result, pricing=pricing, bodies=bodies, scrubber=scrubber, endpoint=endpoint)
        elif call in found:
            made.rows.append(_unanswered(batch, reserve, result.code or "not_run", retry=True))
        elif look.failure is not None:
            retry = look.failure == "token_limit_exceeded"  # too much in the provider's queue: later there is room
            made.rows.append(_unanswered(batch, reserve, look.failure, retry=retry))
        elif unseen_answers:
            made.rows.append(
                {"e": "orphan", "id": call, "reason": "its batch ended without a row for it", "t": now_utc()}
            )
        else:
            made.rows.append(_unanswered(batch, reserve, "no_row", retry=True))
    return made


def unanswered(batch: Batch, code: str, *, retry: bool) -> list[Row]:
    """Settle every open call of a batch that never ran at 0.

    Args:
        batch: the batch.
        code: what kept it from running.
        retry: whether another attempt may get past it.
    """
    return [_unanswered(batch, reserve, code, retry=retry) for reserve in batch.open.values()]


def lost(batch: Batch, reason: str) -> list[Row]:
    """Keep every open call of a batch charged whose answers cannot be had any more."""
    return [{"e": "orphan", "id": call, "reason": reason, "t": now_utc()} for call in batch.open]


def _unanswered(batch: Batch, reserve: Row, code: str, *, retry: bool) -> Row:
    failed = {"t": now_utc(), "outcome": "provider_error", "error": code, "retry": retry}
    return _settle(batch, reserve, 0, estimated=False) | failed


def _settle(batch: Batch, reserve: Row, charged: int, *, estimated: bool) -> Row:
    row = {"e": "settle", "id": reserve["id"], "phase": reserve["phase"], "charged": charged, "estimated": estimated}
    return row | {"batch": batch.id}


def _replied(
    made: Settlements,
    batch: Batch,
    reserve: Row,
    result: Result,
    *,
    pricing: Pricing,
    bodies: Bodies,
    scrubber: Scrubber | None,
    endpoint: Endpoint | None,
) -> None:
    """Settle a call by a row that holds a response: an answer, or an error of the provider."""
    asked = request_facts("POST", batch.url, bodies.get(reserve["request"]))
    if "sent_model" in reserve:
        asked = replace(asked, model=reserve["model"], sent_model=reserve["sent_model"])
    answer = read_response(asked.dialect, result.status, result.body or {})
    headers = {"content-type": "application/json"} | ({"x-request-id": result.request_id} if result.request_id else {})
    response = httpx2.Response(result.status, headers=headers)
    # How long a batch lay in a queue says nothing about a call: no latency.
    settled = settlement(pricing, reserve, asked, answer, response, latency_s=None, batch=True, endpoint=endpoint)
    # As compact JSON; the door hands it on like a response that came by itself.
    content = json.dumps(result.body, ensure_ascii=False, separators=(",", ":")).encode()
    failed = not result.answered
    if scrubber is not None:
        content = scrubber.bytes(content) if failed else scrubber.content(content)
    body, end = bodies.put(content)
    made.bodies_end = max(made.bodies_end, end)
    row = settled.kept(body, scrubber)
    charged, estimated = settled.charged, settled.estimated
    if failed:
        charged, estimated = 0, False  # whatever its status: rows that failed are not billed
        row.pop("flags", None)
    if not settled.answered:
        row["error"] = code_of({"code": answer.error_code}, "code") or f"status_{result.status}"
        row["retry"] = failed and (result.status in _PASSING or result.status >= 500)
    made.rows.append(_settle(batch, reserve, charged, estimated=estimated) | row)
    made.stop = made.stop or settled.stop
