"""Anthropic messages: ``POST …/messages``, whole and streamed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.metering.wire.facts import CacheWrite, RequestFacts, ResponseFacts
from pytest_fusion_audit.metering.wire.openai_chat import CUT
from pytest_fusion_audit.metering.wire.requests import common_facts, opaque_in, parameters, provider_tools
from pytest_fusion_audit.metering.wire.shapes import believable, count, error_facts, joined, limit, name, outcome_of
from pytest_fusion_audit.metering.wire.usages import anthropic_usage

if TYPE_CHECKING:
    from collections.abc import Mapping

_CUT_BY = frozenset({"max_tokens", "model_context_window_exceeded", "pause_turn"})


def request(body: Mapping[str, Any], raw: bytes) -> RequestFacts:
    """Facts of a request.

    Raises:
        WireError: a limit that is not a count.
    """
    tools = provider_tools(body)
    sent = parameters(body)
    config = body.get("output_config")
    if isinstance(config, dict) and name(config.get("effort")):
        sent["effort"] = config["effort"]
    return RequestFacts(
        **common_facts(body, raw),
        dialect="anthropic.messages",
        parameters=sent,
        max_output_tokens=limit(body, "max_tokens"),
        service_tier="fast" if body.get("speed") == "fast" else name(body.get("service_tier")),
        cache_write=_cache_write(raw),
        server_tools=tools,
        server_tool_uses=_most_uses(body, len(tools)) if tools else 0,
        opaque_inputs=opaque_in(body, raw, "container", "context_management"),
    )


def _cache_write(raw: bytes) -> CacheWrite:
    """Dearest cache entry the request can ask for; bytes are enough, because a quoted key in a prompt is escaped."""
    if b'"cache_control"' not in raw:
        return "none"
    return "1h" if b'"1h"' in raw else "5m"


def _most_uses(body: Mapping[str, Any], tools: int) -> int | None:
    stated = [count(tool.get("max_uses")) for tool in body.get("tools") or () if isinstance(tool, dict)]
    limits = [uses for uses in stated if uses is not None]
    return sum(limits) if len(limits) == tools else None


def response(body: Mapping[str, Any], status: int) -> ResponseFacts:
    """Facts of a whole response: all text blocks joined; thinking and unknown blocks are left out and counted."""
    usage = anthropic_usage(body.get("usage"))
    if (failed := error_facts(body, status)) is not None:
        return replace(failed, usage=usage)
    facts = ResponseFacts(model=name(body.get("model")), request_id=name(body.get("id")), usage=usage)
    if not isinstance(body.get("content"), list):
        return replace(facts, error_code="no_content", error_message=f"no content in a response with status {status}")
    text, ignored = joined(body["content"], ("text",))
    return _answer(facts, text, name(body.get("stop_reason")), ignored)


def _answer(facts: ResponseFacts, text: str | None, stop: str | None, ignored: Counter[str]) -> ResponseFacts:
    called = ignored.pop("tool_use", 0)
    return replace(
        facts,
        text=text,
        finish_reason=stop,
        outcome=outcome_of(text, cut=stop in _CUT_BY, refused=stop == "refusal", tool_calls=called),
        usage=believable(facts.usage, text),
        blocks_ignored=dict(ignored),
        tool_calls=called,
    )


class Stream:
    """What the events of one streamed message have said so far.

    ``message_start`` states the input; its output count is only a beginning, so usage counts once ``message_delta`` has
    given the stop reason. Counts in ``message_delta`` are running totals and replace the earlier ones.
    """

    def __init__(self, status: int) -> None:
        self._status = status
        self._facts = ResponseFacts()
        self._failed: ResponseFacts | None = None
        self._usage: dict[str, Any] = {}
        self._parts: list[str] = []
        self._has_text = False
        self._ignored: Counter[str] = Counter()
        self._stop: str | None = None
        self.ended = False

    def take(self, event: str | None, data: Mapping[str, Any]) -> None:
        """Take one event."""
        kind = data.get("type") or event
        if kind == "content_block_delta":
            delta = data.get("delta")
            if isinstance(delta, dict) and delta.get("type") == "text_delta" and isinstance(delta.get("text"), str):
                self._has_text = True
                self._parts.append(delta["text"])
        elif kind == "content_block_start":
            text, ignored = joined([data.get("content_block")], ("text",))
            self._ignored.update(ignored)
            if text is not None:
                self._has_text = True
                self._parts.append(text)
        elif kind == "message_start":
            message = data.get("message")
            if isinstance(message, dict):
                self._facts = ResponseFacts(model=name(message.get("model")), request_id=name(message.get("id")))
                self._add_usage(message.get("usage"))
        elif kind == "message_delta":
            delta = data.get("delta")
            self._stop = (name(delta.get("stop_reason")) if isinstance(delta, dict) else None) or self._stop
            self._add_usage(data.get("usage"))
        elif kind == "message_stop":
            self.ended = True
        elif kind == "error" or data.get("error"):
            self._failed = error_facts({"type": "error", **data}, 599)

    def _add_usage(self, usage: object) -> None:
        if isinstance(usage, dict):
            self._usage.update({field: value for field, value in usage.items() if value is not None})

    def done(self) -> None:
        """``[DONE]`` is no event of this dialect; some gateways add it after the last one."""

    def facts(self) -> ResponseFacts:
        """Facts so far; a stream without a stop reason was cut."""
        text = "".join(self._parts) if self._has_text else None
        if self._failed is not None:
            usage = anthropic_usage(self._usage) if self._stop is not None else None
            return replace(
                self._failed, model=self._facts.model, request_id=self._facts.request_id, text=text, usage=usage
            )
        if self._stop is None:
            return replace(self._facts, text=text, outcome="provider_error", error_code="stream_cut", error_message=CUT)
        facts = replace(self._facts, usage=anthropic_usage(self._usage))
        return _answer(facts, text, self._stop, Counter(self._ignored))
