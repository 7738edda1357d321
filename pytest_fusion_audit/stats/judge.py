"""The judge's skill: does it pick a right candidate more often than a blind draw from the same candidates would?

Accuracy over all tasks flatters a judge, because most tasks leave nothing to decide. Only decision tasks count, where
some candidates are right and some are not, and chance differs from task to task: k right of m.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytest_fusion_audit.stats.paired import paired_test
from pytest_fusion_audit.stats.validation import probability, truth, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class PickTest:
    """A judge's picks on decision tasks against chance.

    Attributes:
        n: decision tasks on which a pick is known.
        right: of those, picks that were right.
        accuracy: right/n; None when n is 0.
        chance: mean of k/m over the same tasks, the accuracy of a blind draw; None when n is 0.
        p: one-sided, P(a blind draw is right at least that often), Poisson-binomial; None when n is 0.
        undecidable: tasks left out because every candidate was right or every one wrong.
        without_pick: decision tasks left out because no pick is known.

    """

    n: int
    right: int
    accuracy: float | None
    chance: float | None
    p: float | None
    undecidable: int
    without_pick: int


def poisson_binomial_tail(hits: int, chances: Iterable[float]) -> float:
    """Return P(X >= hits), X the number of successes of independent trials with different chances.

    Exact, by adding one trial after the other to the distribution; what `scipy.stats.poisson_binom.sf(hits - 1,
    chances)` computes, without the import of scipy.stats.

    Args:
        hits: a count; more hits than trials have probability 0.
        chances: chance of success of each trial, between 0 and 1.

    Raises:
        ValueError: hits no whole number >= 0, or a chance outside [0, 1].

    >>> poisson_binomial_tail(2, [0.5, 0.25])
    0.125

    """
    least = whole_number("hits", hits)
    shares = [probability(f"chances[{place}]", chance) for place, chance in enumerate(chances)]
    mass = np.zeros(len(shares) + 1)
    mass[0] = 1.0
    for trials, share in enumerate(shares, start=1):
        mass[1 : trials + 1] = mass[1 : trials + 1] * (1.0 - share) + mass[:trials] * share
        mass[0] *= 1.0 - share
    return min(1.0, float(mass[least:].sum())) if least else 1.0


def pick_test(picks: Iterable[tuple[int, int, bool | None]]) -> PickTest:
    """Test a judge's picks against a blind draw from the same candidates.

    Args:
        picks: per task (k, m, picked_right): right candidates, candidates, and whether the pick was right; None
            where no pick is known (no reply, not parsed). All tasks may be passed; those with k = 0 or k = m leave
            nothing to decide and are only counted.

    Raises:
        ValueError: m < 1, k > m, a count that is no whole number >= 0, or a pick that contradicts its task (right
            with no right candidate, wrong with only right ones).

    >>> pick_test([(1, 3, True), (2, 3, True), (1, 2, False), (0, 3, False), (1, 4, None)])
    PickTest(n=3, right=2, accuracy=0.6666666666666666, chance=0.5, p=0.5, undecidable=1, without_pick=1)

    """
    chances: list[float] = []
    right = undecidable = without_pick = 0
    for place, (good, all_candidates, picked) in enumerate(picks):
        k, m = whole_number(f"picks[{place}] k", good), whole_number(f"picks[{place}] m", all_candidates, least=1)
        hit = None if picked is None else truth(f"picks[{place}] picked_right", picked)
        if k > m:
            raise ValueError(f"picks[{place}] k must not exceed m, but {k} > {m}")
        if (hit is True and k == 0) or (hit is False and k == m):
            raise ValueError(f"picks[{place}] picked_right is {hit}, but {k} of its {m} candidates are right")
        if k in {0, m}:
            undecidable += 1
        elif hit is None:
            without_pick += 1
        else:
            chances.append(k / m)
            right += hit
    n = len(chances)
    if n == 0:
        return PickTest(0, 0, None, None, None, undecidable, without_pick)
    chance = sum(chances) / n
    return PickTest(n, right, right / n, chance, poisson_binomial_tail(right, chances), undecidable, without_pick)


@dataclass(frozen=True, slots=True)
class OrderBias:
    """What a judge did when the same candidates were shown in reverse order.

    Attributes:
        n: tasks judged in both orders.
        consistent: tasks with the same candidate picked both times.
        agreement: consistent/n; None when n is 0.
        toward_first: inconsistent tasks whose two picks stood nearer to the top.
        toward_last: inconsistent tasks whose two picks stood nearer to the bottom.
        p: exact two-sided p of "neither end is favoured"; 1.0 when all are consistent, None when n is 0.

    """

    n: int
    consistent: int
    agreement: float | None
    toward_first: int
    toward_last: int
    p: float | None


def order_bias(picks: Iterable[tuple[int, int, int]]) -> OrderBias:
    """Measure position bias from picks made twice, the second time with the candidates in reverse order.

    A judge that reads content picks position i first and m - 1 - i second. Where it does not, the two positions lean
    to the top or the bottom, and a sign test tells whether one end is favoured.

    Args:
        picks: per task (m, position, position when reversed): candidates shown, and both picks as displayed,
            counted from 0.

    Raises:
        ValueError: m < 1, or a position that is no whole number from 0 to m - 1.

    >>> order_bias([(3, 0, 2), (3, 0, 0), (2, 0, 0)])
    OrderBias(n=3, consistent=1, agreement=0.3333333333333333, toward_first=2, toward_last=0, p=0.5)

    """
    consistent = first = last = 0
    for place, (shown, straight, turned) in enumerate(picks):
        m = whole_number(f"picks[{place}] m", shown, least=1)
        places = [whole_number(f"picks[{place}] position", position) for position in (straight, turned)]
        if max(places) >= m:
            raise ValueError(f"picks[{place}] position must be below {m}, the number of candidates, not {max(places)}")
        consistent += sum(places) == m - 1
        first += sum(places) < m - 1
        last += sum(places) > m - 1
    n = consistent + first + last
    return OrderBias(n, consistent, consistent / n if n else None, first, last, paired_test(first, last, n).exact_p)
