"""ledger_mismatch, cap_exceeded, reserve_touched, estimates_only, prices_differ: whether the money adds up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_fusion_audit.analysis.ledger import phase_number
from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.analysis.validity.facts import (
    amount,
    family,
    model_of,
    rows,
    setting,
)
from pytest_fusion_audit.analysis.validity.finding import Finding, criteria, dollars, files, listed, spans
from pytest_fusion_audit.evidence.container import Evidence, member_arm
from pytest_fusion_audit.evidence.money import MICRO, micro_usd
from pytest_fusion_audit.evidence.records import Candidate, Config, Phase

#: Caps of the procedure (R2) in dollars; they scale with another total unless the settings state them.
DEFAULT_CAPS = {
    "total": 500.0,
    "reserve": 90.0,
    "smoke": 15.0,
    "baseline": 150.0,
    "composition": 60.0,
    "ablations": 40.0,
    "locked": 50.0,
    "served": 40.0,
}
#: The phase from which on the reserve may be spent.
RESERVE_PHASE = 6

OF_SPEND = criteria("7.1", "9.2", "9.6")
OF_CAPS = criteria("9.6")
OF_ESTIMATES = criteria("7.1")
OF_PRICES = criteria("5.1", "5.6", "7.1")


@dataclass(frozen=True, slots=True)
class Caps:
    """Caps of a run in micro-dollars, and where they come from."""

    by_name: Mapping[str, int]
    how: str

    def __getitem__(self, name: str) -> int:
        return self.by_name[name]


@per_evidence
def caps_of(evidence: Evidence) -> Caps:
    """Caps of the run: as its settings state them, else the procedure's, scaled with the total."""
    stated = setting(evidence.run.settings, "caps_usd")
    stated = stated if isinstance(stated, Mapping) else {}
    own_cap = evidence.run.cap_micro_usd if evidence.run.mode != "imported" else None
    total = next((cap for cap in (stated.get("total"), setting(evidence.run.settings, "cap")) if _number(cap)), None)
    if total is None:
        total = own_cap / MICRO if own_cap else DEFAULT_CAPS["total"]
    scale = total / DEFAULT_CAPS["total"]
    caps = {name: micro_usd(round(cap * scale, 6)) for name, cap in DEFAULT_CAPS.items()}
    caps |= {name: micro_usd(value) for name, value in stated.items() if name in caps and _number(value)}
    caps["total"] = micro_usd(total)
    how = "settings" if stated else "procedure, R2" if scale == 1 else f"procedure, R2, scaled to {total:.2f} USD"
    return Caps(caps, how)


@per_evidence
def ledgers(evidence: Evidence) -> Mapping[str, tuple[Phase, ...]]:
    """Lines of each spend ledger, in their order."""
    by_source: dict[str, list[Phase]] = {}
    for line in evidence.of(Phase):
        by_source.setdefault(line.source, []).append(line)
    return {source: tuple(sorted(lines, key=lambda line: line.line)) for source, lines in sorted(by_source.items())}


def _spent(lines: Sequence[Phase]) -> int:
    return sum(amount(line) or 0 for line in lines)


def ledger_mismatch(evidence: Evidence) -> list[Finding]:
    """Ledgers whose cum_usd is not the running sum of their lines."""
    findings = []
    for source, lines in ledgers(evidence).items():
        running = 0
        gaps: dict[int, int] = {}
        last: int | None = None
        for line in lines:
            running += amount(line) or 0
            if line.cum_micro_usd is None:
                continue
            last = line.cum_micro_usd
            # Each amount was rounded up once on the way in: that much the sum may differ.
            if abs(line.cum_micro_usd - running) > line.line:
                gaps[line.line] = line.cum_micro_usd - running
        if gaps:
            worst = max(gaps, key=lambda number: (abs(gaps[number]), -number))
            ends = "" if last is None else f"; the last says {dollars(last)}, the lines add up to {dollars(running)}"
            message = (
                f"{source}: cum_usd is not the running sum on lines {spans(gaps)} of {len(lines)}, most on line "
                f"{worst} ({dollars(gaps[worst])}){ends}"
            )
            findings.append(Finding("ledger_mismatch", "error", message, files([source]), OF_SPEND))
    return findings


def cap_exceeded(evidence: Evidence) -> list[Finding]:
    """Phases that cost more than their cap, and runs that cost more than their total."""
    caps = caps_of(evidence)
    findings = []
    for source, lines in ledgers(evidence).items():
        over = [
            f"{name}: {dollars(_spent(of_cap))} over its cap of {dollars(cap)} by {dollars(_spent(of_cap) - cap)} "
            f"(lines {spans([line.line for line in of_cap])})"
            for name, of_cap, cap in _capped(evidence, lines, caps)
            if _spent(of_cap) > cap
        ]
        if over:
            message = f"{source}: {'; '.join(over)}; caps: {caps.how}"
            findings.append(Finding("cap_exceeded", "error", message, files([source]), OF_CAPS))
    return findings


def _capped(evidence: Evidence, lines: Sequence[Phase], caps: Caps) -> list[tuple[str, list[Phase], int]]:
    """Name, lines and cap of everything a cap is set for. Composition has a cap of its own beside phase 3's.

    What phases 0 to 5 left unspent is added to the caps of phase 6 in a run of ours; a foreign ledger records no such
    transfer.
    """
    numbered: dict[int, list[Phase]] = {}
    for line in lines:
        number = phase_number(line.phase)
        if number is not None:
            numbered.setdefault(number, []).append(line)

    def of(number: int, *words: str) -> list[Phase]:
        held = numbered.get(number, [])
        return [line for line in held if any(word in line.phase.lower() for word in words)] if words else held

    composition = of(3, "composition")
    before = [line for number, held in numbered.items() if number < RESERVE_PHASE for line in held]
    climb_cap = caps["total"] - caps["reserve"]
    left = max(0, climb_cap - _spent(before)) if evidence.run.mode != "imported" else 0
    return [
        ("phases 0 and 1 (smoke)", [*of(0), *of(1)], caps["smoke"]),
        ("phase 3 (baseline)", [line for line in of(3) if line not in composition], caps["baseline"]),
        ("phase 3 (composition)", composition, caps["composition"]),
        ("phase 4 (ablations)", of(4), caps["ablations"]),
        ("phase 6, locked test", of(6, "locked"), caps["locked"] + left),
        ("phase 6, served path", of(6, "served", "shipped"), caps["served"] + left),
        ("phase 6, the reserve", of(6), caps["reserve"] + left),
        ("the whole run", list(lines), caps["total"]),
    ]


def reserve_touched(evidence: Evidence) -> list[Finding]:
    """Ledgers that spent from the reserve before phase 6."""
    caps = caps_of(evidence)
    limit = caps["total"] - caps["reserve"]
    findings = []
    for source, lines in ledgers(evidence).items():
        running = 0
        for line in lines:
            number = phase_number(line.phase)
            if number is not None and number >= RESERVE_PHASE:
                continue
            running += amount(line) or 0
            if running > limit:
                message = (
                    f"{source}: line {line.line} (phase {line.phase}) brings what was spent before phase 6 to "
                    f"{dollars(running)}, {dollars(running - limit)} out of the reserve of {dollars(caps['reserve'])}; "
                    f"caps: {caps.how}"
                )
                findings.append(Finding("reserve_touched", "error", message, files([source]), OF_CAPS))
                break
    return findings


def estimates_only(evidence: Evidence) -> list[Finding]:
    """Ledgers with lines that state what was planned and not what was paid."""
    findings = []
    for source, lines in ledgers(evidence).items():
        unmeasured = [line for line in lines if line.measured_micro_usd is None and (line.est_micro_usd or 0) > 0]
        if unmeasured:
            message = (
                f"{source}: no measured amount on {len(unmeasured)} of {len(lines)} lines "
                f"({spans([line.line for line in unmeasured])}), {dollars(_spent(unmeasured))} are estimates"
            )
            findings.append(Finding("estimates_only", "warning", message, files([source]), OF_ESTIMATES))
    return findings


def prices_differ(evidence: Evidence) -> list[Finding]:
    """Panel files whose prices are not those of the price table; recorded costs are shown at both."""
    told: list[str] = []
    sources: set[str] = set()
    for config in evidence.of(Config):
        if config.what != "panel":
            continue
        for member in rows(config.facts.get("members")):
            stated, table = member.get("pricing"), member.get("table_pricing")
            if not isinstance(stated, Mapping) or not isinstance(table, Mapping):
                continue
            different = [
                f"{name} {stated[name]:g} against {table[name]:g} ({table[name] / stated[name]:.3g} times)"
                if stated[name]
                else f"{name} 0 against {table[name]:g}"
                for name in ("input", "output")
                if _number(stated.get(name)) and _number(table.get(name)) and stated[name] != table[name]
            ]
            if different:
                both = _both_costs(evidence, str(member.get("model")), stated, table)
                told.append(f"{member.get('id')} ({member.get('model')}): {', '.join(different)}{both}")
                sources.add(config.source)
    if not told:
        return []
    message = f"{listed(sources)}: USD per million tokens differ from the price table: {'; '.join(told)}"
    return [Finding("prices_differ", "warning", message, files(sources), OF_PRICES)]


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _both_costs(evidence: Evidence, model: str, stated: Mapping[str, Any], table: Mapping[str, Any]) -> str:
    """Recorded answers of the model at both prices, where tokens were recorded; a bound by the ratio elsewhere."""
    names = [name for name in ("input", "output") if _number(stated.get(name)) and _number(table.get(name))]
    tokens = Counter[str]()
    counted = 0
    for candidate in evidence.of(Candidate):
        own = model_of(evidence, candidate.suite, candidate.split, member_arm(candidate.member, candidate.config))
        if own is None or family(own) != family(model):
            continue
        if candidate.input_tokens is not None and candidate.output_tokens is not None:
            counted += 1
            tokens["input"] += candidate.input_tokens
            tokens["output"] += candidate.output_tokens
    if counted:
        ours, theirs = (sum(tokens[name] * prices[name] for name in names) / MICRO for prices in (stated, table))
        return f"; {counted} recorded answers cost {ours:.2f} USD at the panel's prices, {theirs:.2f} at the table's"
    ratios = [table[name] / stated[name] for name in names if stated[name]]
    if not ratios:
        return ""
    return f"; no tokens recorded, its true cost is {min(ratios):.3g} to {max(ratios):.3g} times what is recorded"
