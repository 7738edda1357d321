"""The scorecard as a document: what can be claimed, what stands against it, and all criteria with their reasons.

It holds no prompt and no answer: the scorecard it is made from has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.report.headline import headline, incomplete, mode_label, rows_text
from pytest_fusion_audit.report.numbers import figure, money

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def rubric_scorecard_md(scorecard: Mapping[str, Any]) -> str:
    """Markdown of a scorecard, with a trailing newline.

    Args:
        scorecard: the JSON of schema ``fusion-scorecard/1``.
    """
    sections = (
        _head(scorecard),
        _validity(scorecard["validity"]),
        _gates(scorecard["gates"]),
        _dimensions(scorecard),
        _criteria(scorecard["criteria"]),
        _published(scorecard.get("published", ())),
        _sources(scorecard.get("imports", ())),
    )
    return "\n".join(line for section in sections for line in section).rstrip("\n") + "\n"


def _head(scorecard: Mapping[str, Any]) -> Iterator[str]:
    total, coverage, spend = scorecard["total"], scorecard["coverage"], scorecard["spend"]
    yield f"# Fusion scorecard: {_cell(scorecard['run_id'])} ({mode_label(scorecard)})"
    yield ""
    if stopped := incomplete(scorecard):
        yield f"**{_cell(stopped)}**"
        yield ""
    yield f"- **Uplift:** {_cell(headline(scorecard))}"
    gates = ", ".join(f"{name} {'open' if gate['passed'] else 'shut'}" for name, gate in scorecard["gates"].items())
    yield f"- **Gates:** {gates or 'none in this rubric'}"
    yield (
        f"- **Total:** {total['score']:.1f} of {total['out_of']} ({mode_label(scorecard)}); this evidence could reach "
        f"{total['reachable']:.1f}; {total['measured_criteria']} of {len(scorecard['criteria'])} criteria measured"
    )
    yield (
        f"- **Apart:** simulated {total['simulated']:.1f}, attested {total['attested']:.1f}, "
        f"done by the tool {total['by_tool']:.1f}"
    )
    yield f"- **Rows:** {_cell(rows_text(coverage))}"
    yield f"- **Spend:** measured {money(spend['spent_usd'])}, estimated {money(spend.get('estimated_usd'))}"
    subject = scorecard["subject"]
    panel = ", ".join(subject.get("panel") or ()) or "panel not recorded"
    yield f"- **Subject:** {_cell(panel)}; hash {subject['hash'] or 'unknown'}"
    yield ""


def _validity(findings: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "## Validity"
    yield ""
    if not findings:
        yield "Nothing found."
        yield ""
        return
    yield "An error withholds the uplift and shuts gates A and C; a warning stands beside the number."
    yield ""
    yield from _table(
        ("severity", "code", "what", "affects", "evidence"),
        [
            (
                finding["severity"],
                f"`{finding['code']}`",
                finding["message"],
                ", ".join(finding["affects"]) or "-",
                _files(finding["evidence"]),
            )
            for finding in findings
        ],
    )


def _gates(gates: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield "## Gates"
    yield ""
    for name, gate in gates.items():
        state = "open" if gate["passed"] else "shut"
        rules = "the rules hold" if gate["would_pass_simulated"] else "the rules do not hold"
        yield f"- **{name} {state}** ({rules})"
        for reason in gate["reasons"]:
            yield f"  - {_cell(reason)}"
    yield ""


def _dimensions(scorecard: Mapping[str, Any]) -> Iterator[str]:
    yield "## Dimensions"
    yield ""
    yield from _table(
        ("dimension", "points", "of"),
        [
            (f"{dimension['id']} {dimension['title']}", f"{dimension['score']:.1f}", str(dimension["weight"]))
            for dimension in scorecard["dimensions"]
        ],
    )


def _criteria(criteria: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "## Criteria"
    yield ""
    yield from _table(
        ("id", "title", "status", "score", "class", "by", "measured", "a 2 needs", "reasons", "evidence"),
        [
            (
                row["id"],
                row["title"],
                row["status"].replace("_", " "),
                str(row["score"]),
                row["class"],
                row["by"],
                "; ".join(f"{name} = {figure(value)}" for name, value in row["measured"].items()) or "-",
                row["threshold"],
                "; ".join(row["reasons"]) or "-",
                _files(row["evidence"]),
            )
            for row in criteria
        ],
    )


def _published(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not rows:
        return
    yield "## Published against ours"
    yield ""
    yield from _table(
        ("id", "published", "ours", "why"),
        [
            (row["criterion"], "-" if row["published"] is None else str(row["published"]), str(row["ours"]), row["why"])
            for row in rows
        ],
    )


def _sources(files: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not files:
        return
    yield "## Sources and what stayed unknown"
    yield ""
    yield from _table(
        ("file", "format", "sha256", "unknown", "notes"),
        [
            (
                f"`{file['source']}`",
                file["format"],
                f"`{file['sha256'][:12]}`",
                "; ".join(file["unknown"]) or "-",
                "; ".join(f"{note['code']}: {note['message']}" for note in file["notes"]) or "-",
            )
            for file in files
        ],
    )


def _files(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "-"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield "| " + " | ".join(_cell(cell) for cell in row) + " |"
    yield ""


def _cell(text: str) -> str:
    """Text that cannot break a table row: task ids and file names are other people's."""
    return " ".join(text.replace("|", "\\|").split())
