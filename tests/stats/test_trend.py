"""Confidence rises with being right: exact ranks, scipy's tests, and nothing where nothing can be told."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, mannwhitneyu, somersd

from pytest_fusion_audit.stats import monotone_trend
from pytest_fusion_audit.stats.trend import EXACT_RANKS

unhurried = settings(deadline=None, max_examples=40)
answers = st.lists(st.tuples(st.sampled_from([0.1, 0.3, 0.5, 0.5, 0.8, 0.95]), st.booleans()), min_size=2, max_size=9)


def concordance(numbers, right):
    total = 0
    for (a, hit), (b, miss) in itertools.product(zip(numbers, right, strict=True), repeat=2):
        if hit and not miss:
            total += (a > b) - (a < b)
    return total


@given(answers)
@unhurried
def test_p_counts_every_way_to_be_right_that_is_at_least_as_concordant(rows):
    numbers, right = zip(*rows, strict=True)
    trend = monotone_trend(numbers, right)
    if trend is None:
        assert len(set(right)) == 1 or len(set(numbers)) == 1
        return
    hits, observed = sum(right), concordance(numbers, right)
    every = [
        concordance(numbers, [place in chosen for place in range(len(rows))])
        for chosen in itertools.combinations(range(len(rows)), hits)
    ]
    assert trend.p == pytest.approx(sum(c >= observed for c in every) / len(every), abs=1e-12)
    assert trend.somers_d == pytest.approx(observed / (hits * (len(rows) - hits)), abs=1e-12)


@given(answers)
@unhurried
def test_somers_d_agrees_with_scipy_and_the_sign_with_kendall(rows):
    numbers, right = zip(*rows, strict=True)
    trend = monotone_trend(numbers, right)
    if trend is not None:
        outcome = [int(r) for r in right]
        assert trend.somers_d == pytest.approx(somersd(outcome, numbers).statistic, abs=1e-12)
        tau = kendalltau(numbers, outcome).statistic
        assert trend.somers_d * tau >= 0.0


def test_three_above_three_is_not_significant_whatever_the_approximation_says():
    numbers, right = [1, 2, 3, 4, 5, 6], [False] * 3 + [True] * 3
    assert monotone_trend(numbers, right).p == pytest.approx(1 / 20)
    assert kendalltau(numbers, right, alternative="greater").pvalue < 0.05


def test_without_ties_it_is_the_exact_rank_sum_test():
    draw = np.random.default_rng(2)
    numbers = [draw.random() for _ in range(24)]
    right = [number + draw.normal(0, 0.4) > 0.5 for number in numbers]
    hits = [n for n, r in zip(numbers, right, strict=True) if r]
    misses = [n for n, r in zip(numbers, right, strict=True) if not r]
    other = mannwhitneyu(hits, misses, alternative="greater", method="exact")
    assert monotone_trend(numbers, right).p == pytest.approx(other.pvalue, rel=1e-9)


def test_many_answers_use_the_normal_approximation_and_agree_with_the_exact_p_at_the_seam():
    draw = np.random.default_rng(3)
    numbers = [round(float(draw.random()), 1) for _ in range(EXACT_RANKS + 1)]
    right = [number + draw.normal(0, 0.8) > 0.5 for number in numbers]
    large, small = monotone_trend(numbers, right), monotone_trend(numbers[:-1], right[:-1])
    assert (large.method, small.method) == ("normal", "exact")
    assert large.p == pytest.approx(small.p, abs=0.02)
    assert type(large.p) is float


@pytest.mark.parametrize(
    ("numbers", "right"),
    [
        ([], []),
        ([0.5], [True]),
        ([0.1, 0.9], [True, True]),
        ([0.1, 0.9], [False, False]),
        ([0.5] * 4, [True, False] * 2),
    ],
)
def test_where_there_is_no_trend_to_speak_of_none_is_given(numbers, right):
    assert monotone_trend(numbers, right) is None


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match=r"^right must hold one outcome per number"):
        monotone_trend([0.5], [])
    with pytest.raises(ValueError, match=r"^numbers\[0\] must be a finite number"):
        monotone_trend([math.nan], [True])
    with pytest.raises(ValueError, match=r"^right\[0\] must be true or false"):
        monotone_trend([0.5], [0.5])
