"""Streams a bank file: tasks one by one, answers as hash and length, tests as a count.

A full bank is mostly texts (prompts, answers, hidden tests; gigabytes were seen). None of them is kept, so memory grows
with the number of tasks and not with what is written in them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import ijson

from pytest_fusion_audit.evidence.importers.base import Source, refusal
from pytest_fusion_audit.evidence.importers.text import pairs_to_object, stream_damage, unreadable

Events: TypeAlias = Iterator[tuple[str, Any]]

#: Fields that hold the text of an answer or a prompt: digested however short.
TEXTS = frozenset({"content", "prompt"})
#: Fields that hold tests: counted, never kept.
TESTS = frozenset(
    {"tests", "public_tests", "hidden_tests", "private_tests", "public_test_cases", "private_test_cases", "test_cases"}
)
#: Any other text longer than this is digested too, so that an unknown field cannot fill the memory.
LONG_TEXT = 4096


@dataclass(frozen=True, slots=True)
class Digest:
    """What is kept of a text.

    Attributes:
        sha256: hex digest of its UTF-8 bytes.
        chars: its length in characters.
        blank: whether nothing but white space is in it.
    """

    sha256: str
    chars: int
    blank: bool

    @classmethod
    def of(cls, text: str) -> Digest:
        """Digest of a text."""
        return cls(hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest(), len(text), not text.strip())


@dataclass(frozen=True, slots=True)
class Counted:
    """How many tests stood in a field; None when their form does not tell."""

    count: int | None


def parts_of(source: Source) -> Iterator[tuple[str, Any]]:
    """Members of the top object in file order: ``("task", object)`` for each task, ``(key, value)`` for the others.

    Raises:
        ImportRefusedError: not JSON to its end, or the top is no object with a list of tasks.
    """
    try:
        with source.path.open("rb") as stream:
            yield from _top(source, iter(ijson.basic_parse(_without_mark(stream), use_float=True)))
    except ijson.JSONError as error:
        raise stream_damage(source, error) from None
    except OSError as error:
        raise unreadable(source.name, error) from None
    except RecursionError:
        raise refusal(source, "nested too deeply") from None


def _without_mark(stream: Any) -> Any:
    if stream.read(3) != b"\xef\xbb\xbf":
        stream.seek(0)
    return stream


def _top(source: Source, events: Events) -> Iterator[tuple[str, Any]]:
    event, _ = next(events, ("", None))
    if event != "start_map":
        raise refusal(source, "a JSON object is expected")
    for event, key in events:
        if event == "end_map":
            break
        event, value = next(events)  # noqa: PLW2901 - a key and its value are two events
        if key == "tasks" and event == "start_array":
            for event, value in events:  # noqa: PLW2901 - the same stream goes on
                if event == "end_array":
                    break
                yield "task", _value(event, value, events, "")
        elif key == "tasks":
            raise refusal(source, "a list is expected", "field tasks")
        else:
            yield key, _value(event, value, events, key)
    for _ in events:
        raise refusal(source, "something follows the end of the document")


def _value(event: str, value: Any, events: Events, key: str) -> Any:
    if key in TESTS:
        return Counted(_count(event, events))
    if event == "string":
        return Digest.of(value) if key in TEXTS or len(value) > LONG_TEXT else value
    if event == "start_array":
        items = []
        for inner, item in events:
            if inner == "end_array":
                break
            items.append(_value(inner, item, events, key))
        return items
    if event == "start_map":
        pairs = []
        for inner, name in events:
            if inner == "end_map":
                break
            inner, item = next(events)  # noqa: PLW2901 - a key and its value are two events
            pairs.append((name, _value(inner, item, events, name)))
        return pairs_to_object(pairs)
    return value


def _count(event: str, events: Events) -> int | None:
    """Number of tests: elements of a list, or of the first list inside an object (``{inputs: […], outputs: […]}``)."""
    if event not in {"start_array", "start_map"}:
        return None
    depth, count, listed = 1, 0, event == "start_array"
    at = 1 if listed else None
    for inner, _ in events:
        if inner in {"end_array", "end_map"}:
            depth -= 1
            if depth == 0:
                break
            if at is not None and depth < at:
                at = 0  # the first list has ended: later ones are its companions
            continue
        if at is not None and depth == at and inner != "map_key":
            count += 1
        if inner in {"start_array", "start_map"}:
            depth += 1
            if at is None and inner == "start_array":
                at, listed = depth, True
    return count if listed else None
