"""Spend ledger: one JSON line per billed run of a phase."""

from __future__ import annotations

from pytest_fusion_audit.evidence.importers.base import Context, Peek, Reading, Source
from pytest_fusion_audit.evidence.importers.rows import Row, unknown_fields
from pytest_fusion_audit.evidence.importers.text import load_jsonl
from pytest_fusion_audit.evidence.records import Phase

_FIELDS = {"phase", "suite", "tasks", "est_usd", "measured_usd", "cum_usd", "note", "git_sha"}


class SpendLedger:
    """Importer of ``fusionkit-spend-ledger``. Whether its sums add up is for the validity checks to say."""

    format = "fusionkit-spend-ledger"
    stage = 0

    def recognises(self, _source: Source, peek: Peek) -> bool:
        """Rows with a phase and dollars."""
        return peek.container in {"json", "jsonl"} and "phase" in peek.keys and bool(peek.keys & {"est_usd", "cum_usd"})

    def read(self, source: Source, _context: Context) -> Reading:
        """One `Phase` per line, in the order of the file; see `Importer.read`."""
        phases: list[Phase] = []
        unread: set[str] = set()
        for number, data in load_jsonl(source):
            row = Row(source, f"line {number}", data)
            unread.update(row.others(_FIELDS))
            phases.append(
                Phase(
                    phase=row.id("phase"),
                    suite=row.text("suite"),
                    tasks=row.count("tasks"),
                    est_micro_usd=row.money("est_usd"),
                    measured_micro_usd=row.money("measured_usd"),
                    cum_micro_usd=row.money("cum_usd"),
                    git_sha=row.text("git_sha"),
                    note=row.text("note"),
                    line=len(phases) + 1,
                    source=source.name,
                )
            )
        measured = all(phase.measured_micro_usd is not None for phase in phases)
        unknown = () if measured else ("measured amounts (est_usd is the plan's figure)",)
        return Reading(phases, (*unknown, "the calls behind each line"), tuple(unknown_fields(unread)))
