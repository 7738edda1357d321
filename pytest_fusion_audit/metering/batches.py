"""Batches: many calls at half price, answered within a day, with the same caps, keys and store as any call.

A chunk of requests is reserved whole, at the batch tariff, before a provider hears of it. How far each batch has come
stands in the journal (`metering.batch_book`), so that any later process goes on where the last one was killed. Answers
are settled once and stored under the keys of their calls: whoever asks the door for such a call afterwards gets the
answer from the store, exactly like one that was bought by itself.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pytest_fusion_audit.metering.batch_book import BATCH_OWNER, NOBODY, Batch
from pytest_fusion_audit.metering.batch_requests import BatchRequest, Wanted, divided, wanted_calls
from pytest_fusion_audit.metering.batch_steps import BatchSteps, Clock
from pytest_fusion_audit.metering.batch_wire import BatchHttp, NotNowError
from pytest_fusion_audit.metering.calls import call_row
from pytest_fusion_audit.metering.ledger import CostLimitExceeded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_fusion_audit.metering.journal import Row
    from pytest_fusion_audit.metering.transport import MeteredTransport

__all__ = ["BatchOutcome", "BatchReport", "BatchRequest", "Batches", "SystemClock", "poll_interval_s"]

_SHORTEST_S, _LONGEST_S = 15.0, 300.0
_ROOM_S = 1.0  # how often calls look for room that others take up

Status = Literal["stored", "not_run", "no_budget", "pending"]


class SystemClock:
    """The time of this machine."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """What became of one request.

    ``stored``: its answer is in the store. ``not_run``: no batch answered it, ``reason`` says why; it is never a wrong
    answer, and the caller may send it by itself. ``no_budget``: it does not fit below a cap. ``pending``: a batch has
    it and patience ended; run again, in any process.
    """

    custom_id: str
    status: Status
    call: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class BatchReport:
    """Outcomes by custom id, in the order of the requests, and the refusal of those that do not fit."""

    outcomes: Mapping[str, BatchOutcome] = field(default_factory=dict)
    refusal: CostLimitExceeded | None = None

    def with_status(self, status: Status) -> list[str]:
        """Custom ids of the requests with this status."""
        return [name for name, outcome in self.outcomes.items() if outcome.status == status]


def poll_interval_s(age_s: float) -> float:
    """How long to wait before looking again at a batch of this age: an eighth of it, from 15 seconds to 5 minutes.

    >>> poll_interval_s(0), poll_interval_s(600), poll_interval_s(20_000)
    (15.0, 75.0, 300.0)
    """
    return min(_LONGEST_S, max(_SHORTEST_S, age_s / 8))


class Batches:
    """The batches of one process; one object per process and run.

    Args:
        transport: the metered door. Everything is sent through its inner transport, with its credentials and prices.
        clock: what time it is, and how to wait.
        most_rows: most requests that are reserved and sent together.
        attempts: batches a request may be in before it is given back as not run.
    """

    def __init__(
        self,
        transport: MeteredTransport,
        *,
        clock: Clock | None = None,
        most_rows: int = 5_000,
        attempts: int = 2,
    ) -> None:
        self._transport = transport
        self._calls = transport.calls
        self._clock: Clock = clock or SystemClock()
        self._most_rows = most_rows
        self._attempts = attempts
        self._steps = BatchSteps(transport, self._clock)
        self._one_at_a_time = asyncio.Lock()

    async def run(self, requests: Sequence[BatchRequest], *, patience_s: float | None = None) -> BatchReport:
        """Have requests answered: what is stored is not sent, what a batch already has is waited for.

        Batches that a dead process left are taken over and brought to their end as well.

        Args:
            requests: of one phase, in the order in which they may use up its money.
            patience_s: how long to wait at most; None waits for as long as it takes.

        Raises:
            BatchError, WireError, UnknownPriceError, UnlistedHostError, KeyMissingError: nothing was sent.
            RunStoppedError, DiskFullError: no further batch was sent.
            BatchAccessError: key or account are refused.
        """
        async with self._one_at_a_time:
            wanted = wanted_calls(requests, self._transport.pricing)
            job = _Job(wanted)
            self._sort_out(job)
            if self._transport.mode == "replay":
                return job.report("not_run", "a replay sends nothing")
            for url in dict.fromkeys(each.request.url for each in job.queue):
                BatchHttp(self._transport.inner, self._transport.credentials).check(url)
            try:
                return await self._work(job, patience_s)
            finally:
                self._let_go()

    async def collect(self, *, patience_s: float | None = None) -> None:
        """Bring to their end the batches that earlier processes left; nothing new is sent but what they had begun."""
        await self.run((), patience_s=patience_s)

    async def _work(self, job: _Job, patience_s: float | None) -> BatchReport:
        began = self._clock.now()
        while True:
            self._take_over()
            if job.queue and job.refusal is None:
                try:
                    await self._reserve(job)
                except CostLimitExceeded as refusal:
                    job.refusal = refusal
            for batch in self._mine():
                try:
                    await self._steps.advance(batch)
                except NotNowError:
                    continue  # looked at again in the next round
            self._calls.journal.refresh()
            job.learn(self._calls.batches.endings, self._attempts)
            waits = job.flying() or any(batch.state != "read" for batch in self._mine())
            if not waits and (not job.queue or job.refusal is not None):
                return job.report("no_budget", str(job.refusal))
            if patience_s is not None and self._clock.now() - began >= patience_s:
                return job.report("pending", "waits for a batch")
            await self._clock.sleep(self._interval_s())

    def _sort_out(self, job: _Job) -> None:
        """Find out what is stored, what a batch has already, and what is to be sent."""
        self._calls.journal.refresh()
        ready: dict[str, int] = {}
        flying = self._calls.batches.in_flight()
        for each in job.wanted:
            key = each.key.digest
            if ready.setdefault(key, self._calls.answers.ready(each.key)) > 0:
                ready[key] -= 1
                job.end(each, "stored")
            elif flying.get(key):
                each.call, each.tries = flying[key].pop(0), 1
            else:
                job.queue.append(each)

    async def _reserve(self, job: _Job) -> None:
        """Reserve the first requests of the queue, as many as fit, and their batches."""
        chunk = self._fitting(job.queue)
        if chunk is None:
            return
        self._calls.check_disk()
        phase = chunk[0].request.scope.phase
        names = divided(chunk)
        rows, end = [], 0
        for each, name in zip(chunk, names, strict=True):
            sha, end = self._calls.bodies.put(each.request.body)
            row = call_row(each.request.scope, each.key, each.facts, each.host, sha)
            rows.append((each.amount, row | {"owner": BATCH_OWNER + name, "custom_id": each.request.custom_id}))
        await self._calls.bodies.durable(end)
        urls = {name: each.request.url for each, name in zip(chunk, names, strict=True)}

        def batch_rows(calls: Sequence[Row]) -> list[Row]:
            sizes = Counter(row["owner"].removeprefix(BATCH_OWNER) for row in calls)
            facts = {"state": "reserved", "owner": self._calls.owner.name, "at": round(self._clock.now(), 3)}
            return [{"e": "batch", "id": id_, "url": urls[id_], "rows": sizes[id_], **facts} for id_ in sizes]

        reserved = self._calls.ledger.reserve_together(phase, rows, batch_rows)
        if not reserved:
            return
        for each, row in zip(chunk, reserved, strict=False):
            each.call = row["id"]
            each.tries += 1
        del job.queue[: len(reserved)]
        self._steps.reserved(names)
        await self._calls.journal.durable(reserved[-1]["end"])

    def _fitting(self, queue: Sequence[Wanted]) -> list[Wanted] | None:
        """The chunk to reserve next; None when a batch on its way may make more room."""
        left = self._calls.ledger.left(queue[0].request.scope.phase)
        chunk: list[Wanted] = []
        for each in queue[: self._most_rows]:
            left -= each.amount
            if left < 0:
                break
            chunk.append(each)
        partial = len(chunk) < min(len(queue), self._most_rows)
        if partial and any(batch.open for batch in self._mine()):
            return None  # rather one large batch later than many small ones
        return chunk or [queue[0]]  # the ledger says whether waiting helps

    def _mine(self) -> list[Batch]:
        return [batch for batch in self._calls.batches.unfinished() if batch.owner == self._calls.owner.name]

    def _take_over(self) -> None:
        """Become the owner of every batch that no living process looks after."""
        self._own(self._calls.owner.name, [b for b in self._calls.batches.unfinished() if self._orphaned(b)])

    def _orphaned(self, batch: Batch) -> bool:
        return self._calls.owner.dead(batch.owner)

    def _let_go(self) -> None:
        """Leave the batches that are still on their way to whoever comes next."""
        self._own(NOBODY, self._mine())

    def _own(self, owner: str, batches: Sequence[Batch]) -> None:
        if not batches:
            return
        with self._calls.journal.exclusively():
            rows = [
                {"e": "batch", "id": batch.id, "owner": owner}
                for batch in batches
                if owner == NOBODY or self._orphaned(batch)  # another process may have been faster
            ]
            if rows:
                self._calls.journal.append(rows)

    def _interval_s(self) -> float:
        mine = [batch for batch in self._mine() if batch.state != "read"]
        if not mine:
            return _ROOM_S
        now = self._clock.now()
        return min(poll_interval_s(now - batch.at) for batch in mine)


class _Job:
    """The requests of one run: which are to be sent, which fly, what became of the others."""

    def __init__(self, wanted: list[Wanted]) -> None:
        self.wanted = wanted
        self.queue: list[Wanted] = []
        self.refusal: CostLimitExceeded | None = None
        self._order = {each.request.custom_id: at for at, each in enumerate(wanted)}
        self._ended: dict[str, BatchOutcome] = {}

    def end(self, each: Wanted, status: Status, reason: str | None = None) -> None:
        """Say what became of a request."""
        name = each.request.custom_id
        self._ended[name] = BatchOutcome(name, status, each.call, reason)

    def flying(self) -> list[Wanted]:
        """Requests that a batch has."""
        return [each for each in self.wanted if each.call is not None and each.request.custom_id not in self._ended]

    def learn(self, endings: Mapping[str, Row], attempts: int) -> None:
        """Take note of the calls that have ended; what may be tried again goes back to its place in the queue."""
        for each in self.flying():
            ending = endings.get(each.call or "")
            if ending is None:
                continue
            if ending.get("answer"):
                self.end(each, "stored")
            elif ending.get("retry") and each.tries < attempts:
                each.call = None
                self.queue.append(each)
            else:
                self.end(each, "not_run", str(ending.get("error") or ending.get("reason")))
        self.queue.sort(key=lambda each: self._order[each.request.custom_id])

    def report(self, rest: Status, reason: str) -> BatchReport:
        """What became of every request; ``rest`` is the status of those that nothing became of yet."""
        for each in self.wanted:
            if each.request.custom_id not in self._ended:
                flies = each.call is not None and rest != "not_run"
                self.end(each, "pending" if flies else rest, reason)
        return BatchReport({name: self._ended[name] for name in self._order}, self.refusal)
