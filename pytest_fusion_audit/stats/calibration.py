"""The judge's calibration: when it says 80 %, is it right 80 times in 100?

The reliability curve is fitted by isotonic regression, which needs no bins (Dimitriadis, Gneiting, Jordan 2021).
Brier score and ECE stand beside it; the ECE uses bins of equal mass and never stands without an interval, because
with few answers it is far from 0 even for a perfectly calibrated judge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from pytest_fusion_audit.stats.interval import Interval
from pytest_fusion_audit.stats.trend import Trend, monotone_trend
from pytest_fusion_audit.stats.validation import open_share, probability, truth, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

_CHUNK = 4_000_000  # counts resampled at a time, to bound memory


class ReliabilityPoint(NamedTuple):
    """One point of a reliability curve.

    Fields: the confidence, the share that was right there by isotonic regression, and how many answers had it.

    >>> ReliabilityPoint(0.8, 0.75, 12).observed
    0.75
    """

    confidence: float
    observed: float
    answers: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """How well confidences agree with outcomes.

    Attributes:
        n: answers with both a confidence and an outcome.
        unknown: answers left out because one of them is unknown.
        accuracy: share of right answers; None when n is 0.
        mean_confidence: mean confidence; None when n is 0.
        brier: mean squared distance of confidence and outcome, 0 to 1; None when n is 0.
        curve: reliability curve in order of confidence, never falling; empty when n is 0.
        ece: expected calibration error over equal-mass bins, 0 to 1; None when n is 0.
        ece_interval: percentile bootstrap interval of the ECE; None when n is 0.
        bins: bins that were used: fewer than asked for when confidences are tied.
        trend: whether being right rises with confidence; None when it cannot be told (no answers, all right, all
            wrong, or one confidence throughout).

    """

    n: int
    unknown: int
    accuracy: float | None
    mean_confidence: float | None
    brier: float | None
    curve: tuple[ReliabilityPoint, ...]
    ece: float | None
    ece_interval: Interval | None
    bins: int
    trend: Trend | None


def _curve(confidences: NDArray[np.float64], right: NDArray[np.float64]) -> tuple[ReliabilityPoint, ...]:
    # Equal confidences are one point: otherwise the fit would depend on the order of the rows.
    places, inverse, counts = np.unique(confidences, return_inverse=True, return_counts=True)
    shares = np.bincount(inverse, weights=right) / counts
    fitted = isotonic_regression(shares, weights=counts.astype(np.float64)).x
    return tuple(
        ReliabilityPoint(float(place), min(1.0, max(0.0, float(share))), int(count))
        for place, share, count in zip(places, fitted, counts, strict=True)
    )


def _bin_starts(ordered: NDArray[np.float64], bins: int) -> NDArray[np.intp]:
    """Return where each equal-mass bin begins in sorted confidences; ties stay together in the earlier bin."""
    ideal = (np.arange(bins) * len(ordered)) // bins
    # A cut inside a run of equal confidences moves to the end of the run.
    ends = np.searchsorted(ordered, ordered[ideal], side="right")
    begins = np.searchsorted(ordered, ordered[ideal], side="left")
    starts = np.unique(np.where(begins == ideal, ideal, ends))
    return starts[starts < len(ordered)]


def _ece_interval(gaps: NDArray[np.float64], starts: NDArray[np.intp], draws: int, seed: int, level: float) -> Interval:
    """Return the percentile bootstrap interval of the ECE; rows are resampled, bins stay where they are."""
    n = len(gaps)
    generator = np.random.default_rng(seed)
    errors: list[float] = []
    while len(errors) < draws:
        rows = min(draws - len(errors), max(1, _CHUNK // n))
        weights = generator.multinomial(n, np.full(n, 1.0 / n), size=rows)
        errors += (np.abs(np.add.reduceat(weights * gaps, starts, axis=1)).sum(axis=1) / n).tolist()
    low, high = np.quantile(errors, [(1.0 - level) / 2.0, (1.0 + level) / 2.0]).tolist()
    return Interval(float(low), float(high))


def judge_calibration(
    confidences: Iterable[float | None],
    right: Iterable[bool | None],
    *,
    bins: int = 10,
    draws: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> Calibration:
    """Compare a judge's confidences with its outcomes.

    Args:
        confidences: one per answer, a share from 0 to 1; None where the judge gave none.
        right: whether the answer was right, in the same order and of the same length; None where unknown.
        bins: equal-mass bins of the ECE, at least 1.
        draws: bootstrap samples of its interval.
        seed: of the bootstrap; the same seed gives the same interval.
        level: coverage of the interval, two-sided.

    Returns:
        `Calibration`; everything is defined with one answer, with answers that are all right or all wrong, and with
        one confidence throughout, except the trend, which is then None.

    Raises:
        ValueError: a confidence outside [0, 1], an outcome that is not true or false, lengths that differ, bins or
            draws < 1, seed < 0, or level outside (0, 1).

    >>> result = judge_calibration([0.2, 0.4, 0.6, 0.8, None], [False, True, False, True, True])
    >>> result.n, result.unknown, round(result.brier, 3), round(result.ece, 3)
    (4, 1, 0.2, 0.4)
    >>> [point.observed for point in result.curve]
    [0.0, 0.5, 0.5, 1.0]

    """
    given, outcomes = list(confidences), list(right)
    if len(given) != len(outcomes):
        raise ValueError(f"right must hold one outcome per confidence, but there are {len(outcomes)} for {len(given)}")
    groups, count = whole_number("bins", bins, least=1), whole_number("draws", draws, least=1)
    start, coverage = whole_number("seed", seed), open_share("level", level)
    known: list[tuple[float, bool]] = []
    for place, (confidence, outcome) in enumerate(zip(given, outcomes, strict=True)):
        share = None if confidence is None else probability(f"confidences[{place}]", confidence)
        hit = None if outcome is None else truth(f"right[{place}]", outcome)
        if share is not None and hit is not None:
            known.append((share, hit))
    unknown = len(given) - len(known)
    if not known:
        return Calibration(0, unknown, None, None, None, (), None, None, 0, None)
    known.sort()  # by confidence, so that neither bins nor bootstrap depend on the order of the rows
    shares = np.array([share for share, _ in known], dtype=np.float64)
    hits = np.array([hit for _, hit in known], dtype=np.float64)
    gaps = hits - shares
    starts = _bin_starts(shares, groups)
    return Calibration(
        n=len(known),
        unknown=unknown,
        accuracy=float(hits.mean()),
        mean_confidence=float(shares.mean()),
        brier=float((gaps**2).mean()),
        curve=_curve(shares, hits),
        ece=float(np.abs(np.add.reduceat(gaps, starts)).sum() / len(known)),
        ece_interval=_ece_interval(gaps, starts, count, start, coverage),
        bins=len(starts),
        trend=monotone_trend([share for share, _ in known], [hit for _, hit in known]),
    )
