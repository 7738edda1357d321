"""Streams of both dialects: whole answers taken apart into events, and put together again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from pytest_fusion_audit.metering.wire.sse import SseReader

if TYPE_CHECKING:
    from tests.metering.translate_plants import Json


CUTS = st.lists(st.integers(1, 40), max_size=30)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """The bytes cut at these distances, the last one repeated to the end."""
    out, at, sizes = [], 0, [*cuts, 10_000]
    for size in sizes:
        if at >= len(data):
            break
        out.append(data[at : at + size])
        at += size
    return [*out, data[at:]] if at < len(data) else out


def message_stream(message: Json, step: int = 3) -> bytes:
    """The events in which a message arrives."""
    begun = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    events: list[Json] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for index, block in enumerate(message["content"]):
        kind = block["type"]
        empty = {"text": {"type": "text", "text": ""}, "tool_use": {**block, "input": {}}}.get(kind, block)
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        name, text = {
            "text": ("text", block.get("text", "")),
            "tool_use": ("partial_json", json.dumps(block.get("input")) if block.get("input") else ""),
            "thinking": ("thinking", "hm"),
        }.get(kind, ("", ""))
        delta = {"text": "text_delta", "partial_json": "input_json_delta", "thinking": "thinking_delta"}.get(name)
        events += [
            {"type": "content_block_delta", "index": index, "delta": {"type": delta, name: text[at : at + step]}}
            for at in range(0, len(text), step)
        ]
        events.append({"type": "content_block_stop", "index": index})
    last = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events.append(
        {"type": "message_delta", "delta": last, "usage": {"output_tokens": message["usage"]["output_tokens"]}}
    )
    events.append({"type": "message_stop"})
    return b"".join(b"event: %s\ndata: %s\n\n" % (e["type"].encode(), json.dumps(e).encode()) for e in events)


def chat_stream(answer: Json, step: int = 3) -> bytes:
    """The chunks in which a completion arrives, usage included."""
    base = {"id": answer["id"], "object": "chat.completion.chunk", "created": 0, "model": answer["model"]}
    choice = answer["choices"][0]
    message = choice["message"]
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    for name in ("content", "refusal"):
        text = message.get(name) or ""
        deltas += [{name: text[at : at + step]} for at in range(0, len(text), step)]
    for index, call in enumerate(message.get("tool_calls") or ()):
        arguments = call["function"]["arguments"]
        deltas.append({"tool_calls": [{**call, "index": index, "function": {**call["function"], "arguments": ""}}]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": arguments[at : at + step]}}]}
            for at in range(0, len(arguments), step)
        ]
    chunks = [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    chunks.append({**base, "choices": [], "usage": answer["usage"]})
    return b"".join(b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in chunks) + b"data: [DONE]\n\n"


def chat_put_together(stream: bytes) -> Json:
    """The completion that a chat stream says, in the form of a whole one."""
    made: Json = {"usage": None, "done": False}
    text, finish = None, None
    calls: dict[int, Json] = {}
    for event in SseReader().feed(stream):
        if event.data == b"[DONE]":
            made["done"] = True
            continue
        data = json.loads(event.data)
        made |= {name: data[name] for name in ("id", "model", "service_tier") if name in data}
        made["usage"] = data.get("usage") or made["usage"]
        for choice in data["choices"]:
            finish = choice["finish_reason"] or finish
            delta = choice["delta"]
            if delta.get("content") is not None:
                text = (text or "") + delta["content"]
            for call in delta.get("tool_calls") or ():
                held = calls.setdefault(call["index"], {"function": {"name": None, "arguments": ""}})
                held.update({name: call[name] for name in ("id", "type") if name in call})
                held["function"]["name"] = call["function"].get("name") or held["function"]["name"]
                held["function"]["arguments"] += call["function"].get("arguments") or ""
    message = {"content": text, "tool_calls": [calls[index] for index in sorted(calls)]}
    return {**made, "choices": [{"message": message, "finish_reason": finish}]}


def message_put_together(stream: bytes) -> Json:
    """The message that a messages stream says."""
    made: Json = {}
    blocks: dict[int, Json] = {}
    for event in SseReader().feed(stream):
        data = json.loads(event.data)
        if data["type"] == "message_start":
            made = data["message"]
        elif data["type"] == "content_block_start":
            blocks[data["index"]] = {**data["content_block"], "json": ""}
        elif data["type"] == "content_block_delta":
            delta, block = data["delta"], blocks[data["index"]]
            if delta["type"] == "text_delta":
                block["text"] += delta["text"]
            else:
                block["json"] += delta["partial_json"]
        elif data["type"] == "message_delta":
            made |= {"stop_reason": data["delta"]["stop_reason"], "usage": {**made["usage"], **data.get("usage", {})}}
        elif data["type"] == "message_stop":
            made["stopped"] = True
    for block in blocks.values():
        text = block.pop("json")
        if block["type"] == "tool_use":
            block["input"] = json.loads(text or "{}")
    return {**made, "content": [blocks[index] for index in sorted(blocks)]}
