"""The two containers of an inspect_ai log, read piece by piece: the JSON form and the `.eval` zip.

Both hold a header (``version status eval plan results stats error``) and one object per sample. A sample's messages and
events are most of the file and none of our business: they are dropped as soon as the sample is parsed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pytest_fusion_audit.evidence.importers.base import Source, printable, refusal, shown
from pytest_fusion_audit.evidence.importers.rows import Row
from pytest_fusion_audit.evidence.importers.text import describe_json_error, read_text
from pytest_fusion_audit.evidence.importers.zip_members import Archive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_fusion_audit.errors import ImportRefusedError

HEADER: Final = "header.json"
START: Final = "_journal/start.json"
_SAMPLE: Final = re.compile(r"samples/.+\.json", re.DOTALL)
_BULK: Final = ("messages", "events", "events_data", "store", "attachments", "timelines", "transcript")
_SPACE: Final = re.compile(r"[ \t\r\n]*")


@dataclass(slots=True)
class Log:
    """An inspect_ai log without its samples.

    Attributes:
        header: everything but the samples; ``eval`` is an object.
        ended: whether a header was written. A run that crashed, or still goes on, has only its start.
        rewritten: members of a zip that were written more than once; the last one counts.
    """

    source: Source
    header: Row
    ended: bool = True
    rewritten: tuple[str, ...] = ()
    samples: list[Row] = field(default_factory=list)


def is_archive(source: Source) -> bool:
    """Whether the file is a zip, by its first bytes."""
    with source.path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def read_log(source: Source, *, header_only: bool = False) -> Log:
    """Read a log in either container.

    Args:
        source: the file.
        header_only: leave the samples out.

    Raises:
        ImportRefusedError: damaged, or without the header of a log; names the member, line or field.
    """
    if is_archive(source):
        return _from_archive(source, header_only=header_only)
    header: dict[str, Any] = {}
    samples: list[Row] = []
    for key, value in _pieces(source, read_text(source)):
        if key == "samples" and header_only:
            if "eval" in header and "plan" in header:
                break  # the rest of the file is samples
        elif key == "samples":
            samples.append(_sample(source, f"samples[{len(samples)}]", value))
        else:
            header[key] = value
    return _log(Log(source, Row(source, "", header), samples=samples))


def _from_archive(source: Source, *, header_only: bool) -> Log:
    with Archive(source) as archive:
        ended = HEADER in archive.names
        if not ended and START not in archive.names:
            raise refusal(source, f"holds neither {HEADER} nor {START}: no inspect_ai log")
        name = HEADER if ended else START
        log = Log(source, Row(source, "", _parse(source, name, archive.read(name))), ended, archive.rewritten)
        if not header_only:
            for member in sorted(filter(_SAMPLE.fullmatch, archive.names)):
                log.samples.append(_sample(source, member, _parse(source, member, archive.read(member))))
    return _log(log)


def _log(log: Log) -> Log:
    for name in ("eval", "plan", "results", "stats", "error"):
        log.header.child(name)  # refuses what is no object
    if log.header.child("eval") is None:
        raise log.header.refuse("eval", "an object")
    return log


def _sample(source: Source, where: str, data: Any) -> Row:
    row = Row(source, printable(where), data)
    row.data = {name: value for name, value in row.data.items() if name not in _BULK}
    return row


def _parse(source: Source, member: str, content: bytes) -> Any:
    """A member of the archive. NaN passes: it is the tool's word for a sample that was not scored."""
    try:
        return json.loads(content.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        where = f"member {shown(member)}, line {error.lineno}, column {error.colno}"
        raise refusal(source, describe_json_error(error), where) from None
    except UnicodeDecodeError as error:
        raise refusal(source, f"byte {error.start} is not UTF-8", f"member {shown(member)}") from None
    except (ValueError, RecursionError) as error:
        raise _unreadable(source, error, f"member {shown(member)}") from None


def _pieces(source: Source, text: str) -> Iterator[tuple[str, Any]]:
    """Members of the top object in file order; of ``samples`` each element by itself, parsed one at a time."""
    try:
        cursor = _Cursor(text)
        for key in cursor.members():
            if key == "samples" and cursor.at_list():
                for _ in cursor.elements():
                    yield key, cursor.value()
            else:
                value = cursor.value()
                if key != "samples":
                    yield key, value
                elif value is not None:
                    raise refusal(source, f"a list is expected, not {shown(value)}", "field samples")
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise refusal(source, describe_json_error(error), where) from None
    except (ValueError, RecursionError) as error:
        raise _unreadable(source, error, "") from None


def _unreadable(source: Source, error: Exception, where: str) -> ImportRefusedError:
    """Refusal for JSON beyond what Python reads: nested too deeply, or a number of thousands of digits."""
    what = "nested too deeply" if isinstance(error, RecursionError) else printable(str(error)).lower()
    return refusal(source, what, where)


class _Cursor:
    """A place in a JSON text; values are parsed by the standard decoder, the two outer levels step by step."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._decode = json.JSONDecoder().raw_decode

    def members(self) -> Iterator[str]:
        """Keys of the document, which must be an object; the caller takes the value after each."""
        self._take("{")
        first = True
        while not self._ends("}", first=first):
            first = False
            key = self.value()
            if not isinstance(key, str):
                raise json.JSONDecodeError("Expecting property name enclosed in double quotes", self._text, self._at)
            self._take(":")
            yield key
        self._skip()
        if self._at < len(self._text):
            raise json.JSONDecodeError("Extra data", self._text, self._at)

    def at_list(self) -> bool:
        """Whether a list begins here."""
        self._skip()
        return self._text.startswith("[", self._at)

    def elements(self) -> Iterator[None]:
        """Steps to each element of a list; the caller takes its value."""
        self._take("[")
        first = True
        while not self._ends("]", first=first):
            first = False
            yield

    def value(self) -> Any:
        """The value here."""
        self._skip()
        value, self._at = self._decode(self._text, self._at)
        return value

    def _ends(self, bracket: str, *, first: bool) -> bool:
        self._skip()
        if self._text.startswith(bracket, self._at):
            self._at += 1
            return True
        if not first:
            self._take(",")
        return False

    def _take(self, sign: str) -> None:
        self._skip()
        if not self._text.startswith(sign, self._at):
            raise json.JSONDecodeError(f"Expecting {sign!r} delimiter", self._text, self._at)
        self._at += 1

    def _skip(self) -> None:
        match = _SPACE.match(self._text, self._at)
        self._at = match.end() if match is not None else self._at
