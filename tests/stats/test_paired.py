"""McNemar's test: published values, the edges, and agreement with brute force."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, chi2

from pytest_fusion_audit.stats import PairedTest, decision, loss_detected, paired_test

counts = st.integers(0, 400)
unhurried = settings(deadline=None, max_examples=50)


@pytest.mark.parametrize(
    ("wins", "losses", "exact", "mid", "asymptotic", "corrected"),
    [
        (6, 16, 0.052479, 0.034690, 0.033006, 0.055009),  # Cavo 2012
        (1, 7, 0.070312, 0.039063, 0.033895, None),  # Bentur 2009
        (2, 9, 0.06543, 0.038574, None, 0.07044),
    ],
)
def test_published_values_of_fagerland_lydersen_laake(wins, losses, *, exact, mid, asymptotic, corrected):
    test = paired_test(wins, losses)
    assert test.exact_p == pytest.approx(exact, abs=1e-6)
    assert test.mid_p == pytest.approx(mid, abs=1e-6)
    if asymptotic is not None:
        assert test.chi2_p == pytest.approx(asymptotic, abs=1e-6)
    if corrected is not None:
        assert test.chi2_cc_p == pytest.approx(corrected, abs=1e-6)


def test_the_example_of_the_scorecard():
    test = paired_test(31, 12, 220)
    assert round(test.exact_p, 4) == 0.0054
    assert round(test.mid_p, 4) == 0.0037
    assert test.decision() == "shown"


def test_sixteen_to_nothing():
    test = paired_test(16, 0, 86)
    assert test.chi2_cc == 14.0625
    assert test.chi2_cc_p == pytest.approx(1.76835e-4, abs=1e-9)
    assert test.exact_p == 2.0**-15


@pytest.mark.parametrize(
    ("wins", "losses", "exact"),
    [(8, 0, 0.0078125), (11, 2, 0.0224609375), (7, 6, 1.0), (6, 0, 0.03125), (5, 0, 0.0625), (7, 1, 0.0703125)],
)
def test_small_tables_exactly(wins, losses, exact):
    assert paired_test(wins, losses).exact_p == exact
    assert paired_test(losses, wins).exact_p == exact


@pytest.mark.parametrize(
    ("wins", "losses", "n", "exact", "significant"),
    [
        (0, 0, 17, 1.0, False),
        (0, 1, 12, 1.0, False),
        (0, 5, 61, 0.0625, False),
        (0, 6, 61, 0.03125, True),
        (1, 7, 90, 0.0703125, False),
        (0, 16, 99, 2.0**-15, True),
        (0, 0, 0, None, None),
        (0, 0, 5, 1.0, False),
        (1, 0, 10, 1.0, False),
        (5, 0, 40, 0.0625, False),
        (6, 0, 40, 0.03125, True),
        (7, 1, 150, 0.0703125, False),
        (16, 0, 86, 3.0517578125e-05, True),
    ],
)
def test_few_discordant_pairs_neither_crash_nor_convince(wins, losses, n, exact, significant):
    test = paired_test(wins, losses, n)
    assert test.exact_p == (None if exact is None else pytest.approx(exact, abs=1e-12))
    word = test.decision()
    assert (None if word is None else word == "shown") == significant


def test_the_chi_square_form_would_call_five_to_nothing_significant():
    test = paired_test(5, 0, 40)
    assert test.chi2 == 5.0
    assert test.chi2_p < 0.05 < test.exact_p
    assert test.decision() == "borderline: not shown"


@pytest.mark.parametrize(("wins", "losses"), [(5, 0), (7, 1), (9, 2), (11, 3), (12, 4)])
def test_what_only_the_mid_p_calls_significant_is_borderline(wins, losses):
    assert paired_test(wins, losses).decision() == "borderline: not shown"
    assert paired_test(losses, wins).decision() == "borderline: not shown"
    assert paired_test(wins + 2, losses).decision() == "shown"
    assert paired_test(wins - 1, losses).decision() == "not shown"


def test_no_task_no_test():
    assert paired_test(0, 0, 0) == PairedTest(None, None, None, None, None, None)
    assert paired_test(0, 0, 0).decision() is None


@pytest.mark.parametrize("n", [None, 1, 1000])
def test_no_disagreement_is_p_1_and_statistic_0(n):
    assert paired_test(0, 0, n) == PairedTest(1.0, 1.0, 0.0, 1.0, 0.0, 1.0)


def test_a_tie_has_the_mid_p_of_its_definition():
    test = paired_test(3, 3)
    assert test.exact_p == 1.0
    assert test.mid_p == pytest.approx(1 - binom.pmf(3, 6, 0.5) / 2)
    assert (test.chi2, test.chi2_cc) == (0.0, 0.0)


def test_a_p_equal_to_alpha_does_not_reject():
    assert paired_test(6, 0).decision(0.03125) == "borderline: not shown"
    assert paired_test(6, 0).decision(0.031251) == "shown"


def test_the_rule_knows_unknown_and_refuses_nonsense():
    assert decision(None, None) is None
    assert decision(0.2, None) == "not shown"
    with pytest.raises(ValueError, match=r"^exact_p must lie between 0 and 1"):
        decision(1.2, None)
    with pytest.raises(ValueError, match=r"^mid_p must be a finite number"):
        decision(0.2, math.nan)


def test_losses_are_detected_by_the_less_forgiving_mid_p():
    assert loss_detected(0, 5) is True
    assert loss_detected(1, 7, 150) is True
    assert loss_detected(0, 4) is False
    assert loss_detected(7, 1) is False
    assert loss_detected(0, 0, 10) is False
    assert loss_detected(0, 0, 0) is None


@pytest.mark.parametrize(("wins", "losses"), [(won, lost) for won in range(8) for lost in range(8) if won + lost <= 10])
def test_exact_p_equals_the_enumeration_of_all_coin_sequences(wins, losses):
    tosses, gap = wins + losses, abs(wins - losses)
    as_extreme = sum(abs(2 * sum(s) - tosses) >= gap for s in itertools.product((0, 1), repeat=tosses))
    assert paired_test(wins, losses).exact_p == as_extreme / 2**tosses


@given(counts, counts)
@unhurried
def test_exact_and_asymptotic_p_agree_with_scipy(wins, losses):
    test = paired_test(wins, losses)
    if wins + losses:
        assert test.exact_p == pytest.approx(binomtest(wins, wins + losses).pvalue, rel=1e-9)
    assert test.chi2_p == pytest.approx(chi2.sf(test.chi2, 1), rel=1e-9, abs=1e-300)
    assert test.chi2_cc_p == pytest.approx(chi2.sf(test.chi2_cc, 1), rel=1e-9, abs=1e-300)


@given(counts, counts)
@unhurried
def test_p_knows_no_direction(wins, losses):
    assert paired_test(wins, losses) == paired_test(losses, wins)


@given(counts, counts)
@unhurried
def test_every_p_is_a_probability_and_the_mid_p_never_the_larger(wins, losses):
    test = paired_test(wins, losses)
    for p in (test.exact_p, test.mid_p, test.chi2_p, test.chi2_cc_p):
        assert type(p) is float
        assert 0.0 <= p <= 1.0
    assert test.mid_p <= test.exact_p
    assert test.chi2_cc <= test.chi2
    assert test.chi2_p <= test.chi2_cc_p


@given(st.integers(0, 300), st.integers(0, 300))
@unhurried
def test_a_further_win_of_the_leader_never_raises_p(losses, lead):
    before, after = paired_test(losses + lead, losses), paired_test(losses + lead + 1, losses)
    assert after.exact_p <= before.exact_p
    assert after.mid_p <= before.mid_p


@given(st.integers(0, 60), st.integers(0, 60), st.floats(0.001, 0.2))
@unhurried
def test_borderline_means_mid_p_below_and_exact_p_not(wins, losses, alpha):
    test = paired_test(wins, losses)
    word = test.decision(alpha)
    assert (word == "shown") == (test.exact_p < alpha)
    assert (word == "borderline: not shown") == (test.mid_p < alpha <= test.exact_p)


def test_counts_beyond_whole_number_sums_continue_smoothly():
    small, large = paired_test(530, 470), paired_test(531, 470)
    assert large.exact_p == pytest.approx(binomtest(531, 1001).pvalue, rel=1e-9)
    assert large.exact_p < small.exact_p
    assert paired_test(60_000, 40_000).exact_p == 0.0
    assert 0.0 < paired_test(50_100, 49_900).mid_p < 1.0
