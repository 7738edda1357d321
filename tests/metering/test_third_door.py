"""``provider/name`` ids: a gateway with a single OpenAI-compatible upstream reaches both makers, metered."""

from __future__ import annotations

import json

import httpx2
import openai
import pytest

from pytest_fusion_audit.metering.third_door import ForeignDialectError, ThirdDoor, models_listed
from tests.metering.proxy_run import ANTHROPIC_KEY, OPENAI_KEY, ask, metered
from tests.metering.server_replies import Reply
from tests.metering.servers import running_server
from tests.metering.translate_streams import message_stream

GPT, OPUS = "openai/gpt-5.5", "anthropic/claude-opus-4-8"
TOOL = {"type": "function", "function": {"name": "run", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture
def server():
    with running_server(keys=(OPENAI_KEY, ANTHROPIC_KEY)) as running:
        yield running


@pytest.fixture
def door(tmp_path, server):
    with metered(tmp_path, server, third_door=True) as running:
        yield running


def _client(door) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{door.url}/v1", api_key="x", max_retries=0)


def test_each_maker_gets_its_own_dialect_and_the_client_chat_completions(door, server) -> None:
    server.script(*[Reply(text="zwölf", input_tokens=100, cached_tokens=40)] * 2)
    with _client(door) as client:
        answers = [client.chat.completions.create(**ask(model=model)) for model in (GPT, f"{OPUS}--judge")]
    assert [request.path for request in server.requests] == ["/v1/chat/completions", "/v1/messages"]
    assert [request.key for request in server.requests] == [OPENAI_KEY, ANTHROPIC_KEY]
    assert server.requests[1].headers["anthropic-version"] == "2023-06-01"
    assert not any(name.startswith("x-stainless") for name in server.requests[1].headers)
    assert json.loads(server.requests[0].body)["model"] == "gpt-5.5"
    assert json.loads(server.requests[1].body) == {
        "model": "claude-opus-4-8",
        "max_tokens": 50,
        "messages": [{"role": "user", "content": "hi"}],
    }
    for answer in answers:
        assert answer.object == "chat.completion"
        assert answer.choices[0].message.content == "zwölf"
        assert answer.choices[0].finish_reason == "stop"
        assert (answer.usage.prompt_tokens, answer.usage.prompt_tokens_details.cached_tokens) == (100, 40)
        assert answer._request_id
    rows = door.reserved()
    assert [row["dialect"] for row in rows] == ["openai.chat", "anthropic.messages"]
    assert [row["host"] for row in rows] == ["api.openai.com", "api.anthropic.com"]
    assert [row["model"] for row in rows] == ["gpt-5.5", "claude-opus-4-8"]
    assert [row["scope"].get("stage", "unknown") for row in rows] == ["unknown", "judge"]
    assert door.proxy.unattributed == 1
    opus = door.settled()[1]
    assert opus["usage"] == {"input": 100, "cached": 40, "output": 20, "tier": "standard"}
    assert opus["charged"] == 60 * 5 + 40 * 0.5 + 20 * 25


@pytest.mark.parametrize("include_usage", [False, True])
@pytest.mark.parametrize("split", [None, 9])
def test_streams(door, server, include_usage, split) -> None:
    server.script(*[Reply(text="zwölf Äpfel", input_tokens=100, split=split)] * 2)
    options = {"stream_options": {"include_usage": True}} if include_usage else {}
    with _client(door) as client:
        for model in (GPT, OPUS):
            chunks = list(client.chat.completions.create(**ask(model=model), stream=True, **options))
            assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "zwölf Äpfel"
            assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
            usages = [c.usage.prompt_tokens for c in chunks if c.usage]
            assert usages == ([100] if include_usage else [])
    assert [row["charged"] for row in door.settled()] == [1100, 1000]
    assert all("answer" in row for row in door.settled())


def test_a_streamed_tool_call_is_put_together_by_the_sdk(door, server) -> None:
    calls = [{"type": "tool_use", "id": f"toolu_{n}", "name": "run", "input": {"code": f"print({n})"}} for n in (1, 2)]
    message = {"id": "m", "type": "message", "role": "assistant", "model": "claude-opus-4-8", "stop_reason": "tool_use"}
    message |= {
        "content": [{"type": "text", "text": "I run"}, *calls],
        "usage": {"input_tokens": 9, "output_tokens": 9},
    }
    server.script(
        Reply(body=message_stream(message).decode(), content_type="text/event-stream"), Reply(body=message), Reply()
    )
    with _client(door) as client:
        with client.chat.completions.stream(**ask(model=OPUS), tools=[TOOL]) as stream:
            streamed = stream.get_final_completion()
        whole = client.chat.completions.create(**ask(model=OPUS), tools=[TOOL])
        for answer in (streamed, whole):
            choice = answer.choices[0]
            assert choice.message.content == "I run"
            assert choice.finish_reason == "tool_calls"
            assert [json.loads(call.function.arguments) for call in choice.message.tool_calls] == [
                {"code": "print(1)"},
                {"code": "print(2)"},
            ]
        # The way back: what the SDK hands out is what it sends in the next turn.
        turn = whole.choices[0].message.model_dump()
        results = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in turn["tool_calls"]]
        messages = [{"role": "user", "content": "hi"}, turn, *results]
        client.chat.completions.create(model=OPUS, messages=messages, max_tokens=50, tools=[TOOL])
    sent = json.loads(server.requests[2].body)["messages"]
    assert [turn["role"] for turn in sent] == ["user", "assistant", "user"]
    assert sent[1]["content"] == [{"type": "text", "text": "I run"}, *calls]
    assert [block["tool_use_id"] for block in sent[2]["content"]] == ["toolu_1", "toolu_2"]


def test_parameters_that_a_model_refuses_are_left_out_and_counted(door, server) -> None:
    """FusionKit 0.10 sends every model the same sampling."""
    sampling = {"temperature": 0.2, "top_p": 0.95, "max_tokens": 8192, "seed": 7}
    with _client(door) as client:
        for model in (GPT, OPUS):
            body = {"model": model, "messages": [{"role": "user", "content": "hi"}], **sampling}
            client.chat.completions.create(**body)
    gpt, opus = (json.loads(request.body) for request in server.requests)
    assert {name: gpt.get(name) for name in (*sampling, "max_completion_tokens")} == {
        "temperature": None,
        "top_p": None,
        "max_tokens": None,
        "max_completion_tokens": 8192,
        "seed": 7,
    }
    assert set(opus) == {"model", "messages", "max_tokens"}
    assert door.proxy.not_sent == {
        (GPT, "temperature"): 1,
        (GPT, "top_p"): 1,
        (OPUS, "temperature"): 1,
        (OPUS, "top_p"): 1,
        (OPUS, "seed"): 1,
    }


def test_a_request_without_a_limit_gets_the_model_s_own(door, server) -> None:
    httpx2.post(f"{door.url}/v1/chat/completions", json={"model": OPUS, "messages": ask()["messages"]})
    assert json.loads(server.requests[0].body)["max_tokens"] == 128_000


def test_what_cannot_be_translated_is_refused_by_name(door, server) -> None:
    with _client(door) as client:
        with pytest.raises(openai.BadRequestError, match=r"logit_bias: .* not translated"):
            client.chat.completions.create(**ask(model=OPUS), logit_bias={"5": 1})
        with pytest.raises(openai.BadRequestError, match=r"openai\.responses, which is not translated"):
            client.responses.create(model=OPUS, input="hi", max_output_tokens=9)
        with pytest.raises(openai.BadRequestError, match="no upstream"):
            client.chat.completions.create(**ask(model="mistral/large"))
        with pytest.raises(openai.BadRequestError, match="no upstream"):
            client.chat.completions.create(**ask(model="openai/"))
    assert server.requests == []
    assert door.rows("reserve") == []
    assert len(door.proxy.refusals) == 4


def test_own_dialects_are_forwarded_with_the_bare_id(door, server) -> None:
    with _client(door) as client:
        client.responses.create(model=GPT, input="hi", max_output_tokens=9)
    httpx2.post(f"{door.url}/v1/messages", json={**ask(model=OPUS), "max_tokens": 9})
    assert [json.loads(request.body)["model"] for request in server.requests] == ["gpt-5.5", "claude-opus-4-8"]


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        ("rate_limit", 429, "rate_limit_exceeded"),
        ("overloaded", 529, "overloaded"),
        ("insufficient_quota", 400, "insufficient_quota"),
        ("context_length", 400, "context_length_exceeded"),
        ("model_not_found", 404, "model_not_found"),
    ],
)
def test_errors_of_anthropic_arrive_in_openai_s_words(door, server, kind, status, code) -> None:
    server.script(Reply(kind=kind, headers={"retry-after": "3"}))
    with _client(door) as client, pytest.raises(openai.APIStatusError) as caught:
        client.chat.completions.create(**ask(model=OPUS))
    assert (caught.value.status_code, caught.value.code) == (status, code)
    assert caught.value.response.headers["retry-after"] == "3"
    assert door.settled()[0]["charged"] == 0


@pytest.mark.parametrize("kind", ["html", "choices_null", "choices_empty", "error_object"])
def test_a_200_that_is_no_answer_is_handed_on(door, server, kind) -> None:
    server.script(kind)
    answer = httpx2.post(f"{door.url}/v1/chat/completions", json=ask(model=OPUS))
    assert answer.status_code == 200
    [row] = door.settled()
    assert row["outcome"] == ("empty" if kind == "choices_empty" else "pipeline_error")
    if kind == "choices_empty":  # an empty list of blocks is an empty answer
        assert answer.json()["choices"][0]["message"]["content"] == ""
    else:
        assert "choices" not in answer.text or answer.json()["choices"] is None


def test_an_error_event_inside_a_translated_stream(tmp_path, server) -> None:
    server.script(Reply(kind="error_event", cut_after=4))
    with (
        metered(tmp_path, server, third_door=True) as door,
        _client(door) as client,
        pytest.raises(openai.APIError, match="Overloaded"),
    ):
        list(client.chat.completions.create(**ask(model=OPUS), stream=True))
    assert door.settled()[0]["estimated"]


def test_a_client_that_hangs_up_and_one_that_comes_again(tmp_path, server) -> None:
    server.script(Reply(text="one long answer", gap_s=0.02))
    with metered(tmp_path, server, third_door=True) as door:
        url = f"{door.url}/v1/chat/completions"
        with httpx2.stream("POST", url, json=ask(model=OPUS, stream=True)) as answer:
            next(answer.iter_raw())
    assert not door.settled()[0]["estimated"]
    with metered(tmp_path, server, third_door=True, session="later") as door, _client(door) as client:
        chunks = list(client.chat.completions.create(**ask(model=OPUS), stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "one long answer"
    assert len(server.billed()) == 1


def test_models_of_both_makers_are_listed_with_their_prefix(door, server) -> None:
    with _client(door) as client:
        names = {model.id for model in client.models.list()}
    assert {GPT, OPUS} <= names
    assert all(name.startswith(("openai/", "anthropic/")) for name in names)
    with running_server() as other:
        assert other.billed() == []
    server.keys = frozenset({OPENAI_KEY})
    answer = httpx2.get(f"{door.url}/v1/models")
    assert answer.status_code == 401


def test_a_maker_s_id_goes_to_its_maker_whatever_the_role_s_upstream(tmp_path, server) -> None:
    upstreams = {"*": "https://api.openai.com"}
    with metered(tmp_path, server, third_door=True, upstreams=upstreams) as door:
        httpx2.post(f"{door.url}/v1/chat/completions", json=ask(model=OPUS))
        httpx2.post(f"{door.url}/v1/chat/completions", json=ask(model="gpt-5.5"))
    assert [request.path for request in server.requests] == ["/v1/messages", "/v1/chat/completions"]


def test_passages_without_a_server() -> None:
    nothing = ThirdDoor()
    assert nothing.passage("openai.chat", "/v1/chat/completions", {"model": GPT}) is None
    one = ThirdDoor({"openai": "https://api.openai.com"})
    for model in ("anthropic/claude", "gpt-5.5", "openai/", "/x", "", 5, None):
        assert one.passage("openai.chat", "/v1/chat/completions", {"model": model}) is None
    with pytest.raises(ForeignDialectError):
        one.passage("anthropic.messages", "/v1/messages", {"model": GPT})
    unknown = one.passage("openai.chat", "/v1/chat/completions", {"model": "openai/new", "max_tokens": 5, "seed": 1})
    assert unknown is not None
    assert unknown.document == {"model": "new", "max_tokens": 5, "seed": 1}
    both = {"model": GPT, "max_tokens": 5, "max_completion_tokens": 6}
    asked_twice = one.passage("openai.chat", "/v1/chat/completions", both)
    assert asked_twice is not None
    assert asked_twice.document == {**both, "model": "gpt-5.5"}
    assert models_listed("openai", {"data": [{"id": "a"}, {"id": 5}, "x"]}) == [
        {"id": "openai/a", "object": "model", "created": 0, "owned_by": "openai"}
    ]
    assert models_listed("openai", []) == []
