"""A chat completions request as an Anthropic messages request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.metering.translate.chat_turns import turns_of
from pytest_fusion_audit.metering.translate.fields import Fields, Json, items, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

EFFORTS = {effort: effort for effort in ("low", "medium", "high", "xhigh", "max")}
#: Values that ask for what a message does anyway.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "modalities": (["text"],),
    "store": (False,),
    "verbosity": ("medium",),
}
#: Fields that cannot change the answer. Whether a stream states its usage is the stream translation's business.
_HINTS = ("metadata", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "stream_options")
_TIERS = {"auto": "auto", "default": "standard_only"}


def request_to_messages(body: Mapping[str, Any], *, model: str, default_max_tokens: int | None = None) -> Json:
    """Translate a request.

    Args:
        body: the chat completions request.
        model: bare id to ask for.
        default_max_tokens: limit for a request that states none (chat means the model's own maximum; a message has to
            state it). None refuses such a request.

    Raises:
        TranslationError: a field that a message cannot say, by its name.
    """
    given = Fields(body)
    given.skip("model", *_HINTS)
    given.neutral(_NEUTRAL)
    sent: Json = {"model": model, "max_tokens": _limit(given, default_max_tokens)}
    system, turns = turns_of(given.take("messages"))
    if system:
        sent["system"] = system
    sent["messages"] = turns
    _put_sampling(sent, given)
    _put_tools(sent, given)
    _put_output(sent, given)
    if (stream := given.take("stream")) is not None:
        sent["stream"] = stream
    if (tier := given.word("service_tier", _TIERS)) is not None:
        sent["service_tier"] = tier
    users = [user for user in (given.take("user"), given.take("safety_identifier")) if user is not None]
    if users and users[0] != users[-1]:
        refuse("safety_identifier", "differs from user; a message has one user_id")
    if users:
        sent["metadata"] = {"user_id": users[0]}
    given.end()
    return sent


def _limit(given: Fields, default: int | None) -> Any:
    new, old = given.take("max_completion_tokens"), given.take("max_tokens")
    if new is not None and old is not None and new != old:
        refuse("max_tokens", "differs from max_completion_tokens; a message has one limit")
    limit = new if new is not None else old
    if limit is None:
        limit = default
    if limit is None:
        refuse("max_tokens", "is missing, and the model's own maximum is unknown; a message has to state a limit")
    return limit


def _put_sampling(sent: Json, given: Fields) -> None:
    temperature = given.take("temperature")
    if temperature is not None:
        if isinstance(temperature, (int, float)) and temperature > 1:
            refuse("temperature", f"{temperature} is above 1, the most that a message takes")
        sent["temperature"] = temperature
    if (top_p := given.take("top_p")) is not None:
        sent["top_p"] = top_p
    stop = given.take("stop")
    sequences = [stop] if isinstance(stop, str) else stop
    if sequences:
        for at, sequence in items(sequences, "stop"):
            if not isinstance(sequence, str) or not sequence.strip():
                refuse(at, "is not a text with a visible character, as a message wants it")
        sent["stop_sequences"] = list(sequences)


def _put_output(sent: Json, given: Fields) -> None:
    config: Json = {}
    effort = given.word("reasoning_effort", {**EFFORTS, "none": "none"})
    if effort == "none":
        sent["thinking"] = {"type": "disabled"}
    elif effort is not None:
        config["effort"] = effort
    wanted = given.take("response_format")
    if wanted is not None:
        shape = Fields(wanted, "response_format")
        if shape.kind("text", "json_schema") == "json_schema":
            inner = Fields(shape.take("json_schema"), "response_format.json_schema")
            inner.skip("name", "strict", "description")
            config["format"] = {"type": "json_schema", "schema": inner.take("schema")}
            inner.end()
        shape.end()
    if config:
        sent["output_config"] = config


def _put_tools(sent: Json, given: Fields) -> None:
    listed, wanted, parallel = given.take("tools"), given.take("tool_choice"), given.take("parallel_tool_calls")
    choice = _choice(wanted)
    if not listed:
        if choice is not None and choice["type"] not in {"auto", "none"}:
            refuse("tool_choice", "asks for a tool and there is none")
        return
    sent["tools"] = [_tool(tool, at) for at, tool in items(listed, "tools")]
    if parallel is False and choice != {"type": "none"}:
        choice = {**(choice or {"type": "auto"}), "disable_parallel_tool_use": True}
    if choice is not None:
        sent["tool_choice"] = choice


def _choice(wanted: Any) -> Json | None:
    if wanted is None:
        return None
    if isinstance(wanted, str):
        kinds = {"auto": "auto", "none": "none", "required": "any"}
        if wanted not in kinds:
            refuse("tool_choice", f"{wanted!r:.40} has no counterpart in Anthropic messages")
        return {"type": kinds[wanted]}
    choice = Fields(wanted, "tool_choice")
    choice.kind("function")
    function = Fields(choice.take("function"), "tool_choice.function")
    named = {"type": "tool", "name": function.text("name")}
    function.end()
    choice.end()
    return named


def _tool(tool: Any, where: str) -> Json:
    fields = Fields(tool, where)
    fields.kind("function")
    function = Fields(fields.take("function"), f"{where}.function")
    made: Json = {"name": function.text("name")}
    if (description := function.take("description")) is not None:
        made["description"] = description
    made["input_schema"] = function.take("parameters") or {"type": "object", "properties": {}}
    if (strict := function.take("strict")) is not None:
        made["strict"] = strict
    function.end()
    if (mark := fields.take("cache_control")) is not None:
        made["cache_control"] = mark
    fields.end()
    return made
