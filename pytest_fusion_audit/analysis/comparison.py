"""Two arms compared task by task, over the tasks that count for both, joined by id.

With one seed on both sides this is McNemar's test on wins and losses. With several, each arm's passes are averaged
within a task first and the test runs across tasks by flipping signs, the same test for differences that are not whole.
Where every task's cluster is known, the larger of that p and a permutation over clusters decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from pytest_fusion_audit.analysis.arms import ArmRef, ArmSummary, arm_summary, seeds_of
from pytest_fusion_audit.analysis.classes import clusters_of
from pytest_fusion_audit.analysis.matrix import panel_of
from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.evidence.container import member_arm
from pytest_fusion_audit.stats import (
    Decision,
    PairedTest,
    decision,
    graded_paired_test,
    intersection_union,
    paired_interval,
    paired_test,
    sign_flip_test,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_fusion_audit.evidence.container import Evidence

__all__ = [
    "AgainstPanel",
    "ArmRef",
    "ArmSummary",
    "Comparison",
    "against_panel",
    "arm_summary",
    "compare",
    "compare_seeds",
]

MCNEMAR: Final = "exact McNemar"
SIGN_FLIP: Final = "sign-flip permutation on task means"
PipelineErrors = Literal["failed", "leave"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One paired comparison. ``first`` is the arm that wins a win; every figure is over the same ``n`` tasks.

    Attributes:
        first: the arm whose wins are counted.
        second: the other one.
        n: tasks that count for both.
        wins: tasks ``first`` passed (in more of its seeds) and ``second`` did not.
        losses: the reverse.
        both: tasks both passed (in every seed).
        neither: tasks neither passed (in any seed).
        not_run: tasks recorded for both that left the pair because one of them was not scored.
        unshared: tasks recorded for one arm only.
        seeds: seeds averaged on the first and on the second side.
        first_rate: pass rate of ``first`` over the n tasks.
        second_rate: pass rate of ``second`` over the n tasks.
        uplift: first_rate - second_rate, a share of 1; None when n is 0.
        test: name of the test behind ``exact_p``.
        exact_p: it decides, two-sided; None when n is 0.
        mid_p: shown beside it; None with several seeds, as are the chi-squares and the two intervals.
        chi2: McNemar's statistic without correction.
        chi2_p: its p.
        chi2_cc: McNemar's statistic with continuity correction.
        chi2_cc_p: its p.
        tango_low: lower end of Tango's 95 % score interval of the uplift.
        tango_high: upper end.
        newcombe_low: lower end of Newcombe's 95 % interval, a check.
        newcombe_high: upper end.
        clusters: clusters the tasks belong to; None when any task's cluster is unknown.
        clustered_p: sign-flip p over clusters; None likewise.
        decision_p: the larger of ``exact_p`` and ``clustered_p``.
        decision: "shown", "borderline: not shown" or "not shown", whichever the direction; None when n is 0.
    """

    first: ArmRef
    second: ArmRef
    n: int
    wins: int
    losses: int
    both: int
    neither: int
    not_run: int
    unshared: int
    seeds: tuple[int, int]
    first_rate: float | None
    second_rate: float | None
    uplift: float | None
    test: str
    exact_p: float | None
    mid_p: float | None
    chi2: float | None
    chi2_p: float | None
    chi2_cc: float | None
    chi2_cc_p: float | None
    tango_low: float | None
    tango_high: float | None
    newcombe_low: float | None
    newcombe_high: float | None
    clusters: int | None
    clustered_p: float | None
    decision_p: float | None
    decision: Decision | None

    @property
    def shows_uplift(self) -> bool:
        """Whether ``first`` is better and the difference is shown."""
        return self.decision == "shown" and self.uplift is not None and self.uplift > 0

    @property
    def shows_loss(self) -> bool:
        """Whether ``second`` is better at the less forgiving mid-p (the exact p with several seeds)."""
        p = self.mid_p if self.mid_p is not None else self.exact_p
        return p is not None and p < 0.05 and self.uplift is not None and self.uplift < 0


@per_evidence
def compare(
    evidence: Evidence,
    first: ArmRef,
    second: ArmRef,
    *,
    tasks: frozenset[str] | None = None,
    replicate: int | None = None,
    pipeline_errors: PipelineErrors = "failed",
) -> Comparison:
    """Compare two arms of one suite over the tasks that count for both, whatever their splits.

    Args:
        evidence: the run.
        first: the arm whose wins are counted.
        second: the other arm.
        tasks: restrict the comparison to these ids (a class, the intact tasks); None takes all.
        replicate: compare one seed with the same seed of the other arm, or with its only one; None averages seeds.
        pipeline_errors: "failed" counts the compound's own faults as failures; "leave" takes them out of the pair,
            as the served-path check does.
    """
    one, two = (_side(evidence, ref, tasks, replicate, pipeline_errors) for ref in (first, second))
    shared = sorted(one.rates.keys() & two.rates.keys())
    pairs = [(one.rates[task], two.rates[task]) for task in shared]
    n = len(pairs)
    wins, losses = sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)
    both, neither = sum(a == b == 1.0 for a, b in pairs), sum(a == b == 0.0 for a, b in pairs)
    differences = [a - b for a, b in pairs]
    averaged = max(one.seeds, two.seeds) > 1
    if averaged:
        # For differences of 0 and +-1 this is McNemar's exact test; there is no mid-p and no interval of Tango's.
        test = PairedTest(graded_paired_test(differences).p, None, None, None, None, None)
        tango = newcombe = None
    else:
        test = paired_test(wins, losses, n)
        tango = paired_interval(wins, losses, n)
        newcombe = paired_interval(wins, losses, n, both, method="newcombe")
    clusters = _clusters(evidence, first, shared)
    clustered_p = sign_flip_test(_sums(differences, clusters)).p if clusters else None
    decision_p = max((p for p in (test.exact_p, clustered_p) if p is not None), default=None)
    near_p = None if test.mid_p is None else max(test.mid_p, clustered_p or 0.0)
    return Comparison(
        first=first,
        second=second,
        n=n,
        wins=wins,
        losses=losses,
        both=both,
        neither=neither,
        not_run=len(one.recorded & two.recorded) - n,
        unshared=len(one.recorded ^ two.recorded),
        seeds=(one.seeds, two.seeds),
        first_rate=sum(a for a, _ in pairs) / n if n else None,
        second_rate=sum(b for _, b in pairs) / n if n else None,
        uplift=(sum(differences) if averaged else wins - losses) / n if n else None,
        test=SIGN_FLIP if averaged else MCNEMAR,
        exact_p=test.exact_p,
        mid_p=test.mid_p,
        chi2=test.chi2,
        chi2_p=test.chi2_p,
        chi2_cc=test.chi2_cc,
        chi2_cc_p=test.chi2_cc_p,
        tango_low=tango.low if tango else None,
        tango_high=tango.high if tango else None,
        newcombe_low=newcombe.low if newcombe else None,
        newcombe_high=newcombe.high if newcombe else None,
        clusters=len(set(clusters)) if clusters else None,
        clustered_p=clustered_p,
        decision_p=decision_p,
        decision=decision(decision_p, near_p),
    )


def compare_seeds(evidence: Evidence, first: ArmRef, second: ArmRef) -> tuple[Comparison, ...]:
    """Compare seed by seed, in order of the first arm's replicates."""
    replicates = evidence.replicates(first.suite, first.split, first.arm)
    return tuple(compare(evidence, first, second, replicate=replicate) for replicate in replicates)


@dataclass(frozen=True, slots=True)
class AgainstPanel:
    """One arm against every member of the panel of its split (intersection-union: it has to beat them all).

    Attributes:
        comparisons: one per member, in panel order.
        uplift: the smallest uplift, the headline; None when a comparison has no task or there is no member.
        member: the member it is the smallest against, as an arm's name.
        p: the largest decision p, with no correction; None likewise.
        shown: whether every uplift is above 0 and shown; None likewise.
    """

    comparisons: tuple[Comparison, ...]
    uplift: float | None
    member: str | None
    p: float | None
    shown: bool | None


@per_evidence
def against_panel(evidence: Evidence, ref: ArmRef, *, tasks: frozenset[str] | None = None) -> AgainstPanel:
    """Compare an arm with every member of its split's panel."""
    members = [ArmRef(ref.suite, ref.split, member_arm(m)) for m in panel_of(evidence, ref.suite, ref.split)]
    comparisons = tuple(compare(evidence, ref, member, tasks=tasks) for member in members)
    uplifts = [(c.uplift, c.second.arm) for c in comparisons if c.uplift is not None]
    if not comparisons or len(uplifts) < len(comparisons):
        return AgainstPanel(comparisons, None, None, None, None)
    uplift, member = min(uplifts, key=lambda found: found[0])
    return AgainstPanel(
        comparisons=comparisons,
        uplift=uplift,
        member=member,
        p=intersection_union(c.decision_p for c in comparisons),
        shown=all(c.shows_uplift for c in comparisons),
    )


class _Side(NamedTuple):
    rates: Mapping[str, float]  # of the tasks that count
    recorded: frozenset[str]
    seeds: int


@per_evidence
def _side(
    evidence: Evidence,
    ref: ArmRef,
    tasks: frozenset[str] | None,
    replicate: int | None,
    pipeline_errors: PipelineErrors,
) -> _Side:
    seeds = seeds_of(evidence, ref)
    if replicate is not None and len(seeds) > 1:
        seeds = (evidence.arm(ref.suite, ref.split, ref.arm, replicate),)
    verdicts: dict[str, list[bool]] = {}
    recorded: set[str] = set()
    for seed in seeds:
        for task, row in seed.items():
            if tasks is not None and task not in tasks:
                continue
            recorded.add(task)
            if row.passed is not None and (row.state == "scored" or pipeline_errors == "failed"):
                verdicts.setdefault(task, []).append(row.passed)
    rates = {task: sum(passes) / len(passes) for task, passes in verdicts.items()}
    return _Side(rates, frozenset(recorded), len(seeds))


def _sums(differences: Sequence[float], clusters: Sequence[str]) -> list[float]:
    sums: dict[str, float] = {}
    for difference, cluster in zip(differences, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + difference
    return list(sums.values())


def _clusters(evidence: Evidence, first: ArmRef, tasks: Sequence[str]) -> list[str] | None:
    """Cluster of each task, or None when it is unknown for any of them (or there is no task)."""
    known = clusters_of(evidence, first.suite, first.split)
    clusters = [known[task] for task in tasks if task in known]
    return clusters if clusters and len(clusters) == len(tasks) else None
