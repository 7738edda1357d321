"""Benchmark: the oracle of all 6,884 sets of up to 5 of 16 arms over 1,055 tasks, against a plain numpy loop.

Both ways are timed in the same run on the same matrix, best of several repeats, and have to agree on every oracle. The
matrix is the public LiveCodeBench one where ``../shared/datasets`` is there, else a generated one of the same size.

    python bench/subsets.py [--repeats N]
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pytest_fusion_audit.analysis.matrix import PassMatrix
from pytest_fusion_audit.evidence.importers import import_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

PUBLIC = Path(__file__).resolve().parents[2] / "shared/datasets/passmatrix/passmatrix-livecodebench-v6-2025-04.json"
TASKS, ARMS, LARGEST = 1055, 16, 5
SETS = 6884
BUDGET_S = 2.0  # what issue 2 allows for ours


def verdicts() -> tuple[str, tuple[str, ...], NDArray[np.bool_]]:
    """Return where the matrix is from, the names of its arms, and tasks x arms."""
    if PUBLIC.exists():
        evidence = import_run(PUBLIC)
        ((suite, split),) = evidence.splits
        members = evidence.members(suite, split)
        rows = {member: evidence.arm(suite, split, f"member:{member}") for member in members}
        tasks = sorted(rows[members[0]])
        cells = [[rows[member][task].passed for member in members] for task in tasks]
        return f"public matrix: {suite}", members, np.array(cells, dtype=np.bool_)
    generator = np.random.default_rng(20260701)
    difficulty, skill = generator.normal(size=(TASKS, 1)), generator.normal(0.5, 0.7, size=(1, ARMS))
    passed = skill - difficulty + generator.logistic(scale=0.6, size=(TASKS, ARMS)) > 0
    return "generated matrix", tuple(f"m{number}" for number in range(ARMS)), passed


def bit_packed(arms: tuple[str, ...], passed: NDArray[np.bool_]) -> list[float | None]:
    """Return the oracles as the product computes them, building the matrix included."""
    matrix = PassMatrix([str(task) for task in range(len(passed))], arms, passed)
    return [oracle for _, oracle in matrix.subsets(LARGEST)]


def plain_loop(arms: tuple[str, ...], passed: NDArray[np.bool_]) -> list[float | None]:
    """Return the oracles as one writes them at first: one any() per set."""
    return [
        float(passed[:, columns].any(axis=1).mean())
        for size in range(1, LARGEST + 1)
        for columns in combinations(range(len(arms)), size)
    ]


def best_time(work: Callable[[], object], repeats: int) -> float:
    """Return the shortest of several timings in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def main(arguments: list[str] | None = None) -> int:
    """Print both times and their ratio; the exit status is 1 when they disagree or ours is over its budget."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5, help="timings to take the best of (default 5)")
    repeats = parser.parse_args(arguments).repeats
    source, arms, passed = verdicts()
    ours, plain = bit_packed(arms, passed), plain_loop(arms, passed)
    agree = len(ours) == len(plain) == SETS and np.allclose(
        np.array(ours, dtype=float), np.array(plain, dtype=float), rtol=0, atol=1e-12
    )
    ours_s = best_time(lambda: bit_packed(arms, passed), repeats)
    plain_s = best_time(lambda: plain_loop(arms, passed), repeats)
    print(f"subsets  {source}, {len(passed)} tasks x {len(arms)} arms, {len(ours)} sets of up to {LARGEST}")
    print(f"subsets  ours {ours_s * 1e3:.1f} ms, plain numpy any() loop {plain_s * 1e3:.1f} ms", end=", ")
    print(f"ratio {plain_s / ours_s:.1f}x (numpy {np.__version__}, Python {platform.python_version()})")
    print(f"subsets  {'same oracles' if agree else 'THE ORACLES DIFFER'}, budget {BUDGET_S:.0f} s")
    return 0 if agree and ours_s < BUDGET_S else 1


if __name__ == "__main__":
    sys.exit(main())
