"""Dimension 4, synthesis policy: is the final answer made in the way that won?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.arms import ArmRef, turns_of
from pytest_fusion_audit.analysis.classes import classes_of
from pytest_fusion_audit.analysis.comparison import Comparison, compare
from pytest_fusion_audit.analysis.judge import synthesis_regressions
from pytest_fusion_audit.analysis.policies import PolicyTable, policy_configs, policy_table
from pytest_fusion_audit.rubric.banks import banks, sources_at
from pytest_fusion_audit.rubric.capping import Figure, capped, not_run
from pytest_fusion_audit.rubric.criteria.lacking import needs
from pytest_fusion_audit.rubric.criteria.never_worse import CLASS_TASKS
from pytest_fusion_audit.rubric.default_policy import (
    POLICIES,
    REWRITE,
    SELECT,
    default_policy,
    hands_out_picks,
    policy_in_name,
)
from pytest_fusion_audit.rubric.evaluations import evidence_files, figures, holding_of, suite_facts
from pytest_fusion_audit.stats import wilson_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import JsonValue

    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.rubric.loading import Criterion
    from pytest_fusion_audit.rubric.score import Score

#: Bar of 4.2, a share of 1.
REGRESSION = 0.05


def rewrite_against_selection(criterion: Criterion, evidence: Evidence) -> Score:
    """Policies side by side on the tasks they share, Holm over them.

    The best point estimate wins, among those not shown to be worse the cheapest where costs are known; the default has
    to be the winner, overall and per class.
    """
    tables = _tables(evidence)
    if not tables:
        return not_run(criterion, evidence, "needs a bank: two policies or more over the same candidates")
    table = tables[0]
    holding = holding_of(evidence, table.suite, table.split)
    by_policy = {_policy(evidence, table, arm): arm for arm in table.arms}
    missing = [policy for policy in POLICIES if policy not in by_policy]
    default = default_policy(evidence)
    shortfalls = [] if default is None else _not_winner(evidence, table, by_policy.get(default), default)
    caps = [f"policies not run on these candidates: {', '.join(missing)}"] if missing else []
    if default is None:
        caps.append("the default policy is not recorded")
    return capped(
        criterion,
        evidence,
        Figure(
            met=not shortfalls,
            measured={
                "n": table.n,
                "rates": {arm: _rate(table, arm) for arm in table.arms},
                "best": table.best,
                "not_shown_worse": list(table.tied),
                "winner": table.chosen,
                "default": default,
                "against_best": {
                    comparison.second.arm: {**figures(comparison), "holm_p": p}
                    for comparison, p in zip(table.against_best, table.adjusted_p, strict=True)
                },
            },
            sources=sources_at(evidence, table.suite, table.split),
            lacking={
                "bank": "policies over frozen candidates",
                "locked": "the policies re-fused over the locked candidates",
            },
            evidence=evidence_files(evidence, [ArmRef(table.suite, table.split, arm) for arm in table.arms]),
            holding=holding,
            where=f"{table.suite}/{table.split}",
            n=table.n,
            caps=tuple(caps),
            shortfalls=tuple(shortfalls),
            notes=_tie(table),
        ),
    )


def synthesis_regression_rate(criterion: Criterion, evidence: Evidence) -> Score:
    """Share of tasks on which the written answer fails although the judge's pick passes.

    Where picks are not recorded, the arm that hands out the pick verbatim stands for it, on the same candidates.
    """
    found = _regressions(evidence)
    if found is None:
        return not_run(
            criterion,
            evidence,
            "needs a bank: the written answer beside the judge's pick, or beside verbatim selection",
        )
    holding = holding_of(evidence, found.ref.suite, found.ref.split)
    interval = wilson_interval(found.worse, found.n)
    rate = found.worse / found.n
    default = default_policy(evidence)
    off = default is not None and default != REWRITE
    high = rate >= REGRESSION and not off
    coding = suite_facts(evidence, found.ref.suite).get("coding") is True
    return capped(
        criterion,
        evidence,
        Figure(
            met=not high,
            measured={
                "n": found.n,
                "regressions": found.worse,
                "improvements": found.better,
                "rate": rate,
                "wilson_low": interval.low if interval else None,
                "wilson_high": interval.high if interval else None,
                "arm": str(found.ref),
                "against": found.against,
                "default": default,
            },
            sources=sources_at(evidence, found.ref.suite, found.ref.split),
            lacking={"bank": "written answers over frozen candidates", "locked": "the same on the locked candidates"},
            evidence=evidence_files(evidence, found.refs),
            holding=holding,
            where=f"{found.ref.suite}/{found.ref.split}",
            n=found.n,
            caps=() if coding else (f"{found.ref.suite} is not known to be about code",),
            shortfalls=(f"{found.worse} of {found.n} worse ({100 * rate:.1f} %), below 5 % needed",) if high else (),
            notes=found.notes + (("rewriting is off the default path",) if off else ()),
        ),
    )


def _tables(evidence: Evidence) -> list[PolicyTable]:
    """Policy tables of the incumbent configuration: held-out first, then with the most policies, then the largest."""
    found = [
        policy_table(evidence, suite, split)
        for suite, split in evidence.splits
        if None in policy_configs(evidence, suite, split)
    ]
    return sorted(
        (table for table in found if table.n),
        key=lambda t: (holding_of(evidence, t.suite, t.split) != "held out", -len(t.arms), -t.n, t.suite, t.split),
    )


def _policy(evidence: Evidence, table: PolicyTable, arm: str) -> str:
    """Policy of an arm by its name, else by its turns, else the arm's own name."""
    named = policy_in_name(arm)
    if named is not None:
        return named
    turns = turns_of(evidence, table.suite, table.split)
    recorded = {turn.policy for turn in turns if turn.arm == arm and turn.policy is not None}
    if len(recorded) == 1:
        return recorded.pop()
    return SELECT if hands_out_picks(evidence, ArmRef(table.suite, table.split, arm)) else arm


def _not_winner(evidence: Evidence, table: PolicyTable, default: str | None, policy: str) -> list[str]:
    """Why the default is not the winner, overall or in a class of 30 tasks or more."""
    if default is None:
        return [f"the default policy {policy} was not run on these candidates"]
    reasons = [] if _wins(table, default) else [f"winner is {table.chosen}, default is {default}"]
    for name, tasks in classes_of(evidence, table.suite, table.split).items():
        part = policy_table(evidence, table.suite, table.split, tasks=tasks)
        if part.n >= CLASS_TASKS and not _wins(part, default):
            reasons.append(f"class {name}: winner is {part.chosen}, default is {default}")
    return reasons


def _wins(table: PolicyTable, arm: str) -> bool:
    """The chosen one, or an exact tie with it in rate that costs cannot break."""
    if arm == table.chosen:
        return True
    return table.chosen == table.best is not None and arm in table.tied and table.rates[arm] == table.rates[table.best]


def _rate(table: PolicyTable, arm: str) -> dict[str, JsonValue]:
    rate = table.rates[arm]
    passed = round((rate or 0.0) * table.n)
    interval = wilson_interval(passed, table.n)
    return {
        "n": table.n,
        "pass_rate": rate,
        "wilson_low": interval.low if interval else None,
        "wilson_high": interval.high if interval else None,
    }


def _tie(table: PolicyTable) -> tuple[str, ...]:
    others = [arm for arm in table.tied if arm != table.best]
    return (f"not shown to be worse than {table.best}: {', '.join(others)}",) if others else ()


@dataclass(frozen=True, slots=True)
class _Regressions:
    """Written answers that are worse or better than the pick, over n tasks."""

    ref: ArmRef
    against: str
    n: int
    worse: int
    better: int
    refs: tuple[ArmRef, ...]
    notes: tuple[str, ...] = ()


def _regressions(evidence: Evidence) -> _Regressions | None:
    by_picks = [found for bank in banks(evidence) for found in _from_picks(evidence, bank.pool.suite, bank.pool.split)]
    by_maps = [_from_maps(pair) for pair in _rewrite_and_select(evidence)]
    found: list[_Regressions] = [*by_picks, *by_maps]
    return min(
        (regression for regression in found if regression.n),
        key=lambda r: (holding_of(evidence, r.ref.suite, r.ref.split) != "held out", bool(r.notes), -r.n, str(r.ref)),
        default=None,
    )


def _from_picks(evidence: Evidence, suite: str, split: str) -> list[_Regressions]:
    """Arms that write, judged by their own recorded picks."""
    found = []
    for arm in evidence.arms(suite, split):
        ref = ArmRef(suite, split, arm)
        regressions = synthesis_regressions(evidence, ref)
        if regressions is not None and regressions.n and not hands_out_picks(evidence, ref):
            refs = (ref, *(ArmRef(suite, split, a) for a in evidence.arms(suite, split) if a.startswith("member:")))
            worse, better = regressions.regressions, regressions.improvements
            found.append(_Regressions(ref, "the judge's pick", regressions.n, worse, better, refs))
    return found


def _rewrite_and_select(evidence: Evidence) -> list[Comparison]:
    return [
        compare(evidence, ArmRef(suite, split, f"compound:{REWRITE}"), ArmRef(suite, split, f"compound:{SELECT}"))
        for suite, split in evidence.splits
    ]


def _from_maps(pair: Comparison) -> _Regressions:
    note = f"picks not recorded: {pair.second.arm} stands for the judge's pick"
    return _Regressions(pair.first, pair.second.arm, pair.n, pair.losses, pair.wins, (pair.first, pair.second), (note,))


MEASURES: Mapping[str, Callable[[Criterion, Evidence], Score]] = {
    "4.1": rewrite_against_selection,
    "4.2": synthesis_regression_rate,
    "4.3": needs("drill", "public and hidden checks on the live path, looked for in what the gateway decides by"),
    "4.4": needs("billed", "the same tasks with trajectory items and with content only"),
    "4.5": needs("drill", "two writers on one tree"),
    "4.6": needs("drill", "the fused answer's attribution beside the candidates it came from"),
}
