"""The budget: amounts, opening phases, and that nothing but an opened phase has money."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_fusion_audit.metering.budget import Budget, UnknownPhaseError
from pytest_fusion_audit.metering.calls import Calls
from pytest_fusion_audit.metering.caps import caps_for
from pytest_fusion_audit.metering.ledger import CostLimitExceeded, Limits
from pytest_fusion_audit.metering.limits import PhaseNotOpenError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

USD = 1_000_000


@pytest.fixture
def calls(tmp_path: Path) -> Iterator[Calls]:
    opened = Calls(tmp_path / "calls", Limits(total=1), "s")
    yield opened
    opened.close()


def pay(calls: Calls, phase: str, amount: int) -> None:
    row = calls.ledger.try_reserve(phase, amount, {"model": "m", "scope": {"stage": "panel"}})
    assert row is not None
    calls.ledger.settle(row, amount, estimated=False, facts={})


def test_amounts_are_those_of_the_journal(calls: Calls) -> None:
    budget = Budget(calls, caps_for(500 * USD), git_sha="abc")
    baseline = budget.phase("3", suite="pocket", tasks=120, est=40 * USD, note="bank")
    assert (budget.cap, budget.spent, budget.reserved, baseline.cap) == (500 * USD, 0, 0, 150 * USD)
    pay(calls, "3", 20 * USD)
    open_ = calls.ledger.try_reserve("3", 5 * USD, {})
    assert open_ is not None
    assert (budget.spent, budget.reserved, baseline.spent, baseline.reserved) == (20 * USD, 5 * USD, 20 * USD, 5 * USD)
    assert (budget.left(), budget.left("3"), baseline.left) == (475 * USD, 125 * USD, 125 * USD)
    [line] = budget.ledger()
    assert (line["phase"], line["suite"], line["tasks"], line["est_usd"]) == ("3", "pocket", 120, 40.0)
    assert (line["measured_usd"], line["git_sha"], line["note"]) == (20.0, "abc", "bank")


def test_a_phase_has_money_only_after_it_was_opened(calls: Calls) -> None:
    budget = Budget(calls, caps_for(500 * USD))
    with pytest.raises(PhaseNotOpenError, match=r"budget\.phase\('4'\)"):
        calls.ledger.try_reserve("4", 1, {})
    budget.phase("4")
    pay(calls, "4", 1)
    with pytest.raises(PhaseNotOpenError):
        calls.ledger.try_reserve("3", 1, {})


def test_opening_is_written_down_with_its_cap(calls: Calls) -> None:
    Budget(calls, caps_for(500 * USD)).phase("1", tasks=5)
    rows = [json.loads(line) for line in (calls.folder / "journal.jsonl").read_text().splitlines()]
    assert [(row["phase"], row["cap"], row["tasks"]) for row in rows if row.get("e") == "phase"] == [("1", 15 * USD, 5)]


def test_caps_follow_what_other_phases_spent(calls: Calls) -> None:
    budget = Budget(calls, caps_for(500 * USD))
    for phase, amount in (("1", 10), ("3", 150), ("4", 40)):
        budget.phase(phase)
        pay(calls, phase, amount * USD)
    assert budget.phase("5").cap == (410 - 200) * USD
    pay(calls, "5", 100 * USD)
    # 110 of phases 0 to 5 are left; 6.1 has its own 50 and those, and 6.2 what of them 6.1 does not take.
    assert budget.phase("6.1").cap == 160 * USD
    with pytest.raises(CostLimitExceeded, match=r"the cap of phase 6\.1"):
        calls.ledger.try_reserve("6.1", 161 * USD, {})
    assert budget.left("6.2") == 150 * USD
    pay(calls, "6.1", 160 * USD)
    assert budget.left("6.2") == 40 * USD


def test_phases_0_to_2_share_one_cap_also_when_all_were_opened_before_anything_was_spent(calls: Calls) -> None:
    budget = Budget(calls, caps_for(500 * USD))
    smoke = [budget.phase(phase) for phase in "012"]
    assert [phase.cap for phase in smoke] == [15 * USD] * 3
    pay(calls, "0", 9 * USD)
    assert [phase.left for phase in smoke] == [budget.left(phase) for phase in "012"] == [6 * USD] * 3
    with pytest.raises(CostLimitExceeded, match="the cap of phase 1"):
        calls.ledger.try_reserve("1", 7 * USD, {})
    pay(calls, "1", 6 * USD)
    with pytest.raises(CostLimitExceeded, match="the cap of phase 2"):
        calls.ledger.try_reserve("2", 1, {})


def test_the_reserve_is_for_phase_6(calls: Calls) -> None:
    budget = Budget(calls, caps_for(100 * USD))
    budget.phase("5")
    assert budget.left("5") == 82 * USD
    with pytest.raises(CostLimitExceeded):
        calls.ledger.try_reserve("5", 83 * USD, {})


@pytest.mark.parametrize("name", ["7", "", "3.5", "baseline"])
def test_an_unknown_phase_is_named(calls: Calls, name: str) -> None:
    budget = Budget(calls, caps_for(USD))
    with pytest.raises(UnknownPhaseError, match=r"known: 0, 1"):
        budget.phase(name)
    with pytest.raises(UnknownPhaseError):
        budget.left(name)


def test_a_lowered_cap_leaves_nothing_and_never_less(calls: Calls) -> None:
    budget = Budget(calls, caps_for(500 * USD))
    budget.phase("3")
    pay(calls, "3", 100 * USD)
    lowered = Budget(calls, caps_for(50 * USD))
    phase = lowered.phase("3")
    assert (lowered.left(), lowered.left("3"), phase.left, lowered.spent) == (0, 0, 0, 100 * USD)
    with pytest.raises(CostLimitExceeded):
        calls.ledger.try_reserve("3", 1, {})


def test_a_replay_opens_phases_and_writes_nothing(calls: Calls) -> None:
    Budget(calls, caps_for(USD)).phase("3")
    pay(calls, "3", 7)
    before = (calls.folder / "journal.jsonl").read_bytes()
    reading = Calls.reading(calls.folder)
    budget = Budget(reading, caps_for(USD))
    assert budget.phase("3").scope(task="t").phase == "3"
    assert budget.spent == 7
    reading.close()
    assert (calls.folder / "journal.jsonl").read_bytes() == before
