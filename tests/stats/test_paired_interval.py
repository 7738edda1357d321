"""Intervals of the uplift: published values, brentq as a second opinion, and what an interval has to satisfy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from pytest_fusion_audit.stats import (
    Interval,
    paired_bootstrap_interval,
    paired_interval,
    paired_lower_bound,
    two_sided_z,
)

unhurried = settings(deadline=None, max_examples=50)
levels = st.floats(0.5, 0.999)


@st.composite
def tables(draw):
    """A table of at least one task: wins, losses, n, both."""
    wins, losses, both, neither = (draw(st.integers(0, 300)) for _ in range(4))
    n = wins + losses + both + neither
    return (wins, losses, n, both) if n else (0, 0, 1, 0)


@pytest.mark.parametrize(
    ("wins", "losses", "n", "low", "high"),
    [
        (6, 16, 161, -0.1240, -0.0054),  # Cavo 2012
        (1, 7, 21, -0.5172, -0.0260),  # Bentur 2009
        (40, 20, 160, 0.0309, 0.2181),
    ],
)
def test_published_score_intervals(wins, losses, n, low, high):
    assert paired_interval(wins, losses, n) == pytest.approx((low, high), abs=5.1e-5)


def test_the_example_of_the_scorecard():
    low, high = paired_interval(31, 12, 220)
    assert (round(low, 3), round(high, 3)) == (0.029, 0.146)


@pytest.mark.parametrize(
    ("wins", "losses", "n", "both", "low", "high"),
    [
        (6, 16, 161, 59, -0.1186, -0.0046),  # Cavo 2012
        (0, 0, 2, 1, -0.5734, 0.5734),
        (1, 7, 21, 1, -0.5069, -0.0256),  # Bentur 2009
    ],
)
def test_published_square_and_add_intervals(wins, losses, n, both, *, low, high):
    interval = paired_interval(wins, losses, n, both=both, method="newcombe")
    assert interval == pytest.approx((low, high), abs=5.1e-5)


def test_newcombe_needs_both():
    with pytest.raises(ValueError, match=r"^both is needed by method 'newcombe'"):
        paired_interval(3, 1, 10, method="newcombe")
    with pytest.raises(ValueError, match=r"^wins \+ losses \+ both must not exceed n"):
        paired_interval(3, 1, 10, both=7)
    with pytest.raises(ValueError, match=r"^both must be a whole number"):
        paired_interval(3, 1, 10, both=-1)
    with pytest.raises(ValueError, match=r"^method must be one of tango, newcombe"):
        paired_interval(3, 1, 10, method="wald")


@pytest.mark.parametrize("method", ["tango", "newcombe"])
def test_no_task_no_interval(method):
    assert paired_interval(0, 0, 0, both=0, method=method) is None
    assert paired_lower_bound(0, 0, 0) is None


def test_no_disagreement_still_has_an_interval():
    low, high = paired_interval(0, 0, 50)
    assert low == -high
    assert high == pytest.approx(two_sided_z(0.95) ** 2 / (50 + two_sided_z(0.95) ** 2))


@pytest.mark.parametrize("n", [1, 2, 50])
def test_all_won_reaches_exactly_1(n):
    assert paired_interval(n, 0, n).high == 1.0
    assert paired_interval(0, n, n).low == -1.0
    assert -1.0 < paired_interval(n, 0, n).low < 1.0


@given(tables(), levels)
@unhurried
def test_the_ends_of_tango_are_where_the_score_test_just_rejects(table, level):
    wins, losses, n, _ = table
    interval, z = paired_interval(wins, losses, n, level=level), two_sided_z(level)

    def score(delta):
        # Tango 1998, eq. 6, as printed.
        b = (2 * n - wins + losses) * delta - wins - losses
        c = -losses * delta * (1 - delta)
        loss = (math.sqrt(max(0.0, b * b - 8 * n * c)) - b) / (4 * n)
        return (wins - losses - n * delta) / math.sqrt(n * max(1e-300, 2 * loss + delta * (1 - delta)))

    for bound, sign in ((interval.low, 1), (interval.high, -1)):
        if abs(bound) < 1 - 1e-6 and wins + losses not in {0, n}:
            assert score(bound) == pytest.approx(sign * z, abs=1e-4)


def test_tango_agrees_with_brentq_on_the_constrained_likelihood():
    # Independent of the closed form: the loss rate that maximises the trinomial likelihood under d = delta.
    wins, losses, n, z = 12, 5, 60, two_sided_z(0.95)

    def score(delta):
        def slope(loss):
            return wins / (loss + delta) + losses / loss - 2 * (n - wins - losses) / (1 - 2 * loss - delta)

        least, most = max(0.0, -delta) + 1e-12, (1 - delta) / 2 - 1e-12
        loss = brentq(slope, least, most, xtol=1e-15)
        return (wins - losses - n * delta) / math.sqrt(n * (2 * loss + delta - delta * delta))

    estimate = (wins - losses) / n
    low = brentq(lambda d: score(d) - z, -0.9, estimate)
    high = brentq(lambda d: score(d) + z, estimate, 0.9)
    assert paired_interval(wins, losses, n) == pytest.approx((low, high), abs=1e-8)


@given(tables(), levels, st.sampled_from(["tango", "newcombe"]))
@unhurried
def test_an_interval_holds_the_estimate_and_stays_inside_its_range(table, level, method):
    wins, losses, n, both = table
    interval = paired_interval(wins, losses, n, both, level, method)
    assert {type(bound) for bound in interval} == {float}
    estimate = (wins - losses) / n
    assert -1.0 <= interval.low <= estimate + 1e-15
    assert estimate - 1e-15 <= interval.high <= 1.0
    assert interval.low < interval.high


@given(tables(), levels)
@unhurried
def test_swapping_the_arms_mirrors_the_interval(table, level):
    wins, losses, n, both = table
    straight, swapped = paired_interval(wins, losses, n, level=level), paired_interval(losses, wins, n, level=level)
    assert straight == Interval(-swapped.high, -swapped.low)
    check = paired_interval(wins, losses, n, both, level, "newcombe")
    mirror = paired_interval(losses, wins, n, both, level, "newcombe")
    assert check == pytest.approx((-mirror.high, -mirror.low), abs=1e-12)


@given(tables(), levels, levels, st.sampled_from(["tango", "newcombe"]))
@unhurried
def test_a_higher_level_never_narrows(table, one, other, method):
    wins, losses, n, both = table
    narrow = paired_interval(wins, losses, n, both, min(one, other), method)
    wide = paired_interval(wins, losses, n, both, max(one, other), method)
    assert wide.low <= narrow.low + 1e-12
    assert narrow.high <= wide.high + 1e-12


@given(tables())
@unhurried
def test_turning_a_tie_into_a_win_moves_both_ends_up(table):
    wins, losses, n, _ = table
    before, after = paired_interval(wins, losses, n + 1), paired_interval(wins + 1, losses, n + 1)
    assert before.low <= after.low
    assert before.high <= after.high


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 100))
@unhurried
def test_tango_excludes_0_exactly_when_mcnemars_statistic_exceeds_z_squared(wins, losses, ties):
    if wins + losses == 0:
        return
    low, high = paired_interval(wins, losses, wins + losses + ties)
    statistic = (wins - losses) ** 2 / (wins + losses)
    assert (low > 0.0 or high < 0.0) == (statistic > two_sided_z(0.95) ** 2)


def test_the_one_sided_bound_is_the_low_end_at_90_percent():
    assert paired_lower_bound(20, 26, 300) == pytest.approx(paired_interval(20, 26, 300, level=0.90).low, abs=1e-12)
    assert paired_lower_bound(0, 0, 150) > -0.05
    with pytest.raises(ValueError, match=r"^level of a one-sided bound must be above 0.5"):
        paired_lower_bound(1, 1, 10, level=0.4)


def test_tango_covers_where_the_bootstrap_of_older_reports_does_not():
    draw = np.random.default_rng(20)
    covered = {"tango": 0, "bootstrap": 0}
    for seed in range(150):
        tasks = draw.choice([1, -1, 0], p=[0.10, 0.04, 0.86], size=20).tolist()
        low, high = paired_interval(tasks.count(1), tasks.count(-1), 20)
        covered["tango"] += low <= 0.06 <= high
        low, high = paired_bootstrap_interval(tasks, draws=300, seed=seed)
        covered["bootstrap"] += low <= 0.06 <= high
    assert covered["tango"] >= 0.93 * 150 > covered["bootstrap"]


def test_the_bootstrap_is_seeded_and_knows_nothing_of_nothing():
    differences = [1] * 12 + [-1] * 5 + [0] * 43
    graded = [math.sin(i) for i in range(40)]
    assert paired_bootstrap_interval(graded, seed=3) == paired_bootstrap_interval(graded, seed=3)
    assert paired_bootstrap_interval(graded, seed=3) != paired_bootstrap_interval(graded, seed=4)
    low, high = paired_bootstrap_interval(differences, draws=4000)
    assert low == pytest.approx(7 / 60 - 1.96 * 0.068, abs=0.03)
    assert high == pytest.approx(7 / 60 + 1.96 * 0.068, abs=0.03)
    assert paired_bootstrap_interval([]) is None
    assert paired_bootstrap_interval([0.25]) == Interval(0.25, 0.25)
    with pytest.raises(ValueError, match=r"^differences\[1\] must be a finite number"):
        paired_bootstrap_interval([0.0, math.nan])
