"""Connections to the providers: one lane for each call that is open at once, the one used last is used next.

A connection pool looks at every idle connection, with a system call, whenever a request comes or ends: with a hundred
calls at once that costs more than everything else together. A lane is a transport with one connection; how many there
are is bounded by how many calls are open at once (`metering.concurrency`).
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from functools import cached_property
from typing import TYPE_CHECKING

import httpx2

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable

IDLE_S = 30.0  # a connection that was idle for longer is not trusted, and closed
_Origin = tuple[str, str, int | None]


class Lanes(httpx2.AsyncBaseTransport):
    """The transport that really sends; for one event loop.

    Args:
        now: seconds on a clock that only goes forward.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._free: dict[_Origin, deque[tuple[float, httpx2.AsyncHTTPTransport]]] = defaultdict(deque)
        self._all: set[httpx2.AsyncHTTPTransport] = set()

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return httpx2.create_ssl_context()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request on a lane of its own; the lane is free again when the response is closed.

        Raises:
            httpx2.TransportError: as any HTTP transport.
        """
        url = request.url
        origin = (url.scheme, url.host, url.port)
        lane = await self._lane(origin)
        try:
            response = await lane.handle_async_request(request)
        except BaseException:
            await self._drop(lane)
            raise
        assert isinstance(response.stream, httpx2.AsyncByteStream)  # noqa: S101 - of an async transport it always is
        response.stream = _Lent(response.stream, self, origin, lane)
        return response

    async def _lane(self, origin: _Origin) -> httpx2.AsyncHTTPTransport:
        free = self._free[origin]
        while free:
            since, lane = free.pop()
            if self._now() - since < IDLE_S:
                return lane
            await self._drop(lane)
        limits = httpx2.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=IDLE_S)
        lane = httpx2.AsyncHTTPTransport(verify=self._tls if origin[0] == "https" else False, limits=limits)
        self._all.add(lane)
        return lane

    async def give_back(self, origin: _Origin, lane: httpx2.AsyncHTTPTransport) -> None:
        """Take a lane back, and close those that nobody has needed for a while."""
        now = self._now()
        free = self._free[origin]
        free.append((now, lane))
        while now - free[0][0] > IDLE_S:
            await self._drop(free.popleft()[1])

    async def _drop(self, lane: httpx2.AsyncHTTPTransport) -> None:
        self._all.discard(lane)
        await lane.aclose()

    async def aclose(self) -> None:
        """Close every connection."""
        self._free.clear()
        for lane in tuple(self._all):
            await self._drop(lane)


class _Lent(httpx2.AsyncByteStream):
    """The body of a response; closing it gives its lane back."""

    def __init__(
        self, stream: httpx2.AsyncByteStream, lanes: Lanes, origin: _Origin, lane: httpx2.AsyncHTTPTransport
    ) -> None:
        self._stream = stream
        self._lanes = lanes
        self._origin = origin
        self._lane: httpx2.AsyncHTTPTransport | None = lane

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            yield chunk

    async def aclose(self) -> None:
        lane, self._lane = self._lane, None
        try:
            await self._stream.aclose()
        finally:
            if lane is not None:
                await self._lanes.give_back(self._origin, lane)
