"""totals_disagree, unequal_denominators, verdict_unstable: whether rows and counts are what they say."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.arms import ArmRef, arm_summary, seeds_of
from pytest_fusion_audit.analysis.matrix import panel_of
from pytest_fusion_audit.analysis.validity.facts import compounds, kind, source_files, where
from pytest_fusion_audit.analysis.validity.finding import OF_ROWS, Finding, Severity, criteria, files, listed
from pytest_fusion_audit.analysis.validity.listed_members import missing_members
from pytest_fusion_audit.analysis.validity.pairs import pair
from pytest_fusion_audit.analysis.validity.split_roles import headline_splits
from pytest_fusion_audit.analysis.validity.turn_costs import costs_below_parts
from pytest_fusion_audit.evidence.container import Evidence, is_member, member_arm
from pytest_fusion_audit.evidence.records import (
    UNSCORED_OUTCOMES,
    Candidate,
    Claim,
    Fused,
    ImportedFile,
    Note,
    Verdict,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

OF_VERDICTS = criteria("1.1", "1.2", "1.3", "1.4", "2.5")
#: Two figures over the same rows agree to this; published rates are often rounded to three or four places.
SAME_RATE = 5e-4

#: What an importer met while reading, as findings: code of the note -> code, severity, criteria.
LIFTED: Mapping[str, tuple[Severity, tuple[str, ...]]] = {
    "duplicate_ids": ("error", OF_ROWS),
    "totals_disagree": ("error", OF_ROWS),
    "unequal_denominators": ("error", OF_ROWS),
    "no_verdict": ("warning", OF_ROWS),
    "empty_bank": ("warning", ()),
    "unknown_status": ("warning", ()),
    "unknown_finish": ("warning", ()),
    "unknown_fields": ("warning", ()),
    "unrecognised": ("warning", ()),
}


def notes_of_imports(evidence: Evidence) -> list[Finding]:
    """What importers counted and left visible: one finding per code and file, warnings of one code together."""
    by_code: dict[str, list[tuple[str, Note]]] = {}
    for file in evidence.of(ImportedFile):
        for note in file.notes:
            by_code.setdefault(note.code, []).append((file.source, note))
    findings = []
    for code, told in sorted(by_code.items()):
        severity, affects = LIFTED.get(code, ("warning", ()))
        by_file: dict[str, list[tuple[str, Note]]] = {}
        for source, note in told:
            by_file.setdefault(source if severity == "error" else "", []).append((source, note))
        for group in by_file.values():
            same: dict[str, list[str]] = {}  # many files of one format have one thing to say
            for source, note in group:
                same.setdefault(f"{note.message}{_named(note)}", []).append(source)
            text = "; ".join(sorted(f"{listed(sources)}: {message}" for message, sources in same.items()))
            findings.append(Finding(code, severity, text, files(source for source, _ in group), affects))
    return findings


def _named(note: Note) -> str:
    """Ids of a note whose message does not name them."""
    new = [item for item in note.items if item not in note.message]
    return f" ({listed(new)})" if new else ""


def totals_disagree(evidence: Evidence) -> list[Finding]:
    """Rates and counts that a file states and its rows do not give, and turns that state less than their parts cost."""
    told: dict[str, list[str]] = {}
    said = {file.source for file in evidence.of(ImportedFile) if any(n.code == "totals_disagree" for n in file.notes)}
    for claim in evidence.of(Claim):
        if claim.suite is None or claim.split is None or claim.arm is None or isinstance(claim.value, bool):
            continue
        if not isinstance(claim.value, (int, float)) or claim.source in said:
            continue  # what an importer counted itself is told once
        summary = arm_summary(evidence, ArmRef(claim.suite, claim.split, claim.arm))
        ours = {"n": summary.n, "passed": summary.passed, "pass_rate": summary.pass_rate}.get(claim.quantity)
        if ours is None or not summary.n:
            continue
        # FusionKit leaves a pipeline error out of its counts, here it counts as failed: neither is a wrong total.
        scored = summary.states.get("scored", 0)
        rate = summary.passed / scored if scored and summary.passed is not None else None
        theirs = {"n": scored, "pass_rate": rate}.get(claim.quantity)
        tolerance = SAME_RATE if claim.quantity == "pass_rate" else 0
        if all(abs(figure - claim.value) > tolerance for figure in (ours, theirs) if figure is not None):
            told.setdefault(claim.source, []).append(
                f"{where(claim.suite, claim.split, claim.arm)} states {claim.quantity} {claim.value:.6g}, its "
                f"{summary.n} rows give {ours:.6g}"
            )
    stated = [
        Finding("totals_disagree", "error", f"{source}: {'; '.join(sorted(texts))}", files([source]), OF_ROWS)
        for source, texts in sorted(told.items())
    ]
    return [*stated, *costs_below_parts(evidence)]


def unequal_denominators(evidence: Evidence) -> list[Finding]:
    """Arms of one split whose rates are over different tasks, and listed members whose rate is over none.

    Tasks that one side could not answer (provider error, context length, cap) are known and left out on both sides:
    that makes a run incomplete and no denominator unequal. A missing row or verdict is another matter: nobody knows
    why it is missing.
    """
    findings = []
    for suite, split in evidence.splits:
        arms = compounds(evidence, suite, split)
        recorded = evidence.arms(suite, split)
        others = [arm for arm in recorded if is_member(arm) or kind(arm) == "self" or arm in arms[1:]]
        told: dict[str, str] = {}
        sources: set[str] = set()
        for first in arms[:1]:
            ours, excused = _counted(evidence, suite, split, first)
            for other in others:
                theirs, pardoned = _counted(evidence, suite, split, other)
                missing, extra = ours - theirs - pardoned, theirs - ours - excused
                if ours and theirs and (missing or extra):
                    parts = [
                        f"{len(ids)} only of {arm} ({listed(ids, 5)})"
                        for arm, ids in ((first, missing), (other, extra))
                        if ids
                    ]
                    n = pair(evidence, ArmRef(suite, split, first), ArmRef(suite, split, other)).n
                    told[other] = f"{first} {len(ours)} tasks, {other} {len(theirs)}, {n} in common: {', '.join(parts)}"
                    for arm in (first, other):
                        sources.update(row.source for row in evidence.arm(suite, split, arm).values())
        if told:
            message = f"{where(suite, split)}: rates over different tasks; {'; '.join(told.values())}"
            findings.append(Finding("unequal_denominators", "error", message, files(sources), OF_ROWS))
    return [*findings, *_members_missing(evidence)]


def _members_missing(evidence: Evidence) -> list[Finding]:
    """Headline splits on which a member of the panel has no row at all: "over every member" is then over fewer."""
    findings = []
    for suite, split in headline_splits(evidence):
        missing = missing_members(evidence, suite, split)
        if missing:
            shown = [member_arm(name) for name in panel_of(evidence, suite, split)]
            told = [f"{member_arm(name)} (listed in {listed(files(sources))})" for name, sources in missing.items()]
            message = (
                f"{where(suite, split)}: {len(missing)} of the panel's members without a row: {listed(told)}; what "
                f"stands here is over {listed(shown)} only, not over every member"
            )
            rows = source_files(evidence, suite, split, shown)
            sources = files([*rows, *(source for sources in missing.values() for source in sources)])
            findings.append(Finding("unequal_denominators", "error", message, sources, OF_ROWS))
    return findings


def _counted(evidence: Evidence, suite: str, split: str, arm: str) -> tuple[frozenset[str], frozenset[str]]:
    """Tasks with a verdict of an arm, and tasks for which it is recorded why there is none."""
    scored: set[str] = set()
    excused: set[str] = set()
    for rows in seeds_of(evidence, ArmRef(suite, split, arm)):
        for task, row in rows.items():
            if row.passed is not None:
                scored.add(task)
            elif row.outcome in UNSCORED_OUTCOMES or row.reason != "no verdict recorded":
                excused.add(task)
    return frozenset(scored), frozenset(excused)


def verdict_unstable(evidence: Evidence) -> list[Finding]:
    """Answers that were graded again and did not get the same verdict each time."""
    unstable: dict[tuple[str, str], dict[str, str]] = {}
    graded: Counter[tuple[str, str]] = Counter()
    sources: dict[tuple[str, str], set[str]] = {}
    answers: list[Candidate | Fused] = [*evidence.of(Candidate), *evidence.of(Fused)]
    for row in answers:
        if not row.regrades or row.verdict is None:
            continue
        place = (row.suite, row.split)
        graded[place] += 1
        verdicts: list[Verdict] = [row.verdict, *row.regrades]
        passed = sum(verdict == "passed" for verdict in verdicts)
        if 0 < passed < len(verdicts):
            arm = member_arm(row.member, row.config) if isinstance(row, Candidate) else row.arm
            text = f"{row.task} of {arm} passed {passed} of {len(verdicts)}"
            unstable.setdefault(place, {})[f"{row.task} {arm} {row.replicate}"] = text
            sources.setdefault(place, set()).add(row.source)
    return [
        Finding(
            "verdict_unstable",
            "warning",
            f"{where(*place)}: {len(told)} of {graded[place]} answers graded again changed their verdict, their tasks "
            f"are ungradeable on both sides: {listed(told.values())}",
            files(sources[place]),
            OF_VERDICTS,
        )
        for place, told in sorted(unstable.items())
    ]
