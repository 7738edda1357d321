"""What the processes do that tests start: each waits at a barrier, then works on one run with the others."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.metering.calls import Calls
from pytest_fusion_audit.metering.journal import Journal
from pytest_fusion_audit.metering.ledger import CostLimitExceeded, Limits
from pytest_fusion_audit.metering.scope import Scope
from tests.metering.doors import FlatPrices, open_door

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BURST = 7
_SPAWN = multiprocessing.get_context("spawn")


def together(count: int, work: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Run ``work(number, barrier, *arguments)`` in ``count`` processes and return what they return."""
    barrier, results = _SPAWN.Barrier(count), _SPAWN.Queue()
    processes = [
        _SPAWN.Process(target=_run, args=(results, work, number, barrier, *arguments)) for number in range(count)
    ]
    for process in processes:
        process.start()
    found = dict(results.get(timeout=60) for _ in processes)
    for process in processes:
        process.join(60)
    return [found[number] for number in range(count)]


def _run(results: Any, work: Callable[..., Any], number: int, *arguments: Any) -> None:
    try:
        results.put((number, work(number, *arguments)))
    except BaseException as error:
        results.put((number, repr(error)))
        raise


def append_rows(number: int, barrier: Any, folder: Path, count: int) -> list[list[int]]:
    """Append rows and return every row seen, in the order seen."""
    seen: list[list[int]] = []
    journal = Journal(folder, lambda row: seen.append([row["process"], row["n"]]))
    barrier.wait(60)
    for n in range(count):
        with journal.exclusively():
            end = journal.append([{"process": number, "n": n}])
        if n % 10 == 0:
            journal.durably(end)
    barrier.wait(60)
    journal.refresh()
    journal.close()
    return seen


def burst(number: int, barrier: Any, folder: Path, callers: int, limits: Limits) -> list[int]:
    """Reserve `BURST` with many callers at once and settle it; how many passed, were refused, and most committed."""

    async def main() -> list[int]:
        calls = Calls(folder, limits, "burst")
        passed = refused = most = 0

        async def caller() -> None:
            nonlocal passed, refused, most
            try:
                row = await calls.ledger.reserve("3", BURST, {})
            except CostLimitExceeded:
                refused += 1
                return
            passed += 1
            most = max(most, calls.balances.total().committed)
            await asyncio.sleep(0)
            await calls.journal.durable(calls.ledger.settle(row, BURST, estimated=False, facts={}))

        try:
            barrier.wait(60)
            await asyncio.gather(*(caller() for _ in range(callers)))
        finally:
            calls.close()
        return [passed, refused, most]

    return asyncio.run(main())


def ask_in_threads(number: int, barrier: Any, folder: Path, url: str, limits: Limits) -> list[str]:
    """Case 7: two threads, each with its event loop, that share one process's calls ask once; what became of each."""
    outcomes: list[str] = []
    calls = Calls(folder, limits, "case 7")

    async def caller() -> None:
        async with open_door(folder, url, prices=FlatPrices(150_000, 60_000), shared=calls) as door:
            try:
                await door.ask(f"{number} {threading.get_ident()}", Scope(phase="3"))
            except CostLimitExceeded:
                outcomes.append("not_run_budget")
            else:
                outcomes.append("answered")

    inside = threading.Barrier(2)

    def thread() -> None:
        inside.wait(60)
        asyncio.run(caller())

    barrier.wait(60)
    started = [threading.Thread(target=thread) for _ in range(2)]
    for each in started:
        each.start()
    for each in started:
        each.join(60)
    calls.close()
    return outcomes


def reserve_and_vanish(number: int, barrier: Any, folder: Path, amount: int, limits: Limits) -> None:
    """Reserve, hold, and end as a killed process does: without a word."""

    async def main() -> None:
        calls = Calls(folder, limits, "vanishing")
        await calls.ledger.reserve("3", amount, {})
        await calls.ledger.hold("3", amount)

    asyncio.run(main())
    barrier.wait(60)
