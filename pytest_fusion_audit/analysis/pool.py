"""The pool: every candidate of a split, and what could have been reached by always choosing the right one.

The oracle is over candidates only, never over a fused answer. A member may have several samples; its first, the primary
sample, is what the member alone would have answered. Where the compound's turns name the candidates they were shown,
samples drawn for other arms (self-consistency) do not enlarge its pool. A task belongs to the pool's figures when every
member's primary sample was scored and no further candidate waits for a verdict; a further candidate that its provider
never delivered is no candidate, since nobody could have picked it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from pytest_fusion_audit.analysis.arms import ArmRef, turns_of
from pytest_fusion_audit.analysis.matrix import PassMatrix, panel_of
from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.analysis.names import place
from pytest_fusion_audit.evidence.container import member_arm, row_of_turn
from pytest_fusion_audit.evidence.records import UNSCORED_OUTCOMES, ComparisonPlan, Split

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_fusion_audit.evidence.container import Evidence

POST_HOC: Final = "highest pass rate on this split (post hoc)"
PLANNED: Final = "named in the plan"


class PoolCandidate(NamedTuple):
    """One candidate with a verdict."""

    id: str
    member: str  # bare name with its configuration, as the panel has it
    sample: int
    passed: bool


class BestSingle(NamedTuple):
    """The best member alone, and how it was chosen."""

    arm: str
    rate: float
    how: Literal["highest pass rate on this split (post hoc)", "named in the plan"]


@dataclass(frozen=True)
class Pool:
    """Candidates of one split and one seed.

    Attributes:
        suite: name of the suite.
        split: name of the split.
        panel: members, bare names in panel order.
        tasks: task id -> candidates, for the tasks that belong to the figures; sorted by id.
        verdicts: task id -> candidate id -> verdict (None = unknown), for every recorded task.
        primaries: primary samples, members x every recorded task; missing ones are unknown.
        named: the member a registration named as best single, if one did.
        whole: whether the recorded candidates are all there were. True for a bank, and where every fused turn names
            its candidates and all are recorded; None where that cannot be told (only primaries were recorded).
    """

    suite: str
    split: str
    panel: tuple[str, ...]
    tasks: Mapping[str, tuple[PoolCandidate, ...]]
    verdicts: Mapping[str, Mapping[str, bool | None]]
    primaries: PassMatrix
    named: str | None
    whole: bool | None

    @property
    def n(self) -> int:
        """Tasks that every figure of the pool is over."""
        return len(self.tasks)

    @cached_property
    def matrix(self) -> PassMatrix:
        """Primary samples over the pool's tasks: what each member alone answered."""
        return self._matrix(primary_only=True)

    @cached_property
    def coverage(self) -> PassMatrix:
        """Whether any candidate of a member passes: members x the pool's tasks."""
        return self._matrix(primary_only=False)

    def _matrix(self, *, primary_only: bool) -> PassMatrix:
        rows: dict[str, dict[str, bool]] = {member: {} for member in self.panel}
        for task, candidates in self.tasks.items():
            for candidate in candidates:
                if candidate.sample == 0 or not primary_only:
                    held = rows[candidate.member].get(task, False)
                    rows[candidate.member][task] = held or candidate.passed
        return PassMatrix.from_rows(rows)

    def right(self, task: str) -> int:
        """How many candidates of one of the pool's tasks pass."""
        return sum(candidate.passed for candidate in self.tasks[task])

    def oracle(self) -> float | None:
        """Share of tasks that at least one candidate passes; None without tasks."""
        return self.coverage.oracle()

    def best_single(self) -> BestSingle | None:
        """The member a plan named, else the one with the highest rate of primary samples (ties: panel order)."""
        if self.named is not None:
            rate = self.matrix.pass_rates()[self.named]
            return None if rate is None else BestSingle(member_arm(self.named), rate, PLANNED)
        best = self.matrix.best_single()
        return None if best is None else BestSingle(member_arm(best[0]), best[1], POST_HOC)

    def headroom(self) -> float | None:
        """The oracle minus the best single's rate; None without tasks."""
        oracle, best = self.oracle(), self.best_single()
        return None if oracle is None or best is None else oracle - best.rate

    def random_pick(self) -> float | None:
        """Expected pass rate of a candidate drawn blindly from each task's pool."""
        shares = [self.right(task) / len(candidates) for task, candidates in self.tasks.items()]
        return sum(shares) / len(shares) if shares else None

    def decision_tasks(self) -> tuple[str, ...]:
        """Ids of the tasks whose candidates disagree: some pass and some fail."""
        return tuple(task for task, candidates in self.tasks.items() if 0 < self.right(task) < len(candidates))

    @property
    def all_fail(self) -> int:
        """Tasks that no candidate passes."""
        return sum(self.right(task) == 0 for task in self.tasks)

    @property
    def all_pass(self) -> int:
        """Tasks that every candidate passes."""
        return sum(self.right(task) == len(candidates) for task, candidates in self.tasks.items())

    def best_single_ref(self) -> ArmRef | None:
        """The best single as an arm of this split."""
        best = self.best_single()
        return None if best is None else ArmRef(self.suite, self.split, best.arm)


@per_evidence
def pool_of(
    evidence: Evidence,
    suite: str,
    split: str,
    *,
    config: str | None = None,
    tasks: frozenset[str] | None = None,
    replicate: int = 0,
) -> Pool:
    """Collect the pool of a split.

    Args:
        evidence: the run.
        suite: name of the suite.
        split: name of the split.
        config: take the members of this configuration (``4096`` for ``gpt@4096``) instead of the split's panel.
        tasks: restrict the pool to these ids, for instance those of a class.
        replicate: the seed; figures of a pool are over one seed, the first unless said.
    """
    panel = panel_of(evidence, suite, split)
    if config is not None:
        panel = tuple(member for member in evidence.members(suite, split) if member.partition("@")[2] == config)
    rows = {member: evidence.arm(suite, split, member_arm(member), replicate) for member in panel}
    wanted = sorted({task for of_member in rows.values() for task in of_member if tasks is None or task in tasks})
    shown = _shown_candidates(evidence, suite, split, replicate)
    further = _further_candidates(evidence, suite, split, panel, replicate)
    pool: dict[str, tuple[PoolCandidate, ...]] = {}
    verdicts: dict[str, dict[str, bool | None]] = {}
    for task in wanted:
        found = [
            _Found(f"{member}#0", member, 0, rows[member][task].passed if task in rows[member] else None)
            for member in panel
        ]
        found += [c for c in further.get(task, ()) if shown is None or c.id in shown.get(task, ())]
        verdicts[task] = {c.id: c.passed for c in found}
        if all(c.passed is not None for c in found):
            pool[task] = tuple(PoolCandidate(c.id, c.member, c.sample, c.passed is True) for c in found)
    return Pool(
        suite=suite,
        split=split,
        panel=panel,
        tasks=pool,
        verdicts=verdicts,
        primaries=PassMatrix(wanted, panel, [[verdicts[task][f"{m}#0"] for m in panel] for task in wanted]),
        named=_named_best(evidence, suite, split, panel),
        whole=_whole(evidence, suite, split, shown, verdicts),
    )


class _Found(NamedTuple):
    id: str
    member: str
    sample: int
    passed: bool | None


def _further_candidates(
    evidence: Evidence, suite: str, split: str, panel: tuple[str, ...], replicate: int
) -> dict[str, list[_Found]]:
    """Return the non-primary candidates by task id, without those that were never delivered."""
    place = {member: number for number, member in enumerate(panel)}
    further: dict[str, list[_Found]] = {}
    for task, candidates in evidence.candidates(suite, split).items():
        for c in candidates:
            member = member_arm(c.member, c.config).removeprefix("member:")
            own = c.sample > 0 and c.turn == 0 and c.replicate == replicate
            if own and member in place and c.outcome not in UNSCORED_OUTCOMES:
                further.setdefault(task, []).append(_Found(c.id, member, c.sample, row_of_turn(c).passed))
    return {task: sorted(found, key=lambda c: (place[c.member], c.sample)) for task, found in further.items()}


def _shown_candidates(
    evidence: Evidence, suite: str, split: str, replicate: int
) -> Mapping[str, frozenset[str]] | None:
    """Return the ids that the compound's turns were shown, by task id; None when any of them does not say."""
    turns = [turn for turn in turns_of(evidence, suite, split, replicate) if not turn.arm.startswith("self:")]
    if not turns or any(turn.candidate_ids is None for turn in turns):
        return None
    shown: dict[str, frozenset[str]] = {}
    for turn in turns:
        shown[turn.task] = shown.get(turn.task, frozenset()).union(turn.candidate_ids or ())
    return shown


def _named_best(evidence: Evidence, suite: str, split: str, panel: tuple[str, ...]) -> str | None:
    for plan in evidence.of(ComparisonPlan):
        name = plan.baseline_settings.get("best_single")
        if place(plan.suite, plan.split) == place(suite, split) and isinstance(name, str):
            bare = name.removeprefix("member:")
            if bare in panel:
                return bare
    return None


def _whole(
    evidence: Evidence,
    suite: str,
    split: str,
    shown: Mapping[str, frozenset[str]] | None,
    verdicts: Mapping[str, Mapping[str, bool | None]],
) -> bool | None:
    if shown is not None:
        return all(shown[task] <= verdicts[task].keys() for task in verdicts.keys() & shown.keys())
    turns = [turn for turn in turns_of(evidence, suite, split) if not turn.arm.startswith("self:")]
    if not evidence.candidates(suite, split) or turns:
        return None  # members known by verdicts alone, or turns that do not say what they were shown
    unfinished = any(
        (record.suite, record.split) == (suite, split) and record.complete is False for record in evidence.of(Split)
    )
    return None if unfinished else True
