"""The recorded FusionKit audit, re-scored: what its evidence gives, and what it was published as."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fusion_audit import import_run, load_rubric, score_rubric
from pytest_fusion_audit.report.markdown import rubric_scorecard_md
from pytest_fusion_audit.report.text import scorecard_lines
from tests.shared_data import shared

if TYPE_CHECKING:
    from pathlib import Path

#: A path from the root of a machine: at least two steps, and not the end of a relative path or of an address.
ABSOLUTE_PATH = re.compile(r"(?<![\w./:*~`)\]-])/[\w.~-]+/[\w.~-]+|(?<!\w)[A-Za-z]:\\\\?\w+")

#: Criteria this evidence can speak about, with their scores; all others are not run.
SCORES = {
    "1.1": 0,
    "1.3": 0,
    "1.4": 1,
    "2.1": 1,
    "2.2": 1,
    "2.3": 1,
    "2.4": 1,
    "2.5": 0,
    "3.1": 1,
    "3.2": 1,
    "4.1": 1,
    "4.2": 1,
    "7.2": 1,
}


@cache
def _scored(*paths: Path) -> dict[str, Any]:
    return score_rubric(import_run(*paths), load_rubric()).to_json()


@pytest.fixture
def card() -> dict[str, Any]:
    return _scored(shared("runs/fusionkit-20260701"))


def row(card: dict[str, Any], criterion: str) -> dict[str, Any]:
    return next(row for row in card["criteria"] if row["id"] == criterion)


def test_scores(card: dict[str, Any]) -> None:
    measured = {row["id"]: row["score"] for row in card["criteria"] if row["status"] != "not_run"}
    assert measured == SCORES
    assert {row["class"] for row in card["criteria"]} == {"imported"}
    assert card["total"]["score"] == pytest.approx(10.5)
    assert card["total"]["measured_criteria"] == len(SCORES)


def test_the_uplift_is_there_and_withheld(card: dict[str, Any]) -> None:
    uplift = row(card, "1.1")
    assert (uplift["status"], uplift["measured"]["wins"], uplift["measured"]["losses"]) == ("absent", 16, 0)
    assert uplift["measured"]["over"] == "opus"
    assert uplift["measured"]["exact_p"] == pytest.approx(3.0517578125e-05)
    for code in ("truncated_answers", "unequal_compute", "split_reuse", "provenance_missing"):
        assert f"withheld: {code}" in uplift["reasons"]
    assert "uplift not identified" in uplift["reasons"]
    assert "too few: n = 86 < 200" in uplift["reasons"]
    assert "livecodebench is not agentic" in uplift["reasons"]
    assert uplift["measured"]["served_path"]["n"] == 25


def test_what_was_published_is_put_to_the_test(card: dict[str, Any]) -> None:
    findings = {f["affects"][0]: f for f in card["validity"] if f["code"] == "published_score_unsupported"}
    published = {row["criterion"]: row for row in card["published"]}
    assert len(published) == 57
    assert sorted(findings) == sorted(name for name, row in published.items() if row["published"] > row["ours"])
    judge = findings["3.1"]
    assert "3.1 was published as 2, this evidence gives 1: 8 of 12 right" in judge["message"]
    assert "polyglot/locked/compound/judge_pick_accuracy_strict 0 (" in judge["message"]
    assert any(name.endswith("phase6/poly-full-eval.json") for name in judge["evidence"])
    assert card["measurements"]["scorecard/published_total"] == pytest.approx(46.22857142857143)


def test_no_gate_opens(card: dict[str, Any]) -> None:
    for gate in card["gates"].values():
        assert (gate["passed"], gate["would_pass_simulated"]) == (False, False)
        assert gate["reasons"][0].startswith("imported without a call journal: a gate needs metered calls")


def test_unknown_stays_unknown(card: dict[str, Any]) -> None:
    assert (card["spend"]["spent_usd"], card["spend"]["estimated_usd"]) == (None, 240.06)
    assert (card["claim_eligible"], card["terminal_state"]) == (False, None)
    assert row(card, "7.1")["status"] == "not_run"
    assert row(card, "7.1")["reasons"][0].startswith("needs a billed measurement: the cost of opus alone")


def test_the_same_member_with_more_room_beats_the_compound() -> None:
    beside = _scored(shared("runs/fusionkit-20260701"), shared("runs/lcb-60-caps"))
    never = row(beside, "1.4")
    assert never["score"] == 1
    assert "gpt55@16384 (gpt-5.5, 16384 tokens instead of 4096) beats the compound" in never["reasons"][0]
    assert "1 won, 11 lost of 60" in never["reasons"][0]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("read /home/someone/runs/x.json", True),
        ("(/tmp/a/b)", True),
        (r"C:\Users\someone", True),
        ("phase6/locked-test.jsonl, 12/86", False),
        ("https://example.org/a/b", False),
        ("+1.7/20, a and/or b", False),
    ],
)
def test_what_counts_as_a_path_of_a_machine(text: str, found: bool) -> None:
    assert bool(ABSOLUTE_PATH.search(text)) is found


def test_reports_claim_no_win_and_hold_no_path(card: dict[str, Any]) -> None:
    text = "\n".join(scorecard_lines(card))
    document = rubric_scorecard_md(card)
    assert "imported, not claim-eligible" in text
    assert "uplift    withheld: " in text
    for report in (text, document):
        assert not ABSOLUTE_PATH.findall(report)
        assert "OBJECTIVE ACHIEVED" not in report


@pytest.mark.parametrize("name", ["swebench-30", "judge-panels", "lcb-60-caps"])
def test_other_recorded_runs_are_scored_without_a_2(name: str) -> None:
    found = _scored(shared(f"runs/{name}"))
    assert len(found["criteria"]) == 57
    assert max(row["score"] for row in found["criteria"]) <= 1


def test_a_split_that_nobody_explains_is_not_held_out() -> None:
    found = _scored(shared("runs/swebench-30"))
    uplift = row(found, "1.1")
    assert uplift["status"] == "absent"
    assert (uplift["measured"]["wins"], uplift["measured"]["losses"], uplift["measured"]["held_out"]) == (2, 5, None)
    assert "held-out status unknown: swebench-verified/n30 names no split" in uplift["reasons"]
