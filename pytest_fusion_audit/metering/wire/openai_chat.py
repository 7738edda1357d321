"""OpenAI chat completions: ``POST …/chat/completions``, whole and streamed."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.metering.wire.facts import RequestFacts, ResponseFacts
from pytest_fusion_audit.metering.wire.requests import choices, common_facts, opaque_in, parameters, provider_tools
from pytest_fusion_audit.metering.wire.shapes import believable, error_facts, joined, limit, name, outcome_of
from pytest_fusion_audit.metering.wire.usages import openai_usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_fusion_audit.metering.usage import Usage


def request(body: Mapping[str, Any], raw: bytes) -> RequestFacts:
    """Facts of a request.

    Raises:
        WireError: a limit that is not a count.
    """
    several = choices(body)
    stated = limit(body, "max_completion_tokens", "max_tokens")
    tools = provider_tools(body)
    if body.get("web_search_options") is not None:
        tools = (*tools, "web_search")
    return RequestFacts(
        **common_facts(body, raw),
        dialect="openai.chat",
        parameters=parameters(body),
        service_tier=name(body.get("service_tier")),
        max_output_tokens=None if stated is None else stated * several,
        choices=several,
        cache_write="1h" if body.get("prompt_cache_retention") else "5m",
        server_tools=tools,
        server_tool_uses=None if tools else 0,
        opaque_inputs=opaque_in(body, raw, "audio", "prediction"),
    )


def response(body: Mapping[str, Any], status: int) -> ResponseFacts:
    """Facts of a whole response: the first choice; text over several blocks is joined."""
    if (failed := error_facts(body, status)) is not None:
        return replace(failed, usage=openai_usage(body.get("usage"), body.get("service_tier")))
    usage = openai_usage(body.get("usage"), body.get("service_tier"))
    facts = ResponseFacts(model=name(body.get("model")), request_id=name(body.get("id")), usage=usage)
    listed = body.get("choices")
    first = listed[0] if isinstance(listed, list) and listed else None
    message = first.get("message") if isinstance(first, dict) else None
    if not isinstance(first, dict) or not isinstance(message, dict):
        what = "no choices" if first is None else "a choice without a message"
        return replace(facts, error_code="no_choices", error_message=f"{what} in a response with status {status}")
    text, ignored = joined(message.get("content"))
    calls = message.get("tool_calls")
    called = len(calls) if isinstance(calls, list) else int(bool(message.get("function_call")))
    refusal, finish = name(message.get("refusal")), name(first.get("finish_reason"))
    return _answer(facts, text, refusal=refusal, finish=finish, called=called, ignored=ignored)


def _answer(
    facts: ResponseFacts,
    text: str | None,
    *,
    refusal: str | None,
    finish: str | None,
    called: int,
    ignored: Counter[str],
) -> ResponseFacts:
    refused = finish == "content_filter" or (bool(refusal) and not text)
    return replace(
        facts,
        text=text,
        finish_reason=finish,
        outcome=outcome_of(text, cut=finish == "length", refused=refused, tool_calls=called),
        usage=believable(facts.usage, text),
        blocks_ignored=dict(ignored),
        tool_calls=called,
    )


class Stream:
    """What the chunks of one streamed completion have said so far. Usage counts once the answer has ended."""

    def __init__(self, status: int) -> None:
        self._status = status
        self._facts = ResponseFacts()
        self._failed: ResponseFacts | None = None
        self._parts: list[str] = []
        self._has_text = False
        self._refusal: list[str] = []
        self._ignored: Counter[str] = Counter()
        self._calls: set[object] = set()
        self._finish: str | None = None
        self._usage: Usage | None = None
        self.ended = False

    def take(self, _event: str | None, data: Mapping[str, Any]) -> None:
        """Take one chunk."""
        if (failed := error_facts(data, 599)) is not None:
            self._failed = failed
            return
        if self._facts.model is None or self._facts.request_id is None:
            self._facts = ResponseFacts(
                model=self._facts.model or name(data.get("model")),
                request_id=self._facts.request_id or name(data.get("id")),
            )
        if data.get("usage") is not None:
            self._usage = openai_usage(data["usage"], data.get("service_tier"))
        listed = data.get("choices")
        for choice in listed if isinstance(listed, list) else ():
            if isinstance(choice, dict) and choice.get("index", 0) == 0:
                self._take_choice(choice)

    def _take_choice(self, choice: Mapping[str, Any]) -> None:
        self._finish = name(choice.get("finish_reason")) or self._finish
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return
        if delta.get("content") is not None:
            text, ignored = joined(delta["content"])
            self._ignored.update(ignored)
            if text is not None:
                self._has_text = True
                self._parts.append(text)
        if isinstance(delta.get("refusal"), str):
            self._refusal.append(delta["refusal"])
        calls = delta.get("tool_calls")
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            self._calls.add(call.get("index", position) if isinstance(call, dict) else position)

    def done(self) -> None:
        """``[DONE]`` has arrived."""
        self.ended = True

    def facts(self) -> ResponseFacts:
        """Facts so far; a stream without a finish reason was cut."""
        text = "".join(self._parts) if self._has_text else None
        finished = self._finish is not None
        usage = self._usage if finished or self.ended else None
        facts = replace(self._facts, usage=usage)
        if self._failed is not None:
            return replace(self._failed, model=facts.model, request_id=facts.request_id, text=text, usage=usage)
        if not finished:
            return replace(
                facts, text=text, outcome="provider_error", error_code="stream_cut", error_message=CUT, usage=None
            )
        refusal = "".join(self._refusal) or None
        return _answer(
            facts, text, refusal=refusal, finish=self._finish, called=len(self._calls), ignored=self._ignored
        )


CUT = "the stream ended before the answer did"


def with_usage(raw: bytes) -> bytes:
    """The body of a stream request asking for usage; every other byte stays, unless options are there already."""
    body = json.loads(raw)
    if not isinstance(body, dict) or not body.get("stream"):
        return raw
    options = body.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage") is True:
        return raw
    if "stream_options" in body:
        body["stream_options"] = {**(options if isinstance(options, dict) else {}), "include_usage": True}
        return json.dumps(body, separators=(",", ":")).encode("ascii")
    return raw.rstrip()[:-1] + b',"stream_options":{"include_usage":true}}'
