"""A validity finding, and the few words every finding is written with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pytest_fusion_audit.evidence.money import usd

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pydantic import JsonValue

Severity = Literal["error", "warning"]

#: Ids a message lists before it says how many more there are.
MOST_LISTED = 10


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason not to take a number at its face value.

    Attributes:
        code: what holds, one word of the table in docs/validity.md.
        severity: an error withholds the uplift, shuts gates A and C and every gate with a criterion in ``affects``; a
            warning stands beside the number.
        message: what, where (file or field) and the figures with their n.
        evidence: files it was computed from.
        affects: ids of the criteria that read the faulty quantity, in rubric order.
    """

    code: str
    severity: Severity
    message: str
    evidence: tuple[str, ...] = ()
    affects: tuple[str, ...] = ()

    def to_json(self) -> dict[str, JsonValue]:
        """The finding as it stands in ``scorecard.json``."""
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "evidence": list(self.evidence),
            "affects": list(self.affects),
        }


def criteria(*ids: str) -> tuple[str, ...]:
    """Criterion ids once each, in rubric order.

    >>> criteria("10.1", "2.1", "1.2", "2.1")
    ('1.2', '2.1', '10.1')
    """
    return tuple(sorted(set(ids), key=lambda name: tuple(int(part) for part in name.split("."))))


#: A row that counts twice or a count over other tasks falsifies every rate and every pair.
OF_ROWS = criteria("1.1", "1.2", "1.3", "1.4", "2.1", "2.2", "2.3", "2.5", "3.1", "3.2", "4.1", "5.1", "7.1")


def listed(items: Iterable[str], most: int = MOST_LISTED) -> str:
    """At most ten items, sorted, and how many were left out.

    >>> listed(["b", "a"]), listed("abcdefghijkl", most=2)
    ('a, b', 'a, b and 10 more')
    """
    names = sorted(set(items))
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def files(sources: Iterable[str]) -> tuple[str, ...]:
    """Names of files behind records, sorted; a merged record names several with ``" + "``.

    >>> files(["b.json + a.json", "a.json", ""])
    ('a.json', 'b.json')
    """
    return tuple(sorted({name for source in sources for name in source.split(" + ") if name}))


def of(part: int, whole: int) -> str:
    """A share with its n.

    >>> of(38, 86), of(0, 0)
    ('38 of 86 (44.2 %)', '0 of 0')
    """
    return f"{part} of {whole} ({100 * part / whole:.1f} %)" if whole else f"{part} of {whole}"


def points(share: float) -> str:
    """A difference of rates in points.

    >>> points(0.0861), points(-0.3488)
    ('+8.6 points', '-34.9 points')
    """
    return f"{100 * share:+.1f} points"


def p_value(p: float | None) -> str:
    """A p value as papers write it.

    >>> p_value(0.00634765625), p_value(3e-5), p_value(1.0), p_value(None)
    ('.0063', '3.0e-05', '1', 'n/a')
    """
    if p is None:
        return "n/a"
    if p >= 1:
        return "1"
    return f"{p:.1e}" if p < 0.0001 else f"{p:.4f}".lstrip("0")


def dollars(micro: int, digits: int = 2) -> str:
    """Micro-dollars for people.

    >>> dollars(107_000_000), dollars(25_654, digits=4)
    ('107.00 USD', '0.0257 USD')
    """
    return f"{usd(micro):.{digits}f} USD"


def spans(numbers: Collection[int]) -> str:
    """Line numbers, neighbours joined.

    >>> spans([3, 4, 5, 9])
    '3-5, 9'
    """
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in found)
