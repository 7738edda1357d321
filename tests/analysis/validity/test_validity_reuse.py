"""split_reuse."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_fusion_audit.analysis.validity import find
from pytest_fusion_audit.evidence.records import ArmOutcome, ComparisonPlan, Config, Fused, Split, Task
from tests.analysis.validity.validity_plants import (
    IDS,
    SUITE,
    candidate,
    changed,
    clean,
    codes,
    evidence,
    fused,
    only,
    the,
)


@pytest.mark.parametrize("split", ["dev", "val", "baseline", "smoke", "monitor"])
def test_locked_ids_read_in_another_split(split: str) -> None:
    read = [candidate(task, "gpt", split=split, source=f"phase1/{split}.json") for task in IDS[:5]]
    finding = the(evidence([*clean(), *read]), "split_reuse")
    assert finding.severity == "error"
    assert f"5 of 240 (2.1 %) in {SUITE}/{split}: 5 in phase1/{split}.json" in finding.message
    assert {"1.1", "2.1", "3.2", "4.1", "9.1", "9.3"} <= set(finding.affects)
    assert finding.evidence == (f"phase1/{split}.json",)


def test_every_file_that_read_them_is_listed_in_the_order_of_phases() -> None:
    bank = [candidate(task, "gpt", split="baseline", source="phase3/bank.json") for task in IDS]
    ablations = [
        ArmOutcome(task=t, suite=SUITE, split="baseline", arm="compound:rewrite", passed=True, source="phase4/abl.json")
        for t in IDS[:200]
    ]
    smoke = [candidate(task, "gpt", split="smoke", source="phase1/smoke.jsonl") for task in IDS[:5]]
    message = the(evidence([*clean(), *bank, *ablations, *smoke]), "split_reuse").message
    places = [
        f"{SUITE}/smoke: 5 in phase1/smoke.jsonl",
        f"{SUITE}/baseline: 240 in phase3/bank.json, 200 in phase4/abl.json",
    ]
    assert all(place in message for place in places)
    assert message.index(places[0]) < message.index(places[1])


def test_a_plan_that_shares_ids_with_the_locked_split() -> None:
    dev = Split(suite=SUITE, split="dev", how="manifest", ids=(*IDS[:3], "d7"), source="manifest.json")
    assert "3 of 240 (1.2 %) in" in the(evidence([*clean(), dev]), "split_reuse").message


def test_the_same_prompt_under_another_id_is_the_same_task() -> None:
    own = next(r for r in clean() if isinstance(r, Task) and r.id == IDS[9])
    twin = Task(id="copy", suite=SUITE, split="dev", prompt_sha256=own.prompt_sha256[:16], source="dev.json")
    finding = the(evidence([*clean(), twin]), "split_reuse")
    assert f"1 prompts of locked tasks under other names: {IDS[9]} as {SUITE}/dev/copy" in finding.message
    other = replace(twin, prompt_sha256="f" * 16)
    assert "split_reuse" not in codes(evidence([*clean(), other]))


def test_a_second_look_is_reuse_even_when_declared() -> None:
    records = changed(clean(), only(ComparisonPlan, look=2, reuse="declared"))
    assert "look 2 of these tasks is registered, reuse declared" in the(evidence(records), "split_reuse").message


def test_two_first_looks_cannot_both_be_first() -> None:
    plan = next(r for r in clean() if isinstance(r, ComparisonPlan))
    again = replace(plan, registered_utc="2026-02-03T00:00:00+00:00")
    assert "2 first looks are registered" in the(evidence([*clean(), again]), "split_reuse").message
    renamed = replace(plan, split="locked-2")
    found = the(evidence([*clean(), renamed]), "split_reuse")
    assert f"the same ids are registered as {SUITE}/locked-2" in found.message


def test_a_configuration_nobody_registered_is_a_second_look() -> None:
    more = [fused(task, "compound@longer", source="again.json") for task in IDS]
    message = the(evidence([*clean(), *more]), "split_reuse").message
    assert "2 compounds answered them (compound, compound@longer), no registration lists them all" in message


def test_a_served_check_counts_unless_registered() -> None:
    served = [
        ArmOutcome(task=task, suite=SUITE, split="locked", arm="served", passed=True, source="served.json")
        for task in IDS[:25]
    ]
    message = the(evidence([*clean(), *served]), "split_reuse").message
    assert "25 again through the gateway: served.json" in message
    arms = ("compound", "served", "member:gpt", "member:opus", "self:gpt*4:rewrite")
    registered = changed([*clean(), *served], only(ComparisonPlan, arms=arms))
    assert "split_reuse" not in codes(evidence(registered))


def test_crashed_runs_are_named_beside_it() -> None:
    facts = {"suite": SUITE, "resolved_tasks": 0, "recorded_at": "2026-01-01T00:00:00"}
    crash = Config(what="history", facts=facts, source="history.jsonl")
    assert "split_reuse" not in codes(evidence([*clean(), crash]))  # by itself it shows no reading
    read = candidate(IDS[0], "gpt", split="smoke", source="smoke.jsonl")
    finding = the(evidence([*clean(), crash, read]), "split_reuse")
    assert f"1 crashed run of {SUITE} in the history ledger (2026-01-01T00:00:00)" in finding.message
    assert "ids read not recorded" in finding.message
    assert "history.jsonl" in finding.evidence


def test_seeds_of_one_registration_are_one_evaluation() -> None:
    again = [fused(task, replicate=1) for task in IDS]
    assert "split_reuse" not in codes(evidence([*clean(), *again]))


def test_ids_of_another_suite_are_other_tasks() -> None:
    other = [replace(candidate(task, "gpt", split="dev"), suite="elsewhere") for task in IDS]
    assert "split_reuse" not in codes(evidence([*clean(), *other]))


def test_plans_without_rows_are_not_read() -> None:
    unread = changed(clean(), lambda r: None if isinstance(r, Fused) or getattr(r, "member", None) else r)
    read = candidate(IDS[0], "gpt", split="dev")
    assert "split_reuse" not in codes(evidence([*unread, read]))


@pytest.mark.parametrize("name", ["final", "test", "Holdout", "held-out", "Locked ", "LOCKED-2", "eval_2026"])
def test_whatever_people_call_held_out_is_looked_at(name: str) -> None:
    unregistered = changed(clean(), lambda r: None if isinstance(r, ComparisonPlan) else r)
    moved = changed(unregistered, lambda r: replace(r, split=name) if getattr(r, "split", None) == "locked" else r)
    read = [candidate(task, "gpt", split="dev", source="dev.json") for task in IDS[:5]]
    message = the(evidence([*moved, *read]), "split_reuse").message
    assert f"5 of 240 (2.1 %) in {SUITE}/dev: 5 in dev.json" in message


def test_a_split_that_nobody_calls_held_out_is_not_accused() -> None:
    unregistered = changed(clean(), lambda r: None if isinstance(r, ComparisonPlan) else r)
    moved = changed(unregistered, lambda r: replace(r, split="n240") if getattr(r, "split", None) == "locked" else r)
    read = [candidate(task, "gpt", split="dev") for task in IDS[:5]]
    assert "split_reuse" not in codes(evidence([*moved, *read]))


@pytest.mark.parametrize(
    ("suite", "split", "task"),
    [
        (SUITE.upper(), "dev", IDS[7]),
        (f" {SUITE}", "Dev", IDS[7]),
        (SUITE, "dev", f"{IDS[7]} "),
        (SUITE, "dev", f"{IDS[7]}\u200b"),
        (SUITE, "dev", IDS[7].upper()),
        (SUITE.title(), "locked", IDS[7]),
        (SUITE, "Locked", IDS[7]),
    ],
)
def test_another_spelling_of_suite_split_or_id_hides_no_reading(suite: str, split: str, task: str) -> None:
    read = replace(candidate(task, "gpt", source="other.json"), suite=suite, split=split)
    found = evidence([*clean(), read])
    own = [f for f in find(found) if f.code == "split_reuse" and f.message.startswith(f"{SUITE}/locked")]
    assert len(own) == 1
    assert f"1 of 240 (0.4 %) in {suite}/{split}: 1 in other.json" in own[0].message


def test_a_plan_that_spells_locked_ids_in_another_way_holds_them_all_the_same() -> None:
    dev = Split(suite=SUITE.upper(), split="Dev", ids=(f"{IDS[0]} ", IDS[1].upper()), source="manifest.json")
    assert "2 of 240 (0.8 %) in" in the(evidence([*clean(), dev]), "split_reuse").message
    itself = Split(suite=SUITE, split="Locked", ids=IDS[:3], source="manifest.json")
    assert "split_reuse" not in codes(evidence([*clean(), itself]))


def test_a_registration_under_another_spelling_is_the_registration() -> None:
    served = [
        ArmOutcome(task=task, suite=SUITE, split="locked", arm="served", passed=True, source="served.json")
        for task in IDS[:25]
    ]
    arms = ("compound", "served", "member:gpt", "member:opus", "self:gpt*4:rewrite")
    spelled = changed([*clean(), *served], only(ComparisonPlan, arms=arms, suite=SUITE.upper(), split="Locked "))
    assert "split_reuse" not in codes(evidence(spelled))
