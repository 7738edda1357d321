"""Quantiles by linear interpolation, the convention named wherever one is printed.

It is numpy's default ("linear", type 7 of Hyndman and Fan 1996), written out so that a latency figure does not cost
an import.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from pytest_fusion_audit.stats.validation import probability, real_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable

QUANTILE_METHOD: Final = "linear interpolation (numpy)"
"""Name of the convention, to be printed beside every quantile."""


def quantile(values: Iterable[float], q: float) -> float | None:
    """Return the q-quantile of ``values`` in their own unit, in any order.

    Args:
        values: finite numbers; what is unknown has to be left out and counted by the caller.
        q: share between 0 (the least) and 1 (the greatest).

    Returns:
        The value at position (n - 1) q of the sorted values, interpolated linearly; None when there are none.

    Raises:
        ValueError: a value is not a finite number, or q lies outside [0, 1].

    >>> quantile([4.0, 1.0, 2.0], 0.95)
    3.8

    """
    share = probability("q", q)
    ordered = sorted(real_numbers("values", values))
    if not ordered:
        return None
    position = (len(ordered) - 1) * share
    below = math.floor(position)
    low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
    weight = position - below
    # As numpy does: interpolate from the nearer end, so that the result never leaves [low, high].
    return low + (high - low) * weight if weight < 0.5 else high - (high - low) * (1.0 - weight)
