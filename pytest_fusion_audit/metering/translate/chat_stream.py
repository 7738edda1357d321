"""The events of a streamed message as chunks of a chat completion, event by event."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_fusion_audit.metering.translate.answers import error_to_chat, finish_of
from pytest_fusion_audit.metering.translate.usages import chat_tier, chat_usage
from pytest_fusion_audit.metering.wire.sse import Event, SseReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_fusion_audit.metering.translate.fields import Json


class ChatChunks:
    """Takes bytes of a messages stream, returns bytes of a chat completions stream.

    Args:
        include_usage: whether the client asked for the usage chunk.
        created: what every chunk states as its time, in seconds.
    """

    def __init__(self, *, include_usage: bool, created: int = 0) -> None:
        self._include_usage = include_usage
        self._reader = SseReader()
        self._base: Json = {"id": None, "object": "chat.completion.chunk", "created": created, "model": None}
        self._usage: Json = {}
        self._calls: dict[str, _Call] = {}  # by the index of their block

    def feed(self, chunk: bytes) -> bytes:
        """What these bytes say, possibly nothing."""
        return b"".join(out for event in self._reader.feed(chunk) for out in self._take(event))

    def finish(self) -> bytes:
        """The stream has ended: a last event without its blank line counts."""
        pending = self._reader.pending()
        return b"" if pending is None else b"".join(self._take(pending))

    def _take(self, event: Event) -> list[bytes]:
        try:
            data = json.loads(event.data)
        except (ValueError, RecursionError):
            return []
        if not isinstance(data, dict):
            return []
        kind = "error" if data.get("error") else data.get("type") or event.name
        take = self._TAKERS.get(str(kind))
        return [] if take is None else take(self, data)  # a ping, or something newer than this translation

    def _begin(self, data: Json) -> list[bytes]:
        message = data.get("message")
        if isinstance(message, dict):
            self._base |= {"id": message.get("id"), "model": message.get("model")}
            self._add_usage(message.get("usage"))
        return [self._chunk({"role": "assistant", "content": ""})]

    def _block(self, data: Json) -> list[bytes]:
        block = data.get("content_block")
        if not isinstance(block, dict):
            return []
        if block.get("type") == "text" and block.get("text"):
            return [self._chunk({"content": block["text"]})]
        if block.get("type") != "tool_use":
            return []
        call = self._calls[str(data.get("index"))] = _Call(len(self._calls), block.get("input") or {})
        function = {"name": block.get("name"), "arguments": ""}
        begun = {"index": call.index, "id": block.get("id"), "type": "function", "function": function}
        return [self._chunk({"tool_calls": [begun]})]

    def _delta(self, data: Json) -> list[bytes]:
        delta = data.get("delta")
        if not isinstance(delta, dict):
            return []
        if delta.get("type") == "text_delta" and delta.get("text"):
            return [self._chunk({"content": delta["text"]})]
        call = self._calls.get(str(data.get("index")))
        if delta.get("type") == "input_json_delta" and call is not None and delta.get("partial_json"):
            call.begun = True
            return [self._arguments(call, delta["partial_json"])]
        return []

    def _block_end(self, data: Json) -> list[bytes]:
        """A call whose arguments never came in pieces states them now: those of its begin, or none."""
        call = self._calls.get(str(data.get("index")))
        return [] if call is None or call.begun else [self._arguments(call, json.dumps(call.input))]

    def _stop(self, data: Json) -> list[bytes]:
        self._add_usage(data.get("usage"))
        delta = data.get("delta")
        finish = finish_of(delta.get("stop_reason")) if isinstance(delta, dict) else None
        return [] if finish is None else [self._chunk({}, finish=finish)]

    def _error(self, data: Json) -> list[bytes]:
        return [_sse(error_to_chat({"type": "error", **data}, 599))]

    def _end(self, _data: Json) -> list[bytes]:
        last = []
        if self._include_usage:
            tier = chat_tier(self._usage)
            stated = {**self._base, "choices": [], "usage": chat_usage(self._usage)}
            last = [_sse(stated if tier is None else {**stated, "service_tier": tier})]
        return [*last, b"data: [DONE]\n\n"]

    _TAKERS: ClassVar[dict[str, Callable[[ChatChunks, Json], list[bytes]]]] = {
        "message_start": _begin,
        "content_block_start": _block,
        "content_block_delta": _delta,
        "content_block_stop": _block_end,
        "message_delta": _stop,
        "message_stop": _end,
        "error": _error,
    }

    def _add_usage(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self._usage.update({name: value for name, value in usage.items() if value is not None})

    def _arguments(self, call: _Call, text: str) -> bytes:
        return self._chunk({"tool_calls": [{"index": call.index, "function": {"arguments": text}}]})

    def _chunk(self, delta: Json, *, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _sse({**self._base, "choices": [choice]})


class _Call:
    """A tool call whose block is open: its place among the calls, and whether any argument has come."""

    def __init__(self, index: int, given: Any) -> None:
        self.index = index
        self.input = given
        self.begun = False


def _sse(data: Any) -> bytes:
    return b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"
