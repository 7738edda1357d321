"""Which call is it? A served gateway's calls are told apart by the URL that we wrote into its configuration.

First by the base URL (``/s/<token>/<role>/…``: an unguessable token per run, so that nothing else on the machine
spends its money), else by a model alias (``openai/gpt-5.5--judge``) that is mapped back before look-up, price and
sending, else by a marker in the prompt. The task is known by its canary, else by its text. What cannot be attributed is
stage ``unknown``, and counted.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_fusion_audit.metering.scope import Scope

_PATH = re.compile(r"/s/(?P<token>[A-Za-z0-9_-]{16,})(?:/(?P<role>[A-Za-z0-9_.-]+))?(?P<rest>/.*)?")
_ALIAS = re.compile(r"(?P<model>.+?)--(?P<role>[a-z][a-z0-9_.-]*)")
_VERSION = re.compile(r"v\d+(beta)?")
#: First words of the makers' paths; none of them is a role.
_RESOURCES = frozenset({"chat", "responses", "messages", "models", "batches", "files", "completions", "embeddings"})
CANARY = re.compile(r"fusion-canary-(?P<canary>[0-9a-f]{16})")
_LEAST_LINE = 20  # shorter lines stand in many texts


@dataclass(frozen=True, slots=True)
class Route:
    """A path without our prefix, and what the prefix said."""

    token: str
    role: str | None
    path: str


def route_of(path: str) -> Route | None:
    """Take ``/s/<token>/<role>`` off a path; None for a path without it.

    A version or the name of a resource is no role. A path without a version gets ``/v1``: gateways differ in whether
    they add it to their base URL.

    >>> route_of("/s/abcdefghijklmnop/judge/v1/messages")
    Route(token='abcdefghijklmnop', role='judge', path='/v1/messages')
    >>> route_of("/s/abcdefghijklmnop/chat/completions")
    Route(token='abcdefghijklmnop', role=None, path='/v1/chat/completions')
    """
    match = _PATH.fullmatch(path)
    if match is None:
        return None
    role, rest = match["role"], match["rest"] or ""
    if role is not None and (_VERSION.fullmatch(role) or role in _RESOURCES):
        role, rest = None, f"/{role}{rest}"
    if not _VERSION.fullmatch(rest.split("/")[1] if "/" in rest else ""):
        rest = f"/v1{rest}"
    return Route(match["token"], role, rest)


class TaskTexts:
    r"""Finds the task whose text stands in a prompt, whole or in parts, by the hashes of its lines.

    A line that stands in several tasks tells nothing. The task most of whose lines are found wins; a tie is no answer.

    Args:
        texts: task id -> its text as the target gets it. Kept as hashes only.

    >>> TaskTexts({"a": "Sum the odd numbers of a list.", "b": "Find the longest word."}).find(
    ...     ["You are a judge.", "The task was:\nFind the longest word.\nNow compare."])
    'b'
    """

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self._tasks: dict[str, str | None] = {}
        for task, text in (texts or {}).items():
            for line in set(_lines(text)):
                self._tasks[line] = task if self._tasks.get(line, task) == task else None

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def find(self, prompts: Iterator[str] | list[str]) -> str | None:
        """The task of these prompts, None when no line or several tasks' lines tell."""
        found = Counter(task for text in prompts for line in _lines(text) if (task := self._tasks.get(line)))
        best = found.most_common(2)
        if not best or (len(best) > 1 and best[0][1] == best[1][1]):
            return None
        return best[0][0]


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if len(bare := line.strip()) >= _LEAST_LINE:
            yield hashlib.sha256(bare.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """Rules of one served target.

    Attributes:
        base: scope of every call; phase and arm come from here.
        aliases: model alias -> (real model id, stage). Aliases of the form ``<id>--<stage>`` need no entry.
        markers: text that a stage's prompt always holds -> stage.
        canaries: canary -> task id.
        texts: texts of the tasks, for prompts without a canary.
        turns: task id -> turn whose admission pays; looked at for every call, so it may change.
    """

    base: Scope
    aliases: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    markers: Mapping[str, str] = field(default_factory=dict)
    canaries: Mapping[str, str] = field(default_factory=dict)
    texts: TaskTexts = field(default_factory=TaskTexts)
    turns: Mapping[str, str] = field(default_factory=dict)

    def real_model(self, model: str) -> tuple[str, str | None]:
        """The id to send for a model as it was asked for, and the stage its alias names.

        >>> from pytest_fusion_audit.metering.scope import Scope
        >>> Attribution(base=Scope(phase="3")).real_model("openai/gpt-5.5--judge")
        ('openai/gpt-5.5', 'judge')
        """
        known = self.aliases.get(model)
        if known is not None:
            return known
        match = _ALIAS.fullmatch(model)
        return (match["model"], match["role"]) if match else (model, None)

    def scope_of(self, role: str | None, alias_stage: str | None, body: bytes) -> Scope:
        """Scope of a call: stage by URL, alias, marker; member by a role such as ``panel-gpt``; task by canary or text.

        Args:
            role: role in the URL.
            alias_stage: stage that the model's alias named.
            body: the request as the client sent it.
        """
        prompts = list(_texts(body)) if self.markers or self.canaries or self.texts else []
        stage, detail = self._stage(role, alias_stage, prompts)
        task = self._task(prompts) or self.base.task
        turn = self.turns.get(task, self.base.turn) if task is not None else self.base.turn
        return replace(self.base, stage=stage, detail=detail or self.base.detail, task=task, turn=turn)

    def _task(self, prompts: list[str]) -> str | None:
        for text in prompts:
            for found in CANARY.finditer(text):
                if found["canary"] in self.canaries:
                    return self.canaries[found["canary"]]
        return self.texts.find(prompts)

    def _stage(self, role: str | None, alias_stage: str | None, prompts: list[str]) -> tuple[str, str]:
        named = role or alias_stage
        if named is not None:
            stage, _, member = named.partition("-")
            return stage, member
        for marker, stage in self.markers.items():
            if any(marker in text for text in prompts):
                return stage, ""
        return "unknown", ""


def _texts(body: bytes) -> Iterator[str]:
    """Every text inside a JSON body, with its escapes resolved; the body itself when it is no JSON."""
    try:
        waiting: list[Any] = [json.loads(body)]
    except (ValueError, RecursionError):
        yield body.decode("utf-8", "replace")
        return
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            waiting.extend(reversed(value))
        elif isinstance(value, dict):
            waiting.extend(reversed(list(value.values())))
