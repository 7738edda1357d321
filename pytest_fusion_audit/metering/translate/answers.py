"""Whole answers and errors of one dialect in the words of the other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.metering.translate.fields import Json, arguments_object, refuse
from pytest_fusion_audit.metering.translate.usages import chat_tier, chat_usage, message_usage
from pytest_fusion_audit.metering.wire.shapes import error_facts, joined

if TYPE_CHECKING:
    from collections.abc import Mapping

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
_STOP = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}
# What clients of OpenAI go by, for each of Anthropic's error types.
_CODES = {
    "authentication_error": "invalid_api_key",
    "billing_error": "insufficient_quota",
    "not_found_error": "model_not_found",
    "rate_limit_error": "rate_limit_exceeded",
    "overloaded_error": "overloaded",
    "request_too_large": "context_length_exceeded",
}
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def finish_of(stop: object) -> str | None:
    """Finish reason for a stop reason; one that is unknown here stays as it is."""
    return _FINISH.get(stop, stop) if isinstance(stop, str) else None


def stop_of(finish: object) -> str | None:
    """Stop reason for a finish reason; one that is unknown here stays as it is."""
    return _STOP.get(finish, finish) if isinstance(finish, str) else None


def answer_to_chat(body: Mapping[str, Any], *, created: int = 0) -> Json:
    """A message as a chat completion: its text blocks joined, its tool calls; other blocks are left out.

    Args:
        body: the message.
        created: what the completion states as its time, in seconds; a message states none.

    Raises:
        TranslationError: the body is not a message.
    """
    content = body.get("content")
    if not isinstance(content, list):
        refuse("content", "is not a list: this is not an answer")
    text, _ = joined(content, ("text",))
    calls = [
        tool_call(block["id"], block["name"], json.dumps(block.get("input") or {}, ensure_ascii=False))
        for block in content
        if isinstance(block, dict) and block.get("type") == "tool_use" and "id" in block and "name" in block
    ]
    message: Json = {"role": "assistant", "content": text if text is not None or calls else "", "refusal": None}
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_of(body.get("stop_reason"))}
    made = {
        "id": body.get("id"),
        "object": "chat.completion",
        "created": created,
        "model": body.get("model"),
        "choices": [choice],
        "usage": chat_usage(body.get("usage")),
    }
    if (tier := chat_tier(body.get("usage"))) is not None:
        made["service_tier"] = tier
    return made


def tool_call(call: object, name: object, arguments: str) -> Json:
    """A tool call as chat completions write it."""
    return {"id": call, "type": "function", "function": {"name": name, "arguments": arguments}}


def answer_to_messages(body: Mapping[str, Any]) -> Json:
    """A chat completion as a message.

    Raises:
        TranslationError: it is not a completion, holds several choices, or arguments that are not a JSON object.
    """
    choices = body.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        refuse("choices", "is not a list of one choice: this is not an answer that a message can be")
    message = choices[0].get("message")
    if not isinstance(message, dict):
        refuse("choices[0].message", "is missing: this is not an answer")
    text, _ = joined(message.get("content"))
    blocks: list[Json] = [{"type": "text", "text": part} for part in (text, message.get("refusal")) if part]
    for index, call in enumerate(message.get("tool_calls") or ()):
        where = f"choices[0].message.tool_calls[{index}]"
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            refuse(where, "is not a call of a function")
        arguments = arguments_object(function.get("arguments"), f"{where}.function.arguments")
        blocks.append({"type": "tool_use", "id": call.get("id"), "name": function.get("name"), "input": arguments})
    stop = stop_of(choices[0].get("finish_reason"))
    return {
        "id": body.get("id"),
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": blocks,
        "stop_reason": "refusal" if message.get("refusal") and not text else stop,
        "stop_sequence": None,
        "usage": message_usage(body.get("usage"), body.get("service_tier")),
    }


def error_to_chat(body: Mapping[str, Any], status: int) -> Json | None:
    """An error of Anthropic's as OpenAI states it, with the code that its clients go by; None for no error."""
    facts = error_facts(body, status if status >= 400 else 599)
    if facts is None:
        return None
    error = body.get("error")
    error = error if isinstance(error, dict) else {}
    kind, message = error.get("type"), error.get("message")
    code = _CODES.get(kind) if isinstance(kind, str) else None
    if facts.outcome == "context_length":
        code = "context_length_exceeded"
    elif isinstance(message, str) and "credit balance is too low" in message:
        code = "insufficient_quota"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def error_to_messages(body: Mapping[str, Any], status: int) -> Json | None:
    """An error of OpenAI's as Anthropic states it; None for no error."""
    facts = error_facts(body, status if status >= 400 else 599)
    if facts is None:
        return None
    error = body.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    kind = "billing_error" if facts.error_code == "insufficient_quota" else _TYPES.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}}
