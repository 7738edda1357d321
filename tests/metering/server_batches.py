"""Files and batches of both makers, with their state on disk so that a server can be restarted in the middle."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from email.parser import BytesParser
from email.policy import HTTP
from typing import TYPE_CHECKING, Any

from tests.metering.server_replies import Json, Reply, dialect_of, error, plain

if TYPE_CHECKING:
    from pathlib import Path

_EPOCH = "2026-11-30T12:00:00Z"
Bill = Callable[[str, Json, Json | None, Reply], int]


@dataclass(slots=True)
class BatchScript:
    """How batches go: how many looks they take, what becomes of whole batches, in what order rows come back.

    ``outcome``: ``completed``, ``failed`` (validation), ``expired`` (no row done), ``half_expired`` (every second row
    done). One row alone is scripted by a marker in its prompt: ``[[script:batch_error]]``,
    ``[[script:batch_expired]]``, or any other kind of reply.
    """

    polls: int = 1
    outcome: str = "completed"
    reverse: bool = True


class Batches:
    """State of files and batches of one server; ``folder`` keeps it over restarts, None keeps it in memory."""

    def __init__(self, folder: Path | None, bill: Bill, script_of: Callable[[Json], Reply]) -> None:
        self._path = folder / "batches.json" if folder else None
        self._bill = bill
        self._script_of = script_of
        self.script = BatchScript()
        self.files: dict[str, Json] = {}
        self.batches: dict[str, Json] = {}
        if self._path and self._path.exists():
            kept = json.loads(self._path.read_text())
            self.files, self.batches = kept["files"], kept["batches"]
            self.script = BatchScript(**kept["script"])

    def handle(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, Any] | None:
        """Answer a request for files or batches: status and JSON (or bytes); None for other paths."""
        parts = path.strip("/").split("/")
        at = next((i for i, part in enumerate(parts) if part in {"files", "batches"}), None)
        if at is None:
            return None
        anthropic = at > 0 and parts[at - 1] == "messages"
        if parts[at] == "files":
            answer = self._on_files(method, parts[at + 1 :], headers, body)
        else:
            answer = self._on_batches(method, parts[at + 1 :], body, anthropic=anthropic, base=parts[: at + 1])
        self._keep()
        return answer

    def _keep(self) -> None:
        if self._path:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            aside = self._path.with_suffix(".new")
            aside.write_text(json.dumps({"files": self.files, "batches": self.batches, "script": asdict(self.script)}))
            aside.replace(self._path)

    def _on_files(self, method: str, rest: list[str], headers: dict[str, str], body: bytes) -> tuple[int, Any]:
        if method == "POST":
            fields = _multipart(headers["content-type"], body)
            return 200, self._file(fields["file"], fields.get("purpose", "batch"), fields.get("file name"))
        if not rest:
            return 200, {"object": "list", "data": [_shown(file) for file in self.files.values()], "has_more": False}
        file = self.files.get(rest[0])
        if file is None:
            return 404, {"error": {"message": "No such File object", "type": "invalid_request_error", "code": None}}
        if method == "DELETE":
            del self.files[rest[0]]
            return 200, {"id": rest[0], "object": "file", "deleted": True}
        return 200, file["content"].encode() if rest[1:] == ["content"] else _shown(file)

    def _file(self, content: str, purpose: str, name: str | None = None) -> Json:
        number = len(self.files) + 1
        while f"file-{number}" in self.files:
            number += 1
        file = {
            "id": f"file-{number}",
            "object": "file",
            "bytes": len(content.encode()),
            "created_at": 1_796_000_000,
            "filename": name or f"{purpose}.jsonl",
            "purpose": purpose,
            "status": "processed",
            "content": content,
        }
        self.files[file["id"]] = file
        return _shown(file)

    def _on_batches(
        self, method: str, rest: list[str], body: bytes, *, anthropic: bool, base: list[str]
    ) -> tuple[int, Any]:
        if method == "POST" and not rest:
            document = json.loads(body)
            return 200, self._new_anthropic(document, base) if anthropic else self._new_openai(document)
        if not rest:
            kind = "message_batch" if anthropic else "batch"
            mine = [b for b in self.batches.values() if b.get("type", b.get("object")) == kind]
            for batch in mine:
                self._look(batch, anthropic=anthropic)
            listed = [_shown(b) for b in mine]
            return 200, {"object": "list", "data": listed, "has_more": False, "first_id": None, "last_id": None}
        batch = self.batches.get(rest[0])
        if batch is None:
            return error("anthropic.messages" if anthropic else None, "model_not_found")
        if method == "DELETE":
            del self.batches[rest[0]]
            return 200, {"id": rest[0], "type": "message_batch_deleted"}
        if rest[1:] == ["cancel"]:
            self._finish(batch, "cancelled", anthropic=anthropic)
        elif rest[1:] == ["results"]:
            return 200, batch["results"].encode()
        else:
            self._look(batch, anthropic=anthropic)
        return 200, _shown(batch)

    def _look(self, batch: Json, *, anthropic: bool) -> None:
        """Batches go on by being looked at, in a list too, so that tests need not wait."""
        if batch.get("finished"):
            return
        if batch["looks"] >= self.script.polls:
            self._finish(batch, self.script.outcome, anthropic=anthropic)
        else:
            batch["looks"] += 1
            batch["processing_status" if anthropic else "status"] = "in_progress"

    def _new_openai(self, document: Json) -> Json:
        batch = {
            "id": f"batch_{len(self.batches) + 1}",
            "object": "batch",
            "endpoint": document["endpoint"],
            "input_file_id": document["input_file_id"],
            "completion_window": document["completion_window"],
            "metadata": document.get("metadata"),
            "status": "validating",
            "created_at": 1_796_000_000,
            "errors": None,
            "output_file_id": None,
            "error_file_id": None,
            "request_counts": {"total": 0, "completed": 0, "failed": 0},
            "looks": 0,
        }
        self.batches[batch["id"]] = batch
        return _shown(batch)

    def _new_anthropic(self, document: Json, base: list[str]) -> Json:
        name = f"msgbatch_{len(self.batches) + 1}"
        counts = dict.fromkeys(("canceled", "errored", "expired", "succeeded"), 0)
        batch = {
            "id": name,
            "type": "message_batch",
            "processing_status": "in_progress",
            "request_counts": {**counts, "processing": len(document["requests"])},
            "created_at": _EPOCH,
            "expires_at": _EPOCH,
            "ended_at": None,
            "archived_at": None,
            "cancel_initiated_at": None,
            "results_url": None,
            "requests": document["requests"],
            "results_path": "/" + "/".join(base) + f"/{name}/results",
            "looks": 0,
        }
        self.batches[name] = batch
        return _shown(batch)

    def _finish(self, batch: Json, outcome: str, *, anthropic: bool) -> None:
        if batch.get("finished"):
            return
        batch["finished"] = True
        if anthropic:
            self._finish_anthropic(batch, outcome)
            return
        rows = [json.loads(line) for line in self.files[batch["input_file_id"]]["content"].splitlines() if line.strip()]
        if outcome == "failed":
            batch["status"] = "failed"
            batch["errors"] = {"object": "list", "data": [{"code": "invalid_json_line", "message": "bad", "line": 1}]}
            return
        good, bad = [], []
        for number, row in enumerate(rows, 1):
            base = {"id": f"batch_req_{number}", "custom_id": row["custom_id"]}
            status, body = self._row(row["url"], row["body"], outcome, number)
            if status == 0:
                bad.append({**base, "response": None, "error": {"code": f"batch_{body}", "message": "not run"}})
            else:
                response = {"status_code": status, "request_id": f"req_{number}", "body": body}
                (good if status < 400 else bad).append({**base, "response": response, "error": None})
        batch["status"] = {"half_expired": "expired"}.get(outcome, outcome)
        batch["request_counts"] = {"total": len(rows), "completed": len(good), "failed": len(bad)}
        for name, kept in (("output_file_id", good), ("error_file_id", bad)):
            if kept:
                batch[name] = self._file(self._lines(kept), "batch_output")["id"]

    def _finish_anthropic(self, batch: Json, outcome: str) -> None:
        counts = dict.fromkeys(("canceled", "errored", "expired", "processing", "succeeded"), 0)
        rows = []
        for number, request in enumerate(batch["requests"], 1):
            status, body = self._row("/v1/messages", request["params"], outcome, number)
            if status == 0:
                kind = "canceled" if body == "cancelled" else "expired"
                result: Json = {"type": kind}
            elif status < 400:
                kind, result = "succeeded", {"type": "succeeded", "message": body}
            else:
                kind, result = "errored", {"type": "errored", "error": body}
            counts[kind] += 1
            rows.append({"custom_id": request["custom_id"], "result": result})
        batch |= {
            "processing_status": "ended",
            "request_counts": counts,
            "ended_at": _EPOCH,
            "results": self._lines(rows),
            "results_url": batch["results_path"],
        }

    def _row(self, url: str, body: Json, outcome: str, number: int) -> tuple[int, Any]:
        """Status and body of one row; status 0 = it was never run, and why."""
        dialect = dialect_of(url)
        if dialect is None:
            return 400, error(None, "unsupported_parameter")[1]
        reply = self._script_of(body)
        if outcome in {"expired", "cancelled"} or (outcome == "half_expired" and number % 2 == 0):
            return 0, outcome.removeprefix("half_")
        if reply.kind == "batch_expired":
            return 0, "expired"
        if reply.kind == "batch_error":
            return error(dialect, "server_error")
        if reply.kind != "answer":
            return error(dialect, reply.kind)
        answer = plain(dialect, reply, body, self._bill(url, body, None, reply))
        if dialect == "anthropic.messages" and "usage" in answer:
            answer["usage"]["service_tier"] = "batch"
        return 200, answer

    def _lines(self, rows: list[Json]) -> str:
        ordered = rows[::-1] if self.script.reverse else rows
        return "".join(json.dumps(row) + "\n" for row in ordered)


def _shown(thing: Json) -> Json:
    hidden = {"content", "looks", "finished", "requests", "results", "results_path"}
    return {name: value for name, value in thing.items() if name not in hidden}


def _multipart(content_type: str, body: bytes) -> dict[str, str]:
    message = BytesParser(policy=HTTP).parsebytes(f"content-type: {content_type}\r\n\r\n".encode() + body)
    fields = {}
    for part in message.iter_parts():
        name = re.search(r'name="?([^";]+)', part["content-disposition"])
        if part.get_filename():
            fields["file name"] = str(part.get_filename())
        payload = part.get_payload(decode=True)
        if name and isinstance(payload, bytes):
            fields[name.group(1)] = payload.decode()
    return fields
