"""The chunks of a streamed chat completion as events of a message, event by event."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.metering.translate.answers import error_to_messages, stop_of
from pytest_fusion_audit.metering.translate.usages import message_usage
from pytest_fusion_audit.metering.wire.shapes import joined
from pytest_fusion_audit.metering.wire.sse import Event, SseReader

if TYPE_CHECKING:
    from pytest_fusion_audit.metering.translate.fields import Json


class MessageEvents:
    """Takes bytes of a chat completions stream, returns bytes of a messages stream.

    The stop reason and the usage leave together, when the stream has said its last word: a chat stream states its usage
    only then, so ``message_start`` states zeros and ``message_delta`` the totals. Blocks stay open until then, because
    the arguments of parallel calls may come mixed.
    """

    def __init__(self) -> None:
        self._reader = SseReader()
        self._begun = False
        self._text: int | None = None  # index of the text block
        self._calls: dict[str, int] = {}  # place among the calls -> index of the block
        self._refused = False
        self._stop: str | None = None
        self._usage: Json | None = None
        self._tier: Any = None

    def feed(self, chunk: bytes) -> bytes:
        """What these bytes say, possibly nothing."""
        return b"".join(out for event in self._reader.feed(chunk) for out in self._take(event))

    def finish(self) -> bytes:
        """The stream has ended: a last event without its blank line counts."""
        pending = self._reader.pending()
        return b"" if pending is None else b"".join(self._take(pending))

    def _take(self, event: Event) -> list[bytes]:
        if event.data.strip() == b"[DONE]":
            return self._end()
        try:
            data = json.loads(event.data)
        except (ValueError, RecursionError):
            return []
        if not isinstance(data, dict):
            return []
        if (error := error_to_messages(data, 599)) is not None:
            return [_sse("error", error)]
        events = [] if self._begun else [self._begin(data)]
        self._tier = data.get("service_tier") or self._tier
        if data.get("usage") is not None:
            self._usage = data["usage"]
        for choice in data.get("choices") or ():
            if isinstance(choice, dict) and choice.get("index", 0) == 0:
                events += self._choice(choice)
        return events

    def _begin(self, data: Json) -> bytes:
        self._begun = True
        message: Json = {
            "id": data.get("id"),
            "type": "message",
            "role": "assistant",
            "model": data.get("model"),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
        return _sse("message_start", {"type": "message_start", "message": message})

    def _choice(self, choice: Json) -> list[bytes]:
        self._stop = stop_of(choice.get("finish_reason")) or self._stop
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return []
        events: list[bytes] = []
        text, _ = joined(delta.get("content"))
        if isinstance(delta.get("refusal"), str) and delta["refusal"]:
            self._refused = self._refused or self._text is None
            text = (text or "") + delta["refusal"]
        if text:
            if self._text is None:
                self._text = self._next_index()
                events.append(_block(self._text, {"type": "text", "text": ""}))
            events.append(_delta(self._text, {"type": "text_delta", "text": text}))
        for place, call in enumerate(delta.get("tool_calls") or ()):
            if isinstance(call, dict):
                events += self._call(str(call.get("index", place)), call)
        return events

    def _call(self, place: str, call: Json) -> list[bytes]:
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        events = []
        if place not in self._calls:
            index = self._calls[place] = self._next_index()
            begun: Json = {"type": "tool_use", "id": call.get("id"), "name": function.get("name"), "input": {}}
            events.append(_block(index, begun))
        if function.get("arguments"):
            delta = {"type": "input_json_delta", "partial_json": function["arguments"]}
            events.append(_delta(self._calls[place], delta))
        return events

    def _next_index(self) -> int:
        return len(self._calls) + (self._text is not None)

    def _end(self) -> list[bytes]:
        usage = message_usage(self._usage, self._tier)
        events = [
            _sse("content_block_stop", {"type": "content_block_stop", "index": index})
            for index in range(self._next_index())
        ]
        stop = "refusal" if self._refused else self._stop
        ended: Json = {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}}
        if usage is not None:
            ended["usage"] = usage
        return [*events, _sse("message_delta", ended), _sse("message_stop", {"type": "message_stop"})]


def _block(index: int, block: Json) -> bytes:
    return _sse("content_block_start", {"type": "content_block_start", "index": index, "content_block": block})


def _delta(index: int, delta: Json) -> bytes:
    return _sse("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta})


def _sse(name: str, data: Any) -> bytes:
    text = json.dumps(data, separators=(",", ":")).encode()
    return b"event: " + name.encode() + b"\ndata: " + text + b"\n\n"
