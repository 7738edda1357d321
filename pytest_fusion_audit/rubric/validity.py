"""What stands between a number and its meaning: the validity checks, and published scores put to the test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.analysis.validity import Finding, find
from pytest_fusion_audit.rubric.loading import Rubric, load_rubric
from pytest_fusion_audit.rubric.published import compare_published, unsupported

if TYPE_CHECKING:
    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.rubric.score import Score


@per_evidence
def score_criteria(evidence: Evidence, rubric: Rubric) -> dict[str, Score]:
    """Score every criterion of the rubric, by id, in the rubric's order. Computed once per evidence and rubric."""
    return {criterion.id: criterion.measure(evidence) for criterion in rubric.criteria}


def check_validity(evidence: Evidence, rubric: Rubric | None = None) -> tuple[Finding, ...]:
    """Validity findings of a run: errors first, then warnings, each by code.

    Args:
        evidence: what `import_run` or a run directory gave.
        rubric: rubric by which a published scorecard among the evidence is re-scored; None = the shipped one.

    Returns:
        Findings; an error withholds the uplift and shuts gates A and C and every gate with a criterion it affects, a
        warning stands beside the number. Empty when nothing was found.
    """
    used = rubric if rubric is not None else load_rubric()
    scores = score_criteria(evidence, used)
    published = unsupported(evidence, compare_published(evidence, used, scores), scores)
    return tuple(
        sorted((*find(evidence), *published), key=lambda f: (f.severity, f.code, _natural(f.affects), f.message))
    )


def _natural(affects: tuple[str, ...]) -> tuple[int, ...]:
    """Warnings of one code in the order of the criteria they speak of."""
    return tuple(int(part) for part in affects[0].split(".")) if len(affects) == 1 and affects[0][:1].isdigit() else ()
