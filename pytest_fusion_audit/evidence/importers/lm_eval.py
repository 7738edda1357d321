"""lm-evaluation-harness runs: ``samples_<task>_<time>.jsonl`` (``--log_samples``) and the results file of the same run.

One samples file is one task answered by one model; the model's name is in the results file, or is the folder's.
Each document has one row per filter, all about the same answers: one filter and one metric decide, others are named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.evidence.importers.answers import member_arm_of, record_of
from pytest_fusion_audit.evidence.importers.base import Context, Peek, Reading, Source
from pytest_fusion_audit.evidence.importers.claims import Claims
from pytest_fusion_audit.evidence.importers.lm_eval_results import read_results
from pytest_fusion_audit.evidence.importers.lm_eval_rows import SampleRows, answer_of, read_rows
from pytest_fusion_audit.evidence.importers.lm_eval_runs import RESULTS, SAMPLES, Run, all_runs, run_of
from pytest_fusion_audit.evidence.importers.rows import Totals, no_verdict, unknown_fields
from pytest_fusion_audit.evidence.records import Config, Note, Split, Task

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pytest_fusion_audit.evidence.records import Claim, Record

#: What no samples file tells.
_UNKNOWN = (
    "finish reasons (a reply cut at its cap looks like any other)",
    "tokens",
    "cost",
    "latency",
    "errors of single documents",
    "resolved models",
    "the seed as the provider took it",
)


class LmEvalSamples:
    """Importer of ``lm-eval-samples``."""

    format = SAMPLES
    stage = 0

    def recognises(self, source: Source, peek: Peek) -> bool:  # noqa: ARG002 - the content decides
        """Rows with a document, the replies and the filtered replies."""
        return peek.container in {"json", "jsonl"} and {"doc_id", "doc", "resps", "filtered_resps"} <= peek.keys

    def read(self, source: Source, context: Context) -> Reading:
        """Documents as tasks, replies as candidates; see `Importer.read`."""
        run = run_of(source, context)
        read = read_rows(source, run)
        place, results = run.standing.place, run.results
        records: list[Record] = []
        for doc, row in read.rows.items():
            content = row.text("doc_hash")
            records.append(
                # The rendered prompt may differ by arm (chat templates), the document may not.
                Task(
                    id=doc,
                    suite=place.suite,
                    split=place.split,
                    checker=read.metric,
                    prompt_sha256=content,
                    source=source.name,
                )
            )
        answers = [answer_of(read, doc, row, run.model) for doc, row in read.rows.items()]
        records += [record_of(answer, place, source.name) for answer in answers]
        planned = results.planned(run.task) if results is not None else None
        unscored = sum(answer.verdict not in {"passed", "failed"} for answer in answers)
        records.append(
            Split(
                suite=place.suite,
                split=place.split,
                how="recorded",
                ids=tuple(read.rows),
                planned=planned,
                complete=None if planned is None else len(read.rows) >= planned and not unscored,
                source=source.name,
            )
        )
        records.append(
            Config(what="run", facts=_facts(run, read), suite=place.suite, split=place.split, source=source.name)
        )
        records += _claims(run, read)
        notes = (*run.standing.notes, *_notes(run, read), *no_verdict(unscored, "documents"))
        return Reading(records, _unknown(run, read), notes)


class LmEvalResults:
    """Importer of ``lm-eval-results``: aggregate figures. The rows are in the samples files of the run."""

    format = RESULTS
    stage = 0

    def recognises(self, source: Source, peek: Peek) -> bool:  # noqa: ARG002 - the content decides
        """An object with results and configurations by task."""
        marks = {"lm_eval_version", "n-shot", "n-samples", "higher_is_better"}
        return peek.container == "json" and {"results", "configs"} <= peek.keys and bool(marks & peek.keys)

    def read(self, source: Source, context: Context) -> Reading:
        """Figures of tasks without a samples file as claims; see `Importer.read`."""
        results = read_results(source)
        runs = all_runs(context) if source in context.sources.get(self.format, []) else {}
        covered = {run.task for run in runs.values() if run.results is not None and run.results.source == source}
        naming = context.naming(source)
        arm = naming.arm or (member_arm_of(results.model.rpartition("/")[2]) if results.model is not None else None)
        claims: list[Record] = []
        alone = [task for task in results.tasks if task not in covered]
        for task in alone:
            row = results.inside("results", task)
            figures: dict[str, JsonValue] = {
                f"score/{name}": value
                for name, value in (row.data.items() if row is not None else ())
                if "," in name and isinstance(value, (int, float)) and value == value  # noqa: PLR0124 - NaN is no claim
            }
            of = Claims(naming.suite or task, naming.split or "all", source.name)
            claims += of.of(arm, {"n": results.planned(task), **figures})
        if not alone:
            return Reading((), (), ())
        text = f"{len(alone)} tasks have no samples file in this import (--log_samples): their figures are claims only"
        note = Note(code="aggregate_only", message=text, count=len(alone), items=tuple(alone[:10]))
        return Reading(claims, (f"outcomes of single documents of {', '.join(alone[:10])}",), (note,))


def _facts(run: Run, read: SampleRows) -> dict[str, JsonValue]:
    own = run.results.facts(run.task) if run.results is not None else {}
    known: dict[str, JsonValue] = {
        "harness": "lm_eval",
        **own,
        "arm": run.standing.place.full_arm,
        "replicate": run.standing.place.replicate,
        "requested_model": run.model,
        "checker_mode": f"{read.metric},{read.filter}",
    }
    return {name: value for name, value in known.items() if value is not None}


def _claims(run: Run, read: SampleRows) -> list[Claim]:
    if run.results is None:
        return []
    task = run.task
    binary = set(read.grades.values()) <= {0.0, 1.0, None}
    again = f"replicate/{run.standing.place.replicate}/" if run.standing.place.replicate else ""
    figure = run.results.figure(task, read.metric, read.filter)
    figures: dict[str, JsonValue] = {
        f"{again}n": run.results.planned(task),
        f"{again}{'pass_rate' if binary else f'score/{read.metric}'}": figure,
    }
    return Claims(run.standing.place.suite, run.standing.place.split, run.results.source.name).of(
        run.standing.place.full_arm, figures
    )


def _unknown(run: Run, read: SampleRows) -> tuple[str, ...]:
    unknown = list(_UNKNOWN)
    if read.other_filters:
        unknown.append(f"scores under the filters {', '.join(read.other_filters)} (the verdict is under {read.filter})")
    if read.other_metrics:
        unknown.append(f"scores by {', '.join(read.other_metrics)} (the verdict is by {read.metric})")
    if run.results is None:
        unknown.append("tool version, seeds, date, planned documents and task version (no results file of this run)")
        if run.model is not None:
            unknown.append("the model's own name (taken from the folder)")
    if run.file.task is None:
        unknown.append("the task's name (taken from the file)")
    return tuple(unknown)


def _notes(run: Run, read: SampleRows) -> list[Note]:
    notes = [*read.repeats.notes(), *unknown_fields(read.unread)]
    if read.several:
        text = f"{len(read.several)} documents have several replies: the score is of one of them, or of their vote"
        notes.append(Note(code="replies_in_one_score", message=text, count=len(read.several)))
    if read.ungraded:
        text = f"{len(read.ungraded)} documents have a score that is no single number: no verdict"
        items = tuple(read.ungraded[:10])
        notes.append(Note(code="score_not_a_number", message=text, count=len(read.ungraded), items=items))
    if read.off_scale:
        text = "scores are not on the scale 0..1: what passes cannot be told, no verdict is taken"
        notes.append(Note(code="score_scale", message=text))
    if run.results is not None:
        task = run.task
        totals = Totals()
        totals.expect("n-samples", run.results.planned(task), len(read.rows))
        grades = [grade for grade in read.grades.values() if grade is not None]
        if len(grades) == len(read.rows) and run.results.is_mean(task, read.metric):
            stated = run.results.figure(task, read.metric, read.filter)
            totals.expect(f"{read.metric},{read.filter}", stated, sum(grades) / len(grades), tolerance=1e-6)
        notes += totals.notes()
    return notes
