"""Dimension 2, ensemble headroom: is there anything to fuse, and does it come from the panel?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.arms import ArmRef
from pytest_fusion_audit.analysis.comparison import compare
from pytest_fusion_audit.analysis.validity.facts import family, model_of, panel_members
from pytest_fusion_audit.evidence.records import Config, PanelChoice
from pytest_fusion_audit.rubric.banks import (
    LACKING,
    Bank,
    bank_files,
    banks,
    deciding,
    holding_together,
    remark,
    sources_of,
)
from pytest_fusion_audit.rubric.capping import Figure, capped, not_run
from pytest_fusion_audit.rubric.criteria.self_consistency import beats_self_consistency
from pytest_fusion_audit.rubric.evaluations import evidence_files
from pytest_fusion_audit.stats import paired_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pydantic import JsonValue

    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.rubric.loading import Criterion
    from pytest_fusion_audit.rubric.score import Score

#: Bars of 2.1 (a share of 1), 2.2 and 2.3 (a share of 1).
HEADROOM, CORRELATION, MARGIN = 0.05, 0.7, 0.01
#: Configuration of the compound re-fused without a member.
WITHOUT = "compound@without-"
#: Both makers a default panel needs.
MAKERS = ("anthropic", "openai")

_NO_BANK = "needs a bank: candidates of two members or more with their verdicts on the same tasks"
_FAMILIES = (("gpt", "openai"), ("o1", "openai"), ("o3", "openai"), ("o4", "openai"), ("claude", "anthropic"))


def oracle_gap(criterion: Criterion, evidence: Evidence) -> Score:
    """Share of tasks that some candidate passes, minus the best single's rate, per benchmark.

    The benchmark with the smallest gap decides. The oracle is over candidates only, never over the fused answer.
    """
    used = deciding(evidence)
    if not used:
        return not_run(criterion, evidence, _NO_BANK)
    gaps = {bank.place: bank.pool.headroom() for bank in used}
    low = [place for place, gap in gaps.items() if gap is None or gap < HEADROOM]
    smallest = min(used, key=lambda bank: gaps[bank.place] or 0.0)
    return capped(
        criterion,
        evidence,
        Figure(
            met=not low,
            measured={
                **_headroom(smallest),
                "benchmarks": {bank.place: _headroom(bank) for bank in banks(evidence)},
            },
            sources=sources_of(evidence, used),
            lacking=LACKING,
            evidence=bank_files(evidence, banks(evidence)),
            holding=holding_together(used),
            where=smallest.place,
            n=min(bank.n for bank in used),
            shortfalls=tuple(f"{place}: {100 * (gaps[place] or 0):+.1f} points, +5 needed" for place in low),
            notes=remark(used),
        ),
    )


def failure_correlation(criterion: Criterion, evidence: Evidence) -> Score:
    """Pearson correlation of failures of every pair of members over the tasks both answered; the largest decides."""
    used = deciding(evidence)
    if not used:
        return not_run(criterion, evidence, _NO_BANK)
    measured: dict[str, JsonValue] = {}
    known: list[float] = []
    shortfalls: list[str] = []
    for bank in banks(evidence):
        for (first, second), r in sorted(bank.pool.primaries.failure_correlation().items()):
            name = f"{bank.place}/{'~'.join(sorted((first, second)))}"
            measured[name] = {"r": r, "n": bank.pool.primaries.paired(first, second).n}
            if bank not in used:
                continue
            if r is None:
                shortfalls.append(f"{name}: no correlation, one side always or never fails")
            else:
                known.append(r)
                if r > CORRELATION:
                    shortfalls.append(f"{name}: r = {r:.2f}, bar {CORRELATION}")
    if not known:
        return not_run(criterion, evidence, f"needs a bank: members that both pass and fail; {'; '.join(shortfalls)}")
    return capped(
        criterion,
        evidence,
        Figure(
            met=not shortfalls,
            measured={"largest": max(known), "n": min(bank.n for bank in used), "pairs": measured},
            sources=sources_of(evidence, used),
            lacking=LACKING,
            evidence=bank_files(evidence, banks(evidence)),
            holding=holding_together(used),
            where=used[0].place,
            n=min(bank.n for bank in used),
            caps=() if _choice(evidence, used) else ("not shown: used to choose the panel (no panel_choice record)",),
            shortfalls=tuple(shortfalls),
            notes=remark(used),
        ),
    )


def value_of_each_member(criterion: Criterion, evidence: Evidence) -> Score:
    """What the compound loses when it is re-fused without each member.

    From candidates alone the oracle's leave-one-out is measured, which earns 1.
    """
    used = deciding(evidence)
    if not used:
        return not_run(criterion, evidence, _NO_BANK)
    refused, files, missing = _refused(evidence, used)
    failover = {str(m.get("id")) for m in panel_members(evidence) if m.get("failover") is True}
    shortfalls = [
        f"{name}: {100 * drop:+.1f} points, +1 needed"
        for name, drop in refused.items()
        if drop < MARGIN and name.rpartition("/")[2] not in failover
    ]
    measured: dict[str, JsonValue] = {
        "n": min(bank.n for bank in used),
        "oracle_leave_one_out": {bank.place: _by_name(bank.pool.coverage.leave_one_out()) for bank in banks(evidence)},
        "shapley": {bank.place: _by_name(bank.pool.coverage.shapley()) for bank in banks(evidence)},
        "refused_without": dict(refused),
    }
    return capped(
        criterion,
        evidence,
        Figure(
            met=not shortfalls and not missing,
            measured=measured,
            sources=sources_of(evidence, used) | (frozenset({"billed"}) if refused and not missing else frozenset()),
            lacking={**LACKING, "billed": f"the compound re-fused without each member ({', '.join(missing)})"},
            evidence=(*bank_files(evidence, banks(evidence)), *files),
            holding=holding_together(used),
            where=used[0].place,
            n=min(bank.n for bank in used),
            shortfalls=tuple(shortfalls),
            notes=remark(used),
        ),
    )


def diversity_of_panel(criterion: Criterion, evidence: Evidence) -> Score:
    """Makers of the panel's models, the configuration file that names them, and the record of why they were chosen."""
    used = deciding(evidence)
    models = _models(evidence, used)
    if not models:
        return not_run(
            criterion, evidence, "needs a bank: which models the panel is made of (a panel file, or model ids)"
        )
    makers = sorted({maker for maker in models.values() if maker is not None})
    both = all(maker in makers for maker in MAKERS)
    caps: list[str] = []
    if len(makers) < 2:
        caps.append(f"a panel of one maker earns at most 1: {', '.join(makers) or 'makers unknown'}")
    if not panel_members(evidence):
        caps.append("no panel file: members swapped by configuration is not shown")
    if not _choice(evidence, used):
        caps.append("not shown: composition justified by ablation data (no panel_choice record)")
    panels = [config.source for config in evidence.of(Config) if config.what == "panel"]
    choices = [choice.source for choice in evidence.of(PanelChoice)]
    return capped(
        criterion,
        evidence,
        Figure(
            met=both,
            measured={"makers": list(makers), "members": {name: models[name] for name in sorted(models)}},
            sources=sources_of(evidence, used),
            lacking=LACKING,
            evidence=(*panels, *choices, *(["evidence/config.jsonl"] if panels else []), *bank_files(evidence, used)),
            holding=holding_together(used) if used else None,
            where=used[0].place if used else "",
            caps=tuple(caps),
            shortfalls=() if both else (f"makers: {', '.join(makers) or 'unknown'}; both OpenAI and Anthropic needed",),
        ),
    )


def maker_of(model: str | None, provider: str | None) -> str | None:
    """Maker of a model by its provider, else by the family in its id; None when neither is known.

    >>> maker_of("gpt-5.5", None), maker_of("x", "anthropic"), maker_of("deepseek-v4", "openai-compatible")
    ('openai', 'anthropic', 'deepseek')
    """
    if provider in MAKERS:
        return provider
    if model is None:
        return None
    name = family(model)
    known = next((maker for prefix, maker in _FAMILIES if name.startswith(prefix)), None)
    return known or name.partition("-")[0] or None


def _headroom(bank: Bank) -> dict[str, JsonValue]:
    best = bank.pool.best_single()
    gap = bank.pool.headroom()
    # The oracle passes whatever the best single passes: the gap is a paired difference without losses.
    interval = None if gap is None else paired_interval(round(gap * bank.n), 0, bank.n)
    return {
        "n": bank.n,
        "tango_low": interval.low if interval else None,
        "tango_high": interval.high if interval else None,
        "oracle": bank.pool.oracle(),
        "best_single": best.arm.removeprefix("member:") if best else None,
        "best_single_rate": best.rate if best else None,
        "best_single_how": best.how if best else None,
        "headroom": gap,
        "held_out": bank.holding == "held out",
    }


def _choice(evidence: Evidence, used: Sequence[Bank]) -> bool:
    """Whether a record says that compositions were weighed and this panel was chosen."""
    panels = {frozenset(bank.pool.panel) for bank in used}
    return any(
        len(choice.compositions) > 1 and (not panels or frozenset(choice.chosen) in panels)
        for choice in evidence.of(PanelChoice)
    )


def _refused(evidence: Evidence, used: Sequence[Bank]) -> tuple[dict[str, float], list[str], list[str]]:
    """Drop of the compound's rate without each member, files, and the arms that are not recorded."""
    drops: dict[str, float] = {}
    files: list[str] = []
    missing: list[str] = []
    for bank in used:
        for member in bank.pool.panel:
            arm = ArmRef(bank.pool.suite, bank.pool.split, f"{WITHOUT}{member}")
            pair = compare(evidence, bank.compound, arm) if bank.compound else None
            if pair is None or pair.uplift is None:
                missing.append(str(arm))
            else:
                drops[f"{bank.place}/{member}"] = pair.uplift
                files += evidence_files(evidence, [arm])
    return drops, files, sorted(missing)


def _by_name(values: Mapping[str, float | None]) -> dict[str, JsonValue]:
    return {name: values[name] for name in sorted(values)}


def _models(evidence: Evidence, used: Sequence[Bank]) -> dict[str, str | None]:
    """Maker of each member of the default panel, by the panel file, else by the models the rows name."""
    facts = {str(member.get("id")): member for member in panel_members(evidence)}
    if facts:
        return {name: maker_of(_text(m.get("model")), _text(m.get("provider"))) for name, m in facts.items()}
    found: dict[str, str | None] = {}
    for bank in used:
        for ref in bank.members:
            model = model_of(evidence, ref.suite, ref.split, ref.arm)
            if model is not None:
                found[ref.arm.removeprefix("member:")] = maker_of(model, None)
    return found


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


MEASURES: Mapping[str, Callable[[Criterion, Evidence], Score]] = {
    "2.1": oracle_gap,
    "2.2": failure_correlation,
    "2.3": value_of_each_member,
    "2.4": diversity_of_panel,
    "2.5": beats_self_consistency,
}
