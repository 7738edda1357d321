"""Facts of requests: what bounds the price, what was sent, and what cannot be bounded."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.metering.wire.base import WireError, dialect_of, request_facts, with_model, with_usage

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"


def facts(path, **body):
    return request_facts("POST", path, json.dumps({"model": "m", **body}).encode())


@pytest.mark.parametrize(
    ("method", "path", "dialect"),
    [
        ("POST", CHAT, "openai.chat"),
        ("POST", "/s/token/judge/v1/chat/completions?x=1", "openai.chat"),
        ("POST", "/chat/completions/", "openai.chat"),
        ("POST", RESPONSES, "openai.responses"),
        ("POST", MESSAGES, "anthropic.messages"),
        ("post", "/v1/messages?beta=true", "anthropic.messages"),
        ("POST", "/v1/messages/count_tokens", "other"),
        ("POST", "/v1/messages/batches", "other"),
        ("POST", "/v1/threads/t1/messages", "other"),
        ("POST", "/v1/completions", "other"),
        ("POST", "/v1/embeddings", "other"),
        ("GET", "/v1/responses/resp_1", "other"),
        ("GET", "/v1/models", "openai.models"),
        ("GET", "/v1/models/gpt-5.5", "openai.models"),
        ("GET", "/v1/files", "other"),
    ],
)
def test_dialect_by_method_and_end_of_path(method, path, dialect):
    assert dialect_of(method, path) == dialect


def test_limits_stream_and_parameters_as_sent():
    sent = facts(
        CHAT, max_completion_tokens=100, temperature=0.2, seed=7, stream=True, messages=[{"content": "secret"}]
    )
    assert (sent.model, sent.max_output_tokens, sent.stream, sent.choices) == ("m", 100, True, 1)
    assert sent.parameters == {"temperature": 0.2, "seed": 7, "max_completion_tokens": 100, "stream": True}
    assert "secret" not in repr(sent)
    assert facts(RESPONSES, max_output_tokens=16, input="x").max_output_tokens == 16
    anthropic = facts(MESSAGES, max_tokens=9, output_config={"effort": "high"}, speed="fast")
    assert (anthropic.max_output_tokens, anthropic.service_tier) == (9, "fast")
    assert anthropic.parameters["effort"] == "high"


def test_several_choices_multiply_the_output():
    assert facts(CHAT, max_tokens=100, n=8).max_output_tokens == 800
    unlimited = facts(CHAT, n=8)
    assert unlimited.output_bound(None) is None
    assert unlimited.output_bound(1000) == 8000
    assert facts(CHAT, max_tokens=100, n=8).output_bound(1000) == 800


def test_of_two_limits_the_larger_bounds():
    assert facts(CHAT, max_tokens=100, max_completion_tokens=200).max_output_tokens == 200


@pytest.mark.parametrize("limit", ["100", 1.5, -1, True, [], {}])
@pytest.mark.parametrize(
    ("path", "field"), [(CHAT, "max_tokens"), (RESPONSES, "max_output_tokens"), (MESSAGES, "max_tokens")]
)
def test_a_limit_that_is_no_count_is_refused_by_name(path, field, limit):
    with pytest.raises(WireError, match=field):
        facts(path, **{field: limit})


@pytest.mark.parametrize("n", [0, "2", -1, False])
def test_a_number_of_choices_that_is_none_is_refused(n):
    with pytest.raises(WireError, match=r"^n: "):
        facts(CHAT, n=n)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"model": "m"', '{"a":1}'.encode("utf-16")])
def test_an_unreadable_body_is_refused(body):
    with pytest.raises(WireError, match="nothing was sent"):
        request_facts("POST", CHAT, body)
    assert request_facts("POST", "/v1/files", body).dialect == "other"  # nobody reads that one


@settings(deadline=None)
@given(st.text(max_size=200), st.booleans())
def test_the_bound_is_not_below_the_bytes_of_the_prompt(prompt, ascii_only):
    prompt = prompt.encode("utf-8", "ignore").decode()
    body = json.dumps(
        {"model": "m", "messages": [{"role": "user", "content": prompt}]}, ensure_ascii=ascii_only
    ).encode()
    sent = request_facts("POST", CHAT, body)
    assert sent.input_tokens_bound >= len(prompt.encode())
    assert sent.input_tokens_bound == len(body)


def test_tools_add_what_the_provider_puts_in_unseen():
    tools = [{"type": "function", "function": {"name": "f"}}]
    with_tools = facts(CHAT, tools=tools)
    assert with_tools.input_tokens_bound > with_tools.prompt_bytes
    assert with_tools.server_tools == ()


@pytest.mark.parametrize(
    ("path", "body", "tools", "uses"),
    [
        (RESPONSES, {"tools": [{"type": "web_search"}], "max_tool_calls": 3}, ("web_search",), 3),
        (RESPONSES, {"tools": [{"type": "web_search"}]}, ("web_search",), None),
        (RESPONSES, {"tools": [{"type": "code_interpreter"}, {"type": "function"}]}, ("code_interpreter",), None),
        (MESSAGES, {"tools": [{"type": "web_search_20250305", "max_uses": 2}]}, ("web_search",), 2),
        (MESSAGES, {"tools": [{"type": "bash_20250124"}, {"name": "mine", "input_schema": {}}]}, (), 0),
        (CHAT, {"web_search_options": {}}, ("web_search",), None),
    ],
)
def test_tools_that_the_provider_runs(path, body, tools, uses):
    sent = facts(path, **body)
    assert (sent.server_tools, sent.server_tool_uses) == (tools, uses)


@pytest.mark.parametrize(
    ("path", "body", "opaque"),
    [
        (RESPONSES, {"previous_response_id": "r"}, ("previous_response_id",)),
        (RESPONSES, {"input": [{"content": [{"type": "input_image", "image_url": "https://x"}]}]}, ("input_image",)),
        (CHAT, {"messages": [{"content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]}, ("image_url",)),
        (MESSAGES, {"messages": [{"content": [{"type": "document", "source": {}}]}]}, ("document",)),
        (MESSAGES, {"messages": [{"content": [{"type": "tool_result", "content": [{"type": "image"}]}]}]}, ("image",)),
        (CHAT, {"messages": [{"content": 'look: {"type": "image"}'}]}, ()),
        (MESSAGES, {"messages": [{"content": [{"type": "tool_use", "input": {"type": "image"}}]}]}, ()),
        (MESSAGES, {"messages": [{"content": "x"}], "tools": [{"name": "f", "input_schema": {"type": "file"}}]}, ()),
    ],
)
def test_inputs_that_bytes_do_not_bound(path, body, opaque):
    assert facts(path, **body).opaque_inputs == opaque


def test_cache_entries_a_request_can_write():
    block = {"type": "text", "text": '"cache_control" "1h"'}
    assert facts(MESSAGES, system=[block]).cache_write == "none"
    assert facts(MESSAGES, system=[{**block, "cache_control": {"type": "ephemeral"}}]).cache_write == "5m"
    assert facts(MESSAGES, system=[{**block, "cache_control": {"type": "ephemeral", "ttl": "1h"}}]).cache_write == "1h"
    assert facts(CHAT).cache_write == "5m"  # OpenAI caches by itself


def test_usage_is_asked_for_and_nothing_else_changes():
    body = '{"model": "m", "stream": true, "temperature": 0.10, "messages": [{"content": "naïve \\ud83d"}]}\n'.encode()
    asked = with_usage("openai.chat", body)
    assert asked.startswith(body.rstrip()[:-1])
    assert json.loads(asked) == {**json.loads(body), "stream_options": {"include_usage": True}}
    assert with_usage("openai.chat", asked) == asked


@pytest.mark.parametrize("options", [None, {}, {"include_usage": False, "include_obfuscation": False}])
def test_options_that_are_there_are_kept(options):
    body = json.dumps({"stream": True, "stream_options": options, "messages": "\ud800"}).encode()
    asked = json.loads(with_usage("openai.chat", body))
    assert asked["stream_options"] == {**(options or {}), "include_usage": True}
    assert asked["messages"] == "\ud800"


@pytest.mark.parametrize("dialect", ["openai.responses", "anthropic.messages", "other"])
def test_other_dialects_are_left_alone(dialect):
    assert with_usage(dialect, b'{"stream": true}') == b'{"stream": true}'
    assert with_usage("openai.chat", b'{"stream": false}') == b'{"stream": false}'
    with pytest.raises(WireError):
        with_usage("openai.chat", b"{")


@given(
    st.dictionaries(st.text(max_size=4), st.text(max_size=4) | st.integers() | st.booleans() | st.none(), max_size=4),
    st.text(min_size=1, max_size=8),
)
def test_another_name_of_the_model_changes_nothing_else(body, name):
    sent = with_model(json.dumps({**body, "model": "gpt-5.5"}).encode(), name)
    assert json.loads(sent) == {**body, "model": name}
    assert list(json.loads(sent)) == list({**body, "model": ""})


def test_of_two_names_in_one_body_the_one_that_was_read_is_replaced():
    sent = with_model(b'{"model": "a", "model": "b", "seed": 1, "user": "\\ud83d"}', "c")
    assert sent == b'{"model":"c","seed":1,"user":"\\ud83d"}'
