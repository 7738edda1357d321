"""The scorecard: a pure function of the rubric and the evidence, the same bytes every time."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.analysis.measurements import measure
from pytest_fusion_audit.evidence.money import usd
from pytest_fusion_audit.evidence.records import Config, ImportedFile, Phase
from pytest_fusion_audit.rubric.gates import GateResult, evaluate_gates
from pytest_fusion_audit.rubric.published import compare_published
from pytest_fusion_audit.rubric.rows import RowCount, count_rows
from pytest_fusion_audit.rubric.validity import check_validity, score_criteria

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_fusion_audit.analysis.validity import Finding
    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.rubric.loading import Dimension, Rubric
    from pytest_fusion_audit.rubric.score import Score

SCHEMA = "fusion-scorecard/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorecard:
    """Everything a run scored. ``document`` is the JSON of schema ``fusion-scorecard/1``; the rest is typed access."""

    document: Mapping[str, Any]
    scores: Mapping[str, Score]
    gates: tuple[GateResult, ...]
    findings: tuple[Finding, ...]
    coverage: RowCount

    def gate(self, name: str) -> GateResult:
        """The decision on one gate.

        Raises:
            KeyError: the rubric has no such gate.
        """
        return {gate.gate: gate for gate in self.gates}[name]

    def to_json(self) -> dict[str, Any]:
        """The scorecard as builtins, in the key order of the schema. A copy: change it as you like."""
        copy: dict[str, Any] = json.loads(self.dumps())
        return copy

    def dumps(self) -> str:
        """The text of scorecard.json: UTF-8, indent 1, one trailing newline."""
        return json.dumps(self.document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def score_rubric(evidence: Evidence, rubric: Rubric) -> Scorecard:
    """Score a run: all criteria of the rubric, whatever was selected, with validity, gates, figures and money."""
    scores = score_criteria(evidence, rubric)
    findings = check_validity(evidence, rubric)
    rows = count_rows(evidence)
    gates = evaluate_gates(rubric, scores, findings, evidence.run, rows)
    document = {
        "schema": SCHEMA,
        "run_id": evidence.run.run_id,
        "mode": evidence.run.mode,
        "subject": _subject(evidence),
        "complete": rows.complete,
        "coverage": rows.to_json(),
        "claim_eligible": _claim_eligible(evidence, findings, rows),
        "terminal_state": None,  # a full audit ends in one; reading recorded evidence does not
        "gates": {gate.gate: gate.to_json() for gate in gates},
        "validity": [finding.to_json() for finding in findings],
        "total": _total(rubric, scores),
        "dimensions": [
            {
                "id": dimension.id,
                "title": dimension.title,
                "weight": dimension.weight,
                "score": _points(rubric, dimension, scores.values()),
            }
            for dimension in rubric.dimensions
        ],
        "criteria": [_criterion_json(rubric.criterion(name).title, score) for name, score in scores.items()],
        "measurements": dict(sorted(measure(evidence).items())),
        "spend": _spend(evidence),
        "published": [row.to_json() for row in compare_published(evidence, rubric, scores)],
        "imports": _imports(evidence.of(ImportedFile)),
    }
    return Scorecard(document=document, scores=scores, gates=gates, findings=findings, coverage=rows)


def _criterion_json(title: str, score: Score) -> dict[str, Any]:
    row = score.to_json()
    return {"id": row.pop("id"), "title": title, **row}


def _claim_eligible(evidence: Evidence, findings: Sequence[Finding], rows: RowCount) -> bool:
    """Mode live with a journal, complete, and no validity error.

    That every upstream host is the provider's own is known to the metered door, which refuses or labels others before
    a record exists; evidence of another subject is the finding ``stale_subject``.
    """
    run = evidence.run
    sound = not any(finding.severity == "error" for finding in findings)
    return run.mode == "live" and run.journal and rows.complete and sound


def _points(rubric: Rubric, dimension: Dimension, scores: Iterable[Score], *, ceiling: bool = False) -> float:
    """Weight x sum of scores / (2 x number of criteria of the dimension)."""
    ids = {criterion.id for criterion in rubric.dimension(dimension.id)}
    if not ids:
        return 0.0
    points = sum(score.ceiling if ceiling else score.score for score in scores if score.criterion in ids)
    return dimension.weight * points / (2 * len(ids))


def _total(rubric: Rubric, scores: Mapping[str, Score]) -> dict[str, Any]:
    def over_all(chosen: Sequence[Score], *, ceiling: bool = False) -> float:
        return fsum(_points(rubric, dimension, chosen, ceiling=ceiling) for dimension in rubric.dimensions)

    counted = [score for score in scores.values() if score.evidence_class != "simulated"]
    return {
        "score": over_all(counted),
        "out_of": rubric.out_of,
        "simulated": over_all([score for score in scores.values() if score.evidence_class == "simulated"]),
        "attested": over_all([score for score in counted if score.evidence_class == "attested"]),
        "by_tool": over_all([score for score in counted if score.by == "tool"]),
        "measured_criteria": sum(score.was_measured for score in scores.values()),
        "reachable": over_all([score for score in scores.values() if score.was_measured], ceiling=True),
    }


def _subject(evidence: Evidence) -> dict[str, Any]:
    """What the evidence is about. An import has no checkout to hash: its recorded panel and run facts stand for it."""
    facts = [config for config in evidence.of(Config) if config.what in {"panel", "run"}]
    digest = evidence.run.subject_hash
    if digest is None and facts:
        lines = sorted({_canonical([c.what, c.suite, c.split, c.facts]) for c in facts})
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return {"hash": digest, "doors": list(evidence.run.doors), "panel": _panel(evidence)}


def _panel(evidence: Evidence) -> list[str]:
    members: dict[str, str] = {}
    for config in evidence.of(Config):
        listed = config.facts.get("members") if config.what == "panel" else None
        for member in listed if isinstance(listed, list) else []:
            if isinstance(member, dict) and isinstance(member.get("id"), str):
                members[str(member["id"])] = f"{member['id']} = {member.get('model')}"
    return [members[name] for name in sorted(members)]


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=dict)


def _spend(evidence: Evidence) -> dict[str, Any]:
    """Money of the run: measured where a ledger measured, estimates kept apart, unknown stays null."""
    phases = sorted(evidence.of(Phase), key=lambda phase: (phase.source, phase.line))
    by_phase: dict[str, dict[str, float | None]] = {}
    for name in sorted({phase.phase for phase in phases}):
        lines = [phase for phase in phases if phase.phase == name]
        by_phase[name] = {
            "est_usd": _sum(phase.est_micro_usd for phase in lines),
            "measured_usd": _sum(phase.measured_micro_usd for phase in lines),
        }
    cap = evidence.run.cap_micro_usd
    return {
        "cap_usd": None if cap is None else usd(cap),
        "spent_usd": _sum(phase.measured_micro_usd for phase in phases),
        "estimated_usd": _sum(phase.est_micro_usd for phase in phases),
        "by_phase": by_phase,
    }


def _sum(amounts: Iterable[int | None]) -> float | None:
    """Sum in dollars; unknown as soon as one amount is, and when there is none."""
    total = 0
    count = 0
    for amount in amounts:
        if amount is None:
            return None
        total += amount
        count += 1
    return usd(total) if count else None


def _imports(files: Sequence[ImportedFile]) -> list[dict[str, Any]]:
    return [
        {
            "source": file.source,
            "sha256": file.sha256,
            "format": file.format,
            "unknown": list(file.unknown),
            "notes": [
                {"code": n.code, "message": n.message, "count": n.count, "items": list(n.items)} for n in file.notes
            ],
        }
        for file in sorted(files, key=lambda file: (file.source, file.sha256))
    ]
