"""The Ladder reports only what beats the best by a step, rounded to the step."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.stats import ladder_losses, ladder_step

unhurried = settings(deadline=None, max_examples=50)
losses = st.lists(st.floats(0, 1), max_size=30)
steps = st.floats(0.001, 0.5)


def test_the_reference_row():
    row = [0.412, 0.405, 0.389, 0.380, 0.395, 0.351]
    assert ladder_losses(row, 0.02) == [0.42, 0.42, 0.38, 0.38, 0.38, 0.36]


def test_an_improvement_of_exactly_one_step_is_not_enough():
    assert ladder_losses([0.40, 0.38], 0.02) == [0.40, 0.40]
    assert ladder_losses([0.3, 0.2], 0.1) == [0.3, 0.3]


def test_no_looks_no_reports():
    assert ladder_losses([], 0.02) == []


def test_one_look_at_a_time_gives_the_same_row():
    best = None
    reported = []
    for loss in (0.412, 0.405, 0.389, 0.351):
        best = ladder_step(best, loss, 0.02)
        reported.append(best)
    assert reported == ladder_losses([0.412, 0.405, 0.389, 0.351], 0.02)


@given(losses, steps)
@unhurried
def test_what_is_reported_lies_on_the_grid_and_near_a_measured_loss(row, step):
    for loss in ladder_losses(row, step):
        assert loss / step == pytest.approx(round(loss / step), abs=1e-6)
        assert any(abs(loss - measured) <= step / 2 + 1e-9 for measured in row)


@given(losses, steps)
@unhurried
def test_a_report_never_rises(row, step):
    reported = ladder_losses(row, step)
    assert len(reported) == len(row)
    assert reported == sorted(reported, reverse=True)


def test_bad_steps_and_losses_are_refused():
    for step in (0.0, -0.1):
        with pytest.raises(ValueError, match=r"^step must be above 0"):
            ladder_losses([0.4], step)
    with pytest.raises(ValueError, match=r"^losses\[1\] must be a finite number"):
        ladder_losses([0.4, math.nan], 0.02)
    with pytest.raises(ValueError, match=r"^best must be a finite number"):
        ladder_step(math.inf, 0.4, 0.02)
