"""History ledger: one JSON line per earlier benchmark run; 0 tasks is a run that crashed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.evidence.importers.base import Context, Peek, Reading, Source
from pytest_fusion_audit.evidence.importers.rows import Row, unknown_fields
from pytest_fusion_audit.evidence.importers.text import load_jsonl
from pytest_fusion_audit.evidence.records import Config, Note

if TYPE_CHECKING:
    from pydantic import JsonValue

_FIELDS = {
    "suite", "panel_id", "recorded_at", "resolved_tasks", "score", "ci_low", "ci_high", "cache_signature", "repo_sha",
    "notes",
}  # fmt: skip


class HistoryLedger:
    """Importer of ``fusionkit-history-ledger``."""

    format = "fusionkit-history-ledger"
    stage = 0

    def recognises(self, _source: Source, peek: Peek) -> bool:
        """Rows of runs without their tasks."""
        named = {"recorded_at", "resolved_tasks", "score"} <= peek.keys
        return peek.container in {"json", "jsonl"} and named and "tasks" not in peek.keys

    def read(self, source: Source, _context: Context) -> Reading:
        """One ``history`` fact per run; the same line in two copies of a ledger is one. See `Importer.read`."""
        records: list[Config] = []
        unread: set[str] = set()
        crashed = 0
        for number, data in load_jsonl(source):
            row = Row(source, f"line {number}", data)
            unread.update(row.others(_FIELDS))
            resolved = row.count("resolved_tasks")
            crashed += resolved == 0
            facts: dict[str, JsonValue] = {
                "suite": row.text("suite"),
                "panel_id": row.text("panel_id"),
                "recorded_at": row.text("recorded_at"),
                "resolved_tasks": resolved,
                "score": row.number("score"),
                "ci_low": row.number("ci_low"),
                "ci_high": row.number("ci_high"),
                "cache_signature": row.text("cache_signature"),
                "repo_sha": row.text("repo_sha"),
                "notes": row.text("notes"),
            }
            known = {name: value for name, value in facts.items() if value is not None}
            records.append(Config(what="history", suite=row.text("suite"), facts=known, source=source.name))
        notes = unknown_fields(unread)
        if crashed:
            notes.append(Note(code="empty_run", message=f"{crashed} runs of 0 tasks (crashed)", count=crashed))
        return Reading(
            records, ("per-task results of these runs", "models, seeds and caps of these runs"), tuple(notes)
        )
