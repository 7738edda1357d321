"""1.4: nowhere measured does a member beat the compound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.arms import ArmRef
from pytest_fusion_audit.analysis.classes import classes_of, registered_classes
from pytest_fusion_audit.analysis.comparison import compare
from pytest_fusion_audit.analysis.validity.facts import cap_of, same_model
from pytest_fusion_audit.analysis.validity.finding import p_value
from pytest_fusion_audit.analysis.validity.pairs import with_p
from pytest_fusion_audit.rubric.capping import Figure, capped, not_run
from pytest_fusion_audit.rubric.evaluations import (
    Evaluation,
    evaluation_files,
    evidence_files,
    figures,
    locked_source,
    no_pairs,
    paired,
    panel_figures,
    unpaired,
)
from pytest_fusion_audit.stats import holm

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.rubric.loading import Criterion
    from pytest_fusion_audit.rubric.score import Score

#: Least tasks of a class that is looked at.
CLASS_TASKS = 30


def never_worse(criterion: Criterion, evidence: Evidence) -> Score:
    """Look for a member that beats the compound at mid-p < .05 on any evaluated suite.

    Also in every registered class of >= 30 tasks (Holm-corrected within its suite), and among members at a larger
    output cap recorded elsewhere, on the tasks they share.
    """
    found = paired(evidence)
    if not found:
        return not_run(criterion, evidence, no_pairs(evidence))
    losses: list[str] = []
    notes: list[str] = []
    measured: dict[str, JsonValue] = {}
    files: list[str] = []
    for evaluation in found:
        files += evaluation_files(evidence, evaluation)
        suite = _suite_losses(evaluation)
        classes, class_losses, exploratory = _classes(evidence, evaluation)
        larger, larger_losses, more_files = _at_larger_cap(evidence, evaluation)
        files += more_files
        losses += suite + class_losses + larger_losses
        notes += exploratory
        measured[evaluation.place] = {
            "against": panel_figures(evaluation)["against"],
            "classes": classes,
            "larger_cap": larger,
        }
    primary = found[0]
    alone = [f"{e.place} has no member rows: a loss there cannot be excluded" for e in unpaired(evidence)]
    return capped(
        criterion,
        evidence,
        Figure(
            met=not losses,
            measured={"n": sum(e.n for e in found), "suites": len(found), "losses": len(losses), **measured},
            sources=locked_source(primary),
            lacking={"locked": "no suite is known to be locked"},
            evidence=tuple(files),
            holding=primary.holding if all(e.holding == primary.holding for e in found) else "held out",
            where=primary.place,
            caps=tuple(alone),
            shortfalls=tuple(losses),
            notes=tuple(notes),
        ),
    )


def _suite_losses(evaluation: Evaluation) -> list[str]:
    return [
        f"{evaluation.place}: {c.second.arm.removeprefix('member:')} beats the compound: {with_p(c)}, "
        f"mid-p {p_value(c.mid_p)}"
        for c in evaluation.panel.comparisons
        if c.shows_loss
    ]


def _classes(evidence: Evidence, evaluation: Evaluation) -> tuple[dict[str, JsonValue], list[str], list[str]]:
    """Classes of >= 30 tasks: figures, losses among the registered ones, and remarks about the others."""
    suite, split, _ = evaluation.ref
    registered = registered_classes(evidence, suite, split)
    compared = [
        (name, pair)
        for name, tasks in classes_of(evidence, suite, split).items()
        for member in evaluation.panel.comparisons
        if (pair := compare(evidence, evaluation.ref, member.second, tasks=tasks)).n >= CLASS_TASKS
    ]
    adjusted = holm([pair.mid_p for _, pair in compared])
    shown: dict[str, JsonValue] = {}
    losses: list[str] = []
    remarks: list[str] = []
    for (name, pair), p in zip(compared, adjusted, strict=True):
        who = pair.second.arm.removeprefix("member:")
        shown[f"{name}~{who}"] = {**figures(pair), "mid_p_holm": p, "registered": name in registered}
        if p is not None and p < 0.05 and pair.losses > pair.wins:
            text = f"{evaluation.place}, class {name}: {who} beats the compound: {with_p(pair)}, Holm mid-p {p:.4f}"
            if name in registered:
                losses.append(text)
            else:
                remarks.append(f"exploratory, the class was not registered: {text}")
    return shown, losses, remarks


def _at_larger_cap(
    evidence: Evidence, evaluation: Evaluation
) -> tuple[dict[str, JsonValue], list[str], tuple[str, ...]]:
    """Members with more room for their answer, recorded in another split, on the tasks shared with the compound."""
    shown: dict[str, JsonValue] = {}
    losses: list[str] = []
    files: list[str] = []
    suite, split, _ = evaluation.ref
    for member in evaluation.panel.comparisons:
        own = cap_of(evidence, suite, split, member.second.arm)
        for other in same_model(evidence, suite, split, member.second.arm):
            if own is None or other.cap is None or other.cap <= own:
                continue
            there = ArmRef(suite, other.split, other.arm)
            pair = compare(evidence, evaluation.ref, there)
            if not pair.n:
                continue
            shown[f"{other.split}/{other.arm}"] = figures(pair)
            files += evidence_files(evidence, [there])
            if pair.shows_loss:
                who = f"{other.arm.removeprefix('member:')} ({other.model}, {other.cap} tokens instead of {own})"
                losses.append(f"{who} beats the compound on the {pair.n} shared tasks: {with_p(pair)}")
    return shown, losses, tuple(files)
