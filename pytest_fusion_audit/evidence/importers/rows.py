"""Typed access to the fields of one row, and what a row can have wrong.

A malformed field is one line: file, row, field, what was expected and what stands there. Unknown stays None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_fusion_audit.evidence.importers.base import Source, printable, refusal, shown
from pytest_fusion_audit.evidence.importers.text import RepeatedKeys
from pytest_fusion_audit.evidence.money import micro_usd
from pytest_fusion_audit.evidence.records import Note

if TYPE_CHECKING:
    from pytest_fusion_audit.errors import ImportRefusedError

T = TypeVar("T")

#: No figure in any of these files is larger; what is cannot be computed with.
LARGEST = 10**15


class Row:
    """One object of a file with its place in it.

    Args:
        source: the file.
        where: the place as messages name it: ``line 3``, ``tasks[12]``.
        data: the object. A key that stands twice with different values is refused.
    """

    __slots__ = ("data", "source", "where")

    def __init__(self, source: Source, where: str, data: Any) -> None:
        self.source = source
        self.where = where
        if not isinstance(data, Mapping):
            raise refusal(source, f"an object is expected, not {shown(data)}", where)
        if isinstance(data, RepeatedKeys):
            for key, value in data.pairs:
                if value != data[key]:
                    raise self._at(key, "stands twice with different values")
        self.data: Mapping[str, Any] = data

    def _at(self, name: str, what: str) -> ImportRefusedError:
        return refusal(self.source, what, f"{self.where}, field {name}" if self.where else f"field {name}")

    def refuse(self, name: str, expected: str) -> ImportRefusedError:
        """Refusal of one field: what is expected and what stands there."""
        if name not in self.data:
            return self._at(name, f"missing ({expected} is expected)")
        return self._at(name, f"{expected} is expected, not {shown(self.data[name])}")

    def text(self, name: str) -> str | None:
        """A text, None when absent, null or blank."""
        value = self.data.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self.refuse(name, "a text")
        return whole_characters(value) if value.strip() else None

    def id(self, *names: str) -> str:
        """The row's id under the first of these names that is there; numbers are read as their text."""
        for name in names:
            value = self.data.get(name)
            if value is None:
                continue
            if isinstance(value, int) and not isinstance(value, bool):
                return str(value)
            if not isinstance(value, str) or not value.strip():
                raise self.refuse(name, "an id")
            return checked_id(self.source, value, f"{self.where}, field {name}")
        raise self.refuse(names[0], "an id")

    def flag(self, name: str) -> bool | None:
        """True or False (1 and 0 count), None when absent or null."""
        value = self.data.get(name)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int) and value in {0, 1}:
            return bool(value)
        raise self.refuse(name, "true or false")

    def number(self, name: str, least: float | None = None, most: float | None = None) -> float | None:
        """A finite number, None when absent or null."""
        value = self.data.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.refuse(name, "a number")
        if not -LARGEST <= value <= LARGEST:  # NaN and Infinity fail this, too
            raise self.refuse(name, "a finite number")
        if least is not None and value < least:
            raise self.refuse(name, f"a number of at least {least:g}")
        if most is not None and value > most:
            raise self.refuse(name, f"a number of at most {most:g}")
        return value

    def count(self, name: str) -> int | None:
        """A whole number of at least 0, None when absent or null."""
        value = self.number(name, 0)
        if value is None:
            return None
        if value != int(value):
            raise self.refuse(name, "a whole number")
        return int(value)

    def money(self, name: str) -> int | None:
        """Dollars as integer micro-dollars, rounded up; None when absent or null."""
        value = self.number(name, 0)
        return None if value is None else micro_usd(value)

    def child(self, name: str) -> Row | None:
        """An object inside the row, None when absent or null."""
        value = self.data.get(name)
        if value is None:
            return None
        return Row(self.source, f"{self.where}.{name}" if self.where else name, value)

    def rows(self, name: str) -> list[Row]:
        """A list of objects inside the row; empty when absent or null."""
        value = self.data.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.refuse(name, "a list")
        place = f"{self.where}.{name}" if self.where else name
        return [Row(self.source, f"{place}[{index}]", item) for index, item in enumerate(value)]

    def ids(self, name: str) -> tuple[str, ...] | None:
        """A list of ids, None when absent or null."""
        value = self.data.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
            raise self.refuse(name, "a list of ids")
        return tuple(checked_id(self.source, item, f"{self.where}, field {name}".lstrip(", ")) for item in value)

    def others(self, known: Iterable[str]) -> list[str]:
        """Fields of the row that are not among the known ones."""
        return sorted({str(name) for name in self.data} - set(known))


def whole_characters(text: str) -> str:
    """The text with half characters (which JSON can spell and UTF-8 cannot) written as question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def checked_id(source: Source, text: str, where: str) -> str:
    """The id unchanged: slashes and non-ASCII are ids like any other; half characters cannot be written back."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise refusal(source, f"{shown(text)} holds half a character", where) from None
    return text


class Repeats:
    """Ids that stand more than once in one file: with the same values, or with different ones.

    Of rows that contradict each other none is believed: `spoiled` ids are excluded on both sides of every pair.
    """

    def __init__(self) -> None:
        self.same: dict[str, None] = {}
        self.spoiled: dict[str, None] = {}

    def notes(self) -> list[Note]:
        """One note for each of the two kinds, with the ids."""
        notes = []
        same = [task for task in self.same if task not in self.spoiled]
        if same:
            text = f"{len(same)} ids stand more than once with the same values: one row each is kept"
            notes.append(Note(code="duplicate_ids", message=text, count=len(same), items=tuple(same[:10])))
        if self.spoiled:
            ids = list(self.spoiled)
            text = f"{len(ids)} ids stand more than once with different values: excluded on both sides"
            notes.append(Note(code="duplicate_ids", message=text, count=len(ids), items=tuple(ids[:10])))
        return notes


def unique_items(source: Source, mapping: Mapping[str, T], where: str) -> tuple[list[tuple[str, T]], Repeats]:
    """Items of an object whose keys are ids, one per id, and the ids that stood there twice."""
    pairs = mapping.pairs if isinstance(mapping, RepeatedKeys) else list(mapping.items())
    first: dict[str, T] = {}
    repeats = Repeats()
    for key, value in pairs:
        checked_id(source, key, where)
        if key not in first:
            first[key] = value
        else:
            (repeats.same if first[key] == value else repeats.spoiled).setdefault(key)
    return list(first.items()), repeats


def unique_rows(
    rows: Iterable[Row], key: Callable[[Row], str], repeats: Repeats | None = None
) -> tuple[list[tuple[str, Row]], Repeats]:
    """Rows of a list, one per id, and the ids that stood there twice."""
    first: dict[str, Row] = {}
    repeats = repeats if repeats is not None else Repeats()
    for row in rows:
        task = key(row)
        if task not in first:
            first[task] = row
        else:
            (repeats.same if first[task].data == row.data else repeats.spoiled).setdefault(task)
    return list(first.items()), repeats


def unknown_fields(fields: Iterable[str]) -> list[Note]:
    """Note that names fields nobody reads; none when there are none."""
    names = sorted({printable(name) for name in fields})
    if not names:
        return []
    text = "fields that are not read: " + ", ".join(names[:10]) + (" …" if len(names) > 10 else "")
    return [Note(code="unknown_fields", message=text, count=len(names), items=tuple(names[:10]))]


def no_verdict(count: int, of: str) -> list[Note]:
    """Note that counts rows without a verdict; none when there are none."""
    if not count:
        return []
    return [Note(code="no_verdict", message=f"{count} {of} without a verdict: not scored, counted", count=count)]


class Totals:
    """Compares figures a file states about itself with what its rows say."""

    def __init__(self) -> None:
        self._wrong: list[str] = []

    def expect(self, name: str, stated: float | None, counted: float | None, *, tolerance: float = 0.0) -> None:
        """Remember a difference; a figure that one of the two does not have cannot differ."""
        if stated is not None and counted is not None and abs(stated - counted) > tolerance:
            self._wrong.append(f"{name} says {stated:g}, the rows say {counted:g}")

    def rate(self, name: str, stated: float | None, part: int, whole: int) -> None:
        """Compare a stated rate with part / whole; half a task, or three decimals, count as equal."""
        if whole:
            self.expect(name, stated, part / whole, tolerance=min(5e-4, 0.4 / whole))

    def say(self, difference: str) -> None:
        """Remember a difference in words."""
        self._wrong.append(difference)

    def notes(self) -> list[Note]:
        """The note ``totals_disagree``; none when all agree."""
        if not self._wrong:
            return []
        text = "totals disagree with the rows: " + "; ".join(self._wrong)
        return [Note(code="totals_disagree", message=text, count=len(self._wrong), items=tuple(self._wrong[:10]))]
