"""The state of one loopback server: what it was asked, what it answers, what it billed."""

from __future__ import annotations

import json
import os
import re
import threading
from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.metering.server_batches import Batches, BatchScript
from tests.metering.server_replies import (
    ERRORS,
    HTML,
    Json,
    Reply,
    dialect_of,
    error,
    plain,
    prompt_of,
    request_hash,
    stream,
    usage_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_MARKER = re.compile(r"\[\[script:(.+?)(?:\*(\d+))?\]\]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it arrived; header names are lower-case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def key(self) -> str:
        """The key it carried, in either style."""
        return self.headers.get("x-api-key") or self.headers.get("authorization", "").removeprefix("Bearer ")


class Server:
    """State of one server. Both protocols are served on every path that ends as the makers' do."""

    def __init__(
        self,
        *,
        bill: Path | None = None,
        state: Path | None = None,
        latency_s: float = 0.0,
        keys: Sequence[str] = (),
        models: Sequence[str] = (),
    ) -> None:
        self.latency_s = latency_s
        self.keys = frozenset(keys)
        self.models = tuple(models)
        self.rows: list[Json] = []
        self.requests: list[Request] = []
        self.url = ""
        self.open_now = 0
        self.open_most = 0
        self._queue: deque[Reply] = deque()
        self._seen: Counter[str] = Counter()
        self._lock = threading.RLock()  # rows of a batch look for their markers too
        self._bill = os.open(bill, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) if bill else None
        self.batches = Batches(state, self._bill_batch_row, self._marked)

    def script(self, *replies: Reply | str) -> None:
        """Queue replies for the next requests to chat completions, responses or messages; a string is a kind."""
        with self._lock:
            self._queue.extend(Reply(kind=each) if isinstance(each, str) else each for each in replies)

    def billed(self) -> list[Json]:
        """Rows of the bill that cost money: ``hash``, ``model``, ``usage``, ``prompt``, ``path``, ``batch``."""
        return [row for row in self.rows if row["billed"]]

    def counts(self) -> Counter[str]:
        """How often each request hash was billed."""
        return Counter(row["hash"] for row in self.billed())

    def answer(self, request: Request) -> tuple[Reply, int, Mapping[str, str], bytes | list[bytes]]:
        """Decide on a request: the reply, status, headers and body (a list = events of a stream)."""
        self.requests.append(request)
        path = request.path.partition("?")[0]
        if path.startswith("/_"):
            return self._control(path, request.body)
        if self.keys and request.key not in self.keys:
            return self._json(Reply(kind="key_refused"), *error(dialect_of(path), "key_refused"))
        if request.method == "GET" and "models" in path.split("/"):
            return self._json(Reply(), 200, self._listed(path))
        with self._lock:
            about = self.batches.handle(request.method, path, request.headers, request.body)
        if about is not None:
            status, body = about
            return Reply(), status, {}, body if isinstance(body, bytes) else json.dumps(body).encode()
        dialect = dialect_of(path) if request.method == "POST" else None
        if dialect is None:
            return self._json(Reply(), 404, {"error": {"message": f"no route {path}", "type": "not_found"}})
        return self._generate(path, dialect, json.loads(request.body))

    def _generate(
        self, path: str, dialect: str, document: Json
    ) -> tuple[Reply, int, Mapping[str, str], bytes | list[bytes]]:
        reply = self._marked(document, queued=True)
        if self.models and document.get("model") not in self.models:
            reply = Reply(kind="model_not_found")
        number = self._count(path, document, dialect, reply)
        headers = {"x-request-id": f"req_{number}", "request-id": f"req_{number}", **reply.headers}
        if reply.body is not None:
            raw = reply.body if isinstance(reply.body, str) else json.dumps(reply.body)
            headers["content-type"] = reply.content_type or (
                "text/html" if isinstance(reply.body, str) else "application/json"
            )
            return reply, reply.status or 200, headers, raw.encode()
        if reply.kind in ERRORS:
            status, body = error(dialect, reply.kind, reply.status)
            return reply, status, headers, json.dumps(body).encode()
        if reply.kind == "html":
            headers["content-type"] = "text/html; charset=utf-8"
            return reply, reply.status or 200, headers, HTML.encode()
        if document.get("stream") and reply.kind not in {"choices_null", "choices_empty", "error_object"}:
            headers["content-type"] = reply.content_type or "text/event-stream; charset=utf-8"
            return reply, reply.status or 200, headers, stream(dialect, reply, document, number)
        return reply, reply.status or 200, headers, json.dumps(plain(dialect, reply, document, number)).encode()

    def _marked(self, document: Json, *, queued: bool = False) -> Reply:
        """The reply that a marker in the prompt asks for, else the head of the queue, else the default."""
        marker = _MARKER.search(prompt_of(document))
        with self._lock:
            if marker is not None:
                self._seen[request_hash(document)] += 1
                if marker.group(2) and self._seen[request_hash(document)] > int(marker.group(2)):
                    return Reply()
                text = marker.group(1)
                return Reply(**json.loads(text)) if text.startswith("{") else Reply(kind=text)
            if queued and self._queue:
                return self._queue.popleft()
        return Reply()

    def _bill_batch_row(self, path: str, document: Json, dialect: str | None, reply: Reply) -> int:
        return self._count(path, document, dialect or dialect_of(path) or "", reply, batch=True)

    def _count(self, path: str, document: Json, dialect: str, reply: Reply, *, batch: bool = False) -> int:
        """Write a row of the bill; returns its number."""
        row = {
            "n": len(self.rows) + 1,
            "billed": reply.bills(),
            "kind": reply.kind,
            "path": path,
            "hash": request_hash(document),
            "model": reply.model or document.get("model"),
            "usage": usage_of(dialect, reply, document) if reply.bills() else None,
            "prompt": prompt_of(document)[:200],
            "batch": batch,
        }
        self.rows.append(row)
        if self._bill is not None:
            os.write(self._bill, json.dumps(row).encode() + b"\n")
        return int(row["n"])

    def _listed(self, path: str) -> Json:
        names = self.models or ("gpt-5.5", "claude-opus-4-8")
        same = {"object": "model", "type": "model", "created": 0, "owned_by": "x"}
        models = [{"id": name, "display_name": name, **same} for name in names]
        last = path.rstrip("/").rsplit("/", 1)[-1]
        if last != "models":
            return next((model for model in models if model["id"] == last), {})
        return {"object": "list", "data": models, "has_more": False, "first_id": names[0], "last_id": names[-1]}

    def _control(self, path: str, body: bytes) -> tuple[Reply, int, Mapping[str, str], bytes]:
        self.requests.pop()
        if path == "/_script":
            self.script(*(Reply(**each) for each in json.loads(body)))
        elif path == "/_batches":
            self.batches.script = BatchScript(**json.loads(body))
        return self._json(Reply(), 200, {"rows": self.rows, "open_most": self.open_most})

    @staticmethod
    def _json(reply: Reply, status: int, body: Json) -> tuple[Reply, int, Mapping[str, str], bytes]:
        return reply, status, {}, json.dumps(body).encode()

    def close(self) -> None:
        if self._bill is not None:
            os.close(self._bill)
            self._bill = None
