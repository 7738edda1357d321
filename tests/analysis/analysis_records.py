"""Small evidence by hand: one suite, one split, unless said otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.analysis.arms import ArmRef
from pytest_fusion_audit.evidence.container import Evidence, RunFacts
from pytest_fusion_audit.evidence.records import ArmOutcome, Candidate, Fused, Record, Task, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

SUITE, SPLIT = "suite", "locked"


def verdict(passed: bool | None) -> Verdict | None:
    return None if passed is None else "passed" if passed else "failed"


def candidate(task: str, member: str, passed: bool | None, **facts: Any) -> Candidate:
    return Candidate(**{"suite": SUITE, "split": SPLIT, "verdict": verdict(passed), **facts}, task=task, member=member)


def fused(task: str, passed: bool | None, arm: str = "compound", **facts: Any) -> Fused:
    return Fused(**{"suite": SUITE, "split": SPLIT, "verdict": verdict(passed), **facts}, task=task, arm=arm)


def outcome(task: str, arm: str, passed: bool | None, **facts: Any) -> ArmOutcome:
    return ArmOutcome(**{"suite": SUITE, "split": SPLIT, **facts}, task=task, arm=arm, passed=passed)


def task(name: str, **facts: Any) -> Task:
    return Task(**{"suite": SUITE, "split": SPLIT, **facts}, id=name)


def ref(arm: str = "compound", split: str = SPLIT) -> ArmRef:
    return ArmRef(SUITE, split, arm)


def evidence(*records: Any, run: RunFacts | None = None) -> Evidence:
    """Evidence of records and of (nested) lists of records."""

    def flat(items: Any) -> Iterator[Record]:
        for item in items:
            if isinstance(item, list):
                yield from flat(item)
            else:
                yield item

    return Evidence(run or RunFacts(), flat(records))


def outcomes(arm: str, marks: str, **facts: Any) -> list[Record]:
    """Verdicts of an arm on tasks t0, t1, …: + passed, - failed, ? unknown, a space = no row."""
    meaning = {"+": True, "-": False, "?": None}
    return [outcome(f"t{number}", arm, meaning[mark], **facts) for number, mark in enumerate(marks) if mark != " "]


def primaries(member: str, marks: str, **facts: Any) -> list[Record]:
    """Candidates of a member on tasks t0, t1, …; marks as in `outcomes`."""
    meaning = {"+": True, "-": False, "?": None}
    return [candidate(f"t{number}", member, meaning[mark], **facts) for number, mark in enumerate(marks) if mark != " "]
