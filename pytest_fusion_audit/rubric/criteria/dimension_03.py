"""Dimension 3, judge quality: does the judge find the right candidate, and does it know when it has?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.arms import ArmRef
from pytest_fusion_audit.analysis.classes import classes_of
from pytest_fusion_audit.analysis.judge import JudgeFigures, PickAccuracy, calibration_of, judge_figures
from pytest_fusion_audit.analysis.regret import Regret, regret_of
from pytest_fusion_audit.analysis.validity.facts import compounds
from pytest_fusion_audit.rubric.banks import LACKING, Bank, bank_files, banks, remark, sources_of
from pytest_fusion_audit.rubric.capping import Figure, capped, not_run
from pytest_fusion_audit.rubric.criteria.lacking import needs
from pytest_fusion_audit.rubric.evaluations import evidence_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import JsonValue

    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.rubric.loading import Criterion
    from pytest_fusion_audit.rubric.score import Score

#: Bars of 3.1 and 3.2, shares of 1, and the level of 3.4's trend test.
ACCURACY, REGRET, ALPHA = 0.70, 0.05, 0.05


def selection_accuracy(criterion: Criterion, evidence: Evidence) -> Score:
    """Share of named picks that are right where exactly one candidate passes, per task class.

    Beside it the chance level of a blind draw, and how often the judge named nobody.
    """
    found = _judged(evidence)
    if found is None:
        return not_run(
            criterion, evidence, "needs locked rows: the judge's pick of each turn, beside the candidates' verdicts"
        )
    bank, judge = found
    strict = judge.strict
    if strict.rate is None:
        return not_run(
            criterion, evidence, "needs locked rows: a named pick on a task that exactly one candidate solves"
        )
    classes, shortfalls = _by_class(evidence, judge, criterion.least_n or 1)
    if strict.rate < ACCURACY:
        shortfalls.insert(0, f"{strict.right} of {strict.n} right ({100 * strict.rate:.1f} %), 70 % needed")
    measured: dict[str, JsonValue] = {
        **_accuracy(strict),
        "arm": str(judge.ref),
        "coverage": judge.strict_coverage,
        "where_some_candidate_passes": _accuracy(judge.accuracy),
        "skill_p_against_chance": judge.skill.p,
        "picks_named": judge.picks_named,
        "classes": classes,
    }
    return capped(
        criterion,
        evidence,
        Figure(
            met=not shortfalls,
            measured=measured,
            sources=sources_of(evidence, [bank]),
            lacking=LACKING,
            evidence=(*bank_files(evidence, [bank]), *evidence_files(evidence, [judge.ref])),
            holding=bank.holding,
            where=bank.place,
            n=strict.n,
            shortfalls=tuple(shortfalls),
            notes=remark([bank]),
        ),
    )


def regret_split(criterion: Criterion, evidence: Evidence) -> Score:
    """Oracle minus pick rate (judge) and pick rate minus fused rate (synthesis).

    Over the candidates recorded, for every compound arm whose picks are recorded; the arm that stands for the compound
    decides.
    """
    split = [(bank, regret) for bank, regret in _regrets(evidence) if regret.judge is not None and regret.n]
    if not split:
        return not_run(criterion, evidence, _no_split(evidence))
    bank, regret = split[0]
    parts = {"judge": regret.judge, "synthesis": regret.synthesis}
    shortfalls = [
        f"{name} regret {100 * value:.1f} points, below 5 needed"
        for name, value in parts.items()
        if value is not None and value >= REGRET
    ]
    return capped(
        criterion,
        evidence,
        Figure(
            met=not shortfalls,
            measured={**_regret(regret), "runs": {str(r.ref): _regret(r) for _, r in _regrets(evidence)}},
            sources=sources_of(evidence, [bank]),
            lacking=LACKING,
            evidence=(*bank_files(evidence, [bank]), *evidence_files(evidence, [regret.ref])),
            holding=bank.holding,
            where=bank.place,
            n=regret.n,
            shortfalls=tuple(shortfalls),
            notes=remark([bank]),
        ),
    )


def judge_calibration(criterion: Criterion, evidence: Evidence) -> Score:
    """Confidence of the named picks against their verdicts.

    Isotonic reliability curve, Brier score, ECE with interval, and a one-sided trend test.
    """
    for bank in banks(evidence):
        for ref in _arms(evidence, bank):
            calibration = calibration_of(evidence, ref)
            if calibration is None or not calibration.n:
                continue
            trend = calibration.trend
            rises = trend is not None and trend.somers_d > 0 and trend.p < ALPHA
            said = "cannot be told" if trend is None else f"Somers' D {trend.somers_d:.2f}, p {trend.p:.4f}"
            low, high = calibration.ece_interval or (None, None)
            return capped(
                criterion,
                evidence,
                Figure(
                    met=rises,
                    measured={
                        "n": calibration.n,
                        "unknown": calibration.unknown,
                        "accuracy": calibration.accuracy,
                        "mean_confidence": calibration.mean_confidence,
                        "brier": calibration.brier,
                        "ece": calibration.ece,
                        "ece_low": low,
                        "ece_high": high,
                        "somers_d": trend.somers_d if trend else None,
                        "trend_p": trend.p if trend else None,
                        "curve": [[p.confidence, p.observed, p.answers] for p in calibration.curve],
                    },
                    sources=sources_of(evidence, [bank]),
                    lacking=LACKING,
                    evidence=(*bank_files(evidence, [bank]), *evidence_files(evidence, [ref])),
                    holding=bank.holding,
                    where=bank.place,
                    n=calibration.n,
                    shortfalls=() if rises else (f"confidence does not rise with being right: {said}",),
                    notes=remark([bank]),
                ),
            )
    return not_run(criterion, evidence, "needs locked rows: the judge's confidence in each pick")


def _arms(evidence: Evidence, bank: Bank) -> list[ArmRef]:
    """Compound arms of a bank, the one that stands for the compound first."""
    suite, split = bank.pool.suite, bank.pool.split
    others = [ArmRef(suite, split, arm) for arm in compounds(evidence, suite, split)]
    return list(dict.fromkeys([*([bank.compound] if bank.compound else []), *others]))


def _judged(evidence: Evidence) -> tuple[Bank, JudgeFigures] | None:
    """The first bank (held-out first) and arm whose picks are recorded."""
    for bank in banks(evidence):
        for ref in _arms(evidence, bank):
            judge = judge_figures(evidence, ref)
            if judge is not None and judge.picks_named:
                return bank, judge
    return None


def _by_class(evidence: Evidence, judge: JudgeFigures, least: int) -> tuple[dict[str, JsonValue], list[str]]:
    """Strict accuracy of each class, and the classes with enough picks that stay below the bar."""
    shown: dict[str, JsonValue] = {}
    low: list[str] = []
    for name, tasks in classes_of(evidence, judge.ref.suite, judge.ref.split).items():
        part = judge_figures(evidence, judge.ref, tasks=tasks)
        if part is None or part.strict.rate is None:
            continue
        shown[name] = _accuracy(part.strict)
        if part.strict.n >= least and part.strict.rate < ACCURACY:
            low.append(f"class {name}: {part.strict.right} of {part.strict.n} right, 70 % needed")
    return shown, low


def _accuracy(found: PickAccuracy) -> dict[str, JsonValue]:
    return {
        "n": found.n,
        "right": found.right,
        "accuracy": found.rate,
        "wilson_low": found.wilson_low,
        "wilson_high": found.wilson_high,
        "chance": found.chance,
        "without_pick": found.without_pick,
    }


def _regrets(evidence: Evidence) -> list[tuple[Bank, Regret]]:
    return [(bank, regret_of(evidence, ref)) for bank in banks(evidence) for ref in _arms(evidence, bank)]


def _regret(found: Regret) -> dict[str, JsonValue]:
    return {
        "n": found.n,
        "oracle": found.oracle,
        "pick_rate": found.pick_rate,
        "fused_rate": found.fused_rate,
        "judge": found.judge,
        "synthesis": found.synthesis,
        "total": found.total,
        "picks_named": found.picks_named,
        "over": found.over,
    }


def _no_split(evidence: Evidence) -> str:
    totals = [
        f"{r.ref} {100 * r.total:+.1f} points of {r.n}" for _, r in _regrets(evidence) if r.total is not None and r.n
    ]
    known = f"; only the total is known: {'; '.join(totals)}" if totals else ""
    return f"needs locked rows: the judge's pick of each turn, beside the candidates' verdicts{known}"


MEASURES: Mapping[str, Callable[[Criterion, Evidence], Score]] = {
    "3.1": selection_accuracy,
    "3.2": regret_split,
    "3.3": needs("drill", "real judge replies and injected prose, parsed and counted"),
    "3.4": judge_calibration,
    "3.5": needs("billed", "a frontier judge and a cheap judge over the same candidates"),
    "3.6": needs("drill", "the judge's analysis and the candidates looked for in the synthesizer's prompt"),
}
