"""The call store: stored answers by the key of their call, and the key itself.

Key = canonical request + the header fields that can change its answer + format version + scope. Absent and explicit
values differ, so do trailing blanks; the order of an object's keys, credentials and scheduling (the service tier:
`prefer` may change on resume) do not count. The n-th time a session asks for a key it gets the n-th stored answer, if
there is one: k samples stay k answers, and only a resume finds any.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.errors import FusionAuditError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_fusion_audit.metering.journal import Row
    from pytest_fusion_audit.metering.scope import Scope

KEY_VERSION = 2
#: Header fields of a request that can change its answer: versions and trials of an API.
KEYED_HEADERS = ("anthropic-beta", "anthropic-version", "openai-beta")


class ReplayMissError(FusionAuditError):
    """A replay needs an answer that is not stored; nothing was sent."""


@dataclass(frozen=True, slots=True)
class Key:
    """Key of a call, with the hashes of its parts so that a miss can say which part differs."""

    digest: str
    parts: Mapping[str, str]


def key_of(url: str, body: bytes, scope: Scope, headers: Mapping[str, str] | None = None) -> Key:
    """Key of a request.

    Args:
        url: where the request goes, with its query (an API's version may stand there): another endpoint may answer
            differently.
        body: JSON; any other bytes count as they are.
        scope: what the call is for.
        headers: header fields of the request, names in lower case or of any case in an ``httpx2.Headers``; those of
            `KEYED_HEADERS` count. A field that is absent differs from every value.
    """
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if isinstance(document, dict):
        prompt = {name: document[name] for name in _PROMPT if name in document}
        rest = {name: value for name, value in document.items() if name not in _APART}
        request = {"model": document.get("model"), "prompt": prompt, "parameters": rest}
    else:
        request = {"model": None, "prompt": hashlib.sha256(body).hexdigest(), "parameters": None}
    keyed = {} if headers is None else {name: headers[name] for name in KEYED_HEADERS if name in headers}
    whole = {**request, "endpoint": url, "headers": keyed, "scope": scope.keyed()}
    parts = {name: _digest(part) for name, part in whole.items()}
    return Key(_digest([KEY_VERSION, parts]), parts)


_PROMPT = ("messages", "input", "system", "instructions", "tools")
_APART = frozenset({*_PROMPT, "model", "service_tier"})


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer as the journal keeps it."""

    call: str
    body_sha256: str
    status: int
    content_type: str | None
    latency_s: float | None
    model: str | None


class Answers:
    """Index of the stored answers; fed with journal rows in file order."""

    def __init__(self) -> None:
        self._reserved: dict[str, Row] = {}
        self._stored: dict[str, list[StoredAnswer]] = defaultdict(list)
        self._failed: dict[str, StoredAnswer] = {}
        self._parts: dict[str, Mapping[str, str]] = {}
        self._taken: Counter[str] = Counter()
        self._attempts: Counter[str] = Counter()

    def attempt(self, key: Key) -> int:
        """Number of the next attempt at a key, over all sessions of the run, from 1."""
        return self._attempts[key.digest] + 1

    def take_row(self, row: Row) -> None:
        """Learn one journal row."""
        event = row.get("e")
        if event == "reserve":
            self._reserved[row["id"]] = row
            self._attempts[row.get("key", "")] += 1
        elif event == "settle":
            reserve = self._reserved.pop(row["id"], None)
            body = row.get("answer") or row.get("body")
            if reserve is None or not body or "key" not in reserve:
                return
            answer = StoredAnswer(
                call=row["id"],
                body_sha256=body,
                status=row["status"],
                content_type=row.get("type"),
                latency_s=row.get("latency_s"),
                model=row.get("model"),
            )
            if not row.get("answer"):
                self._failed[reserve["key"]] = answer
                return
            self._stored[reserve["key"]].append(answer)
            self._parts[reserve["key"]] = reserve.get("parts", {})

    def take(self, key: Key) -> StoredAnswer | None:
        """The next stored answer of this key that the session has not had; None when it has to be bought."""
        taken = self._taken[key.digest]
        held = self._stored.get(key.digest, ())
        if taken >= len(held):
            return None
        self._taken[key.digest] += 1
        return held[taken]

    def ready(self, key: Key) -> int:
        """Number of stored answers of this key that the session has not had."""
        return max(0, len(self._stored.get(key.digest, ())) - self._taken[key.digest])

    def failure(self, key: Key) -> StoredAnswer | None:
        """The last reply to a call that never got an answer, for a replay of a run in which it failed."""
        return None if key.digest in self._stored else self._failed.get(key.digest)

    def buys(self, key: str, count: int = 1) -> None:
        """Count an answer that the session is about to store as one it has had; -1 when it could not be stored.

        Before it is stored, so that nobody else takes it.
        """
        self._taken[key] += count

    def missed(self, key: Key, scope: Scope, model: str | None) -> ReplayMissError:
        """The error of a replay: task, phase, model, and the part of the key that differs from what is stored."""
        where = f"task {scope.task!r}, phase {scope.phase}, stage {scope.stage}, arm {scope.arm}, model {model}"
        same_scope = [parts for parts in self._parts.values() if parts.get("scope") == key.parts["scope"]]
        if not same_scope:
            differs = "no call of this scope is stored"
        elif key.digest in self._stored:
            differs = f"{len(self._stored[key.digest])} answers are stored and all were taken"
        else:
            nearest = min(same_scope, key=lambda parts: sum(parts.get(n) != v for n, v in key.parts.items()))
            names = [name for name, value in key.parts.items() if nearest.get(name) != value]
            differs = f"a call of this scope is stored, it differs in: {', '.join(names)}"
        return ReplayMissError(
            f"replay: no stored answer for {where}, key {key.digest[:12]}: {differs}; "
            "run the phase live with --fusion-resume"
        )
