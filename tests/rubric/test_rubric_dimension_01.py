"""Dimension 1 on planted runs: 2, 1, 0 and not_run of every criterion, and what is significant but invalid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_fusion_audit.analysis.validity import Finding
from pytest_fusion_audit.evidence.records import Candidate, ComparisonPlan, Config, Fused
from tests.rubric.rubric_plants import SUITE, changed, classed, clean, evidence, ids, rows, score, served, suite_facts

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("findings")

SECOND = "edits-of-ours"


def second(family: str = "multi-turn edit", split: str = "locked") -> list[object]:
    arms = ("member:gpt", "member:opus", "compound")
    tasks = range(100)
    passes = {"member:gpt": range(30), "member:opus": range(20), "compound": range(2, 60)}
    found = [row for arm in arms for row in rows(arm, passes[arm], suite=SECOND, split=split, tasks=tasks)]
    return [suite_facts(SECOND, family=family, agentic=False), *found]


def plan(**changes: object) -> ComparisonPlan:
    arms = ("compound", "member:gpt", "member:opus")
    return ComparisonPlan(**{"suite": SUITE, "split": "locked", "arms": arms, "n": 240, "role": "primary", **changes})


def test_1_1_is_met_on_a_held_out_public_agentic_suite_with_a_served_path_check() -> None:
    found = score("1.1", clean())
    assert (found.score, found.status, found.evidence_class) == (2, "met", "measured")
    assert (found.measured["wins"], found.measured["losses"], found.measured["n"]) == (32, 4, 240)
    assert found.measured["over"] == "gpt"
    assert found.measured["uplift"] == pytest.approx(28 / 240)
    assert found.measured["exact_p"] == found.measured["against"]["gpt"]["exact_p"]
    assert found.measured["held_out"] is True
    assert found.evidence == ("locked.json", "evidence/candidate.jsonl", "evidence/fused.jsonl")


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        (lambda: clean()[1:], "tasks-of-ours is not known to be public"),
        (lambda: [suite_facts(agentic=False), *clean()[1:]], "tasks-of-ours is not agentic"),
        (lambda: [r for r in clean() if not (isinstance(r, Fused) and r.arm == "served")], "no served-path check"),
        (lambda: [*clean()[:-60], *served(tasks=range(20))], "served-path check too small: 20 tasks, 25 needed"),
        (lambda: [*clean()[:-60], *served(passes=range(30, 60))], "served-path check failed: 0 won, 26 lost"),
        (lambda: changed(clean(), _is_served(3), outcome="pipeline_error"), "served-path check failed: 1 pipeline"),
        (lambda: [r for r in clean() if getattr(r, "task", "t") < "t190"], "too few: n = 190 < 200"),
        (lambda: changed(clean(), lambda r: hasattr(r, "verdict"), split="n240"), "held-out status unknown"),
    ],
    ids=["facts", "agentic", "unserved", "few-served", "served-loses", "served-errs", "few", "foreign-split"],
)
def test_1_1_is_present_when_something_a_2_needs_is_missing(records: Callable[[], list[object]], reason: str) -> None:
    found = score("1.1", records())
    assert found.score == 1
    assert any(text.startswith(reason) for text in found.reasons), found.reasons


def _is_served(number: int) -> Callable[[object], bool]:
    return lambda r: isinstance(r, Fused) and r.arm == "served" and r.task == ids([number])[0]


def test_1_1_needs_every_member_beaten() -> None:
    found = score("1.1", [*clean(), *rows("member:third", range(150))])
    assert found.status == "absent"
    assert found.reasons[0].startswith("measured, no evidence (p = ")
    assert found.measured["over"] == "third"
    assert any("third is not beaten" in reason for reason in found.reasons)


def test_1_1_reads_5_wins_to_0_as_borderline_and_no_evidence() -> None:
    records = [suite_facts(), *rows("member:gpt", range(100)), *rows("compound", range(105)), *served(range(60))]
    found = score("1.1", records)
    assert (found.score, found.measured["decision"]) == (0, "borderline: not shown")
    assert found.reasons[0] == "measured, no evidence (p = .0625)"


def test_1_1_counts_the_whole_official_suite_as_enough() -> None:
    records = [r for r in clean() if getattr(r, "task", "t") < "t190"]
    assert score("1.1", [*records, Config(what="suite", suite=SUITE, facts={"official_tasks": 190})]).score == 2
    assert score("1.1", [*records, Config(what="suite", suite=SUITE, facts={"official_tasks": 500})]).score == 1


def test_1_1_takes_the_registered_suite_for_the_primary_and_else_the_largest() -> None:
    both = [*clean(), *second()]
    assert score("1.1", both).measured["arm"] == f"{SUITE}/locked/compound"
    registered = [*both, plan(suite=SECOND, n=100)]
    found = score("1.1", registered)
    assert found.measured["arm"] == f"{SECOND}/locked/compound"
    assert f"primary suite: {SECOND}, by its registration" in found.reasons


def test_1_1_without_members_rows_is_not_run() -> None:
    found = score("1.1", rows("compound"))
    assert (found.status, found.score) == ("not_run", 0)
    assert found.reasons == (f"needs locked rows: every member's verdicts on the tasks of {SUITE}/locked",)
    assert score("1.1", rows("member:gpt")).reasons[0].startswith("needs locked rows")


def test_1_1_never_comes_from_the_split_that_was_tuned_on() -> None:
    assert score("1.1", changed(clean(), lambda r: hasattr(r, "verdict"), split="dev")).status == "not_run"


def test_1_2_is_met_on_another_family() -> None:
    found = score("1.2", [*clean(), *second()])
    assert found.score == 2
    assert (found.measured["wins"], found.measured["n"]) == (30, 100)


def test_1_2_is_present_where_the_second_suite_is_not_public() -> None:
    records = [*clean(), *second()[1:], suite_facts(SECOND, family="terminal", public=False)]
    found = score("1.2", records)
    assert found.score == 1
    assert f"{SECOND} is not known to be public" in found.reasons


def test_1_2_is_not_run_without_a_second_family() -> None:
    assert score("1.2", [*clean(), *second(family="repository issue")]).status == "not_run"
    alone = [r for r in second() if not isinstance(r, Candidate)]
    found = score("1.2", [*clean(), *alone])
    assert found.status == "not_run"
    assert found.reasons[0].startswith("needs locked rows: edits-of-ours/locked records the compound alone (58 of 100)")


def test_1_2_without_significance_is_absent() -> None:
    weak = changed(second(), lambda r: isinstance(r, Fused) and r.task > "t030", verdict="failed")
    found = score("1.2", [*clean(), *weak])
    assert found.status == "absent"
    assert found.reasons[0].startswith("measured, no evidence (p = ")


def test_1_3_asks_for_three_points() -> None:
    assert score("1.3", clean()).score == 2
    small = [*rows("member:gpt", range(120)), *rows("compound", range(126))]
    found = score("1.3", small)
    assert found.score == 1
    assert found.reasons[0] == "uplift +2.5 points, +3 needed"
    none = score("1.3", [*rows("member:gpt", range(120)), *rows("compound", range(121))])
    assert (none.score, none.status) == (0, "absent")
    assert score("1.3", []).status == "not_run"


def test_1_4_is_met_where_no_member_wins_anywhere() -> None:
    found = score("1.4", [*clean(), *second()])
    assert (found.score, found.measured["suites"]) == (2, 2)


def test_1_4_is_present_where_a_member_wins() -> None:
    found = score("1.4", [*rows("member:gpt", range(6)), *rows("compound", range(1))])
    assert found.score == 1
    assert "gpt beats the compound: 0 won, 5 lost of 240" in found.reasons[0]


def test_1_4_reads_a_registered_class_and_only_remarks_on_others() -> None:
    lost = [*rows("member:gpt", range(60)), *rows("compound", [*range(52), *range(100, 200)])]
    tasks = classed({"hard": range(40, 80), "easy": range(80, 240)})
    found = score("1.4", [*lost, *tasks])
    assert found.score == 2
    assert any(reason.startswith("exploratory, the class was not registered") for reason in found.reasons)
    registered = score("1.4", [*lost, *tasks, plan(arms=("compound", "member:gpt"), classes=("hard",))])
    assert registered.score == 1
    assert "class hard: gpt beats the compound" in registered.reasons[0]


def test_1_4_ignores_classes_below_thirty_tasks() -> None:
    lost = [*rows("member:gpt", range(60)), *rows("compound", [*range(52), *range(100, 200)])]
    found = score("1.4", [*lost, *classed({"hard": range(45, 74)}), plan(arms=("compound",), classes=("hard",))])
    assert found.score == 2
    assert found.measured[f"{SUITE}/locked"]["classes"] == {}


def test_1_4_meets_the_same_model_with_more_room_for_its_answer() -> None:
    models = {"requested_model": "gpt-5.5", "parameters_sent": {"max_tokens": 4096}}
    roomy = {"requested_model": "gpt-5.5", "parameters_sent": {"max_tokens": 16384}}
    records = [*rows("member:gpt", range(100), **models), *rows("compound", range(120))]
    found = score("1.4", [*records, *rows("member:gpt@16384", range(140), split="caps", **roomy)])
    assert found.score == 1
    assert "gpt@16384 (gpt-5.5, 16384 tokens instead of 4096) beats the compound" in found.reasons[0]


def test_1_4_cannot_speak_for_a_suite_without_members() -> None:
    alone = [r for r in second() if not isinstance(r, Candidate)]
    found = score("1.4", [*clean(), *alone])
    assert found.score == 1
    assert found.reasons[0].startswith("edits-of-ours/locked has no member rows")
    assert score("1.4", alone).status == "not_run"


def seeds(*starts: int) -> list[object]:
    found: list[object] = []
    for replicate, start in enumerate(starts):
        found += rows("member:gpt", range(120), replicate=replicate)
        found += rows("compound", range(start, 152), replicate=replicate)
    return found


def test_1_5_is_met_by_three_seeds_whose_interval_excludes_0() -> None:
    found = score("1.5", seeds(4, 2, 6))
    assert found.score == 2
    assert found.measured["uplift_per_seed"] == pytest.approx([28 / 240, 30 / 240, 26 / 240])
    assert found.measured["low"] > 0


@pytest.mark.parametrize(
    ("starts", "reason"),
    [
        ((4, 2), "2 seeds, 3 needed"),
        ((4, 2, 60), "the uplift changes its sign over seeds"),
        ((0, 10, 31), "the interval over seeds does not exclude 0"),
    ],
)
def test_1_5_is_present_when_seeds_do_not_agree(starts: tuple[int, ...], reason: str) -> None:
    found = score("1.5", seeds(*starts))
    assert found.score == 1
    assert reason in found.reasons


def test_1_5_is_not_run_on_one_seed() -> None:
    found = score("1.5", clean())
    assert found.status == "not_run"
    assert found.reasons[0].startswith(
        "needs a billed measurement: the evaluation repeated with >= 3 seeds, 1 recorded"
    )


def test_1_6_names_what_it_lacks() -> None:
    found = score("1.6", clean())
    assert (found.status, found.score) == ("not_run", 0)
    assert found.reasons[0].startswith("needs a billed measurement: ")


@pytest.mark.parametrize("criterion", ["1.1", "1.2", "1.3"])
def test_a_significant_uplift_is_withheld_by_any_validity_error(criterion: str, findings: Callable[..., None]) -> None:
    findings(Finding("ledger_mismatch", "error", "planted", ("ledger.jsonl",), ("7.5",)))
    found = score(criterion, [*clean(), *second()])
    assert (found.score, found.status) == (0, "absent")
    assert found.reasons[0] == "withheld: ledger_mismatch"
    assert found.measured["wins"]


def test_an_uplift_that_the_bound_does_not_identify_says_so(findings: Callable[..., None]) -> None:
    findings(Finding("truncated_answers", "error", "…: uplift not identified", (), ("1.1", "1.4")))
    assert score("1.1", clean()).reasons[:2] == ("withheld: truncated_answers", "uplift not identified")
    never = score("1.4", clean())
    assert (never.score, never.reasons) == (1, ("withheld: truncated_answers",))


def test_a_warning_withholds_nothing(findings: Callable[..., None]) -> None:
    findings(Finding("estimates_only", "warning", "planted", (), ("1.1",)))
    assert score("1.1", clean()).score == 2


def test_a_simulated_run_waives_public_agentic_and_served_in_a_class_of_its_own() -> None:
    records = [suite_facts(public=False, agentic=False), *clean()[1:-60]]
    found = score("1.1", records, mode="offline", journal=True)
    assert (found.score, found.evidence_class) == (2, "simulated")
    assert "waived: simulated (public, agentic, served)" in found.reasons
    few = [r for r in records if getattr(r, "task", "t") < "t190"]
    assert score("1.1", few, mode="offline").score == 1
    not_code = [suite_facts(public=False, agentic=False, coding=False), *records[1:]]
    assert score("1.1", not_code, mode="offline").score == 1


def test_an_imported_run_is_scored_in_its_class() -> None:
    found = score("1.1", clean(), mode="imported", journal=False)
    assert (found.score, found.evidence_class) == (2, "imported")


def test_real_findings_reach_the_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    cut = changed(
        clean(), lambda r: isinstance(r, Candidate) and r.member == "gpt" and r.task > "t199", outcome="truncated"
    )
    found = score("1.1", cut)
    assert found.score == 0
    assert "withheld: truncated_answers" in found.reasons
    assert evidence(cut).run.mode == "live"


CONTROL = "self:gpt*4:rewrite"


def _priced(passes: range) -> list[object]:
    """A clean run with costs, and the best single sampled for the same dollars."""
    dear = changed(clean(), lambda r: getattr(r, "arm", "") == "compound", cost_micro_usd=200_000)
    return [*dear, *rows(CONTROL, passes, cost_micro_usd=199_000)]


@pytest.mark.parametrize(
    ("passes", "says"),
    [
        (range(2, 160), f"at equal dollars {CONTROL} does no worse than the compound: 0 won, 10 lost of 240"),
        (range(4, 148), f"at equal dollars {CONTROL} is not shown to be worse than the compound: 4 won, 0 lost of 240"),
        (range(4, 120), None),
    ],
)
def test_a_control_that_is_not_worse_stands_beside_the_uplift(passes: range, says: str | None) -> None:
    for criterion in ("1.1", "1.3"):
        found = score(criterion, _priced(passes))
        assert found.score == 2
        assert found.measured["equal_dollars"]["over"] == CONTROL
        assert found.measured["equal_dollars"]["of_best_single"] is True
        told = [reason for reason in found.reasons if reason.startswith("at equal dollars")]
        assert [reason.startswith(says) for reason in told] == ([True] if says else [])


def test_a_control_of_another_member_that_is_not_worse_says_whose_it_is() -> None:
    records = changed(_priced(range(2, 160)), lambda r: getattr(r, "arm", "") == CONTROL, arm="self:opus*4:rewrite")
    (reason,) = (r for r in score("1.1", records).reasons if r.startswith("at equal dollars"))
    assert "self:opus*4:rewrite (of opus, not of the best single) does no worse than the compound" in reason


def test_without_a_control_at_equal_dollars_nothing_is_said_of_one() -> None:
    assert "equal_dollars" not in score("1.1", clean()).measured
    cheap = changed(_priced(range(2, 160)), lambda r: getattr(r, "arm", "") == CONTROL, cost_micro_usd=50_000)
    assert "equal_dollars" not in score("1.1", cheap).measured


def test_the_second_family_has_a_control_of_its_own() -> None:
    more = changed(second(), lambda r: getattr(r, "arm", "") == "compound", cost_micro_usd=200_000)
    own = rows(CONTROL, range(2, 70), suite=SECOND, tasks=range(100), cost_micro_usd=210_000)
    found = score("1.2", [*clean(), *more, *own])
    assert found.measured["equal_dollars"]["n"] == 100
    assert f"at equal dollars {CONTROL} does no worse than the compound" in found.reasons[0]
