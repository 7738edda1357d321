"""Requests and answers of both dialects drawn at random, and their meaning in plain words."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]
WORDS = st.text('abc äß€😀\n"\\{}', min_size=1, max_size=12).filter(str.strip)
NAMES = st.text("abcdefgh_", min_size=1, max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=3)
SCHEMAS = st.builds(
    lambda names: {"type": "object", "properties": {n: {"type": "string"} for n in names}}, st.sets(NAMES)
)
PICTURES = st.sampled_from(["data:image/png;base64,aGk=", "data:image/jpeg;base64,aGFsbG8=", "https://a.example/b.png"])


# --- chat requests

CHAT_PARTS = st.one_of(
    WORDS.map(lambda text: {"type": "text", "text": text}),
    PICTURES.map(lambda url: {"type": "image_url", "image_url": {"url": url}}),
)
CHAT_TEXTS = WORDS | st.lists(WORDS.map(lambda text: {"type": "text", "text": text}), min_size=1, max_size=3)


@st.composite
def chat_turns(draw: st.DrawFn) -> list[Json]:
    turns: list[Json] = [
        {"role": draw(st.sampled_from(["system", "developer"])), "content": draw(CHAT_TEXTS)}
        for _ in range(draw(st.integers(0, 2)))
    ]
    for number in range(draw(st.integers(0, 3))):
        turns.append({"role": "user", "content": draw(CHAT_TEXTS | st.lists(CHAT_PARTS, min_size=1, max_size=3))})
        calls = [
            {
                "id": f"call_{number}_{index}",
                "type": "function",
                "function": {"name": draw(NAMES), "arguments": json.dumps(draw(OBJECTS))},
            }
            for index in range(draw(st.integers(0, 2)))
        ]
        if calls:
            turns.append({"role": "assistant", "content": draw(st.none() | WORDS), "tool_calls": calls})
            turns += [{"role": "tool", "tool_call_id": call["id"], "content": draw(CHAT_TEXTS)} for call in calls]
        else:
            turns.append({"role": "assistant", "content": draw(CHAT_TEXTS)})
        if draw(st.booleans()):
            turns.append({"role": "system", "content": draw(WORDS)})
    turns.append({"role": "user", "content": draw(CHAT_TEXTS)})
    return turns


@st.composite
def chat_requests(draw: st.DrawFn) -> Json:
    body: Json = {"model": "anthropic/claude", "messages": draw(chat_turns())}
    body[draw(st.sampled_from(["max_tokens", "max_completion_tokens"]))] = draw(st.integers(1, 9000))
    optional: dict[str, st.SearchStrategy[Any]] = {
        "temperature": st.floats(0, 1),
        "top_p": st.floats(0, 1),
        "stop": WORDS | st.lists(WORDS, min_size=1, max_size=3),
        "stream": st.booleans(),
        "service_tier": st.sampled_from(["auto", "default"]),
        "user": NAMES,
        "reasoning_effort": st.sampled_from(["none", "low", "medium", "high", "xhigh", "max"]),
        "n": st.just(1),
        "store": st.sampled_from([False]),
        "frequency_penalty": st.just(0),
        "metadata": st.just({"run": "x"}),
        "response_format": st.one_of(
            st.just({"type": "text"}),
            SCHEMAS.map(lambda s: {"type": "json_schema", "json_schema": {"name": "a", "schema": s, "strict": True}}),
        ),
    }
    for name, strategy in optional.items():
        if draw(st.booleans()):
            body[name] = draw(strategy)
    names = draw(st.lists(NAMES, max_size=2, unique=True))
    if names:
        body["tools"] = [
            {"type": "function", "function": {"name": name, "description": draw(WORDS), "parameters": draw(SCHEMAS)}}
            for name in names
        ]
        choices: list[Any] = ["auto", "none", "required", {"type": "function", "function": {"name": names[0]}}]
        if draw(st.booleans()):
            body["tool_choice"] = draw(st.sampled_from(choices))
        if draw(st.booleans()):
            body["parallel_tool_calls"] = draw(st.booleans())
    return body


def chat_meaning(body: Json) -> Json:
    """What a chat request asks, whatever the words."""
    turns = [_chat_turn(turn) for turn in body["messages"]]
    system = []
    while turns and turns[0][0] == "system":
        system += turns.pop(0)[1]
    stop = body.get("stop") or []
    choice = body.get("tool_choice") if body.get("tools") else None
    single = body.get("parallel_tool_calls") is False and body.get("tools") and choice != "none"
    wanted = body.get("response_format") or {"type": "text"}
    return {
        "system": system,
        "turns": turns,
        "limit": body.get("max_completion_tokens") or body.get("max_tokens"),
        "stop": [stop] if isinstance(stop, str) else stop,
        "tools": [tool["function"] for tool in body.get("tools") or ()],
        "choice": choice or "auto",
        "single": bool(single),
        "schema": wanted["json_schema"]["schema"] if wanted["type"] == "json_schema" else None,
        "effort": body.get("reasoning_effort"),
        "stream": bool(body.get("stream")),
        "rest": {name: body.get(name) for name in ("temperature", "top_p", "service_tier", "user")},
    }


def _chat_turn(turn: Json) -> tuple[Any, ...]:
    role = "system" if turn["role"] == "developer" else turn["role"]
    content = turn.get("content") or []
    parts = (
        [content] if isinstance(content, str) else [part.get("text") or part["image_url"]["url"] for part in content]
    )
    calls = [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in turn.get("tool_calls") or ()
    ]
    return (role, parts, calls, turn.get("tool_call_id"))


# --- answers of both dialects

COUNTS = st.integers(0, 5000)


@st.composite
def message_answers(draw: st.DrawFn) -> Json:
    text = st.builds(lambda t: {"type": "text", "text": t}, WORDS)
    other = st.sampled_from(
        [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "redacted_thinking", "data": "z"},
            {"type": "future_block", "x": 1},
        ]
    )
    call = st.builds(
        lambda i, n, o: {"type": "tool_use", "id": f"toolu_{i}", "name": n, "input": o},
        st.integers(0, 99),
        NAMES,
        OBJECTS,
    )
    content = draw(st.lists(st.one_of(text, other, call), max_size=5))
    stop = draw(st.sampled_from(["end_turn", "max_tokens", "stop_sequence", "refusal", "pause_turn"]))
    if any(block["type"] == "tool_use" for block in content):
        stop = "tool_use"
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-8",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": draw(message_usages()),
    }


@st.composite
def message_usages(draw: st.DrawFn) -> Json:
    usage: Json = {"input_tokens": draw(st.integers(1, 5000)), "output_tokens": draw(st.integers(1, 5000))}
    if draw(st.booleans()):
        usage["cache_read_input_tokens"] = draw(COUNTS)
    if draw(st.booleans()):
        short, long = draw(COUNTS), draw(COUNTS)
        usage["cache_creation_input_tokens"] = short + long
        usage["cache_creation"] = {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long}
    if draw(st.booleans()):
        usage["output_tokens_details"] = {"thinking_tokens": draw(st.integers(0, usage["output_tokens"]))}
    if draw(st.booleans()):
        usage["service_tier"] = draw(st.sampled_from(["standard", "priority"]))
    return usage


@st.composite
def chat_answers(draw: st.DrawFn) -> Json:
    message: Json = {"role": "assistant", "content": draw(st.none() | WORDS), "refusal": None}
    finish = draw(st.sampled_from(["stop", "length", "content_filter"]))
    calls = [
        {
            "id": f"call_{index}",
            "type": "function",
            "function": {"name": draw(NAMES), "arguments": json.dumps(draw(OBJECTS))},
        }
        for index in range(draw(st.integers(0, 2)))
    ]
    if calls:
        message["tool_calls"] = calls
        finish = "tool_calls"
    elif message["content"] is None and draw(st.booleans()):
        message["refusal"] = draw(WORDS)
    prompt, cached, out = draw(st.integers(1, 5000)), draw(COUNTS), draw(st.integers(1, 5000))
    usage = {
        "prompt_tokens": prompt + cached,
        "completion_tokens": out,
        "total_tokens": prompt + cached + out,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": draw(st.integers(0, out))},
    }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "gpt-5.5",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage,
    }


def answer_meaning(answer: Json) -> tuple[Any, ...]:
    """What a completion says: text, calls, finish reason, usage."""
    choice = answer["choices"][0]
    message = choice["message"]
    calls = [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    ]
    text = (message.get("content") or "") + (message.get("refusal") or "")
    return (text, calls, choice["finish_reason"], answer["usage"], answer["model"], answer["id"])
