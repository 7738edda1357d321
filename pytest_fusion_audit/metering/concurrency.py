"""How many calls to a model may be open at once: as many as asked for, fewer while its provider says "too many".

A limit shrinks on 429 only, once for all calls that were open together. It then grows slowly, by one call for every
round of calls that went well. Slow answers, errors and our own waiting say nothing about the provider's limit.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

SHRINK = 0.7


@dataclass(slots=True)
class Slot:
    """Permission for one call; `tell` what status it was answered with."""

    round: int
    status: int | None = None

    def tell(self, status: int | None) -> None:
        """Note the status of the answer, None when there was none."""
        self.status = status


class AdaptiveLimit:
    """The limit of one model, for one event loop.

    Args:
        most: never more than these.
        start: how many at first; defaults to ``most``.

    Attributes:
        limit: how many now, at least 1; a fraction counts towards the next whole call.
    """

    def __init__(self, most: int, start: int | None = None) -> None:
        if most < 1 or (start is not None and not 1 <= start <= most):
            raise ValueError(f"a limit of {most} calls that starts at {start} lets nobody through")
        self.most = most
        self.limit = float(start or most)
        self.open = 0
        self._round = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Slot]:
        """Wait for one's turn, first come first served; hold a slot for one attempt, never while waiting to retry."""
        if self.open >= int(self.limit) or self._waiting:
            await self._turn()
        else:
            self.open += 1
        slot = Slot(self._round)
        try:
            yield slot
        finally:
            self.open -= 1
            if slot.status == 429:
                self._shrink(slot)
            elif slot.status is not None and slot.status < 400:
                self.limit = min(float(self.most), self.limit + 1 / self.limit)
            self._admit()

    async def _turn(self) -> None:
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():
                self.open -= 1  # admitted at that very moment
                self._admit()
            raise

    def _admit(self) -> None:
        while self._waiting and self.open < int(self.limit):
            place = self._waiting.popleft()
            if not place.cancelled():
                self.open += 1
                place.set_result(None)

    def _shrink(self, slot: Slot) -> None:
        if slot.round == self._round:  # those that began before the last shrinking tell nothing new
            self._round += 1
            self.limit = max(1.0, self.limit * SHRINK)


@dataclass(slots=True)
class Concurrency:
    """Limits by model.

    Attributes:
        most: calls of one model at once, unless ``per_model`` says another number.
        per_model: by the id that is asked for.
    """

    most: int = 16
    per_model: Mapping[str, int] = field(default_factory=dict)
    _limits: dict[str, AdaptiveLimit] = field(default_factory=dict)

    def of(self, model: str) -> AdaptiveLimit:
        """The limit of a model."""
        if model not in self._limits:
            self._limits[model] = AdaptiveLimit(self.per_model.get(model, self.most))
        return self._limits[model]
