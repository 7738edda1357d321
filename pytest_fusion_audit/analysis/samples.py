"""The panel against its own best member sampled as often: how much is diversity, and how much is only more draws?

From a bank, both sides have an exact expectation. If c of a member's s samples of a task pass, k of them drawn without
replacement all fail with probability C(s - c, k)/C(s, k); draws of different members are independent. So the oracle of
"k samples of one member" and of "k/m samples of each of m members" can be compared at the same k.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pytest_fusion_audit.analysis.arms import ArmRef, turns_of
from pytest_fusion_audit.analysis.comparison import compare
from pytest_fusion_audit.analysis.matrix import panel_of
from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.analysis.policies import is_compound
from pytest_fusion_audit.evidence.container import member_arm, row_of_turn
from pytest_fusion_audit.evidence.records import UNSCORED_OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_fusion_audit.analysis.comparison import Comparison
    from pytest_fusion_audit.evidence.container import Evidence

_SELF: Final = re.compile(r"self:(?P<member>.+?)\*(?P<samples>\d+)(?::(?P<policy>[^@]+))?(?:@(?P<config>.+))?")


@dataclass(frozen=True, slots=True)
class MatchedSamples:
    """Expected oracles at the same number of samples, over tasks on which every member has that many.

    Attributes:
        samples: k, candidates on either side.
        members: members of the panel; each contributes k/members.
        n: tasks.
        panel_oracle: expected oracle of k/members samples of each member.
        member_oracle: expected oracle of k samples of each member alone, by bare name.
        best: the member with the highest of these (ties: panel order).
        gap: panel_oracle - member_oracle[best]: what diversity adds to more samples.
    """

    samples: int
    members: int
    n: int
    panel_oracle: float
    member_oracle: Mapping[str, float]
    best: str
    gap: float


@per_evidence
def matched_samples(evidence: Evidence, suite: str, split: str, replicate: int = 0) -> tuple[MatchedSamples, ...]:
    """Compare at every k that divides evenly among the members and that every member was sampled at, ascending.

    Empty for a panel of one, and where members have a single sample each (k would be smaller than the panel).
    """
    panel = panel_of(evidence, suite, split)
    drawn = _drawn(evidence, suite, split, panel, replicate)
    found: list[MatchedSamples] = []
    deepest = max((min(s for _, s in of_task.values()) for of_task in drawn.values()), default=0)
    for k in range(len(panel), deepest + 1, len(panel)) if len(panel) > 1 else ():
        tasks = [t for t in sorted(drawn) if all(s >= k for _, s in drawn[t].values())]
        share = k // len(panel)
        alone = {m: sum(1.0 - _all_fail(*drawn[t][m], k) for t in tasks) / len(tasks) for m in panel}
        together = sum(1.0 - math.prod(_all_fail(*drawn[t][m], share) for m in panel) for t in tasks) / len(tasks)
        best = max(panel, key=lambda member: alone[member])
        found.append(MatchedSamples(k, len(panel), len(tasks), together, alone, best, together - alone[best]))
    return tuple(found)


def _all_fail(passing: int, samples: int, k: int) -> float:
    """Probability that k of the samples, drawn without replacement, all fail."""
    return math.comb(samples - passing, k) / math.comb(samples, k)


def _drawn(
    evidence: Evidence, suite: str, split: str, panel: tuple[str, ...], replicate: int
) -> dict[str, dict[str, tuple[int, int]]]:
    """Return task -> member -> (passing samples, samples), for tasks on which every member has a verdict each time."""
    table: dict[str, dict[str, tuple[int, int]]] = {}
    for task, candidates in evidence.candidates(suite, split).items():
        seen: dict[str, list[bool | None]] = {member: [] for member in panel}
        for c in candidates:
            member = member_arm(c.member, c.config).removeprefix("member:")
            own = c.turn == 0 and c.replicate == replicate and c.outcome not in UNSCORED_OUTCOMES
            if own and member in seen:
                seen[member].append(row_of_turn(c).passed)
        if all(passes and None not in passes for passes in seen.values()):
            table[task] = {member: (sum(p is True for p in passes), len(passes)) for member, passes in seen.items()}
    return table


@dataclass(frozen=True, slots=True)
class SelfConsistency:
    """A compound of the panel against one member fused with itself.

    Attributes:
        comparison: the panel's arm (first) against the self arm (second), task by task.
        member: the member that was sampled.
        samples: how often.
        policy: how its samples were fused; None when the arm does not say.
        panel_samples: candidates of a turn of the panel's arm; None when its turns do not say, or differ.
        matched: whether both are the same number; None when ``panel_samples`` is.
    """

    comparison: Comparison
    member: str
    samples: int
    policy: str | None
    panel_samples: int | None
    matched: bool | None


@per_evidence
def self_consistency(evidence: Evidence, suite: str, split: str) -> tuple[SelfConsistency, ...]:
    """Compare every self arm of a split with the panel's arm of the same policy, else with every panel's arm."""
    arms = evidence.arms(suite, split)
    compounds = [arm for arm in arms if is_compound(arm)]
    found: list[SelfConsistency] = []
    for arm in arms:
        named = _SELF.fullmatch(arm)
        if named is None:
            continue
        policy = named["policy"]
        same = [c for c in compounds if policy and c.partition("@")[0] == f"compound:{policy}"]
        for compound in same or compounds:
            drawn = _panel_samples(evidence, ArmRef(suite, split, compound))
            samples = int(named["samples"])
            found.append(
                SelfConsistency(
                    comparison=compare(evidence, ArmRef(suite, split, compound), ArmRef(suite, split, arm)),
                    member=named["member"],
                    samples=samples,
                    policy=policy,
                    panel_samples=drawn,
                    matched=None if drawn is None else drawn == samples,
                )
            )
    return tuple(found)


def _panel_samples(evidence: Evidence, ref: ArmRef) -> int | None:
    turns = [turn for turn in turns_of(evidence, ref.suite, ref.split) if turn.arm == ref.arm]
    sizes = {None if turn.candidate_ids is None else len(turn.candidate_ids) for turn in turns}
    return sizes.pop() if len(sizes) == 1 else None
