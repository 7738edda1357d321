"""The judge: how often its pick is right, how often a blind pick would be, and what was made of a right pick.

Accuracy over everything flatters a judge, since most tasks leave nothing to decide. So three figures stand side by
side, each with its own n and chance level:

* ``accuracy``: the judge named a candidate and at least one candidate passes;
* ``strict``: it named one and exactly one candidate passes (the rubric's 3.1);
* ``skill``: it named one and candidates disagree, tested against a blind draw from the same pool.

Turns in which the judge named nobody have no top-1 to be right or wrong; they are counted beside each figure, and
``strict_coverage`` says how often it committed itself where it mattered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.analysis.picks import over_candidates, picks_of
from pytest_fusion_audit.stats import PickTest, pick_test, wilson_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_fusion_audit.analysis.arms import ArmRef
    from pytest_fusion_audit.analysis.picks import Pick
    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.stats import Calibration


@dataclass(frozen=True, slots=True)
class PickAccuracy:
    """Share of named picks that pass, over one kind of task.

    Attributes:
        n: tasks of that kind with a named pick whose verdict is known.
        right: of those, picks that pass.
        rate: right/n; None when n is 0.
        wilson_low: lower end of Wilson's 95 % interval.
        wilson_high: upper end.
        chance: expected rate of a blind draw from each task's candidates; None when n is 0.
        without_pick: tasks of that kind on which the judge named nobody.
    """

    n: int
    right: int
    rate: float | None
    wilson_low: float | None
    wilson_high: float | None
    chance: float | None
    without_pick: int


@dataclass(frozen=True, slots=True)
class JudgeFigures:
    """The judge of one arm.

    Attributes:
        ref: the arm.
        n: tasks scored by every member and by the arm.
        picks_named: tasks on which the judge named a candidate.
        accuracy: over tasks that some candidate passes.
        strict: over tasks that exactly one candidate passes.
        skill: over tasks whose candidates disagree, with p against chance.
        strict_coverage: share of the strict kind on which a candidate was named; None when there is none.
        over: whether the pool is known to be whole, or holds the recorded primary samples only.
    """

    ref: ArmRef
    n: int
    picks_named: int
    accuracy: PickAccuracy
    strict: PickAccuracy
    skill: PickTest
    strict_coverage: float | None
    over: Literal["all candidates", "recorded primaries"]


@per_evidence
def judge_figures(evidence: Evidence, ref: ArmRef, *, tasks: frozenset[str] | None = None) -> JudgeFigures | None:
    """Measure the judge of an arm; None when no pick of the arm is recorded.

    Args:
        evidence: the run.
        ref: a fused arm.
        tasks: restrict to these ids, for instance those of a class.
    """
    picks = picks_of(evidence, ref, tasks=tasks)
    if not any(pick.named is not None for pick in picks):
        return None
    one_right = [pick for pick in picks if pick.right == 1]
    strict = _accuracy(one_right)
    return JudgeFigures(
        ref=ref,
        n=len(picks),
        picks_named=sum(pick.named is True for pick in picks),
        accuracy=_accuracy([pick for pick in picks if pick.right > 0]),
        strict=strict,
        skill=pick_test((pick.right, pick.candidates, pick.picked) for pick in picks),
        strict_coverage=sum(pick.named is True for pick in one_right) / len(one_right) if one_right else None,
        over=over_candidates(evidence, ref),
    )


def _accuracy(picks: Sequence[Pick]) -> PickAccuracy:
    known = [pick for pick in picks if pick.picked is not None]
    right = sum(pick.picked is True for pick in known)
    interval = wilson_interval(right, len(known))
    return PickAccuracy(
        n=len(known),
        right=right,
        rate=right / len(known) if known else None,
        wilson_low=interval.low if interval else None,
        wilson_high=interval.high if interval else None,
        chance=sum(pick.right / pick.candidates for pick in known) / len(known) if known else None,
        without_pick=sum(not pick.named for pick in picks),
    )


@dataclass(frozen=True, slots=True)
class SynthesisRegressions:
    """The written answer against the judge's pick verbatim.

    Attributes:
        ref: the arm.
        n: tasks with a named pick whose verdict is known, and a scored answer.
        regressions: pick passes, written answer fails.
        improvements: pick fails, written answer passes.
        picked_pass: tasks on which the pick passes.
        rate: regressions/n, the rubric's 4.2; None when n is 0.
        rate_of_right_picks: regressions/picked_pass; None when that is 0.
        wilson_high: upper end of Wilson's 95 % interval of ``rate``.
    """

    ref: ArmRef
    n: int
    regressions: int
    improvements: int
    picked_pass: int
    rate: float | None
    rate_of_right_picks: float | None
    wilson_high: float | None


@per_evidence
def synthesis_regressions(
    evidence: Evidence, ref: ArmRef, *, tasks: frozenset[str] | None = None
) -> SynthesisRegressions | None:
    """Count tasks on which writing made the judge's pick worse or better; None when no pick is recorded."""
    every = picks_of(evidence, ref, tasks=tasks)
    if not any(pick.named is not None for pick in every):
        return None
    picks = [pick for pick in every if pick.picked is not None]
    worse = sum(pick.picked is True and not pick.fused for pick in picks)
    right = sum(pick.picked is True for pick in picks)
    interval = wilson_interval(worse, len(picks))
    return SynthesisRegressions(
        ref=ref,
        n=len(picks),
        regressions=worse,
        improvements=sum(pick.picked is False and pick.fused for pick in picks),
        picked_pass=right,
        rate=worse / len(picks) if picks else None,
        rate_of_right_picks=worse / right if right else None,
        wilson_high=interval.high if interval else None,
    )


@per_evidence
def calibration_of(evidence: Evidence, ref: ArmRef) -> Calibration | None:
    """Calibration of the judge's confidence in its pick; None when no turn of the arm records one.

    Over named picks; a pick without confidence or verdict is counted as unknown.
    """
    named = [pick for pick in picks_of(evidence, ref) if pick.named]
    if not any(pick.confidence is not None for pick in named):
        return None
    from pytest_fusion_audit.stats import judge_calibration  # noqa: PLC0415 - brings scipy.optimize, rarely needed

    return judge_calibration([pick.confidence for pick in named], [pick.picked for pick in named])
