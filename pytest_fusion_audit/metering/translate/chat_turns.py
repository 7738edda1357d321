"""The messages of a chat completions request as turns of an Anthropic messages request."""

from __future__ import annotations

from typing import Any

from pytest_fusion_audit.metering.translate.fields import Fields, Json, arguments_object, items, refuse
from pytest_fusion_audit.metering.translate.parts import blocks_of, text_blocks


def turns_of(messages: Any) -> tuple[str | list[Json], list[Json]]:
    """The system prompt and the turns.

    Results of tools that follow one another are one turn, as a message wants it. System messages before the first turn
    are the system prompt; later ones keep their place, and a model that knows none there says so itself.

    Raises:
        TranslationError: a part that a message cannot say, by its place.
    """
    system: list[str | list[Json]] = []
    turns: list[Json] = []
    results: list[Json] | None = None  # of the tool messages just before
    for at, message in items(messages, "messages"):
        fields = Fields(message, at)
        role = fields.text("role")
        if role == "tool":
            if results is None:
                results = []
                turns.append({"role": "user", "content": results})
            results.append(_result(fields, at))
            continue
        results = None
        if role in {"system", "developer"}:
            content = text_blocks(fields.take("content"), f"{at}.content")
            if content and turns:
                turns.append({"role": "system", "content": content})
            elif content:
                system.append(content)
        else:
            turns.append(_turn(role, fields, at))
        fields.end()
    if not turns:
        refuse("messages", "holds nothing to answer")
    if turns[-1]["role"] == "assistant":
        refuse("messages", "ends with the assistant's own words, which a message would continue instead of answering")
    return _one_system(system), turns


def _turn(role: str, fields: Fields, where: str) -> Json:
    if role == "assistant":
        return {"role": "assistant", "content": _said(fields, where)}
    if role != "user":
        refuse(f"{where}.role", f"{role!r:.40} has no counterpart in Anthropic messages")
    return {"role": "user", "content": _filled(blocks_of(fields.take("content"), f"{where}.content"), where)}


def _one_system(parts: list[str | list[Json]]) -> str | list[Json]:
    if len(parts) == 1:
        return parts[0]
    blocks: list[Json] = []
    for part in parts:
        blocks += [{"type": "text", "text": part}] if isinstance(part, str) else part
    return blocks


def _filled(content: str | list[Json], where: str) -> str | list[Json]:
    if not content:
        refuse(f"{where}.content", "is empty, which a message does not allow")
    return content


def _said(fields: Fields, where: str) -> str | list[Json]:
    """An earlier answer of the model: its text, then its tool calls."""
    content, calls = fields.take("content"), fields.take("tool_calls")
    # What an answer holds beside its text when a client sends it back as it came.
    fields.neutral({"annotations": ([],), "refusal": ("",)})
    text = text_blocks("" if content is None else content, f"{where}.content")
    if not calls:
        return _filled(text, where)
    blocks: list[Json] = [{"type": "text", "text": text}] if isinstance(text, str) and text else []
    if isinstance(text, list):
        blocks = text
    return [*blocks, *(_call(call, at) for at, call in items(calls, f"{where}.tool_calls"))]


def _call(call: Any, where: str) -> Json:
    fields = Fields(call, where)
    fields.skip("index")
    fields.kind("function", None)
    function = Fields(fields.take("function"), f"{where}.function")
    made = {
        "type": "tool_use",
        "id": fields.text("id"),
        "name": function.text("name"),
        "input": arguments_object(function.take("arguments"), f"{where}.function.arguments"),
    }
    function.end()
    fields.end()
    return made


def _result(fields: Fields, where: str) -> Json:
    made = {
        "type": "tool_result",
        "tool_use_id": fields.text("tool_call_id"),
        "content": text_blocks(fields.take("content"), f"{where}.content"),
    }
    fields.skip("name")  # of the function; its id says which call it answers
    fields.end()
    return made
