"""Stopping early: evidence that may be looked at after every task.

The e-value is the likelihood ratio of "the compound wins more than half of the discordant tasks", mixed uniformly
over the win share from 1/2 to 1, against a fair coin. It is a non-negative supermartingale when the compound is no
better, so by Ville's inequality it ever reaches 40 with probability at most 1/40: rejecting there keeps a one-sided
2.5 % whatever the stopping rule (Robbins 1970; Ramdas, Grunwald, Vovk, Shafer 2023).
"""

from __future__ import annotations

import math
import sys
from typing import Final

from pytest_fusion_audit.stats.binomial import EXACT_TOSSES, coin_paths
from pytest_fusion_audit.stats.validation import whole_number

EVIDENCE_THRESHOLD: Final = 40.0
"""Evidence that rejects: one-sided 2.5 %."""


def log_sequential_evidence(wins: int, losses: int) -> float:
    """Return the natural logarithm of `sequential_evidence`, for counts whose e-value no float holds.

    Args:
        wins: tasks only the first arm solved so far, a count.
        losses: tasks only the second arm solved so far, a count.

    Raises:
        ValueError: a count is no whole number >= 0.

    >>> round(log_sequential_evidence(7, 0), 4)
    3.4618

    """
    won, lost = whole_number("wins", wins), whole_number("losses", losses)
    pairs = won + lost
    if pairs < EXACT_TOSSES:
        # For whole numbers the Beta tail is a binomial one, P(Beta(w+1, l+1) > 1/2) = P(Bin(w+l+1, 1/2) <= w), and
        # 2 B(w+1, l+1) 2**(w+l) P(...) becomes a ratio of integers.
        return math.log(coin_paths(won, pairs + 1)) - math.log((pairs + 1) * math.comb(pairs, won))
    from scipy.special import betaincc, betaln, log_ndtr  # noqa: PLC0415 - only for counts no audit of today reaches

    tail = float(betaincc(won + 1, lost + 1, 0.5))
    # Where the tail underflows, its normal approximation still tells how little evidence there is.
    log_tail = math.log(tail) if tail > 0.0 else float(log_ndtr((won - lost) / math.sqrt(pairs)))
    return (pairs + 1) * math.log(2.0) + float(betaln(won + 1, lost + 1)) + log_tail


def sequential_evidence(wins: int, losses: int) -> float:
    """Return the e-value against "the first arm is no better", after any number of tasks.

    e = 2 B(w+1, l+1) 2**(w+l) P(Beta(w+1, l+1) > 1/2): a one-sided mixture over the win share among discordant
    tasks; tasks on which the arms agree leave it unchanged.

    Args:
        wins: tasks only the first arm solved so far, a count.
        losses: tasks only the second arm solved so far, a count.

    Returns:
        A number >= 0, 1.0 before the first discordant task; `EVIDENCE_THRESHOLD` or more rejects. Evidence that no
        float holds is returned as the largest float.

    Raises:
        ValueError: a count is no whole number >= 0.

    >>> [round(sequential_evidence(w, l), 3) for w, l in [(6, 0), (7, 0), (7, 1)]]
    [18.143, 31.875, 6.972]

    """
    won, lost = whole_number("wins", wins), whole_number("losses", losses)
    pairs = won + lost
    if pairs < EXACT_TOSSES:
        paths, splits = coin_paths(won, pairs + 1), (pairs + 1) * math.comb(pairs, won)
        return paths / splits if paths.bit_length() - splits.bit_length() < 1023 else sys.float_info.max
    log_evidence = log_sequential_evidence(won, lost)
    return math.exp(log_evidence) if log_evidence < math.log(sys.float_info.max) else sys.float_info.max
