"""How much of what was planned was scored, counted in rows: one task answered by one arm."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.analysis.arms import ArmRef, arm_summary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_fusion_audit.evidence.container import Evidence


@dataclass(frozen=True, slots=True)
class RowCount:
    """Rows planned and scored; every planned row is either scored or counted under the reason why not."""

    planned: int
    scored: int
    by_reason: Mapping[str, int]

    @property
    def complete(self) -> bool:
        """Whether every planned row was scored. A run of nothing at all is not complete."""
        return 0 < self.planned == self.scored

    def to_json(self) -> dict[str, Any]:
        """The counts as builtins in the order of the scorecard schema."""
        return {
            "planned": self.planned,
            "scored": self.scored,
            "by_reason": {reason: self.by_reason[reason] for reason in sorted(self.by_reason)},
        }


def count_rows(evidence: Evidence) -> RowCount:
    """Add up the states of every arm of the run.

    A row in state ``pipeline_error`` counts as scored (and failed): the compound's own fault is an answer.
    """
    states: Counter[str] = Counter()
    for suite, split in evidence.splits:
        for arm in evidence.arms(suite, split):
            states.update(arm_summary(evidence, ArmRef(suite, split, arm)).states)
    planned = sum(states.values())
    scored = states.pop("scored", 0) + states.pop("pipeline_error", 0)
    return RowCount(planned, scored, dict(states))
