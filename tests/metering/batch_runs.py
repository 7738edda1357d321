"""Runs with batches against a loopback server: opened, killed between two steps and opened again."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2

from pytest_fusion_audit.metering.batches import Batches, BatchRequest
from pytest_fusion_audit.metering.calls import Calls
from pytest_fusion_audit.metering.keys import KeyRing
from pytest_fusion_audit.metering.ledger import Limits
from pytest_fusion_audit.metering.prices import PriceBook
from pytest_fusion_audit.metering.pricing import DoorPricing
from pytest_fusion_audit.metering.scope import HEADER, Scope
from pytest_fusion_audit.metering.transport import MeteredTransport
from pytest_fusion_audit.metering.wire.base import ANTHROPIC_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

NOON = 1_796_040_000.0  # 2026-11-30T12:00:00Z, the moment at which the loopback server makes its batches
MAKERS = {
    "openai.chat": ("openai", "/v1/chat/completions", "gpt-5.5"),
    "openai.responses": ("openai", "/v1/responses", "gpt-5.5"),
    "anthropic.messages": ("anthropic", "/v1/messages", "claude-opus-4-8"),
}


class Killed(BaseException):
    """The process ends here: nothing is cleaned up."""


class ManualClock:
    """Time that passes only when somebody waits."""

    def __init__(self, now: float = NOON) -> None:
        self.time = now
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        assert len(self.slept) < 500, "waits for ever"
        self.time += seconds


@dataclass
class Wires(httpx2.AsyncBaseTransport):
    """The inner transport: sends, unless a test says otherwise; every exchange counts."""

    before: Callable[[httpx2.Request], httpx2.Response | None] = lambda _: None
    after: Callable[[httpx2.Request, httpx2.Response], httpx2.Response] = lambda _, response: response
    sent: list[str] = field(default_factory=list)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = self.before(request)
        if answer is None:
            self.sent.append(f"{request.method} {request.url.path}")
            # One connection each: a session lives through several event loops here.
            async with httpx2.AsyncHTTPTransport() as real:
                answer = await real.handle_async_request(request)
                await answer.aread()
        return self.after(request, answer)


class Session:
    """One process of a run."""

    def __init__(self, folder: Path, server: Any, dialect: str, clock: ManualClock, cap: int, **options: Any) -> None:
        self.server, self.dialect, self.clock = server, dialect, clock
        provider = MAKERS[dialect][0]
        self.calls = Calls(folder, Limits(total=cap, phases=options.pop("phases", {})), session="one")
        self.wires = Wires()
        self.transport = MeteredTransport(
            self.calls,
            self.wires,
            DoorPricing(PriceBook(), lambda _: provider),
            options.pop("credentials", KeyRing({})),
        )
        self.batches = Batches(self.transport, clock=clock, **options)

    def request(self, name: str, text: str = "", **body: Any) -> BatchRequest:
        """A request for one task."""
        return request_for(self.server.url, self.dialect, name, text, **body)

    async def ask(self, request: BatchRequest) -> Any:
        """Make a call by itself, as a client does."""
        async with httpx2.AsyncClient(transport=self.transport) as client:
            headers = {HEADER: request.scope.header(), "content-type": "application/json"}
            if self.dialect == "anthropic.messages":
                headers["anthropic-version"] = ANTHROPIC_VERSION  # as our SDK client does
            return (await client.post(request.url, content=request.body, headers=headers)).json()

    def rows(self, event: str | None = None) -> list[Mapping[str, Any]]:
        """Rows of the journal."""
        return journal_rows(self.calls.folder, event)

    def money(self) -> tuple[int, int, int]:
        """Spent, reserved and orphaned."""
        account = self.calls.ledger.balance()
        return account.spent, account.reserved, account.orphaned

    def kill(self) -> None:
        """End as a killed process does: its locks go, and nothing else happens."""
        self.calls.close()


def journal_rows(folder: Path, event: str | None = None) -> list[Mapping[str, Any]]:
    rows = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    return [row for row in rows if event is None or row.get("e") == event]


def request_for(url: str, dialect: str, name: str, text: str = "", **body: Any) -> BatchRequest:
    _, path, model = MAKERS[dialect]
    limit = "max_output_tokens" if dialect == "openai.responses" else "max_tokens"
    if dialect == "openai.chat":
        limit = "max_completion_tokens"
    turns = [{"role": "user", "content": f"task {name} {text}"}]
    prompt = {"input": turns} if dialect == "openai.responses" else {"messages": turns}
    document = {"model": model, **prompt, limit: 100, **body}
    scope = Scope(phase="3", arm=f"member:{model}", stage="panel", task=name)
    return BatchRequest(url=url + path, body=json.dumps(document).encode(), scope=scope, custom_id=name)


def text_in(dialect: str, body: Mapping[str, Any]) -> str:
    """What a stored answer says."""
    if dialect == "openai.chat":
        return str(body["choices"][0]["message"]["content"])
    if dialect == "openai.responses":
        return str(body["output"][0]["content"][0]["text"])
    return str(body["content"][0]["text"])


def most_committed(rows: Sequence[Mapping[str, Any]]) -> int:
    """Highest sum of spent and reserved that the rows of a journal ever reach."""
    amounts: dict[str, int] = {}
    most = 0
    for row in rows:
        if row.get("e") == "reserve":
            amounts[row["id"]] = row["reserved"]
        elif row.get("e") == "settle" and row["id"] in amounts:
            amounts[row["id"]] = row["charged"]
        most = max(most, sum(amounts.values()))
    return most
