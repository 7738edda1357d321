"""Streams, clients that hang up, gateways that retry, many at once: what the journal says in the end."""

from __future__ import annotations

import asyncio
import json
from collections import Counter

import httpx2
import openai
import pytest

from tests.metering.proxy_run import ask, ask_anthropic, made_proxy, metered
from tests.metering.server_replies import Reply
from tests.metering.servers import running_server

SLOW = Reply(text="a long answer in many pieces", input_tokens=100, gap_s=0.03)
RESPONSES = {"model": "gpt-5.5", "input": "hi", "max_output_tokens": 50, "stream": True}
WHOLE = 100 * 5 + 20 * 30


@pytest.fixture
def server():
    with running_server() as running:
        yield running


def _post(door, body, timeout_s=30.0, path="judge/v1/chat/completions"):
    return httpx2.post(f"{door.url}/{path}", json=body, timeout=timeout_s)


@pytest.mark.parametrize(
    ("path", "body", "charged"),
    [
        ("judge/v1/chat/completions", ask(stream=True), WHOLE),
        ("judge/v1/responses", RESPONSES, WHOLE),
        ("panel-opus/v1/messages", ask_anthropic(stream=True), 100 * 5 + 20 * 25),
    ],
)
def test_a_client_that_hangs_up_midway_does_not_lose_the_usage(tmp_path, server, path, body, charged) -> None:
    server.script(SLOW)
    with metered(tmp_path, server) as door:
        with httpx2.stream("POST", f"{door.url}/{path}", json=body) as answer:
            next(answer.iter_raw())
        assert door.settled() == []
    [row] = door.settled()
    assert row["charged"] == charged
    assert not row["estimated"]
    assert "answer" in row  # a resume finds the whole answer
    assert door.rows("orphan") == []
    assert not door.proxy.faults


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_hangs_up_before_the_first_byte_is_paid_for_all_the_same(tmp_path, server, stream) -> None:
    server.script(Reply(input_tokens=100, latency_s=0.6))
    with metered(tmp_path, server) as door, pytest.raises(httpx2.ReadTimeout):
        _post(door, ask(stream=stream), timeout_s=0.2)
    [row] = door.settled()
    assert (row["charged"], row["estimated"], "answer" in row) == (WHOLE, False, True)


def test_a_stream_without_a_client_that_takes_too_long_stays_charged_at_its_reservation(tmp_path, server) -> None:
    server.script(Reply(text="x" * 400, gap_s=0.2))
    with metered(tmp_path, server, drain_ceiling_s=0.1) as door:
        body = ask(stream=True)
        with httpx2.stream("POST", f"{door.url}/judge/v1/chat/completions", json=body) as answer:
            next(answer.iter_raw())
    [row] = door.settled()
    assert row["charged"] == door.reserved()[0]["reserved"]
    assert row["estimated"]
    assert "answer" not in row


@pytest.mark.parametrize(
    ("path", "body", "last"),
    [
        ("judge/v1/chat/completions", ask(stream=True), b"[DONE]"),
        ("judge/v1/responses", RESPONSES, b"response.completed"),
        ("panel-opus/v1/messages", ask_anthropic(stream=True), b"message_stop"),
    ],
)
@pytest.mark.parametrize("split", [None, 11])
def test_a_stream_is_settled_before_its_last_event_is_handed_on(  # noqa: PLR0917 - what is parametrized
    tmp_path, server, path, body, last, split
) -> None:
    server.script(Reply(gap_s=0.01, split=split))
    with metered(tmp_path, server) as door:
        seen = b""
        with httpx2.stream("POST", f"{door.url}/{path}", json=body) as answer:
            for chunk in answer.iter_raw():
                seen += chunk
                if b"\n\n" in seen.partition(last)[2]:
                    assert len(door.settled()) == 1
        assert last in seen


def test_chunks_arrive_one_by_one(tmp_path, server) -> None:
    server.script(SLOW)
    with metered(tmp_path, server) as door:
        body = ask(stream=True)
        with httpx2.stream("POST", f"{door.url}/judge/v1/chat/completions", json=body) as answer:
            chunks = [(chunk, len(door.settled())) for chunk in answer.iter_raw()]
    assert len(chunks) > 5
    assert chunks[0][1] == 0


@pytest.mark.parametrize("kind", ["cut", "error_event", "ends_early", "no_usage"])
def test_a_stream_that_goes_wrong_goes_wrong_for_the_client_too(tmp_path, server, kind) -> None:
    server.script(Reply(kind=kind))
    with metered(tmp_path, server) as door:
        url = f"{door.url}/judge/v1/chat/completions"
        seen = b""
        try:
            with httpx2.stream("POST", url, json=ask(stream=True)) as answer:
                for chunk in answer.iter_raw():
                    seen += chunk
            broke = False
        except httpx2.RemoteProtocolError:
            broke = True
    assert broke == (kind == "cut")
    assert (b"[DONE]" in seen) == (kind == "no_usage")
    assert (b'"error"' in seen) == (kind == "error_event")
    [row] = door.settled()
    assert row["charged"] == door.reserved()[0]["reserved"]
    assert row["estimated"]
    assert ("answer" in row) == (kind == "no_usage")
    assert not door.proxy.faults


def test_nine_tries_of_a_gateway_are_nine_rows(tmp_path, server) -> None:
    """FusionKit 0.8: three retries around an SDK that tries three times."""
    server.script(*[Reply(kind="unavailable", headers={"retry-after-ms": "1"})] * 9)
    with metered(tmp_path, server) as door:
        for _ in range(3):
            client = openai.OpenAI(base_url=f"{door.url}/panel-gpt/v1", api_key="x", max_retries=2)
            with client, pytest.raises(openai.InternalServerError):
                client.chat.completions.create(**ask())
    assert len(server.requests) == 9
    assert len(door.reserved()) == 9
    assert [(row["status"], row["charged"]) for row in door.settled()] == [(503, 0)] * 9
    assert door.rows("orphan") == []
    balance = door.calls.balances.total()
    assert (balance.spent, balance.reserved, balance.calls) == (0, 0, 9)


def test_tries_that_nobody_answers_stay_charged_until_the_cap_stops_the_gateway(tmp_path, server) -> None:
    server.script(*["reset"] * 9)
    with metered(tmp_path, server, cap=10_000) as door:
        answers = [_post(door, ask()).status_code for _ in range(9)]
        amount = door.reserved()[0]["reserved"]
        fit = 10_000 // amount
        assert 0 < fit < 9
    assert answers == [502] * fit + [402] * (9 - fit)
    assert len(server.requests) == fit
    assert len(door.rows("orphan")) == fit
    assert door.calls.balances.total().orphaned == fit * amount <= 10_000


def test_a_gateway_error_may_have_been_billed(tmp_path, server) -> None:
    server.script(
        Reply(status=502, body="<html>Bad gateway</html>"), Reply(status=504, body={"error": {"message": "t"}})
    )
    with metered(tmp_path, server) as door:
        assert [_post(door, ask()).status_code for _ in range(2)] == [502, 504]
    reserved = door.reserved()[0]["reserved"]
    assert [(row["charged"], row["estimated"]) for row in door.settled()] == [(reserved, True)] * 2


def test_an_upstream_that_is_not_there_costs_nothing(tmp_path) -> None:
    with running_server() as gone:
        pass
    with metered(tmp_path, gone) as door:
        answer = _post(door, ask())
    assert answer.status_code == 502
    assert answer.json()["error"]["code"] == "upstream_unreachable"
    assert [row["charged"] for row in door.settled()] == [0]


def test_fifty_streams_at_once_do_not_mix(tmp_path, server) -> None:
    async def one(client: httpx2.AsyncClient, url: str, number: int) -> str:
        prompt = f"number {number} " + f'[[script:{{"text": "echo of {number}", "split": 13, "gap_s": 0.002}}]]'
        text = ""
        body = ask(prompt, stream=True)
        async with client.stream("POST", f"{url}/panel-m{number}/v1/chat/completions", json=body) as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data: {"):
                    text += json.loads(line[6:])["choices"][0]["delta"].get("content") or ""
        return text

    async def everybody(url: str) -> list[str]:
        limits = httpx2.Limits(max_connections=None)
        async with httpx2.AsyncClient(limits=limits, timeout=60) as client:
            return await asyncio.gather(*(one(client, url, number) for number in range(50)))

    with metered(tmp_path, server) as door:
        texts = asyncio.run(everybody(door.url))
    assert texts == [f"echo of {number}" for number in range(50)]
    assert len(server.billed()) == 50
    by_id = {row["id"]: row for row in door.settled()}
    members = Counter(row["scope"]["detail"] for row in door.reserved())
    assert members == {f"m{number}": 1 for number in range(50)}
    assert len(by_id) == 50
    assert not any(row["estimated"] for row in by_id.values())
    assert sum(row["usage"]["input"] for row in by_id.values()) == sum(
        row["usage"]["prompt_tokens"] for row in server.billed()
    )


def test_the_proxy_serves_in_the_loop_of_its_caller_too(tmp_path, server) -> None:
    from pytest_fusion_audit.metering.proxy_server import serving  # noqa: PLC0415

    async def main() -> tuple[str, str]:
        with made_proxy(tmp_path, server) as (proxy, calls):
            async with serving(proxy) as url, openai.AsyncOpenAI(base_url=f"{url}/judge/v1", api_key="x") as client:
                answer = await client.chat.completions.create(**ask())
            with pytest.raises(TimeoutError, match="of the block"):
                async with serving(proxy):
                    raise TimeoutError("of the block")
            await proxy.transport.aclose()
            return answer.choices[0].message.content, calls.folder.name

    assert asyncio.run(main()) == ("answer 1", "calls")


def test_an_error_while_serving_in_a_thread_reaches_the_caller(tmp_path, server, monkeypatch) -> None:
    from pytest_fusion_audit.metering import proxy_server  # noqa: PLC0415

    async def broken(self, sockets=None) -> None:
        raise OSError("no room")

    monkeypatch.setattr(proxy_server._Server, "serve", broken)
    with pytest.raises(OSError, match="no room"), metered(tmp_path, server):
        pass
