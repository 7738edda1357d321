"""selector_outside_pool, oracle_contains_fused, best_single_post_hoc."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_fusion_audit.evidence.records import ArmOutcome, Claim, ComparisonPlan, Fused
from tests.analysis.validity.validity_plants import (
    IDS,
    LOCKED,
    SUITE,
    candidate,
    changed,
    clean,
    codes,
    evidence,
    fused,
    only,
    the,
)

BANK = [
    candidate(task, member, split="bank", verdict=verdict, source="bank.json")
    for task, verdicts in {
        "t1": ("passed", "failed"),
        "t2": ("failed", "failed"),
        "t3": ("passed", "passed"),
        "t4": ("failed", "failed"),
    }.items()
    for member, verdict in zip(("gpt", "opus"), verdicts, strict=True)
]


def _policy(arm: str, *passed: str) -> list[ArmOutcome]:
    return [
        ArmOutcome(task=t, suite=SUITE, split="bank", arm=arm, passed=t in passed, source="policies.json")
        for t in ("t1", "t2", "t3", "t4")
    ]


@pytest.mark.parametrize("policy", ["select_best", "exec_select"])
def test_a_selector_that_passes_where_every_candidate_fails(policy: str) -> None:
    finding = the(evidence([*BANK, *_policy(f"compound:{policy}", "t1", "t2", "t3")]), "selector_outside_pool")
    assert finding.severity == "error"
    assert f"compound:{policy} on 1 of 4 (t2)" in finding.message
    assert finding.evidence == ("bank.json", "policies.json")
    assert set(finding.affects) == {"2.1", "2.3", "3.1", "3.2", "4.1", "4.2"}


def test_a_rewrite_may_rescue_what_no_candidate_solved() -> None:
    assert "selector_outside_pool" not in codes(evidence([*BANK, *_policy("compound:rewrite", "t1", "t2")]))


def test_a_selector_inside_its_pool() -> None:
    assert "selector_outside_pool" not in codes(evidence([*BANK, *_policy("compound:select_best", "t1", "t3")]))


def test_a_pool_that_is_not_all_recorded_leaves_it_undecided() -> None:
    """Locked rows hold the first sample of each member; the one that was picked may be another."""
    turns = [
        fused(t, policy="select_best", candidate_ids=None, pick=None, pick_member="gpt", verdict="passed", split="bank")
        for t in ("t1", "t2", "t3", "t4")
    ]
    assert "selector_outside_pool" not in codes(evidence([*BANK, *turns]))
    whole = [replace(turn, candidate_ids=("gpt#0", "opus#0")) for turn in turns]
    assert "compound on 2 of 4 (t2, t4)" in the(evidence([*BANK, *whole]), "selector_outside_pool").message
    more = [replace(turn, candidate_ids=("gpt#0", "opus#0", "gpt#1")) for turn in turns]
    assert "selector_outside_pool" not in codes(evidence([*BANK, *more]))


@pytest.mark.parametrize("change", [{"pick_status": "none"}, {"pick_status": "parse_failure"}, {"fallback": "rewrite"}])
def test_a_turn_that_says_it_wrote_instead_selected_nothing(change: dict) -> None:
    turns = [fused(t, policy="select_best", verdict="passed", split="bank", **change) for t in ("t1", "t2")]
    assert "selector_outside_pool" not in codes(evidence([*BANK, *turns]))


def test_a_candidate_without_verdict_might_have_been_the_right_one() -> None:
    unknown = [replace(c, verdict=None) if (c.task, c.member) == ("t2", "opus") else c for c in BANK]
    found = evidence([*unknown, *_policy("compound:select_best", "t1", "t2", "t3")])
    assert "selector_outside_pool" not in codes(found)


def _stated(value: float, arm: str | None = "compound", source: str = "report.json") -> Claim:
    return Claim(quantity="oracle", value=value, suite=SUITE, split="locked", arm=arm, source=source)


# The candidates of the clean audit pass 120 tasks of 240; the compound passes 32 more and leaves 4 of theirs.
CANDIDATES, WITH_FUSED = 120 / 240, 152 / 240


@pytest.mark.parametrize("arm", ["compound", None])
def test_an_oracle_that_counts_the_fused_answer(arm: str | None) -> None:
    finding = the(evidence([*clean(), _stated(WITH_FUSED, arm)]), "oracle_contains_fused")
    assert finding.severity == "error"
    assert "report.json: the oracle it states" in finding.message
    assert "candidates alone reach 120 of 240, candidates or compound 152" in finding.message
    assert set(finding.affects) == {"2.1", "2.3", "3.2"}


@pytest.mark.parametrize("value", [CANDIDATES, 0.55, None, True, "0.63"])
def test_an_oracle_of_candidates_or_of_something_else(value: object) -> None:
    assert "oracle_contains_fused" not in codes(evidence([*clean(), replace(_stated(0.0), value=value)]))


def test_a_fused_rate_above_the_stated_oracle_shows_that_it_is_not_in_it() -> None:
    fused_rate = 148 / 240
    assert fused_rate > CANDIDATES
    assert "oracle_contains_fused" not in codes(evidence([*clean(), _stated(CANDIDATES)]))


def test_where_only_first_samples_are_recorded_the_file_of_the_rows_decides() -> None:
    records = changed(clean(), only(Fused, candidate_ids=None))
    assert "oracle_contains_fused" not in codes(evidence([*records, _stated(WITH_FUSED)]))
    assert "oracle_contains_fused" in codes(evidence([*records, _stated(WITH_FUSED, source=LOCKED)]))


def _best(name: object, split: str = "locked") -> Claim:
    return Claim(quantity="best_single", value=name, suite=SUITE, split=split, source="report.json")


@pytest.mark.parametrize("value", ["gpt", {"arm": "member:gpt", "rate": 0.5}, {"model": "gpt"}])
def test_a_best_single_that_is_the_best_of_the_evaluated_split(value: object) -> None:
    finding = the(evidence([*clean(), _best(value)]), "best_single_post_hoc")
    assert finding.severity == "warning"
    assert f"{SUITE}/locked: gpt (the highest of 2 on these 240 tasks)" in finding.message
    assert "1.1" in finding.affects


def test_one_that_is_not_the_highest_was_chosen_elsewhere() -> None:
    assert "best_single_post_hoc" not in codes(evidence([*clean(), _best("opus")]))


def test_one_whose_panel_is_not_recorded_cannot_be_shown_to_be_chosen_elsewhere() -> None:
    row = ArmOutcome(task="x", suite=SUITE, split="final", arm="compound", passed=True, source="report.json")
    assert "final: opus;" in the(evidence([row, _best("opus", "final")]), "best_single_post_hoc").message


def test_one_chosen_on_dev_or_named_in_the_registration_is_no_finding() -> None:
    assert "best_single_post_hoc" not in codes(evidence([*clean(), _best("gpt", "dev")]))
    settings = {"gpt": {"max_tokens": 8192}, "opus": {"max_tokens": 8192}, "best_single": "gpt"}
    named = changed([*clean(), _best("gpt")], only(ComparisonPlan, baseline_settings=settings))
    assert "best_single_post_hoc" not in codes(evidence(named))


def test_without_a_claim_nobody_chose() -> None:
    assert IDS
    assert "best_single_post_hoc" not in codes(evidence(clean()))
