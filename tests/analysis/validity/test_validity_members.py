"""unequal_denominators: a member of the panel that nobody shows is not beaten (it is missing)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_fusion_audit import load_rubric, score_rubric
from pytest_fusion_audit.analysis.validity.listed_members import missing_members
from pytest_fusion_audit.evidence.records import Candidate, ComparisonPlan, Config, Fused
from pytest_fusion_audit.report.headline import headline
from tests.analysis.validity.validity_plants import IDS, LOCKED, SUITE, candidate, changed, clean, codes, evidence, the


def _without(member: str) -> list:
    return changed(clean(), lambda r: None if isinstance(r, Candidate) and r.member == member else r)


def _silent_about(member: str, *kept: str) -> list:
    """The member has no row, and nothing but the kinds of record in ``kept`` names it."""

    def change(record):
        if isinstance(record, Config) and record.what == "panel" and "panel" not in kept:
            return None
        if isinstance(record, Config) and record.what == "run" and "run" not in kept:
            models = {name: model for name, model in record.facts["models"].items() if name != member}
            return replace(record, facts={**record.facts, "models": models})
        if isinstance(record, ComparisonPlan) and "plan" not in kept:
            return replace(record, arms=tuple(arm for arm in record.arms if arm != f"member:{member}"))
        if isinstance(record, Fused) and "turns" not in kept:
            return replace(record, candidate_ids=None, pick=None)
        return record

    return changed(_without(member), change)


@pytest.mark.parametrize(
    ("kept", "source"), [("panel", "panel.yaml"), ("run", LOCKED), ("plan", "plan.json"), ("turns", LOCKED)]
)
def test_a_listed_member_without_rows_is_named_and_withholds_the_uplift(kept: str, source: str) -> None:
    found = evidence(_silent_about("opus", kept))
    finding = the(found, "unequal_denominators")
    assert finding.severity == "error"
    assert (
        f"{SUITE}/locked: 1 of the panel's members without a row: member:opus (listed in {source})" in finding.message
    )
    assert "over member:gpt only, not over every member" in finding.message
    assert {"1.1", "1.2", "1.3", "1.4"} <= set(finding.affects)
    card = score_rubric(found, load_rubric()).to_json()
    assert "unequal_denominators" in headline(card)
    assert headline(card).startswith("withheld")


def test_a_member_that_nothing_lists_is_not_missing() -> None:
    assert "unequal_denominators" not in codes(evidence(_silent_about("opus")))


def test_a_member_whose_rows_stand_on_another_split_only_is_missing_here() -> None:
    dev = [candidate(f"d{n}", "opus", split="dev") for n in range(3)]
    assert "member:opus" in the(evidence([*_without("opus"), *dev]), "unequal_denominators").message


def test_rows_in_another_configuration_are_no_rows_of_the_panel() -> None:
    larger = changed(
        clean(), lambda r: replace(r, config="16384") if isinstance(r, Candidate) and r.member == "opus" else r
    )
    assert "member:opus" in the(evidence(larger), "unequal_denominators").message


def test_an_endpoint_that_is_not_in_the_panel_is_no_member() -> None:
    def judge_too(record):
        if isinstance(record, Config) and record.what == "panel":
            return replace(record, facts={**record.facts, "members": [*record.facts["members"], {"id": "judge"}]})
        return record

    assert "unequal_denominators" not in codes(evidence(changed(clean(), judge_too)))


def test_a_member_under_the_name_of_its_model_is_that_member() -> None:
    renamed = changed(
        clean(), lambda r: replace(r, member="openai:gpt-5.5") if isinstance(r, Candidate) and r.member == "gpt" else r
    )
    silent = changed(renamed, lambda r: replace(r, candidate_ids=None, pick=None) if isinstance(r, Fused) else r)
    silent = changed(silent, lambda r: None if isinstance(r, ComparisonPlan) else r)
    assert missing_members(evidence(silent), SUITE, "locked") == {}


def test_of_two_members_with_one_model_the_one_without_rows_is_missing() -> None:
    twins = {"gpt": "gpt-5.5", "gpt-hot": "gpt-5.5", "opus": "claude-opus-4-8"}
    both = changed(
        clean(),
        lambda r: replace(r, facts={**r.facts, "models": twins}) if isinstance(r, Config) and r.what == "run" else r,
    )
    assert list(missing_members(evidence(both), SUITE, "locked")) == ["gpt-hot"]


def test_a_self_run_lists_its_own_model_and_no_member() -> None:
    control = Config(
        what="run",
        suite=SUITE,
        split="locked",
        facts={"models": {"gemini": "gemini-3"}, "gateway_model": "ours/self"},
        source="self.jsonl",
    )
    assert missing_members(evidence([*clean(), control]), SUITE, "locked") == {}


def test_of_several_panel_files_the_one_that_fits_is_the_splits() -> None:
    wider = Config(
        what="panel",
        facts={"members": [{"id": "gpt"}, {"id": "opus"}, {"id": "kimi"}], "panel_models": ["gpt", "opus", "kimi"]},
        source="tried.yaml",
    )
    assert missing_members(evidence([*clean(), wider]), SUITE, "locked") == {}
    only_wider = changed(clean(), lambda r: wider if isinstance(r, Config) and r.what == "panel" else r)
    assert list(missing_members(evidence(only_wider), SUITE, "locked")) == ["kimi"]


def test_a_compound_recorded_alone_is_compared_with_nobody() -> None:
    alone = changed(clean(), lambda r: None if isinstance(r, Candidate) else r)
    assert missing_members(evidence(alone), SUITE, "locked") == {}
    assert missing_members(evidence([candidate(IDS[0], "gpt")]), SUITE, "locked") == {}
