"""Pass matrix: which arm passed which task, and everything that follows from it without knowing more.

A cell is passed, failed or unknown. Figures that compare arms with each other are taken over the complete cases, the
tasks on which every arm's verdict is known, so that no arm is flattered by the tasks it missed; figures of one pair
(`paired`, `failure_correlation`) are over the tasks that both arms of that pair answered.
"""

from __future__ import annotations

import math
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pytest_fusion_audit.analysis.coverage import shapley_solves, subset_solves
from pytest_fusion_audit.evidence.container import is_member, member_arm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from pytest_fusion_audit.evidence.container import Evidence


class Paired(NamedTuple):
    """Two arms over the tasks both answered; counts that add up to ``n``."""

    wins: int
    losses: int
    both: int
    neither: int
    n: int


class PassMatrix:
    """Verdicts of several arms over the same tasks.

    Args:
        tasks: task ids, one per row.
        arms: names, one per column, in panel order (it breaks ties).
        passed: tasks x arms of True, False or None (unknown); 0 and 1 are read as flags.

    Raises:
        ValueError: a task or an arm is named twice, the shape is another one, or a cell is none of the three.

    >>> matrix = PassMatrix(["t1", "t2", "t3"], ["gpt", "opus"], [[True, True], [False, True], [False, None]])
    >>> matrix.n, matrix.oracle(), matrix.best_single(), matrix.headroom()
    (2, 1.0, ('opus', 1.0), 0.0)
    """

    def __init__(self, tasks: Sequence[str], arms: Sequence[str], passed: Any) -> None:
        self.tasks = tuple(tasks)
        self.arms = tuple(arms)
        for what, names in (("task", self.tasks), ("arm", self.arms)):
            if len(set(names)) != len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise ValueError(f"{what} {twice!r} is named twice")
        self._passed, self._known = _cells(passed, len(self.tasks), len(self.arms))
        self._column = {arm: place for place, arm in enumerate(self.arms)}

    @classmethod
    def from_rows(cls, rows: Mapping[str, Mapping[str, bool | None]]) -> PassMatrix:
        """Build from arm -> task id -> verdict; tasks are joined by id and sorted, what is missing is unknown.

        >>> PassMatrix.from_rows({"a": {"t1": True}, "b": {"t1": False, "t2": True}}).n
        1
        """
        tasks = sorted({task for verdicts in rows.values() for task in verdicts})
        return cls(tasks, tuple(rows), [[verdicts.get(task) for verdicts in rows.values()] for task in tasks])

    @classmethod
    def from_evidence(
        cls, evidence: Evidence, suite: str, split: str, arms: Sequence[str] | None = None, replicate: int = 0
    ) -> PassMatrix:
        """Build from the recorded rows of one split; a row that was not scored is unknown.

        Args:
            evidence: the run.
            suite: name of the suite.
            split: name of the split.
            arms: full arm names (``compound``, ``member:gpt``), which name the columns; None takes the panel
                (`panel_of`) under bare names, over primary samples.
            replicate: which seed's rows.
        """
        if arms is None:
            columns = {member: member_arm(member) for member in panel_of(evidence, suite, split)}
        else:
            columns = {arm: arm for arm in arms}
        return cls.from_rows(
            {
                name: {task: row.passed for task, row in evidence.arm(suite, split, arm, replicate).items()}
                for name, arm in columns.items()
            }
        )

    @cached_property
    def _rows(self) -> list[int]:
        """Row numbers of the complete cases; a matrix without arms has none."""
        return [int(row) for row in np.flatnonzero(self._known.all(axis=1))] if self.arms else []

    @cached_property
    def _complete(self) -> NDArray[np.bool_]:
        """Verdicts of the complete cases, tasks x arms."""
        complete: NDArray[np.bool_] = self._passed[self._rows]
        return complete

    @cached_property
    def complete_tasks(self) -> tuple[str, ...]:
        """Ids of the tasks on which every arm's verdict is known."""
        return tuple(self.tasks[row] for row in self._rows)

    @property
    def n(self) -> int:
        """Complete cases: the denominator of every rate that compares arms."""
        return len(self.complete_tasks)

    def solvers(self) -> dict[str, int]:
        """Return how many arms solve each complete case, by task id."""
        return dict(zip(self.complete_tasks, self._complete.sum(axis=1).tolist(), strict=True))

    def _rate(self, count: float) -> float | None:
        return float(count) / self.n if self.n else None

    def oracle(self) -> float | None:
        """Return the share of complete cases that at least one arm passes; None without any."""
        return self._rate(int(self._complete.any(axis=1).sum()))

    def pass_rates(self) -> dict[str, float | None]:
        """Return each arm's pass rate over the complete cases."""
        passed = self._complete.sum(axis=0).tolist()
        return {arm: self._rate(count) for arm, count in zip(self.arms, passed, strict=True)}

    def best_single(self) -> tuple[str, float] | None:
        """Return the arm with the highest pass rate and that rate; ties go to panel order, None without cases."""
        rates = [(arm, rate) for arm, rate in self.pass_rates().items() if rate is not None]
        return max(rates, key=lambda item: item[1], default=None)

    def headroom(self) -> float | None:
        """Return the oracle minus the best single arm's pass rate; None without complete cases."""
        oracle, best = self.oracle(), self.best_single()
        return None if oracle is None or best is None else oracle - best[1]

    def random_pick(self) -> float | None:
        """Return the expected pass rate of an arm drawn anew for each task, every arm equally likely."""
        return self._rate(int(self._complete.sum()) / len(self.arms)) if self.arms else None

    @cached_property
    def _disagree(self) -> NDArray[np.bool_]:
        solvers: NDArray[np.int64] = self._complete.sum(axis=1)
        return (solvers > 0) & (solvers < len(self.arms))

    def decision_tasks(self) -> tuple[str, ...]:
        """Return the ids of the complete cases on which some arm passes and some arm fails."""
        return tuple(task for task, split in zip(self.complete_tasks, self._disagree.tolist(), strict=True) if split)

    def win_rates(self) -> dict[str, float | None]:
        """Return the share of decision tasks that each arm solves; None where the arms never disagree.

        With two arms the values add up to 1: who wins when it matters who answered.
        """
        disputed = int(self._disagree.sum())
        won = self._complete[self._disagree].sum(axis=0).tolist()
        return {arm: count / disputed if disputed else None for arm, count in zip(self.arms, won, strict=True)}

    @property
    def both_pass(self) -> int:
        """Complete cases that every arm passes."""
        return int(self._complete.all(axis=1).sum())

    @property
    def both_fail(self) -> int:
        """Complete cases that every arm fails."""
        return int((~self._complete.any(axis=1)).sum())

    def failure_correlation(self) -> dict[tuple[str, str], float | None]:
        """Return Pearson's r of failures (1 = failed) for each pair of arms, in panel order.

        Over the tasks both arms of the pair answered, joined by id. None where an arm always or never fails there:
        the correlation does not exist.
        """
        pairs: dict[tuple[str, str], float | None] = {}
        for place, first in enumerate(self.arms):
            for second in self.arms[place + 1 :]:
                wins, losses, both, neither, n = self.paired(first, second)
                spread = (both + wins) * (losses + neither) * (both + losses) * (wins + neither)
                # Pearson's r of two 0/1 variables from their fourfold table (the phi coefficient).
                pairs[first, second] = (both * neither - wins * losses) / math.sqrt(spread) if n and spread else None
        return pairs

    def leave_one_out(self) -> dict[str, float | None]:
        """Return what each arm adds to the oracle: the oracle minus the oracle without it."""
        solvers = self._complete.sum(axis=1)
        alone = self._complete[solvers == 1].sum(axis=0).tolist()
        return {arm: self._rate(count) for arm, count in zip(self.arms, alone, strict=True)}

    def shapley(self) -> dict[str, float | None]:
        """Return each arm's Shapley value of the oracle; the values add up to the oracle. Exact for any panel size."""
        return {arm: self._rate(value) for arm, value in zip(self.arms, shapley_solves(self._complete), strict=True)}

    def subsets(self, max_size: int | None = None, min_size: int = 1) -> Iterator[tuple[tuple[str, ...], float | None]]:
        """Iterate over sets of arms with their oracle over the complete cases of the whole matrix.

        Sets come by size, then in panel order. There are 2**arms of them without ``max_size``.
        """
        largest = len(self.arms) if max_size is None else min(max_size, len(self.arms))
        n = self.n
        for size in range(min_size, largest + 1):
            for names, solved in zip(combinations(self.arms, size), subset_solves(self._complete, size), strict=True):
                yield names, solved / n if n else None

    def paired(self, a: str, b: str) -> Paired:
        """Compare two arms over the tasks both answered; a win is a task that only ``a`` passes.

        Raises:
            KeyError: an arm is not in the matrix.
        """
        first, second = self._column[a], self._column[b]
        shared = self._known[:, first] & self._known[:, second]
        one, other = self._passed[shared, first], self._passed[shared, second]
        n, both, either = len(one), int((one & other).sum()), int((one | other).sum())
        wins, losses = int(one.sum()) - both, int(other.sum()) - both
        return Paired(wins, losses, both, n - either, n)

    def __repr__(self) -> str:
        return f"PassMatrix({len(self.tasks)} tasks x {len(self.arms)} arms, {self.n} complete)"


def panel_of(evidence: Evidence, suite: str, split: str) -> tuple[str, ...]:
    """Return the members whose pool a split's figures are about, as bare names in panel order.

    That is the incumbent panel. Only where no member was run in its incumbent configuration (``gpt@4096`` and
    ``gpt@16384`` side by side) every recorded configuration counts as an arm of its own.
    """
    recorded = tuple(arm.removeprefix("member:") for arm in evidence.arms(suite, split) if is_member(arm))
    incumbent = tuple(member for member in recorded if "@" not in member)
    return incumbent or recorded


def _cells(passed: Any, tasks: int, arms: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Split cells into verdicts and a mask of what is known; an unknown cell reads False in the first."""
    shape = (tasks, arms)
    verdicts: NDArray[np.bool_]
    known: NDArray[np.bool_]
    if isinstance(passed, np.ndarray) and passed.dtype == np.bool_:
        verdicts, known = passed.copy(), np.ones(passed.shape, dtype=np.bool_)
    else:
        rows = [list(row) for row in passed]
        if any(len(row) != arms for row in rows):
            raise ValueError(f"every row needs one cell for each of the {arms} arms")
        for task, row in enumerate(rows):
            for arm, cell in enumerate(row):
                if cell is not None and not (isinstance(cell, bool | np.bool_ | int | np.integer) and cell in {0, 1}):
                    raise ValueError(f"cell ({task}, {arm}) must be True, False or None, not {cell!r}")
        known = np.array([[cell is not None for cell in row] for row in rows], dtype=np.bool_).reshape(len(rows), arms)
        verdicts = np.array([[bool(cell) for cell in row] for row in rows], dtype=np.bool_).reshape(len(rows), arms)
    if verdicts.shape != shape:
        raise ValueError(f"passed must be tasks x arms, {shape}, not {verdicts.shape}")
    return verdicts, known
