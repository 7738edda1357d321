"""Gates A-D: what the rules say, and whether this run may open them.

Two questions are kept apart. `would_pass_simulated` answers "do the rules of the rubric hold on these figures, and is
nothing known that invalidates them"; `passed` adds what only a metered live run has: a journal of its calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_fusion_audit.analysis.validity import Finding
    from pytest_fusion_audit.evidence.container import RunFacts
    from pytest_fusion_audit.rubric.gate_rules import Clause
    from pytest_fusion_audit.rubric.loading import Gate, Rubric
    from pytest_fusion_audit.rubric.rows import RowCount
    from pytest_fusion_audit.rubric.score import Score

#: Gates about the compound's worth: every validity error shuts them, whichever criteria it names.
SHUT_BY_ANY_ERROR: frozenset[str] = frozenset({"A", "C"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """Whether a gate is open; ``reasons`` is empty exactly when it is, one line each."""

    gate: str
    title: str
    passed: bool
    would_pass_simulated: bool
    reasons: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The gate as builtins in the order of the scorecard schema."""
        return {
            "passed": self.passed,
            "would_pass_simulated": self.would_pass_simulated,
            "reasons": list(self.reasons),
        }


def evaluate_gates(
    rubric: Rubric,
    scores: Mapping[str, Score],
    findings: Sequence[Finding],
    run: RunFacts,
    coverage: RowCount,
) -> tuple[GateResult, ...]:
    """Every gate of the rubric, in order of its name."""
    return tuple(
        _evaluated(rubric.gates[name], rubric, scores, findings, run, coverage) for name in sorted(rubric.gates)
    )


def _evaluated(  # noqa: PLR0917 - all of it bears on a gate
    gate: Gate,
    rubric: Rubric,
    scores: Mapping[str, Score],
    findings: Sequence[Finding],
    run: RunFacts,
    coverage: RowCount,
) -> GateResult:
    by_rule: list[str] = []
    for clause in gate.rule.clauses:
        by_rule.extend(_unmet(clause, rubric, scores, run.run_id, held_out=gate.rule.held_out))
    by_rule.extend(
        f"validity {finding.code}: {finding.message}{_where(finding.evidence)}"
        for finding in findings
        if finding.severity == "error" and _shuts(finding, gate)
    )
    if not coverage.complete:
        by_rule.append(f"INCOMPLETE {coverage.scored}/{coverage.planned}: an incomplete run opens no gate")
    standing = _standing(run)
    return GateResult(
        gate=gate.id,
        title=gate.title,
        passed=not by_rule and not standing,
        would_pass_simulated=not by_rule,
        reasons=tuple(dict.fromkeys([*standing, *by_rule])),
    )


def _standing(run: RunFacts) -> list[str]:
    """Why a run of this kind opens no gate, whatever its figures are."""
    if run.mode == "imported":
        return ["imported without a call journal: a gate needs metered calls; next: a live run of this audit"]
    if run.mode == "offline":
        return ["simulated: scripted models answered, a gate needs metered calls; next: a live run of this audit"]
    if not run.journal:
        return ["no call journal in this run: a gate needs metered calls; next: fusion-audit verify"]
    return []


def _shuts(finding: Finding, gate: Gate) -> bool:
    return gate.id in SHUT_BY_ANY_ERROR or bool(set(finding.affects) & set(gate.rule.criteria))


def _unmet(clause: Clause, rubric: Rubric, scores: Mapping[str, Score], run_id: str, *, held_out: bool) -> list[str]:
    if clause.kind == "equals":
        (name,) = clause.criteria
        holds = scores[name].score == clause.points
    elif clause.kind == "measured":
        (name,) = clause.criteria
        holds = scores[name].was_measured
    else:
        holds = any(scores[name].score >= clause.points for name in clause.criteria)
    if not holds:
        return [_line(rubric, scores[name], run_id, f"bar: {clause}") for name in clause.criteria]
    if held_out:
        return [
            _line(rubric, scores[name], run_id, f"bar: {clause}, held out")
            for name in clause.criteria
            if scores[name].measured.get("held_out") is not True
        ]
    return []


def _line(rubric: Rubric, score: Score, run_id: str, bar: str) -> str:
    """One reason: criterion, what was measured, the bar, n, the evidence file, the next command."""
    criterion = rubric.criterion(score.criterion)
    said = score.reasons[0] if score.reasons else score.status
    parts = [f"{criterion.id} {criterion.title}: scored {score.score} ({said})", bar]
    n = score.measured.get("n")
    if isinstance(n, int):
        parts.append(f"n = {n}" + (f" of {criterion.least_n} needed" if criterion.least_n else ""))
    parts.append(f"evidence: {score.evidence[0] if score.evidence else 'none'}")
    parts.append(f"next: pytest audits/ -m replay -k {criterion.id} --fusion-run-id={run_id}")
    return "; ".join(parts)


def _where(evidence: Sequence[str]) -> str:
    return f"; evidence: {evidence[0]}" if evidence else ""
