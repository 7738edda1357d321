"""FusionKit shipped-path check: the same tasks through the served gateway and through the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.evidence.importers.base import Context, Peek, Reading, Source
from pytest_fusion_audit.evidence.importers.claims import Claims
from pytest_fusion_audit.evidence.importers.pass_map import NO_VERDICT, Arm, arm_outcome
from pytest_fusion_audit.evidence.importers.rows import Repeats, Row, Totals, no_verdict, unique_items, unknown_fields
from pytest_fusion_audit.evidence.importers.text import load_json
from pytest_fusion_audit.evidence.records import ArmOutcome, Note

if TYPE_CHECKING:
    from pytest_fusion_audit.evidence.records import Record, State

_FIELDS = {
    "gateway", "n_tasks", "scored", "pipeline_errors", "gateway_pass_rate", "engine_pass_rate_same_tasks",
    "gateway_vs_engine_mcnemar", "results",
}  # fmt: skip
_ROW_FIELDS = {"outcome", "gateway_passed", "engine_passed", "error_reason", "error", "latency_s", "cost_usd"}


class ShippedPath:
    """Importer of ``fusionkit-shipped-path-check``."""

    format = "fusionkit-shipped-path-check"
    stage = 2

    def recognises(self, _source: Source, peek: Peek) -> bool:
        """An object with results and the gateway's pass rate, or rows of both doors."""
        if peek.container != "json" or "results" not in peek.keys:
            return False
        return "gateway_pass_rate" in peek.keys or any(path[2:] == ("gateway_passed",) for path in peek.paths)

    def read(self, source: Source, context: Context) -> Reading:
        """Verdicts of the served arm.

        The engine's verdicts are those of the compound's locked run. They become rows only when that run is not
        imported beside this file; otherwise they are compared with it, and a difference is noted. See `Importer.read`.
        """
        document = Row(source, "", load_json(source))
        results = document.data.get("results")
        if not isinstance(results, dict):
            raise document.refuse("results", "an object keyed by task ids")
        items, repeats = unique_items(source, results, "results")
        rows = [(task, Row(source, f"results.{task}", value)) for task, value in items]
        suite = context.suite_name(source, [task for task, _ in rows])
        split = context.naming(source).split or "locked"
        served = [_served(row, task, suite, split, repeats) for task, row in rows]
        arm = Arm(suite, split, "compound", source.name)
        engine = [
            arm_outcome(arm, task, row.flag("engine_passed"), spoiled=task in repeats.spoiled)
            for task, row in rows
            if row.flag("engine_passed") is not None or task in repeats.spoiled
        ]
        recorded = context.verdicts(suite, split, "compound")
        differing = [one.task for one in engine if recorded.get(one.task) not in {None, one.passed}]
        notes = [*repeats.notes(), *_totals(document, served, engine, repeats)]
        notes += no_verdict(sum(one.reason == NO_VERDICT for one in served), "tasks")
        if differing:
            text = f"the engine's verdict differs from the recorded locked run on {len(differing)} tasks"
            notes.append(Note(code="totals_disagree", message=text, count=len(differing), items=tuple(differing[:10])))
        unread = {f"results[].{name}" for _, row in rows for name in row.others(_ROW_FIELDS)}
        notes += unknown_fields([*document.others(_FIELDS), *unread])
        claims = Claims(suite, split, source.name)
        records: list[Record] = [*served, *([] if recorded else engine)]
        records += claims.of(
            "served", {"n": document.count("scored"), "pass_rate": document.number("gateway_pass_rate")}
        )
        records += claims.of("served", {"pipeline_errors": document.count("pipeline_errors")}, "10.1")
        records += claims.of(
            "compound", {"pass_rate_same_tasks": document.number("engine_pass_rate_same_tasks")}, "10.1"
        )
        records += claims.paired("served", "compound", document.child("gateway_vs_engine_mcnemar"))
        unknown = ("members, picks, cost and latency of the served turns", "models, prompts and version of the gateway")
        return Reading(records, unknown, tuple(notes))


def _served(row: Row, task: str, suite: str, split: str, repeats: Repeats) -> ArmOutcome:
    word = row.text("outcome") or "scored"
    passed = row.flag("gateway_passed")
    reason = row.text("error_reason") or row.text("error")
    state: State = "scored"
    if task in repeats.spoiled:
        state, passed, reason = "not_run", None, "duplicate_ids"
    elif word == "pipeline_error":
        state, passed, reason = "pipeline_error", False, reason or word
    elif word != "scored":
        state, passed, reason = "not_run", None, f"{word}: {reason}" if reason else word
    elif passed is None:
        state, reason = "not_run", NO_VERDICT
    return ArmOutcome(
        task=task,
        suite=suite,
        split=split,
        arm="served",
        state=state,
        reason=reason,
        outcome="pipeline_error" if state == "pipeline_error" else None,
        passed=passed,
        cost_micro_usd=row.money("cost_usd"),
        latency_s=row.number("latency_s", 0),
        source=row.source.name,
    )


def _totals(document: Row, served: list[ArmOutcome], engine: list[ArmOutcome], repeats: Repeats) -> list[Note]:
    if repeats.spoiled:
        return []
    scored = [one for one in served if one.state == "scored"]
    totals = Totals()
    totals.expect("n_tasks", document.count("n_tasks"), len(served))
    totals.expect("scored", document.count("scored"), len(scored))
    errors = sum(one.state == "pipeline_error" for one in served)
    totals.expect("pipeline_errors", document.count("pipeline_errors"), errors)
    passed = sum(bool(one.passed) for one in scored)
    totals.rate("gateway_pass_rate", document.number("gateway_pass_rate"), passed, len(scored))
    if len(scored) == len(engine):
        by_engine = sum(bool(one.passed) for one in engine)
        totals.rate(
            "engine_pass_rate_same_tasks", document.number("engine_pass_rate_same_tasks"), by_engine, len(engine)
        )
    return totals.notes()
