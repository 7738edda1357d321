"""An Anthropic messages request as a chat completions request."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.metering.translate.chat_request import EFFORTS
from pytest_fusion_audit.metering.translate.fields import Fields, Json, items, refuse
from pytest_fusion_audit.metering.translate.parts import parts_of, text_blocks

if TYPE_CHECKING:
    from collections.abc import Mapping

_TIERS = {"auto": "auto", "standard_only": "default"}
_CHOICES = {"auto": "auto", "none": "none", "any": "required"}


def request_to_chat(body: Mapping[str, Any], *, model: str) -> Json:
    """Translate a request.

    Args:
        body: the messages request.
        model: bare id to ask for.

    Raises:
        TranslationError: a field that chat completions cannot say, by its name.
    """
    given = Fields(body)
    given.skip("model", "cache_control")  # a mark for the cache changes the price, not the answer
    given.neutral({"speed": ("standard",), "mcp_servers": ([],)})
    sent: Json = {"model": model, "messages": _turns(given.take("system"), given.take("messages"))}
    for name, theirs in _RENAMED.items():
        value = given.take(name)
        if value is not None and value != []:
            sent[theirs] = value
    _put_tools(sent, given)
    _put_output(sent, given)
    if (tier := given.word("service_tier", _TIERS)) is not None:
        sent["service_tier"] = tier
    if (metadata := given.take("metadata")) is not None:
        fields = Fields(metadata, "metadata")
        if (user := fields.take("user_id")) is not None:
            sent["user"] = user
        fields.end()
    given.end()
    return sent


_RENAMED = {
    "max_tokens": "max_completion_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "stop_sequences": "stop",
    "stream": "stream",
}


def _put_output(sent: Json, given: Fields) -> None:
    if (thinking := given.take("thinking")) is not None:
        if not isinstance(thinking, dict) or thinking.get("type") != "disabled":
            refuse("thinking", "has no counterpart in chat completions unless it is disabled")
        sent["reasoning_effort"] = "none"
    if (config := given.take("output_config")) is None:
        return
    fields = Fields(config, "output_config")
    if (effort := fields.word("effort", EFFORTS)) is not None:
        if "reasoning_effort" in sent:
            refuse("output_config.effort", "asks for an effort while thinking is disabled")
        sent["reasoning_effort"] = effort
    if (wanted := fields.take("format")) is not None:
        shape = Fields(wanted, "output_config.format")
        shape.kind("json_schema")
        schema = {"name": "answer", "strict": True, "schema": shape.take("schema")}
        sent["response_format"] = {"type": "json_schema", "json_schema": schema}
        shape.end()
    fields.end()


def _put_tools(sent: Json, given: Fields) -> None:
    if listed := given.take("tools"):
        sent["tools"] = [_tool(tool, at) for at, tool in items(listed, "tools")]
    if (wanted := given.take("tool_choice")) is None:
        return
    choice = Fields(wanted, "tool_choice")
    kind = choice.kind("tool", *_CHOICES)
    if choice.take("disable_parallel_tool_use"):
        sent["parallel_tool_calls"] = False
    if kind == "tool":
        sent["tool_choice"] = {"type": "function", "function": {"name": choice.text("name")}}
    else:
        sent["tool_choice"] = _CHOICES[str(kind)]
    choice.end()


def _tool(tool: Any, where: str) -> Json:
    fields = Fields(tool, where)
    fields.kind("custom", None)
    fields.skip("cache_control", "eager_input_streaming")
    function: Json = {"name": fields.text("name")}
    if (description := fields.take("description")) is not None:
        function["description"] = description
    function["parameters"] = fields.take("input_schema")
    if (strict := fields.take("strict")) is not None:
        function["strict"] = strict
    fields.end()
    return {"type": "function", "function": function}


def _turns(system: Any, messages: Any) -> list[Json]:
    turns: list[Json] = []
    if system:
        turns.append({"role": "system", "content": _plain(text_blocks(system, "system"))})
    for at, message in items(messages, "messages"):
        fields = Fields(message, at)
        role, content = fields.text("role"), fields.take("content")
        if role == "system":
            turns.append({"role": "system", "content": _plain(text_blocks(content, f"{at}.content"))})
        elif role == "user":
            turns += _asked(content, f"{at}.content")
        elif role == "assistant":
            turns.append(_said(content, f"{at}.content"))
        else:
            refuse(f"{at}.role", f"{role!r:.40} has no counterpart in chat completions")
        fields.end()
    if turns and turns[-1]["role"] == "assistant":
        refuse("messages", "ends with the begin of the answer, which chat completions would not continue")
    return turns


def _plain(content: str | list[Json]) -> str | list[Json]:
    """Text without marks for the cache, which chat completions do not know."""
    if isinstance(content, str):
        return content
    return [{"type": "text", "text": block["text"]} for block in content]


def _asked(content: Any, where: str) -> list[Json]:
    """A user's turn: results of tools first, each a message of its own, then what else was said."""
    if isinstance(content, str):
        return [{"role": "user", "content": content}]
    turns: list[Json] = []
    rest = []
    for at, block in items(content, where):
        if not isinstance(block, dict) or block.get("type") != "tool_result":
            rest.append(block)
        elif rest:
            refuse(at, "stands behind other content; results of tools come first")
        else:
            turns.append(_result(block, at))
    if rest:
        turns.append({"role": "user", "content": _plain_parts(parts_of(rest, where))})
    return turns


def _plain_parts(parts: str | list[Json]) -> str | list[Json]:
    if isinstance(parts, str):
        return parts
    return [{name: value for name, value in part.items() if name != "cache_control"} for part in parts]


def _result(block: Any, where: str) -> Json:
    fields = Fields(block, where)
    fields.skip("type", "cache_control")
    fields.neutral({"is_error": (False,)})
    content = fields.take("content")
    made = {
        "role": "tool",
        "tool_call_id": fields.text("tool_use_id"),
        "content": _plain(text_blocks("" if content is None else content, f"{where}.content")),
    }
    fields.end()
    return made


def _said(content: Any, where: str) -> Json:
    """An earlier answer. Text behind a tool call would change places, so it is refused."""
    if isinstance(content, str):
        return {"role": "assistant", "content": content}
    texts: list[Json] = []
    calls: list[Json] = []
    for at, block in items(content, where):
        fields = Fields(block, at)
        kind = fields.take("type")
        fields.skip("cache_control")
        if kind == "text" and not calls:
            texts.append({"type": "text", "text": fields.text("text")})
            fields.neutral({"citations": ([],)})
        elif kind == "tool_use":
            arguments = json.dumps(fields.take("input") or {}, ensure_ascii=False)
            function = {"name": fields.text("name"), "arguments": arguments}
            calls.append({"id": fields.text("id"), "type": "function", "function": function})
        else:
            what = (
                "stands behind a tool call, where chat completions have no place for it"
                if kind == "text"
                else (f"{kind!r:.40} has no counterpart in chat completions")
            )
            refuse(f"{at}.type", what)
        fields.end()
    said: Json = {"role": "assistant", "content": texts[0]["text"] if len(texts) == 1 else texts or None}
    if calls:
        said["tool_calls"] = calls
    return said
