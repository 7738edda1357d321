"""Anthropic's message batches: one request with everything in it, one stream of results.

A message batch carries no tag and its list shows no custom ids. One whose id is unknown is therefore recognised by its
size and then, once it has ended, by the custom ids of its results; until then nothing is sent a second time.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.metering.batch_wire import (
    BatchHttp,
    Found,
    Line,
    Look,
    RefusedError,
    Result,
    Results,
    code_of,
    field_of,
    listed,
    objects,
    text_of,
)
from pytest_fusion_audit.metering.wire.base import ANTHROPIC_VERSION

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from pytest_fusion_audit.metering.batch_book import Batch

MOST_ROWS = 100_000
MOST_BYTES = 240 * 1024 * 1024
HEADERS = {"anthropic-version": ANTHROPIC_VERSION, "x-api-key": "set by the door"}
_CLOCK_SLACK_S = 86_400.0  # how far the provider's clock and the one of this machine may be apart
_COUNTS = ("processing", "succeeded", "errored", "canceled", "expired")
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class AnthropicBatches:
    """Message batches behind one base URL.

    Args:
        http: sends requests; its headers are `HEADERS`.
        base: what stands before ``/batches``, such as ``https://api.anthropic.com/v1/messages``.
    """

    def __init__(self, http: BatchHttp, base: str) -> None:
        self._http = http
        self._url = f"{base}/batches"

    async def prepare(self, batch: Batch, lines: Sequence[Line], *, again: bool) -> None:
        """Nothing is uploaded beforehand."""

    async def create(self, batch: Batch, lines: Sequence[Line]) -> str:
        """Ask for the batch; see `Wire`."""
        del batch
        asked = {"requests": [{"custom_id": line.custom_id, "params": line.body} for line in lines]}
        return str((await self._http.ask("POST", self._url, json=asked))["id"])

    async def find(self, batch: Batch, known: set[str]) -> Found:
        """Find it by its size and the custom ids of its results."""
        unclear = False
        async for entry in self._all():
            name = text_of(entry, "id")
            if name is None or name in known or not _may_be(entry, batch):
                continue
            if entry.get("processing_status") != "ended":
                unclear = True
                continue
            rows = (await self.results(Look(ended=True, results=(name,)))).rows
            if any(row.custom_id in batch.open for row in rows):
                return "found", name
        return ("unclear" if unclear else "absent"), None

    async def look(self, batch: Batch) -> Look:
        """How far it is; see `Wire`."""
        answer = await self._http.ask("GET", f"{self._url}/{batch.provider}")
        succeeded = field_of(answer, "request_counts", "succeeded")
        name = str(batch.provider)
        return Look(
            ended=answer.get("processing_status") == "ended",
            answered=succeeded if type(succeeded) is int else None,
            results=(name,),
            files=(name,),
        )

    async def cancel(self, batch: Batch) -> None:
        """Call it off; see `Wire`."""
        await self._http.send("POST", f"{self._url}/{batch.provider}/cancel")

    async def results(self, look: Look) -> Results:
        """Rows of the results; asked for below our own base URL, whatever URL the provider names."""
        rows, unreadable = [], 0
        for name in look.results:
            for entry in objects(await self._http.send("GET", f"{self._url}/{name}/results")):
                row = None if entry is None else result_of(entry)
                if row is None:
                    unreadable += 1
                else:
                    rows.append(row)
        return Results(rows, unreadable)

    async def delete(self, what: str) -> None:
        """Delete a batch with its results."""
        try:
            await self._http.send("DELETE", f"{self._url}/{what}")
        except RefusedError as error:
            if error.status != 404:
                raise

    async def _all(self) -> AsyncIterator[dict[str, Any]]:
        params = {"limit": "100"}
        while True:
            page = await self._http.ask("GET", self._url, params=params)
            entries = listed(page)
            for entry in entries:
                yield entry
            last = text_of(entries[-1], "id") if entries else None
            if not page.get("has_more") or last is None or last == params.get("after_id"):
                return
            params = {**params, "after_id": last}


def result_of(entry: dict[str, Any]) -> Result | None:
    """One line of the results; None when it is not one.

    >>> result_of({"custom_id": "c1", "result": {"type": "expired"}})
    Result(custom_id='c1', status=0, body=None, code='expired', request_id=None)
    """
    custom_id, kind = entry.get("custom_id"), field_of(entry, "result", "type")
    if not isinstance(custom_id, str) or not isinstance(kind, str):
        return None
    if kind == "succeeded":
        message = field_of(entry, "result", "message")
        return Result(custom_id, 200, message) if isinstance(message, dict) else None
    if kind == "errored":
        error = field_of(entry, "result", "error")
        code = code_of(error, "error", "type") or code_of(error, "type") or "api_error"
        body = error if field_of(error, "error") is not None else {"type": "error", "error": error}
        return Result(custom_id, _STATUS.get(code, 500), body, code, text_of(error, "request_id"))
    return Result(custom_id, 0, code=code_of(entry, "result", "type") or "not_run")


def _may_be(entry: dict[str, Any], batch: Batch) -> bool:
    counts = [field_of(entry, "request_counts", name) for name in _COUNTS]
    if sum(count for count in counts if type(count) is int) != batch.rows:
        return False
    try:
        made = datetime.fromisoformat(str(entry.get("created_at"))).timestamp()
    except ValueError:
        return True
    return made >= batch.at - _CLOCK_SLACK_S
