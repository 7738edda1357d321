"""Dimensions 6 to 10 on planted runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_fusion_audit import load_rubric
from pytest_fusion_audit.evidence.records import Change
from tests.rubric.conftest import error
from tests.rubric.rubric_plants import clean, rows, score, suite_facts

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("findings")


def test_6_5_is_met_by_a_multi_turn_suite_among_the_evaluations() -> None:
    assert score("6.5", clean()).score == 2
    single = [suite_facts(family="single-shot code", agentic=False), *clean()[1:]]
    assert score("6.5", single).status == "not_run"


def test_6_5_is_present_where_nobody_says_the_split_was_held_out() -> None:
    foreign = [suite_facts(), *rows("member:gpt", split="n240"), *rows("compound", split="n240")]
    assert score("6.5", foreign).score == 1
    alone = score("6.5", [suite_facts(), *rows("compound")])
    assert alone.status == "not_run"
    assert "records the compound alone (148 of 240)" in alone.reasons[0]


def priced(compound: int, single: int = 100, **fields: object) -> list[object]:
    return [
        *rows("member:gpt", cost_micro_usd=single),
        *rows("member:opus", cost_micro_usd=single),
        *rows("compound", cost_micro_usd=compound, **fields),
    ]


def test_7_1_is_met_at_two_and_a_half_times_the_best_single() -> None:
    found = score("7.1", priced(308))
    assert found.score == 2
    assert found.measured["ratio"] == pytest.approx((308 / 148) / (100 / 120))
    assert found.measured["single"] == "gpt"


def test_7_1_is_present_above_the_bar_for_either_preset() -> None:
    assert score("7.1", priced(400)).reasons[0] == "3.24 x best single, bar 2.5 x"
    cheap = rows("compound@cost-preserving", range(100), cost_micro_usd=100)
    found = score("7.1", [*priced(300), *cheap])
    assert found.reasons[0] == "cost-preserving preset 1.20 x best single, bar 1.0 x"


def test_7_1_is_no_ratio_while_one_cost_is_unknown() -> None:
    compound_only = [*rows("member:gpt"), *rows("compound", cost_micro_usd=300)]
    found = score("7.1", compound_only)
    assert found.status == "not_run"
    assert found.reasons[0].startswith("needs a billed measurement: the cost of gpt alone on the same tasks")
    assert score("7.1", clean()).reasons[0].startswith("needs locked rows: the cost of every turn of compound")
    assert score("7.1", []).status == "not_run"


def timed(fused: float, single: float | None, **stages: float) -> list[object]:
    return [
        *rows("member:gpt", latency_s=single),
        *rows("member:opus", latency_s=single),
        *rows("compound", latency_s=fused, stage_latency_s=stages),
    ]


def test_7_2_is_met_with_both_readings_stages_and_first_token() -> None:
    found = score("7.2", timed(5.0, 2.0, panel=2.0, judge=3.0, first_token=1.0))
    assert found.score == 2
    assert (found.measured["ratio_total"], found.measured["ratio_added"]) == (2.5, 1.5)
    assert found.measured["quantile"].startswith("linear")


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        (lambda: timed(5.1, 2.0, panel=2.0, first_token=1.0), "p95 2.55 x single (total), bar 2.5 x"),
        (lambda: timed(5.0, 2.0, panel=2.0), "time to first token not recorded"),
        (lambda: timed(5.0, 2.0), "latency is not attributed per stage"),
        (lambda: timed(5.0, None, panel=2.0, first_token=1.0), "no single's latency recorded"),
    ],
    ids=["slow", "no-first-token", "no-stages", "no-single"],
)
def test_7_2_is_present_when_something_is_missing(records: Callable[[], list[object]], reason: str) -> None:
    found = score("7.2", records())
    assert found.score == 1
    assert any(text.startswith(reason) for text in found.reasons), found.reasons


def test_7_2_without_a_single_gives_a_bound_only_and_without_any_time_is_not_run() -> None:
    bound = score("7.2", timed(5.0, None, panel=2.0, first_token=1.0))
    assert bound.measured["ratio_at_least"] == 2.5
    assert "ratio_total" not in bound.measured
    assert score("7.2", timed(5.0, None)).status == "not_run"
    assert score("7.2", clean()).status == "not_run"


def accepted(before: str, after: str | None = None) -> Change:
    return Change(change="prompt", tier=1, accepted=True, arm_before=before, arm_after=after, source="changes.jsonl")


def test_9_3_is_met_by_a_significant_held_out_improvement() -> None:
    found = score("9.3", [*clean(), *rows("compound@untuned", range(4, 140))])
    assert found.score == 2
    assert (found.measured["tuned"], found.measured["untuned"]) == ("compound", "compound@untuned")


def test_9_3_reads_the_arms_that_an_accepted_change_names() -> None:
    found = score("9.3", [*clean(), *rows("compound@shallow", range(4, 140)), accepted("compound@shallow")])
    assert found.score == 2
    assert "changes.jsonl" in found.evidence


def test_9_3_on_a_foreign_split_is_present_without_significance_absent_and_else_not_run() -> None:
    foreign = [*rows("compound", split="n240"), *rows("compound@untuned", range(4, 140), split="n240")]
    assert score("9.3", [*foreign, *rows("member:gpt", split="n240")]).score == 1
    weak = score("9.3", [*clean(), *rows("compound@untuned", range(4, 150))])
    assert (weak.status, weak.reasons[0]) == ("absent", "measured, no evidence (p = .5000)")
    assert score("9.3", clean()).reasons[0].startswith("needs locked rows: the untuned configuration")


@pytest.mark.parametrize(("criterion", "expected"), [("6.5", 1), ("7.1", 1), ("7.2", 1), ("9.3", 0)])
def test_what_is_met_but_invalid_is_withheld(criterion: str, expected: int, findings: Callable[..., None]) -> None:
    records = {
        "6.5": clean(),
        "7.1": priced(300),
        "7.2": timed(5.0, 2.0, panel=2.0, judge=3.0, first_token=1.0),
        "9.3": [*clean(), *rows("compound@untuned", range(4, 140))],
    }[criterion]
    assert score(criterion, records).score == 2
    findings(error("split_reuse", criterion))
    found = score(criterion, records)
    assert (found.score, found.reasons[0]) == (expected, "withheld: split_reuse")


WORDS = {
    "drill": "needs a drill: ",
    "billed": "needs a billed measurement: ",
    "self": "needs the run's own record (self): ",
    "attest": "needs an attestation: ",
}
ELSEWHERE = [c for c in load_rubric().criteria if not {"bank", "locked"} & set(c.source)]


@pytest.mark.parametrize("criterion", [c.id for c in ELSEWHERE])
def test_criteria_of_other_sources_name_the_evidence_they_lack(criterion: str) -> None:
    found = score(criterion, clean())
    first = load_rubric().criterion(criterion).source[0]
    assert (found.status, found.score, found.measured, found.evidence) == ("not_run", 0, {}, ())
    assert found.reasons[0].startswith(WORDS[first])
    assert len(found.reasons[0]) > len(WORDS[first]) + 10


def test_every_criterion_on_nothing_at_all_is_not_run_with_a_reason() -> None:
    for criterion in load_rubric().criteria:
        found = score(criterion.id, [])
        assert (found.status, found.score) == ("not_run", 0), criterion.id
        assert found.reasons[0].startswith("needs "), criterion.id
        assert found.threshold == criterion.met


def test_the_scored_by_are_the_rubrics() -> None:
    assert score("9.1", []).by == "tool"
    assert score("1.1", clean()).by == "target"
