"""suite_undeclared and window_before_cutoff."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_fusion_audit.analysis.validity.split_roles import headline_splits, is_working
from pytest_fusion_audit.analysis.validity.splits import suite_undeclared
from pytest_fusion_audit.evidence.records import ArmOutcome, ComparisonPlan, Config, Phase, Task
from tests.analysis.validity.validity_plants import (
    IDS,
    LOCKED,
    SUITE,
    changed,
    clean,
    codes,
    evidence,
    fused,
    only,
    the,
)


def test_a_registered_suite_that_is_not_shown() -> None:
    plan = next(r for r in clean() if isinstance(r, ComparisonPlan))
    hidden = replace(plan, suite="second-suite", role="replication", ids_sha256="ee", source="plan-2.json")
    finding = the(evidence([*clean(), hidden]), "suite_undeclared")
    assert finding.severity == "error"
    assert "second-suite: its locked split was opened and no row of it is shown" in finding.message
    assert finding.evidence == ("plan-2.json",)
    assert {"1.1", "1.2", "1.4"} <= set(finding.affects)


def test_a_ledger_that_billed_a_suite_nobody_shows() -> None:
    billed = Phase(phase="6-polyglot", suite="aider-polyglot bank 103", est_micro_usd=1, line=9, source="ledger.jsonl")
    (finding,) = suite_undeclared(evidence([*clean(), billed]))
    assert finding.message.startswith("polyglot: its locked split was opened and no row of it is shown")
    assert "phase 6-polyglot billed for 'aider-polyglot bank 103'" in finding.message
    rows = [
        ArmOutcome(task="go/x", suite="polyglot", split="locked-p", arm="compound", passed=True, source="p.json"),
    ]
    plan = next(r for r in clean() if isinstance(r, ComparisonPlan))
    shown = [*clean(), billed, *rows, replace(plan, suite="polyglot", split="locked-p", ids_sha256="dd")]
    assert suite_undeclared(evidence(shown)) == []
    # Phases before the locked one open no locked split, and a ledger alone shows no suite that could be missing.
    assert suite_undeclared(evidence([*clean(), replace(billed, phase="3-baseline")])) == []
    assert suite_undeclared(evidence([billed])) == []


def test_a_locked_split_without_registration_beside_registered_ones() -> None:
    other = [replace(fused(task), split="locked-b") for task in IDS[:20]]
    message = the(evidence([*clean(), *other]), "suite_undeclared").message
    assert message == f"{SUITE}/locked-b: compound evaluated on a locked split, no registration names it"


def test_a_suite_the_settings_do_not_name() -> None:
    named = evidence(clean(), settings={"suites": {"primary": "another", "replication": None}})
    assert "the settings name another only" in the(named, "suite_undeclared").message
    own = evidence(clean(), settings={"suites": {"primary": SUITE}})
    assert "suite_undeclared" not in codes(own)


def test_a_registration_younger_than_its_rows() -> None:
    records = changed(clean(), only(ComparisonPlan, registered_utc="2026-03-01T00:00:00+00:00"))
    finding = the(evidence(records), "suite_undeclared")
    assert "registered 2026-03-01T00:00:00+00:00, after its rows were made (2026-02-02T00:00:00" in finding.message
    assert finding.evidence == (LOCKED, "plan.json")


def test_an_import_without_any_registration_is_not_accused() -> None:
    records = changed(clean(), lambda r: None if isinstance(r, ComparisonPlan) else r)
    assert "suite_undeclared" not in codes(evidence(records))


def test_tasks_older_than_a_cutoff_are_counted_per_member() -> None:
    def dated(record):
        return replace(record, date="2025-03-03") if isinstance(record, Task) and record.id < IDS[30] else record

    finding = the(evidence(changed(clean(), dated)), "window_before_cutoff")
    assert finding.severity == "warning"
    assert "30 of 240 (12.5 %) are older than the cutoff of gpt (2025-06-01)" in finding.message
    assert "of opus (2025-06-01)" in finding.message
    assert "and 20 more" in finding.message
    assert "9.1" in finding.affects


@pytest.mark.parametrize(
    ("date", "cutoff", "old"),
    [
        ("2025-05-31", "2025-06-01", True),
        ("2025-06-01", "2025-06-01", False),
        ("2025-06-30T10:00:00", "2025-06", True),
        ("2025-07-01", "2025-06", False),
        ("2025-07-01", "2025", True),
    ],
)
def test_a_cutoff_counts_to_the_end_of_the_month_or_year_it_names(date: str, cutoff: str, old: bool) -> None:
    def told(record):
        if isinstance(record, Task):
            return replace(record, date=date)
        if isinstance(record, Config) and record.what == "panel":
            members = [{**member, "cutoff": cutoff} for member in record.facts["members"]]
            return replace(record, facts={**record.facts, "members": members})
        return record

    assert ("window_before_cutoff" in codes(evidence(changed(clean(), told)))) is old


def test_unknown_dates_and_cutoffs_are_not_old() -> None:
    undated = changed(clean(), only(Task, date=None))
    assert "window_before_cutoff" not in codes(evidence(undated))
    no_panel = changed(clean(), lambda r: None if isinstance(r, Config) and r.what == "panel" else r)
    assert "window_before_cutoff" not in codes(evidence(changed(no_panel, only(Task, date="2001-01-01"))))


@pytest.mark.parametrize("name", ["Dev", "DEV-2", "dev_2", "Validation", " smoke", "\uff44\uff45\uff56", "dev2"])
def test_a_working_split_is_one_in_any_spelling(name: str) -> None:
    rows = [replace(fused(task), split=name) for task in IDS[:3]]
    assert is_working(name)
    assert headline_splits(evidence(rows)) == ()


def test_a_split_called_final_is_accused_without_registration_as_a_locked_one_is() -> None:
    other = [replace(fused(task), split="final") for task in IDS[:20]]
    message = the(evidence([*clean(), *other]), "suite_undeclared").message
    assert message == f"{SUITE}/final: compound evaluated on a locked split, no registration names it"


def test_a_suite_is_itself_in_another_spelling() -> None:
    plan = changed(clean(), only(ComparisonPlan, suite=SUITE.upper(), split="Locked "))
    assert "suite_undeclared" not in codes(evidence(plan))
    assert "suite_undeclared" not in codes(evidence(clean(), settings={"suites": {"primary": f"{SUITE.title()} "}}))
    billed = Phase(phase="6-locked", suite=SUITE.upper(), est_micro_usd=1, line=9, source="ledger.jsonl")
    assert suite_undeclared(evidence([*clean(), billed])) == []
