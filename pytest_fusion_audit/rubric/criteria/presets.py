"""5.6: named presets, and what each buys for its money."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.arms import ArmRef, arm_summary
from pytest_fusion_audit.evidence.records import Config
from pytest_fusion_audit.rubric.banks import LACKING, sources_at
from pytest_fusion_audit.rubric.capping import Figure, capped, not_run
from pytest_fusion_audit.rubric.evaluations import evaluations, evidence_files

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.rubric.loading import Criterion
    from pytest_fusion_audit.rubric.score import Score

#: The presets a rubric asks for.
PRESETS = ("beyond-frontier", "cost-preserving")


def cost_aware_presets(criterion: Criterion, evidence: Evidence) -> Score:
    """Named presets and what each achieved and cost on the evaluated tasks.

    A preset is a config record with name and arm.
    """
    arms = _preset_arms(evidence)
    place = next(
        (e for e in evaluations(evidence) if any(e.ref.arm == a or _rows(evidence, e.ref, a) for a in arms.values())),
        None,
    )
    if not arms or place is None:
        return not_run(
            criterion, evidence, "needs locked rows: named beyond-frontier and cost-preserving presets as arms"
        )
    refs = {name: ArmRef(place.ref.suite, place.ref.split, arm) for name, arm in arms.items()}
    measured: dict[str, JsonValue] = {}
    shortfalls = []
    for name in PRESETS:
        summary = arm_summary(evidence, refs[name]) if name in refs else None
        if summary is None or not summary.n:
            shortfalls.append(f"no rows of a preset named {name}")
            continue
        measured[name] = {
            "arm": summary.ref.arm,
            "n": summary.n,
            "pass_rate": summary.pass_rate,
            "wilson_low": summary.wilson_low,
            "wilson_high": summary.wilson_high,
            "cost_per_task_usd": summary.cost_per_task_usd,
        }
        if summary.cost_per_task_usd is None:
            shortfalls.append(f"cost of preset {name} unknown")
    return capped(
        criterion,
        evidence,
        Figure(
            met=not shortfalls,
            measured=measured,
            sources=sources_at(evidence, *place.ref[:2]),
            lacking=LACKING,
            evidence=("evidence/config.jsonl", *evidence_files(evidence, refs.values())),
            holding=place.holding,
            where=place.place,
            n=place.n,
            shortfalls=tuple(shortfalls),
        ),
    )


def _preset_arms(evidence: Evidence) -> dict[str, str]:
    arms = {}
    for config in evidence.of(Config):
        name, arm = config.facts.get("name"), config.facts.get("arm")
        if config.what == "preset" and isinstance(name, str) and isinstance(arm, str):
            arms[name] = arm
    return dict(sorted(arms.items()))


def _rows(evidence: Evidence, ref: ArmRef, arm: str) -> bool:
    return bool(evidence.arm(ref.suite, ref.split, arm))
