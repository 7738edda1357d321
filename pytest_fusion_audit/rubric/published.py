"""A published scorecard against ours, criterion by criterion: what was published, what this evidence gives, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.analysis.validity import Finding
from pytest_fusion_audit.evidence.records import Claim

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.rubric.loading import Rubric
    from pytest_fusion_audit.rubric.score import Score

CODE = "published_score_unsupported"

#: Figures that a published score rests on, by criterion, the most telling first: they are quoted beside ours. Claims
#: that name their criterion themselves come after them.
_RELATED: Mapping[str, tuple[str, ...]] = {
    "1.1": ("uplift",),
    "1.2": ("uplift", "wins", "losses"),
    "1.3": ("uplift",),
    "2.1": ("oracle", "best_single"),
    "3.1": ("judge_pick_accuracy_strict",),
    "3.2": ("regret/judge", "regret/synthesis"),
    "4.2": ("synthesis_regression_rate",),
}
#: Claims that are the score itself and not what it rests on.
_SCORES = frozenset({"score", "weight"})
_WITHHELD = "withheld: "
#: Most figures quoted in one message.
_QUOTED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Republished:
    """One criterion: the published score (None = not published), ours, and why ours is what it is."""

    criterion: str
    published: int | None
    ours: int
    why: str
    evidence: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The row as builtins."""
        return {"criterion": self.criterion, "published": self.published, "ours": self.ours, "why": self.why}


def compare_published(evidence: Evidence, rubric: Rubric, scores: Mapping[str, Score]) -> tuple[Republished, ...]:
    """Every criterion of the rubric beside its published score; empty when no scorecard was imported."""
    published: dict[str, list[Claim]] = {}
    for claim in evidence.of(Claim):
        if claim.quantity == "score" and claim.criterion is not None:
            published.setdefault(claim.criterion, []).append(claim)
    if not published:
        return ()
    rows = []
    for criterion in rubric.criteria:
        claims = published.get(criterion.id, [])
        values = [claim.value for claim in claims if isinstance(claim.value, (int, float))]
        rows.append(
            Republished(
                criterion=criterion.id,
                published=int(max(values)) if values else None,
                ours=scores[criterion.id].score,
                why=_why(scores[criterion.id]),
                evidence=tuple(sorted({claim.source for claim in claims})),
            )
        )
    return tuple(rows)


def unsupported(evidence: Evidence, rows: tuple[Republished, ...], scores: Mapping[str, Score]) -> tuple[Finding, ...]:
    """One warning for each published score that is higher than this evidence allows."""
    return tuple(
        _finding(evidence, row, scores[row.criterion])
        for row in rows
        if row.published is not None and row.published > row.ours
    )


def _finding(evidence: Evidence, row: Republished, score: Score) -> Finding:
    quoted = _claims_about(evidence, row.criterion)
    message = f"{row.criterion} was published as {row.published}, this evidence gives {row.ours}: {row.why}"
    own = _own_figures(score)
    if own:
        message += f"; computed here: {own}"
    if quoted:
        message += f"; its own files say: {', '.join(_quoted(claim) for claim in quoted)}"
    files = {*row.evidence, *(claim.source for claim in quoted), *score.evidence}
    return Finding(
        code=CODE,
        severity="warning",
        message=message,
        evidence=tuple(sorted(files)),
        affects=(row.criterion,),
    )


def _claims_about(evidence: Evidence, criterion: str) -> list[Claim]:
    """Published figures behind a criterion: locked splits first, the lowest first, a few of them."""
    names = _RELATED.get(criterion, ())
    found = {
        (claim.quantity, claim.suite, claim.split, claim.arm): claim
        for claim in evidence.of(Claim)
        if claim.quantity in names or (claim.criterion == criterion and claim.quantity not in _SCORES)
    }
    return sorted(found.values(), key=lambda claim: _telling(claim, names))[:_QUOTED]


def _telling(claim: Claim, names: tuple[str, ...]) -> tuple[int, bool, bool, float, str]:
    place = names.index(claim.quantity) if claim.quantity in names else len(names)
    value = float(claim.value) if isinstance(claim.value, (int, float)) else 0.0
    aside = claim.arm is not None and ("@" in claim.arm or claim.arm.startswith("self:"))
    return place, claim.split != "locked", aside, value, repr(claim)


def _quoted(claim: Claim) -> str:
    where = "/".join(part for part in (claim.suite, claim.split, claim.arm, claim.quantity) if part)
    value = f"{claim.value:.4g}" if isinstance(claim.value, float) else str(claim.value)
    return f"{where} {value} ({claim.source})"


def _own_figures(score: Score) -> str:
    parts = []
    for name in sorted(score.measured):
        value = score.measured[name]
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        parts.append(f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}")
    return ", ".join(parts[:8])


def _why(score: Score) -> str:
    """The reasons of a score in one line, the codes of errors gathered."""
    if not score.reasons:
        return "threshold met on this evidence"
    codes = [reason.removeprefix(_WITHHELD) for reason in score.reasons if reason.startswith(_WITHHELD)]
    gathered = _WITHHELD + ", ".join(codes)
    return "; ".join(dict.fromkeys(gathered if reason.startswith(_WITHHELD) else reason for reason in score.reasons))
