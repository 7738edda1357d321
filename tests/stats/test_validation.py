"""Bad input is refused with one line that names the argument; numpy's integers are welcome."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_fusion_audit import stats
from pytest_fusion_audit.stats.validation import choice, probability, real_number, truth, whole_number

NO_COUNTS = [-1, 1.0, 0.5, float("nan"), float("inf"), True, False, None, "3", np.float64(2.0), np.True_, [1]]
NO_SHARES = [0.0, 1.0, -0.1, 1.5, 95, float("nan"), None, True, "0.95"]


@pytest.mark.parametrize("value", NO_COUNTS, ids=repr)
@pytest.mark.parametrize(
    ("name", "call"),
    [
        pytest.param("wins", lambda v: stats.paired_test(v, 1), id="test-wins"),
        pytest.param("losses", lambda v: stats.paired_test(1, v), id="test-losses"),
        pytest.param("losses", lambda v: stats.paired_interval(1, v, 10), id="interval-losses"),
        pytest.param("n", lambda v: stats.paired_interval(0, 0, v), id="interval-n"),
        pytest.param("k", lambda v: stats.wilson_interval(v, 10), id="rate-k"),
        pytest.param("n", lambda v: stats.wilson_interval(0, v), id="rate-n"),
        pytest.param("n", lambda v: stats.paired_power(0.1, 0.2, v), id="power-n"),
        pytest.param("wins", lambda v: stats.sequential_evidence(v, 0), id="evidence-wins"),
        pytest.param("losses", lambda v: stats.sequential_interval(2, v), id="evidence-losses"),
        pytest.param("n", lambda v: stats.effective_n(v, 2, 0.1), id="effective-n"),
    ],
)
def test_what_is_no_count_is_refused_by_name(name, call, value):
    with pytest.raises(ValueError, match=rf"^{name} must be a whole number") as refusal:
        call(value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("value", NO_SHARES, ids=repr)
@pytest.mark.parametrize(
    ("name", "call"),
    [
        pytest.param("level", lambda v: stats.paired_interval(1, 0, 10, level=v), id="interval-level"),
        pytest.param("level", lambda v: stats.wilson_interval(1, 10, level=v), id="rate-level"),
        pytest.param("level", lambda v: stats.paired_lower_bound(1, 0, 10, level=v), id="bound-level"),
        pytest.param("level", lambda v: stats.sequential_interval(1, 0, level=v), id="sequential-level"),
        pytest.param("level", lambda v: stats.paired_bootstrap_interval([1.0], level=v), id="bootstrap-level"),
        pytest.param("alpha", lambda v: stats.paired_test(1, 0).decision(v), id="decision-alpha"),
        pytest.param("alpha", lambda v: stats.loss_detected(1, 0, alpha=v), id="loss-alpha"),
        pytest.param("alpha", lambda v: stats.paired_power(0.1, 0.2, 10, alpha=v), id="power-alpha"),
        pytest.param("power", lambda v: stats.required_tasks(0.1, 0.2, power=v), id="tasks-power"),
    ],
)
def test_levels_and_sizes_lie_strictly_between_0_and_1(name, call, value):
    with pytest.raises(ValueError, match=rf"^{name} must"):
        call(value)


def test_more_discordant_tasks_than_tasks_are_refused():
    for call in (stats.paired_test, stats.paired_interval, stats.sequential_uplift_interval):
        with pytest.raises(ValueError, match=r"^wins \+ losses must not exceed n, but 3 \+ 2 > 4$"):
            call(3, 2, 4)


def test_numpy_integers_count_and_python_numbers_come_back():
    for kind in (np.int64, np.uint8, np.int32):
        assert stats.paired_test(kind(6), kind(0), kind(40)) == stats.paired_test(6, 0, 40)
        assert type(stats.paired_test(kind(6), kind(0)).exact_p) is float
        interval = stats.paired_interval(kind(6), kind(1), kind(40))
        assert interval == stats.paired_interval(6, 1, 40)
        assert {type(bound) for bound in interval} == {float}
        assert {type(bound) for bound in stats.wilson_interval(kind(1), kind(9))} == {float}
    assert type(whole_number("n", np.int64(3))) is int


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), None, "1", True, np.True_, [1.0], 10**400], ids=lambda v: repr(v)[:9]
)
def test_what_is_no_finite_number_is_refused(value):
    with pytest.raises(ValueError, match=r"^score must be a finite number, not"):
        real_number("score", value)


def test_real_numbers_of_every_kind_are_taken():
    assert [real_number("x", v) for v in (1, 0.5, np.float32(0.5), np.int64(2))] == [1.0, 0.5, 0.5, 2.0]


def test_probabilities_include_their_ends():
    assert probability("p", 0) == 0.0
    assert probability("p", 1) == 1.0
    with pytest.raises(ValueError, match=r"^p must lie between 0 and 1, not 1.1$"):
        probability("p", 1.1)


def test_flags_are_flags_or_0_and_1():
    assert [truth("right", v) for v in (True, False, 1, 0, np.True_, np.int8(0))] == [
        True,
        False,
        True,
        False,
        True,
        False,
    ]
    for value in (2, -1, 0.5, 1.0, None, "yes"):
        with pytest.raises(ValueError, match=r"^right must be true or false"):
            truth("right", value)


def test_an_unknown_word_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"^method must be one of tango, newcombe, not 'wald'$"):
        choice("method", "wald", ("tango", "newcombe"))
