"""Serving the proxy on a free loopback port, in the caller's event loop or in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import uvicorn

from pytest_fusion_audit.errors import FusionAuditError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from pytest_fusion_audit.metering.proxy import Proxy

_START_CEILING_S = 15.0
_STOP_CEILING_S = 5
#: Longer than any client keeps an idle connection, so that none is closed in the moment in which it is used again.
_KEEP_ALIVE_S = 600


class _Server(uvicorn.Server):
    """A server that leaves the signals to the session it runs in."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(proxy: Proxy) -> AsyncIterator[str]:
    """Serve the proxy for the length of the block; yields its root URL with the run's token.

    Calls that are still going on when the block ends are finished by the transport, whose ``aclose`` waits for them.
    Batches that are on their way then are left to the next session.

    Raises:
        FusionAuditError: it did not start within 15 s.
    """
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        config = uvicorn.Config(
            proxy.application(),
            log_config=None,  # else it would configure the logging of the whole process
            log_level="critical",
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            date_header=False,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=_STOP_CEILING_S,
        )
        server = _Server(config)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            await _started(server, task)
            yield f"http://127.0.0.1:{port}/s/{proxy.token}"
        finally:
            server.should_exit = True
            await task
            await proxy.batches.aclose()


async def _started(server: uvicorn.Server, task: asyncio.Task[None]) -> None:
    try:
        async with asyncio.timeout(_START_CEILING_S):
            while not server.started:
                if task.done():
                    task.result()
                    raise FusionAuditError("the metering proxy ended before it served; try again")
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise FusionAuditError("the metering proxy did not start within 15 s; try again") from None


@contextmanager
def serving_in_thread(proxy: Proxy) -> Iterator[str]:
    """Like `serving`, with an event loop in a thread of its own, for callers that have none.

    The proxy's transport belongs to that thread: nobody else may send through it, and it is closed with the block.
    """
    began = threading.Event()
    url: list[str] = []
    failed: list[BaseException] = []
    stopping: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def main() -> None:
        stop = asyncio.Event()
        stopping.append((asyncio.get_running_loop(), stop))
        async with serving(proxy) as served:
            url.append(served)
            began.set()
            await stop.wait()
        await proxy.transport.aclose()

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            failed.append(error)
        finally:
            began.set()

    thread = threading.Thread(target=run, name="fusion-proxy", daemon=True)
    thread.start()
    began.wait()
    try:
        if url:
            yield url[0]
    finally:
        if thread.is_alive() and stopping:
            loop, stop = stopping[0]
            loop.call_soon_threadsafe(stop.set)
        thread.join()
    if failed:
        raise failed[0]
