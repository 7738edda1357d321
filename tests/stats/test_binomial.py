"""The fair coin: whole-number sums against scipy, and the seam between the two."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from pytest_fusion_audit.stats.binomial import EXACT_TOSSES, coin_mass, coin_paths, coin_tail

splits = st.integers(0, 1050).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(splits)
@settings(deadline=None, max_examples=50)
def test_tail_and_mass_agree_with_scipy(split):
    k, tosses = split
    assert coin_tail(k, tosses) == pytest.approx(binom.cdf(k, tosses, 0.5), rel=1e-9, abs=1e-300)
    assert coin_mass(k, tosses) == pytest.approx(binom.pmf(k, tosses, 0.5), rel=1e-9, abs=1e-300)


@given(st.integers(0, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
@settings(deadline=None, max_examples=50)
def test_paths_are_sums_of_binomial_coefficients(split):
    k, tosses = split
    assert coin_paths(k, tosses) == sum(math.comb(tosses, i) for i in range(k + 1))


def test_both_sides_of_the_seam_agree():
    for tosses in (EXACT_TOSSES, EXACT_TOSSES + 1):
        for k in (tosses // 2 - 60, tosses // 2, tosses // 2 + 5, tosses):
            assert coin_tail(k, tosses) == pytest.approx(binom.cdf(k, tosses, 0.5), rel=1e-10)
            assert coin_mass(k, tosses) == pytest.approx(binom.pmf(k, tosses, 0.5), rel=1e-10)


def test_no_toss_is_one_sequence():
    assert (coin_paths(0, 0), coin_tail(0, 0), coin_mass(0, 0)) == (1, 1.0, 1.0)


def test_more_heads_than_tosses_are_refused():
    for function in (coin_paths, coin_tail, coin_mass):
        with pytest.raises(ValueError, match=r"^k must not exceed tosses, but 3 > 2$"):
            function(3, 2)
