"""Server-sent events from bytes, however the network cut them.

Follows the WHATWG event stream grammar as far as the two makers use it: LF, CRLF and CR end a line, a blank line ends
an event, ``data`` lines of one event are joined by LF, lines that begin with a colon are comments. Bytes are decoded
only when an event is whole, so a cut inside a character or inside CRLF changes nothing.
"""

from __future__ import annotations

from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event: its ``event`` field (None when absent) and its data, still bytes."""

    name: str | None
    data: bytes


class SseReader:
    """Turns chunks into events. Memory holds one unfinished event, not the stream."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # of an unfinished line
        self._data: list[bytes] = []
        self._name: str | None = None
        self._after_cr = False
        self._at_start = True

    def feed(self, chunk: bytes) -> list[Event]:
        """Events that this chunk completed, in order."""
        if not chunk:
            return []
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_cr = False
            if not chunk:
                return []
        self._after_cr = chunk.endswith(b"\r")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in chunk:
            self._parts.append(chunk)
            return []
        lines = (b"".join(self._parts) + chunk).split(b"\n") if self._parts else chunk.split(b"\n")
        rest = lines.pop()
        self._parts = [rest] if rest else []
        events = []
        for line in lines:
            if line:
                self._take(line)
            elif (event := self._end()) is not None:
                events.append(event)
        return events

    def pending(self) -> Event | None:
        """The unfinished event, as if the stream ended here; the reader itself is left as it is."""
        data, event_name = list(self._data), self._name
        if self._parts:
            field, value = _field(b"".join(self._parts))
            if field == b"data":
                data.append(value)
        return Event(event_name, b"\n".join(data)) if data else None

    def drop_pending(self) -> None:
        """Forget the unfinished event, because it was taken from ``pending``."""
        self._parts, self._data, self._name = [], [], None

    def _take(self, line: bytes) -> None:
        if self._at_start:
            line = line.removeprefix(_BOM)
            self._at_start = False
        field, value = _field(line)
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")

    def _end(self) -> Event | None:
        data, event_name = self._data, self._name
        self._data, self._name = [], None
        return Event(event_name, b"\n".join(data)) if data else None


def _field(line: bytes) -> tuple[bytes, bytes]:
    field, _, value = line.partition(b":")
    return field, value.removeprefix(b" ")
