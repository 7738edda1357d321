"""Bytes of a file to text, JSON, rows: one place for what can be wrong with a file, whatever its format.

Everything here raises `ImportRefusedError` with the file's name and the line, column or field at fault. CRLF reads as
LF, a byte order mark is skipped. JSON is strict: NaN and Infinity are no figures.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.evidence.importers.base import PlacedRefusalError, Source, printable, refusal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_fusion_audit.errors import ImportRefusedError

_BLOCK = 1 << 20
_LOCATE_BYTES = 64 << 20
_TORN_VALUE = re.compile(r"[-+.\w]{0,8}")


class RepeatedKeys(dict[str, Any]):
    """A JSON object in which a key stands more than once; the last one is kept here, ``pairs`` has them all."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


class _NotFinite:
    """Stands for NaN or Infinity while its place in the document is looked for."""

    def __init__(self, name: str) -> None:
        self.name = name


class _MetNotFiniteError(ValueError):
    pass


def source_of(path: Path, name: str) -> Source:
    """The source record of a file.

    Raises:
        ImportRefusedError: the file cannot be read.
    """
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
    except OSError as error:
        raise unreadable(name, error) from None
    return Source(path, name, digest.hexdigest())


def unreadable(name: str, error: OSError) -> ImportRefusedError:
    """Refusal for a file that the system does not give us."""
    return refusal(name, f"cannot be read ({(error.strerror or type(error).__name__).lower()})", then="check the path")


def read_text(source: Source) -> str:
    """Whole text of a file, lines ended by LF.

    Raises:
        ImportRefusedError: unreadable, or not UTF-8 (names the line).
    """
    try:
        raw = source.path.read_bytes()
    except OSError as error:
        raise unreadable(source.name, error) from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise refusal(source, f"byte {error.start} is not UTF-8", f"line {line}") from None
    return text.replace("\r\n", "\n")


def load_json(source: Source, *, constants: bool = False) -> Any:
    """The document in a JSON file. Objects with a repeated key are `RepeatedKeys`.

    Args:
        source: the file.
        constants: let NaN and Infinity pass, for tools that give them a meaning; figures are still checked one by one.

    Raises:
        ImportRefusedError: not JSON or cut off (names line and column), or holding NaN or Infinity (names the field).
    """
    return parse_json(source, read_text(source), constants=constants)


def parse_json(source: Source, text: str, line: int | None = None, *, constants: bool = False) -> Any:
    """Parse a document, or one line of JSONL when its number is given; see `load_json`."""
    try:
        return json.loads(
            text, object_pairs_hook=pairs_to_object, parse_constant=None if constants else _refuse_constant
        )
    except _MetNotFiniteError:
        found = _place_of_constant(json.loads(text, parse_constant=_NotFinite))
        path, name = found if found is not None else ("", "NaN")
        where = f"line {line}, field {path}" if line is not None else f"field {path}"
        raise refusal(source, f"{name} is not a figure", where) from None
    except json.JSONDecodeError as error:
        raise refusal(
            source, describe_json_error(error), f"line {line or error.lineno}, column {error.colno}"
        ) from None
    except RecursionError:
        raise refusal(source, "nested too deeply", f"line {line}" if line is not None else "") from None
    except ValueError as error:  # an integer of thousands of digits
        raise refusal(source, printable(str(error)).lower(), f"line {line}" if line is not None else "") from None


def describe_json_error(error: json.JSONDecodeError) -> str:
    """What is wrong with a JSON text; an error at its very end reads as a cut-off file."""
    what = error.msg[:1].lower() + error.msg[1:]
    rest = error.doc[error.pos :].rstrip()  # nothing, or the beginning of true, null or a number
    torn = _TORN_VALUE.fullmatch(rest) is not None and error.msg != "Extra data"
    ended = torn or error.msg.startswith("Unterminated")
    return f"cut off: not complete JSON ({what})" if ended else f"not JSON ({what})"


def stream_damage(source: Source, error: Exception) -> PlacedRefusalError:
    """Refusal for JSON that broke while it was streamed.

    A stream does not know its lines: a file that is not too large is parsed once more to name line and column, or the
    field of a NaN.
    """
    try:
        if source.path.stat().st_size <= _LOCATE_BYTES:
            load_json(source)
    except PlacedRefusalError as placed:
        return placed
    except OSError:
        pass
    incomplete = type(error).__name__ == "IncompleteJSONError" and "EOF" in str(error)
    first = printable((str(error).splitlines() or ["unreadable"])[0]).lower()
    return refusal(source, "cut off before its end" if incomplete else f"not JSON ({first})")


def pairs_to_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Object hook that does not lose repeated keys."""
    plain = dict(pairs)
    return plain if len(plain) == len(pairs) else RepeatedKeys(pairs)


def _refuse_constant(_name: str) -> Any:
    raise _MetNotFiniteError


def _place_of_constant(value: Any, path: str = "") -> tuple[str, str] | None:
    if isinstance(value, _NotFinite):
        return path, value.name
    if isinstance(value, dict):
        for key, inner in value.items():
            found = _place_of_constant(inner, f"{path}.{key}" if path else key)
            if found is not None:
                return found
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found = _place_of_constant(inner, f"{path}[{index}]")
            if found is not None:
                return found
    return None


def load_jsonl(source: Source, *, constants: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows of a JSONL file with their line numbers from 1; blank lines are skipped.

    A file that is one JSON object over several lines reads as one row.

    Raises:
        ImportRefusedError: a line is no JSON object, or the last one is cut off.
    """
    text = read_text(source)
    lines = text.split("\n")
    if not _stands_alone(lines[0]):
        yield 1, _object(source, parse_json(source, text, constants=constants), 1)
        return
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield number, _object(source, parse_json(source, line, number, constants=constants), number)


def _stands_alone(line: str) -> bool:
    """Whether the first line is a row by itself and not the beginning of a document over several lines."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _object(source: Source, value: Any, line: int) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise refusal(source, f"a JSON object is expected, not {type(value).__name__}", f"line {line}")
    return value


def load_csv(source: Source) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of a CSV file with a header, by column name, each with the number of its last line.

    Raises:
        ImportRefusedError: a column stands twice, or a row has another number of fields than the header (cut off).
    """
    reader = csv.reader(io.StringIO(read_text(source)), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        if len(set(header)) != len(header):
            twice = next(name for name in header if header.count(name) > 1)
            raise refusal(source, f"column {twice!r} stands twice", "line 1")
        for row in reader:
            if not row:
                continue
            if len(row) != len(header):
                what = f"{len(row)} fields where the header has {len(header)}"
                raise refusal(source, what, f"line {reader.line_num}")
            yield reader.line_num, dict(zip(header, row, strict=True))
    except csv.Error as error:
        raise refusal(source, f"not CSV ({printable(str(error))})", f"line {reader.line_num}") from None


def load_yaml(source: Source) -> Any:
    """The document of a YAML file, read with the safe loader.

    Raises:
        ImportRefusedError: not YAML (names line and column).
    """
    import yaml  # noqa: PLC0415 - only panels and sidecars are YAML, and importing it is not free

    try:
        return yaml.load(read_text(source), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        raise refusal(source, f"not YAML ({printable(error.problem or 'unreadable')})", where) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise refusal(source, f"not YAML ({printable(str(error))})") from None


def finite(value: float) -> bool:
    """Whether a figure is one: neither NaN nor infinite."""
    return math.isfinite(value)
