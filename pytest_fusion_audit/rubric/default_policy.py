"""Which synthesis policy users get: as configured, as recorded, or as the turns show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.arms import ArmRef, turns_of
from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.analysis.stages import stage_figures
from pytest_fusion_audit.analysis.validity.facts import setting

if TYPE_CHECKING:
    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.evidence.records import Fused

REWRITE, SELECT, EXECUTE = "rewrite", "select_best", "exec_select"
#: The policies 4.1 compares.
POLICIES = (REWRITE, SELECT, EXECUTE)

#: Arms that are what users get, without a policy in their name.
_DEFAULT_ARMS = ("compound", "served")


@per_evidence
def default_policy(evidence: Evidence) -> str | None:
    """The policy of the arm that stands for the compound; None when nothing tells.

    The run's settings say it, else its turns do; where they name none, turns that skip the synthesizer whenever the
    judge named a pick can only have handed that pick out.
    """
    configured = setting(evidence.run.settings, "policy")
    if isinstance(configured, str):
        return configured
    refs = [ArmRef(suite, split, arm) for suite, split in evidence.splits for arm in _DEFAULT_ARMS]
    recorded = {turn.policy for ref in refs for turn in _turns(evidence, ref) if turn.policy is not None}
    if recorded:
        return recorded.pop() if len(recorded) == 1 else None
    shown = {hands_out_picks(evidence, ref) for ref in refs} - {None}
    return SELECT if shown == {True} else None


def hands_out_picks(evidence: Evidence, ref: ArmRef) -> bool | None:
    """Whether an arm answers with the judge's pick verbatim wherever one is named; None when its turns do not tell."""
    turns = _turns(evidence, ref)
    named = {turn.policy for turn in turns if turn.policy is not None} | {policy_in_name(ref.arm)} - {None}
    if named:
        return named <= {SELECT, EXECUTE}
    picks = sum(turn.pick_status == "named" for turn in turns)
    writing = [stage for stage in stage_figures(evidence, ref) if stage.stage == "synthesizer"]
    if not picks or not writing:
        return None
    return sum(stage.skipped for stage in writing) >= picks


def policy_in_name(arm: str) -> str | None:
    """Policy that an arm's name states.

    >>> policy_in_name("compound:rewrite@shallow"), policy_in_name("compound")
    ('rewrite', None)
    """
    return arm.partition("@")[0].partition(":")[2] or None


def _turns(evidence: Evidence, ref: ArmRef) -> list[Fused]:
    return [turn for turn in turns_of(evidence, ref.suite, ref.split) if turn.arm == ref.arm]
