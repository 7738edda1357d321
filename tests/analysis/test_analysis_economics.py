# ruff: noqa: FBT003 - a verdict reads best in its place
from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.analysis.economics import (
    COST_UNKNOWN,
    EXTRA_SOLVE_METHOD,
    FEWER_SOLVES,
    NOT_MORE_SOLVES,
    NOTHING_COMPARED,
    cost_per_extra_solve,
    overhead,
    ratio_interval,
)
from tests.analysis.analysis_records import evidence, outcome, ref

unhurried = settings(deadline=None, max_examples=60)


def arms(first: str, second: str, cost=(300_000, 100_000), latency=(None, None)):
    rows = []
    for arm, marks, micro, seconds in zip(("compound", "member:a"), (first, second), cost, latency, strict=True):
        rows += [
            outcome(f"t{number}", arm, mark == "+", cost_micro_usd=micro, latency_s=seconds)
            for number, mark in enumerate(marks)
        ]
    return evidence(rows)


MEMBER = ref("member:a")


def test_an_extra_solve_by_hand():
    found = cost_per_extra_solve(arms("+" * 12 + "-" * 8, "+" * 4 + "-" * 16), ref(), MEMBER)
    assert (found.n, found.extra_usd, found.extra_solves, found.usd_per_solve) == (20, 4.0, 8.0, 0.5)
    # every task costs the same more, so the interval is that of the difference in solves turned over
    rates = [0.2 / x for x in (0.4 + z * math.sqrt(0.4 * 0.6 / 19) for z in (1.959964, -1.959964))]
    assert (found.low, found.high) == (pytest.approx(rates[0], abs=1e-6), pytest.approx(rates[1], abs=1e-6))
    assert (found.method, found.reason) == (EXTRA_SOLVE_METHOD, None)


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("+++--", "---++", NOT_MORE_SOLVES),
        ("+++++--", "-------", None),
        ("++++---", "-------", None),
        ("+++----", "-------", NOT_MORE_SOLVES),
        ("-------", "++++++-", FEWER_SOLVES),
        ("++", "++", NOT_MORE_SOLVES),
        ("", "", NOTHING_COMPARED),
    ],
)
def test_the_figure_is_withheld_with_a_reason(first, second, reason):
    found = cost_per_extra_solve(arms(first, second), ref(), MEMBER)
    assert found.reason == reason
    assert (found.usd_per_solve is None) == (found.low is None) == (found.high is None) == (reason is not None)


def test_one_unknown_cost_withholds_the_figure():
    run = evidence(
        [outcome(f"t{n}", "compound", True, cost_micro_usd=None if n == 3 else 10) for n in range(9)],
        [outcome(f"t{n}", "member:a", False, cost_micro_usd=5) for n in range(9)],
    )
    found = cost_per_extra_solve(run, ref(), MEMBER)
    assert (found.reason, found.extra_usd, found.extra_solves, found.usd_per_solve) == (COST_UNKNOWN, None, 9.0, None)
    some = cost_per_extra_solve(run, ref(), MEMBER, tasks=frozenset(f"t{n}" for n in range(4, 9)))
    assert (some.n, some.extra_usd) == (5, 0.000025)


def test_a_cheaper_arm_that_solves_more_has_a_negative_price():
    found = cost_per_extra_solve(arms("+" * 9 + "-", "-" * 10, cost=(100_000, 300_000)), ref(), MEMBER)
    assert found.usd_per_solve == pytest.approx(-2 / 9)
    assert found.low < found.usd_per_solve < found.high < 0


def test_seeds_are_averaged_within_a_task():
    run = evidence(
        [
            outcome(f"t{n}", "compound", n + seed < 9, replicate=seed, cost_micro_usd=20 + 2 * seed)
            for n in range(10) for seed in (0, 1)
        ],
        [outcome(f"t{n}", "member:a", False, cost_micro_usd=1) for n in range(10)],
    )  # fmt: skip
    found = cost_per_extra_solve(run, ref(), MEMBER)
    assert (found.extra_solves, found.extra_usd) == (8.5, pytest.approx(0.0002))
    assert found.usd_per_solve == pytest.approx(0.0002 / 8.5)


def test_solves_in_part_are_judged_by_fieller_alone():
    """Eleven tasks passed in one seed of two and one in none: no whole win, and yet certainly more solves."""
    run = evidence(
        [
            outcome(f"t{n}", "compound", seed == 0 and n < 11, replicate=seed, cost_micro_usd=3)
            for n in range(12) for seed in (0, 1)
        ],
        [outcome(f"t{n}", "member:a", False, cost_micro_usd=1) for n in range(12)],
    )  # fmt: skip
    found = cost_per_extra_solve(run, ref(), MEMBER)
    assert (found.reason, found.usd_per_solve) == (None, pytest.approx(0.000024 / 5.5))


def test_fieller_holds_every_ratio_that_a_z_test_does_not_reject():
    tops, bottoms = [3.0, 2.0, 6.0, 1.0, 3.0], [1.0, 0.5, 1.5, 1.0, 1.0]
    low, high = ratio_interval(tops, bottoms)

    def z(ratio: float) -> float:
        rest = np.array(tops) - ratio * np.array(bottoms)
        return abs(rest.mean()) / (rest.std(ddof=1) / math.sqrt(len(rest)))

    assert z(low) == pytest.approx(1.959964, abs=1e-5)
    assert z(high) == pytest.approx(1.959964, abs=1e-5)
    assert low < sum(tops) / sum(bottoms) < high


def test_fieller_knows_no_finite_interval_near_zero():
    assert ratio_interval([1.0, 1.0], [1.0, -1.0]) is None
    assert ratio_interval([1.0], [1.0]) is None
    assert ratio_interval([1.0, 1.0], [0.0, 0.0]) is None
    assert ratio_interval([1.0, 1.0], [2.0, 2.0]) == (0.5, 0.5)


@unhurried
@given(st.lists(st.tuples(st.floats(-5, 5), st.sampled_from([-1.0, 0.0, 1.0])), min_size=2, max_size=30))
def test_fieller_holds_the_estimate_and_widens_with_the_level(rows):
    tops, bottoms = [a for a, _ in rows], [b for _, b in rows]
    wide, narrow = ratio_interval(tops, bottoms), ratio_interval(tops, bottoms, level=0.8)
    if wide is not None:
        ratio = sum(tops) / sum(bottoms)
        assert narrow is not None
        assert wide.low - 1e-9 <= narrow.low <= ratio + 1e-9
        assert ratio - 1e-9 <= narrow.high <= wide.high + 1e-9


def test_overhead_by_hand():
    found = overhead(arms("++--", "+---", latency=(10.0, 4.0)), ref(), MEMBER)
    assert (found.n, found.cost_per_task_ratio, found.cost_per_solve_ratio) == (4, 3.0, 1.5)
    assert (found.latency_p50_ratio, found.latency_p95_ratio, found.latency_added_p95_ratio) == (2.5, 2.5, 1.5)
    assert found.latency_n == 4


def test_overhead_is_over_shared_tasks():
    run = evidence(
        outcome("t0", "compound", True, cost_micro_usd=10, latency_s=2.0),
        outcome("t1", "compound", True, cost_micro_usd=990, latency_s=99.0),
        outcome("t0", "member:a", True, cost_micro_usd=5, latency_s=1.0),
    )
    found = overhead(run, ref(), MEMBER)
    assert (found.n, found.cost_per_task_ratio, found.latency_p95_ratio) == (1, 2.0, 2.0)


def test_added_latency_is_taken_task_by_task():
    run = evidence(
        [outcome(f"t{n}", "compound", True, latency_s=s) for n, s in enumerate([9.0, 5.0])],
        [outcome(f"t{n}", "member:a", True, latency_s=s) for n, s in enumerate([1.0, 4.0])],
    )
    found = overhead(run, ref(), MEMBER)
    assert found.latency_added_p95_ratio == pytest.approx((1 + 7 * 0.95) / (1 + 3 * 0.95))
    assert found.latency_p95_ratio == pytest.approx((5 + 4 * 0.95) / (1 + 3 * 0.95))


def test_latency_of_seeds_is_averaged():
    run = evidence(
        outcome("t0", "compound", True, latency_s=4.0), outcome("t0", "compound", True, replicate=1, latency_s=8.0),
        outcome("t0", "member:a", True, latency_s=2.0),
    )  # fmt: skip
    assert overhead(run, ref(), MEMBER).latency_p50_ratio == 3.0


def test_overhead_of_the_unknown_is_unknown():
    nothing = overhead(arms("++", "--", cost=(None, 5)), ref(), MEMBER)
    assert (nothing.cost_per_task_ratio, nothing.cost_per_solve_ratio, nothing.latency_p95_ratio) == (None, None, None)
    unsolved = overhead(arms("++", "--"), ref(), MEMBER)
    assert (unsolved.cost_per_task_ratio, unsolved.cost_per_solve_ratio) == (3.0, None)
    free = overhead(arms("++", "++", cost=(5, 0), latency=(1.0, 0.0)), ref(), MEMBER)
    assert (free.cost_per_task_ratio, free.latency_p95_ratio) == (None, None)
