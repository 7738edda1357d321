"""The proxy as clients see it: the makers' own SDKs and bare HTTP, against a real loopback server behind it."""

from __future__ import annotations

import anthropic
import httpx2
import openai
import pytest

from pytest_fusion_audit.metering.scope import Scope
from tests.metering.proxy_run import ANTHROPIC_KEY, OPENAI_KEY, Metered, ask, ask_anthropic, metered
from tests.metering.server_replies import Reply
from tests.metering.servers import running_server

GPT_IN, GPT_OUT = 5, 30  # dollars per million tokens = micro-dollars per token
OPUS_IN, OPUS_OUT = 5, 25


@pytest.fixture
def server():
    with running_server(keys=(OPENAI_KEY, ANTHROPIC_KEY)) as running:
        yield running


@pytest.fixture
def door(tmp_path, server):
    with metered(tmp_path, server) as running:
        yield running


def _openai(door: Metered, role: str = "judge") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{door.url}/{role}/v1", api_key="x", max_retries=0)


def _anthropic(door: Metered) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=f"{door.url}/panel-opus", api_key="x", max_retries=0)


def test_plain_answers_of_all_dialects_are_charged_from_their_usage(door, server) -> None:
    server.script(*[Reply(input_tokens=100, output_tokens=20)] * 3)
    with _openai(door) as client:
        chat = client.chat.completions.create(**ask())
        response = client.responses.create(model="gpt-5.5", input="hi", max_output_tokens=50)
    with _anthropic(door) as client:
        message = client.messages.create(**ask_anthropic())
    assert chat.choices[0].message.content == "answer 1"
    assert response.output_text == "answer 2"
    assert message.content[0].text == "answer 3"
    assert [row["charged"] for row in door.settled()] == [
        100 * GPT_IN + 20 * GPT_OUT,
        100 * GPT_IN + 20 * GPT_OUT,
        100 * OPUS_IN + 20 * OPUS_OUT,
    ]
    assert [row["scope"]["stage"] for row in door.reserved()] == ["judge", "judge", "panel"]
    assert door.reserved()[2]["scope"]["detail"] == "opus"
    assert door.proxy.unattributed == 0
    assert not door.proxy.faults


def test_streams_of_all_dialects_arrive_whole_and_are_charged(door, server) -> None:
    server.script(*[Reply(text="zwölf Äpfel", input_tokens=100, split=7)] * 3)
    with _openai(door) as client:
        chunks = list(client.chat.completions.create(**ask(), stream=True))
        events = list(client.responses.create(model="gpt-5.5", input="hi", max_output_tokens=50, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "zwölf Äpfel"
    assert events[-1].response.output_text == "zwölf Äpfel"
    with _anthropic(door) as client, client.messages.stream(**ask_anthropic()) as stream:
        message = stream.get_final_message()
    assert message.content[0].text == "zwölf Äpfel"
    assert [row["charged"] for row in door.settled()] == [1100, 1100, 1000]
    assert all(not row["estimated"] and "answer" in row for row in door.settled())


def test_a_usage_chunk_is_handed_on_only_to_those_who_asked(door, server) -> None:
    with _openai(door) as client:
        unasked = list(client.chat.completions.create(**ask(), stream=True))
        asked = list(client.chat.completions.create(**ask(), stream=True, stream_options={"include_usage": True}))
    assert all(chunk.choices and chunk.usage is None for chunk in unasked)
    assert asked[-1].choices == []
    assert asked[-1].usage.completion_tokens == 20
    assert len(door.settled()) == 2
    assert not any(row["estimated"] for row in door.settled())


def test_models_are_listed_and_cost_nothing(door) -> None:
    with _openai(door) as client:
        assert [model.id for model in client.models.list()] == ["gpt-5.5", "claude-opus-4-8"]
        assert client.models.retrieve("gpt-5.5").id == "gpt-5.5"
    assert [(row["reserved"], row["dialect"]) for row in door.reserved()] == [(0, "openai.models")] * 2
    assert [(row["charged"], row["estimated"]) for row in door.settled()] == [(0, False)] * 2
    assert door.proxy.unattributed == 0


@pytest.mark.parametrize(
    ("kind", "said"),
    [("key_refused", "the key in OPENAI_API_KEY was refused"), ("insufficient_quota", "no quota left")],
)
def test_a_refused_key_or_an_empty_account_stops_the_run_of_a_gateway_too(door, server, kind, said) -> None:
    server.script(kind)
    with _openai(door) as client:
        with pytest.raises(openai.APIStatusError) as first:
            client.chat.completions.create(**ask())
        with pytest.raises(openai.APIStatusError) as second:
            client.chat.completions.create(**ask("again"))
    assert first.value.status_code in {401, 429}  # passed through as it came
    assert (second.value.status_code, second.value.code) == (402, "run_stopped")
    assert said in str(second.value)
    assert len(server.requests) == 1


def test_a_drill_is_refused_on_purpose_and_stops_nothing(tmp_path, server) -> None:
    with metered(tmp_path, server, base=Scope(phase="6.2", arm="drill:401", reuse=False)) as door:
        server.script("key_refused")
        with _openai(door) as client:
            with pytest.raises(openai.AuthenticationError):
                client.chat.completions.create(**ask())
            assert client.chat.completions.create(**ask()).choices


def test_a_refusal_states_the_facts_and_sends_nothing(tmp_path, server) -> None:
    with metered(tmp_path, server, cap=1000) as door:
        with _openai(door) as client, pytest.raises(openai.APIStatusError) as caught:
            client.chat.completions.create(**ask())
        client = openai.OpenAI(base_url=f"{door.url}/judge/v1", api_key="x")  # would try again on other errors
        with client, pytest.raises(openai.APIStatusError):
            client.chat.completions.create(**ask(), stream=True)
        with _anthropic(door) as client, pytest.raises(anthropic.APIStatusError) as other:
            client.messages.create(**ask_anthropic(max_tokens=5000))
        refusals = door.proxy.refusals
        assert door.rows("reserve") == []
    error = caught.value
    assert error.status_code == other.value.status_code == 402
    assert error.code == "cost_limit_exceeded"
    assert error.type == "fusion_audit"
    facts = refusals[0][1].facts()
    assert {name: error.body[name] for name in facts} == facts
    assert facts["cap_usd"] == 0.001
    assert facts["phase"] == "6.2"
    assert len(refusals) == 3  # none was tried again
    assert refusals[0][0].stage == "judge"
    assert server.requests == []


def test_a_stopped_run_and_an_unknown_model_are_refused(door, server) -> None:
    door.calls.ledger.stop("the key was refused")
    with _openai(door) as client:
        with pytest.raises(openai.APIStatusError, match="the key was refused") as caught:
            client.chat.completions.create(**ask())
        assert caught.value.status_code == 402
        with pytest.raises(openai.BadRequestError, match="gpt-unheard-of"):
            client.chat.completions.create(**ask(model="gpt-unheard-of"))
    assert server.requests == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/uploads"),
        ("DELETE", "/v1/batches/b1"),
        ("POST", "/v1/messages/batches/b1/results"),
        ("POST", "/v1/embeddings"),
        ("GET", "/v1/organization/admin_api_keys"),
        ("DELETE", "/v1/models/ft:gpt"),
        ("GET", "/v1/chat/completions"),
    ],
)
def test_what_cannot_be_metered_is_refused_by_name(door, server, method, path) -> None:
    answer = httpx2.request(method, f"{door.url}/judge{path}", json={} if method == "POST" else None)
    assert answer.status_code == 400
    assert path in answer.json()["error"]["message"]
    assert server.requests == []


def test_a_wrong_token_is_answered_404_and_spends_nothing(door, server) -> None:
    root = door.url.rpartition("/s/")[0]
    for path in (
        "/v1/chat/completions",
        "/s/abcdefghijklmnopqrstuvwx/judge/v1/chat/completions",
        "/s/%C3%A4/v1/models",
    ):
        answer = httpx2.post(root + path, json=ask())
        assert answer.status_code == 404
        assert door.proxy.token not in answer.text
    assert server.requests == []
    assert door.rows("reserve") == []


def test_a_body_that_is_no_request_is_refused(door, server) -> None:
    for body in (b"", b"not json", b"[]", b'{"model": "gpt-5.5", "messages": "\xff"}', b'{"messages": []}'):
        answer = httpx2.post(f"{door.url}/judge/v1/chat/completions", content=body)
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "refused"
    assert server.requests == []
    assert not door.proxy.faults


@pytest.mark.parametrize(
    ("kind", "status"), [("rate_limit", 429), ("unavailable", 503), ("overloaded", 529), ("context_length", 400)]
)
def test_errors_of_the_upstream_are_passed_through_at_no_charge(door, server, kind, status) -> None:
    server.script(Reply(kind=kind, headers={"retry-after": "7"}), Reply(kind=kind))
    with _openai(door) as client, pytest.raises(openai.APIStatusError) as caught:
        client.chat.completions.create(**ask())
    assert caught.value.status_code == status
    assert caught.value.response.headers["retry-after"] == "7"
    assert caught.value.type != "fusion_audit"
    with _anthropic(door) as client, pytest.raises(anthropic.APIStatusError) as other:
        client.messages.create(**ask_anthropic())
    assert other.value.status_code == status
    assert [row["charged"] for row in door.settled()] == [0, 0]


def test_replay_answers_from_the_store_and_a_miss_is_not_tried_again(tmp_path, server) -> None:
    server.script(Reply(text="bought"), Reply(text="streamed"))
    with metered(tmp_path, server) as door, _openai(door) as client:
        client.chat.completions.create(**ask())
        list(client.chat.completions.create(**ask(), stream=True))
    asked = len(server.requests)
    with metered(tmp_path, server, mode="replay", session="later") as door:
        before = door.rows()
        client = openai.OpenAI(base_url=f"{door.url}/judge/v1", api_key="x")
        with client:
            assert client.chat.completions.create(**ask()).choices[0].message.content == "bought"
            chunks = list(client.chat.completions.create(**ask(), stream=True))
            assert all(chunk.choices for chunk in chunks)
            assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "streamed"
            with pytest.raises(openai.APIStatusError, match="all were taken") as caught:
                client.chat.completions.create(**ask())
        assert caught.value.code == "replay_miss"
        assert len(door.proxy.refusals) == 1
        assert door.rows() == before
    assert len(server.requests) == asked


def test_a_resume_buys_nothing_twice_but_errors_again(tmp_path, server) -> None:
    server.script(Reply(text="first"), "unavailable")
    with metered(tmp_path, server) as door, _openai(door) as client:
        client.chat.completions.create(**ask("one"))
        with pytest.raises(openai.APIStatusError):
            client.chat.completions.create(**ask("two"))
    with metered(tmp_path, server, session="later") as door, _openai(door) as client:
        again = client.chat.completions.with_raw_response.create(**ask("one"))
        assert again.parse().choices[0].message.content == "first"
        assert again.headers["x-fusion-stored"] == door.settled()[0]["id"]
        client.chat.completions.create(**ask("two"))
    assert [row["prompt"] for row in server.billed()] == ["one", "two"]


def test_drills_never_reuse(tmp_path, server) -> None:
    for session in ("one", "two"):
        with (
            metered(tmp_path, server, session=session, base=Scope(phase="5", reuse=False)) as door,
            _openai(door) as client,
        ):
            client.chat.completions.create(**ask())
    assert len(server.billed()) == 2
