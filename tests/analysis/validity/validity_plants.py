"""A clean audit in a few hundred records, and the small ways in which a test spoils it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.analysis.validity import CHECKS, Finding, find
from pytest_fusion_audit.evidence.container import Evidence, RunFacts
from pytest_fusion_audit.evidence.records import (
    Candidate,
    ComparisonPlan,
    Config,
    Fused,
    ImportedFile,
    Note,
    Phase,
    Record,
    Split,
    Task,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SUITE = "tasks-of-ours"
N = 240
IDS = tuple(f"t{number:03d}" for number in range(N))
#: Passes of each arm: the compound wins 32 and loses 4 against gpt, wins 40 and loses none against opus.
PASSES = {
    "member:gpt": frozenset(IDS[:120]),
    "member:opus": frozenset(IDS[12:120]),
    "compound": frozenset(IDS[4:152]),
    "self:gpt*4:rewrite": frozenset(IDS[:130]),
}
SENT = {"max_completion_tokens": 8192, "temperature": 0.2, "seed": 7}
ASKED = {"max_tokens": 8192, "temperature": 0.2, "seed": 7}
LOCKED = "locked.json"


def candidate(task: str, member: str, **changes: Any) -> Candidate:
    """One answered candidate of the locked split, everything about it recorded."""
    facts: dict[str, Any] = {
        "task": task,
        "suite": SUITE,
        "split": "locked",
        "member": member,
        "requested_model": {"gpt": "gpt-5.5", "opus": "claude-opus-4-8"}.get(member),
        "resolved_model": {"gpt": "gpt-5.5", "opus": "claude-opus-4-8"}.get(member),
        "parameters_asked": ASKED,
        "parameters_sent": SENT,
        "finish_reason": "stop",
        "outcome": "answered",
        "input_tokens": 1000,
        "output_tokens": 2000,
        "cost_micro_usd": 65_000,
        "verdict": "passed" if task in PASSES.get(f"member:{member}", ()) else "failed",
        "source": LOCKED,
    }
    return Candidate(**{**facts, **changes})


def fused(task: str, arm: str = "compound", **changes: Any) -> Fused:
    """One answered turn of the locked split."""
    facts: dict[str, Any] = {
        "task": task,
        "suite": SUITE,
        "split": "locked",
        "arm": arm,
        "policy": "rewrite",
        "candidate_ids": ("gpt#0", "opus#0"),
        "pick": "gpt#0",
        "pick_status": "named",
        "outcome": "answered",
        "verdict": "passed" if task in PASSES.get(arm, ()) else "failed",
        "cost_micro_usd": 200_000,
        "source": LOCKED,
    }
    return Fused(**{**facts, **changes})


def clean() -> list[Record]:
    """Records of an audit about which nothing is to be said."""
    control = "self:gpt*4:rewrite"
    drawn = tuple(f"gpt#{sample}" for sample in range(4))
    records: list[Record] = [
        Config(
            what="panel",
            facts={
                "members": [
                    {
                        "id": "gpt",
                        "model": "gpt-5.5",
                        "pricing": {"input": 5.0, "output": 30.0},
                        "table_pricing": {"input": 5.0, "output": 30.0},
                        "cutoff": "2025-06-01",
                    },
                    {
                        "id": "opus",
                        "model": "claude-opus-4-8",
                        "pricing": {"input": 5.0, "output": 25.0},
                        "table_pricing": {"input": 5.0, "output": 25.0},
                        "cutoff": "2025-06-01",
                    },
                ],
                "panel_models": ["gpt", "opus"],
            },
            source="panel.yaml",
        ),
        Config(
            what="run",
            suite=SUITE,
            split="locked",
            facts={
                "output_cap": 8192,
                "panel_hash": "0a1b",
                "models": {"gpt": "gpt-5.5", "opus": "claude-opus-4-8"},
                "config_hash": "2c3d",
                "seed": 7,
                "generated_at": "2026-02-02T00:00:00+00:00",
            },
            source=LOCKED,
        ),
        ComparisonPlan(
            suite=SUITE,
            split="locked",
            arms=("compound", "member:gpt", "member:opus", control),
            n=N,
            expected_uplift=0.08,
            expected_discordance=0.16,
            role="primary",
            baseline_settings={"gpt": {"max_tokens": 8192}, "opus": {"max_tokens": 8192}},
            equal_dollar_arm=control,
            registered_utc="2026-02-01T00:00:00+00:00",
            ids_sha256="ff00",
            source="plan.json",
        ),
        Split(suite=SUITE, split="locked", how="seed", ids=IDS, planned=N, complete=True, source="plan.json"),
        Split(suite=SUITE, split="dev", how="seed", ids=("d0", "d1"), source="plan.json"),
        ImportedFile(source=LOCKED, sha256="00", format="of-ours"),
    ]
    for number, (phase, cost) in enumerate((("1-smoke", 1), ("3-baseline", 20), ("5-climb", 50), ("6-locked", 48))):
        records.append(
            Phase(
                phase=phase,
                est_micro_usd=cost * 1_000_000,
                measured_micro_usd=cost * 1_000_000,
                cum_micro_usd=(1, 21, 71, 119)[number] * 1_000_000,
                line=number + 1,
                source="spend-ledger.jsonl",
            )
        )
    for task in IDS:
        records.append(
            Task(
                id=task,
                suite=SUITE,
                split="locked",
                date="2026-01-05",
                prompt_sha256=f"{int(task[1:]):064x}"[::-1],
                source="plan.json",
            )
        )
        records += [candidate(task, "gpt"), candidate(task, "opus"), fused(task)]
        records.append(fused(task, control, candidate_ids=drawn, pick=None, pick_status="none", cost_micro_usd=199_000))
    return records


def evidence(records: Iterable[Record], **run: Any) -> Evidence:
    """Evidence of an imported run."""
    return Evidence(RunFacts(**run), records)


def changed(records: Iterable[Record], change: Callable[[Any], Record | None]) -> list[Record]:
    """The records after a change to each; None leaves a record out."""
    return [new for record in records if (new := change(record)) is not None]


def only(kind: type, **changes: Any) -> Callable[[Any], Record]:
    """A change of the same fields in all records of one kind."""
    return lambda record: replace(record, **changes) if isinstance(record, kind) else record


def note(code: str, message: str, *items: str) -> ImportedFile:
    """An imported file about which its importer had something to say."""
    notes = (Note(code=code, message=message, count=max(1, len(items)), items=items),)
    return ImportedFile(source="rows.json", sha256="00", format="of-ours", notes=notes)


def codes(found: Evidence) -> set[str]:
    """Codes of all findings."""
    return {finding.code for finding in find(found)}


def the(found: Evidence, code: str) -> Finding:
    """The only finding of a code."""
    of_code = [finding for finding in find(found) if finding.code == code]
    assert len(of_code) == 1, of_code
    return of_code[0]


CODES = frozenset(
    {
        "truncated_answers", "unequal_compute", "tuning_asymmetry", "settings_not_sent", "split_reuse",
        "suite_undeclared", "unequal_denominators", "duplicate_ids", "totals_disagree", "selector_outside_pool",
        "oracle_contains_fused", "best_single_post_hoc", "verdict_unstable", "window_before_cutoff",
        "provenance_missing", "ledger_mismatch", "cap_exceeded", "reserve_touched", "estimates_only", "prices_differ",
        "underpowered", "stale_subject", "never_worse_unproven",
    }
)  # fmt: skip
assert {check.__name__ for check in CHECKS} - {"notes_of_imports"} == CODES
