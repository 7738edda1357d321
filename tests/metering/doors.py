"""A metered door in front of a loopback server, with prices that are easy to add up."""
# ruff: noqa: ARG002 - methods of protocols take what they do not need

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2

from pytest_fusion_audit.metering.calls import Calls
from pytest_fusion_audit.metering.endpoints import Endpoint
from pytest_fusion_audit.metering.lanes import Lanes
from pytest_fusion_audit.metering.ledger import Limits
from pytest_fusion_audit.metering.scope import HEADER, Scope
from pytest_fusion_audit.metering.transport import MeteredTransport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from pytest_fusion_audit.metering.wire.base import RequestFacts, ResponseFacts

BIG = 1_000_000_000


@dataclass(slots=True)
class FlatPrices:
    """One micro-dollar a token of input, ten a token of output; models of the name ``unknown…`` have no price."""

    worst: int | None = None
    actual: int | None = None

    def worst_case_of(self, host: str, facts: RequestFacts, *, batch: bool = False) -> int:
        if self.worst is not None:
            return self.worst
        return facts.input_tokens_bound + 10 * (facts.output_bound(100) or 0)

    def cost_of(self, host: str, facts: RequestFacts, answer: ResponseFacts, *, batch: bool = False) -> int | None:
        if answer.usage is None or (answer.model or "").startswith("unknown"):
            return None
        if self.actual is not None:
            return self.actual
        return answer.usage.input_tokens + 10 * answer.usage.output_tokens

    def same_model(self, host: str, asked: str | None, answered: str | None) -> bool:
        return asked is not None and answered is not None and answered.startswith(asked)


class Placeholder:
    """Gives every request the same key; every host is on this machine."""

    def endpoint_of(self, url: httpx2.URL) -> Endpoint:
        return Endpoint(host=url.netloc.decode(), scheme=url.scheme, kind="loopback")

    def authorise(self, request: httpx2.Request) -> None:
        request.headers["authorization"] = "Bearer real-key"


@dataclass(slots=True)
class Door:
    """An open door: `ask` sends one chat completion through it."""

    calls: Calls
    transport: MeteredTransport
    client: httpx2.AsyncClient
    url: str

    async def ask(self, prompt: str, scope: Scope | None = None, **body: Any) -> httpx2.Response:
        """One chat completion; ``stream=True`` reads the stream to its end."""
        return await self.post("/v1/chat/completions", chat(prompt, **body), scope)

    async def post(self, path: str, body: Any, scope: Scope | None = None) -> httpx2.Response:
        headers = {HEADER: (scope or Scope(phase="3", task=str(body)[:80])).header()}
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.client.post(f"{self.url}{path}", content=content, headers=headers)

    def rows(self, event: str) -> list[dict[str, Any]]:
        """Rows of the journal of one kind."""
        return [row for row in journal_rows(self.calls.folder) if row.get("e") == event]


def chat(prompt: str, **body: Any) -> dict[str, Any]:
    """A chat completion request."""
    return {"model": "gpt-5.5", "messages": [{"role": "user", "content": prompt}], **body}


def journal_rows(folder: Path) -> list[dict[str, Any]]:
    """Whole rows of a journal, without its schema."""
    data = (folder / "journal.jsonl").read_bytes()
    return [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()][1:]


@asynccontextmanager
async def open_door(
    folder: Path,
    url: str,
    *,
    limits: Limits | None = None,
    prices: FlatPrices | None = None,
    session: str = "session",
    inner: httpx2.AsyncBaseTransport | None = None,
    timeout_s: float = 10.0,
    shared: Calls | None = None,
    **settings: Any,
) -> AsyncIterator[Door]:
    """A door over ``folder``; closed, with its calls unless they are ``shared``, at the end."""
    if shared is not None:
        calls = shared
    elif settings.get("mode") == "replay":
        calls = Calls.reading(folder)
    else:
        calls = Calls(folder, limits or Limits(total=BIG), session)
    transport = MeteredTransport(calls, inner or Lanes(), prices or FlatPrices(), Placeholder(), **settings)
    try:
        async with httpx2.AsyncClient(transport=transport, timeout=timeout_s) as client:
            yield Door(calls, transport, client, url)
    finally:
        if shared is None:
            calls.close()
