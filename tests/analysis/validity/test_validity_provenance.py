"""provenance_missing and stale_subject."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_fusion_audit.analysis.validity import find
from pytest_fusion_audit.evidence.records import Candidate, ComparisonPlan, Config
from tests.analysis.validity.validity_plants import (
    ASKED,
    SENT,
    SUITE,
    changed,
    clean,
    codes,
    evidence,
    fused,
    only,
    the,
)

SILENT = {"parameters_sent": None, "parameters_asked": None, "resolved_model": None}


def _without(*names: str) -> list:
    """The clean audit without some facts of its run record, its candidates silent too."""

    def cut(record):
        if isinstance(record, Config) and record.what == "run":
            return replace(record, facts={k: v for k, v in record.facts.items() if k not in names})
        return record

    return changed(changed(clean(), cut), only(Candidate, **SILENT))


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("output_cap", "output cap"),
        ("panel_hash", "panel hash"),
        ("models", "resolved models"),
        ("config_hash", "config hash"),
    ],
)
def test_a_fact_a_run_must_record_of_itself(field: str, name: str) -> None:
    finding = the(evidence(_without(field)), "provenance_missing")
    assert finding.severity == "error"
    assert finding.message == f"missing in the runs' own records: no {name} recorded for {SUITE}/locked"
    assert finding.evidence == ("locked.json",)
    assert {"1.1", "9.2"} <= set(finding.affects)


def test_a_missing_seed_is_a_warning() -> None:
    finding = the(evidence(_without("seed")), "provenance_missing")
    assert finding.severity == "warning"
    assert f"no seed recorded for {SUITE}/locked" in finding.message
    assert set(finding.affects) == {"1.5", "9.2"}


def test_a_compound_without_any_run_record_lacks_everything() -> None:
    findings = [f for f in find(evidence([fused("t1")])) if f.code == "provenance_missing"]
    assert [finding.severity for finding in findings] == ["error", "warning"]
    assert all(word in findings[0].message for word in ("output cap", "panel hash", "resolved models", "config hash"))


def test_null_and_empty_facts_are_missing_but_zero_is_a_seed() -> None:
    def facts(**changes):
        def change(record):
            if isinstance(record, Config) and record.what == "run":
                return replace(record, facts={**record.facts, **changes})
            return record

        return changed(changed(clean(), change), only(Candidate, **SILENT))

    assert "provenance_missing" in codes(evidence(facts(panel_hash=None)))
    assert "provenance_missing" in codes(evidence(facts(models={})))
    assert "provenance_missing" not in codes(evidence(facts(seed=0)))


def test_what_every_candidate_carries_need_not_stand_in_the_run_record() -> None:
    carried = only(Candidate, parameters_sent=SENT, resolved_model="m")
    records = changed(_without("output_cap", "models", "seed"), carried)
    assert "provenance_missing" not in codes(evidence(records))


def test_a_panel_file_is_not_the_runs_own_record() -> None:
    def stated(record):
        if isinstance(record, Config) and record.what == "panel":
            return replace(record, facts={**record.facts, "sampling": {"max_tokens": 4096, "seed": 7}})
        return record

    assert "output cap" in the(evidence(changed(_without("output_cap"), stated)), "provenance_missing").message


def test_a_run_record_of_another_split_is_of_another_run() -> None:
    records = [replace(r, split="dev") if isinstance(r, Config) and r.what == "run" else r for r in clean()]
    assert "provenance_missing" in codes(evidence(changed(records, only(Candidate, **SILENT))))


def test_settings_of_a_run_of_ours_count() -> None:
    settings = {"max_output_tokens": 8192, "panel_hash": "0a", "splits": {"seed": 0}}
    records = _without("output_cap", "panel_hash", "config_hash", "seed")
    assert "provenance_missing" not in codes(evidence(records, mode="live", subject_hash="5b", settings=settings))
    assert "provenance_missing" in codes(evidence(records, settings=settings))


def test_a_seed_the_provider_does_not_take() -> None:
    unsent = {"max_completion_tokens": 8192, "temperature": 0.2}
    records = changed(
        clean(), lambda r: replace(r, parameters_sent=unsent) if isinstance(r, Candidate) and r.member == "opus" else r
    )
    finding = the(evidence(records), "provenance_missing")
    assert finding.severity == "warning"
    assert "seed asked for and not taken by opus" in finding.message
    assert ASKED["seed"] == 7


def test_members_without_a_compound_need_no_provenance_of_one() -> None:
    records = [r for r in clean() if isinstance(r, Candidate)]
    assert "provenance_missing" not in codes(evidence(changed(records, only(Candidate, **SILENT))))


def test_evidence_of_another_subject_is_stale() -> None:
    records = changed(clean(), only(ComparisonPlan, subject_hash="aaaa"))
    finding = the(evidence(records, subject_hash="bbbb"), "stale_subject")
    assert finding.severity == "error"
    assert finding.message == (
        f"made for subject aaaa, while bbbb is being gated: registration of {SUITE}/locked; run it again for this "
        "subject"
    )
    assert {"1.1", "2.1", "3.2", "4.1", "7.1", "9.1"} <= set(finding.affects)
    run = changed(clean(), only(Config, subject_hash="aaaa"))
    assert "panel, run tasks-of-ours/locked" in the(evidence(run, subject_hash="bbbb"), "stale_subject").message


def test_evidence_of_the_same_or_of_no_subject_is_not_stale() -> None:
    same = changed(clean(), only(ComparisonPlan, subject_hash="bbbb"))
    assert "stale_subject" not in codes(evidence(same, subject_hash="bbbb"))
    assert "stale_subject" not in codes(evidence(same))
    assert "stale_subject" not in codes(evidence(clean(), subject_hash="bbbb"))


def test_earlier_runs_in_a_history_are_of_other_subjects_by_nature() -> None:
    earlier = Config(what="history", facts={"suite": SUITE}, subject_hash="aaaa", source="history.jsonl")
    assert "stale_subject" not in codes(evidence([*clean(), earlier], subject_hash="bbbb"))
