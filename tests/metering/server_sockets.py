"""The sockets of the loopback servers: HTTP/1.1 by hand, so that head and body leave in one send."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING

from tests.metering.server_state import Request, Server

if TYPE_CHECKING:
    import threading

    from tests.metering.server_replies import Reply


class Connection(asyncio.Protocol):
    """One kept-alive HTTP/1.1 connection; requests follow one another."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._data = bytearray()
        self._transport: asyncio.Transport
        self._busy = False
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        if not self._busy:
            self._next()

    def _next(self) -> None:
        head, blank, _ = bytes(self._data).partition(b"\r\n\r\n")
        if not blank:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        begin = len(head) + 4
        if headers.get("transfer-encoding") == "chunked":
            unframed = _unchunk(self._data, begin)
            if unframed is None:
                return
            body, end = unframed
        else:
            end = begin + int(headers.get("content-length", 0))
            if len(self._data) < end:
                return
            body = bytes(self._data[begin:end])
        del self._data[:end]
        method, path, _ = first.split(" ", 2)
        self._busy = True
        # A task of its own, never cancelled by a client that hangs up: the provider works on, and bills.
        self._task = asyncio.get_running_loop().create_task(self._respond(Request(method, path, headers, body)))

    async def _respond(self, request: Request) -> None:
        server = self._server
        reply, status, headers, body = server.answer(request)
        if reply.kind == "hang":
            return
        latency = server.latency_s if reply.latency_s is None else reply.latency_s
        if request.path.startswith("/_"):
            latency = 0.0
        server.open_now += 1
        server.open_most = max(server.open_most, server.open_now)
        if latency:
            await asyncio.sleep(latency)
        server.open_now -= 1
        if reply.kind == "reset":
            self._transport.abort()
            return
        reason = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Overloaded"
        head = [f"HTTP/1.1 {status} {reason}"]
        head += [f"{name}: {value}" for name, value in {"content-type": "application/json", **headers}.items()]
        if isinstance(body, list):
            await self._stream(head, body, reply)
        elif reply.kind == "cut":  # a plain body that ends in the middle
            self._send(head, body[: len(body) // 2], len(body))
            self._transport.close()
        else:
            self._send(head, body, len(body))
        self._busy = False
        self._next()

    def _send(self, head: list[str], body: bytes, length: int) -> None:
        lines = [*head, f"content-length: {length}", "", ""]
        self._transport.write("\r\n".join(lines).encode("latin-1") + body)

    async def _stream(self, head: list[str], events: list[bytes], reply: Reply) -> None:
        begin = "\r\n".join([*head, "transfer-encoding: chunked", "", ""]).encode("latin-1")
        pieces = events
        if reply.split:
            whole = b"".join(events)
            pieces = [whole[at : at + reply.split] for at in range(0, len(whole), reply.split)]
        framed = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces]
        end = b"" if reply.kind == "cut" else b"0\r\n\r\n"
        if not reply.gap_s:
            self._transport.write(begin + b"".join(framed) + end)
        else:
            for number, piece in enumerate(framed):
                self._transport.write(piece if number else begin + piece)
                await asyncio.sleep(reply.gap_s)
            self._transport.write(end)
        if reply.kind == "cut":
            self._transport.close()


def _unchunk(data: bytearray, at: int) -> tuple[bytes, int] | None:
    """Body and end of a chunked request, None when it has not all arrived."""
    body = b""
    while (newline := data.find(b"\r\n", at)) >= 0:
        size = int(data[at:newline], 16)
        begin = newline + 2
        if len(data) < begin + size + 2:
            return None
        body += data[begin : begin + size]
        at = begin + size + 2
        if size == 0:
            return body, at
    return None


async def serve(server: Server, port: int, ready: threading.Event | None, stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(lambda: Connection(server), "127.0.0.1", port, backlog=2048)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    if ready is not None:
        ready.set()
    else:
        print(server.url.rpartition(":")[2], flush=True)  # noqa: T201 - the caller reads the port
    await stop.wait()
    listening.close()
    # Calls in the middle are dropped: a server that goes does not finish its sentences.
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
