"""Names that people and tools write: two spellings that read alike are one suite, one split, one task.

Joins go by the exact id, as it is recorded. What has to hold *whatever* the spelling (a locked task is read once, a
task counts once, a registered split is that split) is decided on plain names: a trailing blank, another case or a
character without width must not open a door.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

#: Unicode categories of characters that nobody sees: formatting (zero-width space, joiners, BOM, soft hyphen), control.
_UNSEEN = frozenset({"Cf", "Cc"})
_WORD = re.compile(r"[^\W\d_]+")


@lru_cache(maxsize=65_536)
def plain(name: str) -> str:
    r"""The name without case, outer blanks, doubled blanks, compatibility forms and characters nobody sees.

    >>> plain("Locked "), plain("abc\u200b387_b"), plain("ＤＥＶ"), plain("a  b")
    ('locked', 'abc387_b', 'dev', 'a b')
    """
    text = unicodedata.normalize("NFKC", name).casefold()
    seen = (sign for sign in text if sign.isspace() or unicodedata.category(sign) not in _UNSEEN)
    return " ".join("".join(seen).split())


def place(suite: str, split: str) -> tuple[str, str]:
    """Suite and split by their plain names, to compare two places with.

    >>> place("LiveCodeBench", "Locked ") == place("livecodebench", "locked")
    True
    """
    return plain(suite), plain(split)


def first_word(name: str) -> str:
    """The first word of a plain name; digits and signs end it.

    >>> first_word("Dev-2"), first_word("baseline-8550"), first_word("held out"), first_word("2024")
    ('dev', 'baseline', 'held', '')
    """
    found = _WORD.search(plain(name))
    return found[0] if found else ""
