"""Graded scores (0.25 of the hidden tests, a rubric mark): paired comparison of task means.

Seeds are averaged within a task first and tests run across tasks: replicates of one task are no new tasks.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from pytest_fusion_audit.stats.clusters import cluster_sums
from pytest_fusion_audit.stats.paired import Decision, decision
from pytest_fusion_audit.stats.sign_flip import PERMUTATION_DRAWS, sign_flip_test
from pytest_fusion_audit.stats.validation import real_number, real_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable

Task = TypeVar("Task", bound=Hashable)


@dataclass(frozen=True, slots=True)
class GradedPairedTest:
    """Sign-flip permutation test of mean paired differences of scores.

    Attributes:
        n: tasks compared.
        mean: mean difference, in the unit of the scores; None when n is 0.
        p: two-sided permutation p; None when n is 0.
        method: "exact", every sign pattern counted, or "drawn"; None when n is 0.

    """

    n: int
    mean: float | None
    p: float | None
    method: Literal["exact", "drawn"] | None

    def decision(self, alpha: float = 0.05) -> Decision | None:
        """Return how this comparison reads at ``alpha``; there is no mid-p, so nothing is borderline.

        Raises:
            ValueError: alpha lies outside (0, 1).

        >>> graded_paired_test([0.5, 0.25, 0.25, 0.5, 0.75, 0.1]).decision()
        'shown'

        """
        return decision(self.p, None, alpha)


def average_seeds(scores: Iterable[tuple[Task, float | None]]) -> dict[Task, float | None]:
    """Return the mean score of each task over its replicates, tasks in order of first appearance.

    Args:
        scores: pairs of task and score, one per replicate, in any order; None where a replicate has no score
            (it stays out of the mean, it is not a 0).

    Returns:
        One mean per task; None for a task none of whose replicates has a score.

    Raises:
        ValueError: a score is neither None nor a finite number.

    >>> average_seeds([("a", 1.0), ("b", None), ("a", 0.5)])
    {'a': 0.75, 'b': None}

    """
    known: dict[Task, list[float]] = {}
    for task, score in scores:
        replicates = known.setdefault(task, [])
        if score is not None:
            replicates.append(real_number(f"score of task {task!r}", score))
    return {task: sum(values) / len(values) if values else None for task, values in known.items()}


def graded_paired_test(
    differences: Iterable[float],
    clusters: Iterable[Hashable] | None = None,
    seed: int = 0,
    draws: int = PERMUTATION_DRAWS,
) -> GradedPairedTest:
    """Test whether the mean paired difference of scores is zero, by flipping signs of whole tasks or clusters.

    The same test as `scipy.stats.permutation_test` with permutation_type="samples" on the mean, exact up to
    seventeen nonzero differences and for whole numbers, else drawn with a seed.

    Args:
        differences: one per task, score of the first arm less that of the second, seeds already averaged.
        clusters: the cluster of each task, in the same order; None when tasks are independent.
        seed: of the permutation where it has to be drawn.
        draws: sign patterns to draw then.

    Raises:
        ValueError: a difference is not a finite number, lengths differ, draws < 1 or seed < 0.

    >>> graded_paired_test([0.5, 0.25, -0.25, 1.0])
    GradedPairedTest(n=4, mean=0.375, p=0.375, method='exact')

    """
    values = real_numbers("differences", differences)
    flips = sign_flip_test(values if clusters is None else cluster_sums(values, clusters), draws, seed)
    return GradedPairedTest(len(values), sum(values) / len(values) if values else None, flips.p, flips.method)
