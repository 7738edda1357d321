"""Sequential evidence: reference e-values, the formula by quadrature, and what makes it valid at any time."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta

from pytest_fusion_audit.stats import (
    EVIDENCE_THRESHOLD,
    log_sequential_evidence,
    sequential_evidence,
    sequential_interval,
    sequential_uplift_interval,
)

unhurried = settings(deadline=None, max_examples=40)
counts = st.integers(0, 120)


@pytest.mark.parametrize(
    ("wins", "losses", "evidence"),
    [(6, 0, 18.143), (7, 0, 31.875), (10, 1, 30.932), (12, 2, 23.917), (7, 1, 6.972)],
)
def test_the_reference_e_values(wins, losses, evidence):
    assert sequential_evidence(wins, losses) == pytest.approx(evidence, abs=5.1e-4)


def test_the_threshold_is_one_sided_two_and_a_half_percent():
    assert EVIDENCE_THRESHOLD == 40.0
    assert sequential_evidence(7, 0) < EVIDENCE_THRESHOLD <= sequential_evidence(8, 0)


def test_before_the_first_discordant_task_there_is_no_evidence():
    assert sequential_evidence(0, 0) == 1.0
    assert log_sequential_evidence(0, 0) == 0.0


@given(counts, counts)
@unhurried
def test_equals_the_formula_of_the_method(wins, losses):
    a, b = wins + 1, losses + 1
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    log_e = math.log(2) + log_beta + (wins + losses) * math.log(2) + beta.logsf(0.5, a, b)
    assert log_sequential_evidence(wins, losses) == pytest.approx(log_e, rel=1e-8, abs=1e-8)
    assert sequential_evidence(wins, losses) == pytest.approx(math.exp(log_e), rel=1e-7)


@given(counts, counts)
@unhurried
def test_a_fair_coin_leaves_the_evidence_where_it_is_on_average(wins, losses):
    # The martingale property: it is why one may look after every task.
    after = (sequential_evidence(wins + 1, losses) + sequential_evidence(wins, losses + 1)) / 2
    assert after == pytest.approx(sequential_evidence(wins, losses), rel=1e-12)


@given(counts, counts)
@unhurried
def test_wins_add_evidence_and_losses_take_it(wins, losses):
    here = sequential_evidence(wins, losses)
    assert sequential_evidence(wins + 1, losses) > here > sequential_evidence(wins, losses + 1) > 0.0


def test_looking_after_every_task_keeps_the_promised_error():
    tosses, rejected = np.random.default_rng(7).random((800, 80)) < 0.5, 0
    table = {}
    for row in tosses.tolist():
        wins = losses = 0
        for win in row:
            wins, losses = wins + win, losses + 1 - win
            if (wins, losses) not in table:
                table[wins, losses] = sequential_evidence(wins, losses)
            if table[wins, losses] >= EVIDENCE_THRESHOLD:
                rejected += 1
                break
    assert rejected / 800 <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / 800)


def test_counts_beyond_whole_number_sums_continue_smoothly():
    below, above = log_sequential_evidence(520, 479), log_sequential_evidence(521, 479)
    assert 0.0 < above - below < 0.5
    step = [log_sequential_evidence(w, 479) for w in (519, 520, 521, 522)]
    assert step[2] - step[1] == pytest.approx((step[1] - step[0] + step[3] - step[2]) / 2, abs=1e-3)
    assert sequential_evidence(200, 1800) >= 0.0
    assert log_sequential_evidence(200, 1800) < 0.0


def test_evidence_that_no_float_holds_is_the_largest_float():
    assert sequential_evidence(999, 0) < math.inf
    assert sequential_evidence(5000, 0) == sys.float_info.max
    assert log_sequential_evidence(5000, 0) == pytest.approx(5000 * math.log(2), rel=0.01)


def evidence_against_share(wins, losses, share):
    likelihood = share**wins * (1 - share) ** losses
    mixed = quad(lambda p: p**wins * (1 - p) ** losses, share, 1)[0] / (1 - share)
    return mixed / likelihood


@pytest.mark.parametrize(("wins", "losses"), [(12, 2), (7, 0), (3, 9), (20, 20), (1, 0)])
def test_the_ends_of_the_share_interval_are_where_the_evidence_reaches_40(wins, losses):
    low, high = sequential_interval(wins, losses)
    if wins:
        assert evidence_against_share(wins, losses, low) == pytest.approx(40, rel=1e-5)
    if losses:
        assert evidence_against_share(losses, wins, 1 - high) == pytest.approx(40, rel=1e-5)
    assert low <= wins / (wins + losses) <= high


def evidence_against_uplift(wins, losses, n, uplift):
    def wealth(u):
        bet = u / (1 + uplift)
        ties = n - wins - losses
        return (1 + bet * (1 - uplift)) ** wins * (1 - bet * uplift) ** ties * (1 - bet * (1 + uplift)) ** losses

    return quad(wealth, 0, 1, epsabs=0, epsrel=1e-9)[0]


@pytest.mark.parametrize(("wins", "losses", "n"), [(12, 2, 60), (31, 12, 220), (5, 5, 40), (0, 0, 30), (3, 0, 3)])
def test_the_ends_of_the_uplift_interval_are_where_the_evidence_reaches_40(wins, losses, n):
    low, high = sequential_uplift_interval(wins, losses, n)
    assert evidence_against_uplift(wins, losses, n, low) == pytest.approx(40, rel=1e-5)
    if high < 1:
        assert evidence_against_uplift(losses, wins, n, -high) == pytest.approx(40, rel=1e-5)


@given(counts, counts, st.integers(1, 500))
@unhurried
def test_intervals_exclude_no_difference_exactly_when_the_evidence_rejects(wins, losses, ties):
    rejects = sequential_evidence(wins, losses) >= EVIDENCE_THRESHOLD
    against = sequential_evidence(losses, wins) >= EVIDENCE_THRESHOLD
    uplift = sequential_uplift_interval(wins, losses, wins + losses + ties)
    assert (uplift.low > 0.0, uplift.high < 0.0) == (rejects, against)
    if wins + losses:
        share = sequential_interval(wins, losses)
        assert (share.low > 0.5, share.high < 0.5) == (rejects, against)


@given(counts, counts, st.integers(0, 500), st.floats(0.01, 0.99), st.floats(0.01, 0.99))
@unhurried
def test_intervals_hold_the_estimate_mirror_and_widen_with_the_level(wins, losses, ties, one, other):
    n = wins + losses + ties
    if n == 0:
        return
    narrow, wide = (sequential_uplift_interval(wins, losses, n, level) for level in sorted((one, other)))
    assert {type(bound) for bound in narrow} == {float}
    assert -1.0 <= wide.low <= narrow.low + 1e-9
    assert narrow.high <= wide.high + 1e-9 <= 1.0 + 1e-9
    assert narrow.low - 1e-9 <= (wins - losses) / n <= narrow.high + 1e-9
    mirror = sequential_uplift_interval(losses, wins, n, max(one, other))
    assert wide == pytest.approx((-mirror.high, -mirror.low), abs=1e-12)
    if wins + losses:
        narrow, wide = (sequential_interval(wins, losses, level) for level in sorted((one, other)))
        assert 0.0 <= wide.low <= narrow.low + 1e-9
        assert narrow.high <= wide.high + 1e-9 <= 1.0 + 1e-9


def test_nothing_seen_no_interval():
    assert sequential_interval(0, 0) is None
    assert sequential_uplift_interval(0, 0, 0) is None
    assert sequential_uplift_interval(0, 0, 1) is not None


@pytest.mark.parametrize("n", [1, 5, 4000])
def test_the_corners_are_reached(n):
    assert sequential_interval(n, 0).high == 1.0
    assert sequential_interval(0, n).low == 0.0
    assert sequential_uplift_interval(n, 0, n).high == 1.0
    assert sequential_uplift_interval(0, n, n).low == -1.0


def test_thousands_of_tasks_are_integrated_as_well():
    low, high = sequential_uplift_interval(480, 160, 4000)
    assert evidence_against_uplift(480, 160, 4000, low) == pytest.approx(40, rel=1e-4)
    assert 0.05 < low < 0.08 < high < 0.11
