"""Tango's score interval for the difference of two paired proportions (Tango 1998, Statistics in Medicine 17).

The interval holds every delta that the score test of "d = delta" does not reject. The test needs the probability of a
loss under that hypothesis, which is the root of a quadratic, so only the two ends have to be searched for. The search
is a bisection on the statistic multiplied out: it needs no derivative, cannot leave its bracket, reaches the last bit
in some fifty cheap steps, and keeps scipy's import (half a second) away from a session that only replays.
"""

from __future__ import annotations

import math

from pytest_fusion_audit.stats.interval import Interval

_HALVINGS = 60


def _score(delta: float, wins: int, losses: int, n: int, z: float) -> float:
    """Return (wins - losses - n delta) + z sqrt(variance under d = delta); its zero is the upper limit."""
    linear = (2 * n - wins + losses) * delta - wins - losses
    constant = -losses * delta * (1.0 - delta)
    root = math.sqrt(max(0.0, linear * linear - 8.0 * n * constant))
    # Constrained estimate of the probability of a loss. Of the two forms of the quadratic's root, the one that does
    # not subtract nearly equal numbers.
    loss = -2.0 * constant / (root + linear) if linear > 0.0 else (root - linear) / (4.0 * n)
    variance = n * (2.0 * loss + delta * (1.0 - delta))
    return wins - losses - n * delta + z * math.sqrt(max(0.0, variance))


def _upper_limit(wins: int, losses: int, n: int, z: float) -> float:
    if wins == n:
        return 1.0
    # At these two corners the variance vanishes at the estimate itself and the score equation is linear.
    if wins + losses == 0:
        return z * z / (n + z * z)
    if losses == n:
        return (z * z - n) / (n + z * z)
    low, high = (wins - losses) / n, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if middle in {low, high}:
            break
        if _score(middle, wins, losses, n, z) > 0.0:
            low = middle
        else:
            high = middle
    return high


def tango_interval(wins: int, losses: int, n: int, z: float) -> Interval | None:
    """Return Tango's score interval of (wins - losses)/n; None when n is 0.

    Args:
        wins: tasks only the first arm solved, a count.
        losses: tasks only the second arm solved, a count.
        n: all tasks compared, a count of at least wins + losses.
        z: normal quantile of the level, 1.96 for 95 %.

    The arguments are trusted; `pytest_fusion_audit.stats.paired_interval` checks them.

    >>> [round(bound, 4) for bound in tango_interval(1, 7, 21, 1.959964)]
    [-0.5172, -0.026]

    """
    if n == 0:
        return None
    # Swapping the arms mirrors the interval; using that, it does so to the last bit.
    return Interval(-_upper_limit(losses, wins, n, z), _upper_limit(wins, losses, n, z))
