"""Newcombe's square-and-add interval for paired proportions (Newcombe 1998, Statistics in Medicine 17, method 10).

Two Wilson intervals, one for each arm's own rate, are combined like the legs of a triangle whose angle is the
correlation phi of the two arms. It is printed as a check on Tango's interval.
"""

from __future__ import annotations

import math

from pytest_fusion_audit.stats.interval import Interval
from pytest_fusion_audit.stats.rates import wilson_interval


def _corrected_phi(both: int, wins: int, losses: int, neither: int) -> float:
    n = both + wins + losses + neither
    margins = (both + wins) * (losses + neither) * (both + losses) * (wins + neither)
    if margins == 0:
        return 0.0  # an arm that always or never succeeds correlates with nothing
    product = both * neither - wins * losses
    # Newcombe's continuity correction takes n/2 off a positive association, but never past zero.
    shrunk = max(product - n / 2.0, 0.0) if product > 0 else float(product)
    return shrunk / math.sqrt(margins)


def newcombe_interval(both: int, wins: int, losses: int, n: int, z: float) -> Interval | None:
    """Return Newcombe's interval of (wins - losses)/n; None when n is 0.

    Args:
        both: tasks both arms solved, a count.
        wins: tasks only the first arm solved, a count.
        losses: tasks only the second arm solved, a count.
        n: all tasks compared, a count of at least both + wins + losses.
        z: normal quantile of the level, 1.96 for 95 %.

    The arguments are trusted; `pytest_fusion_audit.stats.paired_interval` checks them.

    >>> [round(bound, 4) for bound in newcombe_interval(1, 0, 0, 2, 1.959964)]
    [-0.5734, 0.5734]

    """
    first = wilson_interval(both + wins, n, z=z)
    second = wilson_interval(both + losses, n, z=z)
    if first is None or second is None:
        return None
    first_rate, second_rate = (both + wins) / n, (both + losses) / n
    phi = _corrected_phi(both, wins, losses, n - both - wins - losses)

    def leg(own: float, other: float) -> float:
        return math.sqrt(max(0.0, own * own - 2.0 * phi * own * other + other * other))

    estimate = (wins - losses) / n
    below = leg(first_rate - first.low, second.high - second_rate)
    above = leg(first.high - first_rate, second_rate - second.low)
    return Interval(max(-1.0, estimate - below), min(1.0, estimate + above))
