"""Where the compound was put to the test: which splits, which arm of them, against whom, and whether it was held out.

Criteria about uplift, cost and latency read these; criteria about the candidates read banks (see `banks`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.analysis.arms import ArmRef
from pytest_fusion_audit.analysis.comparison import AgainstPanel, Comparison, against_panel
from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.analysis.names import plain
from pytest_fusion_audit.analysis.validity.facts import (
    compounds,
    setting,
    source_files,
)
from pytest_fusion_audit.analysis.validity.split_roles import headline_splits, is_locked, is_working, plans_of
from pytest_fusion_audit.evidence.container import Evidence, member_arm
from pytest_fusion_audit.evidence.records import ArmOutcome, Candidate, ComparisonPlan, Config, Fused, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import JsonValue

    from pytest_fusion_audit.rubric.capping import Holding
    from pytest_fusion_audit.rubric.loading import Source

#: Families of suites in which an answer takes several turns.
MULTI_TURN_FAMILIES = frozenset({"multi-turn edit", "repository issue", "terminal"})


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One split on which the compound can be compared with the members of its panel.

    Attributes:
        ref: the arm that stands for the compound there.
        holding: whether the split is held out.
        panel: comparisons with every member; without any where no member answered there.
        plan: its registration, None for a split that was never registered.
    """

    ref: ArmRef
    holding: Holding
    panel: AgainstPanel
    plan: ComparisonPlan | None

    @property
    def place(self) -> str:
        """Suite and split as measurement names write them."""
        return f"{self.ref.suite}/{self.ref.split}"

    @property
    def n(self) -> int:
        """Paired tasks: of the member that shares the fewest; 0 without members."""
        return min((comparison.n for comparison in self.panel.comparisons), default=0)

    @property
    def headline(self) -> Comparison | None:
        """The comparison the headline is about: the member with the smallest uplift."""
        return next((c for c in self.panel.comparisons if c.second.arm == self.panel.member), None)


@per_evidence
def evaluations(evidence: Evidence) -> tuple[Evaluation, ...]:
    """Splits with a compound arm that nothing was tuned on: the primary first, then held-out ones, then by size."""
    found = [_evaluation(evidence, suite, split) for suite, split in headline_splits(evidence)]
    return tuple(
        sorted(
            found,
            key=lambda e: (_role(e) != "primary", e.n == 0, e.holding != "held out", -e.n, e.ref.suite, e.ref.split),
        )
    )


def paired(evidence: Evidence) -> tuple[Evaluation, ...]:
    """Evaluations in which every member shares tasks with the compound, primary first."""
    return tuple(evaluation for evaluation in evaluations(evidence) if evaluation.n)


def unpaired(evidence: Evidence) -> tuple[Evaluation, ...]:
    """Evaluations of the compound alone: its rate is known and nothing to compare it with."""
    return tuple(evaluation for evaluation in evaluations(evidence) if not evaluation.n)


def replication(evidence: Evidence) -> Evaluation | None:
    """The evaluation on a second family: the registered one, else the largest; None without."""
    first, *others = paired(evidence) or (None,)
    if first is None:
        return None
    family = suite_facts(evidence, first.ref.suite).get("family")
    candidates = [
        other
        for other in others
        if other.ref.suite != first.ref.suite
        and (family is None or suite_facts(evidence, other.ref.suite).get("family") != family)
    ]
    return min(candidates, key=lambda e: (_role(e) != "replication", e.holding != "held out", -e.n), default=None)


def holding_of(evidence: Evidence, suite: str, split: str) -> Holding:
    """Whether a split is held out: locked by name or registration, a working split, or nobody says."""
    if is_locked(evidence, suite, split):
        return "held out"
    return "not held out" if is_working(split) else "unknown"


def suite_facts(evidence: Evidence, suite: str) -> Mapping[str, JsonValue]:
    """Facts recorded about a suite (public, agentic, coding, family); what is missing is unknown."""
    facts: dict[str, JsonValue] = {}
    for config in evidence.of(Config):
        if config.what == "suite" and config.suite is not None and plain(config.suite) == plain(suite):
            facts.update({name: value for name, value in config.facts.items() if value is not None})
    return facts


def figures(comparison: Comparison) -> dict[str, JsonValue]:
    """The figures of one comparison as a scorecard shows them."""
    return {
        "n": comparison.n,
        "wins": comparison.wins,
        "losses": comparison.losses,
        "uplift": comparison.uplift,
        "tango_low": comparison.tango_low,
        "tango_high": comparison.tango_high,
        "exact_p": comparison.exact_p,
        "clustered_p": comparison.clustered_p,
        "decision_p": comparison.decision_p,
        "mid_p": comparison.mid_p,
        "decision": comparison.decision,
        "rate": comparison.first_rate,
        "other_rate": comparison.second_rate,
    }


def panel_figures(evaluation: Evaluation) -> dict[str, JsonValue]:
    """The headline comparison, with the p that decides (the largest) and every member beside it."""
    headline = evaluation.headline
    shown: dict[str, JsonValue] = dict(figures(headline)) if headline else {}
    shown["arm"] = str(evaluation.ref)
    if headline is not None:
        shown["over"] = headline.second.arm.removeprefix("member:")
        shown["decision_p"] = evaluation.panel.p
        shown["decision"] = _decision(evaluation)
    shown["against"] = {
        comparison.second.arm.removeprefix("member:"): figures(comparison)
        for comparison in sorted(evaluation.panel.comparisons, key=lambda c: c.second.arm)
    }
    return shown


def evidence_files(evidence: Evidence, refs: Iterable[ArmRef]) -> tuple[str, ...]:
    """Files behind the rows of some arms: what was imported, and the evidence files they were stored in."""
    names: list[str] = []
    for ref in refs:
        names += source_files(evidence, ref.suite, ref.split, [ref.arm])
        names += [f"evidence/{kind}.jsonl" for kind in sorted(_kinds(evidence).get(tuple(ref), ()))]
    return tuple(name for name in dict.fromkeys(names) if name)


def evaluation_files(evidence: Evidence, evaluation: Evaluation) -> tuple[str, ...]:
    """Files behind an evaluation: the compound's rows and its members'."""
    members = [comparison.second for comparison in evaluation.panel.comparisons]
    return evidence_files(evidence, [evaluation.ref, *members])


def locked_source(evaluation: Evaluation) -> frozenset[Source]:
    """The source ``locked``, where the evaluation is held out."""
    return frozenset({"locked"}) if evaluation.holding == "held out" else frozenset()


def no_pairs(evidence: Evidence) -> str:
    """Why nothing can be compared with a member."""
    alone = unpaired(evidence)
    if alone:
        return f"needs locked rows: every member's verdicts on the tasks of {', '.join(e.place for e in alone)}"
    return "needs locked rows: the compound and every member on the same held-out tasks"


def _evaluation(evidence: Evidence, suite: str, split: str) -> Evaluation:
    plan = min(plans_of(evidence, suite, split), key=lambda p: (p.look, p.source), default=None)
    ref = ArmRef(suite, split, headline_arm(evidence, suite, split, plan))
    return Evaluation(ref, holding_of(evidence, suite, split), against_panel(evidence, ref), plan)


def headline_arm(evidence: Evidence, suite: str, split: str, plan: ComparisonPlan | None = None) -> str:
    """The arm that stands for the compound: registered first, else ``compound``, else the policy set as default."""
    recorded = compounds(evidence, suite, split)
    if plan is not None:
        registered = [arm for arm in plan.arms if arm in recorded]
        if registered:
            return registered[0]
    default = f"compound:{setting(evidence.run.settings, 'policy')}"
    return default if "compound" not in recorded and default in recorded else recorded[0]


def _role(evaluation: Evaluation) -> str | None:
    return evaluation.plan.role if evaluation.plan else None


def _decision(evaluation: Evaluation) -> str | None:
    if evaluation.panel.shown:
        return "shown"
    decisions = [comparison.decision for comparison in evaluation.panel.comparisons]
    if all(d in {"shown", "borderline: not shown"} for d in decisions) and (evaluation.panel.uplift or 0) > 0:
        return "borderline: not shown"
    return "not shown"


@per_evidence
def _kinds(evidence: Evidence) -> Mapping[Any, frozenset[str]]:
    """(suite, split, arm) -> kinds of record its rows came from."""
    kinds: dict[tuple[str, str, str], set[str]] = {}
    for candidate in evidence.of(Candidate):
        arm = member_arm(candidate.member, candidate.config)
        kinds.setdefault((candidate.suite, candidate.split, arm), set()).add(kind_of(candidate))
    for turn in evidence.of(Fused):
        kinds.setdefault((turn.suite, turn.split, turn.arm), set()).add(kind_of(turn))
    for row in evidence.of(ArmOutcome):
        kinds.setdefault((row.suite, row.split, row.arm), set()).add(kind_of(row))
    return {key: frozenset(found) for key, found in kinds.items()}
