"""Dimension 6, agentic mechanics: what happens to tools, turns and members inside a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.arms import arm_summary
from pytest_fusion_audit.rubric.capping import Figure, capped, not_run
from pytest_fusion_audit.rubric.criteria.lacking import needs
from pytest_fusion_audit.rubric.evaluations import (
    MULTI_TURN_FAMILIES,
    Evaluation,
    evaluation_files,
    evaluations,
    locked_source,
    panel_figures,
    suite_facts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.rubric.loading import Criterion
    from pytest_fusion_audit.rubric.score import Score


def multi_turn_uplift(criterion: Criterion, evidence: Evidence) -> Score:
    """Uplift over every member on a multi-turn suite (edits, issues, terminal) of dimension 1."""
    found = [e for e in evaluations(evidence) if _is_multi_turn(evidence, e)]
    pairs = [evaluation for evaluation in found if evaluation.n]
    if not pairs:
        return not_run(criterion, evidence, _lacking(evidence, found))
    chosen = pairs[0]
    return capped(
        criterion,
        evidence,
        Figure(
            met=True,
            measured=panel_figures(chosen),
            sources=locked_source(chosen) | {"billed"},
            lacking={"locked": f"{chosen.place} is not known to be locked"},
            evidence=evaluation_files(evidence, chosen),
            holding=chosen.holding,
            where=chosen.place,
            n=chosen.n,
        ),
    )


def _is_multi_turn(evidence: Evidence, evaluation: Evaluation) -> bool:
    facts = suite_facts(evidence, evaluation.ref.suite)
    return facts.get("family") in MULTI_TURN_FAMILIES or facts.get("agentic") is True


def _lacking(evidence: Evidence, alone: list[Evaluation]) -> str:
    if not alone:
        return "needs a billed measurement: a multi-turn suite answered by the compound and every member"
    rates = []
    for evaluation in alone:
        summary = arm_summary(evidence, evaluation.ref)
        rates.append(f"{evaluation.place} records the compound alone ({summary.passed} of {summary.n})")
    return f"needs locked rows: a member's rows of a multi-turn suite; {'; '.join(rates)}"


MEASURES: Mapping[str, Callable[[Criterion, Evidence], Score]] = {
    "6.1": needs("drill", "a session of three tool rounds and more, with the candidates' turn recorded"),
    "6.2": needs("drill", "tool calls in each dialect, their schema validity counted"),
    "6.3": needs("drill", "canaries in one member's answer, looked for in another's prompt"),
    "6.4": needs("drill", "tool calls and outcomes looked for in the judge's prompt"),
    "6.5": multi_turn_uplift,
    "6.6": needs("drill", "a member that fails in the middle of a session"),
}
