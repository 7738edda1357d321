"""The batches of the proxy's clients on their way: begun, waited for in the background, left to the next session.

Every client's batch is a job of its own in `batches.Batches`, which holds all the money. None waits for another's. What
earlier sessions left is brought to its end beside them.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.errors import FusionAuditError
from pytest_fusion_audit.metering.batch_wire import Result
from pytest_fusion_audit.metering.batches import Batches

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_fusion_audit.metering.batch_jobs import BatchOutcome, Job
    from pytest_fusion_audit.metering.batch_requests import Wanted
    from pytest_fusion_audit.metering.limits import CostLimitExceeded
    from pytest_fusion_audit.metering.store import StoredAnswer
    from pytest_fusion_audit.metering.transport import MeteredTransport

#: How long a round that is under way may take when the session ends.
_LEAVE_CEILING_S = 5.0
_TOGETHER = 100  # rows that are worked on before other requests of the proxy get their turn


class WakingClock:
    """The time of this machine, for waits that can be ended."""

    def __init__(self) -> None:
        self._waking = asyncio.Event()

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Wait, or less when somebody wakes all who wait."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._waking.wait()

    def wake(self) -> None:
        """End every wait."""
        self._waking.set()
        self._waking = asyncio.Event()


@dataclass(slots=True)
class Run:
    """The calls of one client's batch.

    Attributes:
        wanted: the calls, in the order of the rows.
        job: where they wait; None in a replay.
        held: answers that were stored before, by custom id.
        over: nothing more will happen to it.
        failure: why calls were not made, in words, when it is none of a row's.
        refusal: the cap that later parts of the batch met; its rows are not run.
        told: whoever asked knows that it was begun.
        error: what went wrong before; `Runs.begin` raises it.
    """

    wanted: Sequence[Wanted]
    job: Job | None = None
    held: dict[str, StoredAnswer] = field(default_factory=dict)
    over: bool = False
    failure: str | None = None
    refusal: CostLimitExceeded | None = None
    told: bool = False
    error: Exception | None = None


class Runs:
    """All client batches of one proxy; belongs to its event loop.

    Args:
        transport: the metered door.
        clock: time, and how waits are ended.
        faults: where faults of this tool are put.
    """

    def __init__(self, transport: MeteredTransport, clock: WakingClock, faults: list[Exception]) -> None:
        self._transport = transport
        self._calls = transport.calls
        self._clock = clock
        self._faults = faults
        self._batches = Batches(transport, clock=clock)
        self._jobs: dict[asyncio.Task[None], Job] = {}
        self._tending: asyncio.Task[None] | None = None

    async def begin(self, wanted: list[Wanted], ended: Callable[[Run], None]) -> Run:
        """Take on a client's batch: reserved, durably, as far as it goes in one piece, before this returns.

        Args:
            wanted: its calls.
            ended: called once, when every row has ended; before this returns when all of them were stored.

        Raises:
            CostLimitExceeded, RunStoppedError, UnlistedHostError, KeyMissingError, DiskFullError, ReplayMissError:
                nothing was sent.
        """
        self._calls.journal.refresh()
        if self._transport.mode == "replay":
            run = Run(wanted, held=self._replayed(wanted), over=True)
            ended(run)
            return run
        run = Run(wanted, self._batches.accept(wanted, whole=True, tends_all=False))
        self._claim(run)
        task = self._start(self._wait_for(run, ended), run.job)
        waiting = asyncio.ensure_future(run.job.begun.wait()) if run.job else task
        await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
        if run.error is not None:
            raise run.error
        run.told = True
        if self._tending is None or self._tending.done():
            left = self._batches.accept([])
            self._tending = self._start(self._tend(left), left)
        return run

    def cancel(self, run: Run) -> None:
        """Call off what is not answered yet, at the provider too."""
        if run.job is not None:
            run.job.cancel()
            self._clock.wake()

    async def results(self, run: Run) -> list[Result]:
        """What became of every row of a run that is over."""
        found = []
        for number, each in enumerate(run.wanted):
            if number % _TOGETHER == 0:
                await asyncio.sleep(0)
            found.append(self._result(run, each))
        return found

    async def aclose(self) -> None:
        """Leave what is on its way to the next session; a round that is under way is waited for, in limited time."""
        for job in self._jobs.values():
            job.leave()
        self._clock.wake()
        if self._jobs:
            _, late = await asyncio.wait(self._jobs, timeout=_LEAVE_CEILING_S)
            for task in late:
                task.cancel()  # like a kill, between two steps of which the journal knows
            await asyncio.gather(*late, return_exceptions=True)

    def _start(self, work: Any, job: Job | None) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        if job is not None:
            self._jobs[task] = job
            task.add_done_callback(lambda task: self._jobs.pop(task, None))
        return task

    def _claim(self, run: Run) -> None:
        """Take the answers that are stored, and see to it that those to come are nobody else's."""
        for each in run.wanted:
            if run.job is None or run.job.outcome(each) is None:
                self._calls.answers.buys(each.key.digest)
            elif (stored := self._calls.answers.take(each.key)) is not None:
                run.held[each.request.custom_id] = stored

    async def _wait_for(self, run: Run, ended: Callable[[Run], None]) -> None:
        if run.job is None:
            return
        try:
            report = await self._batches.finish(run.job)
            run.refusal = report.refusal
        except FusionAuditError as error:
            run.failure = str(error)
            run.error = None if run.told else error
        except Exception as error:  # noqa: BLE001 - a traceback could show a key; the run looks at `faults`
            self._faults.append(error)
            run.failure = f"a fault in the metering proxy ({type(error).__name__})"
        pending = False
        for each in run.wanted:
            outcome = run.job.outcome(each)
            pending = pending or (outcome is not None and outcome.status == "pending")
            has = each.request.custom_id in run.held or (outcome is not None and outcome.status == "stored")
            if run.error is not None or not has:
                self._calls.answers.buys(each.key.digest, -1)  # what it did not get, another may have
        if run.error is None and not (pending and run.job.leaving):
            run.over = True
            ended(run)

    async def _tend(self, job: Job) -> None:
        """Bring to their end the batches that earlier sessions left; what fails is left to a later one."""
        try:
            await self._batches.finish(job)
        except FusionAuditError:
            return
        except Exception as error:  # noqa: BLE001 - as above
            self._faults.append(error)

    def _replayed(self, wanted: Sequence[Wanted]) -> dict[str, StoredAnswer]:
        """The stored replies to all calls; a miss takes none of them."""
        answers, held, taken = self._calls.answers, {}, []
        for each in wanted:
            stored = answers.take(each.key)
            if stored is not None:
                taken.append(each.key.digest)
            elif (stored := answers.failure(each.key)) is not None and stored.status < 400:
                stored = replace(stored, status=0)  # it said that it was an answer and was none
            if stored is None:
                for key in taken:
                    answers.buys(key, -1)
                raise answers.missed(each.key, each.request.scope, each.facts.model)
            held[each.request.custom_id] = stored
        return held

    def _result(self, run: Run, each: Wanted) -> Result:
        name = each.request.custom_id
        stored = run.held.get(name)
        if stored is not None and stored.status:
            return self._reply(name, stored.status, stored.body_sha256, None)
        outcome = run.job.outcome(each) if run.job is not None else None
        reason = _reason(run, outcome)
        ending = self._calls.batches.ending(outcome.call if outcome else None) or {}
        sha = ending.get("answer") or ending.get("body")
        answered = outcome is not None and outcome.status == "stored"
        if sha is not None and (answered or ending["status"] >= 400):
            return self._reply(name, ending["status"], sha, ending.get("request_id"))
        return Result(name, 0, code=reason)

    def _reply(self, name: str, status: int, sha: str, request_id: str | None) -> Result:
        try:
            body = json.loads(self._calls.bodies.get(sha))
        except ValueError:
            body = None
        if not isinstance(body, dict):
            return Result(name, 0, code="unreadable_reply")
        return Result(name, status, body, request_id=request_id)


def _reason(run: Run, outcome: BatchOutcome | None) -> str:
    if outcome is None:
        return "not_run" if run.failure is None else "batch_failed"
    return "cost_limit_exceeded" if outcome.status == "no_budget" else outcome.reason or "not_run"
