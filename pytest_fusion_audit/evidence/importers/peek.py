"""A glance at a file for recognition: its container and the keys near its start, by content and never by its name."""

from __future__ import annotations

import csv
import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.evidence.importers.base import Peek, PlacedRefusalError, Source
from pytest_fusion_audit.evidence.importers.text import load_json, load_yaml, pairs_to_object, stream_damage, unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: JSON and YAML up to this size are parsed whole for recognition; of larger JSON only the beginning is read.
SMALL_BYTES = 4 << 20
#: Damage of a file without a byte.
EMPTY = "an empty file"
_HEAD_BYTES = 1 << 16
_EVENTS = 20_000
_DEPTH = 3
_WIDTH = 64  # keys looked into per object: objects keyed by task ids have thousands
#: A brace or bracket and what may follow it; ``{{name}}`` of a template and ``[section]`` of a settings file may not.
_BEGINS_JSON = re.compile(rb"""\{\s*(?:["}]|\Z)|\[\s*(?:["\[{\]\d-]|true|false|null|NaN|\Z)""")
_COLUMN = re.compile(r"[\w .%/()+-]+")


def peek_at(source: Source) -> Peek:
    """Recognise the container of a file and the keys near its start.

    Content that begins as JSON but is not JSON to its end, or is not UTF-8, comes back with ``damage`` set.

    Raises:
        ImportRefusedError: the file cannot be read.
    """
    try:
        size = source.path.stat().st_size
        with source.path.open("rb") as stream:
            head = stream.read(_HEAD_BYTES)
    except OSError as error:
        raise unreadable(source.name, error) from None
    if not head:
        return Peek("text", damage=EMPTY)
    if head.startswith(b"PK\x03\x04"):
        return _zip(source)
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if _BEGINS_JSON.match(start):
        return _json(source, size)
    try:
        text = head.decode("utf-8-sig", errors="strict" if size <= _HEAD_BYTES else "ignore")
    except UnicodeDecodeError:
        return Peek("text", damage="not UTF-8 text")
    return _csv(text) or _yaml(source, size, text) or Peek("text")


def _zip(source: Source) -> Peek:
    from zipfile import BadZipFile, ZipFile  # noqa: PLC0415 - rarely needed

    try:
        with ZipFile(source.path) as archive:
            return Peek("zip", members=tuple(archive.namelist()))
    except (BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError) as error:
        return Peek("zip", damage=f"a damaged or cut-off zip archive ({error})".lower())


def _json(source: Source, size: int) -> Peek:
    first, more = _first_line(source, size)
    if more and isinstance(first, dict):
        return Peek("jsonl", keys=frozenset(first), first=first, paths=_paths(first))
    if size > SMALL_BYTES:
        return _large_json(source)
    try:
        document = load_json(source, constants=True)  # whether NaN may stand there is for the format to say
    except PlacedRefusalError as refused:
        return Peek("json", damage=refused.what, place=refused.where)
    keys = frozenset(document) if isinstance(document, dict) else frozenset[str]()
    return Peek("json", keys=keys, first=document, paths=_paths(document))


def _first_line(source: Source, size: int) -> tuple[Any, bool]:
    """The first line parsed, None when it is no JSON by itself, and whether another line begins an object too."""
    with source.path.open("rb") as stream:
        line = stream.readline(min(size, SMALL_BYTES))
        if line.strip() in {b"", b"{", b"[", b"\xef\xbb\xbf"}:
            return None, False
        following = stream.read(_HEAD_BYTES).lstrip()
    if not following.startswith(b"{"):
        return None, False
    try:
        return json.loads(line.decode("utf-8-sig"), object_pairs_hook=pairs_to_object), True
    except (ValueError, RecursionError):
        return None, False


def _paths(value: Any, path: tuple[str, ...] = ()) -> frozenset[tuple[str, ...]]:
    return frozenset(_walk(value, path))


def _walk(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if len(path) >= _DEPTH:
        return
    if isinstance(value, dict):
        for index, (key, inner) in enumerate(value.items()):
            yield (*path, key)
            if index < _WIDTH:
                yield from _walk(inner, (*path, key))
    elif isinstance(value, list):
        yield (*path, "[]")
        if value:
            yield from _walk(value[0], (*path, "[]"))


def _large_json(source: Source) -> Peek:
    import ijson  # noqa: PLC0415 - only large files need it

    paths: set[tuple[str, ...]] = set()
    try:
        with source.path.open("rb") as stream:
            paths.update(_key_paths(islice(ijson.basic_parse(stream), _EVENTS)))
    except ijson.JSONError as error:
        if not any(constant in str(error) for constant in ("NaN", "Infinity")):  # theirs to judge who reads the file
            refused = stream_damage(source, error)
            return Peek("json", damage=refused.what, place=refused.where)
    keys = frozenset(path[0] for path in paths if len(path) == 1 and path != ("[]",))
    return Peek("json", keys=keys, paths=frozenset(paths))


def _key_paths(events: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Paths of keys and lists in a stream of JSON events, as deep as recognition looks."""
    stack: list[str] = []
    for event, value in events:
        if event == "map_key":
            stack[-1] = value
        elif event in {"start_map", "start_array"}:
            stack.append("[]")
        elif event in {"end_map", "end_array"}:
            stack.pop()
        if event in {"map_key", "start_array"} and len(stack) <= _DEPTH:
            yield tuple(stack)


def _csv(text: str) -> Peek | None:
    line, _, rest = text.partition("\n")
    try:
        header = [name.strip() for name in next(csv.reader([line.rstrip("\r")]), [])]
    except csv.Error:
        return None
    if len(header) < 2 or not rest.strip() or ": " in line or not all(_COLUMN.fullmatch(name) for name in header):
        return None
    return Peek("csv", keys=frozenset(header), paths=frozenset((name,) for name in header))


def _yaml(source: Source, size: int, text: str) -> Peek | None:
    if size > SMALL_BYTES or not re.search(r"^[\w\"'-][^\n]*:(?:\s|$)", text, flags=re.MULTILINE) or "\0" in text:
        return None
    try:
        document = load_yaml(source)
    except PlacedRefusalError as refused:
        return Peek("yaml", damage=refused.what, place=refused.where)
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        return None
    return Peek("yaml", keys=frozenset(document), first=document, paths=_paths(document))
