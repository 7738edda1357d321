"""Reading a request field by field, so that no field is lost: what nobody asked for is refused by its name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

from pytest_fusion_audit.errors import FusionAuditError

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = dict[str, Any]


class TranslationError(FusionAuditError):
    """A field that the other dialect cannot say; the message names it and never quotes a prompt."""


def refuse(where: str, what: str) -> NoReturn:
    """Refuse to translate.

    Raises:
        TranslationError: always.
    """
    raise TranslationError(f"{where}: {what}; it was not translated")


class Fields:
    """An object whose every field has to be taken.

    Args:
        value: the object.
        where: its place in the request, ``messages[2]``; empty for the request itself.

    Raises:
        TranslationError: it is not an object.
    """

    def __init__(self, value: Any, where: str = "") -> None:
        if not isinstance(value, dict):
            refuse(where or "the request", "is not an object")
        self._left: Json = dict(value)
        self._where = where

    def at(self, name: str) -> str:
        """The place of a field."""
        return f"{self._where}.{name}" if self._where else name

    def take(self, name: str) -> Any:
        """The value of a field, None when it is absent or null."""
        return self._left.pop(name, None)

    def text(self, name: str) -> str:
        """A text that has to be there.

        Raises:
            TranslationError: it is absent or something else.
        """
        value = self.take(name)
        if not isinstance(value, str):
            refuse(self.at(name), "is not a text")
        return value

    def word(self, name: str, words: Mapping[str, str]) -> str | None:
        """A word in the other dialect's; None when it is absent.

        Raises:
            TranslationError: a word that the other dialect does not have.
        """
        value = self.take(name)
        if value is None:
            return None
        if not isinstance(value, str) or value not in words:
            refuse(self.at(name), f"{value!r:.40} has no counterpart in the other dialect")
        return words[value]

    def kind(self, *allowed: str | None) -> str | None:
        """The ``type`` of an object.

        Raises:
            TranslationError: another type.
        """
        value = self.take("type")
        if value is not None and not isinstance(value, str):
            refuse(self.at("type"), "is not a text")
        if value not in allowed:
            refuse(self.at("type"), f"{value!r:.40} has no counterpart in the other dialect")
        return value

    def skip(self, *names: str) -> None:
        """Leave out fields that cannot change the answer."""
        for name in names:
            self._left.pop(name, None)

    def neutral(self, allowed: Mapping[str, tuple[Any, ...]]) -> None:
        """Leave out fields whose value says what the other dialect does anyway.

        Raises:
            TranslationError: another value.
        """
        for name, values in allowed.items():
            if (value := self.take(name)) is not None and value not in values:
                refuse(self.at(name), "cannot be said in the other dialect with this value")

    def end(self) -> None:
        """Refuse what is left; null says nothing and is left out.

        Raises:
            TranslationError: a field that nobody took.
        """
        for name, value in self._left.items():
            if value is not None:
                refuse(self.at(str(name)), "has no counterpart in the other dialect")


def items(value: Any, where: str) -> list[tuple[str, Any]]:
    """The entries of a list with their places.

    Raises:
        TranslationError: it is not a list.
    """
    if not isinstance(value, list):
        refuse(where, "is not a list")
    return [(f"{where}[{index}]", entry) for index, entry in enumerate(value)]


def arguments_object(text: Any, where: str) -> Json:
    """Arguments of a tool call as an object; no text at all is no arguments.

    Raises:
        TranslationError: they are not a JSON object.
    """
    if isinstance(text, str):
        try:
            value = json.loads(text, parse_constant=lambda _: 1 / 0) if text.strip() else {}
        except (ValueError, RecursionError, ZeroDivisionError):
            value = None
        if isinstance(value, dict):
            return value
    refuse(where, "is not a JSON object in a text")
