"""Routing and depth: mixtures of arms that answer each task by one of them, against always and never fusing.

A mixture is evaluated on recorded rows: the arm it decided for answers with its recorded verdict, cost and latency.
All of its figures are over the tasks that count for the decided arm, for the always-fuse arm and for the best single,
so that the three are paired.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_fusion_audit.analysis.arms import ArmRef, counts
from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.analysis.policies import is_compound
from pytest_fusion_audit.analysis.pool import pool_of
from pytest_fusion_audit.evidence.container import is_member, member_arm
from pytest_fusion_audit.evidence.money import MICRO
from pytest_fusion_audit.evidence.records import Route
from pytest_fusion_audit.stats import Decision, paired_test, quantile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_fusion_audit.evidence.container import ArmRow, Evidence
    from pytest_fusion_audit.evidence.records import Candidate

PUBLIC_TESTS: Final = "public_tests"
ANSWERS: Final = "answers"
VERDICTS: Final = "verdicts"


class Policy(NamedTuple):
    """What one way of answering achieved; dollars and seconds per task, None when any task's is unknown."""

    pass_rate: float | None
    cost_per_task_usd: float | None
    latency_p50_s: float | None
    latency_p95_s: float | None


class Pairs(NamedTuple):
    """The mixture (wins) against another policy (losses), by McNemar's exact test."""

    wins: int
    losses: int
    uplift: float | None
    exact_p: float | None
    mid_p: float | None
    decision: Decision | None


@dataclass(frozen=True, slots=True)
class Mixture:
    """A router or a depth rule on one split.

    Attributes:
        name: the router's name, or the signal that escalates.
        learned: whether the router was trained on outcomes.
        always: the arm that always-fuse uses.
        never: the arm that never-fuse uses, the best single.
        n: tasks.
        fused: tasks on which the mixture fused.
        fused_share: fused/n; None when n is 0.
        mixture: what it achieved.
        always_fuse: what always fusing achieved on the same tasks.
        never_fuse: what the best single achieved on the same tasks.
        cost_share: cost of the mixture over cost of always fusing; None when either is unknown.
        against_always: paired with always fusing.
        against_never: paired with the best single.
        at_run_time: whether the signal is known when the decision has to be taken; verdicts of hidden tests are not,
            so a rule on them is an upper bound.
    """

    name: str
    learned: bool
    always: str
    never: str
    n: int
    fused: int
    fused_share: float | None
    mixture: Policy
    always_fuse: Policy
    never_fuse: Policy
    cost_share: float | None
    against_always: Pairs
    against_never: Pairs
    at_run_time: bool


class _Answer(NamedTuple):
    passed: bool
    cost_micro_usd: int | None
    latency_s: float | None


@per_evidence
def routers(evidence: Evidence, suite: str, split: str) -> tuple[Mixture, ...]:
    """Evaluate every router whose decisions are recorded, sorted by name; empty without decisions or best single."""
    never = pool_of(evidence, suite, split).best_single_ref()
    always = _always_arm(evidence, suite, split)
    if never is None or always is None:
        return ()
    by_router: dict[str, list[Route]] = {}
    for route in evidence.of(Route):
        if (route.suite, route.split) == (suite, split):
            by_router.setdefault(route.router, []).append(route)
    found = []
    for name in sorted(by_router):
        decisions = {route.task: route.decision for route in by_router[name]}
        rows = {arm: evidence.arm(suite, split, arm) for arm in {*decisions.values()}}
        chosen = {
            task: (not is_member(arm), _answer(rows[arm][task]))
            for task, arm in decisions.items()
            if task in rows[arm] and counts(rows[arm][task])
        }
        learned = all(route.learned for route in by_router[name])
        found.append(_mixture(evidence, name, chosen, always, never, learned=learned, at_run_time=True))
    return tuple(found)


@per_evidence
def depth_tiers(evidence: Evidence, deep: ArmRef) -> tuple[Mixture, ...]:
    """Answer by the shallow pool (primary samples) and escalate to a fused arm when that pool disagrees.

    The shallow answer is the best single's. One mixture for each signal the bank records, in this order:
    ``public_tests`` (a primary sample fails a public test), ``answers`` (the primary samples' answers differ by hash),
    ``verdicts`` (their hidden verdicts differ: not known at run time, an upper bound). A shallow task costs every
    primary sample, since all had to be drawn to see them agree, and takes as long as the slowest; an escalated one
    costs what the fused turn cost, which includes its panel.
    """
    pool = pool_of(evidence, deep.suite, deep.split)
    never = pool.best_single_ref()
    if never is None or len(pool.panel) < 2:
        return ()
    rows = {member: evidence.arm(deep.suite, deep.split, member_arm(member)) for member in pool.panel}
    fused = evidence.arm(deep.suite, deep.split, deep.arm)
    primaries = {task: [rows[member][task] for member in pool.panel] for task in pool.tasks}
    tiers = []
    for signal, disagree in _signals(evidence, deep, pool.panel, primaries).items():
        chosen: dict[str, tuple[bool, _Answer]] = {}
        for task, shallow in primaries.items():
            if disagree(task):
                if task in fused and counts(fused[task]):
                    chosen[task] = (True, _answer(fused[task]))
            else:
                best = rows[never.arm.removeprefix("member:")][task]
                costs = [row.cost_micro_usd for row in shallow if row.cost_micro_usd is not None]
                seconds = [row.latency_s for row in shallow if row.latency_s is not None]
                answer = _Answer(
                    passed=best.passed is True,
                    cost_micro_usd=sum(costs) if len(costs) == len(shallow) else None,
                    latency_s=max(seconds) if len(seconds) == len(shallow) else None,
                )
                chosen[task] = (False, answer)
        tiers.append(_mixture(evidence, signal, chosen, deep, never, learned=False, at_run_time=signal != VERDICTS))
    return tuple(tiers)


def _signals(
    evidence: Evidence, deep: ArmRef, panel: Sequence[str], primaries: Mapping[str, Sequence[ArmRow]]
) -> dict[str, Callable[[str], bool]]:
    """Return the disagreement rules that are recorded for every task."""
    bank: dict[str, list[Candidate]] = {}
    for task, candidates in evidence.candidates(deep.suite, deep.split).items():
        bank[task] = [
            c
            for c in candidates
            if (c.sample, c.turn, c.replicate) == (0, 0, 0)
            and member_arm(c.member, c.config).removeprefix("member:") in panel
        ]
    first = [c for task in primaries for c in bank.get(task, ())]
    whole = bool(first) and len(first) == len(primaries) * len(panel)
    rules: dict[str, Callable[[str], bool]] = {}
    if whole and all(c.public_passed is not None and c.public_total is not None for c in first):
        rules[PUBLIC_TESTS] = lambda task: any((c.public_passed or 0) < (c.public_total or 0) for c in bank[task])
    if whole and all(c.answer_sha256 is not None for c in first):
        rules[ANSWERS] = lambda task: len({c.answer_sha256 for c in bank[task]}) > 1
    if primaries:
        rules[VERDICTS] = lambda task: len({row.passed for row in primaries[task]}) > 1
    return rules


def _always_arm(evidence: Evidence, suite: str, split: str) -> ArmRef | None:
    """The incumbent compound, else the only fused arm of the split."""
    fused = [arm for arm in evidence.arms(suite, split) if is_compound(arm)]
    if "compound" in fused:
        return ArmRef(suite, split, "compound")
    return ArmRef(suite, split, fused[0]) if len(fused) == 1 else None


def _answer(row: ArmRow) -> _Answer:
    return _Answer(row.passed is True, row.cost_micro_usd, row.latency_s)


def _mixture(
    evidence: Evidence,
    name: str,
    chosen: Mapping[str, tuple[bool, _Answer]],
    always: ArmRef,
    never: ArmRef,
    *,
    learned: bool,
    at_run_time: bool,
) -> Mixture:
    deep, single = evidence.arm(*always), evidence.arm(*never)
    tasks = sorted(
        task for task in chosen if task in deep and task in single and counts(deep[task]) and counts(single[task])
    )
    mixed = [chosen[task][1] for task in tasks]
    fuse, solo = [_answer(deep[task]) for task in tasks], [_answer(single[task]) for task in tasks]
    fused = sum(chosen[task][0] for task in tasks)
    policies = [_policy(answers) for answers in (mixed, fuse, solo)]
    return Mixture(
        name=name,
        learned=learned,
        always=always.arm,
        never=never.arm,
        n=len(tasks),
        fused=fused,
        fused_share=fused / len(tasks) if tasks else None,
        mixture=policies[0],
        always_fuse=policies[1],
        never_fuse=policies[2],
        cost_share=_share(policies[0].cost_per_task_usd, policies[1].cost_per_task_usd),
        against_always=_pairs(mixed, fuse),
        against_never=_pairs(mixed, solo),
        at_run_time=at_run_time,
    )


def _share(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _policy(answers: Sequence[_Answer]) -> Policy:
    n = len(answers)
    costs = [answer.cost_micro_usd for answer in answers if answer.cost_micro_usd is not None]
    seconds = [answer.latency_s for answer in answers if answer.latency_s is not None]
    timed = n > 0 and len(seconds) == n
    return Policy(
        pass_rate=sum(answer.passed for answer in answers) / n if n else None,
        cost_per_task_usd=sum(costs) / (n * MICRO) if n and len(costs) == n else None,
        latency_p50_s=quantile(seconds, 0.5) if timed else None,
        latency_p95_s=quantile(seconds, 0.95) if timed else None,
    )


def _pairs(mixed: Sequence[_Answer], other: Sequence[_Answer]) -> Pairs:
    wins = sum(a.passed and not b.passed for a, b in zip(mixed, other, strict=True))
    losses = sum(b.passed and not a.passed for a, b in zip(mixed, other, strict=True))
    test = paired_test(wins, losses, len(mixed))
    uplift = (wins - losses) / len(mixed) if mixed else None
    return Pairs(wins, losses, uplift, test.exact_p, test.mid_p, test.decision())
