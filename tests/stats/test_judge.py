"""The judge's skill is measured where there is something to decide, against a blind draw."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, poisson_binom

from pytest_fusion_audit.stats import OrderBias, PickTest, order_bias, pick_test, poisson_binomial_tail

unhurried = settings(deadline=None, max_examples=40)
chances = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@given(chances, st.integers(0, 12))
@unhurried
def test_the_tail_equals_scipys(shares, hits):
    ours = poisson_binomial_tail(hits, shares)
    assert type(ours) is float
    assert ours == pytest.approx(float(poisson_binom.sf(hits - 1, shares)), abs=1e-9)


def test_the_tail_equals_the_enumeration_of_outcomes():
    shares = [0.2, 0.5, 0.75, 1 / 3, 0.6]
    total = 0.0
    for outcome in itertools.product((True, False), repeat=5):
        if sum(outcome) >= 4:
            total += math.prod(s if hit else 1 - s for s, hit in zip(shares, outcome, strict=True))
    assert poisson_binomial_tail(4, shares) == pytest.approx(total, abs=1e-15)


def test_equal_chances_are_binomial():
    assert poisson_binomial_tail(17, [1 / 3] * 30) == pytest.approx(binom.sf(16, 30, 1 / 3), rel=1e-12)


def test_the_ends_of_the_tail():
    assert poisson_binomial_tail(0, []) == 1.0
    assert poisson_binomial_tail(1, []) == 0.0
    assert poisson_binomial_tail(0, [0.3, 0.4]) == 1.0
    assert poisson_binomial_tail(3, [0.3, 0.4]) == 0.0
    with pytest.raises(ValueError, match=r"^chances\[1\] must lie between 0 and 1"):
        poisson_binomial_tail(1, [0.5, 1.5])


def test_easy_and_hopeless_tasks_do_not_flatter_the_judge():
    picks = [(3, 3, True)] * 50 + [(0, 3, False)] * 20 + [(1, 3, True)] * 4 + [(1, 3, False)] * 8
    test = pick_test(picks)
    assert (test.n, test.right, test.undecidable) == (12, 4, 70)
    assert test.accuracy == test.chance == pytest.approx(1 / 3)
    assert test.p > 0.5


def test_a_skilled_judge_is_told_from_a_blind_one():
    test = pick_test([(1, 3, True)] * 18 + [(2, 3, True)] * 9 + [(1, 3, False)] * 6)
    assert test.chance == pytest.approx((24 / 3 + 18 / 3) / 33)
    assert test.p < 0.001


def test_an_unknown_pick_is_neither_right_nor_wrong():
    test = pick_test([(1, 2, True), (1, 2, None), (2, 2, None)])
    assert (test.n, test.right, test.without_pick, test.undecidable) == (1, 1, 1, 1)


def test_nothing_to_decide_nothing_known():
    assert pick_test([]) == PickTest(0, 0, None, None, None, 0, 0)
    assert pick_test([(0, 2, False), (2, 2, True)]) == PickTest(0, 0, None, None, None, 2, 0)


@pytest.mark.parametrize(
    ("pick", "message"),
    [
        ((3, 2, True), r"^picks\[0\] k must not exceed m, but 3 > 2$"),
        ((0, 2, True), r"^picks\[0\] picked_right is True, but 0 of its 2 candidates are right$"),
        ((2, 2, False), r"^picks\[0\] picked_right is False, but 2 of its 2 candidates are right$"),
        ((1, 0, True), r"^picks\[0\] m must be a whole number of at least 1"),
        ((1.0, 2, True), r"^picks\[0\] k must be a whole number"),
        ((1, 2, "yes"), r"^picks\[0\] picked_right must be true or false"),
    ],
)
def test_contradictions_are_refused(pick, message):
    with pytest.raises(ValueError, match=message):
        pick_test([pick])


def test_a_judge_that_reads_picks_the_same_candidate_in_both_orders():
    test = order_bias([(3, 0, 2), (3, 1, 1), (4, 3, 0)])
    assert test == OrderBias(3, 3, 1.0, 0, 0, 1.0)


def test_a_judge_that_always_takes_the_first_is_found_out():
    test = order_bias([(3, 0, 0)] * 12)
    assert (test.agreement, test.toward_first, test.toward_last) == (0.0, 12, 0)
    assert test.p == 2 / 2**12
    assert order_bias([(3, 2, 2)] * 12).toward_last == 12


def test_no_swaps_no_bias():
    assert order_bias([]) == OrderBias(0, 0, None, 0, 0, None)
    with pytest.raises(ValueError, match=r"^picks\[0\] position must be below 3"):
        order_bias([(3, 3, 0)])
