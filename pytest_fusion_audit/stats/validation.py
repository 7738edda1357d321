"""Argument checks shared by the statistics: one line per fault, and it names the argument.

A count that is silently a float, a flag or NaN is how a wrong denominator becomes a published number, so every
public function of this folder sends what it was given through here first.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Final, SupportsFloat, SupportsIndex

if TYPE_CHECKING:
    from collections.abc import Iterable

_BOOLEANS: Final = ("bool", "bool_")


def _is_boolean(value: object) -> bool:
    # By name as well as by class: numpy's booleans are no subclass of bool, and numpy is not imported here.
    return isinstance(value, bool) or type(value).__name__ in _BOOLEANS


def whole_number(name: str, value: object, least: int = 0) -> int:
    """Return ``value`` as an ``int``; integers of numpy are welcome, flags and floats are not.

    Raises:
        ValueError: ``value`` is not an integer, or is below ``least``.

    >>> whole_number("wins", 3)
    3
    >>> whole_number("wins", 3.0)
    Traceback (most recent call last):
    ValueError: wins must be a whole number of at least 0, not 3.0

    """
    if type(value) is int and value >= least:  # nearly always; the checks below cost fifty times as much
        return value
    if not _is_boolean(value) and isinstance(value, SupportsIndex):
        try:
            number = operator.index(value)
        except TypeError:
            number = least - 1
        if number >= least:
            return number
    raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")


def real_number(name: str, value: object) -> float:
    """Return ``value`` as a finite ``float``.

    Raises:
        ValueError: ``value`` is no number, a flag, NaN or infinite.

    >>> real_number("score", 1)
    1.0
    >>> real_number("score", float("nan"))
    Traceback (most recent call last):
    ValueError: score must be a finite number, not nan

    """
    if type(value) is float and math.isfinite(value):  # nearly always; the checks below cost fifty times as much
        return value
    if not _is_boolean(value) and not isinstance(value, str | bytes) and isinstance(value, SupportsFloat):
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if math.isfinite(number):
            return number
    raise ValueError(f"{name} must be a finite number, not {value!r}")


def real_numbers(name: str, values: Iterable[object]) -> list[float]:
    """Return ``values`` as a list of finite floats, in their order.

    Raises:
        ValueError: one of them is no finite number; the message gives its position.

    >>> real_numbers("scores", [0, 0.5])
    [0.0, 0.5]

    """
    return [real_number(f"{name}[{position}]", value) for position, value in enumerate(values)]


def probability(name: str, value: object) -> float:
    """Return ``value`` as a float between 0 and 1, both allowed.

    Raises:
        ValueError: ``value`` is no finite number or lies outside [0, 1].

    >>> probability("p_win", 1)
    1.0

    """
    number = real_number(name, value)
    if 0.0 <= number <= 1.0:
        return number
    raise ValueError(f"{name} must lie between 0 and 1, not {value!r}")


def open_share(name: str, value: object) -> float:
    """Return ``value`` as a float strictly between 0 and 1, as a level, an alpha or a power has to be.

    Raises:
        ValueError: ``value`` is no finite number or lies outside the open interval (0, 1).

    >>> open_share("level", 1.0)
    Traceback (most recent call last):
    ValueError: level must lie strictly between 0 and 1, not 1.0

    """
    number = real_number(name, value)
    if 0.0 < number < 1.0:
        return number
    raise ValueError(f"{name} must lie strictly between 0 and 1, not {value!r}")


def truth(name: str, value: object) -> bool:
    """Return ``value`` as a ``bool``; 0 and 1 count as flags, anything else does not.

    Raises:
        ValueError: ``value`` is neither a flag nor 0 or 1.

    >>> truth("picked_right", 1)
    True

    """
    if _is_boolean(value):
        return bool(value)
    if isinstance(value, SupportsIndex):
        number = operator.index(value)
        if number in {0, 1}:
            return number == 1
    raise ValueError(f"{name} must be true or false, not {value!r}")


def choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Check that ``value`` is one of the ``allowed`` words.

    Raises:
        ValueError: it is not; the message lists them.

    >>> choice("method", "wald", ("tango", "newcombe"))
    Traceback (most recent call last):
    ValueError: method must be one of tango, newcombe, not 'wald'

    """
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")


def paired_counts(wins: object, losses: object, n: object) -> tuple[int, int, int]:
    """Return the counts of a paired comparison as ints: wins, losses, tasks.

    Raises:
        ValueError: a count is no whole number >= 0, or wins + losses is larger than n.

    >>> paired_counts(31, 12, 220)
    (31, 12, 220)
    >>> paired_counts(3, 2, 4)
    Traceback (most recent call last):
    ValueError: wins + losses must not exceed n, but 3 + 2 > 4

    """
    won, lost, tasks = whole_number("wins", wins), whole_number("losses", losses), whole_number("n", n)
    if won + lost > tasks:
        raise ValueError(f"wins + losses must not exceed n, but {won} + {lost} > {tasks}")
    return won, lost, tasks
