"""What each model accepts: output limit, name of the token parameter, temperature, reasoning effort. By exact id only.

Facts are from the makers' own pages as known on 2026-11-30: OpenAI's model pages and its guide to parameters of
reasoning models (``max_tokens`` and sampling parameters are refused; GPT-5.1 to 5.4 take a temperature again with
effort ``none``), Anthropic's model overview and migration guides (sampling parameters are refused from Opus 4.7 and
Sonnet 5 on; from 4.1 to 4.6 temperature and top_p exclude each other; effort begins with Opus 4.5 and Sonnet 4.6).

A model that is missing here is *unknown*, not incapable: what is asked for is sent as asked, the request must state its
own output limit, and a 400 ``unsupported_parameter`` stops the phase. Add a line here, or ``capabilities`` to the
endpoint in the panel file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from pytest_fusion_audit.errors import FusionAuditError
from pytest_fusion_audit.metering.price_table import candidate_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pydantic import JsonValue

LimitField: TypeAlias = Literal["max_tokens", "max_completion_tokens"]
Api: TypeAlias = Literal["openai.chat", "openai.responses", "anthropic.messages"]


class CapabilityError(FusionAuditError):
    """A ``capabilities`` block of a panel file cannot be read; the message names the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What one model accepts. ``None`` = unknown.

    ``temperature`` tells whether a temperature other than the default is accepted; ``temperature_without_reasoning``
    whether it is with effort ``none``. ``one_sampler`` = temperature and top_p exclude each other.
    """

    max_output_tokens: int | None = None
    limit_field: LimitField = "max_tokens"  # of chat completions
    temperature: bool | None = None
    temperature_without_reasoning: bool = False
    one_sampler: bool = False
    reasoning: bool | None = None
    effort: bool | None = None

    @classmethod
    def from_mapping(cls, block: Mapping[str, Any], where: str = "capabilities") -> Capabilities:
        """Read a ``capabilities`` block of a panel file; keys of other tools (``tool_calls``, …) are ignored.

        Raises:
            CapabilityError: a value of the wrong kind.
        """
        values: dict[str, Any] = {}
        most = block.get("max_output_tokens")
        if most is not None:
            if type(most) is not int or most < 1:
                raise CapabilityError(f"{where}.max_output_tokens: {most!r:.40} is not a number above 0")
            values["max_output_tokens"] = most
        field = block.get("limit_field")
        if field is not None:
            if field not in {"max_tokens", "max_completion_tokens"}:
                raise CapabilityError(f"{where}.limit_field: {field!r:.40}; known: max_tokens, max_completion_tokens")
            values["limit_field"] = field
        for key in ("temperature", "temperature_without_reasoning", "one_sampler", "reasoning", "effort"):
            value = block.get(key)
            if value is not None:
                if not isinstance(value, bool):
                    raise CapabilityError(f"{where}.{key}: {value!r:.40} is not true or false")
                values[key] = value
        return cls(**values)


_K = 1_000
_CHAT = Capabilities(temperature=True, reasoning=False, effort=False)
_REASONING = Capabilities(limit_field="max_completion_tokens", temperature=False, reasoning=True, effort=True)
_SWITCHABLE = replace(_REASONING, temperature_without_reasoning=True)
_CLAUDE_3 = Capabilities(temperature=True, reasoning=False, effort=False)
_CLAUDE_4 = Capabilities(temperature=True, reasoning=True, effort=False)
_CLAUDE_41 = replace(_CLAUDE_4, one_sampler=True)
_CLAUDE_46 = replace(_CLAUDE_41, effort=True)
_CLAUDE_NEW = Capabilities(temperature=False, reasoning=True, effort=True)

_FAMILIES: tuple[tuple[str, Capabilities, int, str], ...] = (
    ("openai", _REASONING, 128 * _K, "gpt-5 gpt-5-mini gpt-5-nano gpt-5.3-codex gpt-5.5"),
    ("openai", _REASONING, 128 * _K, "gpt-5.2-pro gpt-5.4-pro gpt-5.5-pro gpt-5.1-codex-mini"),
    ("openai", _REASONING, 128 * _K, "gpt-5.6-luna gpt-5.6-sol gpt-5.6-terra"),
    ("openai", _SWITCHABLE, 128 * _K, "gpt-5.1 gpt-5.2 gpt-5.4 gpt-5.4-mini gpt-5.4-nano"),
    ("openai", _REASONING, 272 * _K, "gpt-5-pro"),
    ("openai", _REASONING, 100 * _K, "o1 o1-pro o3 o3-mini o3-pro o4-mini o3-deep-research o4-mini-deep-research"),
    ("openai", replace(_REASONING, effort=False), 65_536, "o1-mini"),
    ("openai", replace(_REASONING, effort=False), 32_768, "o1-preview"),
    ("openai", _CHAT, 32_768, "gpt-4.1 gpt-4.1-mini gpt-4.1-nano"),
    ("openai", _CHAT, 16_384, "gpt-4o gpt-4o-mini chatgpt-4o-latest"),
    ("openai", _CHAT, 8_192, "gpt-4"),
    ("openai", _CHAT, 4_096, "gpt-4o-2024-05-13 gpt-4-turbo gpt-3.5-turbo"),
    ("anthropic", _CLAUDE_NEW, 128 * _K, "claude-opus-4-7 claude-opus-4-8 claude-opus-5 claude-opus-5-5"),
    ("anthropic", _CLAUDE_NEW, 128 * _K, "claude-sonnet-5 claude-sonnet-5-5 claude-haiku-5-5"),
    ("anthropic", _CLAUDE_NEW, 128 * _K, "claude-fable-5 claude-fable-5-1 claude-fable-5-2"),
    ("anthropic", _CLAUDE_46, 128 * _K, "claude-opus-4-6 claude-sonnet-4-6"),
    ("anthropic", _CLAUDE_46, 64 * _K, "claude-opus-4-5"),
    ("anthropic", _CLAUDE_41, 64 * _K, "claude-sonnet-4-5 claude-haiku-4-5"),
    ("anthropic", _CLAUDE_41, 32 * _K, "claude-opus-4-1"),
    ("anthropic", _CLAUDE_4, 32 * _K, "claude-opus-4-0"),
    ("anthropic", _CLAUDE_4, 64 * _K, "claude-sonnet-4-0 claude-3-7-sonnet-latest"),
    ("anthropic", _CLAUDE_3, 8_192, "claude-3-5-sonnet claude-3-5-haiku-latest"),
    ("anthropic", _CLAUDE_3, 4_096, "claude-3-opus-latest claude-3-sonnet claude-3-haiku"),
)
_TABLE: dict[tuple[str, str], Capabilities] = {
    (maker, model): replace(kind, max_output_tokens=most)
    for maker, kind, most, models in _FAMILIES
    for model in models.split()
}
_UNKNOWN = Capabilities()


def capabilities(provider: str, model: str, overrides: Mapping[str, Capabilities] | None = None) -> Capabilities | None:
    """What a model accepts, by the exact-id rule (``price_table.candidate_ids``); None when it is not in the table.

    Args:
        provider: maker, or the name of another endpoint (then only ``overrides`` can know it).
        model: id as asked for.
        overrides: ``capabilities`` of the panel file by model id; they win over the table.
    """
    names = candidate_ids(provider, model)
    for name in names:
        if overrides and name in overrides:
            return overrides[name]
    return next((_TABLE[provider, name] for name in names if (provider, name) in _TABLE), None)


class Shaped(NamedTuple):
    """Fields to send, and what was asked for and is left out because the model refuses it."""

    sent: dict[str, JsonValue]
    not_sent: dict[str, JsonValue]


def shaped(
    provider: str,
    model: str,
    asked: Mapping[str, JsonValue],
    *,
    api: Api | None = None,
    overrides: Mapping[str, Capabilities] | None = None,
) -> Shaped:
    """Parameters in the words this model and API accept. Nothing is clamped or replaced; what is refused is listed.

    Args:
        provider: maker or name of the endpoint.
        model: id as asked for.
        asked: ``temperature``, ``top_p``, ``top_k``, ``seed``, ``max_output_tokens``, ``effort``, ``service_tier`` in
            our words; every other field goes as it is. None means not asked.
        api: defaults to the maker's: messages for Anthropic, else chat completions.
        overrides: see ``capabilities``.
    """
    api = api or ("anthropic.messages" if provider == "anthropic" else "openai.chat")
    able = capabilities(provider, model, overrides) or _UNKNOWN
    sent: dict[str, JsonValue] = {}
    refused: dict[str, JsonValue] = {}
    effort = asked.get("effort")
    plain = able.temperature is not False or (able.temperature_without_reasoning and effort == "none")
    for field, value in asked.items():
        if value is None:
            continue
        if field == "max_output_tokens":
            sent[_token_field(api, able)] = value
        elif field == "effort":
            _put_effort(sent, refused, api, able, value)
        elif _accepts(field, value, api, sampling=plain):
            sent[field] = value
        else:
            refused[field] = value
    if able.one_sampler and "temperature" in sent and "top_p" in sent:
        refused["top_p"] = sent.pop("top_p")
    return Shaped(sent, refused)


def _token_field(api: Api, able: Capabilities) -> str:
    if api == "openai.responses":
        return "max_output_tokens"
    return able.limit_field if api == "openai.chat" else "max_tokens"


def _put_effort(
    sent: dict[str, JsonValue], refused: dict[str, JsonValue], api: Api, able: Capabilities, effort: JsonValue
) -> None:
    if able.effort is False or (api == "anthropic.messages" and effort == "none"):
        refused["effort"] = effort
    elif api == "openai.chat":
        sent["reasoning_effort"] = effort
    elif api == "openai.responses":
        sent["reasoning"] = {"effort": effort}
    else:
        sent["output_config"] = {"effort": effort}


def _accepts(field: str, value: JsonValue, api: Api, *, sampling: bool) -> bool:
    """Whether a field goes to this API and model as it is."""
    if field in {"temperature", "top_p", "top_k"} and not sampling:
        return False
    if field == "top_k":
        return api == "anthropic.messages"
    if field == "seed":
        return api == "openai.chat"
    if field == "service_tier" and api == "anthropic.messages":
        return value in {"auto", "standard_only"}
    return True


def temperature_warnings(
    models: Iterable[tuple[str, str]],
    temperatures: Sequence[float],
    overrides: Mapping[str, Capabilities] | None = None,
) -> dict[str, str]:
    """Models whose samples would not vary as planned, with what to tell before anything is spent (case 18).

    Args:
        models: (provider, model) of each member.
        temperatures: temperature of each sample of a member.
        overrides: see ``capabilities``.

    Returns:
        Message by model id, in the order given; empty when the plan does not rest on temperatures.
    """
    if len(set(temperatures)) < 2:
        return {}
    listed = ", ".join(f"{temperature:g}" for temperature in temperatures)
    return {
        model: f"{model} takes no temperature: its {len(temperatures)} samples at {listed} will be sent without one "
        "and vary by chance only"
        for provider, model in models
        if (able := capabilities(provider, model, overrides)) is not None and able.temperature is False
    }
