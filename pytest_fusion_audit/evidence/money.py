"""Money: integer micro-dollars inside, JSON numbers with at most six decimals outside."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal, InvalidOperation

MICRO = 1_000_000


def micro_usd(amount: float | str | Decimal) -> int:
    """Dollars to integer micro-dollars, rounded up: the one rounding a recorded amount ever gets.

    Args:
        amount: dollars. A float is read by its shortest decimal text, so that 0.1 is 0.1 and not 0.1000000000000000055.

    Raises:
        ValueError: the amount is not a finite number.

    >>> micro_usd(0.457877), micro_usd("0.04210875"), micro_usd(0)
    (457877, 42109, 0)
    """
    try:
        exact = Decimal(str(amount))
    except InvalidOperation:
        raise ValueError(f"{amount!r} is not an amount of dollars") from None
    if not exact.is_finite():
        raise ValueError(f"{amount!r} is not a finite amount of dollars")
    return int((exact * MICRO).to_integral_value(rounding=ROUND_CEILING))


def dollars(micro: int) -> str:
    """Dollars for people: cents, or as many digits as it takes.

    >>> dollars(5_000_000), dollars(100)
    ('5.00', '0.0001')
    """
    text = f"{Decimal(micro) / MICRO:.6f}"
    return text.removesuffix("0000") if text.endswith("0000") else text.rstrip("0")


def usd(micro: int) -> float:
    """Micro-dollars to dollars for JSON; the shortest decimal text of the result has at most six decimals.

    >>> usd(25_235_906)
    25.235906
    """
    return micro / MICRO
