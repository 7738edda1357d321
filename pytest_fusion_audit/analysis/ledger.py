"""Figures of recorded spend ledgers and of published scorecards, as their files state them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.evidence.money import MICRO
from pytest_fusion_audit.evidence.records import Claim, Phase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_fusion_audit.evidence.container import Evidence

#: Reserve of a run of 500 dollars (procedure R2); it scales with another total.
RESERVE_MICRO_USD: Final = 90 * MICRO
_TOTAL_MICRO_USD: Final = 500 * MICRO
_PHASE: Final = re.compile(r"\s*(?:p(?:hase)?[-_ .]*)?(\d+)", re.IGNORECASE)
#: What the procedure calls its phases, where a ledger writes no number.
_PHASE_WORDS: Final = (
    ("smoke", 1),
    ("baseline", 3),
    ("composition", 3),
    ("ablation", 4),
    ("climb", 5),
    ("locked", 6),
    ("served", 6),
)


@dataclass(frozen=True, slots=True)
class LedgerFigures:
    """All ledgers of the evidence together; integer micro-dollars, None when no line states the amount.

    Attributes:
        lines: lines of all ledgers.
        sum_est: sum of the estimates; None when a line has none.
        sum_measured: sum of the measured amounts; None when a line has none.
        last_cum: cum_usd of the last line, summed over ledgers; None when one does not state it.
        cum_minus_sum: last_cum less the sum it should be (of measured amounts, of estimates where none is measured).
        largest_gap: largest absolute difference between a line's cum_usd and the running sum so far.
        phase6: amounts of the lines of phase 6, measured where known, else estimated.
        reserve: what only phase 6 may touch.
        phase6_over_reserve: phase6 less reserve, negative while within.
    """

    lines: int
    sum_est: int | None
    sum_measured: int | None
    last_cum: int | None
    cum_minus_sum: int | None
    largest_gap: int | None
    phase6: int | None
    reserve: int
    phase6_over_reserve: int | None


@per_evidence
def ledger_figures(evidence: Evidence) -> LedgerFigures | None:
    """Add up the ledgers; None when no line is recorded. Each file is a ledger of its own with its own running sum."""
    ledgers: dict[str, list[Phase]] = {}
    for phase in evidence.of(Phase):
        ledgers.setdefault(phase.source, []).append(phase)
    if not ledgers:
        return None
    lines = [line for source in sorted(ledgers) for line in sorted(ledgers[source], key=lambda line: line.line)]
    last_cum = _sum([_ordered(ledger)[-1].cum_micro_usd for ledger in ledgers.values()])
    due = _sum([_amount(line, _measured(ledgers[line.source])) for line in lines])
    gaps = [gap for ledger in ledgers.values() for gap in running_gaps(ledger)]
    phase6 = _sum([_amount(line, _measured(ledgers[line.source])) for line in lines if phase_number(line.phase) == 6])
    reserve = reserve_of(evidence)
    return LedgerFigures(
        lines=len(lines),
        sum_est=_sum([line.est_micro_usd for line in lines]),
        sum_measured=_sum([line.measured_micro_usd for line in lines]),
        last_cum=last_cum,
        cum_minus_sum=last_cum - due if last_cum is not None and due is not None else None,
        largest_gap=max((abs(gap) for gap in gaps), default=None),
        phase6=phase6,
        reserve=reserve,
        phase6_over_reserve=phase6 - reserve if phase6 is not None else None,
    )


def running_gaps(ledger: list[Phase]) -> list[int]:
    """Return cum_usd less the running sum after each line that states one; stops where an amount is unknown."""
    gaps: list[int] = []
    running = 0
    measured = _measured(ledger)
    for line in _ordered(ledger):
        amount = _amount(line, measured)
        if amount is None:
            break
        running += amount
        if line.cum_micro_usd is not None:
            gaps.append(line.cum_micro_usd - running)
    return gaps


def phase_number(phase: str) -> int | None:
    """Return the number a phase's name begins with, else that of the word the procedure has for it.

    >>> phase_number("6a-shipped-path"), phase_number("phase-6"), phase_number("climb"), phase_number("misc")
    (6, 6, 5, None)
    """
    found = _PHASE.match(phase)
    if found:
        return int(found[1])
    return next((number for word, number in _PHASE_WORDS if word in phase.lower()), None)


def reserve_of(evidence: Evidence) -> int:
    """Return the reserve in micro-dollars: what the run's settings say, else 90 of 500 dollars of its cap."""
    caps = evidence.run.settings.get("caps_usd")
    stated = caps.get("reserve") if isinstance(caps, dict) else None
    if isinstance(stated, int | float):
        return round(stated * MICRO)
    cap = evidence.run.cap_micro_usd
    return RESERVE_MICRO_USD if cap is None else RESERVE_MICRO_USD * cap // _TOTAL_MICRO_USD


def _ordered(ledger: list[Phase]) -> list[Phase]:
    return sorted(ledger, key=lambda line: line.line)


def _measured(ledger: list[Phase]) -> bool:
    """Whether the ledger states measured amounts; its running sum is then over those."""
    return any(line.measured_micro_usd is not None for line in ledger)


def _amount(line: Phase, measured: bool) -> int | None:
    return line.measured_micro_usd if measured else line.est_micro_usd


def _sum(amounts: list[int | None]) -> int | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None


@dataclass(frozen=True, slots=True)
class PublishedTotal:
    """Weighted total of a published scorecard: sum over dimensions of weight x sum of scores / (2 x criteria)."""

    source: str
    total: float
    out_of: float
    criteria: int


@per_evidence
def published_totals(evidence: Evidence) -> tuple[PublishedTotal, ...]:
    """Totals of the published scorecards, one per file, sorted by file; a dimension without weight is left out."""
    scores: dict[str, dict[str, list[float]]] = {}
    weights: dict[str, dict[str, float]] = {}
    for claim in evidence.of(Claim):
        if claim.criterion is None or isinstance(claim.value, bool) or not isinstance(claim.value, int | float):
            continue
        if claim.quantity == "score":
            dimension = claim.criterion.partition(".")[0]
            scores.setdefault(claim.source, {}).setdefault(dimension, []).append(claim.value)
        elif claim.quantity == "weight":
            weights.setdefault(claim.source, {})[claim.criterion] = claim.value
    return tuple(
        PublishedTotal(
            source=source,
            total=_total(scores[source], weights.get(source, {})),
            out_of=sum(weights.get(source, {}).values()),
            criteria=sum(map(len, scores[source].values())),
        )
        for source in sorted(scores)
    )


def _total(scores: Mapping[str, list[float]], weights: Mapping[str, float]) -> float:
    return sum(weight * sum(scores[d]) / (2 * len(scores[d])) for d, weight in weights.items() if d in scores)
