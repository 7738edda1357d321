"""OpenAI Responses: ``POST …/responses``, whole and streamed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.metering.wire.facts import RequestFacts, ResponseFacts
from pytest_fusion_audit.metering.wire.openai_chat import CUT
from pytest_fusion_audit.metering.wire.requests import common_facts, opaque_in, parameters, provider_tools
from pytest_fusion_audit.metering.wire.shapes import believable, error_facts, joined, limit, name, outcome_of
from pytest_fusion_audit.metering.wire.usages import openai_usage

if TYPE_CHECKING:
    from collections.abc import Mapping

_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "apply_patch_call", "computer_call"})
_LAST = frozenset({"response.completed", "response.incomplete", "response.failed"})


def request(body: Mapping[str, Any], raw: bytes) -> RequestFacts:
    """Facts of a request.

    Raises:
        WireError: a limit that is not a count.
    """
    tools = provider_tools(body)
    return RequestFacts(
        **common_facts(body, raw),
        dialect="openai.responses",
        parameters=parameters(body),
        service_tier=name(body.get("service_tier")),
        max_output_tokens=limit(body, "max_output_tokens"),
        cache_write="1h" if body.get("prompt_cache_retention") else "5m",
        server_tools=tools,
        server_tool_uses=limit(body, "max_tool_calls") if tools else 0,
        opaque_inputs=opaque_in(body, raw, "previous_response_id", "conversation", "prompt"),
    )


def response(body: Mapping[str, Any], status: int) -> ResponseFacts:
    """Facts of a whole response, or of the ``response`` object in a stream's last event.

    A response with ``status: failed`` is how this API reports a fault of its own, so it is ``provider_error``.
    """
    output = body.get("output")
    items = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
    searches = sum(1 for item in items if item.get("type") == "web_search_call")
    usage = openai_usage(body.get("usage"), body.get("service_tier"), web_searches=searches)
    state = name(body.get("status"))
    if (failed := error_facts(body, 599 if state == "failed" else status)) is not None:
        return replace(failed, usage=usage, finish_reason=state)
    facts = ResponseFacts(model=name(body.get("model")), request_id=name(body.get("id")), usage=usage)
    details = body.get("incomplete_details")
    reason = name(details.get("reason")) if isinstance(details, dict) else None
    if not isinstance(output, list) or state not in {"completed", "incomplete", None}:
        code = "not_finished" if isinstance(output, list) else "no_output"
        return replace(
            facts,
            finish_reason=state,
            error_code=code,
            error_message=f"a response whose status is {state} " + ("" if items else "and that has no output"),
        )
    return _answer(facts, items, reason or state)


def _answer(facts: ResponseFacts, items: list[dict[str, Any]], finish: str | None) -> ResponseFacts:
    parts: list[str] = []
    ignored: Counter[str] = Counter()
    refused, called = finish == "content_filter", 0
    for item in items:
        kind = item.get("type")
        if kind == "message":
            text, others = joined(item.get("content"))
            refused = refused or "refusal" in others
            ignored.update(others)
            if text is not None:
                parts.append(text)
        elif kind in _CALLS:
            called += 1
        else:
            ignored[kind if isinstance(kind, str) else "unknown"] += 1
    whole = "".join(parts) if parts else None
    refused = refused and (finish == "content_filter" or not whole)
    cut = finish in {"max_output_tokens", "incomplete", "max_tokens"}
    return replace(
        facts,
        text=whole,
        finish_reason=finish,
        outcome=outcome_of(whole, cut=cut, refused=refused, tool_calls=called),
        usage=believable(facts.usage, whole),
        blocks_ignored=dict(ignored),
        tool_calls=called,
    )


class Stream:
    """What the events of one streamed response have said so far. Its last event holds the whole response once more."""

    def __init__(self, status: int) -> None:
        self._status = status
        self._begun = ResponseFacts()
        self._failed: ResponseFacts | None = None
        self._whole: ResponseFacts | None = None
        self._parts: list[str] = []
        self.ended = False

    def take(self, event: str | None, data: Mapping[str, Any]) -> None:
        """Take one event."""
        kind = data.get("type") or event
        inner = data.get("response")
        if kind == "response.output_text.delta" and isinstance(data.get("delta"), str):
            self._parts.append(data["delta"])
        elif kind in _LAST and isinstance(inner, dict):
            state = "failed" if kind == "response.failed" else inner.get("status")
            self._whole = response({**inner, "status": state}, self._status)
            self.ended = True
        elif kind == "response.created" and isinstance(inner, dict):
            self._begun = ResponseFacts(model=name(inner.get("model")), request_id=name(inner.get("id")))
        elif kind == "error" or (kind is None and data.get("error")):
            self._failed = error_facts({"type": "error", **data}, 599)

    def done(self) -> None:
        """``[DONE]`` has arrived, which some gateways add."""
        self.ended = True

    def facts(self) -> ResponseFacts:
        """Facts so far; a stream without its last event was cut."""
        text = "".join(self._parts) if self._parts else None
        if self._whole is not None:
            whole = self._whole
            if whole.text is None and text and whole.outcome in {"empty", "truncated"}:
                # Some gateways leave the output out of the last event.
                outcome = "answered" if whole.outcome == "empty" else whole.outcome
                return replace(whole, text=text, outcome=outcome, usage=believable(whole.usage, text))
            return whole
        if self._failed is not None:
            begun = self._begun
            return replace(self._failed, model=begun.model, request_id=begun.request_id, text=text)
        return replace(self._begun, text=text, outcome="provider_error", error_code="stream_cut", error_message=CUT)
