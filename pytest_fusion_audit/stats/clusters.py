"""Clustered tasks: contests, repositories, template families whose tasks succeed and fail together.

Tasks of one cluster are not independent, so McNemar's test alone would claim too much. The decision takes the larger
of its exact p and a sign-flip permutation over whole clusters; plans divide n by the design effect.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pytest_fusion_audit.stats.paired import Decision, PairedTest, decision, paired_test
from pytest_fusion_audit.stats.sign_flip import PERMUTATION_DRAWS, sign_flip_test
from pytest_fusion_audit.stats.validation import real_number, real_numbers, whole_number

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable


@dataclass(frozen=True, slots=True)
class ClusteredPairedTest:
    """A paired comparison that respects clusters.

    Attributes:
        n: tasks compared.
        clusters: clusters they belong to.
        wins: tasks only the first arm solved.
        losses: tasks only the second arm solved.
        uplift: (wins - losses)/n; None when n is 0.
        mcnemar: the test that treats tasks as independent.
        permutation_p: two-sided sign-flip p over clusters; None when n is 0.
        permutation_method: "exact" or "drawn"; None when n is 0.
        p: the larger of mcnemar.exact_p and permutation_p; it decides. None when n is 0.
        mean_cluster_size: n/clusters; None when n is 0.
        correlation: see `intracluster_correlation`; None when it cannot be told.

    """

    n: int
    clusters: int
    wins: int
    losses: int
    uplift: float | None
    mcnemar: PairedTest
    permutation_p: float | None
    permutation_method: Literal["exact", "drawn"] | None
    p: float | None
    mean_cluster_size: float | None
    correlation: float | None

    def decision(self, alpha: float = 0.05) -> Decision | None:
        """Return how this comparison reads at ``alpha``: "borderline" when only McNemar's mid-p keeps it from showing.

        Raises:
            ValueError: alpha lies outside (0, 1).

        >>> clustered_paired_test([1] * 6, "abcdef").decision()
        'shown'

        """
        if self.p is None or self.permutation_p is None or self.mcnemar.mid_p is None:
            return decision(None, None, alpha)
        return decision(self.p, max(self.mcnemar.mid_p, self.permutation_p), alpha)


def _grouped(differences: Iterable[float], clusters: Iterable[Hashable]) -> dict[Hashable, list[float]]:
    values, names = real_numbers("differences", differences), list(clusters)
    if len(values) != len(names):
        raise ValueError(f"clusters must name one cluster per difference, but there are {len(names)} for {len(values)}")
    groups: dict[Hashable, list[float]] = {}
    for name, value in zip(names, values, strict=True):
        groups.setdefault(name, []).append(value)
    return groups


def cluster_sums(differences: Iterable[float], clusters: Iterable[Hashable]) -> list[float]:
    """Return the sum of the differences of each cluster, clusters in order of first appearance.

    Args:
        differences: one paired difference per task.
        clusters: the cluster of each task, in the same order; any hashable name.

    Raises:
        ValueError: a difference is not a finite number, or the lengths differ.

    >>> cluster_sums([1, 0, -1, 1], ["a", "b", "b", "a"])
    [2.0, -1.0]

    """
    return [sum(group) for group in _grouped(differences, clusters).values()]


def clustered_paired_test(
    differences: Iterable[int], clusters: Iterable[Hashable], seed: int = 0, draws: int = PERMUTATION_DRAWS
) -> ClusteredPairedTest:
    """Test a paired difference of 0/1 outcomes whose tasks come in clusters.

    Args:
        differences: per task 1 for a win, -1 for a loss, 0 for agreement.
        clusters: the cluster of each task, in the same order; any hashable name.
        seed: of the permutation where it has to be drawn.
        draws: sign patterns to draw then.

    Returns:
        `ClusteredPairedTest`; with one cluster per task its p is McNemar's exact p.

    Raises:
        ValueError: a difference other than 1, 0, -1 (graded scores go to `graded_paired_test`), lengths that
            differ, draws < 1 or seed < 0.

    >>> test = clustered_paired_test([1, 1, 1, 1, 1, 1, 1, 0], "aabbccdd")
    >>> test.mcnemar.exact_p, test.p, test.decision()
    (0.015625, 0.125, 'not shown')

    """
    values, names = real_numbers("differences", differences), list(clusters)
    for place, value in enumerate(values):
        if value not in {-1.0, 0.0, 1.0}:
            raise ValueError(
                f"differences[{place}] must be 1, 0 or -1, not {value!r}; graded scores go to graded_paired_test"
            )
    sums = cluster_sums(values, names)
    flips = sign_flip_test(sums, draws, seed)
    counts = Counter(values)
    n, wins, losses = len(values), counts[1.0], counts[-1.0]
    mcnemar = paired_test(wins, losses, n)
    known = [p for p in (mcnemar.exact_p, flips.p) if p is not None]
    return ClusteredPairedTest(
        n=n,
        clusters=len(sums),
        wins=wins,
        losses=losses,
        uplift=(wins - losses) / n if n else None,
        mcnemar=mcnemar,
        permutation_p=flips.p,
        permutation_method=flips.method,
        p=max(known, default=None),
        mean_cluster_size=n / len(sums) if sums else None,
        correlation=intracluster_correlation(values, names),
    )


def intracluster_correlation(differences: Iterable[float], clusters: Iterable[Hashable]) -> float | None:
    """Return rho, the correlation of paired differences within clusters (one-way analysis of variance, Donner 1986).

    Args:
        differences: one paired difference per task.
        clusters: the cluster of each task, in the same order; any hashable name.

    Returns:
        A number of at most 1, below 0 when tasks of one cluster differ more than tasks of different ones; None when
        it cannot be told: fewer than two clusters, no cluster of two tasks, or no variation at all.

    Raises:
        ValueError: a difference is not a finite number, or the lengths differ.

    >>> intracluster_correlation([1, 1, 0, 0, -1, -1], "aabbcc")
    1.0

    """
    groups = list(_grouped(differences, clusters).values())
    n, k = sum(map(len, groups)), len(groups)
    if k < 2 or n == k:
        return None
    mean = sum(map(sum, groups)) / n
    means = [sum(group) / len(group) for group in groups]
    between = sum(len(g) * (m - mean) ** 2 for g, m in zip(groups, means, strict=True)) / (k - 1)
    within = sum((value - m) ** 2 for g, m in zip(groups, means, strict=True) for value in g) / (n - k)
    size = (n - sum(len(group) ** 2 for group in groups) / n) / (k - 1)
    spread = between + (size - 1.0) * within
    return (between - within) / spread if spread > 0.0 else None


def effective_n(n: int, m: float, rho: float) -> float:
    """Return how many independent tasks n clustered ones are worth: n/(1 + (m - 1) rho) (Kish 1965).

    A negative rho counts as 0: planning with more independent tasks than there are would be wishful.

    Args:
        n: tasks, a count.
        m: mean cluster size, at least 1.
        rho: correlation of paired differences within clusters, between -1 and 1.

    Raises:
        ValueError: n no whole number >= 0, m below 1, or rho outside [-1, 1].

    >>> effective_n(220, 3, 0.1)
    183.33333333333334

    """
    tasks, size, correlation = whole_number("n", n), real_number("m", m), real_number("rho", rho)
    if size < 1.0:
        raise ValueError(f"m must be at least 1, not {m!r}")
    if not -1.0 <= correlation <= 1.0:
        raise ValueError(f"rho must lie between -1 and 1, not {rho!r}")
    return tasks / (1.0 + (size - 1.0) * max(0.0, correlation))
