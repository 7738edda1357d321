"""How a split's tasks are grouped: by class, when a figure is asked for per class, and by cluster, for the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.analysis.names import place
from pytest_fusion_audit.evidence.records import ComparisonPlan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_fusion_audit.evidence.container import Evidence


@per_evidence
def classes_of(evidence: Evidence, suite: str, split: str) -> Mapping[str, frozenset[str]]:
    """Ids of a split's tasks by class, classes sorted; tasks of unknown class are in none."""
    classes: dict[str, set[str]] = {}
    for task in evidence.task_ids(suite, split):
        facts = evidence.task_facts(suite, split, task)
        if facts is not None and facts.task_class is not None:
            classes.setdefault(facts.task_class, set()).add(task)
    return {name: frozenset(classes[name]) for name in sorted(classes)}


@per_evidence
def clusters_of(evidence: Evidence, suite: str, split: str) -> Mapping[str, str]:
    """Cluster of each task of a split, by id; tasks of unknown cluster are absent."""
    facts = {task: evidence.task_facts(suite, split, task) for task in evidence.task_ids(suite, split)}
    return {task: fact.cluster for task, fact in facts.items() if fact is not None and fact.cluster is not None}


def registered_classes(evidence: Evidence, suite: str, split: str) -> tuple[str, ...]:
    """Classes that a registration of this split named beforehand, sorted."""
    plans = [plan for plan in evidence.of(ComparisonPlan) if place(plan.suite, plan.split) == place(suite, split)]
    return tuple(sorted({name for plan in plans for name in plan.classes}))
