"""Take keys out of whatever is about to be written or shown: by value, by encoded form, and by shape.

`Scrubber.text` is for everything that people or machines read: logs, errors, reports, snapshots of settings.
`Scrubber.content` is for what a model was asked and what it answered. There a URL with a password in it may be the
task itself, so only the session's own keys and what is unmistakably a maker's key are taken out: what is graded must be
what is stored, and what is stored must still be what was said.

Known limits: base64 that is wrapped into lines, hexadecimal dumps, and a key whose pieces stand in different events of
a stream (the text put together from them is scrubbed by whoever writes it).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from pytest_fusion_audit.metering.escapes import resolved
from pytest_fusion_audit.metering.key_forms import SHORTEST, needs_escaping, plain_forms
from pytest_fusion_audit.metering.key_shapes import EVERYWHERE, MAKERS_KEY, Shape
from pytest_fusion_audit.metering.secret import MARK, Secret

Kind = Literal["value", "shape"]
_Bytes = bytes  # `Scrubber.bytes` hides the name inside the class


class Scrubber:
    """Replaces keys by ``[key]``; a text without keys comes back as it is, a scrubbed one stays as it is.

    Args:
        values: the keys of the session, also as a mapping from the variable that holds each. Blanks around a value do
            not count; values shorter than 8 characters are left to their shape.

    >>> Scrubber(["sk-test-0000EXAMPLE"]).text("401: key sk-test-0000EXAMPLE is wrong")
    '401: key [key] is wrong'
    """

    def __init__(self, values: Iterable[str | Secret] | Mapping[str, str | Secret] = ()) -> None:
        named = values.items() if isinstance(values, Mapping) else (("", value) for value in values)
        self._names: dict[str, str] = {}
        cut: set[str] = set()
        for name, value in named:
            shown = (value.reveal() if isinstance(value, Secret) else value).strip()
            if len(shown) >= SHORTEST:
                cut.add(
                    rf"{re.escape(shown[:4])}[!-~]{{0,{len(shown)}}}\.\.\.[!-~]{{0,{len(shown)}}}{re.escape(shown[-4:])}"
                )
                for form in plain_forms(shown):
                    self._names.setdefault(form, name)
        # The longest first: a key that holds another one goes as a whole.
        self.forms = tuple(sorted(self._names, key=lambda form: (-len(form), form)))
        # A key out of whose middle pytest has cut some characters, to make a line of a comparison shorter.
        self._cut = re.compile("|".join(sorted(cut))) if cut else None
        self._anything = any(needs_escaping(form) for form in self.forms)

    def text(self, text: str) -> str:
        """Text without keys of any kind."""
        scrubbed = self._settled(text, EVERYWHERE)
        return self._cut.sub(MARK, scrubbed) if self._cut is not None and "..." in scrubbed else scrubbed

    def bytes(self, data: _Bytes) -> _Bytes:
        """Bytes without keys of any kind, whatever their encoding."""
        return self._bytes(data, EVERYWHERE)

    def content(self, data: _Bytes) -> _Bytes:
        """A body of model traffic without the session's keys and without makers' keys."""
        return self._bytes(data, (MAKERS_KEY,))

    def deep(self, value: Any) -> Any:
        """JSON-like builtins without keys, names of fields included; other objects are returned as they are."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, _Bytes):
            return self.bytes(value)
        if isinstance(value, dict):
            return {self.deep(name): self.deep(entry) for name, entry in value.items()}
        if isinstance(value, list):
            return [self.deep(entry) for entry in value]
        if type(value) is tuple:
            return tuple(self.deep(entry) for entry in value)
        return value

    def spans(self, text: str) -> list[tuple[int, int, Kind, str]]:
        """Where `content` finds keys: begin, end, by what, and the variable's name where it is known; in order."""
        found: list[tuple[int, int, Kind, str]] = []
        for form in self.forms:
            found += [(at, at + len(form), "value", self._names[form]) for at in _places(form, text)]
        found += [(begin, end, "value", self._names[form]) for begin, end, form in self._hidden(text)]
        if "sk-" in text:
            found += [
                (*match.span(), "shape", "")
                for match in MAKERS_KEY.pattern.finditer(text)
                if not any(begin < match.end() and match.start() < end for begin, end, *_ in found)
            ]
        return sorted(found, key=lambda span: (span[0], -span[1]))

    def _bytes(self, data: _Bytes, shapes: tuple[Shape, ...]) -> _Bytes:
        text = data.decode("latin-1")  # one character a byte; keys are looked for in the same disguise
        scrubbed = self._settled(text, shapes)
        return data if scrubbed is text else scrubbed.encode("latin-1")

    def _settled(self, text: str, shapes: tuple[Shape, ...]) -> str:
        """Scrub until nothing changes: what a mark leaves beside it can be a key again. Every round is shorter."""
        while True:
            scrubbed = text
            for form in self.forms:
                if form in scrubbed:
                    scrubbed = scrubbed.replace(form, MARK)
            if self.forms:
                scrubbed = self._without_hidden(scrubbed)
            lower = scrubbed.lower()
            for shape in shapes:
                scrubbed = shape.scrub(scrubbed, lower)
            if scrubbed == text:
                return text
            text = scrubbed

    def _without_hidden(self, text: str) -> str:
        hidden = self._hidden(text)
        if not hidden:
            return text
        kept, at = [], 0
        for begin, end, _ in hidden:
            if begin >= at:
                kept.append(text[at:begin])
                at = end
        return MARK.join([*kept, text[at:]])

    def _hidden(self, text: str) -> list[tuple[int, int, str]]:
        """Keys behind escapes: begin, end, form; in order."""
        found = [
            (level.origin(at), level.origin(at + len(form)), form)
            for level in resolved(text, anything=self._anything)
            for form in self.forms
            if form in level.text
            for at in _places(form, level.text)
        ]
        return sorted(found, key=lambda span: (span[0], -span[1]))


def _places(form: str, text: str) -> Iterator[int]:
    at = text.find(form)
    while at >= 0:
        yield at
        at = text.find(form, at + 1)
