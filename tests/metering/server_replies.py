"""What the loopback servers say: plain answers, streams and errors in the shapes of both makers."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = dict[str, Any]
MAKERS = {
    "/chat/completions": "openai.chat",
    "/responses": "openai.responses",
    "/messages": "anthropic.messages",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One scripted reply; the defaults are a good answer.

    ``kind`` is ``answer``, a name in `ERRORS`, or one of ``html``, ``choices_null``, ``choices_empty``,
    ``error_object`` (200s that are no answers), ``hang`` (never answers), ``reset`` (drops the connection, having
    worked), ``cut`` (half a body, or ``cut_after`` events of a stream, then the connection is dropped). For streams
    also ``ends_early`` (a clean end after ``cut_after`` events), ``no_usage`` and ``error_event``. ``usage`` may be
    ``null`` or ``absent``. ``split`` sends the events of a stream in pieces of that many bytes, ``gap_s`` apart.
    ``billed`` overrides whether the bill counts it.
    """

    kind: str = "answer"
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    latency_s: float | None = None
    text: str | None = None
    model: str | None = None
    finish: str | None = None
    usage: Literal["stated", "null", "absent"] = "stated"
    input_tokens: int | None = None
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 20
    reasoning_tokens: int = 0
    tier: str = "default"
    body: Any = None
    content_type: str | None = None
    cut_after: int = 3
    split: int | None = None
    gap_s: float = 0.0
    billed: bool | None = None

    def bills(self) -> bool:
        """Whether the provider bills a call that gets this reply."""
        if self.billed is not None:
            return self.billed
        if self.status is not None and self.status >= 400:
            return False
        return self.kind in {"answer", "cut", "ends_early", "no_usage", "error_event", "hang", "reset"}


# kind -> status, OpenAI's code and type, Anthropic's type, message
ERRORS: dict[str, tuple[int, str | None, str, str, str]] = {
    "rate_limit": (429, "rate_limit_exceeded", "requests", "rate_limit_error", "Rate limit reached"),
    "insufficient_quota": (429, "insufficient_quota", "insufficient_quota", "billing_error", "You exceeded your quota"),
    "payment_required": (402, "billing_hard_limit_reached", "billing", "billing_error", "Payment is required"),
    "overloaded": (529, "overloaded", "server_error", "overloaded_error", "Overloaded"),
    "unavailable": (503, None, "server_error", "api_error", "The engine is overloaded"),
    "server_error": (500, None, "server_error", "api_error", "The server had an error"),
    "key_refused": (401, "invalid_api_key", "invalid_request_error", "authentication_error", "Incorrect API key"),
    "forbidden": (403, "forbidden", "invalid_request_error", "permission_error", "Not allowed"),
    "model_not_found": (404, "model_not_found", "invalid_request_error", "not_found_error", "The model does not exist"),
    "unsupported_parameter": (
        400,
        "unsupported_parameter",
        "invalid_request_error",
        "invalid_request_error",
        "Unsupported parameter: 'temperature'",
    ),
    "context_length": (
        400,
        "context_length_exceeded",
        "invalid_request_error",
        "invalid_request_error",
        "prompt is too long: maximum context length",
    ),
}
HTML = "<!doctype html><html><head><title>Sign in</title></head><body>Use key sk-test-0000EXAMPLE0000</body></html>"


def request_hash(document: Any) -> str:
    """Hash of a request body, whatever the order of its keys."""
    text = json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def dialect_of(path: str) -> str | None:
    """Dialect of the path of a POST, None for other paths."""
    return next((dialect for end, dialect in MAKERS.items() if path.endswith(end)), None)


def prompt_of(document: Json) -> str:
    """Text of the last message of a request."""
    turns = document.get("messages") or document.get("input") or ""
    last = turns[-1] if isinstance(turns, list) and turns else turns
    content = last.get("content", "") if isinstance(last, dict) else last
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return str(content)


def error(dialect: str | None, kind: str, status: int | None = None) -> tuple[int, Json]:
    """Status and body of an error."""
    code, openai_code, openai_type, anthropic_type, message = ERRORS[kind]
    if dialect == "anthropic.messages":
        if kind == "insufficient_quota":
            code, message = 400, "Your credit balance is too low to access the Anthropic API"
            anthropic_type = "invalid_request_error"
        return status or code, {"type": "error", "error": {"type": anthropic_type, "message": message}}
    return status or code, {"error": {"message": message, "type": openai_type, "param": None, "code": openai_code}}


def usage_of(dialect: str, reply: Reply, document: Json) -> Json:
    """Usage as this dialect states it. Input defaults to a quarter of the prompt's bytes."""
    total = reply.input_tokens
    if total is None:
        total = len(json.dumps(document.get("messages") or document.get("input") or "")) // 4 + 1
    if dialect == "anthropic.messages":
        return {
            "input_tokens": total - reply.cached_tokens - reply.cache_write_tokens,
            "cache_read_input_tokens": reply.cached_tokens,
            "cache_creation_input_tokens": reply.cache_write_tokens,
            "output_tokens": reply.output_tokens,
            "service_tier": "standard" if reply.tier == "default" else reply.tier,
        }
    names = ("prompt", "completion") if dialect == "openai.chat" else ("input", "output")
    return {
        f"{names[0]}_tokens": total,
        f"{names[1]}_tokens": reply.output_tokens,
        "total_tokens": total + reply.output_tokens,
        f"{names[0]}_tokens_details": {"cached_tokens": reply.cached_tokens},
        f"{names[1]}_tokens_details": {"reasoning_tokens": reply.reasoning_tokens},
    }


def plain(dialect: str, reply: Reply, document: Json, number: int) -> Json:
    """A whole answer. ``number`` makes ids and the default text unique, so that two bought answers never look alike."""
    text = reply.text if reply.text is not None else f"answer {number}"
    model = reply.model or document.get("model")
    usage: Any = None if reply.usage == "null" else usage_of(dialect, reply, document)
    if dialect == "openai.chat":
        body: Json = {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": 1_796_000_000,
            "model": model,
            "service_tier": reply.tier,
            "choices": [
                {
                    "index": 0,
                    "finish_reason": reply.finish or "stop",
                    "message": {"role": "assistant", "content": text, "refusal": None},
                }
            ],
        }
    elif dialect == "openai.responses":
        part = {"type": "output_text", "text": text, "annotations": []}
        body = {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 1_796_000_000,
            "model": model,
            "service_tier": reply.tier,
            "status": reply.finish or "completed",
            "error": None,
            "incomplete_details": None,
            "output": [
                {
                    "type": "message",
                    "id": f"msg_{number}",
                    "role": "assistant",
                    "status": "completed",
                    "content": [part],
                }
            ],
        }
    else:
        body = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "stop_reason": reply.finish or "end_turn",
            "stop_sequence": None,
            "content": [{"type": "text", "text": text}],
        }
    if reply.usage != "absent":
        body["usage"] = usage
    if reply.kind == "choices_null":
        empty = {"id": None, "choices": None, "output": None, "content": None, "usage": None}
        body = {**empty, "error": {"code": 429, "message": "upstream busy"}}
    elif reply.kind == "choices_empty":
        body |= {"choices": [], "output": [], "content": []}
    elif reply.kind == "error_object":
        body = error(dialect, "server_error")[1]
    return body


def stream(dialect: str, reply: Reply, document: Json, number: int) -> list[bytes]:
    """The events of a streamed answer, each one whole."""
    made = {"openai.chat": _chat, "openai.responses": _responses, "anthropic.messages": _messages}[dialect]
    events = made(reply, plain(dialect, reply, document, number), document)
    if reply.kind in {"cut", "ends_early", "error_event"}:
        events = events[: reply.cut_after]
    if reply.kind == "error_event":
        body = error(dialect, "overloaded")[1]
        events.append(_event(body, "error" if dialect != "openai.chat" else None))
    return events


def _event(data: Any, name: str | None = None) -> bytes:
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def _pieces(text: str) -> list[str]:
    return [text[at : at + 4] for at in range(0, len(text), 4)]


def _chat(reply: Reply, whole: Json, document: Json) -> list[bytes]:
    base = {name: whole[name] for name in ("id", "created", "model", "service_tier")}
    base["object"] = "chat.completion.chunk"
    choice = whole["choices"][0]

    def chunk(delta: Json, finish: str | None = None) -> bytes:
        return _event({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    events = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"content": piece}) for piece in _pieces(choice["message"]["content"])]
    events.append(chunk({}, choice["finish_reason"]))
    wanted = (document.get("stream_options") or {}).get("include_usage")
    if wanted and reply.usage != "absent" and reply.kind != "no_usage":
        events.append(_event({**base, "choices": [], "usage": whole["usage"]}))
    return [*events, _event("[DONE]")]


def _responses(reply: Reply, whole: Json, document: Json) -> list[bytes]:
    number = 0

    def event(name: str, **data: Any) -> bytes:
        nonlocal number
        number += 1
        return _event({"type": name, "sequence_number": number, **data}, name)

    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    if reply.kind == "no_usage":
        whole = {**whole, "usage": None}
    item = whole["output"][0]
    at = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    events = [event("response.created", response=begun)]
    events.append(event("response.output_item.added", output_index=0, item={**item, "content": []}))
    text = item["content"][0]["text"]
    events += [event("response.output_text.delta", **at, delta=piece) for piece in _pieces(text)]
    events.append(event("response.output_text.done", **at, text=text))
    events.append(event("response.output_item.done", output_index=0, item=item))
    return [*events, event("response.completed", response=whole)]


def _messages(reply: Reply, whole: Json, document: Json) -> list[bytes]:
    usage = whole.get("usage")
    stated = reply.kind != "no_usage" and usage is not None
    begun = {**whole, "content": [], "stop_reason": None}
    begun["usage"] = {**usage, "output_tokens": 1} if stated else None

    def event(name: str, **data: Any) -> bytes:
        return _event({"type": name, **data}, name)

    events = [
        event("message_start", message=begun),
        event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        event("ping"),
    ]
    events += [
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
        for piece in _pieces(whole["content"][0]["text"])
    ]
    events.append(event("content_block_stop", index=0))
    end: Json = {"delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None}}
    if stated:
        end["usage"] = {"output_tokens": usage["output_tokens"]}
    return [*events, event("message_delta", **end), event("message_stop")]
