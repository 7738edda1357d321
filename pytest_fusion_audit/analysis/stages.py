"""Where a fused turn spends its money and its time: panel, judge, synthesizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pytest_fusion_audit.analysis.arms import counts, turns_of
from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.evidence.money import usd
from pytest_fusion_audit.stats import quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_fusion_audit.analysis.arms import ArmRef
    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.evidence.records import Fused


#: Stages are rounded up to micro-dollars one by one, so their sum may exceed the turn's own figure by that much each.
_ROUNDING_MICRO_USD: Final = 1


@dataclass(frozen=True, slots=True)
class StageFigures:
    """One stage of one arm over its turns that count and record any stage.

    Attributes:
        stage: name of the stage.
        turns: turns that count and record any stage.
        n: turns in which this stage ran, as far as recorded.
        skipped: turns in which it did not run: the turn's whole cost is already that of its other stages.
        cost_usd: what it cost in all; None when its cost in any turn is neither known nor skipped.
        latency_n: turns whose latency of it is known.
        latency_p50_s: median seconds where it ran, linear interpolation.
        latency_p95_s: 95th percentile, linear interpolation.
    """

    stage: str
    turns: int
    n: int
    skipped: int
    cost_usd: float | None
    latency_n: int
    latency_p50_s: float | None
    latency_p95_s: float | None


@per_evidence
def stage_figures(evidence: Evidence, ref: ArmRef) -> tuple[StageFigures, ...]:
    """Summarise the stages of a fused arm, sorted by name; empty when none is recorded."""
    turns = [
        turn
        for replicate in evidence.replicates(ref.suite, ref.split, ref.arm)
        for turn in turns_of(evidence, ref.suite, ref.split, replicate)
        if turn.arm == ref.arm
        and (turn.stage_cost_micro_usd or turn.stage_latency_s)
        and counts(evidence.arm(*ref, replicate)[turn.task])
    ]
    names = sorted({name for turn in turns for name in (*turn.stage_cost_micro_usd, *turn.stage_latency_s)})
    return tuple(_figures(name, turns) for name in names)


def _figures(stage: str, turns: Sequence[Fused]) -> StageFigures:
    costs = [cost for turn in turns if (cost := turn.stage_cost_micro_usd.get(stage)) is not None]
    seconds = [latency for turn in turns if (latency := _latency(turn, stage)) is not None]
    skipped = sum(_skipped(turn, stage) for turn in turns)
    return StageFigures(
        stage=stage,
        turns=len(turns),
        n=sum(turn.stage_cost_micro_usd.get(stage) is not None or _latency(turn, stage) is not None for turn in turns),
        skipped=skipped,
        cost_usd=usd(sum(costs)) if costs and len(costs) + skipped == len(turns) else None,
        latency_n=len(seconds),
        latency_p50_s=quantile(seconds, 0.5),
        latency_p95_s=quantile(seconds, 0.95),
    )


def _latency(turn: Fused, stage: str) -> float | None:
    """Seconds of a stage in a turn; 0 without a cost is how a skipped stage is written, not a very fast one."""
    latency = turn.stage_latency_s.get(stage)
    return None if not latency and turn.stage_cost_micro_usd.get(stage) is None else latency


def _skipped(turn: Fused, stage: str) -> bool:
    if turn.stage_cost_micro_usd.get(stage) is not None or _latency(turn, stage) is not None:
        return False
    others = [cost for name, cost in turn.stage_cost_micro_usd.items() if name != stage and cost is not None]
    if turn.cost_micro_usd is None or not others:
        return False
    return abs(turn.cost_micro_usd - sum(others)) <= _ROUNDING_MICRO_USD * len(others)
