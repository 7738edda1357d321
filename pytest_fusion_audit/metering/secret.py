"""A key in memory: shown nowhere, compared in constant time, never pickled, revealed by one call that greps well."""

from __future__ import annotations

import hmac
from typing import Final, NoReturn

#: What stands where a key stood. Shorter than any value that is scrubbed, so that it can hold none.
MARK: Final = "[key]"


class Secret:
    """A wrapper around a key, safe in tracebacks with locals, assertion messages, logs and ``vars()``.

    Not a ``str``: pytest would show the text of a failed comparison, and ``json.dumps`` would write it.

    >>> key = Secret("sk-test-0123456789", "OPENAI_API_KEY")
    >>> key, f"{key}", "%s" % key
    (<key of OPENAI_API_KEY>, '[key]', '[key]')
    >>> key.reveal()
    'sk-test-0123456789'
    """

    __slots__ = ("__value", "name")

    def __init__(self, value: str, name: str = "") -> None:
        self.__value = value
        self.name = name

    def reveal(self) -> str:
        """The key itself; give it to a header and to nothing that outlives it."""
        return self.__value

    def __repr__(self) -> str:
        return f"<key of {self.name}>" if self.name else "<key>"

    def __str__(self) -> str:
        return MARK

    def __format__(self, spec: str) -> str:
        return MARK

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self.__value.encode(), other.__value.encode())

    def __hash__(self) -> int:
        return hash((Secret, self.__value))

    def __bool__(self) -> bool:
        return bool(self.__value)

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not pickled: read it again from its variable where it is needed")
