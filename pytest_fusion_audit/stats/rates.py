"""One rate: k of n with Wilson's score interval (Wilson 1927)."""

from __future__ import annotations

import math

from pytest_fusion_audit.stats.interval import Interval, two_sided_z
from pytest_fusion_audit.stats.validation import real_number, whole_number


def wilson_interval(k: int, n: int, level: float = 0.95, z: float | None = None) -> Interval | None:
    """Return Wilson's interval for the rate k/n.

    Args:
        k: how many of them, a count.
        n: out of how many, a count.
        level: coverage, two-sided; unused when ``z`` is given.
        z: normal quantile to use instead, for example 1.96 to reproduce figures that were rounded there.

    Returns:
        `Interval` in shares of 1, inside [0, 1] exactly and never of zero width: the low end is 0.0 exactly when
        k = 0, the high end 1.0 exactly when k = n. None when n is 0: no trials, no interval.

    Raises:
        ValueError: a count is no whole number >= 0, k > n, level outside (0, 1), or z not above 0.

    >>> [round(bound, 7) for bound in wilson_interval(57, 86, z=1.96)]
    [0.5578236, 0.753836]
    >>> wilson_interval(0, 0) is None
    True

    """
    hits, trials = whole_number("k", k), whole_number("n", n)
    if hits > trials:
        raise ValueError(f"k must not exceed n, but {hits} > {trials}")
    quantile = two_sided_z(level) if z is None else real_number("z", z)
    if z is not None and quantile <= 0.0:
        raise ValueError(f"z must be above 0, not {z!r}")
    if trials == 0:
        return None
    square = quantile * quantile
    centre = (hits + square / 2.0) / (trials + square)
    half = quantile / (trials + square) * math.sqrt(hits * (trials - hits) / trials + square / 4.0)
    rate = hits / trials
    # The bounds hold the estimate by definition; rounding alone could push them past it, or past 0 and 1.
    low = 0.0 if hits == 0 else min(max(0.0, centre - half), rate)
    high = 1.0 if hits == trials else max(min(1.0, centre + half), rate)
    if low == high:  # so narrow that a float cannot show it: one step of the float is then the width
        low, high = math.nextafter(low, 0.0), math.nextafter(high, 1.0)
    return Interval(low, high)
