"""The makers' usage objects read into one ``Usage``. What is not stated is None, never 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.metering.usage import Usage
from pytest_fusion_audit.metering.wire.shapes import count, name

if TYPE_CHECKING:
    from collections.abc import Mapping


def openai_usage(raw: object, service_tier: object = None, *, web_searches: int = 0) -> Usage | None:
    """Usage of a chat completion or of a Responses call: one call in either shape reads the same.

    Args:
        raw: the ``usage`` object (``prompt_tokens`` … or ``input_tokens`` …).
        service_tier: the response's own ``service_tier``.
        web_searches: searches listed in the output.

    Returns:
        None when an object or one of its two totals is missing: then the cost is unknown.
    """
    if not isinstance(raw, dict):
        return None
    total_in = _either(raw, "prompt_tokens", "input_tokens")
    total_out = _either(raw, "completion_tokens", "output_tokens")
    if total_in is None or total_out is None:
        return None
    ins = _Breakdown(raw, "prompt_tokens_details", "input_tokens_details")
    outs = _Breakdown(raw, "completion_tokens_details", "output_tokens_details")
    cached, written = ins.part("cached_tokens"), ins.part("cache_write_tokens")
    reasoning = outs.part("reasoning_tokens")
    long = min(written, _Breakdown(ins.raw, "cache_write_tokens_details").part("ttl_12h_tokens")) if written else 0
    return Usage(
        input_tokens=total_in,
        cached_tokens=cached,
        cache_write_5m_tokens=written - long,
        cache_write_1h_tokens=long,
        output_tokens=total_out,
        reasoning_tokens=reasoning,
        web_searches=web_searches,
        service_tier=name(service_tier),
        inconsistent=not (ins.sound and outs.sound) or cached + written > total_in or reasoning > total_out,
    )


def anthropic_usage(raw: object) -> Usage | None:
    """Usage of a message; ``input_tokens`` there leaves out what was read from or written to the cache.

    Returns:
        None when a total is missing, or when part of the work is listed apart (``iterations`` of another kind than
        ``message``): its tokens are not in the totals, so the cost is unknown.
    """
    if not isinstance(raw, dict):
        return None
    plain, total_out = count(raw.get("input_tokens")), count(raw.get("output_tokens"))
    if plain is None or total_out is None or _works_apart(raw.get("iterations")):
        return None
    top = _Breakdown({"top": raw}, "top")
    read, written = top.part("cache_read_input_tokens"), top.part("cache_creation_input_tokens")
    kinds = _Breakdown(raw, "cache_creation")
    short, long = kinds.part("ephemeral_5m_input_tokens"), kinds.part("ephemeral_1h_input_tokens")
    by_kind = short + long
    contradicts = by_kind > 0 and raw.get("cache_creation_input_tokens") is not None and by_kind != written
    reasoning = _Breakdown(raw, "output_tokens_details").part("thinking_tokens")
    tier = "fast" if raw.get("speed") == "fast" else name(raw.get("service_tier"))
    return Usage(
        input_tokens=plain + read + max(written, by_kind),
        cached_tokens=read,
        cache_write_5m_tokens=short + max(0, written - by_kind),
        cache_write_1h_tokens=long,
        output_tokens=total_out,
        reasoning_tokens=reasoning,
        web_searches=_Breakdown(raw, "server_tool_use").part("web_search_requests"),
        service_tier=tier,
        inconsistent=not (top.sound and kinds.sound) or contradicts or reasoning > total_out,
    )


def _either(raw: Mapping[str, Any], *fields: str) -> int | None:
    stated = [value for field in fields if (value := count(raw.get(field))) is not None]
    return max(stated, default=None)


def _works_apart(iterations: object) -> bool:
    return isinstance(iterations, list) and any(
        not isinstance(one, dict) or one.get("type", "message") != "message" for one in iterations
    )


class _Breakdown:
    """A breakdown object, wherever it stands; ``sound`` turns False when a part of it is not a count."""

    def __init__(self, raw: Mapping[str, Any], *fields: str) -> None:
        found = next((raw[field] for field in fields if raw.get(field) is not None), None)
        self.raw: Mapping[str, Any] = found if isinstance(found, dict) else {}
        self.sound = found is None or isinstance(found, dict)

    def part(self, field: str) -> int:
        value = self.raw.get(field)
        if value is None:
            return 0
        stated = count(value)
        if stated is None:
            self.sound = False
        return stated or 0
