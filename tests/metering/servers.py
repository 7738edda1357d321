"""Real loopback HTTP servers of both providers' protocols, with scripted behaviour and an exact bill.

In a thread: ``with running_server() as server:`` gives `Server`. As its own process: ``with server_process() as
server:`` gives `ServerProcess`, which survives the kill of its client and keeps its bill in a file; the command line
behind it is ``python -m tests.metering.servers --port 0 --bill bill.jsonl``, which prints its port.

What a request gets: a marker in its prompt, ``[[script:rate_limit]]`` or ``[[script:{"kind": "cut", "cut_after": 2}]]``
(``*2`` before the brackets: only the first two times that this body is sent), else the head of the queue (`script`),
else a good answer. Every request is one row of the bill, written before its answer leaves; rows with ``billed`` count
as money. Head and body leave in one send.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.metering.server_batches import BatchScript
from tests.metering.server_replies import Json, Reply, request_hash
from tests.metering.server_sockets import serve
from tests.metering.server_state import Request, Server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "BatchScript",
    "Reply",
    "Request",
    "Server",
    "ServerProcess",
    "read_bill",
    "request_hash",
    "running_server",
    "server_process",
]
ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def running_server(
    *,
    bill: Path | None = None,
    state: Path | None = None,
    latency_s: float = 0.0,
    keys: Sequence[str] = (),
    models: Sequence[str] = (),
) -> Iterator[Server]:
    """A server in a thread of this process; ``server.url`` has no ``/v1``."""
    server = Server(bill=bill, state=state, latency_s=latency_s, keys=keys, models=models)
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    def run() -> None:
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(serve(server, 0, ready, stop))
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    if not ready.wait(10):
        raise RuntimeError("the loopback server did not start")
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        server.close()


class ServerProcess:
    """A server in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], url: str, bill: Path) -> None:
        self.process, self.url, self.bill = process, url, bill
        self._rows: list[Json] = []
        self._read_to = 0

    def _ask(self, path: str, body: Any) -> Any:
        request = urllib.request.Request(f"{self.url}{path}", json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.load(response)

    def script(self, *replies: Reply | str) -> None:
        """Queue replies as `Server.script` does."""
        made = [Reply(kind=each) if isinstance(each, str) else each for each in replies]
        self._ask("/_script", [asdict(each) for each in made])

    def batch_script(self, script: BatchScript) -> None:
        """Say how batches go from now on."""
        self._ask("/_batches", asdict(script))

    def open_most(self) -> int:
        """Most requests that were open at once."""
        return int(self._ask("/_bill", {})["open_most"])

    def rows(self) -> list[Json]:
        """Rows of the bill, from its file."""
        with self.bill.open("rb") as file:
            file.seek(self._read_to)
            whole = file.read().rpartition(b"\n")[0]
        if whole:
            self._rows += [json.loads(line) for line in whole.split(b"\n")]
            self._read_to += len(whole) + 1
        return self._rows

    def billed(self) -> list[Json]:
        """Rows that cost money."""
        return [row for row in self.rows() if row["billed"]]

    def counts(self) -> Counter[str]:
        """How often each request hash was billed."""
        return Counter(row["hash"] for row in self.billed())


def read_bill(path: Path) -> list[Json]:
    """All rows of a bill file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@contextmanager
def server_process(
    bill: Path,
    *,
    state: Path | None = None,
    latency_s: float = 0.0,
    keys: Sequence[str] = (),
    models: Sequence[str] = (),
    port: int = 0,
) -> Iterator[ServerProcess]:
    """A server in a process of its own, killed at the end; start it again with the same ``state`` and ``port``."""
    command = [sys.executable, "-m", "tests.metering.servers", "--port", str(port), "--bill", str(bill)]
    command += ["--latency", str(latency_s), "--keys", ",".join(keys), "--models", ",".join(models)]
    if state is not None:
        command += ["--state", str(state)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        if not line:
            raise RuntimeError("the loopback server did not start")
        yield ServerProcess(process, f"http://127.0.0.1:{line}", bill)
    finally:
        process.kill()
        process.communicate()


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--bill", type=Path)
    parser.add_argument("--state", type=Path)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--keys", default="")
    parser.add_argument("--models", default="")
    parser.add_argument("--script", help="JSON list of replies to queue")
    options = parser.parse_args(arguments)
    server = Server(
        bill=options.bill,
        state=options.state,
        latency_s=options.latency,
        keys=[key for key in options.keys.split(",") if key],
        models=[model for model in options.models.split(",") if model],
    )
    if options.script:
        server.script(*(Reply(**each) for each in json.loads(options.script)))
    asyncio.run(serve(server, options.port, None, asyncio.Event()))


if __name__ == "__main__":
    main()
