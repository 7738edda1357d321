"""What a turn cost, and what its parts cost: a whole is never cheaper than its parts.

The cost of a turn is what its record states, the cost of its parts what the records of its candidates and stages state.
Where the two contradict each other the larger one stands, for a compound that understates its dollars would otherwise
look as cheap as the member it beats.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.arms import ArmRef, seeds_of, turns_of, was_attempted
from pytest_fusion_audit.analysis.matrix import panel_of
from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.analysis.validity.facts import kind, where
from pytest_fusion_audit.analysis.validity.finding import Finding, criteria, dollars, files, listed
from pytest_fusion_audit.analysis.validity.split_roles import headline_splits
from pytest_fusion_audit.evidence.records import Candidate, Fused, Route

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_fusion_audit.evidence.container import Evidence

#: What compares or adds up dollars of a turn.
OF_COSTS = criteria("1.1", "1.2", "1.3", "2.5", "5.1", "5.6", "7.1")


@dataclass(frozen=True, slots=True)
class Parts:
    """What the parts of one turn are known to have cost, in micro-dollars.

    Attributes:
        cost: sum over the parts whose cost is recorded, a lower bound of the turn.
        count: how many they are. Each was rounded up once, and so the sum may be that much too high.
        how: which parts they are.
        sources: files that state their costs.
    """

    cost: int
    count: int
    how: str
    sources: frozenset[str]


@per_evidence
def parts_of(evidence: Evidence, ref: ArmRef) -> Mapping[tuple[str, int], Parts]:
    """(task, replicate) -> the dearest reading of the parts of an arm's turns; turns without known parts are absent."""
    found: dict[tuple[str, int], Parts] = {}
    for replicate in evidence.replicates(*ref):
        for turn in turns_of(evidence, ref.suite, ref.split, replicate):
            if turn.arm == ref.arm:
                parts = max(_readings(evidence, turn), key=lambda parts: parts.cost, default=None)
                if parts is not None:
                    found[turn.task, replicate] = parts
    return MappingProxyType(found)


def _readings(evidence: Evidence, turn: Fused) -> Iterable[Parts]:
    """The parts by the stages of the turn, and by the records of its candidates beside judge and synthesizer."""
    stages = {name: cost for name, cost in turn.stage_cost_micro_usd.items() if cost is not None}
    if stages:
        yield Parts(
            sum(stages.values()), len(stages), f"its stages {', '.join(sorted(stages))}", frozenset({turn.source})
        )
    drawn = [candidate for candidate in _own_candidates(evidence, turn) if candidate.cost_micro_usd is not None]
    if drawn:
        later = [cost for name, cost in stages.items() if name != "panel"]
        cost = sum(candidate.cost_micro_usd or 0 for candidate in drawn) + sum(later)
        names = "its candidates" if turn.candidate_ids is not None else "one answer of each member"
        sources = frozenset({turn.source, *(candidate.source for candidate in drawn)})
        yield Parts(cost, len(drawn) + len(later), f"{names}{', judge and synthesizer' if later else ''}", sources)


def _own_candidates(evidence: Evidence, turn: Fused) -> list[Candidate]:
    """Candidates a turn was made of: those it names, else the primary sample of each member of its split.

    Only the incumbent compound on a headline split is taken to have asked every member: a router asks one of them, and
    another configuration may have drawn from another pool.
    """
    pool = evidence.candidates(turn.suite, turn.split).get(turn.task, ())
    own = [candidate for candidate in pool if candidate.turn == 0 and candidate.replicate == turn.replicate]
    if turn.candidate_ids is not None:
        return [candidate for candidate in own if candidate.id in turn.candidate_ids]
    place = (turn.suite, turn.split)
    if kind(turn.arm) != "compound" or "@" in turn.arm:
        return []
    return [candidate for candidate in own if candidate.id in _asked_of_all(evidence).get(place, ())]


@per_evidence
def _asked_of_all(evidence: Evidence) -> Mapping[tuple[str, str], frozenset[str]]:
    """Headline split without a router -> ids of the primary samples of its panel."""
    routed = {(route.suite, route.split) for route in evidence.of(Route)}
    return MappingProxyType(
        {
            place: frozenset(f"{name}#0" for name in panel_of(evidence, *place))
            for place in headline_splits(evidence)
            if place not in routed
        }
    )


@per_evidence
def cost_per_task(evidence: Evidence, ref: ArmRef) -> int | None:
    """Micro-dollars of one attempted turn of an arm, rounded up; a turn costs what it states, or its parts if more.

    None when the cost of any attempted turn is not stated: parts alone are no whole.
    """
    parts = parts_of(evidence, ref)
    costs: list[int] = []
    for replicate, rows in zip(evidence.replicates(*ref), seeds_of(evidence, ref), strict=True):
        for task, row in rows.items():
            if was_attempted(row):
                if row.cost_micro_usd is None:
                    return None
                costs.append(max(row.cost_micro_usd, _beyond(parts.get((task, replicate)), row.cost_micro_usd)))
    return -(-sum(costs) // len(costs)) if costs else None


def _beyond(parts: Parts | None, stated: int) -> int:
    """Cost of the parts where it is more than rounding above what the turn states, else 0."""
    return parts.cost if parts is not None and parts.cost - parts.count > stated else 0


def costs_below_parts(evidence: Evidence) -> list[Finding]:
    """Arms whose turns state a cost below that of their own candidates or stages."""
    findings = []
    for suite, split in evidence.splits:
        for arm in evidence.arms(suite, split):
            ref = ArmRef(suite, split, arm)
            parts = parts_of(evidence, ref)
            stated = {
                (task, replicate): row.cost_micro_usd
                for replicate, rows in zip(evidence.replicates(*ref), seeds_of(evidence, ref), strict=True)
                for task, row in rows.items()
                if row.cost_micro_usd is not None and _beyond(parts.get((task, replicate)), row.cost_micro_usd)
            }
            if stated:
                dear = sum(parts[key].cost for key in stated)
                message = (
                    f"{where(*ref)}: {len(stated)} of {len(parts)} turns state a cost below that of their parts "
                    f"({listed(parts[key].how for key in stated)}), {dollars(sum(stated.values()), 4)} against "
                    f"{dollars(dear, 4)}: {listed((task for task, _ in stated), 5)}; the parts count where dollars are "
                    "compared"
                )
                sources = files(source for key in stated for source in parts[key].sources)
                findings.append(Finding("totals_disagree", "error", message, sources, OF_COSTS))
    return findings
