"""Power: the reference value, brute force over every table, and simulation-free properties."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.stats import paired_power, paired_test
from pytest_fusion_audit.stats.power import MAX_TASKS

unhurried = settings(deadline=None, max_examples=40)


@st.composite
def rates(draw):
    """Two probabilities whose sum is at most 1."""
    discordance = draw(st.floats(0.0, 1.0))
    won = discordance * draw(st.floats(0.0, 1.0))
    return won, discordance - won


def brute_force(p_win, p_loss, n, alpha, method):
    total = 0.0
    for wins in range(n + 1):
        for losses in range(n + 1 - wins):
            test = paired_test(wins, losses, n)
            if (test.exact_p if method == "exact" else test.mid_p) < alpha:
                ways = math.comb(n, wins) * math.comb(n - wins, losses)
                total += ways * p_win**wins * p_loss**losses * (1 - p_win - p_loss) ** (n - wins - losses)
    return total


def test_the_reference_value():
    assert paired_power(0.20, 0.10, 100) == pytest.approx(0.373077, abs=5e-7)


@pytest.mark.parametrize("method", ["exact", "mid_p"])
@pytest.mark.parametrize(
    ("p_win", "p_loss", "n", "alpha"),
    [(0.2, 0.1, 40, 0.05), (0.6, 0.1, 15, 0.05), (0.05, 0.3, 25, 0.01), (0.7, 0.3, 18, 0.1), (1.0, 0.0, 6, 0.05)],
)
def test_equals_the_sum_over_every_table(p_win, p_loss, n, alpha, method):
    assert paired_power(p_win, p_loss, n, alpha, method) == pytest.approx(
        brute_force(p_win, p_loss, n, alpha, method), abs=1e-12
    )


@pytest.mark.parametrize("method", ["exact", "mid_p"])
def test_a_p_equal_to_alpha_does_not_reject(method):
    exact_size = paired_test(6, 0).exact_p if method == "exact" else paired_test(6, 0).mid_p
    assert paired_power(1.0, 0.0, 6, exact_size, method) == 0.0
    assert paired_power(1.0, 0.0, 6, exact_size * 1.001, method) == pytest.approx(1.0)


def test_nothing_is_shown_with_no_task_or_no_disagreement():
    assert paired_power(0.3, 0.1, 0) == 0.0
    assert paired_power(0.0, 0.0, 500) == 0.0


def test_five_discordant_tasks_never_show_anything():
    assert paired_power(1.0, 0.0, 5) == 0.0
    assert paired_power(1.0, 0.0, 6) == pytest.approx(1.0)
    assert paired_power(1.0, 0.0, 5, method="mid_p") == pytest.approx(1.0)


@given(rates(), st.integers(0, 400), st.floats(0.001, 0.5))
@unhurried
def test_power_is_a_probability_and_the_mid_p_never_has_less(pair, n, alpha):
    exact, mid = (paired_power(*pair, n, alpha, method) for method in ("exact", "mid_p"))
    assert type(exact) is float
    assert 0.0 <= exact <= mid + 1e-12 <= 1.0 + 1e-12


@given(rates(), st.integers(1, 300))
@unhurried
def test_power_knows_no_direction(pair, n):
    assert paired_power(*pair, n) == pytest.approx(paired_power(*pair[::-1], n), abs=1e-12)


@given(st.floats(0.0, 0.5), st.integers(1, 400), st.sampled_from([0.01, 0.05, 0.2]))
@unhurried
def test_without_a_difference_the_exact_test_keeps_its_size(p, n, alpha):
    assert paired_power(p, p, n, alpha) <= alpha


@given(rates(), st.integers(1, 300), st.floats(0.001, 0.2), st.floats(0.001, 0.2))
@unhurried
def test_a_larger_alpha_never_has_less_power(pair, n, one, other):
    small, large = sorted((one, other))
    assert paired_power(*pair, n, small) <= paired_power(*pair, n, large) + 1e-12


def test_thousands_of_tasks_have_the_power_of_the_normal_approximation():
    # d = .126, u = .03: 1,097 tasks by the normal formula; the exact test is a little more conservative.
    assert paired_power(0.078, 0.048, 1097, method="mid_p") == pytest.approx(0.80, abs=0.006)
    assert 0.77 < paired_power(0.078, 0.048, 1097) < 0.80
    assert paired_power(0.078, 0.048, 3000) == pytest.approx(0.996, abs=0.003)


def test_impossible_rates_are_refused():
    with pytest.raises(ValueError, match=r"^p_win \+ p_loss must not exceed 1"):
        paired_power(0.7, 0.4, 10)
    with pytest.raises(ValueError, match=r"^p_loss must lie between 0 and 1"):
        paired_power(0.1, -0.1, 10)
    with pytest.raises(ValueError, match=r"^p_win must be a finite number"):
        paired_power(math.nan, 0.1, 10)
    with pytest.raises(ValueError, match=r"^method must be one of exact, mid_p, not 'normal'$"):
        paired_power(0.2, 0.1, 10, method="normal")
    with pytest.raises(ValueError, match=r"^n must not exceed"):
        paired_power(0.2, 0.1, MAX_TASKS + 1)
