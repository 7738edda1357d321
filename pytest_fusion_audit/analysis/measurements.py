"""Every computed quantity under a flat name, as it stands in ``measurements`` of scorecard.json.

Names are listed in docs/measurements.md. Values are builtins: None is unknown, rates are full floats, sums of money are
dollars with at most six decimals.
"""

from __future__ import annotations

import math
from itertools import permutations
from typing import TYPE_CHECKING, Final

from pytest_fusion_audit.analysis.arms import ArmRef, arm_summary
from pytest_fusion_audit.analysis.classes import classes_of
from pytest_fusion_audit.analysis.comparison import compare
from pytest_fusion_audit.analysis.economics import cost_per_extra_solve, overhead
from pytest_fusion_audit.analysis.ledger import ledger_figures, published_totals
from pytest_fusion_audit.analysis.measured_pools import fused_measurements, policy_measurements, pool_measurements
from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.analysis.policies import is_compound
from pytest_fusion_audit.analysis.samples import self_consistency
from pytest_fusion_audit.analysis.seeds import seed_figures
from pytest_fusion_audit.analysis.stages import stage_figures
from pytest_fusion_audit.evidence.container import is_member
from pytest_fusion_audit.evidence.money import usd

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import JsonValue

    from pytest_fusion_audit.evidence.container import Evidence

#: With more arms than this only pairs whose first is not a member are listed: 35 members would make 1,190 of them.
MOST_ARMS_PAIRED: Final = 16

_ARM: Final = (
    "n", "planned", "replicates", "passed", "pass_rate", "wilson_low", "wilson_high", "attempted", "cost_usd",
    "cost_known_usd", "cost_known_n", "cost_per_task_usd", "cost_per_solve_usd", "latency_p50_s", "latency_p95_s",
    "latency_n", "empty", "truncated", "rate_excluding_cut", "intact",
)  # fmt: skip
_PAIR: Final = (
    "n", "wins", "losses", "both", "neither", "not_run", "unshared", "uplift", "test", "exact_p", "mid_p", "chi2",
    "chi2_p", "chi2_cc", "chi2_cc_p", "tango_low", "tango_high", "newcombe_low", "newcombe_high", "clusters",
    "clustered_p", "decision_p", "decision",
)  # fmt: skip
_PAIR_OF_CLASS: Final = ("n", "wins", "losses", "uplift", "exact_p", "mid_p", "decision")
_OVERHEAD: Final = (
    "cost_per_task_ratio", "cost_per_solve_ratio", "latency_p50_ratio", "latency_p95_ratio", "latency_added_p95_ratio",
    "latency_n",
)  # fmt: skip
_STAGE: Final = ("turns", "n", "skipped", "cost_usd", "latency_n", "latency_p50_s", "latency_p95_s")


@per_evidence
def measure(evidence: Evidence) -> Mapping[str, JsonValue]:
    """Compute every quantity that the evidence allows, by name, sorted.

    Raises:
        TypeError: a figure is not a builtin: a fault of this package, never of the evidence.
        ValueError: a figure is not finite; likewise.
    """
    found: dict[str, JsonValue] = {}
    for suite, split in evidence.splits:
        for arm in evidence.arms(suite, split):
            found.update(_arm(evidence, ArmRef(suite, split, arm)))
        found.update(pool_measurements(evidence, suite, split))
        found.update(policy_measurements(evidence, suite, split))
        found.update(_pairs_within(evidence, suite, split))
    found.update(_pairs_across(evidence))
    found.update(_ledger(evidence))
    for name, value in found.items():
        _check(name, value)
    return {name: found[name] for name in sorted(found)}


def _arm(evidence: Evidence, ref: ArmRef) -> Iterator[tuple[str, JsonValue]]:
    summary = arm_summary(evidence, ref)
    for quantity in _ARM:
        yield f"{ref}/{quantity}", getattr(summary, quantity)
    for state, count in summary.states.items():
        yield f"{ref}/states/{state}", count
    for stage in stage_figures(evidence, ref):
        for quantity in _STAGE:
            yield f"{ref}/stage/{stage.stage}/{quantity}", getattr(stage, quantity)
    if is_compound(ref.arm):
        yield from fused_measurements(evidence, ref)


def _pairs_within(evidence: Evidence, suite: str, split: str) -> Iterator[tuple[str, JsonValue]]:
    arms = evidence.arms(suite, split)
    for first, second in permutations(arms, 2):
        if len(arms) > MOST_ARMS_PAIRED and is_member(first):
            continue
        yield from _pair(
            evidence, f"{suite}/{split}/{first}~{second}", ArmRef(suite, split, first), ArmRef(suite, split, second)
        )
    for figures in self_consistency(evidence, suite, split):
        at = f"{suite}/{split}/{figures.comparison.first.arm}~{figures.comparison.second.arm}"
        yield f"{at}/self_samples", figures.samples
        yield f"{at}/panel_samples", figures.panel_samples
        yield f"{at}/samples_matched", figures.matched


def _pairs_across(evidence: Evidence) -> Iterator[tuple[str, JsonValue]]:
    for (suite, split), (other_suite, other_split) in permutations(evidence.splits, 2):
        if suite != other_suite or not evidence.task_ids(suite, split) & evidence.task_ids(suite, other_split):
            continue
        firsts, seconds = evidence.arms(suite, split), evidence.arms(suite, other_split)
        many = max(len(firsts), len(seconds)) > MOST_ARMS_PAIRED
        for first in firsts:
            if many and is_member(first):
                continue
            for second in seconds:
                one, two = ArmRef(suite, split, first), ArmRef(suite, other_split, second)
                if compare(evidence, one, two).n:
                    yield from _pair(evidence, f"{one}~{other_split}/{second}", one, two)


def _pair(evidence: Evidence, at: str, first: ArmRef, second: ArmRef) -> Iterator[tuple[str, JsonValue]]:
    comparison = compare(evidence, first, second)
    for quantity in _PAIR:
        yield f"{at}/{quantity}", getattr(comparison, quantity)
    if is_member(first.arm):
        return
    if comparison.seeds[0] > 1:
        seeds = seed_figures(evidence, first, second)
        yield f"{at}/seeds/uplifts", list(seeds.uplifts)
        yield f"{at}/seeds/mean", seeds.mean
        yield f"{at}/seeds/low", seeds.low
        yield f"{at}/seeds/high", seeds.high
    if not is_member(second.arm):
        return
    ratios, extra = overhead(evidence, first, second), cost_per_extra_solve(evidence, first, second)
    if first.split != second.split and extra.extra_usd is None and not ratios.latency_n:
        return  # pairs across splits are many: what nothing is known of is not listed for them
    for quantity in _OVERHEAD:
        yield f"{at}/{quantity}", getattr(ratios, quantity)
    yield f"{at}/extra_usd", extra.extra_usd
    yield f"{at}/extra_solves", extra.extra_solves if extra.n else None
    yield f"{at}/cost_per_extra_solve_usd", extra.usd_per_solve
    yield f"{at}/cost_per_extra_solve_low", extra.low
    yield f"{at}/cost_per_extra_solve_high", extra.high
    yield f"{at}/cost_per_extra_solve_method", extra.method
    yield f"{at}/cost_per_extra_solve_reason", extra.reason
    if first.split == second.split:
        for name, tasks in classes_of(evidence, first.suite, first.split).items():
            of_class = compare(evidence, first, second, tasks=tasks)
            for quantity in _PAIR_OF_CLASS:
                yield f"{at}/class/{name}/{quantity}", getattr(of_class, quantity)


def _ledger(evidence: Evidence) -> Iterator[tuple[str, JsonValue]]:
    ledger = ledger_figures(evidence)
    if ledger is not None:
        yield "ledger/lines", ledger.lines
        for name, amount in (
            ("sum_est_usd", ledger.sum_est),
            ("sum_measured_usd", ledger.sum_measured),
            ("last_cum_usd", ledger.last_cum),
            ("cum_minus_sum_usd", ledger.cum_minus_sum),
            ("largest_gap_usd", ledger.largest_gap),
            ("phase6_usd", ledger.phase6),
            ("reserve_usd", ledger.reserve),
            ("phase6_over_reserve_usd", ledger.phase6_over_reserve),
        ):
            yield f"ledger/{name}", None if amount is None else usd(amount)
    totals = published_totals(evidence)
    for published in totals:
        at = "scorecard" if len(totals) == 1 else f"scorecard/{published.source}"
        yield f"{at}/published_total", published.total
        yield f"{at}/published_out_of", published.out_of
        yield f"{at}/published_criteria", published.criteria


def _check(name: str, value: JsonValue) -> None:
    """Refuse what would not survive JSON: scalars of numpy, NaN, infinities."""
    for item in value if isinstance(value, list) else [value]:
        if item is not None and type(item) not in {bool, int, str, float}:
            raise TypeError(f"measurement {name} is a {type(item).__name__}, not a builtin")
        if isinstance(item, float) and not math.isfinite(item):
            raise ValueError(f"measurement {name} is {item}, not a finite number")
