"""Graded scores: seeds are averaged within tasks, signs are flipped across them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import permutation_test

from pytest_fusion_audit.stats import GradedPairedTest, average_seeds, graded_paired_test


def test_agrees_with_scipy_where_scipy_lists_every_permutation():
    differences = [0.25, -0.5, 0.75, 0.0, 0.1, 0.3, 0.3, -0.05]
    other = permutation_test(
        (differences,), lambda x, axis: np.mean(x, axis=axis), permutation_type="samples", vectorized=True
    )
    test = graded_paired_test(differences)
    assert test.method == "exact"
    assert test.p == pytest.approx(other.pvalue, abs=1e-12)
    assert test.mean == pytest.approx(np.mean(differences))


def test_seeds_are_no_new_tasks():
    # Five tasks run with four seeds: twenty rows would be "significant", five task means cannot be.
    ours = [(task, 0.9 + 0.01 * seed) for task in "abcde" for seed in range(4)]
    theirs = [(task, 0.5) for task in "abcde" for _ in range(4)]
    mine, other = average_seeds(ours), average_seeds(theirs)
    test = graded_paired_test([mine[task] - other[task] for task in mine])
    assert test.n == 5
    assert test.p == 0.0625
    assert test.decision() == "not shown"
    assert graded_paired_test([a[1] - b[1] for a, b in zip(ours, theirs, strict=True)]).p < 0.001


def test_a_replicate_without_score_is_not_a_0():
    assert average_seeds([("a", 1.0), ("a", None), ("b", None)]) == {"a": 1.0, "b": None}
    assert average_seeds([]) == {}
    with pytest.raises(ValueError, match=r"^score of task 'a' must be a finite number"):
        average_seeds([("a", math.nan)])


def test_clusters_flip_together():
    differences = [0.5] * 12
    assert graded_paired_test(differences).decision() == "shown"
    test = graded_paired_test(differences, clusters="aaaabbbbcccc")
    assert (test.n, test.p) == (12, 0.25)


def test_many_tasks_are_drawn_with_a_seed():
    differences = [math.sin(i) + 0.3 for i in range(40)]
    test = graded_paired_test(differences, draws=5000, seed=5)
    assert test.method == "drawn"
    assert test == graded_paired_test(differences, draws=5000, seed=5)


def test_nothing_compared_nothing_known():
    assert graded_paired_test([]) == GradedPairedTest(0, None, None, None)
    assert graded_paired_test([]).decision() is None
    assert graded_paired_test([0.0, 0.0]) == GradedPairedTest(2, 0.0, 1.0, "exact")
