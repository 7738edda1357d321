"""Intervals that hold after stopping early: the e-process of `sequential`, inverted.

The interval keeps every value that the evidence has not rejected, in either direction. It is valid at every task at
once, so also at the one where a run was stopped; the estimate itself is then biased upward, and whoever prints it
says so.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaincc, betaln, logsumexp, roots_legendre

from pytest_fusion_audit.stats.interval import Interval
from pytest_fusion_audit.stats.validation import open_share, paired_counts, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

# Gauss-Legendre with m nodes is exact up to degree 2m - 1; the integrand has degree n and is log-concave, so this
# many are also plenty for more tasks than 2000.
_MOST_NODES: Final = 1000
_EDGE: Final = 1e-12


def _share_below(wins: int, losses: int, threshold: float) -> float:
    """Return the largest win share that "more than this" has been shown for; 0 when there is none."""
    if wins == 0:
        return 0.0

    def log_evidence(share: float) -> float:
        mixed = float(betaln(wins + 1, losses + 1)) + math.log(float(betaincc(wins + 1, losses + 1, share)))
        likelihood = wins * math.log(share) + losses * math.log1p(-share)
        return mixed - math.log1p(-share) - likelihood - math.log(threshold)

    # The evidence decreases up to wins/(wins + losses + 1) and stays below e = 2.72 from there on.
    return _root(log_evidence, _EDGE, wins / (wins + losses + 1), 0.0)


def _root(function: Callable[[float], float], low: float, high: float, otherwise: float) -> float:
    # A threshold close to 1 (a level close to 0) may never be crossed before the estimate: the bound is then there.
    if function(low) <= 0.0:
        return otherwise
    return high if function(high) >= 0.0 else float(brentq(function, low, high, xtol=1e-12))


def sequential_interval(wins: int, losses: int, level: float = 0.95) -> Interval | None:
    """Return an always-valid interval for the win share among discordant tasks.

    Its ends are the shares at which the one-sided mixture e-process of `sequential_evidence`, taken against that
    share instead of 1/2, reaches 2/(1 - level) (40 at 95 %): the low end exceeds 1/2 exactly when the evidence is
    above the threshold.

    Args:
        wins: tasks only the first arm solved so far, a count.
        losses: tasks only the second arm solved so far, a count.
        level: coverage over all stopping times together.

    Returns:
        `Interval` in shares of 1, inside [0, 1]; None without a discordant task.

    Raises:
        ValueError: a count is no whole number >= 0, or level outside (0, 1).

    >>> [round(bound, 3) for bound in sequential_interval(12, 2)]
    [0.473, 0.996]

    """
    won, lost = whole_number("wins", wins), whole_number("losses", losses)
    threshold = 2.0 / (1.0 - open_share("level", level))
    if won + lost == 0:
        return None
    return Interval(_share_below(won, lost, threshold), 1.0 - _share_below(lost, won, threshold))


@lru_cache(maxsize=8)
def _nodes(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    places, weights = roots_legendre(count)
    return np.asarray((places + 1.0) / 2.0), np.asarray(weights / 2.0)


def _uplift_below(wins: int, losses: int, n: int, threshold: float) -> float:
    """Return the largest uplift that "more than this" has been shown for; -1 when there is none."""
    # Powers of two keep the number of rules that are ever computed small.
    bets, weights = _nodes(min(_MOST_NODES, 1 << max(4, (n // 2 + 1).bit_length())))
    ties = n - wins - losses
    against = losses * np.log1p(-bets)

    def log_evidence(uplift: float) -> float:
        logs = wins * np.log1p(bets * (1.0 - uplift) / (1.0 + uplift)) + against
        logs = logs + ties * np.log1p(-bets * uplift / (1.0 + uplift))
        return float(logsumexp(logs, b=weights)) - math.log(threshold)

    estimate = (wins - losses) / n
    return -1.0 if losses == n else _root(log_evidence, -1.0 + _EDGE, min(estimate, 1.0 - _EDGE), -1.0)


def sequential_uplift_interval(wins: int, losses: int, n: int, level: float = 0.95) -> Interval | None:
    """Return an always-valid interval for the uplift d = (wins - losses)/n.

    Against "the uplift is at most d0" one bets a share of the stake on every task: with outcomes +1, 0, -1 the wealth
    after n tasks is the product of 1 + u (x - d0)/(1 + d0), mixed uniformly over u from 0 to 1 (betting confidence
    sequence, Waudby-Smith and Ramdas 2024). At d0 = 0 that is exactly `sequential_evidence`, so the low end exceeds
    0 exactly when the evidence exceeds 2/(1 - level), 40 at 95 %.

    Args:
        wins: tasks only the first arm solved so far, a count.
        losses: tasks only the second arm solved so far, a count.
        n: all tasks compared so far, a count.
        level: coverage over all stopping times together.

    Returns:
        `Interval` in shares of 1, inside [-1, 1]; None when n is 0.

    Raises:
        ValueError: a count is no whole number >= 0, wins + losses > n, or level outside (0, 1).

    >>> [round(bound, 3) for bound in sequential_uplift_interval(31, 12, 220)]
    [-0.005, 0.184]

    """
    won, lost, tasks = paired_counts(wins, losses, n)
    threshold = 2.0 / (1.0 - open_share("level", level))
    if tasks == 0:
        return None
    return Interval(_uplift_below(won, lost, tasks, threshold), -_uplift_below(lost, won, tasks, threshold))
