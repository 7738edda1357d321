"""One batch on its way, a step at a time; every step is in the journal before the next one is taken.

A kill between two steps costs nothing: before the provider is asked for a batch the journal says so, and a batch that
may exist is looked for before another one is asked for. What is looked for and not there must be missing twice, a
minute apart: a list may lag behind.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import httpx2

from pytest_fusion_audit.metering.batch_jobs import CANCELLED
from pytest_fusion_audit.metering.batch_requests import wire_of
from pytest_fusion_audit.metering.batch_settling import lost, settlements, unanswered
from pytest_fusion_audit.metering.batch_wire import (
    BatchAccessError,
    BusyError,
    Line,
    Look,
    NotNowError,
    RefusedError,
    Results,
    Wire,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_fusion_audit.metering.batch_book import Batch
    from pytest_fusion_audit.metering.journal import Row
    from pytest_fusion_audit.metering.transport import MeteredTransport

#: How long a batch that was asked for must stay invisible before another one is asked for.
SETTLE_S = 60.0
#: After this long a provider may have dropped a batch with its results: one that cannot be found stays charged.
KEPT_S = 28 * 86_400.0
_READS = 3  # times a result file is fetched that has unreadable lines
_TOGETHER = 1_000  # settlements in one piece of the journal
_GONE = frozenset({404, 410})


class Clock(Protocol):
    """Time, so that tests need not wait for it."""

    def now(self) -> float:
        """Seconds since the epoch."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class BatchSteps:
    """Takes the batches of this process further.

    Args:
        transport: the metered door.
        clock: what time it is.
    """

    def __init__(self, transport: MeteredTransport, clock: Clock) -> None:
        self._transport = transport
        self._calls = transport.calls
        self._clock = clock
        self._untouched: set[str] = set()
        self._missing: dict[str, float] = {}
        self._reads: Counter[str] = Counter()
        self._called_off: set[str] = set()

    def reserved(self, batches: Sequence[str]) -> None:
        """Learn which batches this process has just reserved: nothing of them can lie at the provider yet."""
        self._untouched.update(batches)

    async def advance(self, batch: Batch, *, cancel: bool = False) -> None:
        """Take the next step of a batch that this process owns; afterwards its state tells how far it came.

        Args:
            batch: the batch.
            cancel: nobody wants its answers any more: it is not sent, or called off at the provider.

        Raises:
            NotNowError: the provider did not say; the step is to be taken again later.
            BatchAccessError: key or account are refused. RefusedError: an answer that makes no sense.
        """
        wire = wire_of(batch.url, self._transport, batch.version)
        if batch.state == "reserved" and cancel:
            await self._close(batch, unanswered(batch, CANCELLED, retry=True))
        elif batch.state == "reserved":
            await self._send(batch, wire)
        elif batch.state == "sending":
            await self._find(batch, wire)
        elif batch.state == "submitted":
            if cancel and batch.id not in self._called_off:
                self._called_off.add(batch.id)
                await self._call_off(batch, wire)
            await self._fetch(batch, wire)
        if batch.state == "read":
            await self._clean(batch, wire)

    async def _send(self, batch: Batch, wire: Wire) -> None:
        if not batch.whole:
            await self._close(batch, unanswered(batch, "reservation_cut", retry=True))
            return
        lines = [Line(call, json.loads(self._calls.bodies.get(row["request"]))) for call, row in batch.open.items()]
        again = batch.id not in self._untouched
        self._untouched.discard(batch.id)
        try:
            file = batch.file or await wire.prepare(batch, lines, again=again)
            await self._note(batch, state="sending", file=file)
            provider = await wire.create(batch, lines)
        except BusyError:
            if batch.state == "sending":
                await self._note(batch, state="reserved")  # it said no, so there is nothing to look for
            raise
        except RefusedError as error:
            await self._close(batch, unanswered(batch, error.code, retry=False))
            return
        except BatchAccessError:
            await self._close(batch, unanswered(batch, "access_refused", retry=True))
            raise
        await self._note(batch, state="submitted", provider=provider)

    async def _find(self, batch: Batch, wire: Wire) -> None:
        found, provider = await wire.find(batch, self._calls.batches.provider_ids())
        if found == "found":
            await self._note(batch, state="submitted", provider=provider)
        if found != "absent":
            self._missing.pop(batch.id, None)
            return
        now = self._clock.now()
        if now - batch.at > KEPT_S:
            await self._close(batch, lost(batch, "asked for in a batch that cannot be found any more"))
        elif batch.id not in self._missing:
            self._missing[batch.id] = now
        elif abs(now - self._missing[batch.id]) >= SETTLE_S:
            del self._missing[batch.id]
            if batch.file is not None:
                # Should it turn up after all, it has nothing to run.
                await wire.delete(batch.file)
            await self._note(batch, state="reserved", file=None)

    async def _call_off(self, batch: Batch, wire: Wire) -> None:
        """Ask the provider to cancel; what it has answered by then is paid and kept. A batch may have ended before."""
        with suppress(RefusedError, NotNowError):
            await wire.cancel(batch)

    async def _fetch(self, batch: Batch, wire: Wire) -> None:
        try:
            look = await wire.look(batch)
            if not look.ended:
                return
            results = await wire.results(look)
        except RefusedError as error:
            if error.status not in _GONE:
                raise
            await self._close(batch, lost(batch, "the provider keeps its batch or its results no longer"))
            return
        if results.unreadable and self._reads[batch.id] + 1 < _READS:
            self._reads[batch.id] += 1
            return
        await self._settle(batch, look, results)

    async def _settle(self, batch: Batch, look: Look, results: Results) -> None:
        made = settlements(
            batch,
            results.rows,
            look,
            pricing=self._transport.pricing,
            bodies=self._calls.bodies,
            scrubber=self._transport.scrubber,
            endpoint=self._transport.credentials.endpoint_of(httpx2.URL(batch.url)),
        )
        await self._calls.bodies.durable(made.bodies_end)
        await self._close(batch, made.rows, files=look.files)
        if made.stop is not None:
            self._calls.ledger.stop(made.stop)

    async def _close(self, batch: Batch, rows: Sequence[Row], files: Sequence[str] = ()) -> None:
        """Write how each call ended, durably, and only then allow what the provider keeps to be deleted."""
        end = 0
        for at in range(0, len(rows), _TOGETHER):
            end = self._calls.ledger.close_together(rows[at : at + _TOGETHER])
        await self._calls.journal.durable(end)
        await self._note(batch, state="read", files=list(files or filter(None, (batch.file,))))

    async def _clean(self, batch: Batch, wire: Wire) -> None:
        kept = []
        for what in batch.files:
            try:
                await wire.delete(what)
            except RefusedError:
                kept.append(what)
        await self._note(batch, state="done", **({"kept": kept} if kept else {}))

    async def _note(self, batch: Batch, **changes: Any) -> None:
        """Write down how far a batch is, durably."""
        journal = self._calls.journal
        with journal.exclusively():
            end = journal.append([{"e": "batch", "id": batch.id, "at": round(self._clock.now(), 3), **changes}])
        await journal.durable(end)
