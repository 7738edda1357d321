"""The shapes that give a key away although its value is unknown, each with what it must leave alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pytest_fusion_audit.metering.secret import MARK

#: Longest run of characters that is taken for one key.
LONGEST: Final = 400
_MARK = re.escape(MARK)
#: What may stand before a key, at most six characters: no letter or digit (`task-…`, `disk-…`), unless it ends an
#: escape (`\n`, `%20`).
FREE: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4}))"
# A vendor's word after `sk-`, or one long run with digits. Words joined by dashes, class names such as
# `sk-container-id-1` and `sk-learn` have neither.
_MAKERS = (
    rf"(?:ant|proj|svcacct|admin|or|live|test)-(?=[A-Za-z_*-]{{0,{LONGEST}}}[0-9])[A-Za-z0-9_*-]{{8,{LONGEST}}}"
    rf"|(?=[A-Za-z]{{0,{LONGEST}}}[0-9])[A-Za-z0-9]{{16,{LONGEST}}}"
)
_LOOSE = rf"(?=(?:[A-Za-z_*-]{{0,{LONGEST}}}[0-9]){{4}})[A-Za-z0-9_*-]{{12,{LONGEST}}}"
# Where a value ends in a URL, a header, JSON, XML or a repr.
_END = r"&#\s\"'<>\\;%"
_PARAMETER = (
    r"(?:[a-z0-9]+[_-])?(?:api[_-]?key|key|token|secret|password|signature|sig)(?:=|%3D))"
    rf"(?!{_MARK}(?:[{_END}]|$))[^{_END}]+"
)
_PARAMETER_HINTS = (("key=",), ("token=",), ("secret=",), ("password=",), ("sig=",), ("signature=",), ("%3d",))


@dataclass(frozen=True, slots=True)
class Shape:
    """A pattern, of which group 1, where there is one, is put back before the mark.

    Attributes:
        pattern: what is replaced.
        hints: the pattern is only tried where all parts of one of these stand in the text, lower case.
    """

    pattern: re.Pattern[str]
    hints: tuple[tuple[str, ...], ...]

    def scrub(self, text: str, lower: str) -> str:
        """The text with the mark where the shape stood; ``lower`` is the text in lower case."""
        for hint in self.hints:
            if all(part in lower for part in hint):
                return self.pattern.sub(_marked, text)
        return text


def _marked(match: re.Match[str]) -> str:
    return (match[1] if match.re.groups else "") + MARK


#: A maker's key and nothing else.
MAKERS_KEY: Final = Shape(re.compile(rf"sk-(?<={FREE}sk-)(?:{_MAKERS})", re.ASCII), (("sk-",),))

#: Everything of the kind that has no business in a log, an error, a report or a snapshot of settings.
EVERYWHERE: Final = (
    Shape(re.compile(rf"sk-(?<={FREE}sk-)(?:{_MAKERS}|{_LOOSE})", re.ASCII), (("sk-",),)),
    # Authorization: Bearer …; words are left alone, a token has a digit or a padding.
    Shape(
        re.compile(
            r"(b(?:earer|asic)(?: |\+|%20){1,4})(?=[a-z._~+/-]{0,400}[0-9=])[a-z0-9._~+/=-]{12,}",
            re.ASCII | re.IGNORECASE,
        ),
        (("bearer",), ("basic",)),
    ),
    # https://user:password@host, also with the slashes of JSON.
    Shape(
        re.compile(r"(:(?:\\?/){2})[^\s/@:\"'<>\\]*:[^\s/@\"'<>]+(?=@)", re.ASCII),
        (("://", "@"), (":\\/\\/", "@")),
    ),
    # The same percent-encoded, as in a query.
    Shape(
        re.compile(
            r"(%3A%2F%2F)(?:(?!%2F|%3A|%40)[^\s/@\"'<>&])*%3A(?:(?!%2F|%40)[^\s/@\"'<>&])+(?=%40)",
            re.ASCII | re.IGNORECASE,
        ),
        (("%3a%2f%2f", "%40"),),
    ),
    # ?api_key=…, also with an escaped ampersand before it.
    Shape(re.compile(rf"([?&;%](?:(?<=[?&;])|3F|26){_PARAMETER}", re.ASCII | re.IGNORECASE), _PARAMETER_HINTS),
    Shape(re.compile(rf"(\\u0026{_PARAMETER}", re.ASCII | re.IGNORECASE), (("\\u0026",),)),
    # x-api-key: …, ('api-key', b'…'), "authorization": "…"; words and names of variables are left alone.
    Shape(
        re.compile(
            r"((?:api-key|authorization)[\"'\\]*\s*[:=,]\s*b?[\"'\\]*)"
            rf"(?!{_MARK}|\[secure\])(?![a-z_]+(?:[^a-z0-9_.~+/=-]|$))[a-z0-9_.~+/=*-]{{8,}}",
            re.ASCII | re.IGNORECASE,
        ),
        (("api-key",), ("authorization",)),
    ),
)
