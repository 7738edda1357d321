"""Facts of whole responses: text over blocks (case 17), 200s that are no answer (case 20), errors, finish reasons."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.evidence.records import Outcome
from pytest_fusion_audit.metering.wire.base import is_event_stream, response_facts

JSON = "application/json"
CHAT_USAGE = {"prompt_tokens": 10, "completion_tokens": 20}
USAGE = {"input_tokens": 10, "output_tokens": 20}
OUTCOMES = set(Outcome.__args__)
DIALECTS = ["openai.chat", "openai.responses", "anthropic.messages"]


def read(dialect, body, status=200, **more):
    return response_facts(dialect, status, JSON, json.dumps(body).encode(), **more)


def message(content, stop="end_turn", usage=USAGE):
    return read(
        "anthropic.messages", {"id": "msg_1", "model": "c", "content": content, "stop_reason": stop, "usage": usage}
    )


def completion(content, finish="stop", usage=CHAT_USAGE, **fields):
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **fields}}
    return read("openai.chat", {"id": "x", "model": "g", "choices": [choice], "usage": usage})


def response(output, status="completed", usage=USAGE, **fields):
    return read(
        "openai.responses", {"id": "resp_1", "model": "g", "status": status, "output": output, "usage": usage, **fields}
    )


TEXT = {"type": "text", "text": "4"}
THINKING = {"type": "thinking", "thinking": "hm", "signature": "s"}
REDACTED = {"type": "redacted_thinking", "data": "zz"}
TOOL = {"type": "tool_use", "id": "u", "name": "run", "input": {"text": "no"}}


@pytest.mark.parametrize(
    ("content", "stop", "outcome", "text"),
    [
        ([THINKING, REDACTED, TEXT, {"type": "text", "text": "2"}], "end_turn", "answered", "42"),
        ([TEXT, {"type": "new_kind", "text": "x"}, TEXT], "stop_sequence", "answered", "44"),
        ([THINKING], "max_tokens", "truncated", None),
        ([TEXT], "max_tokens", "truncated", "4"),
        ([TEXT], "model_context_window_exceeded", "truncated", "4"),
        ([], "end_turn", "empty", None),
        ([{"type": "text", "text": " \n"}], "end_turn", "empty", " \n"),
        ([TOOL], "tool_use", "no_text", None),
        ([TEXT, TOOL], "tool_use", "answered", "4"),
        ([], "refusal", "refused", None),
        ([TEXT], "refusal", "refused", "4"),
    ],
)
def test_text_blocks_are_joined_and_the_stop_reason_tells_the_rest(content, stop, outcome, text):
    facts = message(content, stop)
    assert (facts.outcome, facts.text, facts.finish_reason) == (outcome, text, stop)
    assert facts.usage is not None  # priced whatever it was
    assert facts.tool_calls == content.count(TOOL)
    ignored = [block["type"] for block in content if block["type"] not in {"text", "tool_use"}]
    assert facts.blocks_ignored == {kind: ignored.count(kind) for kind in ignored}


@pytest.mark.parametrize(
    ("content", "finish", "fields", "outcome", "text"),
    [
        ("42", "stop", {}, "answered", "42"),
        ([{"type": "text", "text": "4"}, {"type": "text", "text": "2"}], "stop", {}, "answered", "42"),
        ("4", "length", {}, "truncated", "4"),
        ("", "length", {}, "truncated", ""),
        ("", "stop", {}, "empty", ""),
        (None, "stop", {}, "empty", None),
        (None, "tool_calls", {"tool_calls": [{}, {}]}, "no_text", None),
        (None, "stop", {"refusal": "I can not"}, "refused", None),
        ("part", "content_filter", {}, "refused", "part"),
        ("42", None, {}, "answered", "42"),
    ],
)
def test_chat_outcomes(content, finish, fields, outcome, text):
    facts = completion(content, finish, **fields)
    assert (facts.outcome, facts.text) == (outcome, text)
    assert facts.tool_calls == len(fields.get("tool_calls", []))


@pytest.mark.parametrize(
    ("output", "fields", "outcome", "text"),
    [
        ([{"type": "reasoning"}, {"type": "message", "content": [{"type": "output_text", "text": "42"}]}],
         {}, "answered", "42"),
        ([{"type": "message", "content": [{"type": "output_text", "text": "4"}]}],
         {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "truncated", "4"),
        ([], {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "refused", None),
        ([{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}], {}, "refused", None),
        ([{"type": "function_call"}], {}, "no_text", None),
        ([], {}, "empty", None),
        ([], {"status": "failed", "error": {"code": "server_error", "message": "x"}}, "provider_error", None),
        ([], {"status": "queued"}, "pipeline_error", None),
        (None, {}, "pipeline_error", None),
    ],
)  # fmt: skip
def test_responses_outcomes(output, fields, outcome, text):
    facts = response(output, **fields)
    assert (facts.outcome, facts.text) == (outcome, text)


def test_web_searches_are_counted_because_they_are_billed():
    output = [{"type": "web_search_call"}, {"type": "web_search_call"}]
    assert response(output).usage.web_searches == 2
    usage = {**USAGE, "server_tool_use": {"web_search_requests": 3}}
    assert message([TEXT], usage=usage).usage.web_searches == 3


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": 0, "completion_tokens": 0}])
def test_an_answer_without_a_believable_usage_keeps_its_text_and_has_no_cost(usage):
    facts = completion("42", usage=usage)
    assert (facts.outcome, facts.text, facts.usage) == ("answered", "42", None)


PAGE = b"<!doctype html><html><title>Sign in</title>Use key sk-proj-abcdefabcdef</html>"


@pytest.mark.parametrize(
    ("status", "content_type", "body", "code"),
    [
        (200, "text/html; charset=utf-8", PAGE, "html"),
        (200, JSON, PAGE, "html"),
        (200, "text/plain", b"upstream busy", "not_json"),
        (200, JSON, b'{"choices": [', "not_json"),
        (200, JSON, b"[]", "not_json"),
        (200, JSON, b"", "empty_body"),
        (200, None, b"\xff\xfe\x00", "not_json"),
        (200, JSON, b"[" * 200_000, "not_json"),
        (200, JSON, b'{"id": "r", "choices": []}', "no_choices"),
        (200, JSON, b'{"id": "r", "choices": null}', "no_choices"),
        (200, JSON, b'{"id": "r", "choices": [null]}', "no_choices"),
        (200, JSON, b'{"id": "r", "choices": [{"message": null}]}', "no_choices"),
        (200, JSON, b'{"choices": null, "error": {"code": 429, "message": "upstream busy"}}', "429"),
        (200, JSON, b'{"error": "busy"}', "error"),
        (502, "text/html", b"<html>Bad gateway</html>", "html"),
    ],
)
def test_what_is_not_an_answer_is_not_scored_and_not_quoted(status, content_type, body, code):
    facts = response_facts("openai.chat", status, content_type, body, gateway=True)
    assert (facts.outcome, facts.error_code, facts.text) == ("pipeline_error", code, None)
    assert "sk-proj" not in str(facts)
    if code == "html":
        assert "/v1" in facts.error_message


def test_an_empty_list_of_choices_is_still_paid_for():
    facts = read("openai.chat", {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 0}})
    assert (facts.outcome, facts.usage.input_tokens) == ("pipeline_error", 5)


@pytest.mark.parametrize(
    ("dialect", "status", "error", "outcome", "code"),
    [
        ("openai.chat", 429, {"type": "tokens", "code": "rate_limit_exceeded"}, "provider_error",
         "rate_limit_exceeded"),
        ("openai.chat", 429, {"type": "insufficient_quota", "code": "insufficient_quota"}, "provider_error",
         "insufficient_quota"),
        ("openai.chat", 400, {"code": "unsupported_parameter", "param": "temperature"}, "provider_error",
         "unsupported_parameter"),
        ("openai.chat", 404, {"code": "model_not_found"}, "provider_error", "model_not_found"),
        ("openai.chat", 400, {"code": "context_length_exceeded"}, "context_length", "context_length_exceeded"),
        ("openai.responses", 400, {"code": "content_policy_violation"}, "refused", "content_policy_violation"),
        ("openai.chat", 500, {"type": "server_error", "code": None}, "provider_error", "server_error"),
        ("anthropic.messages", 529, {"type": "overloaded_error"}, "provider_error", "overloaded_error"),
        ("anthropic.messages", 400,
         {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"},
         "context_length", "invalid_request_error"),
        ("anthropic.messages", 413, {"type": "request_too_large"}, "context_length", "request_too_large"),
    ],
)  # fmt: skip
def test_errors_of_the_provider(dialect, status, error, outcome, code):
    facts = read(dialect, {"type": "error", "error": error, "request_id": "req_1"}, status)
    assert (facts.outcome, facts.error_code, facts.request_id) == (outcome, code, "req_1")
    assert read(dialect, {"error": error}, status, gateway=True).outcome in {"pipeline_error", "refused"}


def test_an_error_status_with_an_answer_in_it_is_no_answer():
    choice = {"message": {"content": "42"}, "finish_reason": "stop"}
    facts = read("openai.chat", {"choices": [choice], "usage": CHAT_USAGE}, 500)
    assert (facts.outcome, facts.error_code) == ("provider_error", "status_500")


def test_a_long_error_is_cut():
    facts = read("openai.chat", {"error": {"message": "x" * 10_000}}, 400)
    assert len(facts.error_message) == 200


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["id", "type", "choices", "message", "content", "text", "usage", "error", "code", "output", "status", "delta",
         "tool_calls", "finish_reason", "stop_reason", "input_tokens", "output_tokens", "prompt_tokens_details",
         "cache_creation", "iterations", "incomplete_details", "reason", "refusal", "model"]), inner, max_size=5),
    max_leaves=25,
)  # fmt: skip


@settings(deadline=None)
@given(
    st.sampled_from([*DIALECTS, "openai.models", "other"]),
    st.sampled_from([200, 400, 429, 503]),
    json_values,
    st.booleans(),
)
def test_any_json_gives_facts_and_no_exception(dialect, status, value, gateway):
    facts = read(dialect, value, status, gateway=gateway)
    assert facts.outcome in OUTCOMES
    if status >= 400:
        assert facts.outcome in {"provider_error", "context_length", "refused", "pipeline_error"}


@settings(deadline=None)
@given(st.sampled_from(DIALECTS), st.binary(max_size=60))
def test_any_bytes_give_facts_and_no_exception(dialect, body):
    assert response_facts(dialect, 200, None, body).outcome in OUTCOMES


@pytest.mark.parametrize(
    ("content_type", "is_one"),
    [("text/event-stream", True), ("Text/Event-Stream; charset=utf-8", True), (JSON, False), (None, False)],
)
def test_streams_are_known_by_their_content_type(content_type, is_one):
    assert is_event_stream(content_type) is is_one
