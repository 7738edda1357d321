"""duplicate_ids, totals_disagree, unequal_denominators, verdict_unstable, and what importers noted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_fusion_audit.analysis.validity import find
from pytest_fusion_audit.analysis.validity.rows import unequal_denominators
from pytest_fusion_audit.evidence.records import ArmOutcome, Candidate, Claim, Fused, Split
from tests.analysis.validity.validity_plants import (
    IDS,
    LOCKED,
    SUITE,
    changed,
    clean,
    codes,
    evidence,
    note,
    only,
    the,
)


def test_a_list_of_ids_that_names_a_task_twice() -> None:
    records = changed(
        clean(), lambda r: replace(r, ids=(*IDS, IDS[3])) if isinstance(r, Split) and r.split == "locked" else r
    )
    finding = the(evidence(records), "duplicate_ids")
    assert finding.severity == "error"
    assert f"1 of 240 ids are listed more than once in plan.json: {IDS[3]}" in finding.message
    assert "1.1" in finding.affects


@pytest.mark.parametrize("code", ["duplicate_ids", "totals_disagree", "unequal_denominators"])
def test_what_an_importer_met_is_an_error_that_names_its_file(code: str) -> None:
    finding = the(evidence([*clean(), note(code, "2 rows are odd", "t001", "t002")]), code)
    assert finding.severity == "error"
    assert finding.message == "rows.json: 2 rows are odd (t001, t002)"
    assert finding.evidence == ("rows.json",)
    assert {"1.1", "2.1", "3.2"} <= set(finding.affects)


@pytest.mark.parametrize("code", ["no_verdict", "unknown_fields", "of_a_later_importer"])
def test_what_an_importer_left_out_is_a_warning_told_once_for_all_files(code: str) -> None:
    first = note(code, "fields that are not read: extra")
    second = replace(first, source="more.json")
    finding = the(evidence([*clean(), first, second]), code)
    assert finding.severity == "warning"
    assert finding.message == "more.json, rows.json: fields that are not read: extra"


def test_two_notes_of_one_file_are_one_finding() -> None:
    file = note("duplicate_ids", "1 id with the same values")
    both = replace(file, notes=(*file.notes, *note("duplicate_ids", "2 ids with different values").notes))
    message = the(evidence([*clean(), both]), "duplicate_ids").message
    assert message == "rows.json: 1 id with the same values; rows.json: 2 ids with different values"


@pytest.mark.parametrize(
    ("quantity", "stated", "told"),
    [
        ("pass_rate", 0.70, "states pass_rate 0.7, its 240 rows give 0.616667"),
        ("passed", 150, "states passed 150, its 240 rows give 148"),
        ("n", 250, "states n 250, its 240 rows give 240"),
        ("pass_rate", 0.6167, None),
        ("passed", 148, None),
        ("cost_usd", 99.0, None),
        ("pass_rate", None, None),
        ("pass_rate", True, None),
    ],
)
def test_a_stated_figure_against_the_rows(quantity: str, stated: float | None, told: str | None) -> None:
    claim = Claim(quantity=quantity, value=stated, suite=SUITE, split="locked", arm="compound", source="report.json")
    found = evidence([*clean(), claim])
    if told is None:
        assert "totals_disagree" not in codes(found)
    else:
        finding = the(found, "totals_disagree")
        assert finding.severity == "error"
        assert finding.message == f"report.json: {SUITE}/locked/compound {told}"


def test_a_file_whose_importer_said_so_already_is_not_accused_twice() -> None:
    claim = Claim(quantity="n", value=7, suite=SUITE, split="locked", arm="compound", source="rows.json")
    finding = the(evidence([*clean(), claim, note("totals_disagree", "n says 7, the rows say 240")]), "totals_disagree")
    assert finding.message == "rows.json: n says 7, the rows say 240"


def test_a_claim_about_an_arm_without_rows_cannot_disagree() -> None:
    claim = Claim(quantity="pass_rate", value=0.9, suite=SUITE, split="dev", arm="compound", source="report.json")
    assert "totals_disagree" not in codes(evidence([*clean(), claim]))


def test_a_member_that_lacks_rows_of_the_compound() -> None:
    lost = set(IDS[:40])
    records = changed(
        clean(), lambda r: None if isinstance(r, Candidate) and r.member == "opus" and r.task in lost else r
    )
    finding = the(evidence(records), "unequal_denominators")
    assert finding.severity == "error"
    assert "compound 240 tasks, member:opus 200, 200 in common: 40 only of compound" in finding.message
    assert finding.evidence == (LOCKED,)
    assert "1.4" in finding.affects


def test_a_verdict_nobody_recorded_is_missing_as_a_row_is() -> None:
    records = changed(
        clean(),
        lambda r: replace(r, verdict=None) if isinstance(r, Candidate) and (r.member, r.task) == ("gpt", IDS[5]) else r,
    )
    assert f"1 only of compound ({IDS[5]})" in the(evidence(records), "unequal_denominators").message


STATES = {
    "t1": {"passed": True},
    "t2": {"passed": True},
    "t3": {"passed": False},
    "t4": {"state": "not_run", "outcome": "context_length"},
    "t5": {"state": "not_run", "outcome": "provider_error"},
    "t6": {"state": "not_run", "outcome": "censored_budget", "reason": "over the cap"},
}


def _six(arm: str, states: dict[str, dict]) -> list[ArmOutcome]:
    return [ArmOutcome(task=t, suite=SUITE, split="run", arm=arm, source="six.json", **s) for t, s in states.items()]


def test_planned_tasks_that_could_not_be_scored_make_no_denominator_unequal() -> None:
    """Every state of a task counts as accounted for, whichever side met it, and none of them as a wrong answer."""
    whole = {task: {"passed": task in {"t1", "t4"}} for task in STATES}
    for first, second in ((STATES, whole), (whole, STATES), (STATES, STATES)):
        found = evidence([*_six("compound", first), *_six("member:gpt", second)])
        assert unequal_denominators(found) == []
        assert "truncated_answers" not in codes(found)


def test_tasks_that_vanish_instead_of_ending_in_a_state_do() -> None:
    scored = {task: state for task, state in STATES.items() if "passed" in state}
    whole = {task: {"passed": True} for task in STATES}
    for first, second in ((scored, whole), (whole, scored)):
        found = evidence([*_six("compound", first), *_six("member:gpt", second)])
        assert "3 in common: 3 only of" in the(found, "unequal_denominators").message


def test_a_task_neither_side_scored_is_in_no_denominator() -> None:
    """The compound met a provider fault and its file kept no score of any member there."""
    members = {task: state for task, state in STATES.items() if task != "t5"}
    assert unequal_denominators(evidence([*_six("compound", STATES), *_six("member:gpt", members)])) == []


def test_a_served_check_on_fewer_tasks_is_no_rate_over_other_tasks() -> None:
    served = _six("served", {"t1": {"passed": True}})
    whole = {task: {"passed": True} for task in STATES}
    assert unequal_denominators(evidence([*served, *_six("compound", whole), *_six("member:gpt", whole)])) == []


def test_members_alone_are_compared_over_complete_cases() -> None:
    rows = [*_six("member:gpt", STATES), *_six("member:opus", {"t1": {"passed": True}})]
    assert unequal_denominators(evidence(rows)) == []


def test_a_verdict_that_changes_when_graded_again() -> None:
    def flips(record):
        if isinstance(record, Fused) and record.arm == "compound" and record.task == IDS[5]:
            return replace(record, regrades=("passed", "timeout", "passed"))
        if isinstance(record, Candidate) and record.task == IDS[6]:
            return replace(record, regrades=("passed", "passed", "passed"), verdict="passed")
        return record

    finding = the(evidence(changed(clean(), flips)), "verdict_unstable")
    assert finding.severity == "warning"
    assert "1 of 3 answers graded again changed their verdict" in finding.message
    assert f"{IDS[5]} of compound passed 3 of 4" in finding.message
    assert "1.1" in finding.affects


def test_an_answer_that_fails_differently_each_time_still_fails() -> None:
    records = changed(clean(), only(Candidate, verdict="failed", regrades=("timeout", "crashed", "failed")))
    assert "verdict_unstable" not in codes(evidence(records))


def test_an_answer_graded_once_is_not_unstable() -> None:
    assert not [finding for finding in find(evidence(clean())) if finding.code == "verdict_unstable"]


@pytest.mark.parametrize("quantity", ["n", "pass_rate"])
def test_a_pipeline_error_counted_as_failed_or_left_out_is_no_wrong_total(quantity: str) -> None:
    states = {"t1": {"passed": True}, "t2": {"passed": False}, "t3": {"state": "pipeline_error"}}
    for value in ({"n": 3, "pass_rate": 1 / 3}, {"n": 2, "pass_rate": 1 / 2}):
        claim = Claim(quantity=quantity, value=value[quantity], suite=SUITE, split="run", arm="compound", source="x")
        assert "totals_disagree" not in codes(evidence([*_six("compound", states), claim]))
    wrong = Claim(quantity=quantity, value=0, suite=SUITE, split="run", arm="compound", source="x")
    assert "totals_disagree" in codes(evidence([*_six("compound", states), wrong]))
