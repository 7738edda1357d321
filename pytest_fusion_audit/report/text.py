"""The scorecard as a terminal prints it: validity first, then gates, headline, dimensions, total."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.report.headline import headline, incomplete, mode_label, rows_text
from pytest_fusion_audit.report.numbers import money

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_fusion_audit.rubric.loading import Rubric

_GUTTER = 11
#: Lines a warning may take here; the document has the rest. Errors are never cut.
_WARNING_LINES = 2
#: Reasons whose first words say enough beside a gate.
_KINDS = ("needs ", "withheld", "not held out", "held-out status", "not shown")
_CRITERION_REASON = re.compile(r"(?P<id>[0-9.]+) .*?: scored (?P<score>[0-2]) \((?P<why>.*?)\)(?:; bar|$)")
#: Findings of this code are many and of one kind; the document lists them one by one.
_PUBLISHED = "published_score_unsupported"
_BOLD, _RED, _GREEN, _YELLOW, _OFF = "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"


def scorecard_lines(scorecard: Mapping[str, Any], *, colour: bool = False, width: int = 80) -> Iterator[str]:
    """Lines of the terminal block, without line ends.

    Args:
        scorecard: the JSON of schema ``fusion-scorecard/1``.
        colour: whether to use ANSI colours; plain text otherwise.
        width: columns of the terminal; lines are wrapped, never cut, and only a longer word sticks out.

    Yields:
        Title, validity, gates, uplift, the ten dimensions with a digit per criterion, total, and how to read it.
    """
    paint = _Paint(colour=colour)
    width = max(width, 40)
    for line in _title(scorecard, width):
        yield paint(line, _BOLD)
    if stopped := incomplete(scorecard):
        yield from _wrapped("", stopped, width, paint, _RED)
    yield from _validity(scorecard["validity"], width, paint)
    yield from _gates(scorecard["gates"], width, paint)
    yield from _wrapped("uplift", headline(scorecard), width, paint)
    yield from _dimensions(scorecard, width)
    yield from _total(scorecard, width, paint)
    yield from _legend(scorecard, width)


def findings_lines(findings: Sequence[Mapping[str, Any]], rubric: Rubric, width: int = 80) -> Iterator[str]:
    """The table of dimensions from the findings of a test report: the scorecard's own when all items ran.

    Args:
        findings: scores as `rubric.score.Score.to_json` writes them, in any order.
        rubric: the rubric they were scored by; what it does not know is left out.
        width: columns of the terminal.
    """
    scored = {row["id"]: row for row in findings}
    known = [scored[criterion.id] for criterion in rubric.criteria if criterion.id in scored]
    missing = len(rubric.criteria) - len(known)
    yield f" findings  {len(known)} of {len(rubric.criteria)} criteria" + (
        f"; {missing} items did not run, their dimensions are not whole" if missing else ""
    )
    dimensions = []
    for dimension in rubric.dimensions:
        rows = [row for row in known if row["id"].split(".")[0] == str(dimension.id)]
        points = dimension.weight * sum(row["score"] for row in rows) / (2 * len(rubric.dimension(dimension.id)) or 1)
        dimensions.append({"id": dimension.id, "title": dimension.title, "weight": dimension.weight, "score": points})
    yield from _dimensions({"dimensions": dimensions, "criteria": known}, width)


class _Paint:
    def __init__(self, *, colour: bool) -> None:
        self._colour = colour

    def __call__(self, text: str, code: str | None) -> str:
        return f"{code}{text}{_OFF}" if self._colour and code else text


def _title(scorecard: Mapping[str, Any], width: int) -> list[str]:
    text = f" fusion scorecard · {scorecard['run_id']} · {mode_label(scorecard)} "
    return [text.center(width, "─")] if len(text) < width else textwrap.wrap(text.strip(), width)


def _wrapped(label: str, text: str, width: int, paint: _Paint, code: str | None = None) -> Iterator[str]:
    """A labelled paragraph; continuation lines hang under its first word."""
    first = f" {label:<{_GUTTER - 2}} "
    lines = textwrap.wrap(
        text,
        width=width,
        initial_indent=first,
        subsequent_indent=" " * _GUTTER,
        break_long_words=False,
        break_on_hyphens=False,
    )
    for line in lines or [first.rstrip()]:
        yield paint(line, code)


def _validity(findings: Sequence[Mapping[str, Any]], width: int, paint: _Paint) -> Iterator[str]:
    if not findings:
        yield from _wrapped("validity", "nothing found", width, paint)
        return
    errors = [finding for finding in findings if finding["severity"] == "error"]
    warnings = [finding for finding in findings if finding["severity"] == "warning"]
    yield from _wrapped("validity", f"{_count(errors, 'error')}, {_count(warnings, 'warning')}", width, paint)
    for finding in errors:
        yield from _wrapped("  error", f"{finding['code']}: {finding['message']}", width, paint, _RED)
    for finding in warnings:
        if finding["code"] != _PUBLISHED:
            lines = list(_wrapped("  warning", f"{finding['code']}: {finding['message']}", width, paint, _YELLOW))
            yield from lines[:_WARNING_LINES]
            if len(lines) > _WARNING_LINES:
                yield paint(f"{'':<{_GUTTER}}…", _YELLOW)
    published = [finding["affects"][0] for finding in warnings if finding["code"] == _PUBLISHED]
    if published:
        text = f"{_PUBLISHED}: published higher than this evidence allows on {', '.join(published)}"
        yield from _wrapped("  warning", text, width, paint, _YELLOW)


def _count(items: Sequence[Any], word: str) -> str:
    return f"{len(items)} {word}" if len(items) == 1 else f"{len(items)} {word}s"


def _gates(gates: Mapping[str, Mapping[str, Any]], width: int, paint: _Paint) -> Iterator[str]:
    label = "gates"
    for name, gate in gates.items():
        if gate["passed"]:
            yield from _wrapped(label, f"{name} open", width, paint, _GREEN)
        else:
            would = " (would pass)" if gate["would_pass_simulated"] else ""
            yield from _wrapped(label, f"{name} shut{would}: {_short(gate['reasons'])}", width, paint)
        label = ""


def _short(reasons: Sequence[str]) -> str:
    """The gist of each reason; figures, evidence files and next commands stand in the document and in the JSON."""
    codes = [reason.split(":")[0].removeprefix("validity ") for reason in reasons if reason.startswith("validity ")]
    other = [_gist(reason) for reason in reasons if not reason.startswith("validity ")]
    errors = [f"errors: {', '.join(dict.fromkeys(codes))}"] if codes else []
    return "; ".join([*other, *errors]) or "no reason recorded"


def _gist(reason: str) -> str:
    """Criterion, score and the kind of what is missing; a reason of another form up to its first colon.

    >>> _gist("7.3 Straggler policy: scored 0 (needs a drill: a straggling member); bar: 7.3 shipped; evidence: none")
    '7.3 at 0, needs a drill'
    """
    found = _CRITERION_REASON.match(reason)
    if found is None:
        return reason.split(":", maxsplit=1)[0]
    kind, _, _ = found["why"].partition(":")
    why = kind if kind.startswith(_KINDS) else found["why"]
    return f"{found['id']} at {found['score']}, {why}"


def _dimensions(scorecard: Mapping[str, Any], width: int) -> Iterator[str]:
    longest = max((len(dimension["title"]) for dimension in scorecard["dimensions"]), default=0)
    for dimension in scorecard["dimensions"]:
        rows = [row for row in scorecard["criteria"] if row["id"].split(".")[0] == str(dimension["id"])]
        digits = " ".join(str(row["score"]) for row in rows)
        idle = sum(row["status"] == "not_run" for row in rows)
        points = f"{dimension['score']:.1f}/{dimension['weight']}"
        line = f" {dimension['id']:>2} {dimension['title'].lower():<{longest}} {points:>8}   {digits}"
        note = f"   {idle} not run" if idle else ""
        if len(line + note) <= width:
            yield line + note
        else:  # narrow terminal: the digits on a line of their own
            yield f" {dimension['id']:>2} {dimension['title'].lower()} {points}"
            yield f"      {digits}{note}"


def _total(scorecard: Mapping[str, Any], width: int, paint: _Paint) -> Iterator[str]:
    total, coverage, spend = scorecard["total"], scorecard["coverage"], scorecard["spend"]
    kind = {"imported": "imported, not claim-eligible", "offline": "simulated points stand apart"}
    text = f"{total['score']:.1f} of {total['out_of']}"
    if scorecard["mode"] in kind:
        text += f" ({kind[scorecard['mode']]})"
    text += f"; this evidence could reach {total['reachable']:.1f}; {total['measured_criteria']} criteria measured"
    for name, words in (("simulated", "simulated"), ("attested", "attested"), ("by_tool", "done by the tool")):
        if total[name]:
            text += f"; {total[name]:.1f} {words}"
    yield from _wrapped("total", text, width, paint, _BOLD)
    yield from _wrapped("rows", rows_text(coverage), width, paint)
    spent = money(spend["spent_usd"]) if spend["spent_usd"] is not None else "not measured"
    estimate = spend.get("estimated_usd")
    yield from _wrapped(
        "spend", f"{spent}" + (f" (estimated {money(estimate)})" if estimate is not None else ""), width, paint
    )


def _legend(scorecard: Mapping[str, Any], width: int) -> Iterator[str]:
    text = (
        "2 met, 1 measured but below the bar or not held out, 0 absent or not run, in the order of the rubric; "
        f"what each rests on and what it lacks: audit/{scorecard['run_id']}/rubric-scorecard.md"
    )
    yield from _wrapped("reading", text, width, _Paint(colour=False))
