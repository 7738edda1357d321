"""Several tests at once, and several looks at one set.

Holm for families of which one claim is made (policies, panels, routers, classes of a suite), Benjamini-Hochberg for
exploratory tables, the largest p for "beats every member". A p that is None was never computed: it stays None, takes
no place in the family and is corrected for by nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.stats.validation import open_share, probability, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable


def _checked(pvalues: Iterable[float | None]) -> list[float | None]:
    return [None if p is None else probability(f"pvalues[{place}]", p) for place, p in enumerate(pvalues)]


def holm(pvalues: Iterable[float | None]) -> list[float | None]:
    """Return p values adjusted by Holm's step-down procedure (Holm 1979), in the order given.

    Args:
        pvalues: raw p values between 0 and 1; None where none was computed.

    Returns:
        A list of the same length: each adjusted p is at least the raw one and at most 1; None stays None.

    Raises:
        ValueError: a p lies outside [0, 1] or is NaN.

    >>> holm([0.01, 0.04, 0.03, 0.005])
    [0.03, 0.06, 0.06, 0.02]
    >>> holm([0.04, None, 0.03])
    [0.06, None, 0.06]

    """
    raw = _checked(pvalues)
    known = sorted((p, place) for place, p in enumerate(raw) if p is not None)
    adjusted: list[float | None] = [None] * len(raw)
    running = 0.0
    for rank, (p, place) in enumerate(known):
        running = max(running, min(1.0, (len(known) - rank) * p))
        adjusted[place] = running
    return adjusted


def benjamini_hochberg(pvalues: Iterable[float | None]) -> list[float | None]:
    """Return p values adjusted for the false discovery rate (Benjamini and Hochberg 1995), in the order given.

    Args:
        pvalues: raw p values between 0 and 1; None where none was computed.

    Returns:
        A list of the same length: each adjusted p is at least the raw one and at most 1; None stays None.

    Raises:
        ValueError: a p lies outside [0, 1] or is NaN.

    >>> benjamini_hochberg([0.01, 0.04, None, 0.03])
    [0.03, 0.04, None, 0.04]

    """
    raw = _checked(pvalues)
    known = [p for p in raw if p is not None]
    if not known:
        return raw
    from scipy.stats import false_discovery_control  # noqa: PLC0415 - scipy.stats is slow to import

    adjusted = iter(false_discovery_control(known, method="bh").tolist())
    return [None if p is None else max(p, float(next(adjusted))) for p in raw]


def intersection_union(pvalues: Iterable[float | None]) -> float | None:
    """Return the p of "every one of these holds": the largest, with no correction (Berger 1982).

    Args:
        pvalues: one p for each comparison that has to hold; None where one could not be computed.

    Returns:
        The largest p; None when one of them is None or there are none, since the claim then rests on nothing.

    Raises:
        ValueError: a p lies outside [0, 1] or is NaN.

    >>> intersection_union([0.001, 0.03])
    0.03
    >>> intersection_union([0.001, None]) is None
    True

    """
    known: list[float] = []
    for p in _checked(pvalues):
        if p is None:
            return None
        known.append(p)
    return max(known, default=None)


def alpha_of_look(look: int, alpha: float = 0.05) -> float:
    """Return the size at which look ``look`` of one locked set is tested: alpha/2**look.

    Summed over any number of looks, 1, 2, 3 and so on, this stays below alpha.

    Args:
        look: number of the look at these tasks under ``holdout.reuse: declared``, counted from 1.
        alpha: size the whole series must keep.

    Raises:
        ValueError: look is no whole number >= 1, or alpha lies outside (0, 1).

    >>> alpha_of_look(2)
    0.0125

    """
    return float(open_share("alpha", alpha) / 2 ** whole_number("look", look, least=1))
