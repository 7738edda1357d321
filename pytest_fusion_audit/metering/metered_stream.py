"""A streamed answer: every chunk is kept before it is handed on, the one with the last event only after settlement.

A task of its own reads from the upstream, so that a client that hangs up, or is cancelled in the middle of a chunk,
does not cost us the usage, which stands in the last event.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import httpx2

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from pytest_fusion_audit.metering.streams import Spool
    from pytest_fusion_audit.metering.wire.base import ResponseFacts, StreamReader

    #: Called with the facts, everything that arrived, and whether the stream came to its end.
    Settle = Callable[[ResponseFacts, bytes, bool], Awaitable[None]]
    Gone = Callable[[asyncio.Task[None]], None]


class MeteredStream(httpx2.AsyncByteStream):
    """The body of a streamed response on its way to the client.

    Args:
        response: the upstream's response, its head read.
        reader: reads the dialect of the stream.
        spool: keeps the chunks.
        settle: stores and charges the call; called once, before the last event is handed on.
        gone: told of the reading task when the client closes the stream: from then on it has limited time.
    """

    def __init__(
        self, response: httpx2.Response, reader: StreamReader, spool: Spool, settle: Settle, gone: Gone
    ) -> None:
        self._response = response
        self._reader = reader
        self._spool = spool
        self._settle = settle
        self._gone = gone
        self._settled = False
        self._chunks: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self.reading = asyncio.get_running_loop().create_task(self._read())

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (chunk := await self._chunks.get()) is not None:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk

    async def aclose(self) -> None:
        """The client is done, or has gone: the reading goes on to the end of the stream, in limited time."""
        self._gone(self.reading)

    async def _read(self) -> None:
        try:
            async for chunk in self._response.aiter_bytes():
                if not self._settled:
                    # Kept in memory too: a full disk does not lose what was paid for before it is settled.
                    with suppress(OSError):
                        self._spool.write(chunk)
                    if self._reader.feed(chunk):
                        await self._end(whole=True)
                self._chunks.put_nowait(chunk)
            await self._end(whole=True)
        except asyncio.CancelledError:
            await self._end(whole=False)
            raise
        except Exception as error:  # noqa: BLE001 - whatever it was, the client gets it
            with suppress(Exception):  # the first error is the one to tell
                await self._end(whole=False)
            self._chunks.put_nowait(error)
        finally:
            self._chunks.put_nowait(None)
            await self._response.aclose()

    async def _end(self, *, whole: bool) -> None:
        if self._settled:
            return
        self._settled = True
        await self._settle(self._reader.facts(), self._spool.content(), whole)
        self._spool.remove()
