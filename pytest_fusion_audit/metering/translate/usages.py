"""Usage and service tier in the other dialect's words.

Both are read by `wire.usages` first, so that one call costs the same in both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.metering.wire.usages import anthropic_usage, openai_usage

if TYPE_CHECKING:
    from pytest_fusion_audit.metering.translate.fields import Json

_CHAT_TIERS = {"standard": "default", "priority": "priority", "fast": "fast", "batch": "batch"}
_MESSAGE_TIERS = {"default": "standard", "priority": "priority", "batch": "batch"}


def chat_usage(raw: object) -> Json | None:
    """A message's usage as a chat completion states it; None when it is unknown."""
    usage = anthropic_usage(raw)
    if usage is None:
        return None
    written = usage.cache_write_5m_tokens + usage.cache_write_1h_tokens
    prompt = {"cached_tokens": usage.cached_tokens, "cache_write_tokens": written}
    stated: Json = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": prompt,
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
    if usage.cache_write_1h_tokens:
        stated["prompt_tokens_details"] = {
            **prompt,
            "cache_write_tokens_details": {"ttl_12h_tokens": usage.cache_write_1h_tokens},
        }
    return stated


def chat_tier(raw: object) -> str | None:
    """The service tier that a message's usage reports, in OpenAI's words."""
    usage = anthropic_usage(raw)
    return _CHAT_TIERS.get(usage.service_tier or "") if usage is not None else None


def message_usage(raw: object, tier: object = None) -> Json | None:
    """A chat completion's usage as a message states it; None when it is unknown."""
    usage = openai_usage(raw, tier)
    if usage is None:
        return None
    stated: Json = {
        "input_tokens": usage.plain_input_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation_input_tokens": usage.cache_write_5m_tokens + usage.cache_write_1h_tokens,
        "output_tokens": usage.output_tokens,
    }
    if usage.cache_write_1h_tokens:
        stated["cache_creation"] = {
            "ephemeral_5m_input_tokens": usage.cache_write_5m_tokens,
            "ephemeral_1h_input_tokens": usage.cache_write_1h_tokens,
        }
    if usage.reasoning_tokens:
        stated["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    if usage.service_tier in _MESSAGE_TIERS:
        stated["service_tier"] = _MESSAGE_TIERS[usage.service_tier]
    return stated
