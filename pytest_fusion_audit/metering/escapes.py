r"""Escapes of URLs, JSON, Python and HTML: resolve them to find what they hide, and know where it stood.

One escape is one character. ``\n`` and its like are left alone: no key holds what they stand for.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMED: Final = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
# At most so many texts are looked at, the original included; JSON within a URL within JSON takes four.
_LEVELS: Final = 16
# Each begins with the one character that the search can skip to, and is tried only where that stands in the text.
_REFERENCE: Final = re.compile(
    r"&(?:#0*(?P<decimal>[1-9][0-9]{0,6})|#[xX]0*(?P<hex>[0-9A-Fa-f]{1,6})|(?P<named>amp|lt|gt|quot|apos));"
)
_ANYTHING: Final = (
    ("%", re.compile(r"%(?P<hex>[0-9A-Fa-f]{2})")),
    ("\\", re.compile(r"\\(?:u(?P<json>[0-9A-Fa-f]{4})|x(?P<hex>[0-9A-Fa-f]{2})|(?P<plain>[\"'/\\]))")),
    ("&", _REFERENCE),
)
# The same for printable ASCII but quotes and backslashes, also where the backslash was escaped again: what a key of
# letters, digits and dashes can hide behind. Text that is full of \" and \n costs little here.
_PRINTABLE: Final = (
    ("%", re.compile(r"%(?P<hex>[2-7][0-9A-Fa-f])")),
    ("\\", re.compile(r"\\(?:(?:\\*u00|\\*x)(?P<hex>[2-7][0-9A-Fa-f])|\\*(?P<plain>/))")),
    ("&", _REFERENCE),
)


def resolved(text: str, *, anything: bool = False) -> Iterator[Resolved]:
    r"""Resolve a text's escapes level by level, in every order of kinds, until nothing is left to resolve.

    Args:
        text: any text.
        anything: resolve escapes of all characters instead of those of printable ASCII only.

    >>> [level.text for level in resolved(r"%73k\u002dtest%252Fa")]
    ['sk\\u002dtest%2Fa', '%73k-test%252Fa', 'sk\\u002dtest/a', 'sk-test%2Fa', 'sk-test/a']
    """
    signs = _ANYTHING if anything else _PRINTABLE
    if not any(sign in text for sign, _ in signs):
        return
    seen = {text}
    levels: list[tuple[str, Resolved | None]] = [(text, None)]
    for held, outer in levels:  # grows while it is walked
        for sign, pattern in signs:
            if sign in held and len(levels) < _LEVELS and (plain := pattern.sub(_character, held)) not in seen:
                seen.add(plain)
                level = Resolved(plain, held, pattern, outer)
                levels.append((plain, level))
                yield level


class Resolved:
    """A text with one kind of escapes resolved, that knows where its characters come from."""

    def __init__(self, text: str, escaped: str, pattern: re.Pattern[str], outer: Resolved | None) -> None:
        self.text = text
        self._escaped, self._pattern, self._outer = escaped, pattern, outer
        self._offsets: tuple[list[int], list[int]] | None = None

    def origin(self, index: int) -> int:
        """Position in the original text of a position in this one, as a begin or as an end.

        >>> level, = resolved("a%2Db")
        >>> [level.origin(index) for index in range(4)]
        [0, 1, 4, 5]
        """
        if self._offsets is None:
            spans = [match.span() for match in self._pattern.finditer(self._escaped)]
            longer = list(accumulate((end - begin - 1 for begin, end in spans), initial=0))
            self._offsets = [begin - before for (begin, _), before in zip(spans, longer, strict=False)], longer
        at, longer = self._offsets
        index += longer[bisect_left(at, index)]
        return index if self._outer is None else self._outer.origin(index)


def _character(match: re.Match[str]) -> str:
    kind = match.lastgroup or "plain"
    found = match[kind]
    if kind == "named":
        return _NAMED[found]
    if kind == "plain":
        return found
    code = int(found, 10 if kind == "decimal" else 16)
    return chr(code) if code < 0x110000 else "\ufffd"
