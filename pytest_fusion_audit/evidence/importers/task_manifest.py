"""Task manifests: facts about tasks without results, as JSON (``{version, tasks: […]}``) or one task a JSONL line."""

from __future__ import annotations

from pytest_fusion_audit.evidence.importers.base import Context, Peek, Reading, Source
from pytest_fusion_audit.evidence.importers.rows import Row, unique_rows, unknown_fields
from pytest_fusion_audit.evidence.importers.text import load_jsonl
from pytest_fusion_audit.evidence.records import Task

_FIELDS = {
    "task_id", "question_id", "contest_date", "cluster_key", "difficulty", "version", "prompt_sha256",
    "public_test_count", "platform", "class",
}  # fmt: skip
_FACTS = {"contest_date", "difficulty", "cluster_key", "prompt_sha256", "public_test_count"}


class TaskManifest:
    """Importer of ``task-manifest``."""

    format = "task-manifest"
    stage = 0

    def recognises(self, _source: Source, peek: Peek) -> bool:
        """Rows of facts about tasks, and nothing that was run on them."""
        if peek.container == "json" and "tasks" in peek.keys:
            fields = {path[2] for path in peek.paths if len(path) == 3 and path[:2] == ("tasks", "[]")}
            top = peek.keys <= {"version", "tasks", "note", "schema"}
        else:
            fields, top = set(peek.keys), peek.container in {"json", "jsonl"}
        named = bool(fields & {"task_id", "question_id"}) and bool(fields & _FACTS)
        return top and named and fields <= _FIELDS

    def read(self, source: Source, context: Context) -> Reading:
        """One `Task` per row. A task that stands twice with different facts is left out; see `Importer.read`."""
        listed = _rows(source)
        rows, repeats = unique_rows(listed, lambda row: row.id("task_id", "question_id"))
        suite = context.suite_name(source, [task for task, _ in rows])
        clustered = any("cluster_key" in row.data for row in listed)
        split = context.naming(source).split or ("caps" if clustered else "manifest")
        tasks = [_task(row, task, suite, split) for task, row in rows if task not in repeats.spoiled]
        unread = {f"tasks[].{name}" for row in listed for name in row.others(_FIELDS)}
        return Reading(tasks, ("which arms ran on these tasks",), (*repeats.notes(), *unknown_fields(unread)))


def _rows(source: Source) -> list[Row]:
    """Rows of either form: a document with a list of tasks reads as one row of JSONL."""
    rows = [Row(source, f"line {number}", data) for number, data in load_jsonl(source)]
    if len(rows) == 1 and "tasks" in rows[0].data:
        return Row(source, "", rows[0].data).rows("tasks")
    return rows


def _task(row: Row, task: str, suite: str, split: str) -> Task:
    date = row.text("contest_date")
    return Task(
        id=task,
        suite=suite,
        split=split,
        task_class=row.text("class") or row.text("platform"),
        cluster=row.text("cluster_key"),
        date=date[:10] if date else None,
        difficulty=row.text("difficulty"),
        public_tests=row.count("public_test_count"),
        prompt_sha256=row.text("prompt_sha256"),
        source=row.source.name,
    )
