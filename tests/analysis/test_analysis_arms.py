# ruff: noqa: FBT003 - a verdict reads best in its place
from __future__ import annotations

import pytest

from pytest_fusion_audit.analysis.arms import ArmRef, arm_summary, task_rates, turns_of
from pytest_fusion_audit.evidence.records import ComparisonPlan, Split
from pytest_fusion_audit.stats import wilson_interval
from tests.analysis.analysis_records import SPLIT, SUITE, candidate, evidence, fused, outcome, outcomes, ref


def test_an_arm_by_hand():
    run = evidence(
        fused("t1", True, cost_micro_usd=100_000, latency_s=1.0),
        fused("t2", False, cost_micro_usd=300_000, latency_s=2.0),
        fused("t3", True, cost_micro_usd=200_000, latency_s=4.0),
    )
    summary = arm_summary(run, ref())
    assert (summary.n, summary.planned, summary.passed, summary.replicates) == (3, 3, 2, 1)
    assert summary.pass_rate == 2 / 3
    assert (summary.wilson_low, summary.wilson_high) == wilson_interval(2, 3)
    assert (summary.cost_usd, summary.cost_per_task_usd, summary.cost_per_solve_usd) == (0.6, 0.2, 0.3)
    assert (summary.latency_p50_s, summary.latency_p95_s, summary.latency_n) == (2.0, pytest.approx(3.8), 3)
    assert summary.states == {"scored": 3}
    assert summary.complete


def test_which_denominator():
    """Case 49: states add up to the plan, rates are over scored tasks, spend is divided by attempted ones."""
    run = evidence(
        Split(suite=SUITE, split=SPLIT, ids=("t1", "t2", "t3", "t4", "t5", "t6"), planned=6, complete=False),
        fused("t1", True, cost_micro_usd=100_000),
        fused("t2", True, cost_micro_usd=100_000),
        fused("t3", False, cost_micro_usd=100_000),
        fused("t4", None, outcome="context_length", cost_micro_usd=0),
        fused("t5", None, outcome="provider_error", cost_micro_usd=50_000),
        fused("t6", None, outcome="censored_budget"),
    )
    summary = arm_summary(run, ref())
    assert (summary.n, summary.planned, summary.passed, summary.pass_rate) == (3, 6, 2, 2 / 3)
    assert summary.states == {"scored": 3, "context_length": 1, "provider_error": 1, "censored_budget": 1}
    assert sum(summary.states.values()) == 6
    assert (summary.cost_usd, summary.attempted, summary.cost_per_task_usd) == (0.35, 5, 0.07)
    assert not summary.complete


def test_a_planned_task_without_row_is_a_state():
    run = evidence(Split(suite=SUITE, split=SPLIT, planned=2, complete=False), fused("t1", True))
    assert arm_summary(run, ref()).states == {"scored": 1, "not_recorded": 1}


def test_an_arm_of_a_finished_split_was_planned_on_its_own_rows():
    run = evidence(
        Split(suite=SUITE, split=SPLIT, ids=("t0", "t1", "t2"), complete=True), outcomes("compound", "+++"),
        outcomes("served", "+"),
    )  # fmt: skip
    assert arm_summary(run, ref("served")).planned == 1


def test_a_registration_says_what_was_planned():
    plan = ComparisonPlan(suite=SUITE, split=SPLIT, arms=("compound",), n=5)
    run = evidence(plan, outcomes("compound", "++"), outcomes("served", "+"))
    assert arm_summary(run, ref()).planned == 5
    assert arm_summary(run, ref("served")).planned == 1


def test_a_pipeline_error_is_a_failure_of_the_arm():
    run = evidence(fused("t1", True), fused("t2", True, outcome="pipeline_error", cost_micro_usd=5))
    summary = arm_summary(run, ref())
    assert (summary.n, summary.passed) == (2, 1)
    assert summary.states == {"pipeline_error": 1, "scored": 1}


def test_one_unknown_cost_makes_the_total_unknown_and_leaves_what_is_known():
    run = evidence(fused("t1", True, cost_micro_usd=3), fused("t2", True))
    summary = arm_summary(run, ref())
    assert (summary.cost_usd, summary.cost_per_task_usd, summary.cost_per_solve_usd) == (None, None, None)
    assert (summary.cost_known_usd, summary.cost_known_n) == (0.000003, 1)


def test_a_task_that_was_never_sent_needs_no_cost():
    run = evidence(
        fused("t1", True, cost_micro_usd=3),
        outcome("t2", "compound", None, state="not_run", reason="excluded: too long"),
    )
    summary = arm_summary(run, ref())
    assert (summary.cost_usd, summary.attempted) == (0.000003, 1)
    assert summary.states == {"excluded": 1, "scored": 1}


def test_an_ungraded_answer_was_an_attempt():
    run = evidence(fused("t1", True, cost_micro_usd=3), fused("t2", None), fused("t3", None, verdict="ungradeable"))
    summary = arm_summary(run, ref())
    assert (summary.n, summary.attempted, summary.cost_usd) == (1, 3, None)
    assert summary.states == {"no verdict recorded": 1, "scored": 1, "ungradeable": 1}


def test_nothing_solved_has_no_cost_per_solve():
    assert arm_summary(evidence(fused("t1", False, cost_micro_usd=3)), ref()).cost_per_solve_usd is None


def test_an_arm_that_is_not_there_is_unknown_throughout():
    summary = arm_summary(evidence(outcomes("compound", "+")), ref("served"))
    assert (summary.n, summary.planned, summary.replicates, summary.attempted) == (0, 0, 0, 0)
    for unknown in (
        summary.pass_rate, summary.passed, summary.wilson_low, summary.cost_usd, summary.cost_known_usd,
        summary.latency_p50_s, summary.empty, summary.truncated, summary.rate_excluding_cut,
    ):  # fmt: skip
        assert unknown is None
    assert summary.states == {}


def member(**facts_by_task):
    return evidence([candidate(task, "gpt", **facts) for task, facts in facts_by_task.items()])


def test_empty_answers_are_counted_and_what_a_source_does_not_tell_is_unknown():
    run = member(
        t1={"passed": False, "outcome": "empty"},
        t2={"passed": True, "outcome": "answered"},
        t3={"passed": False, "outcome": "answered"},
    )
    summary = arm_summary(run, ref("member:gpt"))
    assert (summary.empty, summary.truncated, summary.cut, summary.intact) == (1, None, 1, 2)
    assert (summary.pass_rate, summary.rate_excluding_cut) == (1 / 3, 0.5)


def test_without_outcomes_nothing_is_known_of_cut_answers():
    summary = arm_summary(member(t1={"passed": True}), ref("member:gpt"))
    assert (summary.empty, summary.truncated, summary.rate_excluding_cut, summary.intact) == (None, None, None, None)


def test_no_empty_answer_means_zero_only_where_the_source_could_tell():
    by_tokens = member(t1={"passed": True, "outcome": "answered", "output_tokens": 9})
    assert arm_summary(by_tokens, ref("member:gpt")).empty is None
    by_length = member(t1={"passed": True, "outcome": "answered", "answer_chars": 9})
    assert arm_summary(by_length, ref("member:gpt")).empty == 0
    lost = {"passed": None, "outcome": "provider_error"}
    assert (
        arm_summary(
            member(t1={**lost}, t2={"passed": True, "outcome": "answered", "answer_chars": 9}), ref("member:gpt")
        ).empty
        == 0
    )
    half = member(
        t1={"passed": True, "outcome": "answered", "answer_chars": 9}, t2={"passed": True, "outcome": "answered"}
    )
    assert arm_summary(half, ref("member:gpt")).empty is None
    assert arm_summary(evidence(fused("t1", True, outcome="answered")), ref()).empty == 0
    assert arm_summary(evidence(fused("t1", True, outcome="answered"), fused("t2", True)), ref()).empty is None
    none = member(t1={"passed": False, "outcome": "no_text"}, t2={"passed": False, "outcome": "empty"})
    assert arm_summary(none, ref("member:gpt")).empty == 2


def test_answers_that_were_cut_off():
    """Case 48: both rates, with and without the truncated answers; the bank records finish reasons."""
    bank = {
        "t1": (None, "truncated", "length"), "t2": (None, "truncated", "length"), "t3": (True, None, None),
        "t4": (True, None, None),
    }  # fmt: skip
    run = evidence(
        [candidate(t, "gpt", p, outcome=o, finish_reason=f) for t, (p, o, f) in bank.items()],
        [candidate(t, "opus", p, outcome="answered") for t, p in zip(bank, [True, False, True, False], strict=True)],
    )
    gpt, opus = arm_summary(run, ref("member:gpt")), arm_summary(run, ref("member:opus"))
    assert (gpt.n, gpt.truncated, gpt.pass_rate, gpt.rate_excluding_cut) == (4, 2, 0.5, 1.0)
    assert (opus.n, opus.truncated, opus.pass_rate, opus.rate_excluding_cut) == (4, 0, 0.5, 0.5)


@pytest.mark.parametrize(
    ("facts", "truncated"),
    [
        ({"config": "4096", "output_tokens": 12}, 0),
        ({"config": "4096"}, None),
        ({"config": "trunc8000", "output_tokens": 12}, None),
        ({"parameters_sent": {"max_tokens": 4096}, "output_tokens": 12}, 0),
        ({"parameters_asked": {"max_output_tokens": 4096}, "output_tokens": 12}, 0),
        ({"parameters_sent": {"temperature": 0.2, "max_retries": 3}, "output_tokens": 12}, None),
        ({"finish_reason": "stop"}, 0),
    ],
)
def test_no_truncated_answer_means_zero_only_where_the_source_could_tell(facts, truncated):
    run = evidence(
        candidate("t1", "gpt", True, outcome="answered", **facts),
        candidate("t1", "opus", True, outcome="answered"),  # what is told of one member is not told of another
    )
    arm = "member:gpt" + (f"@{facts['config']}" if "config" in facts else "")
    assert arm_summary(run, ref(arm)).truncated == truncated


def test_a_fused_arm_tells_truncation_when_it_shows_one_or_its_tokens():
    assert arm_summary(evidence(fused("t1", True, outcome="answered")), ref()).truncated is None
    assert arm_summary(evidence(fused("t1", False, outcome="truncated")), ref()).truncated == 1
    told = evidence(outcome("t1", "served", True, outcome="answered", output_tokens=9))
    assert arm_summary(told, ref("served")).truncated == 0


def test_one_row_that_does_not_tell_leaves_truncation_unknown():
    told = outcome("t1", "served", True, outcome="answered", output_tokens=9)
    for silent in (outcome("t2", "served", True), outcome("t2", "served", True, outcome="answered")):
        assert arm_summary(evidence(told, silent), ref("served")).truncated is None
    limit = {"parameters_sent": {"max_tokens": 9}, "outcome": "answered"}
    half = evidence(candidate("t1", "gpt", True, output_tokens=3, **limit), candidate("t2", "gpt", True, **limit))
    assert arm_summary(half, ref("member:gpt")).truncated is None


def test_an_arm_is_complete_when_every_seed_is():
    seeds = [outcomes("compound", "+-", replicate=0), outcomes("compound", "++", replicate=1)]
    assert arm_summary(evidence(seeds), ref()).complete
    short = evidence(outcomes("compound", "+-"), outcomes("compound", "+", replicate=1))
    assert not arm_summary(short, ref()).complete


def test_an_ungradeable_answer_is_not_a_scored_one():
    run = evidence(candidate("t1", "gpt", None, verdict="ungradeable", outcome="answered"))
    assert arm_summary(run, ref("member:gpt")).states == {"ungradeable": 1}


def test_seeds_are_averaged_within_a_task_and_their_spend_is_added():
    run = evidence(
        outcome("t1", "compound", True, cost_micro_usd=10),
        outcome("t1", "compound", False, replicate=1, cost_micro_usd=10),
        outcome("t2", "compound", True, cost_micro_usd=10),
        outcome("t3", "compound", False, replicate=1, cost_micro_usd=10),
    )
    summary = arm_summary(run, ref())
    assert task_rates(run, ref()) == {"t1": 0.5, "t2": 1.0, "t3": 0.0}
    assert (summary.n, summary.replicates, summary.pass_rate) == (3, 2, 0.5)
    assert (summary.passed, summary.wilson_low, summary.wilson_high) == (None, None, None)
    assert (summary.rows, summary.cost_usd, summary.cost_per_task_usd, summary.cost_per_solve_usd) == (
        4, 0.00004, 0.00001, 0.00002,
    )  # fmt: skip
    assert summary.states == {"not_recorded": 2, "scored": 4}


def test_turns_of_a_split_are_those_of_its_seed():
    run = evidence(fused("t1", True), fused("t1", False, replicate=1), fused("t1", True, split="dev"))
    assert [turn.replicate for turn in turns_of(run, SUITE, SPLIT, 1)] == [1]
    assert len(turns_of(run, SUITE, SPLIT)) == 1


def test_a_reference_reads_as_a_measurement_name():
    assert str(ArmRef("suite", "locked", "member:gpt")) == "suite/locked/member:gpt"
