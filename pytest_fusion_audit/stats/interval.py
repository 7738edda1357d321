"""What an interval is, and the normal quantile that most of them are built on.

Standard library only: a replay that needs no more than McNemar, Tango and Wilson should not pay for scipy's import.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Final, NamedTuple

from pytest_fusion_audit.stats.validation import open_share

_STANDARD_NORMAL: Final = NormalDist()


class Interval(NamedTuple):
    """A confidence interval, in the unit of the estimate it belongs to (shares of 1, not per cent).

    >>> low, high = Interval(-0.5, 0.5)
    >>> Interval(-0.5, 0.5).high
    0.5
    """

    low: float
    high: float


def two_sided_z(level: float) -> float:
    """Return the z that leaves (1 - level)/2 in each tail of the standard normal distribution.

    Args:
        level: coverage between 0 and 1, for example 0.95.

    Raises:
        ValueError: ``level`` lies outside the open interval (0, 1).

    >>> round(two_sided_z(0.95), 6)
    1.959964

    """
    # The lower tail keeps its digits where (1 + level)/2 would round to 1.
    return -_STANDARD_NORMAL.inv_cdf((1.0 - open_share("level", level)) / 2.0)
