"""The forms in which one known key can stand in a text: as it is, and in base64 at any offset."""

from __future__ import annotations

import base64
from typing import Final

#: Shorter values are not scrubbed: they stand in ordinary text by chance, and no maker's key is that short.
SHORTEST: Final = 8


def plain_forms(value: str) -> tuple[str, ...]:
    """Texts that show the key without any escaping: itself, its UTF-8 bytes read as Latin-1, base64 of it.

    >>> plain_forms("sk-test-0000")
    ('sk-test-0000', 'c2stdGVzdC0wMDAw', 'NrLXRlc3QtMDAwM', 'zay10ZXN0LTAwMD')
    """
    raw = value.encode("utf-8", "surrogatepass")
    cores = [core for offset in range(3) for core in _base64_cores(raw, offset)]
    return tuple(dict.fromkeys([value, raw.decode("latin-1"), *cores]))


def _base64_cores(raw: bytes, offset: int) -> tuple[str, str]:
    """The part of the base64 text that is the same whatever stands around the key, in both alphabets.

    Args:
        raw: the key.
        offset: how many bytes, modulo 3, stand before it in what was encoded.
    """
    encoded = base64.b64encode(bytes(offset) + raw).decode("ascii")
    core = encoded[-(-offset * 8 // 6) : (offset + len(raw)) * 8 // 6]
    return core, core.replace("+", "-").replace("/", "_")


def needs_escaping(form: str) -> bool:
    """Whether an ordinary writer of JSON, HTML or ``repr`` spells the form otherwise than it is."""
    return not form.isascii() or any(character in "\"'\\" for character in form)
