"""What is done to an answer between its settlement and the client: translated, freed of an unasked usage, scrubbed."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Protocol

from pytest_fusion_audit.metering.scrubbed_stream import ScrubbedStream
from pytest_fusion_audit.metering.translate import (
    ChatChunks,
    TranslationError,
    answer_to_chat,
    error_to_chat,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_fusion_audit.metering.scrubbing import Scrubber

_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")


class StreamStep(Protocol):
    """One step between a stream and its client."""

    def feed(self, chunk: bytes, /) -> bytes:
        """Take a chunk; returns what can be handed on now, possibly nothing."""

    def finish(self) -> bytes:
        """What was held back; the stream has ended."""


class WithoutUsage:
    """Leaves out the event that states the usage and nothing else: the door asked for it, the client did not.

    Every other byte is handed on as it came.
    """

    def __init__(self) -> None:
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        """Take a chunk; whole events are handed on."""
        data = self._held + chunk
        kept, at = [], 0
        for end in _EVENT_END.finditer(data):
            event = data[at : end.end()]
            at = end.end()
            if not _only_usage(event):
                kept.append(event)
        self._held = data[at:]
        return b"".join(kept)

    def finish(self) -> bytes:
        """The begin of an event whose end never came."""
        held, self._held = self._held, b""
        return b"" if _only_usage(held) else held


def _only_usage(event: bytes) -> bool:
    if b'"usage"' not in event:
        return False
    lines = re.split(rb"\r\n|\n|\r", event)
    data = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("choices") == [] and bool(value.get("usage"))


class HandingOn:
    """How the answers of one request reach its client.

    Args:
        scrubber: takes keys out of what an upstream says; None leaves bytes as they are.
        translated: the upstream speaks messages and the client chat completions.
        strip_usage: the client asked for a chat stream without usage.
        include_usage: the client asked for the usage chunk.
        created: what a translated answer states as its time, in seconds.
    """

    def __init__(
        self, scrubber: Scrubber | None, *, translated: bool, strip_usage: bool, include_usage: bool, created: int
    ) -> None:
        self._scrubber = scrubber
        self._translated = translated
        self._strip_usage = strip_usage
        self._include_usage = include_usage
        self._created = created

    def whole(self, status: int, body: bytes) -> bytes:
        """A whole body. What is neither an answer nor an error of the upstream's dialect is handed on as it came."""
        out = _in_chat(status, body, self._created) if self._translated else body
        return out if self._scrubber is None else self._scrubber.content(out)

    def stream(self) -> Steps:
        """The steps of a stream; each stream needs new ones."""
        steps: list[StreamStep] = []
        if self._translated:
            steps.append(ChatChunks(include_usage=self._include_usage, created=self._created))
        elif self._strip_usage:
            steps.append(WithoutUsage())
        if self._scrubber is not None:
            steps.append(ScrubbedStream(self._scrubber))
        return Steps(steps)


class Steps:
    """Several steps as one."""

    def __init__(self, steps: Sequence[StreamStep]) -> None:
        self._steps = steps

    def feed(self, chunk: bytes) -> bytes:
        """Take a chunk through all steps."""
        for step in self._steps:
            chunk = step.feed(chunk)
        return chunk

    def finish(self) -> bytes:
        """End every step, each after what the one before it still had."""
        out = b""
        for step in self._steps:
            out = step.feed(out) + step.finish()
        return out


def _in_chat(status: int, body: bytes, created: int) -> bytes:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return body
    if not isinstance(value, dict):
        return body
    made = error_to_chat(value, status)
    if made is None:
        try:
            made = answer_to_chat(value, created=created)
        except TranslationError:
            return body
    return json.dumps(made).encode()
