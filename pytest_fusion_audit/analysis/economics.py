"""What fusing costs beside the best single: per solve, per extra solve, and in latency, stage by stage.

The dollars of an extra solve are a ratio of two differences that are both uncertain. Its interval is Fieller's, which
stays honest when the number of extra solves is small: when that number may be 0, no finite interval exists, and then
the figure itself is withheld with the reason.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_fusion_audit.analysis.arms import counts, seeds_of
from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.evidence.money import MICRO, usd
from pytest_fusion_audit.stats import paired_interval, quantile, two_sided_z

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_fusion_audit.analysis.arms import ArmRef
    from pytest_fusion_audit.evidence.container import Evidence

EXTRA_SOLVE_METHOD: Final = "Fieller, normal quantile, paired tasks"
COST_UNKNOWN: Final = "the cost of a compared turn is unknown"
NOTHING_COMPARED: Final = "no task counts for both arms"
NOT_MORE_SOLVES: Final = "the interval of extra solves includes 0"
FEWER_SOLVES: Final = "the first arm solves fewer tasks"


class Bounds(NamedTuple):
    """Both ends of an interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ExtraSolve:
    """Incremental cost per extra solve of one arm over another, over the tasks that count for both.

    Attributes:
        n: tasks compared.
        extra_usd: cost of the first minus cost of the second; None when any compared turn's cost is unknown.
        extra_solves: solves of the first minus solves of the second.
        usd_per_solve: their ratio in dollars; None with a reason.
        low: lower end of its 95 % interval.
        high: upper end.
        method: how the interval was made.
        reason: why the figure is withheld; None when it stands.
    """

    n: int
    extra_usd: float | None
    extra_solves: float
    usd_per_solve: float | None
    low: float | None
    high: float | None
    method: str
    reason: str | None


@per_evidence
def cost_per_extra_solve(
    evidence: Evidence, first: ArmRef, second: ArmRef, *, tasks: frozenset[str] | None = None
) -> ExtraSolve:
    """Divide what the first arm costs more by what it solves more. Seeds are averaged within a task."""
    one, two = _turns(evidence, first), _turns(evidence, second)
    shared = sorted(task for task in one.keys() & two.keys() if tasks is None or task in tasks)
    pairs = [(one[task], two[task]) for task in shared]
    solves = [a.passed - b.passed for a, b in pairs]
    costs = [
        a.cost_micro_usd - b.cost_micro_usd
        for a, b in pairs
        if a.cost_micro_usd is not None and b.cost_micro_usd is not None
    ]
    n, extra = len(pairs), math.fsum(solves)
    priced = n > 0 and len(costs) == n
    reason: str | None = None
    bounds: Bounds | None = None
    if n == 0:
        reason = NOTHING_COMPARED
    elif not priced:
        reason = COST_UNKNOWN
    else:
        bounds = ratio_interval(costs, solves)
        if extra < 0:
            reason = FEWER_SOLVES
        elif bounds is None or _may_be_zero(solves):
            reason = NOT_MORE_SOLVES
    stands = reason is None and bounds is not None
    return ExtraSolve(
        n=n,
        extra_usd=usd(round(math.fsum(costs))) if priced else None,
        extra_solves=extra,
        usd_per_solve=math.fsum(costs) / (extra * MICRO) if stands else None,
        low=bounds.low / MICRO if stands and bounds else None,
        high=bounds.high / MICRO if stands and bounds else None,
        method=EXTRA_SOLVE_METHOD,
        reason=reason,
    )


def ratio_interval(numerators: Sequence[float], denominators: Sequence[float], level: float = 0.95) -> Bounds | None:
    """Return Fieller's interval for the ratio of two paired means (Fieller 1954), with the normal quantile.

    It holds every r for which the mean of ``numerator - r denominator`` is not significantly different from 0.

    Args:
        numerators: one per task.
        denominators: one per task, in the same order.
        level: coverage, two-sided.

    Returns:
        Both ends; None when there are fewer than two tasks, or when 0 is a plausible mean of the denominators, so that
        no finite interval exists.

    >>> low, high = ratio_interval([2.0, 2.2, 1.8, 2.0], [1.0, 1.0, 1.0, 0.9])
    >>> round(low, 3), round(high, 3)
    (1.862, 2.251)
    """
    n = len(numerators)
    if n < 2:
        return None
    top, bottom = math.fsum(numerators) / n, math.fsum(denominators) / n
    # Variances and covariance of the two means.
    scale = 1.0 / (n * (n - 1))
    top_var = scale * math.fsum((x - top) ** 2 for x in numerators)
    bottom_var = scale * math.fsum((y - bottom) ** 2 for y in denominators)
    covariance = scale * math.fsum((x - top) * (y - bottom) for x, y in zip(numerators, denominators, strict=True))
    square = two_sided_z(level) ** 2
    # (top - r bottom)^2 <= z^2 (top_var - 2 r covariance + r^2 bottom_var), a quadratic a r^2 - 2 b r + c <= 0.
    a = bottom * bottom - square * bottom_var
    b = top * bottom - square * covariance
    c = top * top - square * top_var
    if a <= 0.0:
        return None
    root = math.sqrt(max(0.0, b * b - a * c))
    return Bounds((b - root) / a, (b + root) / a)


def _may_be_zero(solves: Sequence[float]) -> bool:
    """Whether the interval of the mean difference in solves holds 0: Tango's where differences are 0 and +-1."""
    if all(value in {-1.0, 0.0, 1.0} for value in solves):
        interval = paired_interval(solves.count(1.0), solves.count(-1.0), len(solves))
        return interval is None or interval.low <= 0.0 <= interval.high
    return False  # several seeds: Fieller's own condition has decided


@dataclass(frozen=True, slots=True)
class Overhead:
    """A fused arm beside a single one, as ratios over the tasks that count for both; None where a side is unknown or 0.

    Attributes:
        n: tasks compared.
        cost_per_task_ratio: dollars per task, first over second.
        cost_per_solve_ratio: dollars per solved task, first over second (the rubric's 7.1).
        latency_p50_ratio: medians of the turn's wall time, first over second.
        latency_p95_ratio: 95th percentiles, first over second (the rubric's 7.2, total reading).
        latency_added_p95_ratio: 95th percentile of the added seconds (first - second, task by task) over the second
            arm's 95th percentile (the added reading).
        latency_n: tasks whose latency is known on both sides; latency ratios are over these.
    """

    n: int
    cost_per_task_ratio: float | None
    cost_per_solve_ratio: float | None
    latency_p50_ratio: float | None
    latency_p95_ratio: float | None
    latency_added_p95_ratio: float | None
    latency_n: int


@per_evidence
def overhead(evidence: Evidence, first: ArmRef, second: ArmRef) -> Overhead:
    """Put one arm's cost and latency in relation to another's, task by task. Seeds are averaged within a task."""
    one, two = _turns(evidence, first), _turns(evidence, second)
    pairs = [(one[task], two[task]) for task in sorted(one.keys() & two.keys())]
    spent, other_spent = (_spent([pair[side] for pair in pairs]) for side in (0, 1))
    solved, other_solved = (math.fsum(pair[side].passed for pair in pairs) for side in (0, 1))
    timed = [(a.latency_s, b.latency_s) for a, b in pairs if a.latency_s is not None and b.latency_s is not None]
    slow, other_slow = ([seconds[side] for seconds in timed] for side in (0, 1))
    per_solve = _ratio(spent, solved), _ratio(other_spent, other_solved)
    p95 = quantile(other_slow, 0.95)
    return Overhead(
        n=len(pairs),
        cost_per_task_ratio=_ratio(spent, other_spent),
        cost_per_solve_ratio=_ratio(*per_solve),
        latency_p50_ratio=_ratio(quantile(slow, 0.5), quantile(other_slow, 0.5)),
        latency_p95_ratio=_ratio(quantile(slow, 0.95), p95),
        latency_added_p95_ratio=_ratio(quantile([a - b for a, b in timed], 0.95), p95),
        latency_n=len(timed),
    )


def _spent(turns: Sequence[_Turn]) -> float | None:
    costs = [turn.cost_micro_usd for turn in turns if turn.cost_micro_usd is not None]
    return math.fsum(costs) if turns and len(costs) == len(turns) else None


def _ratio(over: float | None, under: float | None) -> float | None:
    return over / under if over is not None and under else None


class _Turn(NamedTuple):
    """One task of an arm, its seeds averaged."""

    passed: float
    cost_micro_usd: float | None
    latency_s: float | None


@per_evidence
def _turns(evidence: Evidence, ref: ArmRef) -> Mapping[str, _Turn]:
    rows: dict[str, list[tuple[bool, int | None, float | None]]] = {}
    for seed in seeds_of(evidence, ref):
        for task, row in seed.items():
            if counts(row):
                rows.setdefault(task, []).append((row.passed is True, row.cost_micro_usd, row.latency_s))
    turns: dict[str, _Turn] = {}
    for task, seen in rows.items():
        costs = [cost for _, cost, _ in seen if cost is not None]
        seconds = [latency for _, _, latency in seen if latency is not None]
        turns[task] = _Turn(
            passed=sum(passed for passed, _, _ in seen) / len(seen),
            cost_micro_usd=sum(costs) / len(seen) if len(costs) == len(seen) else None,
            latency_s=sum(seconds) / len(seen) if len(seconds) == len(seen) else None,
        )
    return turns
