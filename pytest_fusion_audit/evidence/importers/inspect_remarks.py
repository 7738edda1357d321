"""What is said about an inspect_ai log: its own figures as claims, what it leaves unknown, what was met on the way."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_fusion_audit.evidence.importers.claims import Claims
from pytest_fusion_audit.evidence.importers.inspect_sample import FIELDS
from pytest_fusion_audit.evidence.importers.outcomes import unknown_finish
from pytest_fusion_audit.evidence.importers.rows import Totals, no_verdict, unknown_fields
from pytest_fusion_audit.evidence.records import Note

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pytest_fusion_audit.evidence.importers.inspect_graded import GradedLog
    from pytest_fusion_audit.evidence.records import Claim

_TOP = {
    "version", "status", "eval", "plan", "results", "stats", "error", "invalidated", "log_updates", "config_updates",
    "tags", "metadata", "samples", "reductions", "location", "etag",
}  # fmt: skip
#: What no log of this tool tells.
_UNKNOWN = (
    "the seed as the provider took it",
    "the exact build of the models",
    "prices (a cost is there only where the log has total_cost)",
    "model time apart from waiting and scoring (latency is the sample's whole time)",
)


def claims_of(read: GradedLog) -> list[Claim]:
    """The tool's own figures. Its accuracy is a mean of grades over epochs: a pass rate where all grades are 0 or 1."""
    results = read.log.header.child("results")
    if results is None:
        return []
    again = f"replicate/{read.place.replicate}/" if read.place.replicate else ""
    figures: dict[str, JsonValue] = {
        "total_samples": results.count("total_samples"),
        "completed_samples": results.count("completed_samples"),
    }
    if read.scorer is not None and read.scorer.stated is not None:
        binary = set(read.grades.values()) <= {0.0, 1.0, None} and read.facts.epochs == 1
        figures["n" if read.facts.epochs == 1 else "scored_tasks"] = read.scorer.stated.count("scored_samples")
        metrics = read.scorer.stated.child("metrics")
        for name in metrics.data if metrics is not None else ():
            metric = metrics.child(name) if metrics is not None else None
            value = metric.data.get("value") if metric is not None else None
            if isinstance(value, (int, float)) and value == value:  # noqa: PLR0124 - NaN is no claim
                figures["pass_rate" if name in {"accuracy", "mean"} and binary else f"score/{name}"] = value
    claims = Claims(read.place.suite, read.place.split, read.log.source.name)
    return claims.of(read.place.full_arm, {again + name: value for name, value in figures.items()})


def unknown_of(read: GradedLog) -> tuple[str, ...]:
    """What the format, and this log, do not tell."""
    unknown = list(_UNKNOWN)
    unsaid = Counter(s.finish_reason or "none" for s in read.samples if s.outcome is None)
    if unsaid:
        words = ", ".join(f"{reason} {count}" for reason, count in sorted(unsaid.items()))
        unknown.append(f"how {sum(unsaid.values())} answers ended (stop reasons: {words})")
    for name, silent in (
        ("tokens", all(sample.output_tokens is None for sample in read.samples)),
        ("cost", all(sample.cost_micro_usd is None for sample in read.samples)),
        ("seed asked for", "seed" not in read.facts.parameters),
        ("output cap", "max_tokens" not in read.facts.parameters),
        ("planned ids", read.facts.ids is None),
    ):
        if silent:
            unknown.append(name)
    if read.scorer is not None and read.scorer.others:
        names = ", ".join(read.scorer.others)
        unknown.append(f"scores of {names} (the verdict is that of {read.scorer.name})")
    others = sorted({model for sample in read.samples for model in sample.other_models})
    if others:
        unknown.append(f"to whom the usage of {', '.join(others)} belongs (graders, or members of a compound)")
    return tuple(unknown)


def notes_of(read: GradedLog) -> list[Note]:
    """Counted exclusions and oddities of this log."""
    samples, log = read.samples, read.log
    notes = [*read.repeats.notes(), *_state_notes(read), *_totals(read)]

    def note(code: str, found: list[str], text: str) -> None:
        if found:
            notes.append(Note(code=code, message=f"{len(found)} {text}", count=len(found), items=tuple(found[:10])))

    errors = [f"{s.id}: {s.error}" for s in samples if s.error is not None]
    note("sample_errors", errors, "samples ended in an error: neither right nor wrong, not scored, counted")
    withdrawn = [s.id for s in samples if s.withdrawn]
    note("withdrawn", withdrawn, "samples were marked invalid or stopped by a person: no verdict")
    limits = [f"{s.id}: {s.limit}" for s in samples if s.limit]
    note("limits", limits, "samples were stopped by a limit: the tool's verdict stands")
    note(
        "sample_retries",
        [s.id for s in samples if s.retries],
        "samples were tried again after an error: the last counts",
    )
    note("score_not_a_number", read.ungraded, "samples have a score that is no single number: no verdict")
    note(
        "rewritten_members", list(log.rewritten), "members of the archive were written more than once: the last is read"
    )
    if read.off_scale:
        text = "scores are not on the scale 0..1: what passes cannot be told, no verdict is taken"
        notes.append(Note(code="score_scale", message=text))
    unscored = [s for s in samples if s.error is None and read.answer(s).verdict not in {"passed", "failed"}]
    notes += no_verdict(len(unscored), "samples")
    notes += unknown_finish(s.finish_reason for s in samples if s.finish_reason != "unknown")  # inspect's word for none
    fields = log.header.others(_TOP) + [f"samples[].{name}" for row in log.samples for name in row.others(FIELDS)]
    return [*notes, *unknown_fields(fields)]


def _state_notes(read: GradedLog) -> list[Note]:
    notes = []
    if not read.facts.finished:
        error = read.log.header.child("error")
        text = f"the run did not succeed (status {read.facts.status})"
        if error is not None:
            text += f": {_error_name(error.text('message'))}"
        notes.append(Note(code="run_not_finished", message=f"{text}; what it holds is read, the split is incomplete"))
    missing = read.missing
    if missing:
        notes.append(Note(code="not_run", message=f"{missing} planned samples are not in the log", count=missing))
    return notes


def _error_name(message: str | None) -> str:
    """Class name of an error, as the tool writes it: messages hold paths and prompts."""
    return (message or "an error").partition("(")[0].partition(":")[0][:80]


def _totals(read: GradedLog) -> list[Note]:
    """Compare the tool's totals with the samples, by the tool's rule: a mean over epochs, then over tasks."""
    results = read.log.header.child("results")
    if results is None:
        return []
    totals = Totals()
    totals.expect("total_samples", results.count("total_samples"), len(read.samples) + (read.missing or 0))
    totals.expect("completed_samples", results.count("completed_samples"), sum(s.error is None for s in read.samples))
    if read.scorer is None or read.scorer.stated is None or read.ungraded:
        return totals.notes()
    by_task: dict[str, list[float]] = {}
    for (task, _), grade in read.grades.items():
        if grade is not None:
            by_task.setdefault(task, []).append(grade)
    totals.expect("scored_samples", read.scorer.stated.count("scored_samples"), len(by_task))
    metrics = read.scorer.stated.child("metrics")
    reducer = read.scorer.stated.text("reducer")
    if metrics is not None and by_task and reducer in {None, "mean"}:
        mean = sum(sum(grades) / len(grades) for grades in by_task.values()) / len(by_task)
        for name in {"accuracy", "mean"} & metrics.data.keys():
            metric = metrics.child(name)
            totals.expect(name, metric.number("value") if metric is not None else None, mean, tolerance=1e-6)
    return totals.notes()
