"""Sign-flip permutation: is the sum of paired differences larger than their signs alone would make it?

Under "no difference" every difference is as likely to have the opposite sign. Whole numbers (0/1 outcomes, their sums
over clusters) are convolved, which is exact for any number of them; other values are enumerated while that is
feasible and drawn with a seed beyond.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from pytest_fusion_audit.stats.validation import real_numbers, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

PERMUTATION_DRAWS: Final = 100_000
"""Draws when the patterns are too many to be listed."""

ENUMERATED: Final = 17
"""Most nonzero differences whose sign patterns are listed: 2**17 of them, 2**16 by symmetry."""

_CONVOLVED: Final = 100_000_000  # additions, half a second
_CHUNK: Final = 4_000_000  # signs drawn at a time, to bound memory


@dataclass(frozen=True, slots=True)
class SignFlipTest:
    """Two-sided sign-flip permutation test of a sum of differences.

    Attributes:
        p: share of sign patterns whose absolute sum is at least the observed one; None when there were no values.
            When drawn it is (hits + 1)/(draws + 1), which is never 0 (Phipson and Smyth 2010).
        method: "exact", every pattern counted; "drawn", a seeded sample of them; None when there were no values.

    """

    p: float | None
    method: Literal["exact", "drawn"] | None


def _convolved(sizes: NDArray[np.float64], observed: float) -> float:
    total = int(sizes.sum())
    # mass[i] = P(sum = i - total)
    mass = np.zeros(2 * total + 1)
    mass[total] = 1.0
    reached = 0
    for size in sizes.astype(int):
        inner = mass[total - reached : total + reached + 1].copy()
        mass[total - reached : total + reached + 1] = 0.0
        mass[total - reached + size : total + reached + size + 1] += inner / 2.0
        mass[total - reached - size : total + reached - size + 1] += inner / 2.0
        reached += size
    # The distribution is symmetric, so the smaller tail counts twice; at 0 both tails are everything.
    edge = round(observed)
    return 1.0 if edge == 0 else min(1.0, 2.0 * float(mass[total + edge :].sum()))


def _enumerated(sizes: NDArray[np.float64], edge: float) -> float:
    sums = sizes[:1]  # the sign of the first is fixed: the other half mirrors this one
    for size in sizes[1:]:
        sums = np.concatenate([sums + size, sums - size])
    return float(np.count_nonzero(np.abs(sums) >= edge)) / len(sums)


def _drawn(sizes: NDArray[np.float64], edge: float, draws: int, seed: int) -> float:
    generator = np.random.default_rng(seed)
    hits, left = 0, draws
    while left:
        rows = min(left, max(1, _CHUNK // len(sizes)))
        signs = 2.0 * generator.integers(0, 2, size=(rows, len(sizes)), dtype=np.int8) - 1.0
        hits += int(np.count_nonzero(np.abs(signs @ sizes) >= edge))
        left -= rows
    return (hits + 1) / (draws + 1)


def sign_flip_test(differences: Iterable[float], draws: int = PERMUTATION_DRAWS, seed: int = 0) -> SignFlipTest:
    """Test whether paired differences centre on zero, by flipping their signs.

    Args:
        differences: one per independent unit (task or cluster), in any unit, in any order.
        draws: sign patterns to draw where they cannot all be counted.
        seed: of those draws; the same seed gives the same p.

    Returns:
        `SignFlipTest`; p is 1.0 when every difference is zero, None when there are none.

    Raises:
        ValueError: a difference is not a finite number, draws < 1 or seed < 0.

    >>> sign_flip_test([1, 1, 1, 1, 1, 1])
    SignFlipTest(p=0.03125, method='exact')

    """
    values = np.array(real_numbers("differences", differences), dtype=np.float64)
    count, start = whole_number("draws", draws, least=1), whole_number("seed", seed)
    if len(values) == 0:
        return SignFlipTest(None, None)
    moving = values[values != 0.0]
    if len(moving) == 0:
        return SignFlipTest(1.0, "exact")
    sizes, observed = np.sort(np.abs(moving)), abs(float(moving.sum()))
    whole = bool(np.all(sizes == np.rint(sizes)))
    if whole and len(sizes) * float(sizes.sum()) <= _CONVOLVED:
        return SignFlipTest(_convolved(sizes, observed), "exact")
    # Sums of decimal fractions differ in their last bits depending on order; equal patterns must count as equal.
    edge = observed - 1e-12 * float(sizes.sum())
    if len(sizes) <= ENUMERATED:
        return SignFlipTest(_enumerated(sizes, edge), "exact")
    return SignFlipTest(_drawn(sizes, edge, count, start), "drawn")
