"""Power of a paired comparison: how probably n tasks show a difference that is there.

The power is unconditional and exact: the number of discordant tasks is Bin(n, p_win + p_loss), the wins among them
Bin(discordant, p_win/(p_win + p_loss)), and every split that the two-sided test rejects is added up, in either
direction. A p equal to alpha does not reject, here as in `decision`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from pytest_fusion_audit.stats.validation import choice, open_share, probability, whole_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

PowerMethod = Literal["exact", "mid_p"]

MAX_TASKS: Final = 200_000
"""Largest n that is enumerated; an effect that needs more is beyond any audit."""

# A p this close below alpha is alpha, computed in floating point.
_TIE: Final = 1.0 - 1e-12
# Discordant counts whose total probability is below 1e-15 are left out: 8.5 standard deviations and a few.
_DEVIATIONS: Final = 8.5


def _lower_p(k: NDArray[np.float64], pairs: NDArray[np.int64], method: str) -> NDArray[np.float64]:
    """Return the two-sided p when the smaller of the two counts is ``k`` (k < pairs/2)."""
    from scipy.special import bdtr, gammaln  # noqa: PLC0415 - half a second that a replay does not need

    p = 2.0 * bdtr(k, pairs, 0.5)
    if method == "mid_p":
        choose = gammaln(pairs + 1.0) - gammaln(k + 1.0) - gammaln(pairs - k + 1.0)
        p = p - np.exp(choose - pairs * math.log(2.0))
    return np.asarray(p, dtype=np.float64)


@lru_cache(maxsize=8)
def _critical_counts(size: int, alpha: float, method: str) -> NDArray[np.float64]:
    """Return, for 0..size discordant tasks, the largest smaller count that still rejects; -1 where none does."""
    from scipy.special import bdtrik  # noqa: PLC0415 - half a second that a replay does not need

    pairs = np.arange(size + 1)
    with np.errstate(all="ignore"):
        start = np.floor(np.nan_to_num(bdtrik(alpha / 2.0, pairs, 0.5), nan=0.0))
    # The inverse is right up to rounding and the mid-p shifts it by one: walk from below to the last that rejects.
    critical = np.maximum(start - 2.0, -1.0)
    for _ in range(6):
        tried = critical + 1.0
        rejects = (2.0 * tried < pairs) & (_lower_p(np.minimum(tried, pairs), pairs, method) < alpha * _TIE)
        critical = np.where(rejects, tried, critical)
    # The walk starts at a count that may not reject itself (few pairs).
    valid = (critical >= 0) & (2.0 * critical < pairs)
    valid &= _lower_p(np.clip(critical, 0.0, pairs), pairs, method) < alpha * _TIE
    critical = np.where(valid, critical, -1.0)
    critical.setflags(write=False)
    return critical


def _critical(pairs: int, alpha: float, method: str) -> NDArray[np.float64]:
    # Rounded up to a power of two, so that a search over n reuses a handful of tables.
    return _critical_counts(1 << max(10, pairs.bit_length()), alpha, method)[: pairs + 1]


def conditional_power(pairs: int, share: float, alpha: float, method: str) -> NDArray[np.float64]:
    """Return P(reject) given 0..pairs discordant tasks of which each is a win with probability ``share``.

    >>> [round(power, 3) for power in conditional_power(8, 1.0, 0.05, "exact").tolist()]
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0]

    """
    from scipy.special import bdtr  # noqa: PLC0415 - half a second that a replay does not need

    critical = _critical(pairs, alpha, method)
    count = np.arange(pairs + 1)
    k = np.maximum(critical, 0.0)
    both_tails = bdtr(k, count, share) + bdtr(k, count, 1.0 - share)
    return np.asarray(np.where(critical >= 0.0, both_tails, 0.0), dtype=np.float64)


def discordant_window(n: int, discordance: float) -> tuple[int, int]:
    """Return the least and the largest discordant count of n tasks that is worth adding up.

    >>> discordant_window(10_000, 0.16)
    (1268, 1932)

    """
    spread = _DEVIATIONS * math.sqrt(n * discordance * (1.0 - discordance)) + 20.0
    centre = n * discordance
    return max(0, math.floor(centre - spread)), min(n, math.ceil(centre + spread))


def mean_over_discordant(rejects: NDArray[np.float64], n: int, discordance: float) -> float:
    """Return the mean of ``rejects[D]`` over D ~ Bin(n, discordance), 0 < discordance <= 1.

    >>> round(mean_over_discordant(np.array([0.0, 0.0, 1.0]), 2, 0.5), 6)
    0.25

    """
    from scipy.special import gammaln  # noqa: PLC0415 - half a second that a replay does not need

    if discordance >= 1.0:
        return float(rejects[n])
    low, high = discordant_window(n, discordance)
    pairs = np.arange(low, high + 1, dtype=np.float64)
    log_mass = gammaln(n + 1.0) - gammaln(pairs + 1.0) - gammaln(n - pairs + 1.0)
    log_mass += pairs * math.log(discordance) + (n - pairs) * math.log1p(-discordance)
    return min(1.0, float(np.exp(log_mass) @ rejects[low : high + 1]))


def task_rates(p_win: float, p_loss: float) -> tuple[float, float]:
    """Return both probabilities as floats.

    Raises:
        ValueError: one lies outside [0, 1], or their sum exceeds 1.

    >>> task_rates(0.12, 0.04)
    (0.12, 0.04)

    """
    won, lost = probability("p_win", p_win), probability("p_loss", p_loss)
    if won + lost > 1.0 + 1e-12:
        raise ValueError(f"p_win + p_loss must not exceed 1, but {p_win} + {p_loss} > 1")
    return won, lost


def paired_power(p_win: float, p_loss: float, n: int, alpha: float = 0.05, method: PowerMethod = "exact") -> float:
    """Return the probability that n tasks show a difference (two-sided McNemar test).

    Args:
        p_win: probability that a task is a win.
        p_loss: probability that a task is a loss.
        n: tasks, a count.
        alpha: two-sided size of the test.
        method: "exact", the test that decides, or "mid_p".

    Returns:
        A probability; 0.0 for n = 0, because nothing can be shown with no task. With p_win = p_loss it is the
        actual size of the test, below alpha for the exact test.

    Raises:
        ValueError: a probability outside [0, 1], p_win + p_loss > 1, n no whole number >= 0 or above `MAX_TASKS`,
            alpha outside (0, 1), or an unknown method.

    >>> round(paired_power(0.20, 0.10, 100), 6)
    0.373077

    """
    won, lost = task_rates(p_win, p_loss)
    tasks, size = whole_number("n", n), open_share("alpha", alpha)
    choice("method", method, ("exact", "mid_p"))
    if tasks > MAX_TASKS:
        raise ValueError(f"n must not exceed {MAX_TASKS} tasks, not {n!r}")
    discordance = min(1.0, won + lost)
    if tasks == 0 or discordance == 0.0:
        return 0.0
    _, high = discordant_window(tasks, discordance)
    return mean_over_discordant(conditional_power(high, won / (won + lost), size, method), tasks, discordance)
