"""Turns: registered order, admission one after the other, censoring, and what was begun is brought to its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fusion_audit.metering.calls import Calls
from pytest_fusion_audit.metering.ledger import CostLimitExceeded, Limits, RunStoppedError
from pytest_fusion_audit.metering.turns import Turn, random_order, run_turns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def calls(tmp_path: Path) -> Iterator[Calls]:
    opened = Calls(tmp_path / "calls", Limits(total=1_000), "s")
    yield opened
    opened.close()


def run(calls: Calls, tasks: list[str], worst, work, *, at_once: int = 2):  # type: ignore[no-untyped-def]
    return asyncio.run(run_turns(calls.ledger, tasks, worst, work, phase="3", arm="compound", at_once=at_once))


async def spend(calls: Calls, turn: Turn, amount: int) -> None:
    row = await calls.ledger.reserve("3", amount, {}, hold=turn.id)
    await asyncio.sleep(0)
    calls.ledger.settle(row, amount, estimated=False, facts={})


@given(st.sets(st.text(min_size=1)), st.integers(0, 2**32), st.text())
def test_the_order_is_of_the_ids_alone(ids: set[str], seed: int, salt: str) -> None:
    ordered = random_order(ids, seed, salt)
    assert sorted(ordered) == sorted(ids)
    assert random_order(reversed(ordered), seed, salt) == ordered
    less = ordered[1::2]
    assert random_order(less, seed, salt) == less


def test_orders_of_seeds_and_phases_differ() -> None:
    ids = [f"task-{number}" for number in range(40)]
    orders = {tuple(random_order(ids, seed, salt)) for seed in range(5) for salt in ("3/compound", "4/compound")}
    assert len(orders) == 10
    # Independent of the ids' own order: each place holds early and late ones.
    assert abs(sum(int(random_order(ids, seed)[0][5:]) for seed in range(200)) / 200 - 19.5) < 3


def test_an_id_that_stands_there_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        random_order(["a", "a"], 1)


def test_a_phase_stops_at_the_first_turn_that_does_not_fit(calls: Calls) -> None:
    worst = {"a": 300, "b": 300, "c": 900, "d": 10}
    begun = []

    async def work(turn: Turn) -> str:
        begun.append(turn.task)
        await spend(calls, turn, 200)
        return turn.task.upper()

    results = run(calls, list("abcd"), worst.__getitem__, work)
    assert begun == ["a", "b"]  # d would fit, and is not taken instead of c
    assert [(each.task, each.status, each.value) for each in results] == [
        ("a", "done", "A"),
        ("b", "done", "B"),
        ("c", "not_run", None),
        ("d", "not_run", None),
    ]
    assert "the next call of phase 3 needs up to 0.0009" in str(results[3].reason)
    account = calls.ledger.balance()
    assert (account.spent, account.reserved, account.held) == (400, 0, 0)


def test_a_turn_waits_for_the_money_of_those_that_are_going_on(calls: Calls) -> None:
    async def work(turn: Turn) -> None:
        await spend(calls, turn, 100)

    results = run(calls, list("abcdefgh"), lambda _: 400, work, at_once=8)
    assert [each.status for each in results] == ["done"] * 7 + ["not_run"]  # 7 x 100, then 400 does not fit into 300
    assert calls.ledger.balance().held == 0


@pytest.mark.parametrize("swallow", [True, False])
def test_a_turn_in_which_a_call_was_refused_is_censored_whatever_it_answers(calls: Calls, swallow: bool) -> None:
    async def work(turn: Turn) -> str:
        try:
            await spend(calls, turn, 5_000)
        except CostLimitExceeded:
            if not swallow:
                raise
        return "an answer of a gateway that goes on without its judge"

    [result] = run(calls, ["a"], lambda _: 100, work)
    assert (result.status, result.value) == ("censored_budget", None)
    assert "nothing was sent" in str(result.reason)


def test_what_fails_is_raised_after_the_others_have_ended(calls: Calls) -> None:
    ended = []

    async def work(turn: Turn) -> None:
        if turn.task == "a":
            await other_began.wait()
            raise RuntimeError("broken")
        other_began.set()
        await asyncio.sleep(0.01)
        ended.append(turn.task)

    other_began = asyncio.Event()
    with pytest.raises(RuntimeError, match="broken"):
        run(calls, list("abcd"), lambda _: 10, work)
    assert ended == ["b"]
    assert calls.ledger.balance().held == 0


def test_a_stopped_run_begins_no_turn(calls: Calls) -> None:
    calls.ledger.stop("the key was refused")

    async def work(turn: Turn) -> None:
        raise AssertionError(turn)

    with pytest.raises(RunStoppedError, match="the key was refused"):
        run(calls, list("ab"), lambda _: 10, work)
