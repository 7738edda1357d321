"""Measurements of a split's pool, and of its fused arms against it. Names are listed in docs/measurements.md."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from pytest_fusion_audit.analysis.classes import classes_of
from pytest_fusion_audit.analysis.comparison import against_panel
from pytest_fusion_audit.analysis.judge import calibration_of, judge_figures, synthesis_regressions
from pytest_fusion_audit.analysis.policies import policy_configs, policy_table
from pytest_fusion_audit.analysis.pool import pool_of
from pytest_fusion_audit.analysis.regret import against_pool, regret_of
from pytest_fusion_audit.analysis.routing import depth_tiers, routers
from pytest_fusion_audit.analysis.samples import matched_samples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import JsonValue

    from pytest_fusion_audit.analysis.arms import ArmRef
    from pytest_fusion_audit.analysis.judge import PickAccuracy
    from pytest_fusion_audit.analysis.pool import Pool
    from pytest_fusion_audit.analysis.routing import Mixture
    from pytest_fusion_audit.evidence.container import Evidence

#: Best subsets of every size are searched as long as there are at most this many sets to look at.
MOST_SUBSETS: Final = 20_000


def pool_measurements(evidence: Evidence, suite: str, split: str) -> Iterator[tuple[str, JsonValue]]:
    """Yield (name, value) of everything that is about the candidates of a split."""
    prefix = f"{suite}/{split}"
    pool = pool_of(evidence, suite, split)
    for name, value in _headline(pool).items():
        yield f"{prefix}/{name}", value
    yield f"{prefix}/members", len(pool.panel)
    yield f"{prefix}/pool", None if not pool.panel else "all candidates" if pool.whole else "recorded primaries"
    yield f"{prefix}/pool_left_out", len(pool.verdicts) - pool.n
    if any("@" in member for member in pool.panel):  # no incumbent panel: each configuration is one of its own
        for config in sorted({member.partition("@")[2] for member in pool.panel}):
            for name, value in _headline(pool_of(evidence, suite, split, config=config)).items():
                yield f"{prefix}/{name}@{config}", value
    yield from _members(prefix, pool)
    yield from _best_subsets(prefix, pool)
    for matched in matched_samples(evidence, suite, split):
        at = f"{prefix}/matched_samples/{matched.samples}"
        yield f"{at}/n", matched.n
        yield f"{at}/panel_oracle", matched.panel_oracle
        yield f"{at}/best_single", f"member:{matched.best}"
        yield f"{at}/best_single_oracle", matched.member_oracle[matched.best]
        yield f"{at}/gap", matched.gap
    for name, tasks in classes_of(evidence, suite, split).items():
        for quantity, value in _headline(pool_of(evidence, suite, split, tasks=tasks)).items():
            yield f"{prefix}/class/{name}/{quantity}", value
    for router in routers(evidence, suite, split):
        yield from _mixture(f"{prefix}/router/{router.name}", router)


def _members(prefix: str, pool: Pool) -> Iterator[tuple[str, JsonValue]]:
    for quantity, values in (
        ("win_rates", pool.matrix.win_rates()),
        ("leave_one_out", pool.coverage.leave_one_out()),
        ("shapley", pool.coverage.shapley()),
    ):
        for member, value in values.items():
            yield f"{prefix}/{quantity}/{member}", value
    for (a, b), r in pool.primaries.failure_correlation().items():
        yield f"{prefix}/failure_correlation/{a}~{b}", r
        yield f"{prefix}/failure_correlation_n/{a}~{b}", pool.primaries.paired(a, b).n


def _headline(pool: Pool) -> dict[str, JsonValue]:
    best = pool.best_single()
    known = pool.n > 0
    return {
        "oracle": pool.oracle(),
        "oracle_n": pool.n,
        "best_single": best.arm if best else None,
        "best_single_rate": best.rate if best else None,
        "best_single_how": best.how if best else None,
        "headroom": pool.headroom(),
        "random_pick": pool.random_pick(),
        "decision_tasks": len(pool.decision_tasks()) if known else None,
        "both_fail": pool.all_fail if known else None,
        "both_pass": pool.all_pass if known else None,
    }


def _best_subsets(prefix: str, pool: Pool) -> Iterator[tuple[str, JsonValue]]:
    members, looked_at = len(pool.panel), 0
    if pool.n == 0 or members < 2:
        return
    for size in range(1, members):
        looked_at += math.comb(members, size)
        if looked_at > MOST_SUBSETS:
            return
        names, rate = max(pool.coverage.subsets(size, size), key=lambda found: found[1] or 0.0)
        yield f"{prefix}/best_subset/{size}/oracle", rate
        yield f"{prefix}/best_subset/{size}/members", "+".join(names)


def fused_measurements(evidence: Evidence, ref: ArmRef) -> Iterator[tuple[str, JsonValue]]:
    """Yield (name, value) of a compound against its pool; figures of ``compound`` itself stand on the split's level."""
    prefix = f"{ref.suite}/{ref.split}" if ref.arm == "compound" else str(ref)
    regret, against = regret_of(evidence, ref), against_pool(evidence, ref)
    known = regret.n > 0
    yield f"{prefix}/regret/n", regret.n
    yield f"{prefix}/regret/total", regret.total
    yield f"{prefix}/regret/judge", regret.judge
    yield f"{prefix}/regret/synthesis", regret.synthesis
    yield f"{prefix}/regret/over", regret.over if known else None
    yield f"{prefix}/judge_pick_rate", regret.pick_rate
    yield f"{prefix}/picks_named", regret.picks_named
    yield f"{prefix}/picks_unknown", regret.picks_unknown
    yield f"{prefix}/rescues", against.rescues
    yield f"{prefix}/passes_outside_recorded", against.passes_outside_recorded if known else None
    yield f"{prefix}/losses_to_pool", against.losses_to_pool if known else None
    judge = judge_figures(evidence, ref)
    yield from _accuracy(f"{prefix}/judge_pick_accuracy", judge.accuracy if judge else None)
    yield from _accuracy(f"{prefix}/judge_pick_accuracy_strict", judge.strict if judge else None)
    yield f"{prefix}/judge_strict_coverage", judge.strict_coverage if judge else None
    yield f"{prefix}/judge_skill_n", judge.skill.n if judge else None
    yield f"{prefix}/judge_skill_p", judge.skill.p if judge else None
    written = synthesis_regressions(evidence, ref)
    yield f"{prefix}/synthesis_regressions", written.regressions if written else None
    yield f"{prefix}/synthesis_regressions_n", written.n if written else None
    yield f"{prefix}/synthesis_regression_rate", written.rate if written else None
    yield f"{prefix}/synthesis_regression_rate_of_right_picks", written.rate_of_right_picks if written else None
    yield f"{prefix}/synthesis_improvements", written.improvements if written else None
    calibration = calibration_of(evidence, ref)
    if calibration is not None:
        yield f"{prefix}/judge_calibration/n", calibration.n
        yield f"{prefix}/judge_calibration/brier", calibration.brier
        yield f"{prefix}/judge_calibration/ece", calibration.ece
    panel = against_panel(evidence, ref)
    yield f"{ref}/against_panel/uplift", panel.uplift
    yield f"{ref}/against_panel/member", panel.member
    yield f"{ref}/against_panel/p", panel.p
    yield f"{ref}/against_panel/shown", panel.shown
    for name, tasks in classes_of(evidence, ref.suite, ref.split).items():
        of_class = judge_figures(evidence, ref, tasks=tasks)
        yield from _accuracy(f"{prefix}/class/{name}/judge_pick_accuracy_strict", of_class.strict if of_class else None)
    for tier in depth_tiers(evidence, ref):
        yield from _mixture(f"{ref}/depth/{tier.name}", tier)


def _accuracy(name: str, accuracy: PickAccuracy | None) -> Iterator[tuple[str, JsonValue]]:
    yield name, accuracy.rate if accuracy else None
    yield f"{name}_n", accuracy.n if accuracy else None
    yield f"{name}_chance", accuracy.chance if accuracy else None
    yield f"{name}_without_pick", accuracy.without_pick if accuracy else None


def _mixture(at: str, mixture: Mixture) -> Iterator[tuple[str, JsonValue]]:
    yield f"{at}/n", mixture.n
    yield f"{at}/fused", mixture.fused
    yield f"{at}/fused_share", mixture.fused_share
    yield f"{at}/at_run_time", mixture.at_run_time
    yield f"{at}/cost_share", mixture.cost_share
    for prefix, policy in (("", mixture.mixture), ("always_", mixture.always_fuse), ("never_", mixture.never_fuse)):
        for quantity, value in policy._asdict().items():
            yield f"{at}/{prefix}{quantity}", value
    for name, pairs in (("always", mixture.against_always), ("never", mixture.against_never)):
        for quantity, value in pairs._asdict().items():
            yield f"{at}/against_{name}/{quantity}", value


def policy_measurements(evidence: Evidence, suite: str, split: str) -> Iterator[tuple[str, JsonValue]]:
    """Yield (name, value) of the policies of each configuration side by side."""
    for config in policy_configs(evidence, suite, split):
        table = policy_table(evidence, suite, split, config=config)
        at = f"{suite}/{split}/policies" + ("" if config is None else f"@{config}")
        yield f"{at}/n", table.n
        yield f"{at}/best", table.best
        yield f"{at}/chosen", table.chosen
        yield f"{at}/tied", list(table.tied)
        for arm, rate in table.rates.items():
            yield f"{at}/pass_rate/{arm}", rate
        for comparison, p in zip(table.against_best, table.adjusted_p, strict=True):
            yield f"{at}/adjusted_p/{comparison.second.arm}", p
