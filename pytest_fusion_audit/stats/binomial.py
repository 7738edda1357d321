"""The binomial distribution of a fair coin, exactly: the null hypothesis of every paired comparison.

Under "no difference" each discordant task is a win or a loss with probability 1/2, so everything is a ratio of whole
numbers. Up to a thousand tosses Python's integers give it correctly rounded and without importing scipy; beyond that
`scipy.special` takes over.
"""

from __future__ import annotations

import math
from typing import Final

from pytest_fusion_audit.stats.validation import whole_number

EXACT_TOSSES: Final = 1000
"""Largest number of tosses that is summed in whole numbers."""


def _checked(k: int, tosses: int) -> tuple[int, int]:
    heads, total = whole_number("k", k), whole_number("tosses", tosses)
    if heads > total:
        raise ValueError(f"k must not exceed tosses, but {heads} > {total}")
    return heads, total


def coin_paths(k: int, tosses: int) -> int:
    """Return in how many of the 2**tosses sequences at most ``k`` tosses show heads (a whole number).

    Raises:
        ValueError: a count is no whole number >= 0, or k > tosses.

    >>> coin_paths(1, 3)  # TTT, HTT, THT, TTH
    4

    """
    heads, total = _checked(k, tosses)
    if 2 * heads >= total:  # the complement is the shorter sum
        return (1 << total) - (coin_paths(total - heads - 1, total) if heads < total else 0)
    term = paths = 1
    for i in range(heads):
        term = term * (total - i) // (i + 1)
        paths += term
    return paths


def coin_tail(k: int, tosses: int) -> float:
    """Return P(X <= k) for X heads in ``tosses`` fair tosses.

    Raises:
        ValueError: a count is no whole number >= 0, or k > tosses.

    >>> coin_tail(0, 5)
    0.03125

    """
    heads, total = _checked(k, tosses)
    if total <= EXACT_TOSSES:
        return coin_paths(heads, total) / (1 << total)
    from scipy.special import bdtr  # noqa: PLC0415 - only for counts no audit of today reaches

    return float(bdtr(heads, total, 0.5))


def coin_mass(k: int, tosses: int) -> float:
    """Return P(X = k) for X heads in ``tosses`` fair tosses.

    Raises:
        ValueError: a count is no whole number >= 0, or k > tosses.

    >>> coin_mass(1, 2)
    0.5

    """
    heads, total = _checked(k, tosses)
    if total <= EXACT_TOSSES:
        return math.comb(total, heads) / (1 << total)
    log_mass = math.lgamma(total + 1) - math.lgamma(heads + 1) - math.lgamma(total - heads + 1)
    return math.exp(log_mass - total * math.log(2.0))
