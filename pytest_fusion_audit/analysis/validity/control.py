"""The control at equal dollars: one model's own answers, on the compound's tasks, for the compound's money.

Without it nobody can say whether an uplift comes from the panel or from the money. A name proves nothing: an arm
controls when it was scored on these tasks, cost as much, and is of the best single, the model one would otherwise buy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.arms import ArmRef, seeds_of, task_rates, turns_of
from pytest_fusion_audit.analysis.matrix import panel_of
from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.analysis.names import plain
from pytest_fusion_audit.analysis.pool import pool_of
from pytest_fusion_audit.analysis.validity.facts import family, is_system, kind, model_of, run_facts
from pytest_fusion_audit.analysis.validity.finding import listed
from pytest_fusion_audit.analysis.validity.pairs import pair
from pytest_fusion_audit.analysis.validity.split_roles import is_choosing, plans_of
from pytest_fusion_audit.analysis.validity.turn_costs import cost_per_task
from pytest_fusion_audit.evidence.container import is_member, member_arm
from pytest_fusion_audit.evidence.records import UNSCORED_OUTCOMES, ArmOutcome

if TYPE_CHECKING:
    from pytest_fusion_audit.analysis.comparison import Comparison
    from pytest_fusion_audit.evidence.container import Evidence

#: Totals of two arms within this share of each other count as the same dollars.
EQUAL_DOLLARS = 0.05
#: Share of the compound's tasks that a control may lack for a recorded reason (provider error, cap).
MOST_UNSCORED = 0.05

_SELF = re.compile(r"self:(?P<member>.+?)(?:\*\d+)?(?::[^:*@]*)?(?:@.*)?")


@dataclass(frozen=True, slots=True)
class Control:
    """An arm of one model that stands beside a compound and was meant to control it.

    Attributes:
        comparison: the compound (first) against it (second).
        member: member of the panel whose model it is, by bare name; None when it is of no member, or nobody says.
        called: the model by the best name there is for it.
        best: members that count as best single: named in the plan, best on dev or val, best on this split.
        cost_per_task: micro-dollars, None when unknown.
        equal_dollars: whether it cost as much as the compound, within 5 %, or more; False where unknown.
        unscored: tasks the compound was scored on and the control was not.
        scored: whether those are few, and each for a recorded reason.
    """

    comparison: Comparison
    member: str | None
    called: str
    best: tuple[str, ...]
    cost_per_task: int | None
    equal_dollars: bool
    unscored: int
    scored: bool

    @property
    def of_best_single(self) -> bool:
        """Whether it is the best single that was sampled."""
        return self.member is not None and self.member in self.best

    @property
    def controls(self) -> bool:
        """Whether it is a control at equal dollars."""
        return self.equal_dollars and self.scored and self.of_best_single

    def shortcomings(self) -> str:
        """Why it controls nothing, for people; empty when it does."""
        why = []
        if self.unscored and not self.scored:
            why.append(f"not scored on {self.unscored} of these tasks")
        if not self.of_best_single:
            best = listed(member_arm(name) for name in self.best) or "nobody"
            why.append(f"of {self.called} and not of the best single ({best})")
        return " and ".join(why)


@per_evidence
def controls_of(evidence: Evidence, ref: ArmRef) -> tuple[Control, ...]:
    """Arms of one model beside a compound: self-consistency, members, and what a registration names as control."""
    planned = {plan.equal_dollar_arm for plan in plans_of(evidence, ref.suite, ref.split)}
    cost = cost_per_task(evidence, ref)
    best = best_singles(evidence, ref.suite, ref.split)
    found = []
    for arm in evidence.arms(ref.suite, ref.split):
        if is_system(arm) or (kind(arm) not in {"self", "member"} and arm not in planned):
            continue
        other = ArmRef(ref.suite, ref.split, arm)
        theirs = cost_per_task(evidence, other)
        equal = cost is not None and theirs is not None and theirs >= cost * (1 - EQUAL_DOLLARS)
        member, called = _model_behind(evidence, other)
        unscored, scored = _scored_on(evidence, ref, other)
        found.append(Control(pair(evidence, ref, other), member, called, best, theirs, equal, unscored, scored))
    return tuple(found)


def _scored_on(evidence: Evidence, ref: ArmRef, other: ArmRef) -> tuple[int, bool]:
    """Tasks of a compound on which another arm has no verdict; whether they are few and all of them explained."""
    tasks = task_rates(evidence, ref).keys()
    missing = tasks - task_rates(evidence, other).keys()
    rows = {task: row for seed in seeds_of(evidence, other) for task, row in seed.items()}
    explained = all(task in rows and rows[task].outcome in UNSCORED_OUTCOMES for task in missing)
    return len(missing), bool(tasks) and explained and len(missing) <= MOST_UNSCORED * len(tasks)


@per_evidence
def best_singles(evidence: Evidence, suite: str, split: str) -> tuple[str, ...]:
    """Members that may be called the panel's best single, bare names, sorted.

    The one a registration names, the best on a split for choosing, and the best on this split: between dev and the
    locked split the order of two members of one skill is chance, and either is an honest choice.
    """
    panel = panel_of(evidence, suite, split)
    found = set(_highest(evidence, suite, split, panel))
    named = pool_of(evidence, suite, split).named
    found |= {named} if named is not None else set()
    for other_suite, other_split in evidence.splits:
        if plain(other_suite) == plain(suite) and is_choosing(other_split):
            found |= {*_highest(evidence, other_suite, other_split, panel_of(evidence, other_suite, other_split))}
    return tuple(sorted(found & set(panel)))


def _highest(evidence: Evidence, suite: str, split: str, panel: tuple[str, ...]) -> list[str]:
    """Members with the highest pass rate of a split, all of them on a tie."""
    means: Mapping[str, float] = {
        name: sum(rates.values()) / len(rates)
        for name in panel
        if (rates := task_rates(evidence, ArmRef(suite, split, member_arm(name))))
    }
    return [name for name, rate in means.items() if rate == max(means.values())]


def _model_behind(evidence: Evidence, ref: ArmRef) -> tuple[str | None, str]:
    """The panel's member behind an arm of one model, by its name or by its model, and what to call it."""
    panel = panel_of(evidence, ref.suite, ref.split)
    if is_member(ref.arm):
        name = ref.arm.removeprefix("member:")
        return (name if name in panel else None), ref.arm
    named = _SELF.fullmatch(ref.arm)
    said = named["member"] if named else _stated_model(evidence, ref)
    if said is None:
        return None, "a model nobody states"
    by_name = [name for name in panel if plain(name.partition("@")[0]) == plain(said)]
    models = {name: model_of(evidence, ref.suite, ref.split, member_arm(name)) for name in panel}
    by_model = [name for name, model in models.items() if model is not None and family(model) == family(said)]
    return next(iter([*by_name, *by_model]), None), said


def _stated_model(evidence: Evidence, ref: ArmRef) -> str | None:
    """The one model behind an arm whose name does not tell: by its rows, its turns' candidates, its run's record."""
    rows = {
        row.model
        for row in evidence.of(ArmOutcome)
        if (row.suite, row.split, row.arm) == tuple(ref) and row.model is not None
    }
    turns = {
        name.partition("#")[0]
        for turn in turns_of(evidence, ref.suite, ref.split)
        if turn.arm == ref.arm
        for name in turn.candidate_ids or ()
    }
    own = {row.source for seed in seeds_of(evidence, ref) for row in seed.values()}
    models = [run.facts.get("models") for run in run_facts(evidence, ref.suite, ref.split) if run.source in own]
    runs = {str(name) for of_run in models if isinstance(of_run, Mapping) for name in of_run}
    return next((next(iter(found)) for found in (rows, turns, runs) if len(found) == 1), None)
