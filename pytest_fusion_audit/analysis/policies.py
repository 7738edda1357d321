"""Synthesis policies side by side: rewrite, the judge's pick verbatim, execution-guided selection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.arms import ArmRef, arm_summary, task_rates
from pytest_fusion_audit.analysis.comparison import compare
from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.stats import holm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_fusion_audit.analysis.comparison import Comparison
    from pytest_fusion_audit.evidence.container import Evidence


@dataclass(frozen=True, slots=True)
class PolicyTable:
    """Policies of one configuration over the tasks that count for all of them.

    Attributes:
        suite: name of the suite.
        split: name of the split.
        config: the configuration they share; None is the incumbent.
        arms: the policies' arms, sorted.
        n: tasks that count for every one of them.
        rates: pass rate of each over these tasks; None when n is 0.
        best: the highest point estimate (ties: first by name); None when n is 0.
        against_best: the best compared with each other policy, in order of ``arms``.
        adjusted_p: Holm-adjusted decision p of these comparisons, in their order.
        tied: policies not shown to be worse than the best, itself included.
        chosen: the cheapest of ``tied`` where all their costs are known, else ``best``.
    """

    suite: str
    split: str
    config: str | None
    arms: tuple[str, ...]
    n: int
    rates: Mapping[str, float | None]
    best: str | None
    against_best: tuple[Comparison, ...]
    adjusted_p: tuple[float | None, ...]
    tied: tuple[str, ...]
    chosen: str | None


def policy_configs(evidence: Evidence, suite: str, split: str) -> tuple[str | None, ...]:
    """Configurations in which at least two policies were run, the incumbent first."""
    configs = [_config(arm) for arm in evidence.arms(suite, split) if is_compound(arm)]
    several = {config for config in configs if configs.count(config) > 1}
    return tuple(sorted(several, key=lambda config: config or ""))


@per_evidence
def policy_table(
    evidence: Evidence, suite: str, split: str, *, config: str | None = None, tasks: frozenset[str] | None = None
) -> PolicyTable:
    """Compare the policies of one configuration.

    Args:
        evidence: the run.
        suite: name of the suite.
        split: name of the split.
        config: which configuration; None is the incumbent.
        tasks: restrict to these ids, for instance those of a class.
    """
    arms = tuple(arm for arm in evidence.arms(suite, split) if is_compound(arm) and _config(arm) == config)
    refs = {arm: ArmRef(suite, split, arm) for arm in arms}
    rates = {arm: task_rates(evidence, ref) for arm, ref in refs.items()}
    shared = set.intersection(*(set(found) for found in rates.values())) if rates else set()
    common = frozenset(shared if tasks is None else shared & tasks)
    n = len(common)
    means = {arm: sum(found[t] for t in sorted(common)) / n if n else None for arm, found in rates.items()}
    known = [(arm, rate) for arm, rate in means.items() if rate is not None]
    best = max(known, key=lambda item: item[1])[0] if known else None
    others = [arm for arm in arms if arm != best] if best is not None else []
    against = tuple(compare(evidence, refs[best], refs[arm], tasks=common) for arm in others) if best else ()
    adjusted = tuple(holm(c.decision_p for c in against))
    worse = {c.second.arm for c, p in zip(against, adjusted, strict=True) if p is not None and p < 0.05}
    tied = tuple(arm for arm in arms if arm not in worse) if best else ()
    costs = {arm: arm_summary(evidence, refs[arm]).cost_per_task_usd for arm in tied}
    priced = {arm: cost for arm, cost in costs.items() if cost is not None}
    cheapest = min(priced, key=lambda arm: priced[arm]) if tied and len(priced) == len(tied) else best
    return PolicyTable(suite, split, config, arms, n, means, best, against, adjusted, tied, cheapest)


def is_compound(arm: str) -> bool:
    """Whether the arm is the panel's compound, in any policy and configuration (not ``self:…``, not ``served``)."""
    return arm.partition("@")[0].partition(":")[0] == "compound"


def _config(arm: str) -> str | None:
    return arm.partition("@")[2] or None
