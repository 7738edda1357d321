"""The scorecard: schema, determinism, money, subject, totals, published scores."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fusion_audit import check_validity, load_rubric, score_rubric
from pytest_fusion_audit.evidence.container import Evidence, RunFacts
from pytest_fusion_audit.evidence.records import Candidate, Claim, ComparisonPlan, Config, ImportedFile, Note, Phase
from pytest_fusion_audit.report.markdown import rubric_scorecard_md
from pytest_fusion_audit.rubric import capping
from tests.rubric.rubric_plants import LIVE, SUITE, changed, clean, dev_bank, evidence, panel, rows

if TYPE_CHECKING:
    from pytest_fusion_audit.evidence.records import Record

SCHEMA = [
    *("schema", "run_id", "mode", "subject", "complete", "coverage", "claim_eligible", "terminal_state", "gates"),
    *("validity", "total", "dimensions", "criteria", "measurements", "spend", "published", "imports"),
]
TOTAL = ["score", "out_of", "simulated", "attested", "by_tool", "measured_criteria", "reachable"]


def card(records: list[Record], **facts: Any) -> dict[str, Any]:
    return score_rubric(evidence(records, **facts), load_rubric()).to_json()


def ledger() -> list[Record]:
    return [
        Phase(phase="3-baseline", est_micro_usd=12_000_000, measured_micro_usd=11_000_000, line=1, source="l.jsonl"),
        Phase(phase="6-locked", est_micro_usd=30_000_000, measured_micro_usd=28_500_000, line=2, source="l.jsonl"),
        Phase(phase="6-locked", est_micro_usd=1_000_000, measured_micro_usd=500_000, line=3, source="l.jsonl"),
    ]


def test_the_schema_and_its_order() -> None:
    found = card(clean())
    assert list(found) == SCHEMA
    assert found["schema"] == "fusion-scorecard/1"
    assert list(found["total"]) == [
        "score",
        "out_of",
        "simulated",
        "attested",
        "by_tool",
        "measured_criteria",
        "reachable",
    ]
    assert list(found["criteria"][0])[:4] == ["id", "title", "status", "score"]
    assert [row["id"] for row in found["criteria"]] == [c.id for c in load_rubric().criteria]
    assert list(found["gates"]) == ["A", "B", "C", "D"]
    assert list(found["gates"]["A"]) == ["passed", "would_pass_simulated", "reasons"]
    assert list(found["coverage"]) == ["planned", "scored", "by_reason"]
    assert found["terminal_state"] is None


def test_an_empty_run_lists_all_criteria_too() -> None:
    found = card([])
    assert len(found["criteria"]) == 57
    assert {row["status"] for row in found["criteria"]} == {"not_run"}
    assert (found["complete"], found["total"]["score"], found["coverage"]["planned"]) == (False, 0, 0)


def test_the_same_bytes_from_shuffled_records_and_from_a_second_scoring() -> None:
    records = [*clean(), *ledger(), panel(), *rows("compound", split="dev"), *rows("member:gpt", split="dev")]
    first = score_rubric(evidence(records), load_rubric()).dumps()
    assert first == score_rubric(evidence(records), load_rubric()).dumps()
    for seed in range(3):
        shuffled = list(records)
        random.Random(seed).shuffle(shuffled)
        # Who stands first in the panel is a fact of the recording; everything else may come in any order.
        shuffled.sort(key=lambda r: {"gpt": 0, "opus": 1}.get(getattr(r, "member", ""), 2))
        assert score_rubric(evidence(shuffled), load_rubric()).dumps() == first
    assert first.endswith("}\n")
    assert json.loads(first)["schema"] == "fusion-scorecard/1"


def test_nothing_of_the_machine_or_the_clock_is_in_it() -> None:
    text = score_rubric(evidence([*clean(), *ledger()]), load_rubric()).dumps()
    assert not [word for word in ("/root", "/home", "/tmp", "\\\\", "T00:") if word in text]


def test_a_rate_is_over_scored_rows_and_states_add_up_to_the_plan() -> None:
    lost = changed(clean(), lambda r: getattr(r, "member", "") == "gpt" and r.task < "t007", outcome="provider_error")
    found = card(lost)
    assert found["coverage"] == {"planned": 780, "scored": 773, "by_reason": {"provider_error": 7}}
    assert (found["complete"], found["claim_eligible"]) == (False, False)
    assert found["gates"]["D"]["reasons"][-1].startswith("INCOMPLETE 773/780") or any(
        reason.startswith("INCOMPLETE 773/780") for reason in found["gates"]["D"]["reasons"]
    )


def test_rows_of_other_models_are_counted_beside_the_run_and_leave_it_complete() -> None:
    others = [
        replace(row, outcome="provider_error", verdict=None) if row.task < "t002" else row
        for row in rows("member:kimi", range(5), split="caps", tasks=range(10))
    ]
    found = card([*clean(), *others])
    assert (found["complete"], found["coverage"]["planned"]) == (True, 780)
    assert found["coverage"]["by_reason"] == {}
    assert found["coverage"]["beside"] == {
        f"{SUITE}/caps": {"planned": 10, "scored": 8, "by_reason": {"provider_error": 2}}
    }
    assert not [reason for gate in found["gates"].values() for reason in gate["reasons"] if "INCOMPLETE" in reason]
    assert f"780/780 scored; beside the audit: {SUITE}/caps 8/10 (2 provider_error)" in rubric_scorecard_md(found)


def test_rows_of_the_panel_on_another_split_are_rows_of_the_run() -> None:
    bank = changed(
        dev_bank(),
        lambda r: isinstance(r, Candidate) and r.member == "gpt" and r.task < "t003",
        outcome="provider_error",
        verdict=None,
    )
    found = card([*clean(), *bank])
    assert found["coverage"] == {"planned": 1500, "scored": 1497, "by_reason": {"provider_error": 3}}


def test_an_arm_that_was_registered_and_never_recorded_is_planned() -> None:
    arms = ("compound", "member:gpt", "member:opus", "self:gpt*4:rewrite")
    plan = ComparisonPlan(suite=SUITE, split="locked", arms=arms, n=240, source="plan.json")
    found = card([*clean(), plan])
    assert not found["complete"]
    assert found["coverage"] == {"planned": 1020, "scored": 780, "by_reason": {"not_recorded": 240}}


def test_without_a_compound_everything_is_the_run() -> None:
    found = card(rows("member:kimi", range(5), split="caps", tasks=range(10)))
    assert found["coverage"] == {"planned": 10, "scored": 10, "by_reason": {}}


def test_the_compounds_own_fault_is_scored() -> None:
    found = card(
        changed(clean(), lambda r: getattr(r, "arm", "") == "compound" and r.task < "t003", outcome="pipeline_error")
    )
    assert found["complete"]


def test_points_are_weight_times_scores_over_twice_their_count() -> None:
    found = card(clean())
    by_id = {row["id"]: row["score"] for row in found["criteria"]}
    for dimension in found["dimensions"]:
        own = [points for name, points in by_id.items() if name.split(".")[0] == str(dimension["id"])]
        assert dimension["score"] == pytest.approx(dimension["weight"] * sum(own) / (2 * len(own)))
    assert found["total"]["out_of"] == 104
    assert found["total"]["score"] == pytest.approx(sum(d["score"] for d in found["dimensions"]))
    assert found["total"]["measured_criteria"] == sum(row["status"] != "not_run" for row in found["criteria"])
    assert found["total"]["score"] <= found["total"]["reachable"] <= 104


def test_simulated_points_stand_apart_from_the_total(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capping, "find", lambda _: ())
    live, offline = card(clean()), card(clean(), mode="offline")
    assert live["total"]["score"] > 0
    assert offline["total"]["score"] == 0
    assert offline["total"]["simulated"] >= live["total"]["score"]
    assert {row["class"] for row in offline["criteria"]} == {"simulated"}
    assert not any(gate["passed"] for gate in offline["gates"].values())


def test_only_a_metered_complete_live_run_without_errors_is_claim_eligible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_fusion_audit.rubric.validity.find", lambda _: ())
    assert card(clean())["claim_eligible"] is True
    assert card(clean(), journal=False)["claim_eligible"] is False
    assert card(clean(), mode="imported")["claim_eligible"] is False
    assert card(clean(), mode="offline")["claim_eligible"] is False
    monkeypatch.undo()
    assert card(clean())["claim_eligible"] is False  # nothing of its provenance is recorded


def test_spend_tells_measured_from_estimated_and_unknown_from_nothing() -> None:
    found = card([*clean(), *ledger()], cap_micro_usd=500_000_000)["spend"]
    assert found == {
        "cap_usd": 500.0,
        "spent_usd": 40.0,
        "estimated_usd": 43.0,
        "by_phase": {
            "3-baseline": {"est_usd": 12.0, "measured_usd": 11.0},
            "6-locked": {"est_usd": 31.0, "measured_usd": 29.0},
        },
    }
    estimated = card([Phase(phase="1", est_micro_usd=566, line=1), Phase(phase="1", line=2)])["spend"]
    assert estimated["spent_usd"] is None
    assert estimated["estimated_usd"] is None
    assert estimated["by_phase"] == {"1": {"est_usd": None, "measured_usd": None}}
    assert card([])["spend"]["spent_usd"] is None


def test_an_import_has_its_recorded_panel_for_a_subject() -> None:
    imported = {"mode": "imported", "subject_hash": None, "journal": False}
    first = card([*clean(), panel()], **imported)["subject"]
    assert first["panel"] == ["gpt = gpt-5.5", "opus = claude-opus-4-8"]
    assert len(first["hash"]) == 64
    other = panel({"id": "gpt", "model": "gpt-5.4"}, {"id": "opus", "model": "claude-opus-4-8"})
    assert card([*clean(), other], **imported)["subject"]["hash"] != first["hash"]
    assert card(clean(), **imported)["subject"]["hash"] is None
    assert card(clean())["subject"]["hash"] == LIVE.subject_hash


def test_imports_and_what_they_left_unknown_are_listed() -> None:
    file = ImportedFile(
        source="b.json",
        sha256="ab",
        format="bank",
        unknown=("cost",),
        notes=(Note(code="no_verdict", message="2 candidates", count=2, items=("t1", "t2")),),
    )
    found = card([file, ImportedFile(source="a.json", sha256="cd", format="ledger")])["imports"]
    assert [row["source"] for row in found] == ["a.json", "b.json"]
    assert found[1]["unknown"] == ["cost"]
    assert found[1]["notes"] == [{"code": "no_verdict", "message": "2 candidates", "count": 2, "items": ["t1", "t2"]}]


def claims(**scores: int) -> list[Record]:
    return [
        Claim(quantity="score", value=value, criterion=name[1:].replace("_", "."), source="published.json")
        for name, value in scores.items()
    ]


def test_a_published_score_is_put_beside_ours_with_the_reason() -> None:
    found = card([*clean(), *claims(c1_1=2, c1_6=1, c9_7=0)])
    assert len(found["published"]) == 57
    by_id = {row["criterion"]: row for row in found["published"]}
    assert by_id["1.6"]["published"] == 1
    assert by_id["1.6"]["ours"] == 0
    assert by_id["1.6"]["why"].startswith("needs a billed measurement")
    assert by_id["2.1"]["published"] is None
    assert card(clean())["published"] == []


def test_only_a_higher_published_score_is_a_finding_and_a_warning() -> None:
    strict = [
        Claim(
            quantity="judge_pick_accuracy_strict", value=value, suite="s", split=split, arm=arm, source=f"{split}.json"
        )
        for split, arm, value in (("dev", "compound", 1.0), ("locked", "compound", 0.0), ("locked", "compound@x", 0.3))
    ]
    found = [
        f
        for f in check_validity(evidence([*clean(), *strict, *claims(c3_1=2, c1_6=0, c2_1=1)]))
        if f.code == "published_score_unsupported"
    ]
    assert [(f.affects, f.severity) for f in found] == [(("3.1",), "warning")]
    message = found[0].message
    assert message.startswith("3.1 was published as 2, this evidence gives 0: needs locked rows: ")
    assert "s/locked/compound/judge_pick_accuracy_strict 0 (locked.json)" in message
    assert message.index("s/locked") < message.index("s/dev")
    assert set(found[0].evidence) == {"dev.json", "locked.json", "published.json"}


def test_published_scores_never_become_ours() -> None:
    boasted = card([*clean(), *claims(**{f"c{c.id.replace('.', '_')}": 2 for c in load_rubric().criteria})])
    honest = card(clean())
    assert [row["score"] for row in boasted["criteria"]] == [row["score"] for row in honest["criteria"]]


def test_findings_are_sorted_errors_first() -> None:
    found = check_validity(evidence([*clean(), *claims(c10_1=1, c9_1=1, c1_1=2)]))
    assert [f.severity for f in found] == sorted(f.severity for f in found)
    published = [f.affects[0] for f in found if f.code == "published_score_unsupported"]
    assert published == ["1.1", "9.1", "10.1"]


def test_the_shipped_rubric_is_the_default_and_another_may_be_given() -> None:
    run = Evidence(RunFacts(), [*clean(), *claims(c1_6=1), Config(what="run", facts={})])
    assert check_validity(run) == check_validity(run, load_rubric())
