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
from typing import TYPE_CHECKING

from pytest_fusion_audit.metering.batch_book import BATCH_OWNER, NOBODY, Batch
from pytest_fusion_audit.metering.batch_jobs import BatchOutcome, BatchReport, Job, claimed_calls
from pytest_fusion_audit.metering.batch_requests import BatchRequest, Wanted, address, divided, wanted_calls
from pytest_fusion_audit.metering.batch_steps import BatchSteps, Clock
from pytest_fusion_audit.metering.batch_wire import NotNowError
from pytest_fusion_audit.metering.calls import call_row
from pytest_fusion_audit.metering.limits import CostLimitExceeded, RunStoppedError, bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_fusion_audit.metering.journal import Row
    from pytest_fusion_audit.metering.transport import MeteredTransport

__all__ = ["BatchOutcome", "BatchReport", "BatchRequest", "Batches", "SystemClock", "poll_interval_s"]

_SHORTEST_S, _LONGEST_S = 15.0, 300.0
_ROOM_S = 1.0  # how often calls look for room that others take up


class SystemClock:
    """The time of this machine."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


def poll_interval_s(age_s: float) -> float:
    """How long to wait before looking again at a batch of this age: an eighth of it, from 15 seconds to 5 minutes.

    >>> poll_interval_s(0), poll_interval_s(600), poll_interval_s(20_000)
    (15.0, 75.0, 300.0)
    """
    return min(_LONGEST_S, max(_SHORTEST_S, age_s / 8))


class Batches:
    """The batches of one event loop; one object per loop and run.

    Several runs may be under way at once. Each looks after its own batches, and none waits for another's.

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
        self._jobs: list[Job] = []

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
        return await self.finish(self.accept(wanted_calls(requests, self._transport.pricing)), patience_s=patience_s)

    def accept(self, wanted: list[Wanted], *, whole: bool = False, tends_all: bool = True) -> Job:
        """Find out what of the requests is stored, what a batch has, and what is to be bought; nothing is sent yet.

        Args:
            wanted: the requests, as `wanted_calls` reads them.
            whole: refuse them all unless everything that is to be bought fits now.
            tends_all: see `Job`.

        Returns:
            The job, for `finish`.

        Raises:
            UnlistedHostError, KeyMissingError: nothing may be sent there.
            CostLimitExceeded, RunStoppedError: with ``whole`` only.
        """
        job = Job(wanted, tends_all=tends_all)
        self._sort_out(job)
        if self._transport.mode == "live":
            address((*job.queue, *job.flying()), self._transport)
            if whole and job.queue:
                self._check_room(job.queue)
        self._jobs.append(job)
        return job

    async def finish(self, job: Job, *, patience_s: float | None = None) -> BatchReport:
        """Have the requests of a job answered; see `run`."""
        try:
            if self._transport.mode == "replay":
                return job.report("not_run", "a replay sends nothing")
            return await self._work(job, patience_s)
        finally:
            self._jobs.remove(job)
            self._let_go(job)
            job.begun.set()

    async def collect(self, *, patience_s: float | None = None) -> None:
        """Bring to their end the batches that earlier processes left; nothing new is sent but what they had begun."""
        await self.run((), patience_s=patience_s)

    async def _work(self, job: Job, patience_s: float | None) -> BatchReport:
        began = self._clock.now()
        while True:
            self._take_over(job)
            if job.cancelled:
                job.drop_queue()
            if job.queue and job.refusal is None:
                try:
                    await self._reserve(job)
                except CostLimitExceeded as refusal:
                    job.refusal = refusal
            job.begun.set()
            for batch in self._tended(job):
                try:
                    await self._steps.advance(batch, cancel=job.may_cancel(batch))
                except NotNowError:
                    continue  # looked at again in the next round
            self._calls.journal.refresh()
            job.learn(self._calls.batches.ending, self._attempts)
            waits = job.flying() or any(batch.state != "read" for batch in self._tended(job))
            if not waits and (not job.queue or job.refusal is not None):
                return job.report("no_budget", str(job.refusal))
            if job.leaving or (patience_s is not None and self._clock.now() - began >= patience_s):
                return job.report("pending", "waits for a batch")
            await self._clock.sleep(self._interval_s(job))

    def _sort_out(self, job: Job) -> None:
        """Find out what is stored, what a batch has already, and what is to be sent."""
        self._calls.journal.refresh()
        ready: dict[str, int] = {}
        claimed = claimed_calls(self._jobs)
        flying = {
            key: free
            for key, calls in self._calls.batches.in_flight().items()
            if (free := [call for call in calls if call not in claimed])
        }
        for each in job.wanted:
            key = each.key.digest
            if ready.setdefault(key, self._calls.answers.ready(each.key)) > 0:
                ready[key] -= 1
                job.end(each, "stored")
            elif flying.get(key):
                each.call, each.tries = flying[key].pop(0), 1
            else:
                job.queue.append(each)

    def _check_room(self, queue: Sequence[Wanted]) -> None:
        """Check that everything in a queue fits at once, beside what other jobs have yet to reserve.

        Raises:
            CostLimitExceeded, RunStoppedError: it does not, or nothing may be sent any more.
        """
        ledger, phase = self._calls.ledger, queue[0].request.scope.phase
        if ledger.balances.stopped is not None:
            raise RunStoppedError(f"the run was stopped: {ledger.balances.stopped}; nothing was sent")
        needed = sum(each.amount for each in queue)
        promised = sum(each.amount for job in self._jobs for each in job.queue)
        if needed + promised <= ledger.left(phase):
            return
        for name, cap, account in bounds(ledger.limits, ledger.balances, phase):
            if account.committed + needed + promised > cap:
                raise CostLimitExceeded.at(name, cap, account, needed, phase)

    async def _reserve(self, job: Job) -> None:
        """Reserve the first requests of the queue, as many as fit, and their batches."""
        chunk = self._fitting(job)
        if chunk is None:
            return
        self._calls.check_disk()
        phase = chunk[0].request.scope.phase
        names = divided(chunk)
        rows, end = [], 0
        for each, name in zip(chunk, names, strict=True):
            sha, end = self._calls.bodies.put(each.sent)
            row = call_row(each.request.scope, each.key, each.facts, each.host, sha)
            rows.append((each.amount, row | {"owner": BATCH_OWNER + name, "custom_id": each.request.custom_id}))
        await self._calls.bodies.durable(end)
        places = {name: _place(each.request) for each, name in zip(chunk, names, strict=True)}

        def batch_rows(calls: Sequence[Row]) -> list[Row]:
            sizes = Counter(row["owner"].removeprefix(BATCH_OWNER) for row in calls)
            facts = {"state": "reserved", "owner": self._calls.owner.name, "at": round(self._clock.now(), 3)}
            return [{"e": "batch", "id": id_, **places[id_], "rows": sizes[id_], **facts} for id_ in sizes]

        reserved = self._calls.ledger.reserve_together(phase, rows, batch_rows)
        if not reserved:
            return
        for each, row in zip(chunk, reserved, strict=False):
            each.call = row["id"]
            each.tries += 1
        del job.queue[: len(reserved)]
        self._steps.reserved(names)
        job.batches.update(names)
        await self._calls.journal.durable(reserved[-1]["end"])

    def _fitting(self, job: Job) -> list[Wanted] | None:
        """The chunk to reserve next; None when a batch on its way may make more room."""
        queue = job.queue
        left = self._calls.ledger.left(queue[0].request.scope.phase)
        chunk: list[Wanted] = []
        for each in queue[: self._most_rows]:
            left -= each.amount
            if left < 0:
                break
            chunk.append(each)
        partial = len(chunk) < min(len(queue), self._most_rows)
        if partial and any(batch.open for batch in self._tended(job)):
            return None  # rather one large batch later than many small ones
        return chunk or [queue[0]]  # the ledger says whether waiting helps

    def _tended(self, job: Job) -> list[Batch]:
        return [batch for batch in self._calls.batches.unfinished() if batch.id in job.batches and self._ours(batch)]

    def _ours(self, batch: Batch) -> bool:
        return batch.owner == self._calls.owner.name

    def _take_over(self, job: Job) -> None:
        """Become the owner of batches that nobody alive looks after: of all, or of those that the job waits for."""
        left = [batch for batch in self._calls.batches.unfinished() if self._orphaned(batch)]
        if not job.tends_all:
            left = [batch for batch in left if job.waits_for(batch)]
        job.batches.update(self._own(self._calls.owner.name, left))

    def _orphaned(self, batch: Batch) -> bool:
        return self._calls.owner.dead(batch.owner)

    def _let_go(self, job: Job) -> None:
        """Leave the batches that are still on their way to whoever comes next."""
        self._own(NOBODY, self._tended(job))

    def _own(self, owner: str, batches: Sequence[Batch]) -> list[str]:
        """Write down who looks after batches; returns the ids of those that it could be written of."""
        if not batches:
            return []
        with self._calls.journal.exclusively():
            # Another process, or another loop of this one, may have been faster.
            ids = [batch.id for batch in batches if owner == NOBODY or self._orphaned(batch)]
            if ids:
                self._calls.journal.append([{"e": "batch", "id": id_, "owner": owner} for id_ in ids])
        return ids

    def _interval_s(self, job: Job) -> float:
        mine = [batch for batch in self._tended(job) if batch.state != "read"]
        if not mine:
            return _ROOM_S
        now = self._clock.now()
        return min(poll_interval_s(now - batch.at) for batch in mine)


def _place(request: BatchRequest) -> dict[str, str]:
    """Where a request goes, as the row of its batch says it."""
    return {"url": request.url} | ({} if request.version is None else {"version": request.version})
