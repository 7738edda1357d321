"""Sign flips: exact by convolution and by listing, drawn with a seed, and the same as scipy's permutation test."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import permutation_test

from pytest_fusion_audit.stats import PERMUTATION_DRAWS, SignFlipTest, paired_test, sign_flip_test
from pytest_fusion_audit.stats.sign_flip import ENUMERATED

unhurried = settings(deadline=None, max_examples=40)


def brute_force(values):
    observed = abs(sum(values))
    patterns = np.array(np.meshgrid(*[[-1, 1]] * len(values))).reshape(len(values), -1)
    sums = np.abs(np.array(values) @ patterns)
    return float(np.mean(sums >= observed - 1e-9))


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 20))
@unhurried
def test_on_single_tasks_it_is_the_exact_mcnemar_test(wins, losses, ties):
    if wins + losses + ties == 0:
        return
    result = sign_flip_test([1] * wins + [-1] * losses + [0] * ties)
    assert result.method == "exact"
    assert result.p == pytest.approx(paired_test(wins, losses).exact_p, rel=1e-12)


@given(st.lists(st.integers(-6, 6), min_size=1, max_size=10))
@unhurried
def test_whole_numbers_equal_brute_force(values):
    assert sign_flip_test(values).p == pytest.approx(brute_force(values), abs=1e-12)


@given(st.lists(st.integers(-10, 10).map(lambda v: v / 10), min_size=1, max_size=10))
@unhurried
def test_decimal_fractions_equal_brute_force_ties_included(values):
    result = sign_flip_test(values)
    assert result.method == "exact"
    assert result.p == pytest.approx(brute_force(values), abs=1e-12)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=9), st.randoms())
@unhurried
def test_neither_order_nor_direction_matters(values, shuffler):
    p = sign_flip_test(values).p
    shuffled = list(values)
    shuffler.shuffle(shuffled)
    assert type(p) is float
    assert 0.0 < p <= 1.0
    assert sign_flip_test(shuffled).p == p
    assert sign_flip_test([-v for v in values]).p == p


def test_agrees_with_scipys_permutation_of_samples():
    values = [0.31, -0.12, 0.5, 0.25, 0.4, -0.3, 0.21, 0.11, 0.07]
    other = permutation_test(
        (values,), lambda x, axis: np.mean(x, axis=axis), permutation_type="samples", vectorized=True
    )
    assert sign_flip_test(values).p == pytest.approx(other.pvalue, abs=1e-12)


def test_many_fractions_are_drawn_reproducibly_and_close_to_exact():
    values = [0.1 * i for i in range(1, 15)] + [-0.1 * i for i in range(3, 9)]
    drawn = sign_flip_test(values, draws=20_000, seed=1)
    assert len(values) > ENUMERATED
    assert drawn.method == "drawn"
    assert drawn == sign_flip_test(values, draws=20_000, seed=1)
    # The same values in tenths are whole numbers, so the exact p is known.
    exact = sign_flip_test([round(10 * v) for v in values])
    assert exact.method == "exact"
    assert drawn.p == pytest.approx(exact.p, abs=4 * math.sqrt(exact.p / 20_000))
    assert sign_flip_test(values, draws=20_000, seed=2).p != drawn.p


def test_a_drawn_p_is_never_0():
    assert sign_flip_test([0.5 + 0.01 * i for i in range(60)], draws=999).p == 1 / 1000


def test_the_default_number_of_draws():
    assert PERMUTATION_DRAWS == 100_000


def test_nothing_and_nothing_but_zeros():
    assert sign_flip_test([]) == SignFlipTest(None, None)
    assert sign_flip_test([0, 0.0, 0]) == SignFlipTest(1.0, "exact")


def test_bad_values_draws_and_seeds_are_refused():
    with pytest.raises(ValueError, match=r"^differences\[0\] must be a finite number"):
        sign_flip_test([math.nan])
    with pytest.raises(ValueError, match=r"^draws must be a whole number of at least 1"):
        sign_flip_test([1], draws=0)
    with pytest.raises(ValueError, match=r"^seed must be a whole number"):
        sign_flip_test([1], seed=-1)
