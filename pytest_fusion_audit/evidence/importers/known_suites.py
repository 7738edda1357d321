"""Facts about public benchmarks, and how to tell a benchmark by its task ids.

A suite that is not listed here is not guessed at: whether it is public, agentic or about code stays unknown.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pydantic import JsonValue

Family: TypeAlias = Literal["single-shot code", "multi-turn edit", "repository issue", "terminal", "reasoning"]

CODE: Family = "single-shot code"

#: Name as a file may spell it (lower case, anywhere at the start) -> family, agentic, coding. All are public.
#: Order matters: the first pattern that fits decides.
_SUITES: tuple[tuple[re.Pattern[str], Family, bool, bool], ...] = (
    (re.compile(r"(?:live[ _-]?code[ _-]?bench|lcb)\b"), CODE, False, True),
    (re.compile(r"(?:aider[ _-]?)?polyglot\b"), "multi-turn edit", False, True),
    (re.compile(r"swe[ _-]?bench"), "repository issue", True, True),
    (re.compile(r"terminal[ _-]?bench"), "terminal", True, True),
    (
        re.compile(r"(?:human[ _-]?eval|mbpp|evalperf|eval[ _-]?plus|bigcodebench|code[ _-]?contests)"),
        CODE,
        False,
        True,
    ),
    (re.compile(r"crux[ _-]?eval"), "reasoning", False, True),
    (re.compile(r"(?:gsm[ _-]?8k|gpqa|mmlu|arc[ _-]?challenge)"), "reasoning", False, False),
)

#: Suites of one's own that borrow a benchmark's name.
_OWN = re.compile(r"\b(?:synthetic|private|internal|fixtures?|demo|toy|mock|own)\b")

#: Suite -> shape of its ids. LeetCode's numbers stand beside AtCoder and Codeforces ids in LiveCodeBench; only the
#: range its windows use is accepted, because other suites number their tasks from 0.
_IDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("livecodebench", re.compile(r"(?:abc|arc|agc)\d{3}_[a-z]\d?|\d{3,4}_[A-Z]\d?|2[7-9]\d\d|3\d\d\d")),
    ("polyglot", re.compile(r"(?:python|go|rust|java|javascript|cpp)/[a-z0-9-]+")),
    ("humaneval", re.compile(r"HumanEval/\d+")),
    ("mbpp+", re.compile(r"Mbpp/\d+")),
    ("swebench-verified", re.compile(r"[A-Za-z0-9.-]+__[A-Za-z0-9._-]+-\d+")),
    ("cruxeval", re.compile(r"sample_\d+")),
)


def facts(suite: str) -> Mapping[str, JsonValue] | None:
    """Facts about a suite by its name, None when the name is not known.

    FusionKit's polyglot suite is an adaptation of Aider's: several turns of editing without a tool loop.

    >>> facts("LiveCodeBench code generation")
    {'public': True, 'agentic': False, 'coding': True, 'family': 'single-shot code'}
    >>> facts("my own tasks") is None
    True
    """
    name = suite.lower()
    if _OWN.search(name.replace("_", "-")):
        return None
    for pattern, family, agentic, coding in _SUITES:
        if pattern.match(name):
            return {"public": True, "agentic": agentic, "coding": coding, "family": family}
    return None


def suite_by_ids(ids: Collection[str]) -> str | None:
    """Suite to which more than half of the ids belong by their shape, else None.

    >>> suite_by_ids(["abc386_e", "arc190_a", "1873_A", "3550"])
    'livecodebench'
    >>> suite_by_ids(["t1", "t2"]) is None
    True
    """
    found = Counter(suite for task in ids for suite, shape in _IDS if shape.fullmatch(task))
    for suite, count in sorted(found.items(), key=lambda item: (-item[1], item[0])):
        return suite if 2 * count > len(ids) else None
    return None
