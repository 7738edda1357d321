"""Benchmark envelopes, locked rows and ablations: turns, members, stages, picks, claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_fusion_audit.analysis.validity import find
from pytest_fusion_audit.evidence.importers import import_run
from pytest_fusion_audit.evidence.records import ArmOutcome, Candidate, Claim, Config, Fused, Split
from tests.evidence.importers.import_plants import (
    TASKS,
    ablations,
    codes,
    envelope,
    imported,
    locked_rows,
    note,
    polyglot,
    shallow,
    shipped,
    spend,
    swebench,
    turn,
    write,
)

if TYPE_CHECKING:
    from pathlib import Path


def claims(evidence, arm: str | None) -> dict[str, object]:
    return {c.quantity: c.value for c in evidence.of(Claim) if c.arm == arm}


def test_locked_rows_hold_turns_with_stages_and_primary_samples(tmp_path: Path) -> None:
    evidence, file = imported(tmp_path, "rows.json", locked_rows())
    rewritten, skipped = evidence.of(Fused)[:2]
    assert (rewritten.pick_status, rewritten.pick_member) == ("none", None)
    assert rewritten.stage_cost_micro_usd == {"panel": 200_000, "judge": 20_000, "synthesizer": 30_000}
    assert rewritten.stage_latency_s == {"panel": 8.0, "judge": 2.5, "synthesizer": 2.0}
    assert (skipped.pick_status, skipped.pick_member) == ("named", "gpt")
    assert skipped.stage_cost_micro_usd == {"panel": 200_000, "judge": 20_000}
    assert skipped.stage_latency_s == {"panel": 8.0, "judge": 2.5}
    assert (rewritten.cost_micro_usd, rewritten.latency_s, rewritten.verdict) == (250_000, 12.5, "passed")
    assert [(c.member, c.sample, c.score, c.verdict) for c in evidence.of(Candidate)][:2] == [
        ("gpt", 0, 1.0, "passed"),
        ("opus", 0, 0.0, "failed"),
    ]
    assert evidence.splits == (("livecodebench", "locked"),)
    assert "samples beyond each member's primary one" in file.unknown


def test_compound_and_members_are_judged_by_one_bar(tmp_path: Path) -> None:
    scores = {"a": 0.999, "b": 1 - 1e-12}
    rows = {
        TASKS[0]: turn(TASKS[0], passed=True, score=0.999, candidate_scores=scores),
        TASKS[1]: turn(TASKS[1], passed=False, score=0.999, candidate_scores=scores),
        TASKS[2]: turn(TASKS[2], passed=True, score=1 - 1e-12, candidate_scores=scores),
    }
    evidence, file = imported(tmp_path, "rows.json", rows)
    assert [c.verdict for c in evidence.of(Candidate)] == ["failed", "passed"] * 3
    assert [t.verdict for t in evidence.of(Fused)] == ["ungradeable", "failed", "passed"]
    assert note(file, "totals_disagree").items == (TASKS[0],)
    assert "no_verdict" not in codes(file)


@pytest.mark.parametrize(("passed", "score"), [(True, 0), (True, 0.5), (False, 1)])
def test_a_row_that_contradicts_itself_is_believed_on_neither_side(tmp_path: Path, passed: bool, score: float) -> None:
    torn = turn(TASKS[0], passed=passed, score=score)
    told = "1 rows whose passed and score contradict each other (a score of 1 passes"
    for name, content in (
        ("rows.json", {TASKS[0]: torn, TASKS[1]: turn(TASKS[1])}),
        ("run.jsonl", envelope(torn, turn(TASKS[1]))),
    ):
        evidence, file = imported(tmp_path, name, content)
        (found,) = (f for f in find(evidence) if f.code == "totals_disagree")
        assert found.severity == "error"
        assert told in found.message
        assert TASKS[0] in found.message
        assert {"1.1", "1.2", "1.3"} <= set(found.affects)
        first, second = evidence.of(Fused)
        assert (first.verdict, first.reason) == ("ungradeable", "passed_and_score_disagree")
        assert second.verdict == "passed"
        assert note(file, "totals_disagree").count == 1


def test_a_failure_at_a_part_of_the_score_is_none(tmp_path: Path) -> None:
    evidence, file = imported(tmp_path, "rows.json", {TASKS[0]: turn(TASKS[0], passed=False, score=0.9)})
    assert evidence.of(Fused)[0].verdict == "failed"
    assert codes(file) == set()


def test_a_member_passes_at_a_score_of_one_and_not_below(tmp_path: Path) -> None:
    rows = {TASKS[0]: turn(TASKS[0], candidate_scores={"a": 0.99, "b": 1, "c": None})}
    evidence, file = imported(tmp_path, "rows.json", rows)
    assert [c.verdict for c in evidence.of(Candidate)] == ["failed", "passed", None]
    assert note(file, "no_verdict").count == 1


@pytest.mark.parametrize(
    ("row", "state", "passed"),
    [
        (turn("t", passed=False), "scored", False),
        (turn("t", passed=None), "not_run", None),
        (turn("t", passed=None, outcome="model_failed", error_reason="500"), "not_run", None),
        (turn("t", passed=False, outcome="infra_error"), "not_run", None),
        (turn("t", passed=None, outcome="excluded"), "not_run", None),
        (turn("t", passed=None, outcome="pipeline_error"), "pipeline_error", False),
    ],
)
def test_case_49_every_task_ends_in_one_state(tmp_path: Path, row, state, passed) -> None:
    evidence, _ = imported(tmp_path, "run.jsonl", [envelope(turn("x"), row)])
    found = evidence.arm("livecodebench", "run", "compound")["t"]
    assert (found.state, found.passed) == (state, passed)


def test_case_49_states_add_up_and_cost_stays(tmp_path: Path) -> None:
    rows = [
        turn("t1", cost_usd=0.1),
        turn("t2", cost_usd=0.1),
        turn("t3", passed=False, cost_usd=0.1),
        turn("t4", passed=None, outcome="infra_error", cost_usd=0.0, error_reason="context_length_exceeded"),
        turn("t5", passed=None, outcome="infra_error", cost_usd=0.05, error_reason="HTTP 500 after retries"),
        turn("t6", passed=None, outcome="excluded", cost_usd=None),
    ]
    evidence, file = imported(tmp_path, "run.jsonl", [envelope(*rows)])
    found = evidence.arm("livecodebench", "run", "compound")
    assert [found[f"t{n}"].outcome for n in range(4, 7)] == ["context_length", "provider_error", None]
    assert [found[f"t{n}"].state for n in range(1, 7)] == ["scored"] * 3 + ["not_run"] * 3
    assert sum(row.cost_micro_usd or 0 for row in found.values()) == 350_000
    assert found["t6"].reason == "excluded"
    (split,) = evidence.of(Split)
    assert (split.planned, split.complete) == (6, False)
    assert not codes(file)


def test_an_envelope_says_what_its_run_was(tmp_path: Path) -> None:
    evidence, file = imported(tmp_path, "locked-test.jsonl", [envelope()])
    (run,) = [c for c in evidence.of(Config) if c.what == "run"]
    assert (run.suite, run.split) == ("livecodebench", "locked")
    assert run.facts == {
        "harness": "lcb",
        "harness_version": "v6",
        "gateway_model": "fusionkit/panel",
        "panel_id": "peers",
        "mount_mode": "fusion_behind_agent",
        "repo_sha": "abc",
        "prompt_template_hash": "sha256:00",
        "dataset_revision": "v6",
        "checker_mode": "exact",
        "generated_at": "2026-01-02T03:04:05+00:00",
        "window_min_date": "2025-01-01",
        "cost_scope": "full_fusion_pipeline",
        "config_hash": "c1",
        "models": {"gpt": "gpt-5.5", "opus": "claude-opus-4-8"},
    }
    assert {"output_cap of the run", "seed of the run", "panel_hash of the run"} <= set(file.unknown)
    assert claims(evidence, "compound") == {
        "n": 4,
        "passed": 3,
        "pass_rate": 0.75,
        "cost_usd": 1.0,
        "cost_per_task_usd": 0.25,
    }


def test_a_cost_of_the_panel_alone_is_no_cost_of_the_turn(tmp_path: Path) -> None:
    made = envelope()
    made["provenance"]["cost_scope"] = "solver_candidates_only"
    evidence, file = imported(tmp_path, "smoke.jsonl", [made])
    one = evidence.of(Fused)[0]
    assert (one.split, one.cost_micro_usd, one.stage_cost_micro_usd) == ("smoke", None, {"panel": 250_000})
    assert any("solver_candidates_only" in text for text in file.unknown)
    assert claims(evidence, "compound")["stage_cost_usd/panel"] == 1.0
    assert "cost_usd" not in claims(evidence, "compound")


def test_the_same_run_again_is_a_replicate_and_another_configuration_is_not(tmp_path: Path) -> None:
    again = envelope(*(turn(task, passed=False) for task in TASKS))
    other = envelope(*(turn(task, passed=False) for task in TASKS))
    other["provenance"]["prompt_template_hash"] = "sha256:ff"
    evidence, file = imported(tmp_path, "run.jsonl", [envelope(), again, other, envelope()])
    assert evidence.replicates("livecodebench", "run", "compound") == (0, 1)
    assert evidence.splits == (("livecodebench", "run"), ("livecodebench", "run-line3"))
    assert codes(file) == {"other_configuration", "duplicate_ids"}


def test_other_doors_of_a_gateway_are_arms_of_their_own(tmp_path: Path) -> None:
    evidence, _ = imported(tmp_path, "run.jsonl", [envelope(gateway_model="fusionkit/router")])
    assert "router" in evidence.arms("livecodebench", "run")


def test_a_crashed_run_is_visible(tmp_path: Path) -> None:
    crashed = {**envelope(), "tasks": [], "unavailable_reason": "no docker"}
    crashed |= {"resolved_tasks": 0, "total_tasks": 0, "passed_tasks": 0, "score": None, "cost_total_usd": 0}
    evidence, file = imported(tmp_path, "run.jsonl", [crashed])
    assert "no docker" in note(file, "empty_run").message
    assert not evidence.splits


def test_ablations_become_one_arm_a_policy_and_claims(tmp_path: Path) -> None:
    evidence, _ = imported(tmp_path, "ablations.json", ablations())
    arms = ("compound:exec_select", "compound:rewrite", "compound:select_best")
    assert evidence.splits == (("livecodebench", "baseline"),)
    assert evidence.arms("livecodebench", "baseline") == arms
    rewrite = claims(evidence, "compound:rewrite")
    assert rewrite["pass_rate"] == 0.75
    assert rewrite["regret/judge"] == 0.0
    assert rewrite["picks_named"] == 3
    assert rewrite["wilson_low"] == 0.3
    assert "judge_pick_accuracy_strict" not in rewrite
    versus = claims(evidence, "compound:rewrite~member:gpt")
    assert versus == {"uplift": 0.1, "wins": 1, "losses": 0, "chi2_cc": 0.0, "significant": False}
    assert claims(evidence, None)["best_single"] == {"arm": "member:gpt", "rate": 0.75}
    assert claims(evidence, None)["leave_one_out/gpt"] == 0.5
    assert all(outcome.source == "ablations.json" for outcome in evidence.of(ArmOutcome))


@pytest.mark.parametrize(
    ("name", "split", "arm"),
    [
        ("ablations.json", "baseline", "compound:rewrite"),
        ("dev-ablations-deep.json", "dev", "compound:rewrite"),
        ("dev-ablations-trunc8000.json", "dev", "compound:rewrite@trunc8000"),
        ("val-ablations.json", "val", "compound:rewrite"),
        ("something.json", "dev", "compound:rewrite"),
    ],
)
def test_ablations_are_named_by_their_stem(tmp_path: Path, name: str, split: str, arm: str) -> None:
    evidence, _ = imported(tmp_path, name, ablations())
    assert evidence.splits == (("livecodebench", split),)
    assert arm in evidence.arms("livecodebench", split)


def self_ablations() -> dict:
    alone = {"full_oracle": 0.75, "members": {"gpt": {"solo_rate": 0.75, "marginal_oracle_value": 0.75}}}
    return ablations(leave_one_out_2_3=alone)


def test_a_bank_of_one_member_is_a_self_ensemble_of_stated_depth(tmp_path: Path) -> None:
    evidence, file = imported(tmp_path, "anything.json", self_ablations())
    assert evidence.arms("livecodebench", "dev")[1] == "self:gpt*6:rewrite"
    assert any("taken as 6" in text for text in file.unknown)
    write(tmp_path, "runs/self-ablations.json", self_ablations())
    write(tmp_path, "runs/spend.jsonl", spend())
    evidence = import_run(tmp_path / "runs")
    assert evidence.arms("livecodebench", "dev")[1] == "self:gpt*4:rewrite"


def test_polyglot_results_have_languages_as_classes(tmp_path: Path) -> None:
    evidence, file = imported(tmp_path, "poly-full-eval-trunc8000.json", polyglot())
    assert evidence.splits == (("polyglot", "locked"),)
    assert evidence.arms("polyglot", "locked") == ("compound@trunc8000",)
    assert evidence.tasks("polyglot", "locked")["go/forth"].task_class == "go"
    assert claims(evidence, "compound@trunc8000~member:opus")["losses"] == 1
    assert claims(evidence, None)["best_single"] == {"arm": "member:opus", "rate": 1.0}
    assert any("members" in text for text in file.unknown)


def test_the_shallow_incumbent_is_an_arm_of_dev(tmp_path: Path) -> None:
    evidence, _ = imported(tmp_path, "shallow-vs-deep.json", shallow())
    rows = evidence.arm("livecodebench", "dev", "compound:rewrite@shallow")
    assert [row.passed for row in rows.values()] == [True, True, False, False]
    assert claims(evidence, "compound:select_best~compound:rewrite@shallow")["wins"] == 1


def test_the_served_path_counts_a_pipeline_error_as_its_own_fault(tmp_path: Path) -> None:
    evidence, _ = imported(tmp_path, "shipped.json", shipped())
    rows = evidence.arm("livecodebench", "locked", "served")
    assert [(row.state, row.passed) for row in rows.values()] == [
        ("scored", True),
        ("scored", True),
        ("pipeline_error", False),
        ("scored", False),
    ]
    assert claims(evidence, "served~compound")["losses"] == 1


def test_official_reports_score_errors_and_empty_patches_as_not_resolved(tmp_path: Path) -> None:
    evidence, _ = imported(tmp_path, "compound.json", swebench())
    assert evidence.splits == (("swebench-verified", "n4"),)
    rows = evidence.arm("swebench-verified", "n4", "compound")
    assert [(row.passed, row.reason, row.outcome) for row in rows.values()] == [
        (True, None, None),
        (False, None, None),
        (False, "error_ids", None),
        (False, "empty_patch_ids", "empty"),
    ]
    assert "astropy__astropy-9" not in rows


def test_an_instance_both_resolved_and_not_is_on_no_side(tmp_path: Path) -> None:
    both = swebench(unresolved_ids=["django__django-1", "django__django-2"], unresolved_instances=2)
    evidence, file = imported(tmp_path, "solo.json", both)
    row = evidence.arm("swebench-verified", "n4", "member:solo")["django__django-1"]
    assert (row.state, row.reason) == ("not_run", "duplicate_ids")
    assert note(file, "duplicate_ids").items == ("django__django-1",)
