"""What the other dialect cannot say is refused with the name of its field, and never with the prompt."""

from __future__ import annotations

import pytest

from pytest_fusion_audit.errors import FusionAuditError
from pytest_fusion_audit.metering.translate import TranslationError, request_to_chat, request_to_messages

USER = {"role": "user", "content": "hi"}
FUNCTION = {"name": "run", "arguments": '{"code": "print(7)"}'}
CALL = {"id": "c1", "type": "function", "function": FUNCTION}
TOOL = {"type": "function", "function": {"name": "run", "parameters": {"type": "object", "properties": {}}}}
SAID = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "7"}


def _to_messages(*messages, **more):
    body = {"model": "anthropic/claude-x", "max_tokens": 9, "messages": list(messages) or [USER], **more}
    return request_to_messages(body, model="claude-x")


REFUSED_CHAT = [
    ("seed", {"seed": 7}),
    ("n", {"n": 2}),
    ("logprobs", {"logprobs": True}),
    ("logit_bias", {"logit_bias": {"5": 1}}),
    ("frequency_penalty", {"frequency_penalty": 0.5}),
    ("temperature", {"temperature": 1.5}),
    ("store", {"store": True}),
    ("modalities", {"modalities": ["text", "audio"]}),
    ("verbosity", {"verbosity": "low"}),
    ("reasoning_effort", {"reasoning_effort": "minimal"}),
    ("response_format.type", {"response_format": {"type": "json_object"}}),
    ("service_tier", {"service_tier": "flex"}),
    ("functions", {"functions": [{"name": "f"}]}),
    ("web_search_options", {"web_search_options": {}}),
    ("prediction", {"prediction": {"type": "content", "content": "x"}}),
    ("reasoning", {"reasoning": {"effort": "low"}}),
    ("safety_identifier", {"safety_identifier": "a", "user": "b"}),
    ("tool_choice", {"tool_choice": "required"}),
    ("tool_choice.type", {"tools": [TOOL], "tool_choice": {"type": "allowed_tools"}}),
    ("tools[0].type", {"tools": [{"type": "custom", "custom": {"name": "c"}}]}),
    ("stop[1]", {"stop": ["a", " "]}),
]


@pytest.mark.parametrize(("field", "more"), REFUSED_CHAT, ids=[field for field, _ in REFUSED_CHAT])
def test_fields_without_a_counterpart_are_refused_by_name(field, more) -> None:
    with pytest.raises(TranslationError) as caught:
        _to_messages(**more)
    assert str(caught.value).startswith(f"{field}: ")
    assert isinstance(caught.value, FusionAuditError)


def _part(kind, **more):
    return {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": kind, **more}]}


def _picture(**image_url):
    return _part("image_url", image_url=image_url)


def _said(function):
    return {**SAID, "tool_calls": [{**CALL, "function": function}]}


REFUSED_TURNS = [
    ("messages", [SAID, USER, {"role": "assistant", "content": "I"}]),
    ("messages", [{"role": "system", "content": "alone"}]),
    ("messages[0].role", [{"role": "function", "name": "f", "content": "x"}]),
    ("messages[0].name", [{**USER, "name": "bob"}]),
    ("messages[0].content", [{"role": "user", "content": ""}]),
    ("messages[0].content", [{"role": "user", "content": None}]),
    ("messages[1].content", [USER, {"role": "assistant", "content": ""}, USER]),
    ("messages[0].content[1].type", [_part("input_audio", input_audio={"data": "x", "format": "wav"})]),
    ("messages[0].content[1].type", [_part("file", file={"file_id": "f"})]),
    ("messages[0].content[1].image_url.detail", [_picture(url="https://a/b", detail="low")]),
    ("messages[0].content[1].image_url.url", [_picture(url="data:image/bmp;base64,aa")]),
    ("messages[1].tool_calls[0].function.arguments", [USER, _said({**FUNCTION, "arguments": "[1]"}), RESULT]),
    ("messages[1].tool_calls[0].function.arguments", [USER, _said({**FUNCTION, "arguments": '{"a": NaN}'}), RESULT]),
    ("messages[1].tool_calls[0].type", [USER, {**SAID, "tool_calls": [{**CALL, "type": "custom"}]}, RESULT]),
    ("messages[1].refusal", [USER, {"role": "assistant", "content": "a", "refusal": "no"}, USER]),
    ("messages[1].reasoning_content", [USER, {"role": "assistant", "content": "a", "reasoning_content": "x"}, USER]),
    ("messages[2].content[0].type", [USER, SAID, {**RESULT, "content": [{"type": "image_url"}]}]),
    ("messages[0]", ["hi"]),
]


@pytest.mark.parametrize(("field", "turns"), REFUSED_TURNS)
def test_turns_without_a_counterpart_are_refused_by_their_place(field, turns) -> None:
    with pytest.raises(TranslationError) as caught:
        _to_messages(*turns)
    assert str(caught.value).startswith(f"{field}: ")


def test_a_refusal_never_quotes_the_prompt() -> None:
    with pytest.raises(TranslationError) as caught:
        _to_messages(_picture(url="data:image/bmp;base64,SECRETSECRET"))
    assert "SECRET" not in str(caught.value)


def _message(*turns, **more):
    return {"model": "claude-x", "max_tokens": 9, "messages": list(turns) or [USER], **more}


REFUSED_MESSAGES = [
    ("top_k", _message(top_k=5)),
    ("thinking", _message(thinking={"type": "enabled", "budget_tokens": 1024})),
    ("mcp_servers", _message(mcp_servers=[{"name": "x"}])),
    ("container", _message(container="c")),
    ("speed", _message(speed="fast")),
    ("tools[0].type", _message(tools=[{"type": "web_search_20250305", "name": "web_search"}])),
    ("output_config.format.type", _message(output_config={"format": {"type": "grammar"}})),
    ("messages", _message(USER, {"role": "assistant", "content": "I"})),
    ("messages[1].content[0].type", _message(USER, {"role": "assistant", "content": [{"type": "thinking"}]}, USER)),
    (
        "messages[1].content[1].type",
        _message(
            USER,
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "a", "name": "b", "input": {}},
                    {"type": "text", "text": "late"},
                ],
            },
            USER,
        ),
    ),
    (
        "messages[0].content[1]",
        _message(
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "tool_result", "tool_use_id": "x"}]}
        ),
    ),
    (
        "messages[0].content[0].is_error",
        _message({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "is_error": True}]}),
    ),
    ("messages[0].content[0].type", _message({"role": "user", "content": [{"type": "document", "source": {}}]})),
    (
        "messages[0].content[0].source.type",
        _message({"role": "user", "content": [{"type": "image", "source": {"type": "file", "file_id": "f"}}]}),
    ),
]


@pytest.mark.parametrize(("field", "body"), REFUSED_MESSAGES, ids=[field for field, _ in REFUSED_MESSAGES])
def test_what_chat_completions_cannot_say_is_refused_by_name(field, body) -> None:
    with pytest.raises(TranslationError) as caught:
        request_to_chat(body, model="m")
    assert str(caught.value).startswith(f"{field}: ")
