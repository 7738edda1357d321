"""Standing in line: callers that wait for room are served in the order they came, and only the first one looks again.

A settlement wakes one caller and not a hundred. Callers may stand in several event loops and threads of one process;
what other processes settle is noticed by looking every `LOOK_S` seconds.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

LOOK_S = 0.05
T = TypeVar("T")


class Line:
    """One line of waiting callers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: deque[_Place] = deque()

    async def served(self, attempt: Callable[[], T | None]) -> T:
        """Wait for one's turn, then call ``attempt`` until it gives something; what it raises ends the waiting too."""
        place = _Place()
        with self._lock:
            first = not self._places
            self._places.append(place)
        try:
            if not first:
                await place.woken(None)
            while (got := attempt()) is None:
                await place.woken(LOOK_S)
            return got
        finally:
            with self._lock:
                self._places.remove(place)
            self.wake()

    def wake(self) -> None:
        """Let the first caller look again; from any thread."""
        with self._lock:
            while self._places and self._places[0].gone():
                self._places.popleft()
            if self._places:
                self._places[0].wake()


class _Place:
    """One caller, in its loop and thread."""

    __slots__ = ("_event", "_loop", "_thread")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._event = asyncio.Event()

    async def woken(self, most_s: float | None) -> None:
        """Return when woken, or after ``most_s`` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(most_s):
                await self._event.wait()
        self._event.clear()

    def gone(self) -> bool:
        """Whether its loop ended without telling it."""
        return self._loop.is_closed()

    def wake(self) -> None:
        if threading.get_ident() == self._thread:
            self._event.set()
        else:
            with suppress(RuntimeError):  # its loop was closed this moment
                self._loop.call_soon_threadsafe(self._event.set)
