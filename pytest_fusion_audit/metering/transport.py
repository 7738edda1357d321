"""The one transport through which all model traffic goes: look up, reserve, send, settle, store, then hand on.

SDK clients use it as their transport, the proxy stands in front of the same object. It never retries: whoever retries
comes back through the door and is reserved again. Every response names its call in the header ``x-fusion-call``.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import httpx2

from pytest_fusion_audit.errors import FusionAuditError
from pytest_fusion_audit.metering.calls import DiskFullError
from pytest_fusion_audit.metering.metered_stream import MeteredStream
from pytest_fusion_audit.metering.passing import addressed, forwarded, kept_headers
from pytest_fusion_audit.metering.scope import HEADER, Scope, ScopeError
from pytest_fusion_audit.metering.settling import Pricing, Settlement, Stopwatch, settlement
from pytest_fusion_audit.metering.store import Key, ReplayMissError, StoredAnswer, key_of
from pytest_fusion_audit.metering.wire.base import (
    RequestFacts,
    ResponseFacts,
    StreamReader,
    is_event_stream,
    request_facts,
    response_facts,
    with_usage,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from pytest_fusion_audit.metering.calls import Calls
    from pytest_fusion_audit.metering.endpoints import Endpoint
    from pytest_fusion_audit.metering.journal import Row
    from pytest_fusion_audit.metering.scrubbing import Scrubber

__all__ = ["CALL_HEADER", "DRAIN_CEILING_S", "STORED_HEADER", "Credentials", "MeteredTransport", "Pricing"]

DRAIN_CEILING_S = 120.0
CALL_HEADER = "x-fusion-call"
STORED_HEADER = "x-fusion-stored"
#: Key of a request's ``extensions`` under which the id of its call stands, also when no response came.
CALL_EXTENSION = "fusion_call"
#: Key of a response's ``extensions``: seconds the call took (a stored one: took then), once it has been settled.
LATENCY_EXTENSION = "fusion_latency_s"
#: Of a hundred answers that come at once, the first are handed on while the last still wait: otherwise each step of
#: each would wait for the same step of all others, and so would the calls that follow.
_FINISHED_AT_ONCE = 16
#: Errors after which the other side has seen nothing.
UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_SAY_SCOPE = "Give it as extra_headers={HEADER: phase.scope(…).header()}, with HEADER of metering.scope"
Mode = Literal["live", "replay"]
T = TypeVar("T")


class Credentials(Protocol):
    """Which host may be called, with what key, and by what names it knows the models."""

    def endpoint_of(self, url: httpx2.URL) -> Endpoint:
        """What is known of the host under a URL, or raise a FusionAuditError for one that is not listed."""

    def authorise(self, request: httpx2.Request) -> None:
        """Put the real key on a request, or raise a FusionAuditError for a host that is not listed."""


@dataclass(slots=True)
class MeteredTransport(httpx2.AsyncBaseTransport):
    """An httpx2 transport that meters everything.

    Attributes:
        calls: journal, ledger, bodies and stored answers of the run.
        inner: the transport that really sends.
        pricing: price book and capability table.
        credentials: hosts and keys.
        mode: ``live`` sends what is not stored; ``replay`` never sends and writes nothing.
        default_scope: scope of requests that carry none; None refuses them.
        scrubber: takes keys out of bodies before they are stored, and out of whole replies before they are handed on.
        drain_ceiling_s: how long a call goes on after its caller has gone.
    """

    calls: Calls
    inner: httpx2.AsyncBaseTransport
    pricing: Pricing
    credentials: Credentials
    mode: Mode = "live"
    default_scope: Scope | None = field(default_factory=lambda: Scope(phase="0"))
    scrubber: Scrubber | None = None
    drain_ceiling_s: float = DRAIN_CEILING_S
    _open: set[asyncio.Task[Any]] = field(default_factory=set)
    _finishing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_FINISHED_AT_ONCE))

    def __post_init__(self) -> None:
        if self.scrubber is not None and self.mode == "live":
            self.calls.clean_streams(self.scrubber)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer a request from the store or by sending it, metered.

        A list of models costs nothing and is stored as well, but a live session always asks anew: whether the key is
        good is what it tells.

        Raises:
            CostLimitExceeded, RunStoppedError, ReplayMissError, WireError, UnlistedHostError: nothing was sent.
            DiskFullError: nothing was sent, or (it says so) the answer could not be kept and stays charged.
            httpx2.TransportError: sent and not answered; the reservation stays charged as an orphan.
        """
        body = await request.aread()
        header = request.headers.pop(HEADER, None)
        scope = Scope.from_header(header) if header else self.default_scope
        if scope is None:
            raise ScopeError(f"a request without the header {HEADER}; nothing was sent. {_SAY_SCOPE}")
        facts = request_facts(request.method, request.url.path, body)
        if facts.dialect == "other" or (facts.free and request.method != "GET"):
            return await self._pass_through(request, body)
        if facts.free:
            scope = replace(scope, reuse=False)
        if facts.stream:
            body = with_usage(facts.dialect, body)
        to = request.url
        key = key_of(f"{to.scheme}://{(to.netloc + to.raw_path).decode('ascii')}", body, scope, request.headers)
        if self.mode == "replay":
            stored = self.calls.answers.take(key) or self.calls.answers.failure(key)
            if stored is None:
                raise self.calls.answers.missed(key, scope, facts.model)
            return self._stored_response(request, stored)
        if scope.reuse and (stored := self.calls.answers.take(key)) is not None:
            return self._stored_response(request, stored)
        return await self._send(request, body, scope, facts, key)

    async def _pass_through(self, request: httpx2.Request, body: bytes) -> httpx2.Response:
        what = f"{request.method} {request.url.path}"
        if request.method not in {"GET", "HEAD"}:
            raise FusionAuditError(f"{what} is not a call that can be metered; nothing was sent")
        if self.mode == "replay":
            raise ReplayMissError(f"replay: {what} is no call of a model, so no answer is stored; nothing was sent")
        passed = forwarded(request, body, plain=False)
        self.credentials.authorise(passed)
        return await self.inner.handle_async_request(passed)

    def _stored_response(self, request: httpx2.Request, stored: StoredAnswer) -> httpx2.Response:
        headers = {
            CALL_HEADER: stored.call,
            STORED_HEADER: stored.call,
            "content-type": stored.content_type or "application/json",
        }
        content = self.calls.bodies.get(stored.body_sha256)
        extensions = {LATENCY_EXTENSION: stored.latency_s}
        return httpx2.Response(stored.status, headers=headers, content=content, extensions=extensions, request=request)

    async def _send(
        self, request: httpx2.Request, body: bytes, scope: Scope, facts: RequestFacts, key: Key
    ) -> httpx2.Response:
        endpoint = self.credentials.endpoint_of(request.url)
        facts, body = addressed(endpoint, facts, body)
        amount = 0 if facts.free else self.pricing.worst_case_of(endpoint.host, facts)
        leaving = forwarded(request, body, plain=facts.stream)
        self.credentials.authorise(leaving)
        kept = self._without_keys(body)
        call = await self._written(self.calls.begin(scope, key, facts, amount, host=endpoint.host, body=kept))
        request.extensions[CALL_EXTENSION] = call["id"]
        exchange = asyncio.get_running_loop().create_task(
            self._exchange(request, leaving, _Sent(call, facts, endpoint))
        )
        self._watch(exchange)
        try:
            # A caller that is cancelled does not take the call along: it is being paid for.
            return await asyncio.shield(exchange)
        except asyncio.CancelledError:
            self._limit(exchange)
            raise

    async def _exchange(self, request: httpx2.Request, leaving: httpx2.Request, sent: _Sent) -> httpx2.Response:
        call, dialect = sent.call, sent.facts.dialect
        try:
            response = await self.inner.handle_async_request(leaving)
            if is_event_stream(response.headers.get("content-type")) and response.status_code < 400:
                return self._streamed(request, response, sent)
            content = await response.aread()
        except UNSENT as error:
            unsent = {"outcome": "provider_error", "error": type(error).__name__, "unsent": True}
            await self._written(self.calls.end(call, 0, estimated=False, facts=unsent))
            raise
        except BaseException as error:
            # Sent, and nobody knows what became of it: a time-out, a reset, the end of the session.
            await self._written(self.calls.lose(call, type(error).__name__))
            raise
        answer = response_facts(dialect, response.status_code, response.headers.get("content-type"), content)
        if self.scrubber is not None:
            failed = response.status_code >= 400
            content = self.scrubber.bytes(content) if failed else self.scrubber.content(content)
        headers = kept_headers(response, CALL_HEADER, call["id"])
        handed_on = httpx2.Response(response.status_code, headers=headers, content=content, request=request)
        handed_on.extensions[LATENCY_EXTENSION] = await self._settle(sent, response, answer, content)
        return handed_on

    def _streamed(self, request: httpx2.Request, response: httpx2.Response, sent: _Sent) -> httpx2.Response:
        async def settle(answer: ResponseFacts, content: bytes, whole: bool) -> None:
            latency_s = await self._settle(sent, response, answer, content, whole=whole)
            handed_on.extensions[LATENCY_EXTENSION] = latency_s

        reader = StreamReader(sent.facts.dialect, status=response.status_code)
        stream = MeteredStream(response, reader, self.calls.spool(sent.call["id"]), settle, self._limit)
        self._watch(stream.reading)
        headers = kept_headers(response, CALL_HEADER, sent.call["id"])
        handed_on = httpx2.Response(response.status_code, headers=headers, stream=stream, request=request)
        return handed_on

    async def _settle(
        self, sent: _Sent, response: httpx2.Response, answer: ResponseFacts, content: bytes, *, whole: bool = True
    ) -> float | None:
        """Store the answer and charge the call, durably, before anyone reads it; returns its latency."""
        latency_s = sent.clock.seconds()
        settled = settlement(
            self.pricing,
            sent.call,
            sent.facts,
            answer,
            response,
            latency_s=latency_s,
            whole=whole,
            endpoint=sent.endpoint,
        )
        try:
            async with self._finishing:
                await self._store(sent.call, settled, content)
        except asyncio.CancelledError:
            if sent.call["id"] in self.calls.balances.open:
                self.calls.ledger.orphan(sent.call["id"], "ended before its answer was kept")
            raise
        return latency_s

    async def _store(self, call: Row, settled: Settlement, content: bytes) -> None:
        try:
            body, end = self.calls.bodies.put(self._without_keys(content))
            await self.calls.bodies.durable(end)
        except OSError as error:
            await self._written(self.calls.lose(call, "its answer could not be kept"))
            raise DiskFullError(
                f"the answer to call {call['id']} could not be kept ({error.strerror}) and stays charged at its "
                "reservation; make room and go on with --fusion-resume"
            ) from error
        row = settled.kept(body, self.scrubber)
        await self._written(self.calls.end(call, settled.charged, estimated=settled.estimated, facts=row))
        if settled.stop is not None:
            # It repeats what the upstream called its model.
            self.calls.ledger.stop(settled.stop if self.scrubber is None else self.scrubber.text(settled.stop))

    def _without_keys(self, content: bytes) -> bytes:
        """A body as it is kept: what a stream said in pieces is scrubbed as a whole."""
        return content if self.scrubber is None else self.scrubber.content(content)

    async def _written(self, writing: Awaitable[T]) -> T:
        """Write to the journal; when it cannot be written any more, this process sends nothing more."""
        try:
            return await writing
        except OSError as error:
            self.calls.ledger.fail(f"{self.calls.journal.path} cannot be written ({error.strerror})")
            raise DiskFullError(
                f"{self.calls.journal.path} cannot be written ({error.strerror}); what was sent and not settled stays "
                "charged at its reservation. Make room and go on with --fusion-resume"
            ) from error

    def _watch(self, task: asyncio.Task[Any]) -> None:
        """Wait for a task before the transport closes; whoever started it need not ask how it ended."""
        self._open.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._open.discard(task)
        if not task.cancelled():
            task.exception()

    def _limit(self, task: asyncio.Task[Any]) -> None:
        """End a call whose caller has gone when it takes too long; its reservation then stays charged."""
        if not task.done():
            end = asyncio.get_running_loop().call_later(self.drain_ceiling_s, task.cancel)
            task.add_done_callback(lambda _: end.cancel())

    async def aclose(self) -> None:
        """Wait, in limited time, for calls whose caller has gone, then close the inner transport."""
        for task in tuple(self._open):
            self._limit(task)
        await asyncio.gather(*self._open, return_exceptions=True)
        await self.inner.aclose()


@dataclass(slots=True)
class _Sent:
    """A call on its way: its reservation, what was asked of whom, and since when."""

    call: Row
    facts: RequestFacts
    endpoint: Endpoint
    clock: Stopwatch = field(default_factory=Stopwatch)
