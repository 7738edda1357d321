"""All checks together: a clean audit, the order of findings, one answer per evidence, and the table in the docs."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_fusion_audit.analysis.validity import CHECKS, Finding, find
from pytest_fusion_audit.evidence.records import Candidate, ComparisonPlan, Fused, Phase
from tests.analysis.validity.validity_plants import CODES, changed, clean, evidence, note

DOCS = Path(__file__).parents[3] / "docs" / "validity.md"


def spoiled() -> list:
    """Many faults at once."""

    def spoil(record):
        if isinstance(record, ComparisonPlan):
            return replace(record, n=50, look=2, baseline_settings={})
        if isinstance(record, Candidate) and record.member == "gpt":
            return replace(record, outcome="empty", finish_reason=None, verdict="failed")
        if isinstance(record, Phase):
            return replace(record, measured_micro_usd=None, cum_micro_usd=7)
        return None if isinstance(record, Fused) and record.arm.startswith("self:") else record

    return [*changed(clean(), spoil), note("unknown_fields", "fields that are not read: extra")]


def test_nothing_is_found_in_a_clean_audit() -> None:
    assert find(evidence(clean())) == ()


def test_nothing_is_found_in_nothing() -> None:
    assert find(evidence([])) == ()


def test_errors_come_first_then_code_then_message() -> None:
    found = find(evidence(spoiled()))
    order = [(finding.severity, finding.code, finding.message) for finding in found]
    assert order == sorted(order)
    assert {finding.severity for finding in found} == {"error", "warning"}
    assert len(found) == len(set(order))


def test_the_order_of_records_changes_nothing() -> None:
    records = spoiled()
    expected = find(evidence(records))
    for seed in range(3):
        mixed = records[:]
        random.Random(seed).shuffle(mixed)
        assert find(evidence(mixed)) == expected


def test_one_evidence_is_looked_at_once() -> None:
    found = evidence(spoiled())
    assert find(found) is find(found)


def test_findings_are_plain_json() -> None:
    (first, *_) = find(evidence(spoiled()))
    assert list(first.to_json()) == ["code", "severity", "message", "evidence", "affects"]
    assert Finding("a", "error", "b", ("c",), ("1.1",)).to_json() == {
        "code": "a",
        "severity": "error",
        "message": "b",
        "evidence": ["c"],
        "affects": ["1.1"],
    }


def test_affects_are_criteria_in_rubric_order() -> None:
    for finding in find(evidence(spoiled())):
        numbers = [tuple(int(part) for part in name.split(".")) for name in finding.affects]
        assert numbers == sorted(set(numbers))
        assert all(1 <= dimension <= 10 and number >= 1 for dimension, number in numbers)


def test_every_code_has_a_check_of_its_name_and_a_row_in_the_docs() -> None:
    assert {check.__name__ for check in CHECKS} >= CODES
    rows = re.findall(r"^\| `(\w+)` \|", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == len(set(rows))
    assert set(rows) >= CODES


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_each_check_says_in_its_docstring_what_it_looks_for(check) -> None:
    assert check.__doc__
    assert check(evidence([])) == []
