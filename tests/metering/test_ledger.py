"""The ledger: spent + reserved + held stays below every cap, whatever the order of things, and equals the file."""

from __future__ import annotations

import asyncio
import tempfile
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from pytest_fusion_audit.metering import ledger as ledger_module
from pytest_fusion_audit.metering.calls import Calls
from pytest_fusion_audit.metering.ledger import CostLimitExceeded, Limits, RunStoppedError
from tests.metering.doors import journal_rows
from tests.metering.workers import BURST, burst, together

PHASES = ("3", "5", "6.1")
LIMITS = Limits(total=1_000, reserve=200, phases={"3": 400, "6.1": 300})


def recomputed(rows: list[dict[str, Any]]) -> dict[str, int]:  # noqa: C901 - one branch a kind of row
    """What every phase has committed, said as simply as can be: the worst of a turn, or what its calls came to."""
    calls: dict[str, dict[str, Any]] = {}
    holds: dict[str, dict[str, Any]] = {}
    for row in rows:
        event = row["e"]
        if event == "reserve":
            calls[row["id"]] = {"phase": row["phase"], "now": row["reserved"], "hold": row.get("hold"), "over": False}
            if row.get("hold") in holds:
                holds[row["hold"]]["left"] -= (drawn := min(row["reserved"], holds[row["hold"]]["left"]))
                assert drawn >= 0
        elif event == "settle" and not calls[row["id"]]["over"]:
            call = calls[row["id"]]
            if call["hold"] in holds and not call.get("orphan"):
                holds[call["hold"]]["left"] += call["now"] - row["charged"]
            call["now"], call["over"] = row["charged"], True
        elif event == "orphan" and not calls[row["id"]]["over"]:
            calls[row["id"]]["orphan"] = True
        elif event == "hold":
            holds[row["id"]] = {"phase": row["phase"], "left": row["amount"]}
        elif event == "release":
            holds.pop(row["id"], None)
    committed: dict[str, int] = defaultdict(int)
    for call in calls.values():
        committed[call["phase"]] += call["now"]
    for hold in holds.values():
        committed[hold["phase"]] += hold["left"]
    return committed


class AnyInterleaving(RuleBasedStateMachine):
    """Several ledgers over one file, as several processes have them."""

    reserved = Bundle("reserved")
    orphaned = Bundle("orphaned")
    settled = Bundle("settled")
    holds = Bundle("holds")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.calls = [self.opened() for _ in range(2)]

    def opened(self) -> Calls:
        return Calls(Path(self.folder.name), LIMITS, "one session")

    who = st.integers(0, 1)
    amounts = st.integers(0, 500)

    @rule(target=reserved, who=who, phase=st.sampled_from(PHASES), amount=amounts)
    def reserve(self, who: int, phase: str, amount: int) -> Any:
        with suppress(CostLimitExceeded):
            row = self.calls[who].ledger.try_reserve(phase, amount, {})
            return multiple() if row is None else row
        return multiple()

    @rule(target=reserved, who=who, hold=holds, amount=amounts)
    def reserve_in_a_turn(self, who: int, hold: tuple[str, str], amount: int) -> Any:
        with suppress(CostLimitExceeded):
            row = self.calls[who].ledger.try_reserve(hold[1], amount, {}, hold[0])
            return multiple() if row is None else row
        return multiple()

    @rule(target=settled, who=who, row=consumes(reserved), share=st.integers(0, 100), estimated=st.booleans())
    def settle(self, who: int, row: dict[str, Any], share: int, estimated: bool) -> Any:
        self.calls[who].ledger.settle(row, row["reserved"] * share // 100, estimated=estimated, facts={})
        return row

    @rule(who=who, row=settled)
    def settle_again(self, who: int, row: dict[str, Any]) -> None:
        self.calls[who].ledger.settle(row, 1, estimated=False, facts={})
        self.calls[who].ledger.orphan(row["id"], "too late")

    @rule(who=who, row=consumes(reserved))
    def cancel(self, who: int, row: dict[str, Any]) -> None:
        self.calls[who].ledger.cancel(row)

    @rule(target=orphaned, who=who, row=consumes(reserved))
    def lose(self, who: int, row: dict[str, Any]) -> Any:
        self.calls[who].ledger.orphan(row["id"], "reset")
        return row

    @rule(who=who, row=consumes(orphaned), share=st.integers(0, 100))
    def learn_the_figure(self, who: int, row: dict[str, Any], share: int) -> None:
        self.calls[who].ledger.settle(row, row["reserved"] * share // 100, estimated=False, facts={})

    @rule(target=holds, who=who, phase=st.sampled_from(PHASES), amount=amounts)
    def hold(self, who: int, phase: str, amount: int) -> Any:
        with suppress(CostLimitExceeded):
            made = self.calls[who].ledger.try_hold(phase, amount)
            return multiple() if made is None else (made, phase)
        return multiple()

    @rule(who=who, hold=holds)
    def release(self, who: int, hold: tuple[str, str]) -> None:
        self.calls[who].ledger.release(hold[0])

    @rule(who=who, tail=st.binary(max_size=30))
    def restart_after_a_kill(self, who: int, tail: bytes) -> None:
        """The other's open calls become orphans, its holds go, its torn row is set aside."""
        self.calls[who].close()
        with (Path(self.folder.name) / "journal.jsonl").open("ab") as file:
            file.write(tail.replace(b"\n", b" "))
        self.calls[who] = self.opened()

    @invariant()
    def nothing_passes_a_cap_and_everything_equals_the_file(self) -> None:
        committed = recomputed(journal_rows(Path(self.folder.name)))
        for calls in self.calls:
            everything = calls.ledger.balance()
            assert everything.committed == sum(committed.values()) <= LIMITS.total
            for phase in PHASES:
                account = calls.balances.accounts[phase]
                assert account.committed == committed[phase] <= LIMITS.phases.get(phase, LIMITS.total)
                assert min(account.settled, account.estimated, account.orphaned, account.reserved, account.held) >= 0
                assert calls.ledger.left(phase) >= 0 or phase != "6.1"
            assert calls.balances.accounts == self.calls[0].balances.accounts

    @invariant()
    def tuning_never_touches_the_reserve_on_its_own(self) -> None:
        before = sum(self.calls[0].balances.accounts[phase].committed for phase in ("3", "5"))
        assert before <= LIMITS.total - LIMITS.reserve

    def teardown(self) -> None:
        for calls in self.calls:
            calls.close()
        self.folder.cleanup()


AnyInterleaving.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestAnyInterleaving = AnyInterleaving.TestCase


@pytest.fixture
def calls(tmp_path: Path):
    opened = Calls(tmp_path, LIMITS, "session")
    yield opened
    opened.close()


def reserve(calls: Calls, phase: str, amount: int) -> dict[str, Any]:
    row = calls.ledger.try_reserve(phase, amount, {})
    assert row is not None
    return row


@pytest.mark.parametrize(
    ("phase", "limit", "cap"),
    [
        ("3", "the cap of phase 3", 400),
        ("5", "the cap minus the reserve for phase 6", 800),
        ("6.2", "the cap of the run", 1_000),
    ],
)
def test_each_limit_refuses_by_its_name(calls: Calls, phase: str, limit: str, cap: int) -> None:
    calls.ledger.settle(reserve(calls, phase, cap - 10), cap - 10, estimated=False, facts={})
    assert reserve(calls, phase, 10)
    calls.ledger.orphan(next(iter(calls.balances.open)), "lost")
    with pytest.raises(CostLimitExceeded, match=limit) as refusal:
        calls.ledger.try_reserve(phase, 1, {})
    assert (refusal.value.limit, refusal.value.spent, refusal.value.reserved, refusal.value.needed) == (
        limit,
        cap,
        0,
        1,
    )
    assert refusal.value.phase == phase
    assert refusal.value.cap == cap


def test_phase_6_may_use_the_reserve_and_nobody_else(calls: Calls) -> None:
    reserve(calls, "5", 800)
    assert calls.ledger.try_reserve("5", 1, {}) is None
    assert reserve(calls, "6.2", 200)
    assert calls.ledger.left("6.2") == 0


def test_a_cap_lowered_below_what_is_spent_refuses_and_forgets_nothing(tmp_path: Path) -> None:
    first = Calls(tmp_path, LIMITS, "a")
    first.ledger.settle(reserve(first, "5", 700), 700, estimated=False, facts={})
    first.close()
    lowered = Calls(tmp_path, Limits(total=500), "b")
    assert (lowered.ledger.balance().spent, lowered.ledger.left("5")) == (700, -200)
    with pytest.raises(CostLimitExceeded, match=r"the cap of the run of 0\.0005 USD: 0\.000700 spent"):
        lowered.ledger.try_reserve("5", 0, {})
    lowered.close()


def test_a_call_that_does_not_fit_yet_waits_and_the_first_to_come_is_the_first_to_go(calls: Calls) -> None:
    async def test() -> None:
        order: list[int] = []
        open_ = reserve(calls, "3", 400)

        async def caller(number: int) -> None:
            row = await calls.ledger.reserve("3", 200, {})
            order.append(number)
            calls.ledger.settle(row, 50, estimated=False, facts={})

        waiting = [asyncio.create_task(caller(number)) for number in range(4)]
        await asyncio.sleep(0)
        assert order == []
        calls.ledger.settle(open_, 0, estimated=False, facts={})
        await asyncio.gather(*waiting)
        assert order == [0, 1, 2, 3]

    asyncio.run(test())


def test_waiting_ends_with_a_refusal_when_nothing_is_open_any_more(calls: Calls) -> None:
    async def test() -> None:
        open_ = reserve(calls, "3", 400)
        waiting = [asyncio.create_task(calls.ledger.reserve("3", 200, {})) for _ in range(3)]
        await asyncio.sleep(0)
        calls.ledger.settle(open_, 300, estimated=False, facts={})
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(each) for each in found] == [CostLimitExceeded] * 3

    asyncio.run(test())


def test_settlements_of_another_process_are_noticed(tmp_path: Path) -> None:
    one, two = Calls(tmp_path, LIMITS, "s"), Calls(tmp_path, LIMITS, "s")

    async def test() -> None:
        open_ = reserve(one, "3", 400)
        waiting = asyncio.create_task(two.ledger.reserve("3", 200, {}))
        await asyncio.sleep(0)
        one.ledger.settle(open_, 100, estimated=False, facts={})
        await waiting

    asyncio.run(test())
    one.close()
    two.close()


def test_a_caller_waits_for_nobody_who_is_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "_BURY_S", 0.0)
    one, two = Calls(tmp_path, LIMITS, "s"), Calls(tmp_path, LIMITS, "s")
    reserve(one, "3", 250)
    one.ledger.try_hold("3", 150)
    one.close()  # as a kill does, it leaves both open

    async def test() -> None:
        await two.ledger.reserve("3", 150, {})
        two.ledger.settle(next(iter(two.balances.open.values())).row, 150, estimated=False, facts={})
        with pytest.raises(CostLimitExceeded):
            await two.ledger.reserve("3", 1, {})

    asyncio.run(test())
    assert two.ledger.balance().orphaned == 250
    two.close()


def test_a_caller_that_is_cancelled_leaves_nothing_reserved_and_lets_the_next_one_go(calls: Calls) -> None:
    async def test() -> None:
        open_ = reserve(calls, "3", 400)
        big = asyncio.create_task(calls.ledger.reserve("3", 400, {}))
        small = asyncio.create_task(calls.ledger.reserve("3", 100, {}))
        await asyncio.sleep(0)
        calls.ledger.settle(open_, 300, estimated=False, facts={})
        big.cancel()
        row = await small
        assert row["reserved"] == 100
        # Between the reservation and its sync: nothing was sent, so nothing may stay.
        calls.ledger.cancel(row)
        task = asyncio.create_task(calls.ledger.reserve("3", 100, {}))
        while not calls.balances.open:  # noqa: ASYNC110 - no event tells of this moment
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert calls.ledger.balance().committed == 300

    asyncio.run(test())


class TestTurns:
    """A turn holds its worst case; its calls draw on it."""

    def test_calls_of_a_turn_draw_on_its_hold_and_give_back_what_they_did_not_need(self, calls: Calls) -> None:
        hold = calls.ledger.try_hold("3", 300)
        assert calls.ledger.left("3") == 100
        row = calls.ledger.try_reserve("3", 250, {}, hold)
        assert calls.ledger.left("3") == 100
        calls.ledger.settle(row, 50, estimated=False, facts={})
        account = calls.ledger.balance()
        assert (account.spent, account.held, account.committed) == (50, 250, 300)
        calls.ledger.release(hold)
        assert calls.ledger.balance().committed == 50
        calls.ledger.release(hold)
        assert calls.ledger.balance().committed == 50

    def test_a_new_turn_waits_for_a_turn_to_end(self, calls: Calls) -> None:
        async def test() -> None:
            first = await calls.ledger.hold("3", 300)
            second = asyncio.create_task(calls.ledger.hold("3", 200))
            await asyncio.sleep(0)
            # A call of the first turn, even one that outgrows its hold, is not behind the second turn in line.
            row = await calls.ledger.reserve("3", 350, {}, first)
            calls.ledger.settle(row, 60, estimated=False, facts={})
            assert not second.done()
            calls.ledger.release(first)
            await second

        asyncio.run(test())

    def test_two_turns_that_outgrew_their_holds_do_not_wait_for_each_other(self, calls: Calls) -> None:
        async def test() -> None:
            holds = [await calls.ledger.hold("3", 200) for _ in range(2)]
            grown = [calls.ledger.reserve("3", 300, {}, hold) for hold in holds]
            found = await asyncio.gather(*grown, return_exceptions=True)
            assert [type(each) for each in found] == [CostLimitExceeded] * 2

        asyncio.run(test())

    def test_a_call_that_nobody_attributed_to_its_turn_does_not_wait_for_it_for_ever(
        self, calls: Calls, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ledger_module, "_PATIENCE_S", 0.1)

        async def test() -> None:
            hold = await calls.ledger.hold("3", 400)
            with pytest.raises(CostLimitExceeded):
                await calls.ledger.reserve("3", 100, {})
            calls.ledger.release(hold)
            await calls.ledger.reserve("3", 100, {})

        asyncio.run(test())


def test_a_stop_refuses_every_process_until_a_new_session_goes_on(tmp_path: Path) -> None:
    one, two = Calls(tmp_path, LIMITS, "s"), Calls(tmp_path, LIMITS, "s")
    row = reserve(one, "3", 10)
    one.ledger.stop("the key was refused")
    one.ledger.stop("again")
    for calls in (one, two):
        for refused in (calls.ledger.try_reserve, calls.ledger.try_hold):
            with pytest.raises(RunStoppedError, match="the run was stopped: the key was refused; nothing was sent"):
                refused("3", 1, *([{}] if refused == calls.ledger.try_reserve else []))
    two.ledger.settle(row, 5, estimated=False, facts={})
    one.close()
    two.close()
    new = Calls(tmp_path, LIMITS, "t")
    assert reserve(new, "3", 1)
    assert new.ledger.balance().spent == 5
    new.close()


def test_a_stop_wakes_those_who_wait(calls: Calls) -> None:
    async def test() -> None:
        reserve(calls, "3", 400)
        waiting = [asyncio.create_task(calls.ledger.reserve("3", 200, {})) for _ in range(3)]
        await asyncio.sleep(0)
        calls.ledger.stop("enough")
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(each) for each in found] == [RunStoppedError] * 3

    asyncio.run(test())


@pytest.mark.parametrize(("processes", "callers"), [(4, 25)])
def test_a_burst_of_callers_at_a_barrier_passes_exactly_as_many_as_fit(
    tmp_path: Path, processes: int, callers: int
) -> None:
    fit = processes * callers // 2
    limits = Limits(total=BURST * fit + BURST - 1)
    found = together(processes, burst, tmp_path, callers, limits)
    assert sum(passed for passed, _, _ in found) == fit
    assert sum(refused for _, refused, _ in found) == processes * callers - fit
    assert max(most for _, _, most in found) <= limits.total
    assert sum(recomputed(journal_rows(tmp_path)).values()) == BURST * fit
