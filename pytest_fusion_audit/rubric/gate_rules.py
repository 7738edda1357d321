"""The little language in which a rubric writes its gates.

A rule is clauses joined by ``and``::

    1.1 = 2                                     the criterion scored exactly 2 points
    3.2 measured                                there was something to measure it from, whatever came out
    at least one of 7.3, 7.4 shipped            one of them scored 1 or more

Text in parentheses is a comment, and ``, all held out`` at the end demands that every figure in the rule rests on a
held-out split. A user's own rubric file uses the same language; what does not parse is named with its gate and clause.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Collection

_COMMENT = re.compile(r"\s*\([^()]*\)")
_ID = r"[0-9]+\.[0-9]+"
_EQUALS = re.compile(rf"({_ID})\s*=\s*([0-2])")
_MEASURED = re.compile(rf"({_ID})\s+measured")
_ANY = re.compile(rf"at least one of\s+({_ID}(?:\s*,\s*{_ID})*)\s+shipped")
_HELD_OUT = re.compile(r"\s*,\s*all held out\s*$")


@dataclass(frozen=True, slots=True)
class Clause:
    """One condition of a gate. ``points`` is the exact score for ``equals`` and the least score otherwise."""

    kind: Literal["equals", "measured", "shipped"]
    criteria: tuple[str, ...]
    points: int

    def __str__(self) -> str:
        if self.kind == "equals":
            return f"{self.criteria[0]} = {self.points}"
        if self.kind == "measured":
            return f"{self.criteria[0]} measured"
        return f"at least one of {', '.join(self.criteria)} shipped"


@dataclass(frozen=True, slots=True)
class GateRule:
    """A parsed rule: every clause has to hold; ``held_out`` demands held-out figures for all of them."""

    clauses: tuple[Clause, ...]
    held_out: bool = False

    @property
    def criteria(self) -> tuple[str, ...]:
        """Ids the rule speaks of, in the order in which they stand there."""
        return tuple(dict.fromkeys(name for clause in self.clauses for name in clause.criteria))


def parse_rule(text: str, known: Collection[str]) -> GateRule:
    """Parse the rule of one gate.

    Args:
        text: the rule.
        known: ids of the criteria of the rubric.

    Raises:
        ValueError: a clause is none of the three forms or names an unknown criterion; the message quotes the clause.

    >>> text = "1.1 = 2 and at least one of 7.3, 7.4 shipped (by default), all held out"
    >>> rule = parse_rule(text, {"1.1", "7.3", "7.4"})
    >>> [str(clause) for clause in rule.clauses], rule.held_out
    (['1.1 = 2', 'at least one of 7.3, 7.4 shipped'], True)
    """
    bare = _COMMENT.sub("", text).strip()
    without = _HELD_OUT.sub("", bare)
    clauses = tuple(_clause(part.strip()) for part in re.split(r"\band\b", without))
    for clause in clauses:
        unknown = [name for name in clause.criteria if name not in known]
        if unknown:
            raise ValueError(f"clause {str(clause)!r} names {', '.join(unknown)}, which is no criterion of this rubric")
    return GateRule(clauses=clauses, held_out=without != bare)


def _clause(text: str) -> Clause:
    if found := _EQUALS.fullmatch(text):
        return Clause("equals", (found[1],), int(found[2]))
    if found := _MEASURED.fullmatch(text):
        return Clause("measured", (found[1],), 0)
    if found := _ANY.fullmatch(text):
        return Clause("shipped", tuple(re.split(r"\s*,\s*", found[1])), 1)
    raise ValueError(
        f"clause {text!r} is not understood; write 'X = N', 'X measured' or 'at least one of X, Y shipped', "
        "joined by 'and'"
    )
