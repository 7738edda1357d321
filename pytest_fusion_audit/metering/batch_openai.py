"""OpenAI's batches: an uploaded JSONL file, ``/batches``, an output file and an error file."""

from __future__ import annotations

import json
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

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from pytest_fusion_audit.metering.batch_book import Batch

MOST_ROWS = 50_000
MOST_BYTES = 190 * 1024 * 1024
#: Name in the batch's metadata under which our own id stands.
TAG = "fusion_audit_batch"
_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})


class OpenAIBatches:
    """Batches behind one base URL.

    Args:
        http: sends requests.
        base: what stands before ``/files`` and ``/batches``, such as ``https://api.openai.com/v1``.
    """

    def __init__(self, http: BatchHttp, base: str) -> None:
        self._http = http
        self._base = base

    async def prepare(self, batch: Batch, lines: Sequence[Line], *, again: bool) -> str:
        """Upload the input file; see `Wire`."""
        if again:
            for entry in await self._leftovers(batch):
                await self.delete(entry)
        endpoint = _endpoint(batch.url, self._base)
        content = b"".join(_line(line, endpoint) for line in lines)
        answer = await self._http.ask(
            "POST",
            f"{self._base}/files",
            data={"purpose": "batch"},
            files={"file": (_file_name(batch), content, "application/jsonl")},
        )
        return str(answer["id"])

    async def create(self, batch: Batch, lines: Sequence[Line]) -> str:
        """Ask for the batch; see `Wire`."""
        del lines  # they are in the file
        asked = {
            "input_file_id": batch.file,
            "endpoint": _endpoint(batch.url, self._base),
            "completion_window": "24h",
            "metadata": {TAG: batch.id},
        }
        return str((await self._http.ask("POST", f"{self._base}/batches", json=asked))["id"])

    async def find(self, batch: Batch, known: set[str]) -> Found:
        """Find it by the tag in its metadata, or by its input file, which only we know."""
        async for entry in self._all("batches", limit="100"):
            name = text_of(entry, "id")
            ours = field_of(entry, "metadata", TAG) == batch.id
            if batch.file is not None:
                ours = ours or entry.get("input_file_id") == batch.file
            if name is not None and name not in known and ours:
                return "found", name
        return "absent", None

    async def look(self, batch: Batch) -> Look:
        """How far it is; see `Wire`."""
        answer = await self._http.ask("GET", f"{self._base}/batches/{batch.provider}")
        status = answer.get("status")
        outputs = tuple(name for key in ("output_file_id", "error_file_id") if (name := text_of(answer, key)))
        inputs = tuple(name for name in (text_of(answer, "input_file_id"),) if name)
        completed = field_of(answer, "request_counts", "completed")
        problems = listed(answer.get("errors") or {})
        failed = (code_of(problems[0], "code") if problems else None) or "batch_failed"
        return Look(
            ended=status in _ENDED,
            answered=completed if type(completed) is int else None,
            failure=failed if status == "failed" else None,
            results=outputs,
            files=(*inputs, *outputs),
        )

    async def cancel(self, batch: Batch) -> None:
        """Call it off; see `Wire`."""
        await self._http.send("POST", f"{self._base}/batches/{batch.provider}/cancel")

    async def results(self, look: Look) -> Results:
        """Rows of the output file and of the error file."""
        rows, unreadable = [], 0
        for name in look.results:
            for entry in objects(await self._http.send("GET", f"{self._base}/files/{name}/content")):
                row = None if entry is None else result_of(entry)
                if row is None:
                    unreadable += 1
                else:
                    rows.append(row)
        return Results(rows, unreadable)

    async def delete(self, what: str) -> None:
        """Delete a file."""
        try:
            await self._http.send("DELETE", f"{self._base}/files/{what}")
        except RefusedError as error:
            if error.status != 404:
                raise

    async def _leftovers(self, batch: Batch) -> list[str]:
        mine = _file_name(batch)
        return [
            str(entry["id"])
            async for entry in self._all("files", limit="1000", purpose="batch")
            if entry.get("filename") == mine
        ]

    async def _all(self, kind: str, **params: str) -> AsyncIterator[dict[str, Any]]:
        while True:
            page = await self._http.ask("GET", f"{self._base}/{kind}", params=params)
            entries = listed(page)
            for entry in entries:
                yield entry
            last = text_of(entries[-1], "id") if entries else None
            if not page.get("has_more") or last is None or last == params.get("after"):
                return
            params = {**params, "after": last}


def result_of(entry: dict[str, Any]) -> Result | None:
    """One line of an output or error file; None when it is not one.

    >>> result_of({"custom_id": "c1", "response": None, "error": {"code": "batch_expired", "message": "window closed"}})
    Result(custom_id='c1', status=0, body=None, code='batch_expired', request_id=None)
    """
    custom_id = entry.get("custom_id")
    if not isinstance(custom_id, str):
        return None
    status, body = field_of(entry, "response", "status_code"), field_of(entry, "response", "body")
    if type(status) is not int or not isinstance(body, dict):
        return Result(custom_id, 0, code=code_of(entry, "error", "code") or "not_run")
    return Result(custom_id, status, body, request_id=text_of(entry, "response", "request_id"))


def _line(line: Line, endpoint: str) -> bytes:
    row = {"custom_id": line.custom_id, "method": "POST", "url": endpoint, "body": line.body}
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"


def _file_name(batch: Batch) -> str:
    return f"fusion-{batch.id}.jsonl"


def _endpoint(url: str, base: str) -> str:
    """``/v1/chat/completions``, whatever stands before it in a company's URL."""
    return "/v1" + url[len(base) :]
