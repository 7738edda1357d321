"""unequal_compute."""

from __future__ import annotations

from dataclasses import replace

from pytest_fusion_audit.evidence.records import Candidate, Fused, Phase
from tests.analysis.validity.validity_plants import (
    IDS,
    SUITE,
    candidate,
    changed,
    clean,
    codes,
    evidence,
    only,
    the,
)


def _without_control(records):
    return changed(records, lambda r: None if isinstance(r, Fused) and r.arm.startswith("self:") else r)


def test_more_samples_and_dollars_without_an_equal_dollar_arm() -> None:
    finding = the(evidence(_without_control(clean())), "unequal_compute")
    assert finding.severity == "error"
    assert set(finding.affects) == {"1.1", "1.2", "1.3", "2.5"}
    assert f"{SUITE}/locked/compound spends 2 samples (fused.candidate_ids)" in finding.message
    assert "(0.2000 USD)" in finding.message
    assert "member:gpt (32 won, 4 lost of 240 (+11.7 points), 1 sample, 0.0650 USD a task)" in finding.message
    assert "member:opus" in finding.message
    assert finding.evidence == ("locked.json",)


def test_a_control_at_far_fewer_dollars_controls_nothing() -> None:
    records = changed(
        clean(), lambda r: replace(r, cost_micro_usd=150_000) if isinstance(r, Fused) and r.arm != "compound" else r
    )
    assert "unequal_compute" in codes(evidence(records))


def test_a_control_of_unknown_cost_or_on_other_tasks_controls_nothing() -> None:
    unpriced = changed(
        clean(), lambda r: replace(r, cost_micro_usd=None) if isinstance(r, Fused) and r.arm != "compound" else r
    )
    assert "unequal_compute" in codes(evidence(unpriced))
    some = changed(clean(), lambda r: None if isinstance(r, Fused) and r.arm != "compound" and r.task > IDS[100] else r)
    assert "unequal_compute" in codes(evidence(some))


def test_a_compound_that_beats_nobody_claims_nothing() -> None:
    records = changed(_without_control(clean()), only(Fused, verdict="failed"))
    assert "unequal_compute" not in codes(evidence(records))


def test_a_compound_as_cheap_as_the_member_has_no_head_start() -> None:
    records = changed(_without_control(clean()), only(Fused, cost_micro_usd=65_000, candidate_ids=("gpt#0",)))
    assert "unequal_compute" not in codes(evidence(records))


def test_samples_are_read_from_a_ledger_where_only_first_ones_are_recorded() -> None:
    def unrecorded(record):
        if isinstance(record, Fused):
            return replace(record, candidate_ids=None, cost_micro_usd=None, source="phase6/locked.json")
        return replace(record, cost_micro_usd=None) if isinstance(record, Candidate) else record

    records = changed(_without_control(clean()), unrecorded)
    plain = the(evidence(records), "unequal_compute").message
    assert "spends 2 samples (at least, by the candidates recorded)" in plain
    assert "dollars not recorded" in plain
    note = "tier2: panel depth 3x adopted"
    deeper = Phase(phase="5-climb", est_micro_usd=1, note=note, line=9, source="ledger.jsonl")
    deep = the(evidence([*records, deeper]), "unequal_compute")
    assert "spends 6 samples (panel depth 3x in ledger.jsonl line 9)" in deep.message
    assert "ledger.jsonl" in deep.evidence
    # What was adopted after these rows were made says nothing about them.
    later = replace(deeper, phase="7-later")
    assert "spends 2 samples" in the(evidence([*records, later]), "unequal_compute").message


def test_the_panel_stage_alone_is_shown_where_the_turn_is_not_priced() -> None:
    stages = {"panel": 130_000, "judge": None, "synthesizer": None}
    records = changed(_without_control(clean()), only(Fused, cost_micro_usd=None, stage_cost_micro_usd=stages))
    assert "the panel alone 0.1300 USD" in the(evidence(records), "unequal_compute").message


def test_the_same_model_priced_elsewhere_at_the_same_cap_gives_the_dollars() -> None:
    elsewhere = [
        candidate(task, "gpt55", split="caps", config="8192", requested_model="gpt-5.5", cost_micro_usd=20_000)
        for task in IDS[:50]
    ]
    message = the(evidence([*_without_control(clean()), *elsewhere]), "unequal_compute").message
    assert "on 50 of them one sample of gpt-5.5 at cap 8192" in message
    assert "cost 0.0200 USD a task, the compound 0.2000 USD, 10.0 times as much" in message


def test_self_consistency_with_fewer_samples_is_beaten_unequally() -> None:
    def renamed(record):
        if isinstance(record, Fused):
            own = record.arm.startswith("self:")
            return replace(record, arm="self:gpt*1:rewrite" if own else record.arm, cost_micro_usd=None)
        return replace(record, cost_micro_usd=None) if isinstance(record, Candidate) else record

    message = the(evidence(changed(clean(), renamed)), "unequal_compute").message
    assert "self:gpt*1:rewrite (22 won, 4 lost of 240 (+7.5 points), 1 sample)" in message


def test_self_consistency_of_another_split_is_named_beside_it() -> None:
    records = _without_control(clean())
    turns = [record for record in records if isinstance(record, Fused)]
    dev = [replace(turn, split="dev", arm="self:gpt*6:rewrite", cost_micro_usd=None) for turn in turns]
    message = the(evidence([*records, *dev]), "unequal_compute").message
    assert f"(elsewhere: self:gpt*6 on {SUITE}/dev, dollars not recorded)" in message
