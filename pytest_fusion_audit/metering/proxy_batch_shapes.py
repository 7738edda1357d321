"""Files, batches and rows of results as the two makers show them to their clients."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_fusion_audit.metering.batch_wire import Result
    from pytest_fusion_audit.metering.third_door import Maker

T = TypeVar("T")

_WINDOW_S = 86_400
_CODE = re.compile(r"[a-z][a-z0-9_]{0,59}")
#: What a row that was never run is called: how a code of either maker, or of this tool, ends.
_KINDS = {"expired": "expired", "canceled": "canceled", "cancelled": "canceled"}


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A file as its client sees it; kept in memory until the session ends or the client deletes it."""

    id: str
    name: str
    purpose: str
    content: bytes
    created: int

    def shown(self) -> dict[str, Any]:
        """The file object."""
        return {
            "id": self.id,
            "object": "file",
            "bytes": len(self.content),
            "created_at": self.created,
            "expires_at": None,
            "filename": self.name,
            "purpose": self.purpose,
            "status": "processed",
            "status_details": None,
        }


@dataclass(slots=True, kw_only=True)
class ClientBatch:
    """A batch as its client sees it.

    Attributes:
        id: our id.
        maker: whose batches it is one of.
        created: when, in seconds.
        size: number of its rows.
        endpoint: what an OpenAI batch asks for.
        input_file: id of the client's file.
        metadata: as the client gave it.
        home: URL of the resource ``messages/batches`` as the client called it.
        cancelling: when the client called it off.
        ended: when the last row ended.
        failure: why rows were not run, in words, when something went wrong that is none of a row's.
        counts: rows by what became of them: succeeded, errored, canceled, expired.
        files: ids of output file and error file.
        results: the rows of a message batch.
    """

    id: str
    maker: Maker
    created: int
    size: int
    endpoint: str = ""
    input_file: str = ""
    metadata: Mapping[str, Any] | None = None
    home: str = ""
    cancelling: int | None = None
    ended: int | None = None
    failure: str | None = None
    counts: dict[str, int] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    results: bytes = b""

    def shown(self) -> dict[str, Any]:
        """The batch object of its maker."""
        return self._openai() if self.maker == "openai" else self._anthropic()

    @property
    def _status(self) -> str:
        if self.ended is None:
            return "in_progress" if self.cancelling is None else "cancelling"
        if self.cancelling is not None:
            return "cancelled"
        if self.failure is not None:
            return "failed"
        return "expired" if self.counts.get("expired") else "completed"

    def _openai(self) -> dict[str, Any]:
        status, times = self._status, dict.fromkeys(("completed", "failed", "expired", "cancelled"), None)
        problems = [{"code": "not_run", "message": self.failure, "param": None, "line": None}]
        done = self.counts.get("succeeded", 0)
        return {
            "id": self.id,
            "object": "batch",
            "endpoint": self.endpoint,
            "errors": None if self.failure is None else {"object": "list", "data": problems},
            "input_file_id": self.input_file,
            "completion_window": "24h",
            "status": status,
            "output_file_id": self.files.get("output"),
            "error_file_id": self.files.get("error"),
            "created_at": self.created,
            "in_progress_at": self.created,
            "expires_at": self.created + _WINDOW_S,
            "finalizing_at": self.ended,
            "cancelling_at": self.cancelling,
            **{f"{name}_at": self.ended if name == status else None for name in times},
            "request_counts": {
                "total": self.size,
                "completed": done,
                "failed": 0 if self.ended is None else self.size - done,
            },
            "metadata": self.metadata,
        }

    def _anthropic(self) -> dict[str, Any]:
        running = "in_progress" if self.cancelling is None else "canceling"
        kinds = dict.fromkeys(("canceled", "errored", "expired", "succeeded"), 0)
        processing = self.size if self.ended is None else 0
        return {
            "id": self.id,
            "type": "message_batch",
            "processing_status": running if self.ended is None else "ended",
            "request_counts": {**kinds, **self.counts, "processing": processing},
            "created_at": _stamp(self.created),
            "expires_at": _stamp(self.created + _WINDOW_S),
            "ended_at": _stamp(self.ended),
            "cancel_initiated_at": _stamp(self.cancelling),
            "archived_at": None,
            "results_url": None if self.ended is None else f"{self.home}/{self.id}/results",
        }


def _stamp(seconds: int | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def kind_of(result: Result) -> str:
    """What became of a row, in Anthropic's words.

    >>> from pytest_fusion_audit.metering.batch_wire import Result
    >>> kind_of(Result("r", 0, code="batch_expired")), kind_of(Result("r", 400, {})), kind_of(Result("r", 0))
    ('expired', 'errored', 'errored')
    """
    if result.answered:
        return "succeeded"
    return "errored" if result.status else _KINDS.get((result.code or "").removeprefix("batch_"), "errored")


def line_of(maker: Maker, result: Result) -> bytes:
    """A row of results as one line of JSON."""
    shown = _openai_line(result) if maker == "openai" else _anthropic_line(result)
    return json.dumps(shown, separators=(",", ":")).encode() + b"\n"


def _openai_line(result: Result) -> dict[str, Any]:
    row = {"id": f"batch_req_{result.custom_id}", "custom_id": result.custom_id}
    if result.body is not None:
        response = {"status_code": result.status, "request_id": result.request_id or "", "body": result.body}
        return {**row, "response": response, "error": None}
    code, message = _said(result)
    codes = {"expired": "batch_expired", "canceled": "batch_cancelled"}
    return {**row, "response": None, "error": {"code": codes.get(kind_of(result), code), "message": message}}


def _anthropic_line(result: Result) -> dict[str, Any]:
    kind = kind_of(result)
    shown: dict[str, Any] = {"type": kind}
    if kind == "succeeded":
        shown["message"] = result.body
    elif result.body is not None:
        shown["error"] = {"type": "error", "request_id": result.request_id, **result.body}
    elif kind == "errored":
        error = {"type": "api_error", "message": _said(result)[1]}
        shown["error"] = {"type": "error", "error": error, "request_id": None}
    return {"custom_id": result.custom_id, "result": shown}


def _said(result: Result) -> tuple[str, str]:
    """Code and message of a row without a response."""
    reason = result.code or "not_run"
    code = reason if _CODE.fullmatch(reason) else "not_run"
    return code, f"no batch answered this request ({reason}); it may be asked again"


def page(entries: Sequence[dict[str, Any]], *, after: str | None, before: str | None, limit: str | None) -> Any:
    """One page of a list, in the words of both makers."""
    ids = [entry["id"] for entry in entries]
    begin = ids.index(after) + 1 if after in ids else 0
    end = ids.index(before) if before in ids else len(ids)
    size = int(limit) if limit is not None and limit.isascii() and limit.isdecimal() and int(limit) else 20
    if before in ids and after is None:
        begin = max(0, end - size)
    shown = list(entries[begin:end][:size])
    more = begin > 0 if before in ids and after is None else begin + len(shown) < end
    edges = {"first_id": shown[0]["id"] if shown else None, "last_id": shown[-1]["id"] if shown else None}
    return {"object": "list", "data": shown, "has_more": more, **edges}


def problem(maker: Maker, status: int, message: str, param: str | None = None) -> dict[str, Any]:
    """An error as the maker says it.

    >>> problem("anthropic", 404, "no such batch")["error"]["type"]
    'not_found_error'
    """
    if maker == "openai":
        return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": None}}
    kind = "not_found_error" if status == 404 else "invalid_request_error"
    return {"type": "error", "error": {"type": kind, "message": message}}
