"""Turns: the tasks of a phase in a registered random order, each begun only when the worst case of its calls fits.

A phase stops at the first turn that does not fit, so that which tasks were answered does not depend on how dear they
are. What was begun is brought to its end: it has been paid for. A turn in which the door refused a call is censored,
whatever the gateway answered: its result says nothing about the compound.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from pytest_fusion_audit.metering.limits import CostLimitExceeded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

    from pytest_fusion_audit.metering.ledger import Ledger

T = TypeVar("T")


def random_order(tasks: Iterable[str], seed: int, salt: str = "") -> list[str]:
    """Task ids in the order in which a phase answers them: by the SHA-256 of seed, salt and id.

    The same everywhere and for ever, and a task that is added or taken out does not move the others.

    Args:
        tasks: ids; each once.
        seed: the run's, as registered.
        salt: what else the order belongs to (phase and arm).

    Raises:
        ValueError: an id stands there twice.

    >>> random_order(["a", "b", "c"], seed=8), random_order(["a", "c"], seed=8)
    (['c', 'b', 'a'], ['c', 'a'])
    """
    ids = list(tasks)
    if len(set(ids)) < len(ids):
        raise ValueError("a task id stands there twice")
    return sorted(ids, key=lambda task: hashlib.sha256(f"{seed}\0{salt}\0{task}".encode()).digest())


@dataclass(frozen=True, slots=True)
class Turn:
    """One task of one arm, with the money of all its calls held; its ``id`` goes into the scope of each of them."""

    id: str
    task: str
    arm: str
    phase: str


@dataclass(frozen=True, slots=True)
class TurnResult(Generic[T]):
    """What became of a turn.

    Attributes:
        task: task id.
        status: ``done``; ``censored_budget``: a call inside was refused by a cap; ``not_run``: it was not begun.
        value: what the work gave; None unless done.
        reason: why it is not done.
    """

    task: str
    status: Literal["done", "censored_budget", "not_run"]
    value: T | None = None
    reason: str | None = None


@asynccontextmanager
async def turn(ledger: Ledger, task: str, worst_case: int, *, phase: str, arm: str) -> AsyncIterator[Turn]:
    """Hold the worst case of a turn for the length of the block; what its calls did not need goes back.

    Args:
        ledger: the run's.
        task: task id.
        worst_case: micro-dollars of all its calls together at most.
        phase: whose money it is.
        arm: arm that answers.

    Raises:
        CostLimitExceeded: the turn can never fit; nothing was sent.
    """
    hold = await ledger.hold(phase, worst_case)
    try:
        yield Turn(hold, task, arm, phase)
    finally:
        ledger.release(hold)


async def run_turns(
    ledger: Ledger,
    tasks: Sequence[str],
    worst_case: Callable[[str], int],
    work: Callable[[Turn], Awaitable[T]],
    *,
    phase: str,
    arm: str,
    at_once: int = 8,
) -> list[TurnResult[T]]:
    """Answer tasks in the given order, some at once; stop beginning new ones at the first that does not fit.

    Args:
        ledger: the run's.
        tasks: ids in their registered order, see `random_order`.
        worst_case: micro-dollars of all calls of a task's turn together at most.
        work: answers one task; every call carries the turn's ``id`` in its scope.
        phase: whose money it is.
        arm: arm that answers.
        at_once: most turns that are open at the same time.

    Returns:
        One result per task, in the order of ``tasks``.

    Raises:
        RunStoppedError: no further turn was begun. Whatever ``work`` raises but for `CostLimitExceeded`. Either after
            the turns that were begun have ended.
    """
    results: dict[str, TurnResult[T]] = {}
    places, entrance = asyncio.Semaphore(at_once), asyncio.Lock()
    failures: list[BaseException] = []
    refusals: list[CostLimitExceeded] = []

    async def answered(task: str) -> None:
        async with places, AsyncExitStack() as open_turn:
            async with entrance:  # one after the other, in order
                if failures or refusals:
                    return
                try:
                    held = turn(ledger, task, worst_case(task), phase=phase, arm=arm)
                    begun = await open_turn.enter_async_context(held)
                except CostLimitExceeded as refusal:
                    refusals.append(refusal)
                    return
            results[task] = await _result(ledger, begun, work)

    async def guarded(task: str) -> None:
        try:
            await answered(task)
        except Exception as error:  # noqa: BLE001 - raised again when the turns that were begun have ended
            failures.append(error)

    await asyncio.gather(*(guarded(task) for task in tasks))
    if failures:
        raise failures[0]
    reason = str(refusals[0]) if refusals else None
    return [results.get(task) or TurnResult(task, "not_run", reason=reason) for task in tasks]


async def _result(ledger: Ledger, begun: Turn, work: Callable[[Turn], Awaitable[T]]) -> TurnResult[T]:
    try:
        value = await work(begun)
    except CostLimitExceeded as refusal:
        return TurnResult(begun.task, "censored_budget", reason=str(refusal))
    refused = ledger.refused.get(begun.id)
    if refused is not None:  # the work, or a gateway, went on as if nothing had happened
        return TurnResult(begun.task, "censored_budget", reason=str(refused))
    return TurnResult(begun.task, "done", value)
