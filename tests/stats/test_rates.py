"""Wilson's interval: published figures, exact ends, never certain."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from pytest_fusion_audit.stats import two_sided_z, wilson_interval

unhurried = settings(deadline=None, max_examples=50)
rates = st.integers(1, 10**6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def test_the_figure_of_fusionkit_with_its_rounded_z():
    low, high = wilson_interval(57, 86, z=1.96)
    assert low == pytest.approx(0.5578236, abs=1e-7)
    assert high == pytest.approx(0.7538360, abs=1e-7)


def test_the_quantile_is_not_rounded():
    assert two_sided_z(0.95) == pytest.approx(1.959963984540054, abs=1e-14)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        (0, 1, 0.0, 0.79345069),
        (1, 1, 0.20654931, 1.0),
        (38, 38, 0.90819013, 1.0),
        (0, 77, 0.0, 0.04751843),
        (57, 86, 0.55782561, 0.75383451),
        (0, 2, 0.0, 0.65762),
        (41, 41, 0.91433, 1.0),
        (3, 8, 0.13684, 0.69426),
    ],
)
def test_edges_of_a_rate(k, n, low, high):
    interval = wilson_interval(k, n)
    assert interval.low == pytest.approx(low, abs=1e-5)
    assert interval.high == pytest.approx(high, abs=1e-5)
    assert 0.0 <= interval.low < interval.high <= 1.0
    if k == 0:
        assert interval.low == 0.0
    if k == n:
        assert interval.high == 1.0


@pytest.mark.parametrize(("k", "n", "low", "high"), [(0, 1, 0, 0.79345069), (57, 86, 0.55782561, 0.75383451)])
def test_listed_digits(k, n, low, high):
    assert wilson_interval(k, n) == pytest.approx((low, high), abs=1e-8)


def test_no_trials_no_interval():
    assert wilson_interval(0, 0) is None


def test_hits_beyond_trials_and_a_useless_z_are_refused():
    with pytest.raises(ValueError, match=r"^k must not exceed n, but 3 > 2$"):
        wilson_interval(3, 2)
    for z in (0.0, -1.96):
        with pytest.raises(ValueError, match=r"^z must be above 0"):
            wilson_interval(1, 2, z=z)
    with pytest.raises(ValueError, match=r"^z must be a finite number"):
        wilson_interval(1, 2, z=math.nan)


@given(rates, st.floats(0.01, 0.9999))
@unhurried
def test_inside_0_and_1_around_the_estimate_and_never_of_zero_width(rate, level):
    k, n = rate
    low, high = wilson_interval(k, n, level)
    assert 0.0 <= low <= k / n <= high <= 1.0
    assert low < high
    assert (low == 0.0) == (k == 0)
    assert (high == 1.0) == (k == n)


@given(st.integers(1, 10**18), st.floats(1e-300, 0.01))
@unhurried
def test_not_even_an_absurd_level_makes_a_rate_certain(n, level):
    for k in (0, n // 2, n):
        low, high = wilson_interval(k, n, level)
        assert 0.0 <= low < high <= 1.0


@given(rates, st.floats(0.5, 0.99), st.floats(0.5, 0.99))
@unhurried
def test_a_higher_level_never_narrows(rate, one, other):
    narrow, wide = (wilson_interval(*rate, level) for level in sorted((one, other)))
    assert wide.low <= narrow.low
    assert narrow.high <= wide.high


@given(rates)
@unhurried
def test_successes_and_failures_mirror_each_other(rate):
    k, n = rate
    hits, misses = wilson_interval(k, n), wilson_interval(n - k, n)
    assert hits == pytest.approx((1 - misses.high, 1 - misses.low), abs=1e-12)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.999))
@unhurried
def test_agrees_with_scipy(rate, level):
    k, n = rate
    other = binomtest(k, n).proportion_ci(level, method="wilson")
    assert wilson_interval(k, n, level) == pytest.approx((other.low, other.high), abs=1e-9)
