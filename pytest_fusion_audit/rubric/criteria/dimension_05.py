"""Dimension 5, routing and adaptivity: is the money spent where it helps?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.arms import ArmRef
from pytest_fusion_audit.analysis.routing import Mixture, Pairs, Policy, depth_tiers, routers
from pytest_fusion_audit.evidence.records import Config, Route
from pytest_fusion_audit.rubric.banks import LACKING, bank_files, banks, sources_at, sources_of
from pytest_fusion_audit.rubric.capping import Figure, capped, not_run
from pytest_fusion_audit.rubric.criteria.lacking import needs
from pytest_fusion_audit.rubric.criteria.presets import cost_aware_presets
from pytest_fusion_audit.rubric.evaluations import evidence_files, holding_of
from pytest_fusion_audit.stats import holm

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import JsonValue

    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.rubric.loading import Criterion
    from pytest_fusion_audit.rubric.score import By, Score

#: Bars of 5.1: quality may fall behind always-fuse by this share, at no more than this share of its cost.
QUALITY, COST = -0.01, 0.60

_NO_ROUTES = "needs locked rows: a router's decision on each task (route records), beside the arms it chose between"


def router_against_trivial(criterion: Criterion, evidence: Evidence) -> Score:
    """A router's recorded decisions, answered by the arms it chose.

    Quality and cost against always fusing, exact McNemar against the best single (Holm over the routers of a split).
    """
    place, found = _routed(evidence)
    if place is None:
        return not_run(criterion, evidence, _NO_ROUTES)
    adjusted = holm([mixture.against_never.exact_p for mixture in found])
    chosen = min(range(len(found)), key=lambda at: (_p(adjusted[at]), found[at].name))
    mixture, p = found[chosen], adjusted[chosen]
    wins = (mixture.against_never.uplift or 0.0) > 0 and p is not None and p < 0.05
    quality = mixture.against_always.uplift
    shortfalls = []
    if quality is None or quality < QUALITY:
        shortfalls.append(f"quality {100 * (quality or 0):+.1f} points against always-fuse, -1 allowed")
    if mixture.cost_share is None:
        shortfalls.append("cost of a routed or a fused turn unknown")
    elif mixture.cost_share > COST:
        shortfalls.append(f"{100 * mixture.cost_share:.0f} % of always-fuse's cost, 60 % allowed")
    classes = _classes(evidence, place)
    caps = [] if len(classes) > 1 else ["one class of tasks: no mixed workload"]
    if mixture.mixture.latency_p95_s is None:
        caps.append("latency of the routed turns not recorded")
    return capped(
        criterion,
        evidence,
        Figure(
            met=not shortfalls,
            measured={**_mixture(mixture), "holm_p": p, "routers": {m.name: _mixture(m) for m in found}},
            sources=sources_at(evidence, *place),
            lacking=LACKING,
            evidence=_files(evidence, place, mixture),
            holding=holding_of(evidence, *place),
            where="/".join(place),
            n=mixture.n,
            p=p,
            shown=wins,
            caps=tuple(caps),
            shortfalls=tuple(shortfalls),
        ),
    )


def learned_router(criterion: Criterion, evidence: Evidence) -> Score:
    """A learned router's decisions beside a heuristic one's on the same split.

    It wins when it is nowhere worse in quality and cost, and somewhere better.
    """
    place, found = _routed(evidence, learned=True)
    if place is None:
        return not_run(criterion, evidence, "needs locked rows: decisions of a learned router (route records)")
    learned = [mixture for mixture in found if mixture.learned]
    heuristic = [mixture for mixture in found if not mixture.learned]
    best = max(learned, key=lambda m: (any(_dominates(m, h) for h in heuristic), m.mixture.pass_rate or 0.0, m.name))
    caps = [] if heuristic else ["no heuristic router beside it"]
    facts = _router_facts(evidence, best.name)
    if not facts.get("flag"):
        caps.append("not shown: deployed behind a flag")
    beaten = bool(heuristic) and all(_dominates(best, other) for other in heuristic)
    by: By = "tool" if facts.get("by") == "tool" else "target"
    return capped(
        criterion,
        evidence,
        Figure(
            met=beaten,
            measured={**_mixture(best), "heuristic": {m.name: _mixture(m) for m in heuristic}},
            sources=sources_at(evidence, *place),
            lacking=LACKING,
            evidence=_files(evidence, place, best),
            holding=holding_of(evidence, *place),
            where="/".join(place),
            n=best.n,
            caps=tuple(caps),
            shortfalls=() if beaten or not heuristic else ("does not beat the heuristic router in quality and cost",),
            by=by,
        ),
    )


def depth_follows_difficulty(criterion: Criterion, evidence: Evidence) -> Score:
    """Two depth tiers computed from recorded candidates: shallow where the primaries agree, else fused.

    The signal has to be known at run time (public tests, different answers); pass rate and dollars of each tier.
    """
    bound = ""
    for bank in banks(evidence):
        tiers = depth_tiers(evidence, bank.compound) if bank.compound else ()
        usable = [tier for tier in tiers if tier.at_run_time and tier.n]
        if not usable:
            bound = bound or _upper_bound(bank.place, tiers)
            continue
        tier = usable[0]
        priced = all(p.cost_per_task_usd is not None for p in (tier.mixture, tier.always_fuse, tier.never_fuse))
        return capped(
            criterion,
            evidence,
            Figure(
                met=priced,
                measured={**_mixture(tier), "signals": {t.name: _mixture(t) for t in tiers}},
                sources=sources_of(evidence, [bank]),
                lacking=LACKING,
                evidence=bank_files(evidence, [bank], fused=True),
                holding=bank.holding,
                where=bank.place,
                n=tier.n,
                shortfalls=() if priced else ("cost of a tier unknown: no cost-quality frontier",),
            ),
        )
    signal = "a signal known when the depth is decided (public tests, answers' hashes) for every primary sample"
    return not_run(criterion, evidence, f"needs a bank: {signal}{bound}")


def _routed(evidence: Evidence, *, learned: bool = False) -> tuple[tuple[str, str] | None, tuple[Mixture, ...]]:
    """The split whose routers are scored: held-out first, then the largest; optionally only with a learned router."""
    found = {}
    for suite, split in {(route.suite, route.split) for route in evidence.of(Route)}:
        mixtures = tuple(m for m in routers(evidence, suite, split) if m.n)
        if mixtures and (not learned or any(m.learned for m in mixtures)):
            found[suite, split] = mixtures
    if not found:
        return None, ()
    place = min(found, key=lambda key: (holding_of(evidence, *key) != "held out", -max(m.n for m in found[key]), key))
    return place, found[place]


def _dominates(one: Mixture, other: Mixture) -> bool:
    """Nowhere worse in quality and cost, somewhere better. Unknown costs cannot win."""
    quality = (one.mixture.pass_rate, other.mixture.pass_rate)
    cost = (one.mixture.cost_per_task_usd, other.mixture.cost_per_task_usd)
    if None in quality or None in cost:
        return False
    better = float(quality[0] or 0) - float(quality[1] or 0)
    cheaper = float(cost[1] or 0) - float(cost[0] or 0)
    return better >= 0 and cheaper >= 0 and (better > 0 or cheaper > 0)


def _classes(evidence: Evidence, place: tuple[str, str]) -> set[str]:
    """Kinds of task in a split: class, else difficulty."""
    kinds = set()
    for task in evidence.task_ids(*place):
        facts = evidence.task_facts(*place, task)
        kind = facts.task_class or facts.difficulty if facts else None
        if kind is not None:
            kinds.add(kind)
    return kinds


def _files(evidence: Evidence, place: tuple[str, str], mixture: Mixture) -> tuple[str, ...]:
    arms = {mixture.always, mixture.never}
    sources = []
    for route in evidence.of(Route):
        if (route.suite, route.split, route.router) == (*place, mixture.name):
            arms.add(route.decision)
            sources.append(route.source)
    rows = evidence_files(evidence, [ArmRef(*place, arm) for arm in sorted(arms)])
    return ("evidence/route.jsonl", *sorted({source for source in sources if source}), *rows)


def _router_facts(evidence: Evidence, name: str) -> Mapping[str, JsonValue]:
    """What is recorded of a router: ``flag`` it is deployed behind, ``by`` whom it was trained."""
    for config in evidence.of(Config):
        if config.what == "router" and config.facts.get("name") == name:
            return config.facts
    return {}


def _upper_bound(place: str, tiers: tuple[Mixture, ...]) -> str:
    """The tier on hidden verdicts: nobody can run it, so it is a remark and no measurement."""
    for tier in tiers:
        if tier.n and tier.mixture.pass_rate is not None:
            return (
                f"; upper bound on hidden verdicts, {place}: {100 * tier.mixture.pass_rate:.1f} % with {tier.fused} of "
                f"{tier.n} tasks escalated"
            )
    return ""


def _mixture(found: Mixture) -> dict[str, JsonValue]:
    return {
        "router": found.name,
        "n": found.n,
        "fused": found.fused,
        "cost_share": found.cost_share,
        "mixture": _policy(found.mixture),
        "always_fuse": {"arm": found.always, **_policy(found.always_fuse)},
        "never_fuse": {"arm": found.never, **_policy(found.never_fuse)},
        "against_always": _pair(found.against_always),
        "against_never": _pair(found.against_never),
    }


def _policy(found: Policy) -> dict[str, JsonValue]:
    return dict(found._asdict())


def _pair(found: Pairs) -> dict[str, JsonValue]:
    return dict(found._asdict())


def _p(p: float | None) -> float:
    return 2.0 if p is None else p


MEASURES: Mapping[str, Callable[[Criterion, Evidence], Score]] = {
    "5.1": router_against_trivial,
    "5.2": learned_router,
    "5.3": needs("drill", "fusion called as a tool, its depth bounded"),
    "5.4": depth_follows_difficulty,
    "5.5": needs("drill", "a session whose turns are routed one by one, the decisions looked for in the trace"),
    "5.6": cost_aware_presets,
}
