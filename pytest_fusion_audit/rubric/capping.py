"""The one place where a figure becomes a score.

A measure reports what its figure alone says. Everything that can hold a score below 2 (too few trials, a split that is
not held out, a source that is missing, an open validity error, a figure that is not significant) is applied here and
leaves its reason, so that nobody has to believe ten modules to believe a 2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_fusion_audit.analysis.validity import Finding, find
from pytest_fusion_audit.analysis.validity.finding import p_value
from pytest_fusion_audit.rubric.score import By, EvidenceClass, Points, Score, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import JsonValue

    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.rubric.loading import Criterion, Source

Holding: TypeAlias = Literal["held out", "not held out", "unknown"]

#: Measured without significance these score 0: an uplift that is not significant is no partial credit.
NEEDS_SIGNIFICANCE: frozenset[str] = frozenset({"1.1", "1.2", "1.3", "2.5", "5.1", "9.3"})
#: The headline: any validity error withholds it, whichever criteria the error names.
HEADLINE: frozenset[str] = frozenset({"1.1", "1.2", "1.3"})
#: At most 1 when it is our tool that does it on the target's behalf.
TARGET_ONLY: frozenset[str] = frozenset({"5.2", "8.3", "9.4", "9.7"})

#: What each kind of evidence is called when it is lacking.
NEEDS: dict[Source, str] = {
    "bank": "needs a bank",
    "locked": "needs locked rows",
    "billed": "needs a billed measurement",
    "drill": "needs a drill",
    "self": "needs the run's own record (self)",
    "attest": "needs an attestation",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What a measure found, before any cap.

    Attributes:
        met: whether the figure itself meets the threshold.
        measured: the figures that go into the scorecard.
        sources: which of the criterion's sources were really there.
        lacking: per source that was not there, what exactly would have to be measured.
        evidence: files the figures come from, in any order, repeats allowed.
        holding: whether the figures rest on a held-out split; None where the rubric does not ask for one.
        where: the split, for the reason.
        n: trials, compared with the criterion's least n; None = the criterion counts nothing.
        p: p value of criteria that need significance.
        shown: whether the difference is significant and in the right direction; None where not asked.
        caps: further reasons why a 2 is out of reach whatever the figure (a one-maker panel).
        shortfalls: reasons why the threshold is not met.
        notes: remarks that cost nothing.
        enough: the least n is satisfied another way (the whole official suite).
    """

    met: bool
    measured: Mapping[str, JsonValue]
    sources: frozenset[Source]
    evidence: tuple[str, ...]
    lacking: Mapping[Source, str] = field(default_factory=dict)
    holding: Holding | None = None
    where: str = ""
    n: int | None = None
    p: float | None = None
    shown: bool | None = None
    caps: tuple[str, ...] = ()
    shortfalls: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    enough: bool = False
    by: By | None = None


def evidence_class(evidence: Evidence) -> EvidenceClass:
    """Class of everything a run of this mode measured; drills and attestations are told by their own records."""
    classes: dict[str, EvidenceClass] = {"live": "measured", "offline": "simulated", "imported": "imported"}
    return classes[evidence.run.mode]


def not_run(criterion: Criterion, evidence: Evidence, *reasons: str) -> Score:
    """A criterion there is nothing to measure from; the reasons say which evidence is lacking."""
    return Score(
        criterion=criterion.id,
        status="not_run",
        evidence_class=evidence_class(evidence),
        by=criterion.by,
        threshold=criterion.met,
        reasons=reasons,
    )


def affecting(criterion_id: str, evidence: Evidence) -> tuple[Finding, ...]:
    """Validity errors that bear on a criterion; on the headline criteria every error does."""
    return tuple(
        finding
        for finding in find(evidence)
        if finding.severity == "error" and (criterion_id in finding.affects or criterion_id in HEADLINE)
    )


def capped(criterion: Criterion, evidence: Evidence, figure: Figure) -> Score:
    """Turn a figure into a score under every standing rule of the rubric."""
    errors = affecting(criterion.id, evidence)
    measured = dict(figure.measured)
    if figure.holding is not None:
        measured["held_out"] = {"held out": True, "not held out": False, "unknown": None}[figure.holding]
    structural = _structural_caps(criterion, figure)
    ceiling: Points = 1 if structural else 2
    withheld = _withheld(criterion, errors)
    status: Status
    if criterion.id in NEEDS_SIGNIFICANCE and (withheld or not figure.shown):
        status = "absent"
        reasons = withheld or (f"measured, no evidence (p = {p_value(figure.p)})",)
        reasons += figure.shortfalls + _too_few(criterion, figure) + structural
    else:
        circumstantial = structural + _too_few(criterion, figure) + withheld
        status = "met" if figure.met and not circumstantial else "present"
        reasons = figure.shortfalls + circumstantial
    return Score(
        criterion=criterion.id,
        status=status,
        evidence_class=evidence_class(evidence),
        by=figure.by or criterion.by,
        measured=measured,
        threshold=criterion.met,
        evidence=_files(figure.evidence),
        reasons=_distinct(reasons + figure.notes),
        ceiling=ceiling,
    )


def _structural_caps(criterion: Criterion, figure: Figure) -> tuple[str, ...]:
    """What keeps this evidence from ever earning a 2, whatever its figures."""
    caps = list(figure.caps)
    if figure.holding == "not held out":
        caps.append(f"not held out: {figure.where}")
    elif figure.holding == "unknown":
        caps.append(f"held-out status unknown: {figure.where} names no split")
    for source in criterion.source:
        said = source == "locked" and figure.holding in {"not held out", "unknown"}
        if source not in figure.sources and not said:
            what = figure.lacking.get(source)
            caps.append(f"needs {source}: {what}" if what else f"needs {source}")
    if not any(figure.evidence):
        caps.append("no artifact: the figures name no file")
    if figure.by == "tool" and criterion.id in TARGET_ONLY:
        caps.append("done by the tool on the target's behalf: at most 1")
    return tuple(caps)


def _too_few(criterion: Criterion, figure: Figure) -> tuple[str, ...]:
    if criterion.least_n is None or figure.enough:
        return ()
    if figure.n is None:
        return (f"too few: n unknown, {criterion.least_n} needed",)
    return (f"too few: n = {figure.n} < {criterion.least_n}",) if figure.n < criterion.least_n else ()


def _withheld(criterion: Criterion, errors: tuple[Finding, ...]) -> tuple[str, ...]:
    reasons = tuple(f"withheld: {code}" for code in dict.fromkeys(finding.code for finding in errors))
    if criterion.id in NEEDS_SIGNIFICANCE and any("not identified" in finding.message for finding in errors):
        reasons += ("uplift not identified",)
    return reasons


def _files(names: Iterable[str]) -> tuple[str, ...]:
    """Distinct files, sources first and our own evidence files after them."""
    single = {part for name in names for part in name.split(" + ") if part}
    return tuple(sorted(single, key=lambda name: (name.startswith("evidence/"), name)))


def _distinct(reasons: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reasons))
