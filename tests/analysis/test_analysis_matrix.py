from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.analysis.matrix import Paired, PassMatrix, panel_of
from tests.analysis.analysis_records import SPLIT, SUITE, evidence, outcomes, primaries

unhurried = settings(deadline=None, max_examples=60)

# Four tasks, three arms. a solves t1 t2, b solves t2 t3, c solves t2; nobody solves t4.
SMALL = PassMatrix(
    ["t1", "t2", "t3", "t4"],
    ["a", "b", "c"],
    [[True, False, False], [True, True, True], [False, True, False], [False, False, False]],
)


def builtin(value: object) -> bool:
    return type(value) in {int, float, str, bool, type(None)}


def test_the_small_matrix_by_hand():
    assert SMALL.n == 4
    assert SMALL.oracle() == 0.75
    assert SMALL.pass_rates() == {"a": 0.5, "b": 0.5, "c": 0.25}
    assert SMALL.best_single() == ("a", 0.5)
    assert SMALL.headroom() == 0.25
    assert SMALL.random_pick() == pytest.approx(5 / 12)
    assert SMALL.decision_tasks() == ("t1", "t3")
    assert SMALL.both_pass == 1
    assert SMALL.both_fail == 1
    assert SMALL.win_rates() == {"a": 0.5, "b": 0.5, "c": 0.0}
    assert SMALL.leave_one_out() == {"a": 0.25, "b": 0.25, "c": 0.0}
    assert SMALL.shapley() == pytest.approx({"a": (1 + 1 / 3) / 4, "b": (1 + 1 / 3) / 4, "c": (1 / 3) / 4})
    assert SMALL.solvers() == {"t1": 1, "t2": 3, "t3": 1, "t4": 0}
    assert SMALL.paired("a", "b") == Paired(wins=1, losses=1, both=1, neither=1, n=4)
    assert SMALL.paired("a", "c") == Paired(wins=1, losses=0, both=1, neither=2, n=4)


def test_failure_correlation_is_pearsons_r_of_failures():
    failures = {"a": [0, 0, 1, 1], "b": [1, 0, 0, 1], "c": [1, 0, 1, 1]}
    found = SMALL.failure_correlation()
    assert list(found) == [("a", "b"), ("a", "c"), ("b", "c")]
    for (first, second), r in found.items():
        assert r == pytest.approx(np.corrcoef(failures[first], failures[second])[0, 1])


def test_failure_correlation_of_a_constant_side_does_not_exist():
    matrix = PassMatrix(["t1", "t2"], ["a", "b"], [[True, True], [True, False]])
    assert matrix.failure_correlation() == {("a", "b"): None}


def test_failure_correlation_joins_the_tasks_both_answered():
    matrix = PassMatrix.from_rows(
        {
            "a": {"t1": True, "t2": False, "t3": True, "t9": True},
            "b": {"t3": True, "t2": False, "t1": False},
            "c": {"t9": True},
        }
    )
    assert matrix.n == 0
    assert matrix.failure_correlation()["a", "b"] == pytest.approx(0.5)
    assert matrix.failure_correlation()["a", "c"] is None


def test_subsets_come_by_size_in_panel_order_with_their_oracles():
    assert list(SMALL.subsets()) == [
        (("a",), 0.5),
        (("b",), 0.5),
        (("c",), 0.25),
        (("a", "b"), 0.75),
        (("a", "c"), 0.5),
        (("b", "c"), 0.5),
        (("a", "b", "c"), 0.75),
    ]
    assert list(SMALL.subsets(1, 0)) == [((), 0.0), (("a",), 0.5), (("b",), 0.5), (("c",), 0.25)]


def test_unknown_cells_leave_the_complete_cases_for_every_arm():
    matrix = PassMatrix(["t1", "t2", "t3"], ["a", "b"], [[True, None], [False, True], [None, None]])
    assert matrix.n == 1
    assert matrix.complete_tasks == ("t2",)
    assert matrix.pass_rates() == {"a": 0.0, "b": 1.0}
    assert matrix.best_single() == ("b", 1.0)
    assert matrix.paired("a", "b").n == 1


@pytest.mark.parametrize(
    "matrix",
    [
        PassMatrix([], [], []),
        PassMatrix([], ["a"], []),
        PassMatrix(["t1"], [], [[]]),
        PassMatrix(["t1"], ["a", "b"], [[None, True]]),
    ],
)
def test_without_complete_cases_rates_are_unknown_and_nothing_raises(matrix):
    assert matrix.n == 0
    assert matrix.oracle() is None
    assert matrix.best_single() is None
    assert matrix.headroom() is None
    assert matrix.random_pick() is None
    assert matrix.decision_tasks() == ()
    assert (matrix.both_pass, matrix.both_fail) == (0, 0)
    for figures in (matrix.pass_rates(), matrix.win_rates(), matrix.leave_one_out(), matrix.shapley()):
        assert set(figures.values()) <= {None}
    assert {rate for _, rate in matrix.subsets()} <= {None}
    assert set(matrix.failure_correlation().values()) <= {None}


def test_a_single_member_has_no_headroom_and_no_pairs():
    matrix = PassMatrix(["t1", "t2"], ["solo"], [[True], [False]])
    assert matrix.headroom() == 0.0
    assert matrix.failure_correlation() == {}
    assert matrix.leave_one_out() == {"solo": 0.5}
    assert matrix.win_rates() == {"solo": None}


def test_ties_of_the_best_single_go_to_panel_order():
    assert PassMatrix(["t1", "t2"], ["z", "a"], [[True, False], [False, True]]).best_single() == ("z", 0.5)


@pytest.mark.parametrize(
    ("tasks", "arms", "cells", "message"),
    [
        (["s", "t", "t"], ["a"], [[True]] * 3, "task 't' is named twice"),
        (["t"], ["a", "a"], [[True, True]], "arm 'a' is named twice"),
        (["t"], ["a"], [["yes"]], r"cell \(0, 0\) must be True, False or None, not 'yes'"),
        (["t"], ["a"], [[float("nan")]], "must be True, False or None"),
        (["t"], ["a"], [[2]], "must be True, False or None"),
        (["t"], ["a", "b"], [[True]], "one cell for each of the 2 arms"),
        (["t", "u"], ["a"], [[True]], r"tasks x arms, \(2, 1\), not \(1, 1\)"),
        (["t"], ["a", "b"], np.array([[True]]), r"tasks x arms, \(1, 2\), not \(1, 1\)"),
    ],
)
def test_what_is_no_matrix_is_refused_by_name(tasks, arms, cells, message):
    with pytest.raises(ValueError, match=message):
        PassMatrix(tasks, arms, cells)


def test_an_array_of_flags_is_copied():
    cells = np.array([[True, False]])
    matrix = PassMatrix(["t"], ["a", "b"], cells)
    cells[:] = False
    assert matrix.oracle() == 1.0


def test_numbers_0_and_1_are_read_as_flags():
    assert PassMatrix(["t"], ["a", "b"], [[0, np.int64(1)]]).pass_rates() == {"a": 0.0, "b": 1.0}


def test_an_unknown_arm_is_a_key_error():
    with pytest.raises(KeyError):
        SMALL.paired("a", "nobody")


def test_repr_says_how_large_it_is():
    assert repr(SMALL) == "PassMatrix(4 tasks x 3 arms, 4 complete)"


def test_the_panel_is_the_incumbent_members_in_panel_order():
    run = evidence(
        primaries("opus", "+"), primaries("gpt", "-"), primaries("gpt", "+", config="16384"), outcomes("compound", "+")
    )
    assert panel_of(run, SUITE, SPLIT) == ("opus", "gpt")
    assert PassMatrix.from_evidence(run, SUITE, SPLIT).pass_rates() == {"opus": 1.0, "gpt": 0.0}
    chosen = PassMatrix.from_evidence(run, SUITE, SPLIT, arms=["compound", "member:gpt@16384"])
    assert chosen.arms == ("compound", "member:gpt@16384")
    assert chosen.pass_rates() == {"compound": 1.0, "member:gpt@16384": 1.0}


def test_without_an_incumbent_every_configuration_is_an_arm():
    run = evidence(primaries("gpt", "-", config="4096"), primaries("gpt", "+", config="16384"))
    assert panel_of(run, SUITE, SPLIT) == ("gpt@4096", "gpt@16384")


def test_rows_that_were_not_scored_are_unknown_in_the_matrix():
    run = evidence(primaries("a", "+-?"), primaries("b", "++-"))
    matrix = PassMatrix.from_evidence(run, SUITE, SPLIT)
    assert matrix.tasks == ("t0", "t1", "t2")
    assert matrix.n == 2


@st.composite
def matrices(draw, cells=None):
    tasks, arms = draw(st.integers(0, 40)), draw(st.integers(1, 6))
    cell = cells if cells is not None else st.booleans()
    rows = draw(st.lists(st.lists(cell, min_size=arms, max_size=arms), min_size=tasks, max_size=tasks))
    return PassMatrix([f"t{i}" for i in range(tasks)], [f"m{i}" for i in range(arms)], rows)


WITH_GAPS = matrices(st.sampled_from([True, False, None]))


@unhurried
@given(WITH_GAPS)
def test_the_oracle_is_at_least_any_single_and_at_most_their_sum(matrix):
    if matrix.n == 0:
        assert matrix.oracle() is None
        return
    rates = list(matrix.pass_rates().values())
    assert max(rates) <= matrix.oracle() <= min(1.0, sum(rates) + 1e-12)
    assert min(rates) - 1e-12 <= matrix.random_pick() <= max(rates) + 1e-12
    assert matrix.headroom() >= 0


@unhurried
@given(WITH_GAPS)
def test_marginals_are_not_negative_and_do_not_exceed_the_oracle(matrix):
    if matrix.n == 0:
        return
    marginal, shapley = matrix.leave_one_out(), matrix.shapley()
    assert all(value >= 0 for value in marginal.values())
    assert sum(marginal.values()) <= matrix.oracle() + 1e-12
    assert sum(shapley.values()) == pytest.approx(matrix.oracle())
    for arm in matrix.arms:  # between what it adds last and what it adds first
        assert marginal[arm] - 1e-12 <= shapley[arm] <= matrix.pass_rates()[arm] + 1e-12


@unhurried
@given(WITH_GAPS)
def test_leave_one_out_is_the_oracle_less_the_oracle_of_the_others(matrix):
    if matrix.n == 0:
        return
    oracles = dict(matrix.subsets(min_size=0))
    for arm, value in matrix.leave_one_out().items():
        others = tuple(name for name in matrix.arms if name != arm)
        assert value == pytest.approx(oracles[matrix.arms] - oracles[others])


@unhurried
@given(matrices())
def test_subsets_are_monotone_complete_and_as_a_plain_any_says(matrix):
    found = dict(matrix.subsets(min_size=0))
    assert len(found) == 2 ** len(matrix.arms)
    if matrix.n == 0:
        return
    place = {arm: number for number, arm in enumerate(matrix.arms)}
    rows = matrix._passed
    for names, rate in found.items():
        assert rate == rows[:, [place[name] for name in names]].any(axis=1).mean()
        for name in set(matrix.arms) - set(names):
            larger = tuple(arm for arm in matrix.arms if arm in {*names, name})
            assert found[larger] >= rate


@unhurried
@given(matrices())
def test_shapley_is_the_mean_marginal_over_all_orders(matrix):
    if matrix.n == 0 or len(matrix.arms) > 5:
        return
    oracles = dict(matrix.subsets(min_size=0))
    arms = matrix.arms
    for arm in arms:
        others = [name for name in arms if name != arm]
        value = 0.0
        for size in range(len(others) + 1):
            weight = math.factorial(size) * math.factorial(len(others) - size) / math.factorial(len(arms))
            for chosen in combinations(others, size):
                joined = tuple(name for name in arms if name in {*chosen, arm})
                value += weight * (oracles[joined] - oracles[chosen])
        assert matrix.shapley()[arm] == pytest.approx(value)


@unhurried
@given(WITH_GAPS)
def test_paired_is_symmetric_and_adds_up(matrix):
    for first, second in combinations(matrix.arms, 2):
        there, back = matrix.paired(first, second), matrix.paired(second, first)
        assert (there.wins, there.losses, there.both, there.neither) == (
            back.losses,
            back.wins,
            back.both,
            back.neither,
        )
        assert there.wins + there.losses + there.both + there.neither == there.n
        r = matrix.failure_correlation()[first, second]
        assert r is None or -1 - 1e-12 <= r <= 1 + 1e-12


@unhurried
@given(WITH_GAPS)
def test_no_scalar_of_numpy_leaks(matrix):
    values = [matrix.n, matrix.oracle(), matrix.headroom(), matrix.random_pick(), matrix.both_pass, matrix.both_fail]
    values += list(matrix.best_single() or ())
    for figures in (
        matrix.pass_rates(), matrix.win_rates(), matrix.leave_one_out(), matrix.shapley(),
        matrix.failure_correlation(), matrix.solvers(), dict(matrix.subsets()),
    ):  # fmt: skip
        values += list(figures.values())
    for first, second in combinations(matrix.arms, 2):
        values += list(matrix.paired(first, second))
    assert all(builtin(value) for value in values)
