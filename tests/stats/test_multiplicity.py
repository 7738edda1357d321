"""Corrections for several tests keep order, keep unknown unknown, and never make a p smaller."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.stats import alpha_of_look, benjamini_hochberg, holm, intersection_union

unhurried = settings(deadline=None, max_examples=50)
families = st.lists(st.none() | st.floats(0, 1), max_size=25)


def test_the_reference_family():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02], abs=1e-12)


def test_benjamini_hochberg_by_hand():
    assert benjamini_hochberg([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.02, 0.04, 0.04, 0.02])


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg])
def test_a_p_that_was_never_computed_stays_unknown_and_costs_nothing(correct):
    assert correct([]) == []
    assert correct([None, None]) == [None, None]
    with_gap = correct([0.01, None, 0.03])
    assert [with_gap[0], with_gap[2]] == correct([0.01, 0.03])
    assert with_gap[1] is None


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg, intersection_union])
@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, True, "0.04"])
def test_what_is_no_p_is_refused(correct, bad):
    with pytest.raises(ValueError, match=r"^pvalues\[1\] must"):
        correct([0.5, bad])


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg])
@given(family=families)
@unhurried
def test_adjusted_p_are_larger_ordered_alike_and_at_most_1(correct, family):
    adjusted = correct(family)
    assert [p is None for p in adjusted] == [p is None for p in family]
    pairs = sorted((raw, new) for raw, new in zip(family, adjusted, strict=True) if raw is not None)
    for raw, new in pairs:
        assert type(new) is float
        assert raw <= new <= 1.0
    assert [new for _, new in pairs] == sorted(new for _, new in pairs)


@given(family=st.lists(st.floats(0, 1), min_size=1, max_size=10))
@unhurried
def test_holm_lies_between_the_raw_p_and_bonferroni_and_ignores_order(family):
    adjusted = holm(family)
    for raw, new in zip(family, adjusted, strict=True):
        assert new <= min(1.0, len(family) * raw) or math.isclose(new, holm(sorted(family))[sorted(family).index(raw)])
    assert holm(family[::-1]) == adjusted[::-1]
    assert min(adjusted) == pytest.approx(min(1.0, len(family) * min(family)))


@given(family=st.lists(st.floats(0, 1), min_size=1, max_size=10))
@unhurried
def test_benjamini_hochberg_is_never_harsher_than_holm(family):
    for mild, harsh in zip(benjamini_hochberg(family), holm(family), strict=True):
        assert mild <= harsh + 1e-12


def test_beating_every_member_rests_on_the_largest_p():
    assert intersection_union([0.001, 0.03, 0.01]) == 0.03
    assert intersection_union([0.001, None]) is None
    assert intersection_union([]) is None


def test_looks_at_one_locked_set_halve_alpha():
    assert [alpha_of_look(k) for k in (1, 2, 3)] == [0.025, 0.0125, 0.00625]
    assert sum(alpha_of_look(k) for k in range(1, 40)) <= 0.05
    with pytest.raises(ValueError, match=r"^look must be a whole number of at least 1"):
        alpha_of_look(0)
