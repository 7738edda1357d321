# ruff: noqa: FBT003 - a verdict reads best in its place
from __future__ import annotations

import pytest

from pytest_fusion_audit.analysis.judge import calibration_of, judge_figures, synthesis_regressions
from pytest_fusion_audit.stats import pick_test, wilson_interval
from tests.analysis.analysis_records import candidate, evidence, fused, outcomes, primaries, ref

# Three members; the judge names one per task (a, b, c) or nobody (-).
A = "++-+--+"
B = "+--+---"
C = "+-+----"
PICKS = "aaab-a-"
FUSED = "++-++--"


def judged(picks=PICKS, marks=FUSED):
    return evidence(
        primaries("a", A), primaries("b", B), primaries("c", C),
        [
            fused(
                f"t{number}", mark == "+", pick_member=None if pick == "-" else pick,
                pick_status="none" if pick == "-" else "named",
            )
            for number, (pick, mark) in enumerate(zip(picks, marks, strict=True))
        ],
    )  # fmt: skip


def test_the_three_accuracies_by_hand():
    found = judge_figures(judged(), ref())
    assert (found.n, found.picks_named, found.over) == (7, 5, "recorded primaries")
    # some candidate right: t0 (3 of 3), t1 (a), t2 (c), t3 (a, b), t6 (a, nobody named)
    accuracy = found.accuracy
    assert (accuracy.n, accuracy.right, accuracy.rate, accuracy.without_pick) == (4, 3, 0.75, 1)
    assert accuracy.chance == pytest.approx((1 + 1 / 3 + 1 / 3 + 2 / 3) / 4)
    assert (accuracy.wilson_low, accuracy.wilson_high) == wilson_interval(3, 4)
    # exactly one right: t1 (picked), t2 (missed), t6 (nobody named)
    strict = found.strict
    assert (strict.n, strict.right, strict.rate, strict.without_pick) == (2, 1, 0.5, 1)
    assert strict.chance == pytest.approx(1 / 3)
    assert found.strict_coverage == pytest.approx(2 / 3)
    # candidates disagree: t1, t2, t3, t6
    assert found.skill == pick_test(
        [(3, 3, True), (1, 3, True), (1, 3, False), (2, 3, True), (0, 3, None), (0, 3, False), (1, 3, None)]
    )
    assert (found.skill.n, found.skill.right, found.skill.without_pick) == (3, 2, 1)


def test_a_class_has_its_own_accuracy():
    found = judge_figures(judged(), ref(), tasks=frozenset({"t1", "t5"}))
    assert (found.n, found.strict.n, found.strict.rate) == (2, 1, 1.0)


def test_without_recorded_picks_the_judge_is_unknown():
    run = evidence(primaries("a", "+"), outcomes("compound:rewrite", "+"))
    assert judge_figures(run, ref("compound:rewrite")) is None
    assert synthesis_regressions(run, ref("compound:rewrite")) is None
    assert judge_figures(evidence(outcomes("compound", "+")), ref()) is None


def test_one_recorded_pick_makes_the_judge_known():
    run = evidence(
        primaries("a", "++"), fused("t0", False, pick_member="a"), fused("t1", True, outcome="pipeline_error")
    )
    assert judge_figures(run, ref()).picks_named == 1
    found = synthesis_regressions(run, ref())
    assert (found.n, found.regressions) == (1, 1)


def test_a_judge_that_names_nobody_has_no_accuracy():
    found = judge_figures(judged("-------"), ref())
    assert (found.picks_named, found.accuracy.n, found.accuracy.rate, found.accuracy.chance) == (0, 0, None, None)
    assert (found.strict.without_pick, found.strict_coverage) == (3, 0.0)


def test_strict_counts_candidates_not_members():
    """Two right samples of one member: a right pick was not the only one."""
    run = evidence(
        primaries("a", "+"), candidate("t0", "a", True, sample=1), primaries("b", "-"),
        fused("t0", True, pick="a#1", candidate_ids=("a#0", "a#1", "b#0")),
    )  # fmt: skip
    found = judge_figures(run, ref())
    assert (found.strict.n, found.accuracy.n, found.strict_coverage, found.over) == (0, 1, None, "all candidates")
    assert found.accuracy.chance == pytest.approx(2 / 3)


def test_synthesis_regressions_by_hand():
    # picks right on t0, t1, t3; fused right on t0, t1, t3, t4
    found = synthesis_regressions(judged(marks="+--++--"), ref())
    assert (found.n, found.regressions, found.improvements, found.picked_pass) == (5, 1, 0, 3)
    assert (found.rate, found.rate_of_right_picks) == (0.2, pytest.approx(1 / 3))
    assert found.wilson_high == wilson_interval(1, 5).high
    better = synthesis_regressions(judged(marks="+++++--"), ref())
    assert (better.regressions, better.improvements) == (0, 1)


def test_no_right_pick_has_no_rate_of_right_picks():
    run = evidence(primaries("a", "-"), fused("t0", False, pick_member="a"))
    found = synthesis_regressions(run, ref())
    assert (found.n, found.rate, found.rate_of_right_picks) == (1, 0.0, None)
    none = synthesis_regressions(evidence(primaries("a", "-"), fused("t0", False, pick_status="none")), ref())
    assert (none.n, none.rate, none.wilson_high) == (0, None, None)


def test_calibration_is_over_named_picks_with_confidence():
    marks = "+-+-+-+-"
    run = evidence(
        primaries("a", marks),
        [
            fused(f"t{number}", True, pick_member="a", judge_confidence=0.9 if mark == "+" else 0.2)
            for number, mark in enumerate(marks)
        ],
        primaries("a", "+", split="dev"), fused("t0", True, split="dev", pick_member="a"),
    )  # fmt: skip
    found = calibration_of(run, ref())
    assert (found.n, found.unknown, found.accuracy) == (8, 0, 0.5)
    assert found.brier == pytest.approx((0.01 + 0.04) / 2)
    assert calibration_of(run, ref(split="dev")) is None
    half = evidence(
        primaries("a", "++"),
        fused("t0", True, pick_member="a", judge_confidence=0.9),
        fused("t1", True, pick_member="a"),
    )
    assert (calibration_of(half, ref()).n, calibration_of(half, ref()).unknown) == (1, 1)
