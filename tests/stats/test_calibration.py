"""Calibration: curve, Brier score, ECE with an interval; defined at every edge and free of row order."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.stats import Calibration, ReliabilityPoint, judge_calibration

unhurried = settings(deadline=None, max_examples=50)
answers = st.lists(
    st.tuples(st.sampled_from([0.0, 0.2, 0.5, 0.5, 0.7, 0.9, 1.0]), st.booleans()), min_size=1, max_size=60
)


def simulated(n, seed, bend=lambda c: c):
    draw = np.random.default_rng(seed)
    confidences = [round(float(draw.uniform(0.3, 1.0)), 3) for _ in range(n)]
    return confidences, [bool(draw.random() < bend(c)) for c in confidences]


def test_by_hand():
    result = judge_calibration([0.9, 0.6, 0.6, 0.2], [True, True, False, False], bins=2)
    assert result.brier == pytest.approx((0.01 + 0.16 + 0.36 + 0.04) / 4)
    assert result.accuracy == 0.5
    assert result.mean_confidence == pytest.approx(0.575)
    assert result.curve == (
        ReliabilityPoint(0.2, 0.0, 1),
        ReliabilityPoint(0.6, 0.5, 2),
        ReliabilityPoint(0.9, 1.0, 1),
    )
    # Bins of equal mass would cut between the two .6; equal confidences stay together: (.2 .6 .6) and (.9).
    assert result.bins == 2
    assert result.ece == pytest.approx((abs(0 + 1 + 0 - 1.4) + 0.1) / 4)


def test_violations_of_order_are_pooled():
    result = judge_calibration([0.1, 0.5, 0.7, 0.9], [False, True, False, True])
    assert [point.observed for point in result.curve] == [0.0, 0.5, 0.5, 1.0]


def test_ece_is_zero_for_a_constant_confidence_that_is_right_that_often():
    result = judge_calibration([0.75] * 8, [True] * 6 + [False] * 2)
    assert result.ece == 0.0
    assert result.bins == 1
    assert result.trend is None
    assert result.curve == (ReliabilityPoint(0.75, 0.75, 8),)


def test_without_answers_nothing_is_known():
    assert judge_calibration([], []) == Calibration(0, 0, None, None, None, (), None, None, 0, None)
    assert judge_calibration([None, 0.5], [True, None]) == Calibration(0, 2, None, None, None, (), None, None, 0, None)


@pytest.mark.parametrize("outcome", [True, False])
@pytest.mark.parametrize("n", [1, 2, 30])
def test_one_class_or_one_answer_warns_of_nothing(outcome, n):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = judge_calibration([0.3 + 0.02 * i for i in range(n)], [outcome] * n)
    assert result.trend is None
    assert result.accuracy == float(outcome)
    assert {point.observed for point in result.curve} == {float(outcome)}
    assert result.ece_interval.low <= result.ece_interval.high


@given(answers, st.integers(1, 12))
@unhurried
def test_every_figure_stays_in_its_range(rows, bins):
    confidences, right = zip(*rows, strict=True)
    result = judge_calibration(confidences, right, bins=bins, draws=50)
    for figure in (result.accuracy, result.mean_confidence, result.brier, result.ece, *result.ece_interval):
        assert type(figure) is float
        assert 0.0 <= figure <= 1.0 + 1e-12
    assert sum(point.answers for point in result.curve) == result.n == len(rows)
    observed = [point.observed for point in result.curve]
    assert observed == sorted(observed)
    assert [point.confidence for point in result.curve] == sorted(set(confidences))
    assert 1 <= result.bins <= min(bins, len(set(confidences)))
    assert result.ece >= abs(result.mean_confidence - result.accuracy) - 1e-12


@given(answers, st.randoms())
@unhurried
def test_the_order_of_rows_does_not_matter(rows, shuffler):
    shuffled = list(rows)
    shuffler.shuffle(shuffled)
    assert judge_calibration(*zip(*rows, strict=True), draws=50) == judge_calibration(
        *zip(*shuffled, strict=True), draws=50
    )


def test_bins_of_distinct_confidences_have_equal_mass():
    confidences = [i / 100 for i in range(100)]
    result = judge_calibration(confidences, [c > 0.5 for c in confidences])
    gaps = np.array([float(c > 0.5) - c for c in confidences]).reshape(10, 10)
    assert result.bins == 10
    assert result.ece == pytest.approx(np.abs(gaps.sum(axis=1)).sum() / 100)


def test_a_calibrated_and_an_overconfident_judge_differ():
    good = judge_calibration(*simulated(800, 1))
    vain = judge_calibration(*simulated(800, 1, bend=lambda c: c / 2))
    assert good.ece < 0.08 < vain.ece
    assert good.brier < vain.brier
    assert vain.ece_interval.low > good.ece_interval.high
    assert good.trend.p < 0.001


def test_the_interval_is_seeded():
    data = simulated(60, 9)
    assert judge_calibration(*data, seed=1).ece_interval == judge_calibration(*data, seed=1).ece_interval
    assert judge_calibration(*data, seed=1).ece_interval != judge_calibration(*data, seed=2).ece_interval


def test_unknown_answers_are_counted_not_guessed():
    result = judge_calibration([0.2, None, 0.8, 0.9], [False, True, None, True])
    assert (result.n, result.unknown) == (2, 2)


def test_bad_input_is_refused():
    for confidence in (80, -0.1, float("nan"), True):
        with pytest.raises(ValueError, match=r"^confidences\[0\] must"):
            judge_calibration([confidence], [True])
    with pytest.raises(ValueError, match=r"^right must hold one outcome per confidence"):
        judge_calibration([0.5], [])
    with pytest.raises(ValueError, match=r"^bins must be a whole number of at least 1"):
        judge_calibration([0.5], [True], bins=0)
