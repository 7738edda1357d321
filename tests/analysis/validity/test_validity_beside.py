"""Files about other models that lie beside an audit: told, and held against nothing of it."""

from __future__ import annotations

from dataclasses import replace

from pytest_fusion_audit.analysis.validity import find
from pytest_fusion_audit.evidence.records import Candidate, ComparisonPlan, Task
from tests.analysis.validity.validity_plants import SUITE, candidate, clean, evidence, the


def _others(**changes) -> list[Candidate]:
    """Models of other people on tasks of their own, most of them cut at their output limit."""
    return [
        candidate(f"c{n}", name, split="caps", config="4096", outcome="truncated" if n < 6 else "answered", **changes)
        for n in range(10)
        for name in ("kimi", "mimo")
    ]


def test_models_beside_the_audit_are_told_and_hold_nothing_against_it() -> None:
    finding = the(evidence([*clean(), *_others()]), "truncated_answers")
    assert (finding.severity, finding.affects) == ("warning", ())
    assert finding.message.startswith(f"beside the audit: {SUITE}/caps@4096: 2 members are not comparable")


def test_a_member_of_the_panel_is_not_beside_the_audit_whatever_its_setting() -> None:
    own = [replace(one, member="gpt") if one.member == "kimi" else one for one in _others()]
    by_severity = {f.severity: f for f in find(evidence([*clean(), *own])) if f.code == "truncated_answers"}
    assert set(by_severity["error"].affects) == {"2.1", "2.2", "2.3", "2.4"}
    assert "member:gpt@4096" in by_severity["error"].message
    assert "member:mimo@4096" in by_severity["warning"].message


def test_a_split_that_a_registration_names_is_not_beside_the_audit() -> None:
    plan = next(r for r in clean() if isinstance(r, ComparisonPlan))
    named = replace(plan, split="caps", arms=("member:kimi@4096",), ids_sha256="ab", n=240)
    assert "error" in {
        f.severity for f in find(evidence([*clean(), *_others(), named])) if f.code == "truncated_answers"
    }


def test_a_task_that_counts_twice_among_other_models_is_a_warning() -> None:
    twins = [Task(id=f"c{n}", suite=SUITE, split="caps", prompt_sha256="cd" * 32, source="caps.json") for n in (0, 1)]
    others = _others()
    for one in (others, [replace(row, outcome="answered") for row in others]):
        finding = the(evidence([*clean(), *one, *twins]), "duplicate_ids")
        assert (finding.severity, finding.affects) == ("warning", ())
        assert finding.message.startswith(f"beside the audit: {SUITE}/caps: 1 of 9 tasks stand under more than one id")
