"""Public pass matrix: many models, one column each, on the tasks of a benchmark.

``{benchmark, value, provenance, tasks: [{id, …}], models: [{name, …}], pass_percent | pass: {model: [one per task]}}``.
A model passes a task at 50 percent of its own samples.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.evidence.importers.base import Context, Peek, Reading, Source, refusal, shown
from pytest_fusion_audit.evidence.importers.pass_map import Arm, arm_outcome
from pytest_fusion_audit.evidence.importers.rows import Repeats, Row, no_verdict, unique_items, unknown_fields
from pytest_fusion_audit.evidence.importers.text import load_json
from pytest_fusion_audit.evidence.records import Config, Note, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import JsonValue

    from pytest_fusion_audit.evidence.records import ArmOutcome, Record

_FIELDS = {"benchmark", "value", "provenance", "tasks", "models", "pass_percent", "pass"}
_TASK_FIELDS = {"id", "date_ms", "difficulty", "platform"}
SPLIT = "all"


class PassMatrixFile:
    """Importer of ``pass-matrix``. It is read last: its suites are texts of other people and name nothing else."""

    format = "pass-matrix"
    stage = 3

    def recognises(self, _source: Source, peek: Peek) -> bool:
        """An object with a benchmark, tasks, models and a column per model."""
        columns = bool(peek.keys & {"pass_percent", "pass"})
        return peek.container == "json" and {"benchmark", "tasks", "models"} <= peek.keys and columns

    def read(self, source: Source, context: Context) -> Reading:
        """One outcome per model and task; dates, difficulty and platform of the tasks. See `Importer.read`."""
        document = Row(source, "", load_json(source))
        name, whole = ("pass_percent", 100) if "pass_percent" in document.data else ("pass", 1)
        naming = context.naming(source)
        suite = naming.suite or document.text("benchmark")
        if suite is None:
            raise document.refuse("benchmark", "a text")
        split = naming.split or SPLIT
        rows = document.rows("tasks")
        ids = [row.id("id") for row in rows]
        columns, notes = _columns(document, name, whole, len(ids))
        keep, repeats = _unique_tasks(ids, rows, columns)
        records: list[Record] = [
            _task(rows[index], ids[index], suite, split) for index in keep if ids[index] not in repeats.spoiled
        ]
        open_cells = 0
        for model, column in columns.items():
            arm = Arm(suite, split, f"member:{model}", source.name)
            cells = [(ids[index], column[index]) for index in keep]
            open_cells += sum(value is None for _, value in cells)
            records += _outcomes(arm, cells, whole, repeats)
        facts = _facts(document)
        records.append(Config(what="matrix", suite=suite, split=split, facts=facts, source=source.name))
        unread = {
            *document.others(_FIELDS),
            *(f"tasks[].{field}" for row in rows for field in row.others(_TASK_FIELDS)),
        }
        notes = [*repeats.notes(), *notes, *no_verdict(open_cells, "cells"), *unknown_fields(unread)]
        unknown = (
            "answers, tokens, cost and latency",
            "samples one by one (only their share is given)",
            "any compound",
        )
        return Reading(records, unknown, tuple(notes))


def _columns(document: Row, name: str, whole: int, height: int) -> tuple[dict[str, list[float | None]], list[Note]]:
    """Columns in the order of ``models``, each as long as there are tasks, every value within 0..whole."""
    table = document.child(name)
    if table is None:
        raise document.refuse(name, "an object from model to a list")
    items, repeats = unique_items(document.source, table.data, name)
    found = dict(items)
    listed = [row.id("name") for row in document.rows("models")]
    order = [model for model in dict.fromkeys(listed) if model in found] + [m for m in found if m not in listed]
    notes = repeats.notes()
    absent = [model for model in listed if model not in found]
    if absent:
        text = f"{len(absent)} models are listed without a column"
        notes.append(Note(code="totals_disagree", message=text, count=len(absent), items=tuple(absent[:10])))
    return {model: _checked(document.source, f"{name}.{model}", found[model], whole, height) for model in order}, notes


def _checked(source: Source, where: str, column: Any, whole: int, height: int) -> list[float | None]:
    if not isinstance(column, list):
        raise refusal(source, f"a list is expected, not {shown(column)}", f"field {where}")
    if len(column) != height:
        raise refusal(source, f"{len(column)} values for {height} tasks", f"field {where}")
    for index, value in enumerate(column):
        if value is None:
            continue
        if not isinstance(value, (int, float)) or not 0 <= value <= whole:  # NaN fails the comparison, too
            what = f"a number from 0 to {whole} is expected, not {shown(value)}"
            raise refusal(source, what, f"field {where}[{index}]")
    return column


def _unique_tasks(ids: list[str], rows: list[Row], columns: dict[str, list[float | None]]) -> tuple[list[int], Repeats]:
    """Positions of the first occurrence of each id, and the ids that stand twice."""
    first: dict[str, int] = {}
    repeats = Repeats()
    for index, task in enumerate(ids):
        held = first.setdefault(task, index)
        if held != index:
            same = rows[held].data == rows[index].data and all(c[held] == c[index] for c in columns.values())
            (repeats.same if same else repeats.spoiled).setdefault(task)
    return list(first.values()), repeats


def _outcomes(arm: Arm, cells: list[tuple[str, float | None]], whole: int, repeats: Repeats) -> Iterator[ArmOutcome]:
    for task, value in cells:
        if value is None or task in repeats.spoiled:
            yield arm_outcome(arm, task, None, spoiled=task in repeats.spoiled)
        else:
            yield arm_outcome(arm, task, 2 * value >= whole, score=value / whole)


def _task(row: Row, task: str, suite: str, split: str) -> Task:
    moment = row.count("date_ms")
    try:
        date = None if moment is None else datetime.fromtimestamp(moment / 1000, tz=UTC).date().isoformat()
    except (OverflowError, OSError, ValueError):
        raise row.refuse("date_ms", "milliseconds since 1970") from None
    return Task(
        id=task,
        suite=suite,
        split=split,
        task_class=row.text("platform"),
        date=date,
        difficulty=row.text("difficulty"),
        source=row.source.name,
    )


def _facts(document: Row) -> dict[str, JsonValue]:
    facts: dict[str, JsonValue] = {"value": document.text("value")}
    origin = document.child("provenance")
    for name in origin.data if origin is not None else ():
        value = origin.data[name] if origin is not None else None
        if isinstance(value, str):
            facts[f"provenance/{name}"] = value
    return {name: value for name, value in facts.items() if value is not None}
