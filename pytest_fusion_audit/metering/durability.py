"""Making appended bytes durable: whole or not at all, and one sync for all who wait."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections import defaultdict
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


_SYNC, _END = "sync", "end"


class GroupCommit:
    """One thread that syncs a file for all who wait; each round grants everything written before it began.

    A loop orders a round once, after the callbacks that are ready: with a hundred calls at once, most of the price of
    durability is the handing-over between loop and thread.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._synced = 0
        self._waiting: list[_Waiter] = []
        self._failed: OSError | None = None
        self._closed = False
        self._ordered_by: set[asyncio.AbstractEventLoop | None] = set()  # since the last round began
        self._orders: SimpleQueue[str] = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def reached(self, offset: int) -> None:
        """Wait, without blocking the event loop, until ``offset`` is durable."""
        if self._synced < offset:
            loop = asyncio.get_running_loop()
            future: asyncio.Future[None] = loop.create_future()
            self._wait(_Waiter(offset, future, loop))
            await future

    def reach(self, offset: int) -> None:
        """Block until ``offset`` is durable."""
        if self._synced < offset:
            future: concurrent.futures.Future[None] = concurrent.futures.Future()
            self._wait(_Waiter(offset, future))
            future.result()

    def close(self) -> None:
        """Sync what is waited for and end the thread."""
        with self._lock:
            self._closed = True
        self._orders.put(_END)
        if self._thread is not None:
            self._thread.join()

    def _wait(self, waiter: _Waiter) -> None:
        with self._lock:
            if self._failed is not None:
                raise self._failed
            if self._closed:
                raise ValueError("the file is closed; what was written last may not be on the disk")
            self._waiting.append(waiter)
            if waiter.loop in self._ordered_by:
                return
            self._ordered_by.add(waiter.loop)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="fusion-group-commit", daemon=True)
                self._thread.start()
        if waiter.loop is None:
            self._orders.put(_SYNC)
        else:
            waiter.loop.call_soon(self._orders.put, _SYNC)

    def _run(self) -> None:
        while self._orders.get() == _SYNC:
            self._round()
        self._round()

    def _round(self) -> None:
        """Sync for all who wait now."""
        with self._lock:
            served, self._waiting = self._waiting, []
            self._ordered_by.clear()
        if not served:
            return
        failed: OSError | None = None
        try:
            os.fdatasync(self._file)
        except OSError as error:
            failed = error
        with self._lock:
            if failed is None:
                self._synced = max(self._synced, *(waiter.offset for waiter in served))
            else:
                self._failed = failed
                served, self._waiting = served + self._waiting, []
        _tell(served, failed)


class _Waiter(NamedTuple):
    offset: int
    future: asyncio.Future[None] | concurrent.futures.Future[None]
    loop: asyncio.AbstractEventLoop | None = None


def _tell(waiters: Sequence[_Waiter], failed: OSError | None) -> None:
    """Tell all who waited, each loop once."""
    by_loop: dict[asyncio.AbstractEventLoop | None, list[_Waiter]] = defaultdict(list)
    for waiter in waiters:
        by_loop[waiter.loop].append(waiter)
    for loop, told in by_loop.items():
        if loop is None:
            _settle(told, failed)
        else:
            with suppress(RuntimeError):  # the loop was closed: nobody waits there any more
                loop.call_soon_threadsafe(_settle, told, failed)


def _settle(waiters: Sequence[_Waiter], failed: OSError | None) -> None:
    for waiter in waiters:
        if waiter.future.done():
            continue
        if failed is None:
            waiter.future.set_result(None)
        else:
            waiter.future.set_exception(failed)


def append_whole(file: int, data: bytes, end: int) -> None:
    """Append to a file that ends at ``end``: all of ``data``, or on an error nothing.

    Raises:
        OSError: the disk is full; the file is as it was.
    """
    try:
        written = os.write(file, data)
    except OSError:
        written = -1
        raise
    finally:
        if written != len(data):
            os.ftruncate(file, end)
    if written != len(data):
        raise OSError(28, "No space left on device")


def sync_folder(folder: Path) -> None:
    """Make the names of new files in a folder durable."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
