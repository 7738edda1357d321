"""Requests that somebody waits for: which are to be sent, which a batch has, what became of the others."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pytest_fusion_audit.metering.batch_book import Batch
    from pytest_fusion_audit.metering.batch_requests import Wanted
    from pytest_fusion_audit.metering.journal import Row
    from pytest_fusion_audit.metering.ledger import CostLimitExceeded

Status = Literal["stored", "not_run", "no_budget", "pending"]
#: Reason of requests that whoever asked for them has called off.
CANCELLED = "cancelled"


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


class Job:
    """The requests of one run.

    Args:
        wanted: the requests.
        tends_all: also bring to their end the batches that nobody looks after and that hold none of these requests.

    Attributes:
        queue: what is to be sent, in its order.
        batches: ids of the batches that this job looks after, and nobody else does.
        refusal: why the queue is not sent.
        cancelled: nothing more is to be sent, and what a batch has is to be called off.
        leaving: whoever waits is about to go; see `leave`.
        begun: set when the first requests are reserved, or when the job has ended before.
    """

    def __init__(self, wanted: list[Wanted], *, tends_all: bool = True) -> None:
        self.wanted = wanted
        self.tends_all = tends_all
        self.queue: list[Wanted] = []
        self.batches: set[str] = set()
        self.refusal: CostLimitExceeded | None = None
        self.cancelled = False
        self.leaving = False
        self.begun = asyncio.Event()
        self._order = {each.request.custom_id: at for at, each in enumerate(wanted)}
        self._ended: dict[str, BatchOutcome] = {}

    def end(self, each: Wanted, status: Status, reason: str | None = None) -> None:
        """Say what became of a request."""
        name = each.request.custom_id
        self._ended[name] = BatchOutcome(name, status, each.call, reason)

    def outcome(self, each: Wanted) -> BatchOutcome | None:
        """What became of a request, None as long as nothing did."""
        return self._ended.get(each.request.custom_id)

    def cancel(self) -> None:
        """Call off what is not answered yet: what nobody has sent is not sent, the rest ends as the provider says."""
        self.cancelled = True

    def drop_queue(self) -> None:
        """End what is to be sent, because it was called off."""
        for each in self.queue:
            self.end(each, "not_run", CANCELLED)
        self.queue = []

    def leave(self) -> None:
        """End after the next round, as if patience had ended: the batches are left to whoever comes next."""
        self.leaving = True

    def flying(self) -> list[Wanted]:
        """Requests that a batch has."""
        return [each for each in self.wanted if each.call is not None and each.request.custom_id not in self._ended]

    def waits_for(self, batch: Batch) -> bool:
        """Whether a batch has one of the requests."""
        return any(each.call in batch.open for each in self.flying())

    def may_cancel(self, batch: Batch) -> bool:
        """Whether a batch may be called off: the job was, and nobody else may want what the batch has."""
        return self.cancelled and batch.open.keys() <= {each.call for each in self.flying()}

    def learn(self, ending_of: Callable[[str | None], Row | None], attempts: int) -> None:
        """Take note of the calls that have ended; what may be tried again goes back to its place in the queue."""
        for each in self.flying():
            ending = ending_of(each.call)
            if ending is None:
                continue
            if ending.get("answer"):
                self.end(each, "stored")
            elif ending.get("retry") and each.tries < attempts and not self.cancelled:
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


def claimed_calls(jobs: Iterable[Job]) -> set[str]:
    """Calls in batches whose answer a job waits for: each is one answer, and nobody else's."""
    return {each.call for job in jobs for each in job.flying() if each.call is not None}
