from __future__ import annotations

import pytest
from scipy.stats import t

from pytest_fusion_audit.analysis.seeds import SEEDS_METHOD, seed_figures
from tests.analysis.analysis_records import evidence, outcomes, ref


def seeds(*marks: str, other: str = "----"):
    run = evidence([outcomes("compound", m, replicate=k) for k, m in enumerate(marks)], outcomes("member:a", other))
    return seed_figures(run, ref(), ref("member:a"))


def test_seeds_by_hand():
    found = seeds("++--", "+++-", "+---")
    assert found.uplifts == (0.5, 0.75, 0.25)
    half = float(t.ppf(0.975, 2)) * 0.25 / 3**0.5
    assert (found.mean, found.survives, found.method) == (0.5, True, SEEDS_METHOD)
    assert (found.low, found.high) == (pytest.approx(0.5 - half), pytest.approx(0.5 + half))


def test_two_seeds_have_an_interval_and_survive_in_both_or_not_at_all():
    found = seeds("++--", "----")
    half = float(t.ppf(0.975, 1)) * 0.25
    assert (found.mean, found.survives) == (0.25, False)
    assert (found.low, found.high) == (pytest.approx(0.25 - half), pytest.approx(0.25 + half))


def test_one_seed_has_no_interval_and_a_flat_one_does_not_survive():
    found = seeds("----")
    assert (found.mean, found.low, found.high, found.survives) == (0.0, None, None, False)


def test_a_seed_that_shares_no_task_leaves_survival_unknown():
    found = seeds("++", "    +", other="--")
    assert (found.uplifts, found.mean, found.low, found.survives) == ((1.0, None), 1.0, None, None)


def test_an_arm_that_was_not_run_is_unknown():
    found = seed_figures(evidence(outcomes("member:a", "+")), ref(), ref("member:a"))
    assert (found.comparisons, found.mean, found.survives) == ((), None, None)
