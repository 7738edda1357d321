"""FusionKit locked rows: ``{task_id: {task_id, outcome, passed, candidate_scores, judge_pick_model, stages, …}}``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.evidence.importers import turns
from pytest_fusion_audit.evidence.importers.base import Context, Peek, Reading, Source, refusal
from pytest_fusion_audit.evidence.importers.judged import contradictions
from pytest_fusion_audit.evidence.importers.rows import Row, no_verdict, unique_items, unknown_fields
from pytest_fusion_audit.evidence.importers.text import load_json

if TYPE_CHECKING:
    from pytest_fusion_audit.evidence.records import Fused, Record


class LockedRows:
    """Importer of ``fusionkit-locked-rows``."""

    format = "fusionkit-locked-rows"
    stage = 0

    def recognises(self, _source: Source, peek: Peek) -> bool:
        """An object keyed by task ids whose values are turns of a compound."""
        if peek.container != "json" or "tasks" in peek.keys:
            return False
        seconds = {path[1] for path in peek.paths if len(path) == 2}
        return "candidate_scores" in seconds and bool(seconds & {"task_id", "outcome", "stages", "judge_pick_model"})

    def read(self, source: Source, context: Context) -> Reading:
        """Turns of the compound and primary samples of the members; see `Importer.read`."""
        document = load_json(source)
        if not isinstance(document, dict):
            raise refusal(source, "an object keyed by task ids is expected")
        items, repeats = unique_items(source, document, "task")
        rows = [(task, Row(source, f"task {task}", value)) for task, value in items]
        naming = context.naming(source)
        suite = context.suite_name(source, [task for task, _ in rows])
        place = turns.Place(suite, naming.split or "locked")
        fused: list[Fused] = []
        candidates: list[Record] = []
        unread: set[str] = set()
        for task, row in rows:
            stated = row.text("task_id")
            if stated is not None and stated != task:
                raise row.refuse("task_id", f"the key {task!r}")
            unread |= turns.unread_fields(row)
            spoiled = task in repeats.spoiled
            fused.append(turns.fused_turn(row, task, place, spoiled=spoiled))
            candidates += turns.primary_candidates(row, task, place, spoiled=spoiled)
        undecided = sum(turn.verdict is None and turn.outcome is None and turn.reason is None for turn in fused)
        unscored = sum(getattr(candidate, "verdict", None) is None for candidate in candidates)
        notes = [
            *repeats.notes(),
            *contradictions([task for task, row in rows if turns.contradicts_itself(row)]),
            *no_verdict(undecided, "turns"),
            *no_verdict(unscored, "candidates"),
            *unknown_fields(unread),
        ]
        unknown = (*turns.UNKNOWN, "models, prompts, sampling and output cap of the run")
        return Reading([*fused, *candidates], unknown, tuple(notes))
