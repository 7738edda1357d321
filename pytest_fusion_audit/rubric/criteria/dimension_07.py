"""Dimension 7, cost and latency: what an answer costs beside the best single, in dollars and in seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.arms import ArmRef, ArmSummary, arm_summary
from pytest_fusion_audit.analysis.economics import cost_per_extra_solve, overhead
from pytest_fusion_audit.analysis.pool import pool_of
from pytest_fusion_audit.analysis.stages import stage_figures
from pytest_fusion_audit.rubric.capping import Figure, capped, not_run
from pytest_fusion_audit.rubric.criteria.lacking import needs
from pytest_fusion_audit.rubric.evaluations import Evaluation, evaluations, evidence_files, locked_source
from pytest_fusion_audit.stats import QUANTILE_METHOD

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import JsonValue

    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.rubric.loading import Criterion
    from pytest_fusion_audit.rubric.score import Score

#: Bars of 7.1 and 7.2, as multiples of the best single.
BEYOND_FRONTIER, COST_PRESERVING, SLOWEST = 2.5, 1.0, 2.5
#: Arm of the preset that must cost no more than the best single.
CHEAP_ARM = "compound@cost-preserving"
#: Stage under which a run records the time to the first token.
FIRST_TOKEN = "first_token"  # noqa: S105 - a stage of a turn, not a secret


def cost_per_solve(criterion: Criterion, evidence: Evidence) -> Score:
    """Locked rows: all spend of the compound over its solved tasks, as a multiple of the best single's."""
    evaluation = next(iter(evaluations(evidence)), None)
    if evaluation is None:
        return not_run(criterion, evidence, "needs locked rows: billed cost of the compound and of the best single")
    single = _best_single(evidence, evaluation)
    own = arm_summary(evidence, evaluation.ref)
    other = arm_summary(evidence, single) if single else None
    if own.cost_per_solve_usd is None or other is None or not other.cost_per_solve_usd:
        return not_run(criterion, evidence, _cost_lacking(own, other))
    ratio = own.cost_per_solve_usd / other.cost_per_solve_usd
    extra = cost_per_extra_solve(evidence, evaluation.ref, other.ref)
    measured: dict[str, JsonValue] = {
        "ratio": ratio,
        "extra_solve_usd": extra.usd_per_solve,
        "extra_solve_low_usd": extra.low,
        "extra_solve_high_usd": extra.high,
        "extra_solve_interval": extra.reason or extra.method,
        "cost_per_solve_usd": own.cost_per_solve_usd,
        "single_cost_per_solve_usd": other.cost_per_solve_usd,
        "cost_per_task_usd": own.cost_per_task_usd,
        "n": own.n,
        "single": other.ref.arm.removeprefix("member:"),
    }
    shortfalls = [] if ratio <= BEYOND_FRONTIER else [f"{ratio:.2f} x best single, bar {BEYOND_FRONTIER} x"]
    cheap = arm_summary(evidence, ArmRef(evaluation.ref.suite, evaluation.ref.split, CHEAP_ARM))
    if cheap.cost_per_solve_usd is not None:
        cheap_ratio = cheap.cost_per_solve_usd / other.cost_per_solve_usd
        measured["cost_preserving_ratio"] = cheap_ratio
        if cheap_ratio > COST_PRESERVING:
            shortfalls.append(f"cost-preserving preset {cheap_ratio:.2f} x best single, bar {COST_PRESERVING} x")
    return capped(
        criterion,
        evidence,
        Figure(
            met=not shortfalls,
            measured=measured,
            sources=locked_source(evaluation),
            lacking={"locked": f"{evaluation.place} is not known to be locked"},
            evidence=evidence_files(evidence, [evaluation.ref, other.ref]),
            holding=evaluation.holding,
            where=evaluation.place,
            n=own.n,
            shortfalls=tuple(shortfalls),
        ),
    )


def latency_overhead(criterion: Criterion, evidence: Evidence) -> Score:
    """p95 of a fused turn as a multiple of the best single's, in total and added, per stage.

    Added is task by task; the stricter reading decides. Without a single's latency the panel stage, whose slowest draw
    is at least a single's, gives a remark and no multiple.
    """
    evaluation = next(iter(evaluations(evidence)), None)
    own = arm_summary(evidence, evaluation.ref) if evaluation else None
    if evaluation is None or own is None or own.latency_p95_s is None:
        return not_run(criterion, evidence, "needs locked rows: latency of the compound's turns and of a single's")
    stages = {stage.stage: stage for stage in stage_figures(evidence, evaluation.ref) if stage.latency_n}
    single = _best_single(evidence, evaluation)
    beside = overhead(evidence, evaluation.ref, single) if single else None
    measured: dict[str, JsonValue] = {
        "p50_s": own.latency_p50_s,
        "p95_s": own.latency_p95_s,
        "n": own.latency_n,
        "quantile": QUANTILE_METHOD,
        "stages": {
            name: {
                "p50_s": stage.latency_p50_s,
                "p95_s": stage.latency_p95_s,
                "n": stage.latency_n,
                "skipped": stage.skipped,
            }
            for name, stage in stages.items()
        },
    }
    refs, caps, shortfalls = [evaluation.ref], [], []
    panel_p95 = stages["panel"].latency_p95_s if "panel" in stages else None
    if single is not None and beside is not None and beside.latency_p95_ratio is not None:
        refs.append(single)
        readings = {"total": beside.latency_p95_ratio, "added": beside.latency_added_p95_ratio}
        measured |= {"single": single.arm.removeprefix("member:")}
        measured |= {f"ratio_{name}": value for name, value in readings.items()}
        shortfalls = [
            f"p95 {value:.2f} x single ({name}), bar {SLOWEST} x"
            for name, value in readings.items()
            if value is not None and value > SLOWEST
        ]
    elif panel_p95:
        bound = own.latency_p95_s / panel_p95
        measured["ratio_at_least"] = bound
        caps.append(f"no single's latency recorded: beside the panel stage, its slowest draw, p95 is {bound:.2f} x")
    else:
        return not_run(criterion, evidence, "needs locked rows: latency of a single's turns, or of the panel stage")
    if not stages:
        caps.append("latency is not attributed per stage")
    if FIRST_TOKEN not in stages:
        caps.append("time to first token not recorded")
    return capped(
        criterion,
        evidence,
        Figure(
            met=not shortfalls,
            measured=measured,
            sources=locked_source(evaluation),
            lacking={"locked": f"{evaluation.place} is not known to be locked"},
            evidence=evidence_files(evidence, refs),
            holding=evaluation.holding,
            where=evaluation.place,
            n=own.latency_n,
            caps=tuple(caps),
            shortfalls=tuple(shortfalls),
        ),
    )


def _best_single(evidence: Evidence, evaluation: Evaluation) -> ArmRef | None:
    return pool_of(evidence, evaluation.ref.suite, evaluation.ref.split).best_single_ref()


def _cost_lacking(own: ArmSummary, single: ArmSummary | None) -> str:
    if own.cost_usd is None:
        known = f", {own.cost_known_n} of {own.attempted} turns have one" if own.cost_known_n else ""
        return f"needs locked rows: the cost of every turn of {own.ref.arm}{known}"
    known = f"the compound's is known (${own.cost_usd:.2f} for {own.passed} solved of {own.n})"
    who = single.ref.arm.removeprefix("member:") if single else "a member"
    return f"needs a billed measurement: the cost of {who} alone on the same tasks; {known}, a ratio is not"


MEASURES: Mapping[str, Callable[[Criterion, Evidence], Score]] = {
    "7.1": cost_per_solve,
    "7.2": latency_overhead,
    "7.3": needs("drill", "a straggling member, with and without quorum or hedging"),
    "7.4": needs("drill", "cache markers and stable prefixes looked for on the wire, hits metered"),
    "7.5": needs("drill", "a turn over budget on every path, upstream calls counted"),
    "7.6": needs("drill", "a session that grows, the size of judge and synthesizer prompts measured"),
}
