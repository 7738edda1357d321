"""Requests in the other dialect's words: nothing changes its meaning, and what would is refused by name."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.metering.translate import TranslationError, request_to_chat, request_to_messages
from tests.metering.translate_plants import VALUES, chat_meaning, chat_requests

USER = {"role": "user", "content": "hi"}
CALL = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": '{"code": "print(7)"}'}}
TOOL = {"type": "function", "function": {"name": "run", "parameters": {"type": "object", "properties": {}}}}
SAID = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "7"}


def _chat(*messages, **more):
    return {"model": "anthropic/claude-x", "max_tokens": 9, "messages": list(messages) or [USER], **more}


def _to_messages(*messages, **more):
    return request_to_messages(_chat(*messages, **more), model="claude-x")


@settings(max_examples=50, deadline=None)
@given(chat_requests())
def test_a_round_trip_keeps_the_meaning(body) -> None:
    before = json.dumps(body)
    message = request_to_messages(body, model="claude-x")
    json.dumps(message, allow_nan=False)
    back = request_to_chat(message, model=body["model"])
    assert chat_meaning(back) == chat_meaning(body)
    assert json.dumps(body) == before


@settings(max_examples=50, deadline=None)
@given(chat_requests(), st.data())
def test_nonsense_anywhere_is_refused_and_never_a_crash(body, data) -> None:
    """A value of any kind in the place of any other; both directions."""
    message = request_to_messages(body, model="m")
    for request, translate in ((body, request_to_messages), (message, request_to_chat)):
        spoiled = json.loads(json.dumps(request))
        holder = spoiled
        while True:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            key = data.draw(st.sampled_from(keys))
            inner = holder[key]
            if not isinstance(inner, (dict, list)) or not inner or data.draw(st.booleans()):
                holder[key] = data.draw(VALUES)
                break
            holder = inner
        with contextlib.suppress(TranslationError):
            json.dumps(translate(spoiled, model="m"))


def test_a_conversation_with_tools() -> None:
    body = _chat(
        {"role": "system", "content": "Be short."},
        {"role": "developer", "content": [{"type": "text", "text": "Answer in code."}, {"type": "text", "text": ""}]},
        USER,
        {**SAID, "content": "Let me see.", "refusal": None, "annotations": [], "audio": None, "function_call": None},
        RESULT,
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "8"}]},
        {"role": "user", "content": "And?"},
        tools=[TOOL],
        tool_choice="required",
        parallel_tool_calls=False,
        stop="END",
        user="u1",
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
        reasoning_effort="high",
        service_tier="default",
        stream=True,
        stream_options={"include_usage": True},
    )
    assert request_to_messages(body, model="claude-x") == {
        "model": "claude-x",
        "max_tokens": 9,
        "system": [{"type": "text", "text": "Be short."}, {"type": "text", "text": "Answer in code."}],
        "messages": [
            USER,
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Let me see."},
                    {"type": "tool_use", "id": "c1", "name": "run", "input": {"code": "print(7)"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "7"},
                    {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "8"}]},
                ],
            },
            {"role": "user", "content": "And?"},
        ],
        "stop_sequences": ["END"],
        "tools": [{"name": "run", "input_schema": {"type": "object", "properties": {}}}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": {"type": "object"}}},
        "stream": True,
        "service_tier": "standard_only",
        "metadata": {"user_id": "u1"},
    }


def test_pictures() -> None:
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "auto"}},
        {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}},
    ]
    assert _to_messages({"role": "user", "content": parts})["messages"][0]["content"] == [
        {"type": "text", "text": "What is this?"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        {"type": "image", "source": {"type": "url", "url": "https://a.example/b.png"}},
    ]


def test_a_mark_for_the_cache_goes_along_and_is_left_out_on_the_way_back() -> None:
    mark = {"type": "ephemeral"}
    part = {"type": "text", "text": "long", "cache_control": mark}
    message = _to_messages({"role": "system", "content": [part]}, {"role": "user", "content": [part]})
    assert message["system"] == [part]
    assert message["messages"][0]["content"] == [part]
    assert "cache_control" not in json.dumps(request_to_chat(message, model="m"))


def test_a_later_system_message_keeps_its_place() -> None:
    late = {"role": "system", "content": "Now in German."}
    assert _to_messages(USER, late, USER)["messages"] == [USER, late, USER]


@pytest.mark.parametrize(
    ("choice", "parallel", "expected"),
    [
        (None, None, None),
        ("auto", True, {"type": "auto"}),
        (None, False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("none", False, {"type": "none"}),
        ({"type": "function", "function": {"name": "run"}}, None, {"type": "tool", "name": "run"}),
    ],
)
def test_the_choice_of_tools(choice, parallel, expected) -> None:
    assert _to_messages(tools=[TOOL], tool_choice=choice, parallel_tool_calls=parallel).get("tool_choice") == expected


def test_limits() -> None:
    def limit(default=None, **fields):
        body = {"messages": [USER], **fields}
        return request_to_messages(body, model="m", default_max_tokens=default)["max_tokens"]

    assert limit(max_completion_tokens=7) == limit(max_tokens=7) == limit(max_tokens=7, max_completion_tokens=7) == 7
    assert limit(64_000) == 64_000
    for fields in ({}, {"max_tokens": 7, "max_completion_tokens": 8}):
        with pytest.raises(TranslationError, match="max_tokens"):
            limit(**fields)


def test_every_field_of_the_sdk_is_translated_or_refused() -> None:
    """A field that a newer SDK knows must not get lost: whatever it is, it is refused until somebody translates it."""
    from openai.types.chat.completion_create_params import CompletionCreateParamsBase  # noqa: PLC0415

    known = set(CompletionCreateParamsBase.__annotations__) - {"model", "messages"}
    lost = []
    for field in sorted(known):
        body = {**_chat(), field: {"unheard": "of"}}
        try:
            message = request_to_messages(body, model="m")
        except TranslationError:
            continue
        if "unheard" not in json.dumps(message):
            lost.append(field)
    assert lost == [
        "metadata",
        "parallel_tool_calls",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "stream_options",
    ]
