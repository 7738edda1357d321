from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from pytest_fusion_audit.analysis import coverage


def plain(passed: np.ndarray, size: int) -> list[int]:
    return [int(passed[:, list(columns)].any(axis=1).sum()) for columns in combinations(range(passed.shape[1]), size)]


@pytest.mark.parametrize("tasks", [1, 7, 8, 9, 63, 64, 65, 200])
def test_word_edges_count_every_task_once(tasks):
    passed = np.random.default_rng(tasks).random((tasks, 7)) < 0.3
    for size in range(1, 8):
        assert list(coverage.subset_solves(passed, size)) == plain(passed, size)


def test_sets_are_counted_in_chunks_of_the_same_order(monkeypatch):
    passed = np.random.default_rng(1).random((50, 9)) < 0.2
    monkeypatch.setattr(coverage, "_SETS_AT_A_TIME", 5)
    assert list(coverage.subset_solves(passed, 3)) == plain(passed, 3)


def test_an_older_numpy_counts_bits_by_table(monkeypatch):
    passed = np.random.default_rng(2).random((50, 5)) < 0.4
    monkeypatch.delattr(np, "bitwise_count", raising=False)
    assert list(coverage.subset_solves(passed, 2)) == plain(passed, 2)


def test_no_task_and_no_arm():
    assert list(coverage.subset_solves(np.zeros((0, 3), dtype=bool), 2)) == [0, 0, 0]
    assert list(coverage.subset_solves(np.zeros((3, 2), dtype=bool), 0)) == [0]
    assert list(coverage.subset_solves(np.zeros((3, 2), dtype=bool), 3)) == []


def test_shapley_shares_each_solved_task_among_its_solvers():
    passed = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)
    assert coverage.shapley_solves(passed) == [1.5, 0.5, 0.0]
