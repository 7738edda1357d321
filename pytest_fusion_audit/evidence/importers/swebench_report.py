"""Official SWE-bench report: which instances of a submission were resolved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.evidence.importers.base import Context, Peek, Reading, Source
from pytest_fusion_audit.evidence.importers.pass_map import Arm, arm_outcome
from pytest_fusion_audit.evidence.importers.rows import Repeats, Row, Totals, unknown_fields
from pytest_fusion_audit.evidence.importers.text import load_json
from pytest_fusion_audit.evidence.records import Split

if TYPE_CHECKING:
    from pytest_fusion_audit.evidence.records import ArmOutcome, Note, Record

_LISTS = {
    "submitted": "submitted_instances",
    "completed": "completed_instances",
    "resolved": "resolved_instances",
    "unresolved": "unresolved_instances",
    "empty_patch": "empty_patch_instances",
    "error": "error_instances",
}
_FIELDS = {*_LISTS.values(), *(f"{name}_ids" for name in _LISTS), "incomplete_ids", "total_instances", "schema_version",
           "unstopped_instances", "unstopped_containers", "unremoved_images"}  # fmt: skip
SUITE = "swebench-verified"


class SwebenchReport:
    """Importer of ``swebench-report``."""

    format = "swebench-report"
    stage = 0

    def recognises(self, _source: Source, peek: Peek) -> bool:
        """An object with the ids submitted and the ids resolved."""
        return peek.container == "json" and {"submitted_ids", "resolved_ids"} <= peek.keys

    def read(self, source: Source, context: Context) -> Reading:
        """One outcome per submitted instance.

        As the official score has it, everything submitted and not resolved failed; instances that ended in an error or
        an empty patch say so in their reason. See `Importer.read`.
        """
        document = Row(source, "", load_json(source))
        repeats = Repeats()
        ids = {name: _unique(document, f"{name}_ids", repeats) for name in _LISTS}
        submitted = ids["submitted"]
        stray = [task for task in ids["resolved"] if task not in submitted]
        totals = Totals()
        if stray:
            totals.say(f"{len(stray)} resolved instances were not submitted (left out)")
        both = [task for task in ids["resolved"] if task in ids["unresolved"] or task in ids["error"]]
        repeats.spoiled.update(dict.fromkeys(both))
        for name, count in _LISTS.items():
            if f"{name}_ids" in document.data:
                totals.expect(count, document.count(count), len(ids[name]))
        naming = context.naming(source)
        suite = naming.suite or SUITE
        split = naming.split or f"n{len(submitted)}"
        name = "compound" if source.stem == "compound" else f"member:{source.stem}"
        arm = Arm(suite, split, name, source.name)
        records: list[Record] = [_outcome(arm, task, ids, repeats) for task in submitted]
        records.append(Split(suite=suite, split=split, how="recorded", ids=tuple(submitted), source=source.name))
        unknown = ("which system produced the patches (the arm is named by the file)", "cost, latency and model calls")
        notes: list[Note] = [*repeats.notes(), *totals.notes(), *unknown_fields(document.others(_FIELDS))]
        return Reading(records, unknown, tuple(notes))


def _unique(document: Row, name: str, repeats: Repeats) -> dict[str, None]:
    listed = document.ids(name) or ()
    unique = dict.fromkeys(listed)
    if len(unique) < len(listed):
        repeats.same.update(dict.fromkeys(task for task in unique if listed.count(task) > 1))
    return unique


def _outcome(arm: Arm, task: str, ids: dict[str, dict[str, None]], repeats: Repeats) -> ArmOutcome:
    reason = next((f"{name}_ids" for name in ("error", "empty_patch") if task in ids[name]), None)
    return arm_outcome(
        arm,
        task,
        task in ids["resolved"],
        spoiled=task in repeats.spoiled,
        reason=reason,
        outcome="empty" if reason == "empty_patch_ids" else None,
    )
