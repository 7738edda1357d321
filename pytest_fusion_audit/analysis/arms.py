"""One arm by itself: how often it passed, out of how many, at what cost and latency, and what became of the rest.

Every task planned for an arm ends in exactly one state. Scored rows and pipeline errors count (a pipeline error is
the compound's own failure); everything else leaves the denominator and stays visible in `ArmSummary.states`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.analysis.names import place
from pytest_fusion_audit.evidence.container import is_member, member_arm
from pytest_fusion_audit.evidence.finish_words import known_finish
from pytest_fusion_audit.evidence.money import MICRO, usd
from pytest_fusion_audit.evidence.records import UNSCORED_OUTCOMES, Candidate, ComparisonPlan, Fused, Split
from pytest_fusion_audit.stats import quantile, wilson_interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_fusion_audit.evidence.container import ArmRow, Evidence

#: Why a row without a verdict was an attempt all the same: something was answered, nobody could grade it.
_ANSWERED_UNGRADED: Final = frozenset({"ungradeable", "no verdict recorded"})
#: The state of a planned task for which the arm has no row at all.
NOT_RECORDED: Final = "not_recorded"


class ArmRef(NamedTuple):
    """Which arm, on which split of which suite."""

    suite: str
    split: str
    arm: str

    def __str__(self) -> str:
        return "/".join(self)


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """Figures of one arm on one split. Unknown is None; rates are 0..1, money is dollars, latency is seconds.

    Attributes:
        ref: the arm.
        n: tasks that count (scored, or failed by a pipeline error): the denominator of ``pass_rate``.
        planned: tasks planned for the arm, as far as recorded; never below the tasks it has rows for.
        replicates: seeds recorded. Several are averaged within a task first.
        passed: tasks passed; None with several seeds, where a task can be passed in part.
        pass_rate: mean over tasks.
        wilson_low: lower end of Wilson's 95 % interval; None with several seeds.
        wilson_high: upper end.
        rows: turns that count, over all seeds: the denominator of ``empty`` and ``truncated``.
        attempted: turns that were sent, the denominator of ``cost_per_task_usd``.
        cost_usd: all spend of the arm; None when the cost of any attempted turn is unknown.
        cost_known_usd: the spend that is known.
        cost_known_n: attempted turns whose cost is known.
        cost_per_task_usd: all spend over attempted turns.
        cost_per_solve_usd: all spend over passed turns; None without any.
        latency_p50_s: median wall time of the turns that count, linear interpolation.
        latency_p95_s: 95th percentile, linear interpolation.
        latency_n: turns whose latency is known.
        empty: turns that count and returned nothing; None when the source does not tell.
        truncated: turns that count and were cut by the output limit; None when the source does not tell.
        cut: turns that count and were empty or cut, as far as told; None when no outcome is recorded.
        rate_excluding_cut: share passed of the turns that were neither; a sensitivity figure, not an estimate.
        intact: turns that were neither, the denominator of ``rate_excluding_cut``.
        states: state -> turns, over all seeds; they add up to the plan.
    """

    ref: ArmRef
    n: int
    planned: int
    replicates: int
    passed: int | None
    pass_rate: float | None
    wilson_low: float | None
    wilson_high: float | None
    rows: int
    attempted: int
    cost_usd: float | None
    cost_known_usd: float | None
    cost_known_n: int
    cost_per_task_usd: float | None
    cost_per_solve_usd: float | None
    latency_p50_s: float | None
    latency_p95_s: float | None
    latency_n: int
    empty: int | None
    truncated: int | None
    cut: int | None
    rate_excluding_cut: float | None
    intact: int | None
    states: Mapping[str, int] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every planned task counts in every seed."""
        return self.rows == self.planned * self.replicates


def counts(row: ArmRow) -> bool:
    """Whether the row belongs in a denominator: it was scored, or the compound itself failed."""
    return row.state != "not_run"


def was_attempted(row: ArmRow) -> bool:
    """Whether the turn was sent at all, so that its cost belongs to the arm and the task to its denominator."""
    if counts(row) or row.cost_micro_usd:
        return True
    if row.outcome is None:
        return row.reason in _ANSWERED_UNGRADED
    return row.outcome != "censored_budget"


def seeds_of(evidence: Evidence, ref: ArmRef) -> tuple[Mapping[str, ArmRow], ...]:
    """Rows by task id of each seed of an arm, in order of replicate; empty when the arm is not recorded."""
    return tuple(
        evidence.arm(ref.suite, ref.split, ref.arm, replicate)
        for replicate in evidence.replicates(ref.suite, ref.split, ref.arm)
    )


@per_evidence
def turns_of(evidence: Evidence, suite: str, split: str, replicate: int = 0) -> tuple[Fused, ...]:
    """Turns of every fused arm of a split in one seed, in recorded order."""
    return tuple(
        turn for turn in evidence.of(Fused) if (turn.suite, turn.split, turn.replicate) == (suite, split, replicate)
    )


@per_evidence
def task_rates(evidence: Evidence, ref: ArmRef) -> Mapping[str, float]:
    """Share of its seeds in which the arm passed, by task id; tasks that count in no seed are absent."""
    seen: dict[str, list[bool]] = {}
    for rows in seeds_of(evidence, ref):
        for task, row in rows.items():
            if row.passed is not None:
                seen.setdefault(task, []).append(row.passed)
    return {task: sum(verdicts) / len(verdicts) for task, verdicts in sorted(seen.items())}


@per_evidence
def arm_summary(evidence: Evidence, ref: ArmRef) -> ArmSummary:
    """Summarise one arm. An arm that is not recorded has n 0 and None everywhere."""
    seeds = seeds_of(evidence, ref)
    rows = [row for seed in seeds for row in seed.values()]
    counted = [row for row in rows if counts(row)]
    attempted = [row for row in rows if was_attempted(row)]
    rates = task_rates(evidence, ref)
    passed = sum(row.passed is True for row in counted)
    interval = wilson_interval(passed, len(counted)) if len(seeds) == 1 else None
    known = [row.cost_micro_usd for row in attempted if row.cost_micro_usd is not None]
    spent = sum(known) if attempted and len(known) == len(attempted) else None
    latencies = [row.latency_s for row in counted if row.latency_s is not None]
    planned = planned_tasks(evidence, ref)
    outcomes = Counter(row.outcome for row in counted)
    told = bool(counted) and len(outcomes) > (None in outcomes)
    intact = [row for row in counted if not row.cut]
    return ArmSummary(
        ref=ref,
        n=len(rates),
        planned=planned,
        replicates=len(seeds),
        passed=passed if len(seeds) == 1 else None,
        pass_rate=sum(rates.values()) / len(rates) if rates else None,
        wilson_low=interval.low if interval else None,
        wilson_high=interval.high if interval else None,
        rows=len(counted),
        attempted=len(attempted),
        cost_usd=None if spent is None else usd(spent),
        cost_known_usd=usd(sum(known)) if known else None,
        cost_known_n=len(known),
        cost_per_task_usd=None if spent is None else spent / (len(attempted) * MICRO),
        cost_per_solve_usd=spent / (passed * MICRO) if spent is not None and passed else None,
        latency_p50_s=quantile(latencies, 0.5),
        latency_p95_s=quantile(latencies, 0.95),
        latency_n=len(latencies),
        empty=outcomes["empty"] + outcomes["no_text"] if told and emptiness_is_told(evidence, ref) else None,
        truncated=outcomes["truncated"] if told and cuts_are_told(evidence, ref) else None,
        cut=len(counted) - len(intact) if told else None,
        rate_excluding_cut=sum(row.passed is True for row in intact) / len(intact) if told and intact else None,
        intact=len(intact) if told else None,
        states=_states(rows, planned * len(seeds)),
    )


def planned_tasks(evidence: Evidence, ref: ArmRef) -> int:
    """Tasks planned for an arm.

    A registration that lists the arm says it, and so does an unfinished split. Where neither stands, an arm was
    planned on the tasks it has rows for: 25 tasks of a served-path check are not 61 missing ones.
    """
    planned = len({task for rows in seeds_of(evidence, ref) for task in rows})
    for plan in evidence.of(ComparisonPlan):
        if place(plan.suite, plan.split) == place(*ref[:2]) and ref.arm in plan.arms:
            planned = max(planned, plan.n)
    for split in evidence.of(Split):
        if place(split.suite, split.split) == place(*ref[:2]) and split.complete is False:
            planned = max(planned, split.planned or 0, len(split.ids or ()))
    return planned


@per_evidence
def cuts_are_told(evidence: Evidence, ref: ArmRef) -> bool:
    """Whether the source tells truncated answers from whole ones, so that "0 truncated" means none.

    It does where a truncated answer stands among the rows, where finish reasons are recorded, and where output tokens
    stand beside the limit they could have hit. An outcome "answered" alone says only that there was text.
    """
    rows = [row for seed in seeds_of(evidence, ref) for row in seed.values() if counts(row)]
    if any(row.outcome == "truncated" for row in rows):
        return True
    if not rows or any(row.outcome is None for row in rows):
        return False
    if not is_member(ref.arm):
        return all(row.output_tokens is not None for row in rows)
    bank = [c for of_task in evidence.candidates(ref.suite, ref.split).values() for c in of_task]
    return any(known_finish(c.finish_reason) for c in bank) or _limits_are_told(_primaries(evidence, ref))


@per_evidence
def emptiness_is_told(evidence: Evidence, ref: ArmRef) -> bool:
    """Whether the source tells empty answers from others, so that "0 empty" means none.

    It does where an empty answer stands among the rows, and where lengths of answers are recorded. Of rows that are no
    candidates the recorded outcome is all there is; a candidate's may have been told from its tokens alone.
    """
    rows = [row for seed in seeds_of(evidence, ref) for row in seed.values() if counts(row)]
    if any(row.outcome in {"empty", "no_text"} for row in rows):
        return True
    own = _primaries(evidence, ref)
    if own:
        return all(c.answer_chars is not None for c in own if c.outcome not in UNSCORED_OUTCOMES)
    return all(row.outcome is not None for row in rows)


def _primaries(evidence: Evidence, ref: ArmRef) -> list[Candidate]:
    """Return the candidates an arm ``member:…`` consists of."""
    return [
        c
        for of_task in evidence.candidates(ref.suite, ref.split).values()
        for c in of_task
        if c.sample == 0 and member_arm(c.member, c.config) == ref.arm
    ]


def _limits_are_told(candidates: Sequence[Candidate]) -> bool:
    def limit(candidate: Candidate) -> bool:
        sent = candidate.parameters_sent or candidate.parameters_asked or {}
        named = any(name.startswith("max_") and name.endswith("tokens") for name in sent)
        return named or (candidate.config or "").isdigit()  # a configuration named by its output cap

    return bool(candidates) and all(limit(c) and c.output_tokens is not None for c in candidates)


def _states(rows: Iterable[ArmRow], planned: int) -> dict[str, int]:
    states = Counter(_state(row) for row in rows)
    missing = planned - sum(states.values())
    if missing > 0:
        states[NOT_RECORDED] += missing
    return dict(sorted(states.items()))


def _state(row: ArmRow) -> str:
    if row.state != "not_run":
        return row.state
    # A reason may end in the source's own words, "infra_error: connection reset"; the state is what comes before.
    # An answer that nobody could grade was answered all the same: only an outcome that has no verdict is a state.
    outcome = row.outcome if row.outcome in UNSCORED_OUTCOMES else None
    return outcome or (row.reason or "not_run").partition(":")[0]
