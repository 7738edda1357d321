"""One fused turn as FusionKit's benchmark runner records it: in an envelope's ``tasks`` and in locked-rows files.

Per task only the primary sample of each member is scored; what the other samples did is not recorded. Runs of other
harnesses may add what FusionKit leaves out: ``policy``, ``candidate_ids`` (``<member>#<sample>``) and
``judge_confidence``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_fusion_audit.evidence.importers.ablations import POLICIES
from pytest_fusion_audit.evidence.importers.judged import CONTRADICTED, contradict, passes
from pytest_fusion_audit.evidence.importers.rows import checked_id
from pytest_fusion_audit.evidence.records import Candidate, Fused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_fusion_audit.evidence.importers.rows import Row
    from pytest_fusion_audit.evidence.records import Outcome, PickStatus, Verdict

#: Words of ``outcome``. FusionKit leaves model_failed, infra_error and excluded out of its own score, too.
OUTCOMES = ("scored", "model_failed", "infra_error", "excluded", "pipeline_error")

FIELDS = {
    "task_id", "outcome", "passed", "score", "cost_usd", "latency_s", "candidate_scores", "error_reason", "stages",
    "judge_pick_model", "judge_confidence", "candidate_ids", "policy",
}  # fmt: skip
STAGE_FIELDS = {
    "cost_total_usd", "cost_panel_usd", "cost_judge_usd", "cost_synth_usd", "latency_panel_s", "latency_judge_s",
    "latency_synth_s",
}  # fmt: skip

#: What no file of this kind tells.
UNKNOWN = (
    "samples beyond each member's primary one",
    "finish reasons, tokens and lengths of the answers",
    "cost and latency of each member",
    "which draw of a member the judge picked",
)

_CONTEXT_LENGTH = re.compile(r"context[_ ]length|maximum context|prompt is too long", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the rows of one file or envelope go.

    Attributes:
        suite, split, arm, replicate: names of the rows.
        models: model id of each member where the file states it.
        panel_cost_only: the file's costs are those of the panel's calls; judge and synthesizer are not in them.
    """

    suite: str
    split: str
    arm: str = "compound"
    replicate: int = 0
    models: Mapping[str, str] | None = None
    panel_cost_only: bool = False


def unread_fields(row: Row) -> set[str]:
    """Fields of a turn that nobody reads."""
    names = {f"tasks[].{name}" for name in row.others(FIELDS)}
    stages = row.child("stages")
    if stages is not None:
        names.update(f"stages.{name}" for name in stages.others(STAGE_FIELDS))
    return names


def outcome_word(row: Row) -> str:
    """The row's ``outcome``: a known word; ``scored`` when the row has a verdict and no word."""
    word = row.text("outcome")
    if word is None and row.flag("passed") is not None:
        return "scored"
    if word not in OUTCOMES:
        raise row.refuse("outcome", f"one of {', '.join(OUTCOMES)}")
    return word


def contradicts_itself(row: Row) -> bool:
    """Whether a scored row says passed at a score that does not pass, or the reverse."""
    return outcome_word(row) == "scored" and contradict(row.flag("passed"), row.number("score"))


def fused_turn(row: Row, task: str, place: Place, *, spoiled: bool) -> Fused:
    """The compound's side of a row, judged by the bar of the members: a score of 1 passes.

    ``spoiled`` rows stood twice with different values; no verdict of theirs counts, nor one that its score contradicts.
    """
    word = outcome_word(row)
    outcome: Outcome | None = None
    if word in {"model_failed", "infra_error"}:
        reason = row.text("error_reason") or ""
        outcome = "context_length" if _CONTEXT_LENGTH.search(reason) else "provider_error"
    elif word == "pipeline_error":
        outcome = "pipeline_error"
    score = row.number("score") if word == "scored" else None
    passed = row.flag("passed") if word == "scored" else None
    verdict: Verdict | None = None if passed is None else "passed" if passed else "failed"
    cost = row.money("cost_usd")
    stage_cost, stage_latency = _stages(row)
    if place.panel_cost_only and cost is not None:
        stage_cost.setdefault("panel", cost)
    policy = row.text("policy")
    pick = row.text("judge_pick_model")
    pick_status: PickStatus | None = None
    if "judge_pick_model" in row.data:
        pick_status = "named" if pick is not None else "none"
    return Fused(
        task=task,
        suite=place.suite,
        split=place.split,
        arm=place.arm,
        replicate=place.replicate,
        policy=policy if policy is None else POLICIES.get(policy, policy),
        candidate_ids=row.ids("candidate_ids"),
        pick_member=pick,
        pick_status=pick_status,
        judge_confidence=row.number("judge_confidence", 0, 1),
        stage_cost_micro_usd=stage_cost,
        stage_latency_s=stage_latency,
        outcome=outcome,
        verdict="ungradeable" if spoiled or contradict(passed, score) else verdict,
        score=score,
        cost_micro_usd=None if place.panel_cost_only else cost,
        latency_s=row.number("latency_s", 0),
        reason=_reason(row, word, spoiled=spoiled),
        source=row.source.name,
    )


def _reason(row: Row, word: str, *, spoiled: bool) -> str | None:
    if spoiled:
        return "duplicate_ids"
    if contradicts_itself(row):
        return CONTRADICTED
    if word == "excluded":  # no outcome of ours says this
        return word
    text = row.text("error_reason")
    # Without a text there is nothing to add to the outcome: a copy of the row in another file may have one.
    return f"{word}: {text}" if text and word != "scored" else None


def _stages(row: Row) -> tuple[dict[str, int | None], dict[str, float | None]]:
    stages = row.child("stages")
    if stages is None:
        return {}, {}
    costs: dict[str, int | None] = {}
    latencies: dict[str, float | None] = {}
    for stage, name in (("panel", "panel"), ("judge", "judge"), ("synthesizer", "synth")):
        cost = stages.money(f"cost_{name}_usd")
        latency = stages.number(f"latency_{name}_s", 0)
        if cost is not None:
            costs[stage] = cost
        if latency is not None and not (latency == 0 and cost is None):  # 0 s without a cost: the stage was skipped
            latencies[stage] = latency
    return costs, latencies


def primary_candidates(row: Row, task: str, place: Place, *, spoiled: bool) -> list[Candidate]:
    """The members' side of a row: one primary sample each, in the order of ``candidate_scores``.

    A member passes by the bar of the compound, at a score of 1; a score of null is a candidate without verdict.
    """
    scores = row.child("candidate_scores")
    if scores is None:
        return []
    found = []
    for member in scores.data:
        checked_id(row.source, member, f"{row.where}, field candidate_scores")
        score = scores.number(member)
        verdict: Verdict | None = None if score is None else "passed" if passes(score) else "failed"
        found.append(
            Candidate(
                task=task,
                suite=place.suite,
                split=place.split,
                member=member,
                replicate=place.replicate,
                requested_model=place.models.get(member) if place.models else None,
                verdict="ungradeable" if spoiled else verdict,
                score=score,
                source=row.source.name,
            )
        )
    return found
