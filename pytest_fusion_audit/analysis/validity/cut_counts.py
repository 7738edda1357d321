"""How many answers of each arm were cut at the output limit or are empty, as far as anybody recorded it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.arms import ArmRef
from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.analysis.validity.facts import is_system, setting
from pytest_fusion_audit.analysis.validity.finding import of
from pytest_fusion_audit.evidence.container import member_arm
from pytest_fusion_audit.evidence.finish_words import known_finish
from pytest_fusion_audit.evidence.records import CUT_OUTCOMES, ArmOutcome, Candidate, Fused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_fusion_audit.evidence.container import Evidence

#: Share of cut answers above which an arm is not comparable, unless ``statistics.truncation_limit`` says otherwise.
TRUNCATION_LIMIT = 0.05


@dataclass(slots=True)
class Answers:
    """What is known of the answers of one arm: all draws and seeds, and per task those of its rows."""

    known: int = 0
    truncated: int = 0
    empty: int = 0
    finish_unknown: int = 0  # empty answers without a recorded finish reason
    cut_tasks: set[str] = field(default_factory=set)  # of the arm's own rows, first seed
    known_tasks: set[str] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)

    @property
    def cut(self) -> int:
        """Answers that were truncated or empty."""
        return self.truncated + self.empty

    @property
    def share(self) -> float:
        """Share of cut answers among those whose outcome is recorded."""
        return self.cut / self.known if self.known else 0.0

    def words(self) -> str:
        """The counts: "38 of 86 answers empty (44.2 %)"."""
        parts = [
            f"{of(count, self.known)} answers {name}"
            for name, count in (("truncated", self.truncated), ("empty", self.empty))
            if count
        ]
        unknown = ", finish reasons not recorded" if self.finish_unknown else ""
        return " and ".join(parts) + unknown

    def add(self, record: Candidate | Fused | ArmOutcome, *, own_row: bool) -> None:
        """Count one answer; ``own_row``: it is the arm's own row of that task, not a further draw."""
        if record.outcome is None:
            return
        self.known += 1
        cut = record.outcome in CUT_OUTCOMES
        if record.outcome == "truncated":
            self.truncated += 1
        elif cut:
            self.empty += 1
            self.finish_unknown += _finish_unknown(record)
        if cut:
            self.sources.add(record.source)
        if own_row:
            self.known_tasks.add(record.task)
            if cut:
                self.cut_tasks.add(record.task)


def _finish_unknown(record: Candidate | Fused | ArmOutcome) -> bool:
    """Whether nobody recorded why an answer is empty, in a word that says so.

    A turn of a compound is several calls and has no finish reason of its own; an empty one also only hurts itself.
    """
    if isinstance(record, Candidate):
        return not known_finish(record.finish_reason)
    return isinstance(record, ArmOutcome) and not is_system(record.arm)


@per_evidence
def answers(evidence: Evidence) -> Mapping[ArmRef, Answers]:
    """Arm -> what is known of its answers; arms of which nothing is known are not in it."""
    found: dict[ArmRef, Answers] = {}
    for candidate in evidence.of(Candidate):
        if candidate.outcome is not None:
            primary = candidate.sample == 0 and candidate.turn == 0 and candidate.replicate == 0
            ref = ArmRef(candidate.suite, candidate.split, member_arm(candidate.member, candidate.config))
            found.setdefault(ref, Answers()).add(candidate, own_row=primary)
    arm_rows: list[Fused | ArmOutcome] = [*evidence.of(Fused), *evidence.of(ArmOutcome)]
    for row in arm_rows:
        if row.outcome is not None:
            ref = ArmRef(row.suite, row.split, row.arm)
            found.setdefault(ref, Answers()).add(row, own_row=row.replicate == 0)
    return MappingProxyType(found)


def truncation_limit(evidence: Evidence) -> float:
    """Share of cut answers that is still comparable."""
    value = setting(evidence.run.settings, "statistics", "truncation_limit")
    return float(value) if isinstance(value, (int, float)) else TRUNCATION_LIMIT
