"""FusionKit benchmark run: JSONL with one envelope a line, each a whole run with its tasks, totals and provenance."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_fusion_audit.evidence.importers import turns
from pytest_fusion_audit.evidence.importers.base import Context, Peek, Reading, Source
from pytest_fusion_audit.evidence.importers.judged import contradictions
from pytest_fusion_audit.evidence.importers.rows import (
    Row,
    Totals,
    no_verdict,
    unique_rows,
    unknown_fields,
)
from pytest_fusion_audit.evidence.importers.text import load_jsonl
from pytest_fusion_audit.evidence.records import Candidate, Claim, Config, Fused, Note, Record, Split

if TYPE_CHECKING:
    from pydantic import JsonValue

_FIELDS = {
    "suite", "mount_mode", "availability", "panel_id", "gateway_model", "harness", "harness_version", "resolved_tasks",
    "total_tasks", "passed_tasks", "model_failed_tasks", "infra_error_tasks", "excluded_tasks", "score",
    "cost_total_usd", "cost_per_task_usd", "tasks", "unavailable_reason", "provenance", "raw_metadata",
}  # fmt: skip
#: Facts of the run: name in our record -> (object inside the envelope or "" for its top, field). Paths, host and
#: platform of the machine that ran it are left where they are.
_FACTS = {
    "harness": ("", "harness"),
    "harness_version": ("", "harness_version"),
    "gateway_model": ("", "gateway_model"),
    "panel_id": ("", "panel_id"),
    "mount_mode": ("", "mount_mode"),
    "repo_sha": ("provenance", "repo_sha"),
    "prompt_template_hash": ("provenance", "prompt_template_hash"),
    "dataset_revision": ("provenance", "dataset_revision"),
    "checker_mode": ("provenance", "checker_mode"),
    "scoring_version": ("provenance", "scoring_version"),
    "generated_at": ("provenance", "generated_at"),
    "window_min_date": ("provenance", "contamination_window_min_date"),
    "cost_scope": ("provenance", "cost_scope"),
    "config_hash": ("raw_metadata", "cache_signature"),
}
#: Facts a run should record of itself; where an envelope has them they are taken over under the same name.
_WANTED = ("output_cap", "seed", "panel_hash")
_COUNTS = {"scored": "resolved_tasks", "model_failed": "model_failed_tasks", "infra_error": "infra_error_tasks",
           "excluded": "excluded_tasks"}  # fmt: skip
_SPLITS = ("locked", "smoke")
_OTHER_DOORS = {"self", "single", "router"}


@dataclass(slots=True)
class _Read:
    """What has been read of the file so far."""

    records: list[Record] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    runs: list[tuple[str, str, str, frozenset[str]]] = field(default_factory=list)  # suite, split, kind of run, ids
    replicates: Counter[tuple[str, str, str]] = field(default_factory=Counter)


class Envelope:
    """Importer of ``fusionkit-benchmark-run``."""

    format = "fusionkit-benchmark-run"
    stage = 0

    def recognises(self, _source: Source, peek: Peek) -> bool:
        """Rows with a suite, tasks and the counts of a whole run."""
        return peek.container in {"json", "jsonl"} and {"suite", "tasks", "resolved_tasks"} <= peek.keys

    def read(self, source: Source, context: Context) -> Reading:
        """Turns, primary samples, facts of the run and its own figures as claims; see `Importer.read`."""
        so_far = _Read()
        lines: set[str] = set()
        for number, data in load_jsonl(source):
            text = json.dumps(data, sort_keys=True)
            if text in lines:
                so_far.notes.append(
                    Note(code="duplicate_ids", message=f"line {number} repeats an earlier line: read once")
                )
                continue
            lines.add(text)
            _read_run(source, context, number, Row(source, f"line {number}", data), so_far)
        unknown = (*turns.UNKNOWN, *sorted(so_far.missing))
        notes = (*so_far.notes, *unknown_fields(so_far.unread))
        return Reading(so_far.records, unknown, notes)


def _read_run(source: Source, context: Context, number: int, run: Row, so_far: _Read) -> None:
    rows, repeats = unique_rows(run.rows("tasks"), lambda row: row.id("task_id"))
    ids = [task for task, _ in rows]
    suite = context.suite_name(source, ids, run.text("suite"))
    facts = _facts(run)
    split, replicate = _replicate(_split_by_name(source, context), run, facts, frozenset(ids), so_far)
    models = facts.get("models")
    place = turns.Place(
        suite,
        split,
        arm=_arm(run.text("gateway_model")),
        replicate=replicate,
        models={k: str(v) for k, v in models.items()} if isinstance(models, dict) else None,
        panel_cost_only=facts.get("cost_scope") == "solver_candidates_only",
    )
    if place.panel_cost_only:
        so_far.missing.add("cost of judge and synthesizer (cost_scope is solver_candidates_only)")
    so_far.missing.update(f"{name} of the run" for name in ("output_cap", "seed", "panel_hash") if name not in facts)
    so_far.unread.update(run.others(_FIELDS))
    fused: list[Fused] = []
    candidates: list[Candidate] = []
    for task, row in rows:
        so_far.unread |= turns.unread_fields(row)
        spoiled = task in repeats.spoiled
        fused.append(turns.fused_turn(row, task, place, spoiled=spoiled))
        candidates += turns.primary_candidates(row, task, place, spoiled=spoiled)
    if not any(turn.pick_status for turn in fused):
        so_far.missing.add("the judge's pick")
    if not any(turn.stage_cost_micro_usd for turn in fused):
        so_far.missing.add("cost and latency per stage")
    torn = [task for task, row in rows if turns.contradicts_itself(row)]
    so_far.notes += [*repeats.notes(), *contradictions(torn)]
    so_far.notes += _totals(run, rows, fused, countable=not (repeats.spoiled or torn))
    so_far.notes += _verdicts(run, fused, candidates)
    if not rows:
        reason = run.text("unavailable_reason") or run.text("availability") or "no reason given"
        so_far.notes.append(Note(code="empty_run", message=f"line {number}: a run of 0 tasks ({reason})"))
    so_far.records += fused
    so_far.records += _in_panel_order(candidates, place.models)
    so_far.records.append(_planned(run, rows, place))
    so_far.records.append(Config(what="run", facts=facts, suite=suite, split=split, source=source.name))
    so_far.records += _claims(run, place)


def _split_by_name(source: Source, context: Context) -> str:
    stem = source.stem
    return context.naming(source).split or next((name for name in _SPLITS if stem.startswith(name)), stem)


def _replicate(
    split: str, run: Row, facts: dict[str, JsonValue], ids: frozenset[str], so_far: _Read
) -> tuple[str, int]:
    """Split and replicate of a run.

    A later line of one file with the same tasks is another pass of the same run when its configuration is the same;
    otherwise it is a run of its own, named by its line.
    """
    suite = run.text("suite") or ""
    number = run.where.removeprefix("line ")
    kind = json.dumps({k: v for k, v in facts.items() if k not in {"generated_at", "seed"}}, sort_keys=True)
    earlier = [run for run in so_far.runs if run[0] == suite and run[3] & ids]
    if earlier and all(run[2] != kind for run in earlier):
        split = f"{split}-line{number}"
        so_far.notes.append(
            Note(code="other_configuration", message=f"line {number} is of another configuration: {split}")
        )
    elif earlier:
        split = next(run[1] for run in earlier if run[2] == kind)
    so_far.runs.append((suite, split, kind, ids))
    replicate = so_far.replicates[suite, split, kind] if earlier else 0
    so_far.replicates[suite, split, kind] = replicate + 1
    return split, replicate


def _arm(gateway_model: str | None) -> str:
    """Arm behind a gateway's model name: ``fusionkit/panel`` is the compound, its other doors are arms of their own."""
    door = (gateway_model or "").rpartition("/")[2]
    return door if door in _OTHER_DOORS else "compound"


def _facts(run: Row) -> dict[str, JsonValue]:
    places = {"": run, "provenance": run.child("provenance"), "raw_metadata": run.child("raw_metadata")}
    facts: dict[str, JsonValue] = {}
    for name, (place, of) in _FACTS.items():
        row = places[place]
        value = row.data.get(of) if row is not None else None
        if isinstance(value, str) and row is not None:
            facts[name] = row.text(of)
        elif isinstance(value, (int, float)):
            facts[name] = value
    for name in _WANTED:
        for row in places.values():
            value = row.data.get(name) if row is not None else None
            if isinstance(value, (str, int)) and name not in facts:
                facts[name] = value
    provenance = places["provenance"]
    models = provenance.child("model_versions") if provenance is not None else None
    if models is not None:
        facts["models"] = {member: models.text(member) for member in models.data if models.text(member)}
    return facts


def _planned(run: Row, rows: list[tuple[str, Row]], place: turns.Place) -> Split:
    total = run.count("total_tasks")
    scored = sum(turns.outcome_word(row) == "scored" for _, row in rows)
    return Split(
        suite=place.suite,
        split=place.split,
        how="recorded",
        ids=tuple(task for task, _ in rows),
        planned=total,
        complete=None if total is None else scored >= total,
        source=run.source.name,
    )


def _totals(run: Row, rows: list[tuple[str, Row]], fused: list[Fused], *, countable: bool) -> list[Note]:
    if not countable:
        return []  # which of the rows the totals counted cannot be told
    words = Counter(turns.outcome_word(row) for _, row in rows)
    passed = sum(turn.verdict == "passed" for turn in fused)
    costs = [row.number("cost_usd", 0) for _, row in rows]
    totals = Totals()
    totals.expect("total_tasks", run.count("total_tasks"), len(rows))
    totals.expect("passed_tasks", run.count("passed_tasks"), passed)
    for word, name in _COUNTS.items():
        totals.expect(name, run.count(name), words[word])
    totals.rate("score", run.number("score"), passed, words["scored"])
    if rows:
        spent = sum(cost for cost in costs if cost is not None)
        totals.expect("cost_total_usd", run.number("cost_total_usd", 0), spent, tolerance=1e-6 * len(rows))
    return totals.notes()


def _verdicts(run: Row, fused: list[Fused], candidates: list[Candidate]) -> list[Note]:
    open_turns = sum(turn.verdict is None and turn.outcome is None and turn.reason is None for turn in fused)
    return [
        *no_verdict(open_turns, f"turns of {run.where}"),
        *no_verdict(sum(c.verdict is None for c in candidates), f"candidates of {run.where}"),
    ]


def _in_panel_order(candidates: list[Candidate], models: object) -> list[Candidate]:
    place = {member: index for index, member in enumerate(models)} if isinstance(models, dict) else {}
    return sorted(candidates, key=lambda candidate: place.get(candidate.member, len(place)))


def _claims(run: Row, place: turns.Place) -> list[Record]:
    cost = "stage_cost_usd/panel" if place.panel_cost_only else "cost_usd"
    stated: dict[str, float | None] = {
        "n": run.count("resolved_tasks"),
        "passed": run.count("passed_tasks"),
        "pass_rate": run.number("score"),
        cost: run.number("cost_total_usd", 0),
        f"{cost.removesuffix('_usd')}_per_task_usd" if cost == "cost_usd" else f"{cost}_per_task": run.number(
            "cost_per_task_usd", 0
        ),
    }
    return [
        Claim(quantity=name, value=value, suite=place.suite, split=place.split, arm=place.arm, source=run.source.name)
        for name, value in stated.items()
        if value is not None
    ]
