"""Dimension 1, headline uplift: does the compound beat every member of its own panel, on tasks nobody tuned on?"""

from __future__ import annotations

from math import sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.arms import ArmRef, arm_summary
from pytest_fusion_audit.analysis.comparison import Comparison, compare, compare_seeds
from pytest_fusion_audit.analysis.validity.pairs import with_p
from pytest_fusion_audit.rubric.capping import Figure, capped, not_run
from pytest_fusion_audit.rubric.criteria.lacking import needs
from pytest_fusion_audit.rubric.criteria.never_worse import never_worse
from pytest_fusion_audit.rubric.equal_dollars import beside_control
from pytest_fusion_audit.rubric.evaluations import (
    Evaluation,
    evaluation_files,
    figures,
    locked_source,
    no_pairs,
    paired,
    panel_figures,
    replication,
    suite_facts,
    unpaired,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.rubric.loading import Criterion
    from pytest_fusion_audit.rubric.score import Score

#: Least tasks of a served-path check (P6.2).
SERVED_TASKS = 25
#: Uplift of 1.3, a share of 1.
LARGE = 0.03
#: Seeds of 1.5.
SEEDS = 3


def uplift_on_primary(criterion: Criterion, evidence: Evidence) -> Score:
    """Exact McNemar against every member on the locked rows of the primary suite.

    The largest p decides, the smallest uplift is the headline. Where none is registered as primary it is the suite with
    the most paired tasks. A control at equal dollars that is not shown to be worse than the compound is named.
    """
    primary = next(iter(paired(evidence)), None)
    if primary is None:
        return not_run(criterion, evidence, no_pairs(evidence))
    caps, notes = _suite_caps(evidence, primary)
    served_caps, served = _served_path(evidence, primary)
    beside, compared = beside_control(evidence, primary)
    measured = panel_figures(primary) | beside
    if served is not None:
        measured["served_path"] = figures(served)
    return capped(
        criterion,
        evidence,
        Figure(
            met=True,
            measured=measured,
            sources=locked_source(primary),
            lacking={"locked": f"{primary.place} is not known to be locked"},
            evidence=evaluation_files(evidence, primary),
            holding=primary.holding,
            where=primary.place,
            n=primary.n,
            enough=_whole_suite(evidence, primary),
            p=primary.panel.p,
            shown=bool(primary.panel.shown),
            caps=caps + served_caps,
            shortfalls=_unbeaten(primary),
            notes=(_which_primary(evidence, primary), *compared, *notes),
        ),
    )


def uplift_on_second_family(criterion: Criterion, evidence: Evidence) -> Score:
    """Locked rows of a second suite of another family: the same test against every member, the control beside it."""
    second = replication(evidence)
    if second is None:
        return not_run(criterion, evidence, _no_second(evidence))
    caps, notes = _family_caps(evidence, second)
    beside, compared = beside_control(evidence, second)
    return capped(
        criterion,
        evidence,
        Figure(
            met=True,
            measured=panel_figures(second) | beside,
            sources=locked_source(second),
            lacking={"locked": f"{second.place} is not known to be locked"},
            evidence=evaluation_files(evidence, second),
            holding=second.holding,
            where=second.place,
            n=second.n,
            p=second.panel.p,
            shown=bool(second.panel.shown),
            caps=caps,
            shortfalls=_unbeaten(second),
            notes=(*compared, *notes),
        ),
    )


def size_of_uplift(criterion: Criterion, evidence: Evidence) -> Score:
    """The larger significant uplift of 1.1's and 1.2's suites, in points over the best single, control beside it."""
    first, second = next(iter(paired(evidence)), None), replication(evidence)
    found = [evaluation for evaluation in (first, second) if evaluation is not None]
    if not found:
        return not_run(criterion, evidence, no_pairs(evidence))
    best = max(found, key=lambda e: (bool(e.panel.shown), e.panel.uplift or 0.0))
    beside, compared = beside_control(evidence, best)
    large = (best.panel.uplift or 0.0) >= LARGE
    return capped(
        criterion,
        evidence,
        Figure(
            met=large,
            measured=panel_figures(best) | beside,
            sources=locked_source(best),
            lacking={"locked": f"{best.place} is not known to be locked"},
            evidence=evaluation_files(evidence, best),
            holding=best.holding,
            where=best.place,
            n=best.n,
            p=best.panel.p,
            shown=bool(best.panel.shown),
            shortfalls=() if large else (f"uplift {100 * (best.panel.uplift or 0.0):+.1f} points, +3 needed",),
            notes=compared,
        ),
    )


def variance_across_seeds(criterion: Criterion, evidence: Evidence) -> Score:
    """Replicates of the locked run: uplift of each seed over every member, and a t interval of their mean."""
    evaluation = next((e for e in paired(evidence) if _seeds(evidence, e.ref) > 1), None)
    if evaluation is None:
        have = _seeds(evidence, paired(evidence)[0].ref) if paired(evidence) else 0
        return not_run(
            criterion,
            evidence,
            f"needs a billed measurement: the evaluation repeated with >= {SEEDS} seeds, {have} recorded",
        )
    smallest: dict[str, list[float]] = {}
    for comparison in evaluation.panel.comparisons:
        seeds = compare_seeds(evidence, evaluation.ref, comparison.second)
        smallest[comparison.second.arm] = [seed.uplift for seed in seeds if seed.uplift is not None]
    worst = min(smallest, key=lambda arm: fmean(smallest[arm]))
    uplifts = smallest[worst]
    low, high = _t_interval(uplifts)
    enough = len(uplifts) >= SEEDS
    survives = all(uplift > 0 for per_member in smallest.values() for uplift in per_member)
    excludes = low is not None and low > 0
    shortfalls = []
    if not survives:
        shortfalls.append("the uplift changes its sign over seeds")
    if not excludes:
        shortfalls.append("the interval over seeds does not exclude 0")
    if not enough:
        shortfalls.append(f"{len(uplifts)} seeds, {SEEDS} needed")
    return capped(
        criterion,
        evidence,
        Figure(
            met=enough and survives and excludes,
            measured={
                "seeds": len(uplifts),
                "n": evaluation.n,
                "over": worst.removeprefix("member:"),
                "uplift_per_seed": list(uplifts),
                "uplift": fmean(uplifts),
                "low": low,
                "high": high,
                "interval": "t over seeds, 95 %",
            },
            sources=locked_source(evaluation) | {"billed"},
            lacking={"locked": f"{evaluation.place} is not known to be locked"},
            evidence=evaluation_files(evidence, evaluation),
            holding=evaluation.holding,
            where=evaluation.place,
            shortfalls=tuple(shortfalls),
        ),
    )


def _no_second(evidence: Evidence) -> str:
    """Why there is no second family, with the rate of a compound that ran alone: a rate is no uplift."""
    alone = [e for e in unpaired(evidence) if not paired(evidence) or e.ref.suite != paired(evidence)[0].ref.suite]
    if not alone:
        return "needs locked rows: the compound and every member on a public suite of another family"
    shown = []
    for evaluation in alone:
        summary = arm_summary(evidence, evaluation.ref)
        shown.append(
            f"{evaluation.place} records the compound alone ({summary.passed} of {summary.n}), no member's rows"
        )
    return f"needs locked rows: {'; '.join(shown)}"


def _which_primary(evidence: Evidence, primary: Evaluation) -> str:
    if primary.plan is not None and primary.plan.role == "primary":
        return f"primary suite: {primary.ref.suite}, by its registration"
    others = [e.place for e in paired(evidence)[1:]]
    beside = f"; beside it {', '.join(others)}" if others else ""
    return f"primary suite: {primary.place}, nothing registered, it has the most paired tasks ({primary.n}){beside}"


def _unbeaten(evaluation: Evaluation) -> tuple[str, ...]:
    return tuple(
        f"{c.second.arm.removeprefix('member:')} is not beaten: {with_p(c)}, {c.decision}"
        for c in evaluation.panel.comparisons
        if not c.shows_uplift
    )


def _suite_caps(evidence: Evidence, evaluation: Evaluation) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What 1.1 asks of its suite; the words public and agentic are waived for simulated runs."""
    facts = suite_facts(evidence, evaluation.ref.suite)
    faults = []
    for word in ("public", "agentic", "coding"):
        if facts.get(word) is not True:
            known = "not" if facts.get(word) is False else "not known to be"
            faults.append(f"{evaluation.ref.suite} is {known} {word}")
    if evidence.run.mode == "offline":
        kept = tuple(fault for fault in faults if fault.endswith("coding"))
        return kept, ("waived: simulated (public, agentic, served)",)
    return tuple(faults), ()


def _family_caps(evidence: Evidence, second: Evaluation) -> tuple[tuple[str, ...], tuple[str, ...]]:
    facts = suite_facts(evidence, second.ref.suite)
    first = suite_facts(evidence, paired(evidence)[0].ref.suite)
    caps = []
    if facts.get("family") is None or first.get("family") is None:
        caps.append("the families of the two suites are not recorded: a different family is not shown")
    if evidence.run.mode == "offline":
        return tuple(caps), ("waived: simulated (public)",)
    if facts.get("public") is not True:
        caps.append(f"{second.ref.suite} is not known to be public")
    return tuple(caps), ()


def _whole_suite(evidence: Evidence, evaluation: Evaluation) -> bool:
    official = suite_facts(evidence, evaluation.ref.suite).get("official_tasks")
    return isinstance(official, int) and 0 < official <= evaluation.n


def _served_path(evidence: Evidence, evaluation: Evaluation) -> tuple[tuple[str, ...], Comparison | None]:
    """The served-path check (P6.2) of an evaluation that ran on the engine; None where the served arm is the claim."""
    if evaluation.ref.arm == "served" or evidence.run.mode == "offline":
        return (), None
    served = ArmRef(evaluation.ref.suite, evaluation.ref.split, "served")
    summary = arm_summary(evidence, served)
    if not summary.rows:
        return ("no served-path check: the engine was measured, users get the gateway",), None
    check = compare(evidence, served, evaluation.ref, pipeline_errors="leave")
    errors = summary.states.get("pipeline_error", 0)
    if errors:
        return (f"served-path check failed: {errors} pipeline errors",), check
    if check.shows_loss:
        return (f"served-path check failed: {with_p(check)}",), check
    if check.n < SERVED_TASKS:
        return (f"served-path check too small: {check.n} tasks, {SERVED_TASKS} needed",), check
    return (), check


def _seeds(evidence: Evidence, ref: ArmRef) -> int:
    return len(evidence.replicates(*ref))


def _t_interval(values: list[float]) -> tuple[float | None, float | None]:
    """Two-sided 95 % t interval of a mean; unknown with fewer than two values."""
    if len(values) < 2:
        return None, None
    from scipy.special import stdtrit  # noqa: PLC0415 - scipy is slow to import and few runs have seeds

    half = float(stdtrit(len(values) - 1, 0.975)) * stdev(values) / sqrt(len(values))
    return fmean(values) - half, fmean(values) + half


MEASURES: Mapping[str, Callable[[Criterion, Evidence], Score]] = {
    "1.1": uplift_on_primary,
    "1.2": uplift_on_second_family,
    "1.3": size_of_uplift,
    "1.4": never_worse,
    "1.5": variance_across_seeds,
    "1.6": needs("billed", "a non-coding suite answered by the compound and every member"),
}
