"""Rows of an lm-evaluation-harness samples file: which filter and metric decide, what each document's row says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.evidence.importers.answers import Answer, grade_of
from pytest_fusion_audit.evidence.importers.bank_stream import Digest
from pytest_fusion_audit.evidence.importers.base import Source, printable, refusal
from pytest_fusion_audit.evidence.importers.lm_eval_results import HIGHER_IS_BETTER, PREFERRED
from pytest_fusion_audit.evidence.importers.outcomes import outcome_of
from pytest_fusion_audit.evidence.importers.rows import Repeats, Row
from pytest_fusion_audit.evidence.importers.text import finite, load_jsonl

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pytest_fusion_audit.evidence.importers.lm_eval_runs import Run

_ROW = {
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash", "prompt_hash",
    "target_hash", "schema_version",
}  # fmt: skip
_ASKED = {"max_gen_toks": "max_tokens", "temperature": "temperature", "top_p": "top_p", "do_sample": "do_sample"}


@dataclass(slots=True)
class SampleRows:
    """One samples file: one row per document, under the filter that decides.

    Attributes:
        metric, filter: what decides; ``other_metrics`` and ``other_filters`` are there and not read.
        grades: value of the metric by document, None where the row has none.
        ungraded: documents whose value is no single number.
        off_scale: some value is outside 0..1, so what passes cannot be told.
        several: documents with several replies behind one score.
    """

    metric: str
    filter: str
    rows: dict[str, Row] = field(default_factory=dict)
    repeats: Repeats = field(default_factory=Repeats)
    grades: dict[str, float | None] = field(default_factory=dict)
    ungraded: list[str] = field(default_factory=list)
    off_scale: bool = False
    other_filters: dict[str, int] = field(default_factory=dict)
    other_metrics: dict[str, None] = field(default_factory=dict)
    several: list[str] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)


def read_rows(source: Source, run: Run) -> SampleRows:
    """Read a samples file.

    Raises:
        ImportRefusedError: a malformed row, no row at all, or no metric that tells right from wrong.
    """
    read: SampleRows | None = None
    for number, data in load_jsonl(source, constants=True):
        row = Row(source, f"line {number}", data)
        name = row.text("filter") or "none"
        if read is None:
            read = SampleRows(_metric(row, run), name)
        doc = row.id("doc_id")
        read.unread.update(row.others(_ROW | set(_metrics(row))))
        read.other_metrics.update((metric, None) for metric in _metrics(row) if metric != read.metric)
        if name != read.filter:
            read.other_filters[name] = read.other_filters.get(name, 0) + 1
            continue
        row.where = f"line {number}, doc {doc}"
        if doc in read.rows:
            same = repr(read.rows[doc].data) == repr(row.data)  # by text: NaN is not equal to itself
            (read.repeats.same if same else read.repeats.spoiled).setdefault(doc)
            continue
        read.rows[doc] = row
        read.grades[doc] = _grade(read, doc, row)
    if read is None:
        raise refusal(source, "holds no row", then="run it again or leave it out")
    read.off_scale = any(grade is not None and not 0 <= grade <= 1 for grade in read.grades.values())
    return read


def _metrics(row: Row) -> list[str]:
    """Names of the row's score keys; versions before ``metrics`` was written are known by the usual names."""
    names = row.data.get("metrics")
    if names is None:
        return [name for name in HIGHER_IS_BETTER if name in row.data]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise row.refuse("metrics", "a list of names")
    return [printable(name) for name in names]


def _metric(row: Row, run: Run) -> str:
    """The metric that decides. One that is better when lower, or of unknown direction, has no right and wrong."""
    names = _metrics(row)
    if not names:
        raise row.refuse("metrics", "the name of a score")
    refused = []
    for name in sorted(names, key=lambda name: PREFERRED.index(name) if name in PREFERRED else len(PREFERRED)):
        stated = run.results.higher_is_better(run.task, name) if run.results is not None else None
        higher = stated if stated is not None else HIGHER_IS_BETTER.get(name)
        if higher:
            return name
        refused.append(f"{name} is better when lower" if higher is False else f"the direction of {name} is not stated")
    then = "import a task with exact_match, acc or pass@1, or add the run's results file if it is missing"
    raise refusal(run.file.source, f"no metric tells right from wrong ({', '.join(refused)})", row.where, then=then)


def _grade(read: SampleRows, doc: str, row: Row) -> float | None:
    value: Any = row.data.get(read.metric)
    if isinstance(value, (int, float)):
        return row.number(read.metric) if not isinstance(value, bool) else float(value)  # refuses NaN by name
    try:
        return grade_of(value)
    except ValueError:
        read.ungraded.append(doc)
        return None


def answer_of(read: SampleRows, doc: str, row: Row, model: str | None) -> Answer:
    """What is known of the answer to a document, in our words."""
    grade = read.grades[doc]
    spoiled = doc in read.repeats.spoiled
    graded = grade is not None and not (spoiled or read.off_scale)
    replies = _replies(row)
    if len(replies) > 1:
        read.several.append(doc)
    blank = not any(reply.strip() for reply in replies) if replies else None
    digest = Digest.of(replies[0]) if len(replies) == 1 else None
    return Answer(
        task=doc,
        requested_model=model,
        parameters=_parameters(row),
        outcome=outcome_of(None, None, blank=blank),
        passed=grade is not None and grade >= 1 if graded else None,
        unscored=not graded,
        spoiled=spoiled,
        score=grade if graded else None,
        chars=digest.chars if digest is not None else None,
        sha256=digest.sha256 if digest is not None else None,
    )


def _replies(row: Row) -> list[str]:
    """Replies to a document in words; empty for multiple choice, where only likelihoods were asked for."""
    value = row.data.get("resps")
    inner = value[0] if isinstance(value, list) and len(value) == 1 else None
    return list(inner) if isinstance(inner, list) and all(isinstance(reply, str) for reply in inner) else []


def _parameters(row: Row) -> dict[str, JsonValue] | None:
    arguments = row.child("arguments")
    first = arguments.data.get("gen_args_0") if arguments is not None else None
    asked = first.get("arg_1") if isinstance(first, dict) else None
    if not isinstance(asked, dict):
        return None
    kept = ((ours, asked.get(theirs)) for theirs, ours in _ASKED.items())
    return {name: value for name, value in kept if isinstance(value, (int, float)) and finite(value)} or None
