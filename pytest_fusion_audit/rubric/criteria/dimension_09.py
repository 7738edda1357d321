"""Dimension 9, measurement integrity and loop: is the measuring itself to be trusted, and does it lead anywhere?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.arms import ArmRef
from pytest_fusion_audit.analysis.comparison import Comparison, compare
from pytest_fusion_audit.analysis.validity.pairs import with_p
from pytest_fusion_audit.evidence.records import Change
from pytest_fusion_audit.rubric.capping import Figure, capped, not_run
from pytest_fusion_audit.rubric.criteria.lacking import needs
from pytest_fusion_audit.rubric.evaluations import evaluations, evidence_files, figures, locked_source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.rubric.loading import Criterion
    from pytest_fusion_audit.rubric.score import Score

#: Arm of the configuration before the climb, where no accepted change names it.
UNTUNED_ARM = "compound@untuned"


def hill_climb(criterion: Criterion, evidence: Evidence) -> Score:
    """Locked rows of the tuned and the untuned configuration on the same tasks: exact McNemar."""
    found = [
        comparison
        for evaluation in evaluations(evidence)
        for before, after in _arms(evidence)
        if (comparison := _compared(evidence, evaluation.ref, before, after)).n
    ]
    if not found:
        return not_run(
            criterion,
            evidence,
            f"needs locked rows: the untuned configuration on the tasks of the tuned one (arm {UNTUNED_ARM}, or the "
            "arms that an accepted change names)",
        )
    best = min(found, key=lambda c: (not c.shows_uplift, c.decision_p or 1.0))
    evaluation = next(e for e in evaluations(evidence) if e.ref[:2] == best.first[:2])
    accepted = tuple(change.source for change in evidence.of(Change) if change.accepted and change.source)
    return capped(
        criterion,
        evidence,
        Figure(
            met=True,
            measured={**figures(best), "tuned": best.first.arm, "untuned": best.second.arm},
            sources=locked_source(evaluation),
            lacking={"locked": f"{evaluation.place} is not known to be locked"},
            evidence=(*evidence_files(evidence, [best.first, best.second]), *accepted),
            holding=evaluation.holding,
            where=evaluation.place,
            n=best.n,
            p=best.decision_p,
            shown=best.shows_uplift,
            shortfalls=() if best.shows_uplift else (f"tuned over untuned: {with_p(best)}, {best.decision}",),
        ),
    )


def _arms(evidence: Evidence) -> list[tuple[str, str | None]]:
    """(untuned, tuned) pairs: what accepted changes name; None = the arm that stands for the compound."""
    named = {
        (change.arm_before, change.arm_after)
        for change in evidence.of(Change)
        if change.accepted and change.arm_before is not None and change.target == "compound"
    }
    pairs = [(before, after) for before, after in named if before is not None]
    return sorted(pairs, key=lambda pair: (pair[0], pair[1] or "")) or [(UNTUNED_ARM, None)]


def _compared(evidence: Evidence, headline: ArmRef, before: str, after: str | None) -> Comparison:
    suite, split, arm = headline
    return compare(evidence, ArmRef(suite, split, after or arm), ArmRef(suite, split, before))


MEASURES: Mapping[str, Callable[[Criterion, Evidence], Score]] = {
    "9.1": needs("self", "registration, opening and access of the locked set"),
    "9.2": needs("self", ">= 2 comparable runs with config, commit and seeds in the run's own record"),
    "9.3": hill_climb,
    "9.4": needs("self", "outcome records and a learned consumer trained from them"),
    "9.5": needs("billed", "a new model added, re-tuned on dev and re-verified"),
    "9.6": needs("self", "the report generator's claim check of this run"),
    "9.7": needs("self", "figures of several runs in the target's dashboard"),
}
