"""The door of a session: everything between an audit and its models, put together once.

What can be checked before is (`metering.preflight`). The door outlives event loops: each
`Door.run` (our own clients) and each `Door.serving` (a gateway) sends through a transport of its own, and all of them
share journal, ledger, store, limits and keys.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from pytest_fusion_audit.metering.batches import Batches, SystemClock
from pytest_fusion_audit.metering.budget import Budget
from pytest_fusion_audit.metering.calls import Calls
from pytest_fusion_audit.metering.clients import Completion, Models, Prompt
from pytest_fusion_audit.metering.concurrency import Concurrency
from pytest_fusion_audit.metering.endpoints import UnlistedHostError
from pytest_fusion_audit.metering.lanes import Lanes
from pytest_fusion_audit.metering.limits import Limits
from pytest_fusion_audit.metering.proxy import Proxy
from pytest_fusion_audit.metering.proxy_server import serving_in_thread
from pytest_fusion_audit.metering.sdk import anthropic_client, openai_client
from pytest_fusion_audit.metering.third_door import ThirdDoor
from pytest_fusion_audit.metering.transport import MeteredTransport, Mode
from pytest_fusion_audit.metering.wire.base import request_facts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
    from pathlib import Path

    import anthropic
    import openai
    from pydantic import JsonValue

    from pytest_fusion_audit.configuration import Configuration
    from pytest_fusion_audit.configuration.panel import Panel
    from pytest_fusion_audit.metering.attribution import Attribution
    from pytest_fusion_audit.metering.batch_steps import Clock
    from pytest_fusion_audit.metering.caps import Caps
    from pytest_fusion_audit.metering.preflight import Preflight
    from pytest_fusion_audit.metering.prices import Processing
    from pytest_fusion_audit.metering.routes import Route
    from pytest_fusion_audit.metering.scope import Scope

T = TypeVar("T")


@dataclass(slots=True)
class Door:
    """All model traffic of a session goes through here.

    Attributes:
        calls: journal, ledger, store.
        budget: the money.
        preflight: where calls go and what they cost.
        mode: ``live`` or ``replay``.
        panel: the panel file, None without one.
        concurrency: calls of one model at once.
        prefer: wish of fusion.yaml by the name of a phase's cap, see `caps.CAP_OF_PHASE`.
        inner: makes the transport that really sends, one for each event loop.
        clock: by which batches are waited for.
    """

    calls: Calls
    budget: Budget
    preflight: Preflight
    mode: Mode
    panel: Panel | None
    concurrency: int
    prefer: Mapping[str, Processing] = field(default_factory=dict)
    inner: Callable[[], Any] = Lanes
    clock: Clock = field(default_factory=SystemClock)

    def run(self, work: Callable[[OpenDoor], Awaitable[T]]) -> T:
        """Run asynchronous work with the door open, in an event loop of its own; returns what it returns."""

        async def main() -> T:
            async with self.opened() as door:
                return await work(door)

        return asyncio.run(main())

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[OpenDoor]:
        """Open the door in the running event loop; calls that are still going on when the block ends are waited for."""
        transport = self._transport()
        door = OpenDoor(self, transport, Batches(transport, clock=self.clock), Concurrency(self.concurrency))
        try:
            yield door
        finally:
            await door.aclose()
            await transport.aclose()

    @contextmanager
    def serving(self, attribution: Attribution, *, third_door: bool = False) -> Iterator[tuple[str, Proxy]]:
        """Serve the loopback proxy in a thread for the length of the block.

        Args:
            attribution: rules of the gateway that is pointed here; its base scope names an opened phase.
            third_door: also serve ``provider/name`` ids, for gateways with a single upstream.

        Yields:
            The root URL with the run's token (roles hang below it), and the proxy.
        """
        routes, urls = self.preflight.routes, {}
        for route in routes.all():
            urls[f"panel-{route.id}"] = route.url
        for role in ("judge", "synthesizer"):
            id_ = getattr(self.panel, f"{role}_model", None)
            if id_ is not None:
                urls[role] = routes.of(id_).url
        if len(set(urls.values())) == 1:
            urls["*"] = next(iter(urls.values()))
        proxy = Proxy(
            self._transport(),
            urls,
            attribution,
            third_door=ThirdDoor(
                routes.of_makers() if third_door else {},
                self.preflight.overrides,
            ),
            scrubber=self.preflight.keys.scrubber,
        )
        with serving_in_thread(proxy) as url:
            yield url, proxy

    def _transport(self) -> MeteredTransport:
        return MeteredTransport(
            calls=self.calls,
            inner=self.inner(),
            pricing=self.preflight.pricing,
            credentials=self.preflight.keys,
            mode=self.mode,
            default_scope=None,
            scrubber=self.preflight.keys.scrubber,
        )

    def close(self) -> None:
        """Make everything durable and let go of the run; a second time does nothing."""
        self.calls.close()


@dataclass(slots=True)
class OpenDoor:
    """The door in one event loop: ask a model, have many answered in batches, or take an SDK client.

    Attributes:
        door: of the session.
        transport: the metered transport.
        batches: batches of this run.
        concurrency: limits by model.
    """

    door: Door
    transport: MeteredTransport
    batches: Batches
    concurrency: Concurrency
    _models: dict[str, Models] = field(default_factory=dict)

    async def complete(
        self,
        endpoint: str,
        prompt: Prompt,
        scope: Scope,
        *,
        model: str | None = None,
        asked: Mapping[str, JsonValue] | None = None,
        stream: bool = False,
        flex: bool = False,
    ) -> Completion:
        """Ask one model once, waiting out what passes; see `clients.Models.complete`.

        Args:
            endpoint: id in the panel file, or a maker (``openai``, ``anthropic``) with ``model``.
            prompt: the question.
            scope: what the call is for, see `PhaseBudget.scope`.
            model: id, for an endpoint that names none.
            asked: sampling and limits in our words, see `models.shaped`.
            stream: keep the connection busy while a long answer is written.
            flex: at OpenAI's flex tier where there is room.
        """
        route, name = self.route(endpoint, model)
        models = self.models(route)
        return await models.complete(route.provider, name, prompt, scope, asked=asked, stream=stream, flex=flex)

    def route(self, endpoint: str, model: str | None = None) -> tuple[Route, str]:
        """How an endpoint is asked, and for which model.

        Raises:
            UnlistedHostError: no such endpoint, or nobody names a model.
        """
        route = self.door.preflight.routes.of(endpoint)
        name = model or route.model
        if name is None:
            raise UnlistedHostError(f"{endpoint} names no model; nothing was sent. Give model=…, or a panel file")
        return route, name

    def openai(self, endpoint: str = "openai") -> openai.AsyncOpenAI:
        """The OpenAI SDK behind the door; requests carry their scope in the header `scope.HEADER`."""
        return openai_client(self.transport, base_url=self.door.preflight.routes.of(endpoint).url)

    def anthropic(self, endpoint: str = "anthropic") -> anthropic.AsyncAnthropic:
        """The Anthropic SDK behind the door; as `openai`."""
        return anthropic_client(self.transport, base_url=self.door.preflight.routes.of(endpoint).url)

    def worst_case(
        self,
        endpoint: str,
        prompt: Prompt,
        *,
        model: str | None = None,
        asked: Mapping[str, JsonValue] | None = None,
    ) -> int:
        """Most micro-dollars that one attempt of `complete` can cost: what a turn has to hold for it.

        Raises:
            UnknownPriceError, UnboundedRequestError, ConfigError: nothing bounds it.
        """
        route, name = self.route(endpoint, model)
        url, body = self.models(route).request(route.provider, name, prompt, asked)
        facts = request_facts("POST", urlsplit(url).path, body)
        return self.door.preflight.pricing.worst_case_of(route.host, facts)

    def models(self, route: Route) -> Models:
        """The clients of one route."""
        if route.id not in self._models:
            settings: dict[str, Any] = {} if route.timeout_s is None else {"timeout_s": route.timeout_s}
            variable = route.endpoint.api_key_env
            self._models[route.id] = Models(
                self.transport,
                urls={route.provider: route.url},
                variables={} if variable is None else {route.provider: variable},
                concurrency=self.concurrency,
                overrides=self.door.preflight.overrides,
                **settings,
            )
        return self._models[route.id]

    async def aclose(self) -> None:
        """Close the clients; the transport stays open."""
        for models in self._models.values():
            await models.aclose()


def open_door(
    folder: Path,
    preflight: Preflight,
    caps: Caps,
    *,
    session: str,
    configuration: Configuration,
    panel: Panel | None = None,
    git_sha: str | None = None,
    replay: bool = False,
) -> Door:
    """Open the calls of a run.

    Args:
        folder: the run directory.
        preflight: see `preflight.preflight`.
        caps: what was granted; of a replay, what the run had.
        session: name that all workers of this session share.
        configuration: ``fusion.yaml`` after defaults.
        panel: the panel file, None without one.
        git_sha: commit that the session runs at, None when unknown.
        replay: answer from the store and change no byte.

    Raises:
        RunBusyError: another session works on this run. EvidenceError: the journal is damaged, or (replay) not there.
    """
    if replay:
        calls = Calls.reading(folder / "calls")
    else:
        limits = Limits(total=caps.total, reserve=caps.reserve, opened_only=True)
        calls = Calls(folder / "calls", limits, session)
    budget = Budget(calls, caps, seed=configuration.splits.seed, git_sha=git_sha)
    mode: Mode = "replay" if replay else "live"
    wishes: dict[str, Processing] = {name: wish for name, wish in configuration.prefer.items()}  # noqa: C416 - names are str here
    return Door(calls, budget, preflight, mode, panel, configuration.concurrency, prefer=wishes)
