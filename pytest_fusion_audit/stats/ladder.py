"""The Ladder (Blum and Hardt 2015): how often one may look at the same validation split.

A new loss is reported only when it beats the best reported so far by more than one step, and then rounded to the
step. Everything else repeats the old number, so the split leaks almost nothing about itself.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pytest_fusion_audit.stats.validation import real_number, real_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable

# Losses are ratios of small counts: two that differ by less than this are the same loss, whatever the last bit says.
_SAME = 1e-12


def _checked_step(step: float) -> float:
    width = real_number("step", step)
    if width <= 0.0:
        raise ValueError(f"step must be above 0, not {step!r}")
    return width


def ladder_step(best: float | None, loss: float, step: float) -> float:
    """Return the loss to report after one more look.

    Args:
        best: the loss reported so far; None before the first look.
        loss: the new loss as measured, in the unit of ``step`` (an accuracy goes in as 1 - accuracy).
        step: least improvement that is reported, and the grid of what is reported; above 0.

    Returns:
        ``loss`` rounded to the nearest multiple of ``step`` when loss < best - step, else ``best`` unchanged.

    Raises:
        ValueError: a number is not finite, or step is not above 0.

    >>> ladder_step(0.42, 0.405, 0.02)
    0.42
    >>> ladder_step(0.42, 0.389, 0.02)
    0.38

    """
    width, measured = _checked_step(step), real_number("loss", loss)
    if best is not None:
        reported = real_number("best", best)
        if measured >= reported - width - _SAME:
            return reported
    # The last digits of k * step are noise of the binary fraction; twelve are more than any loss has.
    return round(math.floor(measured / width + 0.5) * width, 12)


def ladder_losses(losses: Iterable[float], step: float) -> list[float]:
    """Return what the Ladder reports after each of ``losses``, in their order and of the same length.

    Args:
        losses: measured losses, oldest first.
        step: least improvement that is reported; above 0.

    Raises:
        ValueError: a loss is not a finite number, or step is not above 0.

    >>> ladder_losses([0.412, 0.405, 0.389, 0.380, 0.395, 0.351], 0.02)
    [0.42, 0.42, 0.38, 0.38, 0.38, 0.36]

    """
    width = _checked_step(step)
    reported: list[float] = []
    best: float | None = None
    for loss in real_numbers("losses", losses):
        best = ladder_step(best, loss, width)
        reported.append(best)
    return reported
