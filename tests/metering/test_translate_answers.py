"""Answers, errors and streams in the other dialect's words."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from pytest_fusion_audit.metering.translate import (
    ChatChunks,
    MessageEvents,
    TranslationError,
    answer_to_chat,
    answer_to_messages,
    error_to_chat,
    error_to_messages,
)
from pytest_fusion_audit.metering.wire.base import StreamReader, read_response
from pytest_fusion_audit.metering.wire.usages import anthropic_usage, openai_usage
from tests.metering.translate_plants import answer_meaning, chat_answers, message_answers, message_usages
from tests.metering.translate_streams import (
    CUTS,
    chat_put_together,
    chat_stream,
    message_put_together,
    message_stream,
    pieces,
)

FEW = settings(max_examples=40, deadline=None)


def _translated(step, stream: bytes, cuts: list[int]) -> bytes:
    return b"".join(step.feed(piece) for piece in pieces(stream, cuts)) + step.finish()


@FEW
@given(message_usages())
def test_a_usage_means_the_same_in_both_dialects(usage) -> None:
    message = {"content": [], "usage": usage}
    chat = answer_to_chat(message)
    theirs = anthropic_usage(usage)
    ours = openai_usage(chat["usage"], None)
    assert theirs is not None
    assert ours is not None
    for field in ("input_tokens", "cached_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens", "output_tokens"):
        assert getattr(ours, field) == getattr(theirs, field)
    assert ours.reasoning_tokens == theirs.reasoning_tokens
    back = anthropic_usage(
        answer_to_messages({"choices": [{"message": {"content": ""}}], "usage": chat["usage"]})["usage"]
    )
    assert back is not None
    assert (back.input_tokens, back.plain_input_tokens) == (theirs.input_tokens, theirs.plain_input_tokens)


@FEW
@given(message_answers())
def test_a_translated_message_reads_the_same(message) -> None:
    theirs = read_response("anthropic.messages", 200, message)
    ours = read_response("openai.chat", 200, answer_to_chat(message))
    assert ours.text == (theirs.text if theirs.text is not None or theirs.tool_calls else "")
    assert (ours.outcome, ours.tool_calls, ours.model, ours.request_id) == (
        theirs.outcome,
        theirs.tool_calls,
        theirs.model,
        theirs.request_id,
    )


@FEW
@given(chat_answers())
def test_a_completion_survives_the_round_trip(answer) -> None:
    message = answer_to_messages(answer)
    theirs, ours = read_response("openai.chat", 200, answer), read_response("anthropic.messages", 200, message)
    assert (ours.outcome, ours.tool_calls) == (theirs.outcome, theirs.tool_calls)
    text, calls, finish, usage, *names = answer_meaning(answer_to_chat(message))
    given_text, given_calls, given_finish, given_usage, *given_names = answer_meaning(answer)
    assert (text, calls, names) == (given_text, given_calls, given_names)
    refused = answer["choices"][0]["message"]["refusal"]
    assert finish == ("content_filter" if refused else given_finish)
    assert {name: usage[name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")} == {
        name: given_usage[name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")
    }


@FEW
@given(message_answers(), CUTS)
def test_a_streamed_message_is_translated_like_the_whole(message, cuts) -> None:
    stream = _translated(ChatChunks(include_usage=True, created=5), message_stream(message), cuts)
    whole = answer_to_chat(message, created=5)
    made = chat_put_together(stream)
    assert made["done"]
    text, *rest = answer_meaning(made)
    whole_text, *whole_rest = answer_meaning(whole)
    assert text == whole_text
    assert rest == whole_rest
    assert made.get("service_tier") == whole.get("service_tier")
    reader = StreamReader("openai.chat")
    reader.feed(stream)
    assert reader.complete
    assert reader.facts().outcome == read_response("anthropic.messages", 200, message).outcome


@FEW
@given(chat_answers(), CUTS)
def test_a_streamed_completion_is_translated_like_the_whole(answer, cuts) -> None:
    stream = _translated(MessageEvents(), chat_stream(answer), cuts)
    whole = answer_to_messages(answer)
    made = message_put_together(stream)
    assert made["stopped"]
    assert (made["content"], made["stop_reason"]) == (whole["content"], whole["stop_reason"])
    assert anthropic_usage(made["usage"]) == anthropic_usage(whole["usage"])
    assert (made["id"], made["model"]) == (whole["id"], whole["model"])


@FEW
@given(message_answers())
def test_a_stream_survives_the_round_trip(message) -> None:
    chunks = _translated(ChatChunks(include_usage=True), message_stream(message), [])
    made = message_put_together(_translated(MessageEvents(), chunks, []))
    whole = answer_to_messages(answer_to_chat(message))
    # A text that came after a call stays after it in a stream; a whole completion has one place for text.
    blocks, whole_blocks = (sorted(answer["content"], key=lambda block: block["type"]) for answer in (made, whole))
    assert (blocks, made["stop_reason"]) == (whole_blocks, whole["stop_reason"])


CASE_17 = {
    "thinking_first": (
        "end_turn",
        [
            {"type": "thinking", "thinking": "", "signature": "s"},
            {"type": "redacted_thinking", "data": "zz"},
            {"type": "text", "text": "```python\nprint("},
            {"type": "text", "text": "7)\n```"},
        ],
        ("answered", "```python\nprint(7)\n```", "stop"),
    ),
    "only_thinking_cut": (
        "max_tokens",
        [{"type": "thinking", "thinking": "hmm", "signature": "s"}],
        ("truncated", "", "length"),
    ),
    "empty_end_turn": ("end_turn", [], ("empty", "", "stop")),
    "tool_use_only": (
        "tool_use",
        [{"type": "tool_use", "id": "u1", "name": "run", "input": {"code": "print(7)"}}],
        ("no_text", None, "tool_calls"),
    ),
    "unknown_block": (
        "end_turn",
        [{"type": "future_block", "x": 1}, {"type": "text", "text": "print(7)"}],
        ("answered", "print(7)", "stop"),
    ),
}


@pytest.mark.parametrize("name", CASE_17)
def test_case_17_through_the_translation(name) -> None:
    stop, content, (outcome, text, finish) = CASE_17[name]
    message = {"content": content, "stop_reason": stop, "usage": {"input_tokens": 10, "output_tokens": 20}}
    chat = answer_to_chat(message)
    facts = read_response("openai.chat", 200, chat)
    assert (facts.outcome, chat["choices"][0]["message"]["content"], facts.finish_reason) == (outcome, text, finish)
    assert facts.usage is not None
    assert chat["usage"]["total_tokens"] == 30


def test_usage_that_is_not_stated_stays_unknown() -> None:
    assert answer_to_chat({"content": []})["usage"] is None
    assert answer_to_chat({"content": [], "usage": {"input_tokens": None, "output_tokens": 3}})["usage"] is None
    message = {"id": "m", "model": "c", "content": [], "stop_reason": "end_turn", "usage": {"output_tokens": 1}}
    stream = ChatChunks(include_usage=True).feed(message_stream(message))
    assert chat_put_together(stream)["usage"] is None


def test_usage_leaves_a_stream_only_when_it_was_asked_for() -> None:
    message = {"id": "m", "model": "c", "content": [], "stop_reason": "end_turn"}
    message["usage"] = {"input_tokens": 3, "output_tokens": 4}
    assert b'"usage"' not in ChatChunks(include_usage=False).feed(message_stream(message))


def test_what_is_no_answer_is_not_translated() -> None:
    for body in ({}, {"content": None}, {"content": "text"}):
        with pytest.raises(TranslationError, match="not an answer"):
            answer_to_chat(body)
    for body in ({}, {"choices": None}, {"choices": []}, {"choices": [{}]}, {"choices": [{}, {}]}):
        with pytest.raises(TranslationError, match="not an answer"):
            answer_to_messages(body)


@pytest.mark.parametrize(
    ("kind", "message", "status", "code"),
    [
        ("rate_limit_error", "slow down", 429, "rate_limit_exceeded"),
        ("overloaded_error", "Overloaded", 529, "overloaded"),
        ("authentication_error", "invalid x-api-key", 401, "invalid_api_key"),
        ("not_found_error", "model: x", 404, "model_not_found"),
        ("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", 400, "context_length_exceeded"),
        ("invalid_request_error", "Your credit balance is too low to access", 400, "insufficient_quota"),
        ("invalid_request_error", "temperature: x", 400, None),
        ("api_error", "oops", 500, None),
    ],
)
def test_errors_carry_the_code_that_clients_of_openai_go_by(kind, message, status, code) -> None:
    error = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "r"}
    made = error_to_chat(error, status)
    assert made == {"error": {"message": message, "type": kind, "param": None, "code": code}}
    theirs, ours = (read_response(d, status, b) for d, b in (("anthropic.messages", error), ("openai.chat", made)))
    assert ours.outcome == theirs.outcome
    assert error_to_chat({"content": []}, 200) is None


def test_errors_of_openai_in_words_of_anthropic() -> None:
    error = {"error": {"message": "m", "type": "requests", "code": "rate_limit_exceeded"}}
    assert error_to_messages(error, 429) == {"type": "error", "error": {"type": "rate_limit_error", "message": "m"}}
    quota = {"error": {"message": "m", "type": "insufficient_quota", "code": "insufficient_quota"}}
    made = error_to_messages(quota, 429)
    assert made is not None
    assert made["error"]["type"] == "billing_error"
    assert error_to_messages({"choices": []}, 200) is None


def test_an_error_event_inside_a_stream_is_one_on_the_other_side() -> None:
    message = {"id": "m", "model": "c", "content": [{"type": "text", "text": "half"}], "stop_reason": "end_turn"}
    message["usage"] = {"input_tokens": 3, "output_tokens": 4}
    begun = message_stream(message).split(b"event: message_delta")[0]
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    stream = ChatChunks(include_usage=True).feed(begun + b"event: error\ndata: " + json.dumps(error).encode() + b"\n\n")
    reader = StreamReader("openai.chat")
    reader.feed(stream)
    assert b"[DONE]" not in stream
    assert (reader.facts().outcome, reader.facts().error_code) == ("provider_error", "overloaded")
    back = MessageEvents().feed(stream)
    reader = StreamReader("anthropic.messages")
    reader.feed(back)
    assert reader.facts().outcome == "provider_error"
    assert not reader.complete


def test_a_cut_stream_stays_cut() -> None:
    message = {"id": "m", "model": "c", "content": [{"type": "text", "text": "whole"}], "stop_reason": "end_turn"}
    message["usage"] = {"input_tokens": 3, "output_tokens": 4}
    step = ChatChunks(include_usage=True)
    stream = step.feed(message_stream(message).split(b"event: message_delta")[0]) + step.finish()
    reader = StreamReader("openai.chat")
    reader.feed(stream)
    assert reader.facts().error_code == "stream_cut"


def test_half_a_character_does_not_break_a_stream() -> None:
    """A model can say half of a pair; JSON has an escape for it, UTF-8 has not."""
    message = {"id": "m", "model": "c", "content": [{"type": "text", "text": "\ud83d"}], "stop_reason": "end_turn"}
    message["usage"] = {"input_tokens": 3, "output_tokens": 4}
    stream = ChatChunks(include_usage=False).feed(message_stream(message))
    assert chat_put_together(stream)["choices"][0]["message"]["content"] == "\ud83d"


def test_arguments_of_a_call_that_come_at_once_or_never() -> None:
    def events(*blocks):
        return b"".join(b"data: " + json.dumps(block).encode() + b"\n\n" for block in blocks)

    call = {"type": "tool_use", "id": "t", "name": "run"}
    stream = ChatChunks(include_usage=False).feed(
        events(
            {"type": "message_start", "message": {"id": "m", "model": "c"}},
            {"type": "content_block_start", "index": 0, "content_block": {**call, "input": {}}},
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": {**call, "input": {"a": 1}}},
            {"type": "content_block_stop", "index": 1},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
            {"type": "message_stop"},
        )
    )
    calls = chat_put_together(stream)["choices"][0]["message"]["tool_calls"]
    assert [json.loads(made["function"]["arguments"]) for made in calls] == [{}, {"a": 1}]
