"""tuning_asymmetry and settings_not_sent."""

from __future__ import annotations

from dataclasses import replace

from pytest_fusion_audit.evidence.records import Candidate, Change, ComparisonPlan, Config, Phase
from tests.analysis.validity.validity_plants import (
    ASKED,
    IDS,
    SENT,
    candidate,
    changed,
    clean,
    codes,
    evidence,
    only,
    the,
)


def _untuned(records):
    return changed(records, only(ComparisonPlan, baseline_settings={}))


def test_a_tuned_compound_against_untuned_members() -> None:
    finding = the(evidence(_untuned(clean())), "tuning_asymmetry")
    assert finding.severity == "error"
    assert set(finding.affects) == {"1.1", "1.2", "1.3"}
    assert "phase 5 billed 50.00 USD, spend-ledger.jsonl lines 3" in finding.message
    assert "gpt, opus never" in finding.message
    assert finding.evidence == ("spend-ledger.jsonl",)


def test_settings_chosen_for_every_member_are_no_asymmetry() -> None:
    half = changed(clean(), only(ComparisonPlan, baseline_settings={"gpt": {"max_tokens": 8192}}))
    assert "opus never" in the(evidence(half), "tuning_asymmetry").message
    tuned = Change(change="cap 8192", tier=2, accepted=False, target="member:opus", source="climb.jsonl")
    climbed = Change(change="judge prompt", tier=1, accepted=True, source="climb.jsonl")
    assert "tuning_asymmetry" not in codes(evidence([*half, tuned, climbed]))


def test_a_climb_in_which_nothing_was_accepted_leaves_the_compound_untuned() -> None:
    rejected = Change(change="judge prompt", tier=1, accepted=False, source="climb.jsonl")
    assert "tuning_asymmetry" not in codes(evidence([*_untuned(clean()), rejected]))
    accepted = replace(rejected, change="deeper panel", accepted=True)
    message = the(evidence([*_untuned(clean()), rejected, accepted]), "tuning_asymmetry").message
    assert "1 of 2 changes accepted: deeper panel" in message


def test_what_a_larger_cap_would_have_done_for_a_member_is_shown() -> None:
    def at(cap: int, passed: int) -> list[Candidate]:
        return [
            candidate(
                task,
                "gpt55",
                split="caps",
                config=str(cap),
                requested_model="gpt-5.5",
                parameters_asked=None,
                parameters_sent=None,
                verdict="passed" if number < passed else "failed",
            )
            for number, task in enumerate(IDS[:60])
        ]

    message = the(evidence([*_untuned(clean()), *at(8192, 30), *at(32768, 50)]), "tuning_asymmetry").message
    assert "gpt-5.5 at cap 32768 against cap 8192: 20 won, 0 lost of 60 (+33.3 points), exact p 1.9e-06" in message


def test_without_a_ledger_or_changes_nobody_knows_of_any_tuning() -> None:
    records = changed(_untuned(clean()), lambda r: None if isinstance(r, Phase) else r)
    assert "tuning_asymmetry" not in codes(evidence(records))


def test_parameters_that_did_not_go_over_the_wire() -> None:
    wire = {"parameters_asked": {**ASKED, "top_p": 0.95}, "parameters_sent": {"max_completion_tokens": 8192, "seed": 7}}
    records = changed(clean(), lambda r: replace(r, **wire) if isinstance(r, Candidate) and r.member == "gpt" else r)
    finding = the(evidence(records), "settings_not_sent")
    assert finding.severity == "warning"
    assert "temperature to gpt on 240 of 240 (100.0 %) calls" in finding.message
    assert "top_p to gpt" in finding.message
    assert "max_tokens" not in finding.message  # it went as max_completion_tokens
    assert "opus" not in finding.message
    assert "2.5" in finding.affects


def test_a_value_that_was_changed_on_the_way_was_not_sent() -> None:
    records = changed(clean(), only(Candidate, parameters_sent={**SENT, "temperature": 1.0}))
    assert "temperature to opus on 240 of 240" in the(evidence(records), "settings_not_sent").message


def test_it_is_an_error_where_the_variety_of_samples_rests_on_it() -> None:
    dropped = {"max_completion_tokens": 8192, "seed": 7}
    several = [candidate(task, "gpt", sample=k, parameters_sent=dropped) for task in IDS[:5] for k in (1, 2)]
    finding = the(evidence([*clean(), *several]), "settings_not_sent")
    assert finding.severity == "error"
    assert "temperature to gpt on 10 of 250 (4.0 %) calls" in finding.message
    assert "the variety of several samples rests on it" in finding.message
    assert {"1.1", "1.5", "2.5"} <= set(finding.affects)


def test_what_the_wire_was_not_watched_for_is_unknown() -> None:
    records = changed(clean(), only(Candidate, parameters_sent=None))
    assert "settings_not_sent" not in codes(evidence(records))


def test_a_panel_file_alone_says_nothing_about_the_wire() -> None:
    records = changed(clean(), only(Candidate, parameters_sent=None, parameters_asked=None))
    panel = [r for r in records if isinstance(r, Config) and r.what == "panel"]
    assert panel
    assert "settings_not_sent" not in codes(evidence(records))
