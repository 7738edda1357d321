"""Does the judge's confidence rise with being right? A one-sided rank test of two groups.

With a yes/no outcome Kendall's tau, Somers' D and the rank sum (Mann-Whitney) test are one test. Small samples are
counted exactly, ties included, because the usual normal approximation claims too much there: three right answers
above three wrong ones are p = .05, not .025.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from pytest_fusion_audit.stats.validation import real_numbers, truth

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

EXACT_RANKS: Final = 80
"""Most answers whose rank sums are all counted."""


@dataclass(frozen=True, slots=True)
class Trend:
    """A monotone relation between a number and a yes/no outcome.

    Attributes:
        somers_d: (concordant - discordant)/all pairs of one right and one wrong answer, from -1 to 1; 2 AUC - 1.
        p: one-sided p of "right answers do not have the higher numbers".
        method: "exact" or "normal", how p was computed.

    """

    somers_d: float
    p: float
    method: Literal["exact", "normal"]


def _doubled_ranks(values: list[float]) -> NDArray[np.int64]:
    """Return twice the mid-rank of each value: whole numbers even with ties."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = np.zeros(len(values), dtype=np.int64)
    before = 0
    for _, ties in groupby(order, key=values.__getitem__):
        group = list(ties)
        ranks[group] = 2 * before + len(group) + 1
        before += len(group)
    return ranks


def _exact_p(ranks: NDArray[np.int64], hits: int, observed: int) -> float:
    """Return P(rank sum >= observed) when every set of ``hits`` answers is equally likely to be the right ones."""
    total = int(ranks.sum())
    # ways[h, s]: sets of h answers whose doubled ranks sum to s
    ways = np.zeros((hits + 1, total + 1))
    ways[0, 0] = 1.0
    for rank in ranks.tolist():
        ways[1:, rank:] += ways[:-1, : total + 1 - rank].copy()
    return min(1.0, float(ways[hits, observed:].sum() / ways[hits].sum()))


def monotone_trend(numbers: Iterable[float], right: Iterable[bool]) -> Trend | None:
    """Test whether right answers come with higher numbers (one-sided).

    Args:
        numbers: a confidence per answer, in any unit: only the order counts.
        right: whether the answer was right, in the same order and of the same length.

    Returns:
        `Trend`; exact up to `EXACT_RANKS` answers, then `scipy.stats.mannwhitneyu` with its corrections for ties and
        continuity. None when there is no trend to speak of: no answers, all right, all wrong, all numbers equal.

    Raises:
        ValueError: a number is not finite, an outcome is not true or false, or the lengths differ.

    >>> monotone_trend([0.2, 0.4, 0.5, 0.7, 0.8, 0.9], [False, False, False, True, True, True])
    Trend(somers_d=1.0, p=0.05, method='exact')

    """
    values = real_numbers("numbers", numbers)
    outcomes = [truth(f"right[{place}]", outcome) for place, outcome in enumerate(right)]
    if len(values) != len(outcomes):
        raise ValueError(f"right must hold one outcome per number, but there are {len(outcomes)} for {len(values)}")
    hits, misses = outcomes.count(True), outcomes.count(False)
    if hits == 0 or misses == 0 or len(set(values)) == 1:
        return None
    ranks = _doubled_ranks(values)
    observed = int(ranks[outcomes].sum())
    # U = rank sum - hits (hits + 1)/2 counts concordant pairs, ties as halves; D = 2 U/(hits misses) - 1.
    somers_d = (observed - hits * (hits + 1)) / (hits * misses) - 1.0
    if len(values) <= EXACT_RANKS:
        return Trend(somers_d, _exact_p(ranks, hits, observed), "exact")
    from scipy.stats import mannwhitneyu  # noqa: PLC0415 - scipy.stats is slow to import

    above = [value for value, outcome in zip(values, outcomes, strict=True) if outcome]
    below = [value for value, outcome in zip(values, outcomes, strict=True) if not outcome]
    result = mannwhitneyu(above, below, alternative="greater", method="asymptotic")
    return Trend(somers_d, min(1.0, float(result.pvalue)), "normal")
