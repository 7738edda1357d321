"""Regret: how much of the oracle was lost, and whether the judge or the writing of the answer lost it.

Per task, the pick is worth the verdict of the picked candidate, and where the judge named none, the fused answer's own
verdict. Then, over the tasks scored by every member and by the arm,

    judge = oracle - pick rate,   synthesis = pick rate - fused rate,   total = judge + synthesis = oracle - fused rate.

The split is additive by construction. Negative values stay negative: a written answer can pass where every recorded
candidate fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.analysis.picks import over_candidates, picks_of
from pytest_fusion_audit.analysis.pool import pool_of

if TYPE_CHECKING:
    from pytest_fusion_audit.analysis.arms import ArmRef
    from pytest_fusion_audit.evidence.container import Evidence


@dataclass(frozen=True, slots=True)
class Regret:
    """Regret of one arm; rates are shares of 1 over the same ``n`` tasks, None when n is 0.

    Attributes:
        ref: the arm.
        n: tasks scored by every member and by the arm, the picked candidate's verdict known where one was named.
        oracle: share that some recorded candidate passes.
        pick_rate: share that the judge's pick passes; None when no pick of the arm is recorded.
        fused_rate: share that the arm passes.
        total: oracle - fused_rate.
        judge: oracle - pick_rate; None as ``pick_rate``.
        synthesis: pick_rate - fused_rate; None as ``pick_rate``.
        picks_named: tasks on which the judge named a candidate; None when no pick is recorded.
        picks_unknown: tasks left out because the picked candidate's verdict is unknown.
        over: whether the pool is known to be whole, or holds the recorded primary samples only.
    """

    ref: ArmRef
    n: int
    oracle: float | None
    pick_rate: float | None
    fused_rate: float | None
    total: float | None
    judge: float | None
    synthesis: float | None
    picks_named: int | None
    picks_unknown: int
    over: Literal["all candidates", "recorded primaries"]


@per_evidence
def regret_of(evidence: Evidence, ref: ArmRef, *, tasks: frozenset[str] | None = None) -> Regret:
    """Split the regret of an arm; a turn whose pick was not recorded while others were counts as "none named"."""
    every = picks_of(evidence, ref, tasks=tasks)
    picks = [pick for pick in every if not (pick.named and pick.picked is None)]
    recorded = any(pick.named is not None for pick in every)
    n = len(picks)

    def rate(count: int) -> float | None:
        return count / n if n else None

    solvable = sum(pick.right > 0 for pick in picks)
    fused = sum(pick.fused for pick in picks)
    picked = sum(pick.picked is True if pick.named else pick.fused for pick in picks)
    return Regret(
        ref=ref,
        n=n,
        oracle=rate(solvable),
        pick_rate=rate(picked) if recorded else None,
        fused_rate=rate(fused),
        total=rate(solvable - fused),
        judge=rate(solvable - picked) if recorded else None,
        synthesis=rate(picked - fused) if recorded else None,
        picks_named=sum(pick.named is True for pick in picks) if recorded else None,
        picks_unknown=len(every) - n,
        over=over_candidates(evidence, ref),
    )


@dataclass(frozen=True, slots=True)
class AgainstPool:
    """What fusing won and lost against the candidates it was made from.

    Attributes:
        ref: the arm.
        n: tasks scored by every member and by the arm.
        rescues: tasks the arm passes and every candidate fails; None unless the recorded pool is whole.
        passes_outside_recorded: the same count over the recorded candidates, whole or not.
        losses_to_pool: tasks the arm fails and some recorded candidate passes (at least that many, if not whole).
        over: what the counts are over.
    """

    ref: ArmRef
    n: int
    rescues: int | None
    passes_outside_recorded: int
    losses_to_pool: int
    over: Literal["all candidates", "recorded primaries"]


@per_evidence
def against_pool(evidence: Evidence, ref: ArmRef, *, tasks: frozenset[str] | None = None) -> AgainstPool:
    """Count rescues and losses apart; they do not cancel out."""
    picks = picks_of(evidence, ref, tasks=tasks)
    outside = sum(pick.fused and pick.right == 0 for pick in picks)
    whole = pool_of(evidence, ref.suite, ref.split).whole
    return AgainstPool(
        ref=ref,
        n=len(picks),
        rescues=outside if whole and picks else None,
        passes_outside_recorded=outside,
        losses_to_pool=sum(not pick.fused and pick.right > 0 for pick in picks),
        over=over_candidates(evidence, ref),
    )
