"""Which rows of a promptfoo file are answers to the same case, and what each row says.

``testIdx`` counts cases over repeats and no row names its repeat. The JSON export says how many there were; in JSONL,
and where that does not fit, rows of equal description, variables and asserts are one case.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.evidence.finish_words import known_finish
from pytest_fusion_audit.evidence.importers.answers import Answer, content_sha256
from pytest_fusion_audit.evidence.importers.bank_stream import Digest
from pytest_fusion_audit.evidence.importers.base import printable
from pytest_fusion_audit.evidence.importers.outcomes import outcome_of
from pytest_fusion_audit.evidence.importers.rows import Repeats, checked_id, whole_characters

if TYPE_CHECKING:
    from pytest_fusion_audit.evidence.importers.promptfoo_file import Arm, ResultsFile
    from pytest_fusion_audit.evidence.importers.rows import Row
    from pytest_fusion_audit.evidence.records import Outcome

#: Words of ``failureReason``.
_ASSERT, _ERROR = 1, 2


@dataclass(slots=True)
class Case:
    """One task: what it is and its rows by (column, repeat).

    Attributes:
        content: digest of description, variables and asserts.
        variables: digest of the variables, None when there are none.
        checker: types of its asserts, None when it has none.
    """

    id: str
    content: str
    variables: str | None
    checker: str | None
    rows: dict[tuple[int, int], Row] = field(default_factory=dict)
    spoiled: set[tuple[int, int]] = field(default_factory=set)


@dataclass(slots=True)
class Cases:
    """Cases of a file in the order of their number, and the rows that stood there twice.

    Attributes:
        by_content: repeats were told by equal content, because the file does not number them.
    """

    cases: list[Case]
    repeats: Repeats
    by_content: bool


def cases_of(file: ResultsFile) -> Cases:
    """Group the rows of a file.

    Raises:
        ImportRefusedError: a row without its numbers, or a malformed field.
    """
    rows = sorted(((_number(row), row) for row in file.rows), key=lambda pair: pair[0])
    if file.repeat is not None:
        numbered = [((number // file.repeat,), number % file.repeat, row) for number, row in rows]
        if _consistent(numbered):
            return _grouped(numbered, by_content=False)
    # Without numbers the k-th test of equal content is its k-th repeat.
    turns: dict[str, list[int]] = {}
    for number, row in rows:
        seen = turns.setdefault(_content(row), [])
        if number not in seen:
            seen.append(number)
    told = [((_content(row),), turns[_content(row)].index(number), row) for number, row in rows]
    return _grouped(told, by_content=True)


def _number(row: Row) -> int:
    number = row.count("testIdx")
    if number is None:
        raise row.refuse("testIdx", "the number of a test")
    row.where = f"{row.where}, test {number}" if row.where else f"test {number}"
    return number


def _consistent(numbered: list[tuple[tuple[int], int, Row]]) -> bool:
    """Whether all rows of a case have the same content, as they must when the count of repeats is the right one."""
    contents: dict[tuple[int], str] = {}
    return all(contents.setdefault(case, _content(row)) == _content(row) for case, _, row in numbered)


def _case_parts(row: Row) -> tuple[str | None, Any, list[Any]]:
    case = row.child("testCase")
    description = case.text("description") if case is not None else None
    variables = row.data.get("vars") or (case.data.get("vars") if case is not None else None) or {}
    asserts = case.data.get("assert") if case is not None else None
    return description, variables, asserts if isinstance(asserts, list) else []


def _content(row: Row) -> str:
    description, variables, asserts = _case_parts(row)
    return content_sha256([description, variables, asserts])


def _grouped(rows: list[tuple[tuple[Any], int, Row]], *, by_content: bool) -> Cases:
    cases: dict[tuple[Any], Case] = {}
    alike: dict[tuple[Any], None] = {}
    repeats = Repeats()
    for key, repeat, row in rows:
        if key not in cases:
            _, variables, asserts = _case_parts(row)
            types = sorted({whole_characters(str(a.get("type"))) for a in asserts if isinstance(a, dict)})
            digest = content_sha256(variables) if variables else None
            cases[key] = Case("", _content(row), digest, " + ".join(types) or None)
        case = cases[key]
        place = (row.count("promptIdx") or 0, repeat)
        if place not in case.rows:
            case.rows[place] = row
        elif case.rows[place].data == row.data:
            alike[key] = None
        else:
            case.spoiled.add(place)
    _name(list(cases.values()))
    for key, case in cases.items():
        if key in alike:
            repeats.same.setdefault(case.id)
        if case.spoiled:
            repeats.spoiled.setdefault(case.id)
    return Cases(list(cases.values()), repeats, by_content)


def _name(cases: list[Case]) -> None:
    """A case is named by its description; where that is missing or not its own, by a digest of its content."""
    described = {id(case): _case_parts(next(iter(case.rows.values())))[0] for case in cases}
    counts = Counter(described.values())
    used: Counter[str] = Counter()
    for case in cases:
        row = next(iter(case.rows.values()))
        text = described[id(case)]
        name = text if text is not None and counts[text] == 1 else f"{text or 'case'}#{case.content[:8]}"
        used[name] += 1
        again = f" ({used[name]})" if used[name] > 1 else ""  # the very same case written twice
        case.id = checked_id(row.source, f"{name}{again}", f"{row.where}, field testCase.description")


@dataclass(slots=True)
class Counts:
    """What was met in the rows of a file."""

    unasserted: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    cached: list[str] = field(default_factory=list)
    finish_unknown: Counter[str] = field(default_factory=Counter)
    disagree: list[str] = field(default_factory=list)  # success and the grading say different things
    off_scale: list[str] = field(default_factory=list)


def answer_of(row: Row, case: Case, repeat: int, arm: Arm, counts: Counts) -> Answer:
    """What one row says, in our words."""
    response, grading = row.child("response"), row.child("gradingResult")
    errored = is_error(row)
    passed = row.flag("success")
    unasserted = not errored and not _asserted(row)
    if errored:
        counts.errors.append(case.id)
    elif unasserted:
        counts.unasserted.append(case.id)
    if grading is not None and not errored and grading.flag("pass") not in {None, passed}:
        counts.disagree.append(case.id)
    score = row.number("score")
    if score is not None and not 0 <= score <= 1:
        counts.off_scale.append(case.id)
        score = None
    finish = response.text("finishReason") if response is not None else None
    digest = None if errored else _digest(response)
    cached = response is not None and response.flag("cached") is True
    if cached:
        counts.cached.append(case.id)
    tokens = _tokens(row, response)
    latency = row.number("latencyMs", 0)
    spoiled = (arm.index, repeat) in case.spoiled
    return Answer(
        task=case.id,
        repeat=repeat,
        requested_model=arm.provider,
        parameters=arm.parameters or None,
        finish_reason=finish,
        outcome="provider_error" if errored else _outcome(finish, response, digest, counts),
        passed=None if unasserted else passed,
        unscored=unasserted or passed is None,
        spoiled=spoiled,
        score=None if errored or unasserted or spoiled else score,
        input_tokens=tokens.get("prompt"),
        cached_tokens=tokens.get("cacheReadInputTokens"),
        output_tokens=tokens.get("completion"),
        reasoning_tokens=tokens.get("reasoning"),
        cost_micro_usd=None if cached else _cost(row, response, known_usage=bool(tokens)),
        latency_s=None if cached or latency is None else latency / 1000,  # a reply out of a cache took no time
        chars=digest.chars if digest is not None else None,
        sha256=digest.sha256 if digest is not None else None,
    )


def is_error(row: Row) -> bool:
    """Whether provider or harness failed. ``error`` is no sign of it: a failed assert writes its reason there."""
    reason = row.count("failureReason")
    if reason is not None:
        return reason == _ERROR
    response = row.child("response")
    return row.data.get("gradingResult") is None and (response is None or response.data.get("error") is not None)


def _asserted(row: Row) -> bool:
    """Whether anything graded the answer: without asserts promptfoo writes a pass that says nothing."""
    grading = row.child("gradingResult")
    if grading is None:
        return False
    if grading.data.get("componentResults"):
        return True
    return grading.text("reason") != "No assertions" and bool(_case_parts(row)[2])


def _digest(response: Row | None) -> Digest | None:
    if response is None or "output" not in response.data:
        return None
    output = response.data["output"]
    if output is None:
        return Digest.of("")
    return Digest.of(output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, sort_keys=True))


def _outcome(finish: str | None, response: Row | None, digest: Digest | None, counts: Counts) -> Outcome | None:
    if response is not None and response.flag("isRefusal"):
        return "refused"
    if finish is not None and not known_finish(finish):
        counts.finish_unknown[printable(finish)] += 1
        return None
    return outcome_of(None, finish, blank=digest.blank if digest is not None else None)


def _tokens(row: Row, response: Row | None) -> dict[str, int]:
    """Token counts that were reported; all zero is how promptfoo writes that none were."""
    for usage in (response.child("tokenUsage") if response is not None else None, row.child("tokenUsage")):
        if usage is None or not (usage.count("prompt") or usage.count("completion")):
            continue
        counts = {name: value for name in ("prompt", "completion") if (value := usage.count(name)) is not None}
        details = usage.child("completionDetails")
        for name in ("reasoning", "cacheReadInputTokens"):
            value = details.count(name) if details is not None else None
            if value:  # zero is filled in
                counts[name] = value
        return counts
    return {}


def _cost(row: Row, response: Row | None, *, known_usage: bool) -> int | None:
    """Cost in micro-dollars. A zero counts where the provider wrote it beside a usage: promptfoo fills in zeros."""
    given = response.money("cost") if response is not None else None
    if given is None:
        return row.money("cost") or None
    return given if given or known_usage else None
