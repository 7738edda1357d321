"""Lanes: one connection for each call that is open, used again, closed when idle for long or broken."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from pytest_fusion_audit.metering.lanes import Lanes
from tests.metering.doors import chat
from tests.metering.servers import Reply, Server, running_server


@pytest.fixture
def server():
    with running_server() as running:
        yield running


def run(server: Server, work: Any, **settings: Any) -> Lanes:
    """Run ``work(client, url)`` with a client on lanes; returns the lanes as they were before they were closed."""

    async def main() -> Lanes:
        lanes = Lanes(**settings)
        async with httpx2.AsyncClient(transport=lanes, timeout=10) as client:
            await work(client, f"{server.url}/v1/chat/completions", lanes)
            return lanes

    return asyncio.run(main())


def free(lanes: Lanes) -> int:
    return sum(len(each) for each in lanes._free.values())


def test_as_many_lanes_as_calls_were_open_at_once(server: Server) -> None:
    async def work(client: httpx2.AsyncClient, url: str, lanes: Lanes) -> None:
        server.script(*[Reply(latency_s=0.05)] * 5)
        for _ in range(3):
            answers = await asyncio.gather(*(client.post(url, json=chat(str(n))) for n in range(5)))
            assert [answer.status_code for answer in answers] == [200] * 5
        assert (len(lanes._all), free(lanes)) == (5, 5)

    lanes = run(server, work)
    assert (len(lanes._all), server.open_most) == (0, 5)
    assert len(server.billed()) == 15


def test_a_stream_keeps_its_lane_until_it_is_closed(server: Server) -> None:
    async def work(client: httpx2.AsyncClient, url: str, lanes: Lanes) -> None:
        async with client.stream("POST", url, json=chat("hi", stream=True)) as response:
            assert free(lanes) == 0
            chunks = response.aiter_raw()
            await anext(chunks)
            await client.post(url, json=chat("another"))
            assert (len(lanes._all), free(lanes)) == (2, 1)
        assert free(lanes) == 2
        await client.post(url, json=chat("after the first was left in the middle"))
        await client.post(url, json=chat("and again"))

    run(server, work)


@pytest.mark.parametrize("kind", ["reset", "cut"])
def test_a_broken_connection_does_not_break_the_next_call(server: Server, kind: str) -> None:
    async def work(client: httpx2.AsyncClient, url: str, lanes: Lanes) -> None:
        server.script(kind)
        with pytest.raises(httpx2.TransportError):
            await client.post(url, json=chat("hi"))
        assert (await client.post(url, json=chat("hi"))).status_code == 200

    run(server, work)


def test_a_server_that_is_not_there(server: Server) -> None:
    async def work(client: httpx2.AsyncClient, url: str, lanes: Lanes) -> None:
        with pytest.raises(httpx2.ConnectError):
            await client.post("http://127.0.0.1:9/v1/chat/completions", json=chat("hi"))
        assert len(lanes._all) == 0

    run(server, work)


def test_a_cancelled_call_gives_its_lane_up(server: Server) -> None:
    async def work(client: httpx2.AsyncClient, url: str, lanes: Lanes) -> None:
        server.script("hang")
        task = asyncio.create_task(client.post(url, json=chat("hi")))
        while not server.rows:  # noqa: ASYNC110 - the server is in another thread
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        assert len(lanes._all) == 0

    run(server, work)


def test_connections_that_were_idle_for_long_are_closed(server: Server) -> None:
    now = 0.0

    async def work(client: httpx2.AsyncClient, url: str, lanes: Lanes) -> None:
        nonlocal now
        server.script(*[Reply(latency_s=0.05)] * 3)
        await asyncio.gather(*(client.post(url, json=chat(str(n))) for n in range(3)))
        now = 20.0
        await client.post(url, json=chat("one is used"))
        assert len(lanes._all) == 3
        now = 40.0
        await client.post(url, json=chat("the others were not"))
        assert len(lanes._all) == 1
        now = 100.0
        await client.post(url, json=chat("nor was this one"))
        assert len(lanes._all) == 1

    run(server, work, now=lambda: now)
