"""How figures are written for people: unknown is n/a, a rate names its n, nothing is rounded into certainty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def percent(share: float | None, digits: int = 1) -> str:
    """A share of 1 as percent text; only an exact 0 or 1 is ever printed as 0 % or 100 %.

    >>> percent(57 / 86), percent(0.99997), percent(0.0002), percent(1.0), percent(None)
    ('66.3 %', '>99.9 %', '<0.1 %', '100 %', 'n/a')
    """
    if share is None:
        return "n/a"
    if share in {0, 1}:
        return f"{100 * share:.0f} %"
    step = 10.0**-digits
    if 0 < share < 1:
        if 100 * share > 100 - step:
            return f">{100 - step:.{digits}f} %"
        if 100 * share < step:
            return f"<{step:.{digits}f} %"
    return f"{100 * share:.{digits}f} %"


def ratio(part: int | None, whole: int | None) -> str:
    """A count out of another with its percentage.

    >>> ratio(57, 86), ratio(0, 0), ratio(3, None)
    ('57/86 (66.3 %)', 'n/a (0 of 0)', 'n/a')
    """
    if part is None or whole is None:
        return "n/a"
    return f"{part}/{whole} ({percent(part / whole)})" if whole else "n/a (0 of 0)"


def points(difference: float | None) -> str:
    """A difference of rates in points, with sign.

    >>> points(0.0864), points(-0.029), points(None)
    ('+8.6', '-2.9', 'n/a')
    """
    return "n/a" if difference is None else f"{100 * difference:+.1f}"


def interval(low: float | None, high: float | None) -> str:
    """An interval of a difference in points.

    >>> interval(0.0292, 0.1465), interval(None, None)
    ('[+2.9, +14.6]', '[n/a]')
    """
    return "[n/a]" if low is None or high is None else f"[{points(low)}, {points(high)}]"


def p_text(p: float | None) -> str:
    """A p value as papers write it, never 0.

    >>> p_text(0.0054), p_text(3.05e-5), p_text(1.0), p_text(None)
    ('.0054', '3.0e-05', '1', 'n/a')
    """
    if p is None:
        return "n/a"
    if p >= 1:
        return "1"
    return f"{p:.1e}" if p < 0.0001 else f"{p:.4f}".lstrip("0")


def figure(value: Any) -> str:
    """One measured value of a scorecard as text.

    >>> figure(None), figure(True), figure(86), figure(0.66279), figure(["a", "b"]), figure({"gpt": 0.5})
    ('n/a', 'yes', '86', '0.6628', 'a, b', 'gpt 0.5')
    """
    if value is None:
        return "n/a"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_nested(item)}" for name, item in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(figure(item) for item in value) or "none"
    return str(value)


def _nested(value: Any) -> str:
    return f"({figure(value)})" if isinstance(value, Mapping) and value else figure(value)


def money(amount: float | None) -> str:
    """Dollars with two decimals.

    >>> money(25.235906), money(None)
    ('$25.24', 'n/a')
    """
    return "n/a" if amount is None else f"${amount:,.2f}"
