"""A metering proxy in front of a loopback server that plays both makers' hosts, with a run directory behind it."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2

from pytest_fusion_audit.metering.attribution import Attribution
from pytest_fusion_audit.metering.calls import Calls
from pytest_fusion_audit.metering.keys import KeyRing
from pytest_fusion_audit.metering.ledger import Limits
from pytest_fusion_audit.metering.prices import PriceBook
from pytest_fusion_audit.metering.pricing import DoorPricing
from pytest_fusion_audit.metering.proxy import Proxy
from pytest_fusion_audit.metering.proxy_server import serving_in_thread
from pytest_fusion_audit.metering.scope import Scope
from pytest_fusion_audit.metering.third_door import ThirdDoor
from pytest_fusion_audit.metering.transport import MeteredTransport

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.metering.servers import Server

OPENAI_KEY = "sk-proj-REALKEYofOPENAI0123456789"
ANTHROPIC_KEY = "sk-ant-REALKEYofANTHROPIC0123456789"
OPENAI, ANTHROPIC = "https://api.openai.com", "https://api.anthropic.com"
USD = 1_000_000


class Redirected(httpx2.AsyncBaseTransport):
    """Sends what is meant for the makers' hosts to the loopback server."""

    def __init__(self, server: Server) -> None:
        self._port = int(server.url.rpartition(":")[2])
        self._inner = httpx2.AsyncHTTPTransport(limits=httpx2.Limits(max_connections=None))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        assert request.url.host in {"api.openai.com", "api.anthropic.com"}
        request.url = request.url.copy_with(scheme="http", host="127.0.0.1", port=self._port)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


@dataclass
class Metered:
    """A proxy that serves."""

    url: str
    proxy: Proxy
    calls: Calls

    def rows(self, event: str | None = None) -> list[dict[str, Any]]:
        rows = [json.loads(line) for line in (self.calls.folder / "journal.jsonl").read_text().splitlines()]
        return [row for row in rows if event is None or row.get("e") == event]

    def settled(self) -> list[dict[str, Any]]:
        return self.rows("settle")

    def reserved(self) -> list[dict[str, Any]]:
        return self.rows("reserve")


@contextmanager
def made_proxy(
    folder: Path,
    server: Server,
    *,
    cap: int = 100 * USD,
    mode: str = "live",
    session: str = "s",
    third_door: bool = False,
    upstreams: dict[str, str] | None = None,
    base: Scope | None = None,
    drain_ceiling_s: float = 30.0,
    **attribution: Any,
) -> Iterator[tuple[Proxy, Calls]]:
    """A proxy that nobody serves yet."""
    keys = KeyRing({"OPENAI_API_KEY": OPENAI_KEY, "ANTHROPIC_API_KEY": ANTHROPIC_KEY})
    provider = {"api.openai.com": "openai", "api.anthropic.com": "anthropic"}
    calls = Calls(folder / "calls", Limits(total=cap), session)
    try:
        transport = MeteredTransport(
            calls=calls,
            inner=Redirected(server),
            pricing=DoorPricing(PriceBook(), provider.__getitem__),
            credentials=keys,
            mode=mode,
            scrubber=keys.scrubber,
            drain_ceiling_s=drain_ceiling_s,
        )
        if upstreams is None:
            upstreams = {} if third_door else {"*": OPENAI, "panel-opus": ANTHROPIC}
        proxy = Proxy(
            transport,
            upstreams,
            Attribution(base=base or Scope(phase="6.2", arm="served"), **attribution),
            third_door=ThirdDoor({"openai": OPENAI, "anthropic": ANTHROPIC} if third_door else {}),
            scrubber=keys.scrubber,
        )
        yield proxy, calls
    finally:
        calls.close()


@contextmanager
def metered(folder: Path, server: Server, **settings: Any) -> Iterator[Metered]:
    """A proxy in a thread of its own."""
    with made_proxy(folder, server, **settings) as (proxy, calls), serving_in_thread(proxy) as url:
        yield Metered(url, proxy, calls)


def ask(prompt: str = "hi", model: str = "gpt-5.5", **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": prompt}], "max_completion_tokens": 50, **more}


def ask_anthropic(prompt: str = "hi", model: str = "claude-opus-4-8", **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": prompt}], "max_tokens": 50, **more}
