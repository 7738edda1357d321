"""Hosts of ``endpoints.allow`` on the way out and back: names, prices and who answered; SDK, proxy and batches."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from pytest_fusion_audit.configuration import parse_configuration
from pytest_fusion_audit.metering.attribution import Attribution
from pytest_fusion_audit.metering.batches import Batches, BatchRequest
from pytest_fusion_audit.metering.calls import Calls
from pytest_fusion_audit.metering.clients import Models, Prompt
from pytest_fusion_audit.metering.hosts import UnlistedHostError
from pytest_fusion_audit.metering.keys import KeyRing
from pytest_fusion_audit.metering.ledger import Limits, RunStoppedError
from pytest_fusion_audit.metering.prices import PriceBook
from pytest_fusion_audit.metering.pricing import DoorPricing, listed_books
from pytest_fusion_audit.metering.proxy import Proxy
from pytest_fusion_audit.metering.proxy_server import serving_in_thread
from pytest_fusion_audit.metering.retry import RetryPolicy
from pytest_fusion_audit.metering.scope import HEADER, Scope
from pytest_fusion_audit.metering.store import key_of
from pytest_fusion_audit.metering.transport import MeteredTransport
from tests.metering.batch_runs import ManualClock
from tests.metering.doors import journal_rows
from tests.metering.servers import Reply, Server, running_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

HOST = "router.example:8443"
BASE = f"https://{HOST}/api/v1"
ROUTER_KEY = "r0uter-EXAMPLE-key-0123456789"
ALLOW = parse_configuration(
    f"""
endpoints:
  allow:
    - url: {BASE}
      provider: openai
      api_key_env: ROUTER_KEY
      auth: bearer
      model_map: {{gpt-5.5: vendor/gpt-5.5, claude-opus-4-8: anthropic/opus, gpt-5.5-2026-04-23: gpt-5.5-2026-04-23}}
      pricing:
        gpt-5.5: {{input_per_1m_tokens: 6, output_per_1m_tokens: 20}}
        claude-opus-4-8: {{input_per_1m_tokens: 50, output_per_1m_tokens: 250}}
        gpt-5.5-2026-04-23: {{input_per_1m_tokens: 60, output_per_1m_tokens: 300}}
"""
).endpoints.allow
SCOPE = Scope(phase="3", arm="member:gpt", stage="panel", task="t")
QUICK = RetryPolicy(initial_s=0.0, longest_s=0.0, jitter_s=0.0)
CHAT = "/chat/completions"


class Redirected(httpx2.AsyncBaseTransport):
    """Sends what is meant for the router to the loopback server."""

    def __init__(self, server: Server) -> None:
        self._port = int(server.url.rpartition(":")[2])

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        assert request.url.netloc == HOST.encode()
        request.url = request.url.copy_with(scheme="http", host="127.0.0.1", port=self._port)
        async with httpx2.AsyncHTTPTransport() as real:  # one connection each: the proxy has a loop of its own
            answer = await real.handle_async_request(request)
            content = await answer.aread()
        return httpx2.Response(answer.status_code, headers=answer.headers, content=content, request=request)


@dataclass(slots=True)
class Listed:
    """A door to the router."""

    calls: Calls
    transport: MeteredTransport

    def rows(self, event: str) -> list[dict[str, Any]]:
        return [row for row in journal_rows(self.calls.folder) if row.get("e") == event]

    async def ask(self, way: str, model: str = "gpt-5.5", **body: Any) -> int | str:
        """Ask as a client or through the proxy; the status, or what the door raises."""
        document = {"model": model, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 50, **body}
        if way == "proxy":
            proxy = Proxy(self.transport, {"*": BASE}, Attribution(base=SCOPE))
            with serving_in_thread(proxy) as url:
                return await asyncio.to_thread(lambda: httpx2.post(f"{url}/v1{CHAT}", json=document).status_code)
        async with httpx2.AsyncClient(transport=_Unclosed(self.transport)) as client:
            headers = {HEADER: SCOPE.header()}
            return (await client.post(f"{BASE}{CHAT}", json=document, headers=headers)).status_code


class _Unclosed(httpx2.AsyncBaseTransport):
    def __init__(self, transport: MeteredTransport) -> None:
        self.handle_async_request = transport.handle_async_request


@asynccontextmanager
async def listed(folder: Path, server: Server, session: str = "one", **settings: Any) -> AsyncIterator[Listed]:
    ring = KeyRing({"ROUTER_KEY": ROUTER_KEY}, ALLOW)
    book = PriceBook(at=datetime(2026, 11, 30, tzinfo=UTC))
    pricing = DoorPricing(book, {HOST: "openai"}.__getitem__, listed=listed_books(book, [ring.endpoint(BASE)]))
    calls = Calls(folder, Limits(total=10**9), session)
    try:
        transport = MeteredTransport(calls, Redirected(server), pricing, ring, scrubber=ring.scrubber, **settings)
        yield Listed(calls, transport)
        await transport.aclose()
    finally:
        calls.close()


@pytest.fixture
def server():
    with running_server() as running:
        yield running


@pytest.mark.parametrize("way", ["client", "proxy"])
@pytest.mark.parametrize("stream", [False, True])
def test_the_host_gets_its_own_name_of_the_model_and_we_keep_the_panels(
    tmp_path: Path, server: Server, way: str, stream: bool
) -> None:
    async def test() -> None:
        async with listed(tmp_path, server) as run:
            server.script(Reply(input_tokens=30))
            assert await run.ask(way, **({"stream": True} if stream else {})) == 200
            [reserve], [settle] = run.rows("reserve"), run.rows("settle")
            assert (reserve["model"], reserve["sent_model"], reserve["host"]) == ("gpt-5.5", "vendor/gpt-5.5", HOST)
            sent = json.loads(run.calls.bodies.get(reserve["request"]))
            asked = json.dumps({**sent, "model": "gpt-5.5"}).encode()
            assert reserve["key"] == key_of(f"{BASE}{CHAT}", asked, Scope(**reserve["scope"]), {}).digest
            assert settle["model"] == "vendor/gpt-5.5"
            assert "flags" not in settle
            # The router's 6/20 and the table's 5/30 dollars: the dearer of the two, by the panel's name.
            assert settle["charged"] == max(30 * 6 + 20 * 20, 30 * 5 + 20 * 30)
        async with listed(tmp_path, server, session="two") as run:
            assert await run.ask(way, **({"stream": True} if stream else {})) == 200
            assert len(run.rows("reserve")) == 1

    asyncio.run(test())
    [request] = server.requests
    assert json.loads(request.body)["model"] == "vendor/gpt-5.5"
    assert request.key == ROUTER_KEY
    assert request.path == f"/api/v1{CHAT}"


def test_our_clients_speak_to_a_listed_host(tmp_path: Path, server: Server) -> None:
    async def test() -> None:
        async with listed(tmp_path, server) as run:
            server.script(Reply(model="openai/gpt-5.5-2026-04-23"))
            models = Models(run.transport, urls={"openai": BASE}, policy=QUICK)
            answer = await models.complete("openai", "gpt-5.5", Prompt(text="zwölf"), SCOPE)
            assert answer.facts.outcome == "answered"
            assert "flags" not in run.rows("settle")[0]
            await models.aclose()

    asyncio.run(test())
    assert json.loads(server.requests[0].body)["messages"][0]["content"] == "zwölf"


@pytest.mark.parametrize("way", ["client", "proxy"])
def test_a_model_that_is_not_in_the_map_is_refused_before_anything_is_reserved(
    tmp_path: Path, server: Server, way: str
) -> None:
    async def test() -> None:
        async with listed(tmp_path, server) as run:
            for model in ("gpt-5.5-mini", "vendor/gpt-5.5"):
                if way == "proxy":
                    assert await run.ask(way, model) == 400
                else:
                    with pytest.raises(UnlistedHostError, match=f"{HOST} has no entry for the model {model}; nothing"):
                        await run.ask(way, model)
            assert run.rows("reserve") == []

    asyncio.run(test())
    assert server.requests == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("answered", "said"), [("mistral-large", "answered with mistral-large"), ("", "did not say")])
def test_a_foreign_or_unreported_model_is_paid_stored_flagged_and_stops_the_run(
    tmp_path: Path, server: Server, answered: str, said: str, stream: bool
) -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 20, "total_tokens": 50}
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": "x"}, "delta": {"content": "x"}}
    body: Any = {"id": "c1", "model": answered, "choices": [choice], "usage": usage}
    if stream:
        body = f"data: {json.dumps(body)}\n\ndata: [DONE]\n\n"

    async def test() -> None:
        async with listed(tmp_path, server) as run:
            server.script(Reply(body=body, content_type="text/event-stream" if stream else None, billed=True))
            assert await run.ask("client", stream=stream) == 200
            [settle] = run.rows("settle")
            assert "foreign_model" in settle["flags"]
            assert "answer" in settle
            # Unreported: priced as asked. Another maker's has no price: the reservation stays charged.
            assert settle["estimated"] == bool(answered)
            assert settle["charged"] == (run.rows("reserve")[0]["reserved"] if answered else 750)
            with pytest.raises(RunStoppedError, match=rf"{HOST} {said}.* where gpt-5\.5 was asked for.*The run stops"):
                await run.ask("client", n=1)

    asyncio.run(test())
    assert len(server.requests) == 1


def test_errors_and_pages_of_a_listed_host_do_not_stop_the_run(tmp_path: Path, server: Server) -> None:
    async def test() -> None:
        async with listed(tmp_path, server) as run:
            server.script("overloaded", "html", Reply(kind="ends_early", model="vendor/gpt-5.5"))
            assert [await run.ask("client", n=1), await run.ask("client", n=1)] == [529, 200]
            await run.ask("client", stream=True)
            assert not any("foreign_model" in row.get("flags", ()) for row in run.rows("settle"))
            assert await run.ask("client") == 200

    asyncio.run(test())


def test_another_model_of_the_two_makers_is_flagged_and_priced_or_stops_the_run(tmp_path: Path, server: Server) -> None:
    async def test() -> None:
        async with listed(tmp_path, server) as run:
            server.script(
                Reply(model="anthropic/claude-sonnet-4-6", input_tokens=100),
                Reply(model="gpt-5.5-2026-04-24", input_tokens=100),
                Reply(model="openai/gpt-9"),
            )
            await run.ask("client", "claude-opus-4-8")
            await run.ask("client", "gpt-5.5-2026-04-23")
            await run.ask("client")
            sonnet, dated, unknown = run.rows("settle")
            assert (sonnet["flags"], sonnet["charged"]) == (["other_model"], 100 * 3 + 20 * 15)
            assert dated["flags"] == ["other_model"]  # two dates are two models
            assert unknown["flags"] == ["usage_unknown", "other_model"]
            with pytest.raises(RunStoppedError, match=r"openai/gpt-9 answered, which has no known price"):
                await run.ask("client", n=1)

    asyncio.run(test())


def test_a_mapped_model_that_answers_without_its_date_keeps_the_price_that_is_stated_for_it(
    tmp_path: Path, server: Server
) -> None:
    async def test() -> None:
        async with listed(tmp_path, server) as run:
            server.script(Reply(model="gpt-5.5", input_tokens=100))
            await run.ask("client", "gpt-5.5-2026-04-23")
            [settle] = run.rows("settle")
            assert ("flags" in settle, settle["charged"]) == (False, 100 * 60 + 20 * 300)
            assert "sent_model" not in run.rows("reserve")[0]  # the host knows it by the same name

    asyncio.run(test())


def request(name: str, model: str = "gpt-5.5") -> BatchRequest:
    document = {"model": model, "messages": [{"role": "user", "content": f"task {name}"}], "max_tokens": 50}
    return BatchRequest(
        url=f"{BASE}{CHAT}", body=json.dumps(document).encode(), scope=Scope(phase="3", task=name), custom_id=name
    )


def test_batches_of_a_listed_host(tmp_path: Path, server: Server) -> None:
    async def test() -> None:
        async with listed(tmp_path, server) as run:
            batches = Batches(run.transport, clock=ManualClock())
            with pytest.raises(UnlistedHostError, match=r"no entry for the model gpt-5\.5-pro"):
                await batches.run([request("a"), request("b", "gpt-5.5-pro")])
            assert run.rows("reserve") == []
            report = await batches.run([request("a"), request("b")])
            assert report.with_status("stored") == ["a", "b"]
            assert {row["sent_model"] for row in run.rows("reserve")} == {"vendor/gpt-5.5"}
            assert {row["host"] for row in run.rows("reserve")} == {HOST}
            assert not any("flags" in row for row in run.rows("settle"))
            # Its answer is found by a call by itself, in the panel's words.
            asked = request("a")
            async with httpx2.AsyncClient(transport=_Unclosed(run.transport)) as client:
                answer = await client.post(asked.url, content=asked.body, headers={HEADER: asked.scope.header()})
            assert answer.json()["model"] == "vendor/gpt-5.5"
            assert len(run.rows("reserve")) == 2

    asyncio.run(test())
    assert {row["model"] for row in server.billed()} == {"vendor/gpt-5.5"}


def test_a_foreign_model_in_a_batch_stops_the_run(tmp_path: Path, server: Server) -> None:
    async def test() -> None:
        async with listed(tmp_path, server) as run:
            asked = request('[[script:{"model": "mistral-large"}]]')
            report = await Batches(run.transport, clock=ManualClock()).run([asked])
            assert len(report.with_status("stored")) == 1
            assert "foreign_model" in run.rows("settle")[0]["flags"]
            with pytest.raises(RunStoppedError, match="answered with mistral-large"):
                await run.ask("client")

    asyncio.run(test())
