"""Scrub a body that arrives in pieces: a key may be cut by the boundary between two chunks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_fusion_audit.metering.key_shapes import LONGEST

if TYPE_CHECKING:
    from pytest_fusion_audit.metering.scrubbing import Scrubber

_BEGUN = re.compile(rf"(?:s|sk|sk-[A-Za-z0-9_*-]{{0,{LONGEST}}})\Z", re.ASCII)
_CONTEXT = 6  # characters before a key that decide whether it is one


class ScrubbedStream:
    """Passes chunks on without keys, and holds back only an end that may be the begin of one.

    What it passes on, joined, is `Scrubber.content` of the whole, but for keys that are both escaped and cut.

    >>> from pytest_fusion_audit.metering.scrubbing import Scrubber
    >>> stream = ScrubbedStream(Scrubber(["sk-test-0000EXAMPLE"]))
    >>> stream.feed(b"a sk-te"), stream.feed(b"st-0000EXAMPLE b"), stream.finish()
    (b'a ', b'[key] b', b'')
    """

    def __init__(self, scrubber: Scrubber) -> None:
        self._scrubber = scrubber
        self._begins = frozenset(form[:length] for form in scrubber.forms for length in range(1, len(form)))
        self._longest = max((len(form) for form in scrubber.forms), default=0)
        self._before = b""  # the end of what was passed on
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        """Take a chunk; returns what can be written now, possibly nothing."""
        data = self._before + self._held + chunk
        return self._pass(data, self._cut(data.decode("latin-1")))

    def finish(self) -> bytes:
        """What was held back; the stream has ended."""
        data = self._before + self._held
        return self._pass(data, len(data))

    def _pass(self, data: bytes, cut: int) -> bytes:
        begin = len(self._before)
        whole = self._scrubber.content(data[:cut])
        # Otherwise what was passed on and what follows make a key of the two: only the rest of it can still go.
        fits = whole.startswith(self._before)
        scrubbed = whole[begin:] if fits else self._scrubber.content(data[begin:cut])
        self._held = data[cut:]
        self._before = (self._before + scrubbed)[-_CONTEXT:]
        return scrubbed

    def _cut(self, text: str) -> int:
        """Where the part begins that has to wait: the begin of a key, or a key that the next chunk may make longer."""
        end = cut = len(text)
        for length in range(min(self._longest - 1, end), 0, -1):
            if text[end - length :] in self._begins:
                cut = end - length
                break
        begun = _BEGUN.search(text, max(0, end - LONGEST - 3))
        cut = min(cut, begun.start()) if begun is not None else cut
        if cut == end:
            return end
        near = max(0, cut - self._longest - LONGEST)
        for begin, over, _, _ in reversed(self._scrubber.spans(text[near:])):
            if near + begin < cut < near + over:
                cut = near + begin
        return max(cut, len(self._before))
