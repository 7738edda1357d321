"""How much of what was planned was scored, counted in rows: one task answered by one arm.

Completeness is that of the system under audit: of every split that it or a member of its panel answered, and of what
was registered. Rows of other models that lie beside it are counted beside it: they can neither complete a run nor make
it incomplete.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.analysis.arms import NOT_RECORDED, ArmRef, arm_summary
from pytest_fusion_audit.analysis.names import place
from pytest_fusion_audit.analysis.validity.split_roles import arms_beside
from pytest_fusion_audit.evidence.records import ComparisonPlan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_fusion_audit.evidence.container import Evidence


@dataclass(frozen=True, slots=True)
class RowCount:
    """Rows planned and scored; every planned row is either scored or counted under the reason why not.

    ``beside`` counts the arms that are not of the system under audit, by ``suite/split``.
    """

    planned: int
    scored: int
    by_reason: Mapping[str, int]
    beside: Mapping[str, RowCount] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every planned row was scored. A run of nothing at all is not complete."""
        return 0 < self.planned == self.scored

    def to_json(self) -> dict[str, Any]:
        """The counts as builtins in the order of the scorecard schema; ``beside`` only where something stands there."""
        counts: dict[str, Any] = {
            "planned": self.planned,
            "scored": self.scored,
            "by_reason": {reason: self.by_reason[reason] for reason in sorted(self.by_reason)},
        }
        if self.beside:
            counts["beside"] = {name: self.beside[name].to_json() for name in sorted(self.beside)}
        return counts


def count_rows(evidence: Evidence) -> RowCount:
    """Add up the states of every arm of the run, and of every registered arm that has no row.

    A row in state ``pipeline_error`` counts as scored (and failed): the compound's own fault is an answer.
    """
    others = arms_beside(evidence)
    states = _unshown(evidence)
    beside: dict[str, Counter[str]] = {}
    for suite, split in evidence.splits:
        for arm in evidence.arms(suite, split):
            own = states if (suite, split, arm) not in others else beside.setdefault(f"{suite}/{split}", Counter())
            own.update(arm_summary(evidence, ArmRef(suite, split, arm)).states)
    return _counted(states, {name: _counted(counts, {}) for name, counts in beside.items()})


def _counted(states: Counter[str], beside: Mapping[str, RowCount]) -> RowCount:
    planned = sum(states.values())
    scored = states.pop("scored", 0) + states.pop("pipeline_error", 0)
    return RowCount(planned, scored, dict(states), beside)


def _unshown(evidence: Evidence) -> Counter[str]:
    """Rows of registered arms that were never recorded: planned, and nobody knows what became of them."""
    recorded = {(*place(suite, split), arm) for suite, split in evidence.splits for arm in evidence.arms(suite, split)}
    planned: dict[tuple[str, str, str], int] = {}
    for plan in evidence.of(ComparisonPlan):
        for arm in plan.arms:
            key = (*place(plan.suite, plan.split), arm)
            if key not in recorded:
                planned[key] = max(planned.get(key, 0), plan.n)
    rows = sum(planned.values())
    return Counter({NOT_RECORDED: rows} if rows else {})
