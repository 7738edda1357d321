"""Sample sizes: all reference values, the definition by plain search, and the least detectable uplift."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from pytest_fusion_audit.stats import minimum_detectable_uplift, paired_power, required_tasks
from pytest_fusion_audit.stats.power import MAX_TASKS

REFERENCE = [
    (0.20, 0.10, 250, 230),
    (0.15, 0.05, 170, 152),
    (0.12, 0.04, 210, 191),
    (0.10, 0.02, 155, 134),
    (0.08, 0.02, 235, 204),
    (0.08, 0.03, 370, 335),
    (0.06, 0.01, 230, 199),
    (0.10, 0.05, 500, 461),
]


@pytest.mark.parametrize(("p_win", "p_loss", "exact_by_5", "mid_p"), REFERENCE)
def test_the_reference_sizes(p_win, p_loss, exact_by_5, mid_p):
    assert required_tasks(p_win, p_loss, step=5) == exact_by_5
    assert required_tasks(p_win, p_loss, method="mid_p") == mid_p
    assert required_tasks(p_loss, p_win, step=5) == exact_by_5


@pytest.mark.parametrize(("p_win", "p_loss"), [row[:2] for row in REFERENCE] + [(0.078, 0.048)])
def test_the_normal_formula(p_win, p_loss):
    d, u = p_win + p_loss, p_win - p_loss
    n = math.ceil((norm.ppf(0.975) * math.sqrt(d) + norm.ppf(0.8) * math.sqrt(d - u * u)) ** 2 / u**2)
    assert required_tasks(p_win, p_loss, method="normal") == n


def test_the_normal_formula_by_hand():
    assert required_tasks(0.12, 0.04, method="normal") == 194
    assert required_tasks(0.12, 0.04, method="normal", step=5) == 195
    assert required_tasks(0.078, 0.048, method="normal") == 1097


@pytest.mark.parametrize("method", ["exact", "mid_p"])
@pytest.mark.parametrize(
    ("p_win", "p_loss", "power", "alpha", "step"),
    [
        (0.12, 0.04, 0.8, 0.05, 1),
        (0.70, 0.30, 0.8, 0.05, 1),  # discordance 1: the power is saw-toothed
        (0.90, 0.05, 0.9, 0.05, 1),
        (0.55, 0.40, 0.5, 0.05, 3),
        (0.30, 0.05, 0.95, 0.01, 7),
        (1.00, 0.00, 0.8, 0.001, 1),
        (0.05, 0.30, 0.2, 0.05, 2),
    ],
)
def test_it_is_the_first_size_on_the_grid_that_reaches_the_power(p_win, p_loss, power, *, alpha, step, method):
    n = step
    while paired_power(p_win, p_loss, n, alpha, method) < power:
        n += step
    assert required_tasks(p_win, p_loss, power, alpha, method, step) == n


@given(
    st.floats(0.02, 0.5), st.floats(0.0, 0.9), st.sampled_from(["exact", "mid_p"]), st.sampled_from([0.3, 0.8, 0.95])
)
@settings(deadline=None, max_examples=25)
def test_the_found_size_has_the_power_and_the_one_before_has_not(p_win, share, method, power):
    p_loss = p_win * share
    n = required_tasks(p_win, p_loss, power, method=method)
    assert type(n) is int
    assert paired_power(p_win, p_loss, n, method=method) >= power
    assert paired_power(p_win, p_loss, n - 1, method=method) < power


def test_a_power_below_the_size_of_the_test_costs_no_formula_error():
    assert required_tasks(0.3, 0.1, power=0.001, method="normal") == 1
    assert required_tasks(0.3, 0.1, power=0.001) >= 6 - 3


def test_no_number_of_tasks_shows_a_difference_of_nothing():
    for method in ("exact", "normal"):
        with pytest.raises(ValueError, match=r"^p_win must differ from p_loss"):
            required_tasks(0.1, 0.1, method=method)


def test_more_tasks_than_any_audit_has_are_refused_quickly():
    for method in ("exact", "mid_p", "normal"):
        with pytest.raises(ValueError, match=rf"needs more than {MAX_TASKS} tasks$"):
            required_tasks(0.1001, 0.1, method=method)
        with pytest.raises(ValueError, match=rf"needs more than {MAX_TASKS} tasks$"):
            required_tasks(1e-300, 0.0, method=method)
        with pytest.raises(ValueError, match=rf"needs more than {MAX_TASKS} tasks$"):
            required_tasks(0.2, 0.1, method=method, step=10 * MAX_TASKS)


def test_bad_grids_and_methods_are_refused():
    with pytest.raises(ValueError, match=r"^step must be a whole number of at least 1"):
        required_tasks(0.2, 0.1, step=0)
    with pytest.raises(ValueError, match=r"^method must be one of exact, mid_p, normal"):
        required_tasks(0.2, 0.1, method="score")


@pytest.mark.parametrize("method", ["exact", "mid_p"])
@pytest.mark.parametrize("fixed", [{"discordance": 0.16}, {"p_loss": 0.04}, {"p_loss": 0.0}])
def test_the_least_detectable_uplift_has_the_power_and_a_little_less_has_not(fixed, method):
    uplift = minimum_detectable_uplift(220, method=method, **fixed)

    def power(u):
        lost = fixed["p_loss"] if "p_loss" in fixed else (fixed["discordance"] - u) / 2
        return paired_power(lost + u, lost, 220, method=method)

    assert power(uplift) >= 0.8 - 1e-9
    assert power(uplift - 1e-5) < 0.8


def test_two_hundred_and_twenty_tasks_detect_about_eight_points():
    assert minimum_detectable_uplift(220, discordance=0.16) == pytest.approx(0.078, abs=0.001)


def test_sample_size_and_detectable_uplift_are_inverse_to_each_other():
    n = required_tasks(0.12, 0.04)
    assert minimum_detectable_uplift(n, p_loss=0.04) <= 0.08 < minimum_detectable_uplift(n - 3, p_loss=0.04)


def test_more_tasks_detect_less():
    found = [minimum_detectable_uplift(n, discordance=0.16) for n in (100, 200, 400, 800)]
    assert found == sorted(found, reverse=True)


def test_what_cannot_be_detected_is_unknown_not_0():
    assert minimum_detectable_uplift(0, discordance=0.2) is None
    assert minimum_detectable_uplift(20, discordance=0.1) is None
    assert minimum_detectable_uplift(500, discordance=0.0) is None
    assert minimum_detectable_uplift(500, p_loss=0.5) is None
    assert minimum_detectable_uplift(500, p_loss=0.7) is None


def test_exactly_one_of_discordance_and_p_loss_is_held_fixed():
    for fixed in ({}, {"discordance": 0.2, "p_loss": 0.1}):
        with pytest.raises(ValueError, match=r"^discordance or p_loss must be given, and not both$"):
            minimum_detectable_uplift(100, **fixed)
    with pytest.raises(ValueError, match=r"^discordance must lie between 0 and 1"):
        minimum_detectable_uplift(100, discordance=1.2)
    with pytest.raises(ValueError, match=r"^p_loss must be a finite number"):
        minimum_detectable_uplift(100, p_loss=math.nan)
