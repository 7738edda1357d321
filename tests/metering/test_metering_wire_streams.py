"""Streams: any chunking, usage where it is stated (case 3), cut streams and error events are no answers."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.evidence.records import Outcome
from pytest_fusion_audit.metering.wire.base import StreamReader, read_response

DIALECTS = ["openai.chat", "openai.responses", "anthropic.messages"]


def sse(*events, end="\n"):
    """Bytes of a stream; a dict is an event (named by its type), a string goes as data."""
    written = []
    for event in events:
        if isinstance(event, dict) and "type" in event:
            written.append(f"event: {event['type']}{end}")
        data = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
        written.append(f"data: {data}{end}{end}")
    return "".join(written).encode()


def chunk(delta=None, finish=None, **fields):
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "c1", "model": "gpt-5.5-2026-04-23", "choices": choices, **fields}


CHAT_USAGE = {"prompt_tokens": 9, "completion_tokens": 7, "completion_tokens_details": {"reasoning_tokens": 3}}
CHAT = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": "naïve "}),
    chunk({"content": "🙂 = 42"}),
    chunk({}, "stop"),
    chunk(usage=CHAT_USAGE),
    "[DONE]",
]
WHOLE = {
    "id": "resp_1",
    "model": "gpt-5.5",
    "status": "completed",
    "output": [{"type": "message", "content": [{"type": "output_text", "text": "naïve 🙂 = 42"}]}],
    "usage": {"input_tokens": 9, "output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 3}},
}
RESPONSES = [
    {"type": "response.created", "response": {"id": "resp_1", "model": "gpt-5.5", "status": "in_progress"}},
    {"type": "response.output_text.delta", "delta": "naïve 🙂"},
    {"type": "response.output_text.delta", "delta": " = 42"},
    {"type": "response.completed", "response": WHOLE},
]
MESSAGES = [
    {"type": "message_start", "message": {"id": "msg_1", "model": "claude-opus-4-8", "content": [],
     "usage": {"input_tokens": 4, "cache_read_input_tokens": 5, "output_tokens": 1, "service_tier": "standard"}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "naïve 🙂"}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": " = 42"}},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
    {"type": "message_stop"},
]  # fmt: skip
FAILED = {"status": "failed", "output": [], "error": {"code": "server_error"}}
STREAMS = {"openai.chat": CHAT, "openai.responses": RESPONSES, "anthropic.messages": MESSAGES}


def read(dialect, *chunks, **more):
    reader = StreamReader(dialect, **more)
    for piece in chunks:
        reader.feed(piece)
    return reader


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_whole_stream(dialect):
    reader = read(dialect, sse(*STREAMS[dialect]))
    facts = reader.facts()
    assert reader.complete
    assert (facts.outcome, facts.text) == ("answered", "naïve 🙂 = 42")
    assert (facts.usage.input_tokens, facts.usage.output_tokens) == (9, 7)
    assert facts.request_id in {"c1", "resp_1", "msg_1"}
    assert facts.model is not None


@settings(deadline=None)
@given(st.sampled_from(DIALECTS), st.sampled_from(["\n", "\r\n", "\r"]), st.lists(st.integers(0, 3000), max_size=40))
def test_facts_do_not_depend_on_chunks(dialect, end, places):
    content = sse(*STREAMS[dialect], end=end)
    edges = [0, *sorted(place % (len(content) + 1) for place in places), len(content)]
    pieces = [content[start:stop] for start, stop in pairwise(edges)]
    reader = read(dialect, *pieces)
    assert reader.complete
    assert reader.facts() == read(dialect, content).facts()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_last_event_is_told_once_and_usage_is_known_by_then(dialect):
    reader = StreamReader(dialect)
    told = []
    for event in STREAMS[dialect]:
        told.append(reader.feed(sse(event)))
        if told[-1]:
            assert reader.facts().usage is not None
    assert told == [False] * (len(told) - 1) + [True]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_cut_anywhere_is_no_answer_and_has_no_usage(dialect):
    events = STREAMS[dialect]
    for kept in range(len(events)):
        reader = read(dialect, sse(*events[:kept]))
        facts = reader.facts()
        assert not reader.complete
        if facts.outcome == "answered":  # the finish reason had arrived: only the bookkeeping behind it is missing
            assert facts.text == "naïve 🙂 = 42"
        else:
            assert (facts.outcome, facts.usage) == ("provider_error" if kept else "pipeline_error", None)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_looking_in_between_changes_nothing(dialect):
    content = sse(*STREAMS[dialect])
    reader = StreamReader(dialect)
    for start in range(0, len(content), 7):
        reader.feed(content[start : start + 7])
        reader.facts()
    assert reader.facts() == read(dialect, content).facts()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_last_event_without_its_blank_line_counts(dialect):
    reader = read(dialect, sse(*STREAMS[dialect]).rstrip())
    assert reader.facts().usage is not None
    assert reader.complete


def test_no_usage_chunk_means_the_cost_is_unknown():
    events = [chunk({"content": "print("}), chunk({"content": "42)"}), chunk({}, "stop"), "[DONE]"]
    facts = read("openai.chat", sse(*events)).facts()
    assert (facts.outcome, facts.text, facts.usage) == ("answered", "print(42)", None)


def test_a_running_total_before_the_end_is_no_usage():
    facts = read("openai.chat", sse(chunk({"content": "4"}, usage=CHAT_USAGE))).facts()
    assert facts.usage is None
    assert read("anthropic.messages", sse(*MESSAGES[:7])).facts().usage is None


@pytest.mark.parametrize(
    ("dialect", "error", "code"),
    [
        ("openai.chat", {"error": {"code": "server_error", "message": "gone"}}, "server_error"),
        ("openai.chat", {"error": "gone"}, "error"),
        ("openai.responses", {"type": "error", "code": "busy", "message": "gone"}, "busy"),
        ("openai.responses", {"type": "response.failed", "response": FAILED}, "server_error"),
        ("anthropic.messages", {"type": "error", "error": {"type": "overloaded_error"}}, "overloaded_error"),
    ],
)
@pytest.mark.parametrize("gateway", [False, True])
def test_an_error_event_inside_a_200_stream_is_not_an_answer(dialect, error, code, gateway):
    begun = STREAMS[dialect][:3]
    facts = read(dialect, sse(*begun, error), gateway=gateway).facts()
    assert (facts.outcome, facts.error_code) == ("pipeline_error" if gateway else "provider_error", code)
    assert facts.usage is None


def test_an_error_after_the_finish_reason_is_still_not_an_answer():
    facts = read("openai.chat", sse(*CHAT[:4], {"error": {"code": "x"}}, "[DONE]")).facts()
    assert facts.outcome == "provider_error"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("body", "code"),
    [(b"<html>Bad gateway</html>", "html"), (b'{"error": {"code": "busy"}}', "busy"), (b"", "empty_body")],
)
def test_a_stream_that_is_none_is_told_by_what_it_is(dialect, body, code):
    facts = read(dialect, body[:9], body[9:]).facts()
    assert (facts.outcome, facts.error_code) == ("pipeline_error", code)


@pytest.mark.parametrize("finish", ["stop", "length", "content_filter", "tool_calls"])
def test_stream_and_whole_response_tell_the_same(finish):
    calls = [{"index": 0, "function": {"name": "f", "arguments": "{"}}] if finish == "tool_calls" else None
    events = [chunk({"content": "4"}), chunk({"tool_calls": calls}), chunk({"tool_calls": calls}), chunk({}, finish)]
    streamed = read("openai.chat", sse(*events, chunk(usage=CHAT_USAGE), "[DONE]")).facts()
    message = {"content": "4", "tool_calls": calls and calls[:1]}
    whole = {**chunk(usage=CHAT_USAGE), "choices": [{"index": 0, "message": message, "finish_reason": finish}]}
    assert streamed == read_response("openai.chat", 200, whole)


def test_events_without_blank_lines_between_them_are_read():
    content = "\n".join(f"data: {json.dumps(event) if isinstance(event, dict) else event}" for event in CHAT[:4])
    assert read("openai.chat", content.encode() + b"\n\n").facts().text == "naïve 🙂 = 42"


def test_a_gateway_that_leaves_the_output_out_of_its_last_event():
    events = [*RESPONSES[:3], {"type": "response.completed", "response": {**WHOLE, "output": []}}]
    facts = read("openai.responses", sse(*events)).facts()
    assert (facts.outcome, facts.text) == ("answered", "naïve 🙂 = 42")


@settings(deadline=None)
@given(st.sampled_from([*DIALECTS, "other"]), st.lists(st.binary(max_size=40), max_size=5))
def test_any_bytes_give_facts_and_no_exception(dialect, chunks):
    assert read(dialect, *chunks).facts().outcome in Outcome.__args__


# Every name that the readers look for, and values that look right in the wrong place.
NAMES = (
    "type", "choices", "delta", "index", "content", "text", "usage", "error", "message", "response", "status", "code",
    "content_block", "finish_reason", "stop_reason", "tool_calls", "function_call", "refusal", "model", "id", "item",
    "request_id", "output", "output_index", "incomplete_details", "reason", "service_tier", "speed", "iterations",
    "input_tokens", "output_tokens", "prompt_tokens", "completion_tokens", "prompt_tokens_details", "cached_tokens",
    "input_tokens_details", "completion_tokens_details", "output_tokens_details", "reasoning_tokens",
    "cache_creation", "cache_creation_input_tokens", "cache_read_input_tokens", "server_tool_use",
)  # fmt: skip
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.sampled_from(["text", "error"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=20,
)
kinds = st.sampled_from(
    [event["type"] for event in [*RESPONSES, *MESSAGES]] + ["error", "response.failed", "response.incomplete", ""]
)


@settings(deadline=None)
@given(
    st.sampled_from(DIALECTS),
    st.integers(0, 6),
    st.lists(st.tuples(kinds, json_values), max_size=5),
    st.integers(1, 200),
    st.booleans(),
)
def test_any_events_give_facts_and_no_exception(dialect, good, events, size, gateway):
    """Whatever stands behind some good events, and however it is cut into pieces."""
    odd = ({**value, "type": kind} if isinstance(value, dict) else json.dumps(value) for kind, value in events)
    content = sse(*STREAMS[dialect][:good], *odd)
    whole = read(dialect, content, gateway=gateway)
    pieces = read(dialect, *(content[at : at + size] for at in range(0, len(content), size)), gateway=gateway)
    assert whole.facts().outcome in Outcome.__args__
    assert whole.facts() == whole.facts() == pieces.facts()
