"""What the judge picked, task by task: the join of a compound's turns with the pool they were made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from pytest_fusion_audit.analysis.arms import counts, turns_of
from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.analysis.pool import pool_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_fusion_audit.analysis.arms import ArmRef
    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.evidence.records import Fused


class Pick(NamedTuple):
    """One task scored by every member and by the arm, and what the judge did there.

    Fields: ``named`` is None when the source does not record picks of this turn; ``picked`` is the verdict of the
    picked candidate (of the member's primary sample where only a member is named), None when nothing was named or
    its verdict is unknown; ``right`` of ``candidates`` pass; ``fused`` is the arm's own verdict.
    """

    task: str
    named: bool | None
    picked: bool | None
    right: int
    candidates: int
    fused: bool
    confidence: float | None


@per_evidence
def picks_of(evidence: Evidence, ref: ArmRef, *, tasks: frozenset[str] | None = None) -> tuple[Pick, ...]:
    """Join an arm's rows of the first seed with its pool, over the tasks scored by every member and by the arm.

    Args:
        evidence: the run.
        ref: a fused arm.
        tasks: restrict to these ids, for instance those of a class.
    """
    pool = pool_of(evidence, ref.suite, ref.split, tasks=tasks)
    turns = {turn.task: turn for turn in turns_of(evidence, ref.suite, ref.split) if turn.arm == ref.arm}
    rows = evidence.arm(ref.suite, ref.split, ref.arm)
    picks: list[Pick] = []
    for task, candidates in pool.tasks.items():
        row = rows.get(task)
        if row is None or not counts(row):
            continue
        turn = turns.get(task)
        named = _named(turn)
        picks.append(
            Pick(
                task=task,
                named=named,
                picked=_verdict(turn, pool.verdicts[task]) if turn is not None and named else None,
                right=pool.right(task),
                candidates=len(candidates),
                fused=row.passed is True,
                confidence=None if turn is None else turn.judge_confidence,
            )
        )
    return tuple(picks)


def over_candidates(evidence: Evidence, ref: ArmRef) -> Literal["all candidates", "recorded primaries"]:
    """Say what figures of an arm's pool are over, for the text beside them."""
    return "all candidates" if pool_of(evidence, ref.suite, ref.split).whole else "recorded primaries"


def _named(turn: Fused | None) -> bool | None:
    if turn is None:
        return None
    if turn.pick is not None or turn.pick_member is not None:
        return True
    return None if turn.pick_status is None else turn.pick_status == "named"


def _verdict(turn: Fused, verdicts: Mapping[str, bool | None]) -> bool | None:
    if turn.pick is not None:
        return verdicts.get(turn.pick)
    return verdicts.get(f"{turn.pick_member}#0")
