"""A client process that kills itself at the n-th thing it does; the product knows nothing of it.

Everything the process does to files and sockets goes through functions of `os`, `fcntl` and `socket`, which are wrapped
here, each with a point before it, after it and (for writes) in the middle of it, where half of the bytes are out.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2

from pytest_fusion_audit.evidence.files import write_durably
from pytest_fusion_audit.metering.lanes import Lanes
from pytest_fusion_audit.metering.ledger import Limits
from pytest_fusion_audit.metering.scope import Scope
from tests.metering.doors import BIG, FlatPrices, open_door

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What the client is to do.

    Attributes:
        prompts: asked in this order; one that ends in ``~`` as a stream.
        at_once: how many at the same time.
        bank: write all answers into ``bank.json`` at the end, durably.
    """

    prompts: tuple[str, ...]
    at_once: int = 1
    worst: int | None = None
    actual: int | None = None
    bank: bool = False


class Points:
    """Counts the points that are reached, and ends the process at the one that was chosen."""

    def __init__(self, fatal: int | str | None) -> None:
        self._fatal = fatal
        self._count = 0
        self._named: Counter[str] = Counter()
        self._lock = threading.Lock()

    def reach(self, name: str) -> None:
        """One point; ``name`` and its number among those of that name is the other way to choose it."""
        with self._lock:
            self._count += 1
            self._named[name] += 1
            if self._fatal in {self._count, f"{name} {self._named[name]}"}:
                os.kill(os.getpid(), signal.SIGKILL)

    def count(self) -> int:
        return self._count


def _around(points: Points, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def wrapped(*arguments: Any, **settings: Any) -> Any:
        points.reach(f"before {name}")
        result = function(*arguments, **settings)
        points.reach(f"after {name}")
        return result

    return wrapped


def _on_the_wire(points: Points, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """As `_around`, for sockets that lead to another process; loops also wake themselves through sockets."""
    wrapped = _around(points, name, function)

    def method(self: socket.socket, *arguments: Any) -> Any:
        return (wrapped if self.family == socket.AF_INET else function)(self, *arguments)

    return method


def plant(points: Points) -> None:
    """Wrap what touches files and sockets."""
    write = os.write

    def halved(file: int, data: bytes) -> int:
        points.reach("before write")
        done = write(file, data[: len(data) // 2])
        points.reach("during write")
        done += write(file, data[done:])
        points.reach("after write")
        return done

    os.write = halved
    for name in ("fdatasync", "fsync", "ftruncate", "unlink", "replace"):
        setattr(os, name, _around(points, name, getattr(os, name)))
    fcntl.flock = _around(points, "flock", fcntl.flock)
    for name in ("send", "recv"):
        setattr(socket.socket, name, _on_the_wire(points, name, getattr(socket.socket, name)))


async def _work(folder: Path, url: str, work: Work, session: str, points: Points) -> None:
    answers: dict[str, str] = {}
    gate = asyncio.Semaphore(work.at_once)
    prices = FlatPrices(work.worst, work.actual)
    async with open_door(folder, url, session=session, prices=prices, limits=Limits(total=BIG)) as door:

        async def ask(prompt: str) -> None:
            async with gate:
                status = 429
                while status == 429:
                    body = {"stream": True} if prompt.endswith("~") else {}
                    response = await door.ask(prompt, Scope(phase="3", task=prompt), **body)
                    status = response.status_code
                answers[prompt] = response.text
                points.reach("done")

        await asyncio.gather(*(ask(prompt) for prompt in work.prompts))
    if work.bank:
        write_durably(folder / "bank.json", repr(answers).encode() * 50)


def _child(order: dict[str, Any]) -> int:
    """Do one session's work; returns how many points were reached."""
    points = Points(order["fatal"])
    plant(points)
    work = Work(**order["work"] | {"prompts": tuple(order["work"]["prompts"])})
    asyncio.run(_work(Path(order["folder"]), order["url"], work, order["session"], points))
    return points.count()


async def _warm_up() -> None:
    """Have everything imported that a request needs."""
    async with httpx2.AsyncClient(transport=Lanes()) as client:
        with suppress(httpx2.ConnectError):
            await client.post("http://127.0.0.1:9")


def main() -> None:
    """Fork a client for every order on standard input: everything is imported by then, so that it takes a moment."""
    asyncio.run(_warm_up())
    for line in sys.stdin:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.write(writing, b"%d" % _child(json.loads(line)))
                code = 0
            except BaseException:  # noqa: BLE001 - told by the code, and in full on standard error
                traceback.print_exc()
            os._exit(code)
        os.close(writing)
        print(json.dumps({"process": child}), flush=True)  # noqa: T201 - the answer
        _, status = os.waitpid(child, 0)
        with os.fdopen(reading, "rb") as pipe:
            points = pipe.read()
        print(json.dumps({"code": os.waitstatus_to_exitcode(status), "points": points.decode()}), flush=True)  # noqa: T201


class Clients:
    """Starts client processes, one at a time."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.metering.kill_driver"]
        self._forking = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def start(self, folder: Path, url: str, work: Work, session: str, fatal: int | str | None = None) -> int:
        """Start a client; returns its process id."""
        order = {"folder": str(folder), "url": url, "work": asdict(work), "session": session, "fatal": fatal}
        assert self._forking.stdin is not None
        self._forking.stdin.write(json.dumps(order) + "\n")
        self._forking.stdin.flush()
        return int(self._told()["process"])

    def ended(self) -> int | None:
        """How many points the client reached; None when it was killed.

        Raises:
            AssertionError: it ended in another way.
        """
        told = self._told()
        if told["code"] == -signal.SIGKILL:
            return None
        assert told["code"] == 0, f"the client ended with {told['code']}"
        return int(told["points"])

    def _told(self) -> dict[str, Any]:
        assert self._forking.stdout is not None
        found: dict[str, Any] = json.loads(self._forking.stdout.readline())
        return found

    def close(self) -> None:
        self._forking.communicate()


if __name__ == "__main__":
    main()
