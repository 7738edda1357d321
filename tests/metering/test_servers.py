"""The servers that every other test of this folder rests on, seen by the makers' own SDKs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import anthropic
import openai
import pytest

from tests.metering.server_batches import BatchScript
from tests.metering.server_replies import Reply
from tests.metering.servers import Server, running_server, server_process

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def server():
    with running_server() as running:
        yield running


def _openai(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)


def _anthropic(url: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=url, api_key="k", max_retries=0)


def _ask(prompt: str) -> dict:
    return {"model": "gpt-5.5", "messages": [{"role": "user", "content": prompt}]}


def test_plain_answers_of_both_makers(server: Server) -> None:
    with _openai(server.url) as client:
        chat = client.chat.completions.create(**_ask("hi"))
        response = client.responses.create(model="gpt-5.5", input="hi")
        assert chat.choices[0].message.content == "answer 1"
        assert response.output_text == "answer 2"
        assert [model.id for model in client.models.list()] == ["gpt-5.5", "claude-opus-4-8"]
    with _anthropic(server.url) as client:
        message = client.messages.create(model="claude-opus-4-8", max_tokens=9, messages=_ask("hi")["messages"])
    assert message.content[0].text == "answer 3"
    bill = server.billed()
    assert [row["model"] for row in bill] == ["gpt-5.5", "gpt-5.5", "claude-opus-4-8"]
    assert bill[0]["usage"] == chat.usage.model_dump(exclude_none=True)
    assert bill[2]["usage"]["output_tokens"] == message.usage.output_tokens


@pytest.mark.parametrize("split", [None, 1, 7])
def test_streams_of_both_makers(server: Server, split: int | None) -> None:
    server.script(*[Reply(text="zwölf Äpfel", split=split)] * 3)
    with _openai(server.url) as client:
        stream = client.chat.completions.create(**_ask("hi"), stream=True, stream_options={"include_usage": True})
        chunks = list(stream)
        assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "zwölf Äpfel"
        assert chunks[-1].usage.completion_tokens == 20
        events = list(client.responses.create(model="gpt-5.5", input="hi", stream=True))
        assert events[-1].response.output_text == "zwölf Äpfel"
    with (
        _anthropic(server.url) as client,
        client.messages.stream(model="claude-opus-4-8", max_tokens=9, messages=_ask("hi")["messages"]) as stream,
    ):
        message = stream.get_final_message()
    assert message.content[0].text == "zwölf Äpfel"
    assert message.usage.output_tokens == 20


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("rate_limit", 429),
        ("insufficient_quota", 429),
        ("overloaded", 529),
        ("key_refused", 401),
        ("context_length", 400),
    ],
)
def test_errors_cost_nothing(server: Server, kind: str, status: int) -> None:
    server.script(kind)
    with _openai(server.url) as client, pytest.raises(openai.APIStatusError) as error:
        client.chat.completions.create(**_ask("hi"))
    assert error.value.status_code == status
    assert server.billed() == []


def test_a_marker_scripts_one_request_and_may_end_after_some_times(server: Server) -> None:
    with _openai(server.url) as client:
        for _ in range(2):
            with pytest.raises(openai.RateLimitError):
                client.chat.completions.create(**_ask("hi [[script:rate_limit*2]]"))
        client.chat.completions.create(**_ask("hi [[script:rate_limit*2]]"))
    assert [row["billed"] for row in server.rows] == [False, False, True]


def test_keys_are_checked_in_both_styles() -> None:
    with running_server(keys=["good"]) as server, _openai(server.url) as client:
        with pytest.raises(openai.AuthenticationError):
            client.models.list()
        with client.with_options(api_key="good") as allowed:
            assert allowed.models.list().data


def test_a_connection_that_is_reset_was_billed(server: Server) -> None:
    server.script("reset")
    with _openai(server.url) as client, pytest.raises(openai.APIConnectionError):
        client.chat.completions.create(**_ask("hi"))
    assert len(server.billed()) == 1


def test_openai_batches_reorder_err_expire_and_survive_a_restart(tmp_path: Path) -> None:
    rows = [
        {"custom_id": f"t{n}", "method": "POST", "url": "/v1/chat/completions", "body": _ask(prompt)}
        for n, prompt in enumerate(["one", "two [[script:batch_error]]", "three [[script:batch_expired]]", "four"])
    ]
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    with running_server(state=tmp_path) as server, _openai(server.url) as client:
        server.batches.script = BatchScript(polls=1)
        file = client.files.create(file=("in.jsonl", content), purpose="batch")
        batch = client.batches.create(
            input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"a": "b"}
        )
        assert client.batches.retrieve(batch.id).status == "in_progress"
    with running_server(state=tmp_path) as server, _openai(server.url) as client:
        batch = client.batches.retrieve(batch.id)
        assert (batch.status, batch.request_counts.completed, batch.request_counts.failed) == ("completed", 2, 2)
        good = [json.loads(line) for line in client.files.content(batch.output_file_id).text.splitlines()]
        bad = [json.loads(line) for line in client.files.content(batch.error_file_id).text.splitlines()]
        assert [row["custom_id"] for row in good] == ["t3", "t0"]
        assert [row["custom_id"] for row in bad] == ["t2", "t1"]
        assert len(server.billed()) == 2
        client.batches.retrieve(batch.id)
        client.files.delete(file.id)
        assert file.id not in [each.id for each in client.files.list()]
        assert len(server.billed()) == 2


def test_anthropic_batches(server: Server) -> None:
    server.batches.script = BatchScript(polls=0)
    with _anthropic(server.url) as client:
        requests = [
            {"custom_id": f"t{n}", "params": {**_ask(prompt), "max_tokens": 9}}
            for n, prompt in enumerate(["one", "two [[script:batch_error]]", "three [[script:batch_expired]]"])
        ]
        batch = client.messages.batches.create(requests=requests)
        batch = client.messages.batches.retrieve(batch.id)
        assert batch.processing_status == "ended"
        assert batch.request_counts.succeeded == 1
        results = {row.custom_id: row.result.type for row in client.messages.batches.results(batch.id)}
    assert results == {"t2": "expired", "t1": "errored", "t0": "succeeded"}
    assert [row["batch"] for row in server.billed()] == [True]


def test_a_server_of_its_own_process_keeps_its_bill_in_a_file(tmp_path: Path) -> None:
    with server_process(tmp_path / "bill.jsonl") as server, _openai(server.url) as client:
        server.script("rate_limit", Reply(text="scripted"))
        with pytest.raises(openai.RateLimitError):
            client.chat.completions.create(**_ask("hi"))
        assert client.chat.completions.create(**_ask("hi")).choices[0].message.content == "scripted"
        assert sum(server.counts().values()) == 1
        assert server.open_most() == 1
