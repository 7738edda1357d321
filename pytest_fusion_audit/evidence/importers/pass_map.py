"""A map from task id to verdict, the form in which several files give what an arm did."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_fusion_audit.evidence.importers.base import Source, refusal, shown
from pytest_fusion_audit.evidence.importers.rows import Row, no_verdict, unique_items
from pytest_fusion_audit.evidence.records import ArmOutcome, Note

if TYPE_CHECKING:
    from pytest_fusion_audit.evidence.records import Outcome


class PassMap:
    """Verdicts of one arm by task id; None is a task without verdict.

    Args:
        row: the object that holds the map.
        name: the field of the map.

    Raises:
        ImportRefusedError: the field is missing, or a value is neither true, false, 1, 0 nor null.
    """

    def __init__(self, row: Row, name: str) -> None:
        value = row.data.get(name)
        if not isinstance(value, dict):
            raise row.refuse(name, "an object from task id to true or false")
        place = f"{row.where}.{name}" if row.where else name
        items, self.repeats = unique_items(row.source, value, place)
        self.source: Source = row.source
        self.passed = {task: _flag(row.source, f"{place}.{task}", verdict) for task, verdict in items}

    @property
    def count(self) -> int:
        """Number of tasks that passed."""
        return sum(verdict is True for task, verdict in self.passed.items() if task not in self.repeats.spoiled)

    def outcomes(self, suite: str, split: str, arm: str) -> list[ArmOutcome]:
        """One record per task; a task that stood twice with different verdicts is not run on either side."""
        of = Arm(suite, split, arm, self.source.name)
        spoiled = self.repeats.spoiled
        return [arm_outcome(of, task, passed, spoiled=task in spoiled) for task, passed in self.passed.items()]

    def notes(self) -> list[Note]:
        """Repeated ids and missing verdicts."""
        return [*self.repeats.notes(), *no_verdict(sum(v is None for v in self.passed.values()), "tasks")]


class Arm(NamedTuple):
    """An arm of one split as one file records it."""

    suite: str
    split: str
    name: str
    source: str


NO_VERDICT = "no verdict recorded"


def arm_outcome(
    of: Arm,
    task: str,
    passed: bool | None,
    *,
    spoiled: bool = False,
    score: float | None = None,
    reason: str | None = None,
    outcome: Outcome | None = None,
) -> ArmOutcome:
    """Record of one verdict; without one, or when the id stood twice with different ones, the task is not run."""
    known = passed is not None and not spoiled
    return ArmOutcome(
        task=task,
        suite=of.suite,
        split=of.split,
        arm=of.name,
        state="scored" if known else "not_run",
        reason=reason if known else "duplicate_ids" if spoiled else NO_VERDICT,
        outcome=outcome,
        passed=passed if known else None,
        score=score if known else None,
        source=of.source,
    )


def _flag(source: Source, where: str, value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and value in {0, 1}:
        return bool(value)
    raise refusal(source, f"true or false is expected, not {shown(value)}", f"field {where}")
