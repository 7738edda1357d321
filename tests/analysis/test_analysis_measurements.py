# ruff: noqa: FBT003 - a verdict reads best in its place
from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest

from pytest_fusion_audit.analysis import measurements
from pytest_fusion_audit.analysis.measurements import measure
from pytest_fusion_audit.evidence.records import Claim, Phase, Route
from tests.analysis.analysis_records import (
    SPLIT,
    SUITE,
    candidate,
    evidence,
    fused,
    outcome,
    outcomes,
    primaries,
    task,
)

AT = f"{SUITE}/{SPLIT}"
GPT, OPUS, FUSED = "++++--", "++--+-", "+++-++"


def everything():
    """One run with every kind of figure in it."""
    turns = [
        fused(
            f"t{n}", mark == "+", pick_member="gpt", pick_status="named", judge_confidence=0.5 + n / 20,
            cost_micro_usd=400, latency_s=9.0, stage_cost_micro_usd={"panel": 300, "judge": 100},
            stage_latency_s={"panel": 6.0, "judge": 3.0},
        )
        for n, mark in enumerate(FUSED)
    ]  # fmt: skip
    facts = {"cost_micro_usd": 100, "latency_s": 4.0, "outcome": "answered"}
    return evidence(
        primaries("gpt", GPT, **facts), primaries("opus", OPUS, **facts), primaries("gpt", "--++--", sample=1, **facts),
        primaries("opus", "------", sample=1, **facts), turns,
        outcomes("compound", "+-++++", replicate=1), outcomes("compound:rewrite", "++++--"), outcomes("served", "++"),
        outcomes("self:gpt*2:rewrite", "+-+---"), outcomes("compound:rewrite", "+--", split="dev"),
        outcomes("member:gpt", "-+-", split="dev"),
        [task(f"t{n}", task_class="easy" if n < 3 else "hard", cluster=f"c{n // 2}") for n in range(6)],
        [Route(task=f"t{n}", suite=SUITE, split=SPLIT, router="length", decision="compound") for n in range(6)],
        Phase(phase="3", est_micro_usd=5, cum_micro_usd=5, line=1, source="ledger"),
        Phase(phase="6", est_micro_usd=7, cum_micro_usd=11, line=2, source="ledger"),
        Claim(quantity="score", criterion="1.1", value=1, source="card"),
        Claim(quantity="weight", criterion="1", value=20, source="card"),
    )  # fmt: skip


@pytest.fixture(scope="module")
def found():
    return measure(everything())


def test_names_are_sorted_and_values_are_builtins_that_json_keeps(found):
    assert list(found) == sorted(found)
    assert json.loads(json.dumps(dict(found), allow_nan=False)) == dict(found)
    for name, value in found.items():
        for item in value if type(value) is list else [value]:
            assert item is None or type(item) in {bool, int, float, str}, name
            assert not isinstance(item, float) or math.isfinite(item), name


def test_the_names_of_the_contract(found):
    """Issue point 8: names that other tools read."""
    arm = (
        "n passed pass_rate wilson_low wilson_high cost_usd cost_per_task_usd cost_per_solve_usd latency_p50_s "
        "latency_p95_s empty truncated"
    )
    pair = "wins losses uplift exact_p mid_p chi2_cc tango_low tango_high newcombe_low newcombe_high"
    names = [f"{AT}/member:gpt/{q}" for q in arm.split()]
    names += [f"{AT}/served~member:gpt/{q}" for q in pair.split()]
    names += [f"{AT}/compound~dev/member:gpt/{q}" for q in (*pair.split(), "n")]
    names += [f"{AT}/{q}" for q in ("oracle", "headroom", "decision_tasks", "rescues", "losses_to_pool")]
    names += [f"{AT}/failure_correlation/gpt~opus", f"{AT}/leave_one_out/gpt", f"{AT}/leave_one_out/opus"]
    names += [f"{AT}/regret/{q}" for q in ("total", "judge", "synthesis")]
    names += [f"{AT}/compound:rewrite/regret/total", "ledger/sum_est_usd", "ledger/last_cum_usd"]
    names += ["scorecard/published_total", "scorecard/published_out_of"]
    assert set(names) <= set(found)


def test_values_by_hand(found):
    expected = {
        "member:gpt/n": 6, "member:gpt/passed": 4, "member:gpt/cost_usd": 0.0006, "member:gpt/latency_p50_s": 4.0,
        "member:gpt/empty": None, "member:gpt/truncated": None, "member:gpt/states/scored": 6,
        "compound/stage/judge/cost_usd": 0.0006, "compound/stage/panel/latency_p95_s": 6.0,
        "oracle": 5 / 6, "oracle_n": 6, "members": 2, "best_single": "member:gpt", "best_single_rate": 4 / 6,
        "decision_tasks": 5, "both_fail": 1, "both_pass": 0, "pool": "recorded primaries", "pool_left_out": 0,
        "win_rates/gpt": 2 / 3, "failure_correlation_n/gpt~opus": 6, "leave_one_out/opus": 1 / 6,
        "best_subset/1/members": "gpt", "best_subset/1/oracle": 4 / 6,
        "matched_samples/2/n": 6, "matched_samples/2/best_single": "member:gpt",
        "class/easy/oracle_n": 3, "class/hard/best_single": "member:gpt",
        "regret/n": 6, "regret/total": 0.0, "regret/judge": 1 / 6, "judge_pick_rate": 4 / 6, "picks_named": 6,
        "judge_pick_accuracy": 4 / 5, "judge_pick_accuracy_n": 5, "judge_pick_accuracy_strict_n": 1,
        "class/hard/judge_pick_accuracy_strict_n": 1, "synthesis_regressions": 1, "synthesis_improvements": 2,
        "synthesis_regressions_n": 6, "rescues": None, "passes_outside_recorded": 1, "losses_to_pool": 1,
        "judge_calibration/n": 6, "compound/against_panel/member": "member:gpt", "policies/n": 6,
        "router/length/n": 6, "router/length/fused_share": 1.0, "router/length/cost_share": 1.0,
        "compound/depth/verdicts/fused": 3,
        "served~member:gpt/n": 2, "served~member:gpt/unshared": 4, "served~member:gpt/class/easy/n": 2,
        "compound:rewrite~self:gpt*2:rewrite/self_samples": 2,
        "compound:rewrite~self:gpt*2:rewrite/panel_samples": None,
        "compound~member:gpt/test": "sign-flip permutation on task means",
        "compound:rewrite~member:opus/latency_p95_ratio": None,
        "compound:rewrite~member:opus/clusters": 3,
        "compound:rewrite~dev/member:gpt/wins": 2, "compound:rewrite~dev/member:gpt/n": 3,
    }  # fmt: skip
    assert {name: found[f"{AT}/{name}"] for name in expected} == pytest.approx(expected)
    assert found[f"{AT}/compound~member:gpt/seeds/uplifts"] == pytest.approx([1 / 6, 1 / 6])
    assert {name: found[name] for name in found if name.startswith(("ledger", "scorecard"))} == {
        "ledger/cum_minus_sum_usd": -0.000001, "ledger/largest_gap_usd": 0.000001, "ledger/last_cum_usd": 0.000011,
        "ledger/lines": 2, "ledger/phase6_over_reserve_usd": -89.999993, "ledger/phase6_usd": 0.000007,
        "ledger/reserve_usd": 90.0, "ledger/sum_est_usd": 0.000012, "ledger/sum_measured_usd": None,
        "scorecard/published_criteria": 1, "scorecard/published_out_of": 20, "scorecard/published_total": 10.0,
    }  # fmt: skip


def test_pairs_across_splits_are_listed_both_ways_round_and_never_without_tasks(found):
    assert any(name.startswith(f"{AT}/member:") and "~dev/" in name for name in found)
    assert not any(name.startswith(f"{SUITE}/dev/compound:rewrite~{SPLIT}/nobody") for name in found)
    assert f"{SUITE}/dev/compound:rewrite~{SPLIT}/compound/n" in found


def test_splits_without_a_shared_task_have_no_pairs():
    run = evidence(outcomes("compound", "+"), outcome("other", "compound", True, split="dev"))
    assert not any("~" in name for name in measure(run))
    half = evidence(outcomes("compound", "+"), outcomes("served", " +"), outcomes("compound", "+", split="dev"))
    names = [name for name in measure(half) if name.endswith("/n") and "~dev" in name]
    assert names == [f"{AT}/compound~dev/compound/n"]


def test_suites_are_never_paired():
    run = evidence(outcomes("compound", "+"), outcomes("compound", "+", suite="another", split="dev"))
    assert not any("~" in name for name in measure(run))


def test_many_arms_are_paired_from_the_compounds_only():
    members = [primaries(f"m{n}", "+-") for n in range(16)]
    few, many = measure(evidence(members)), measure(evidence(members, outcomes("compound", "++")))
    assert f"{AT}/member:m0~member:m1/wins" in few
    assert f"{AT}/member:m0~member:m1/wins" not in many
    assert f"{AT}/compound~member:m1/wins" in many


def test_configurations_beside_each_other_have_figures_of_their_own():
    run = evidence(primaries("gpt", "+-", config="4096"), primaries("gpt", "++", config="16384"))
    found = measure(run)
    assert (found[f"{AT}/oracle"], found[f"{AT}/oracle@4096"], found[f"{AT}/oracle@16384"]) == (1.0, 0.5, 1.0)
    assert found[f"{AT}/best_single@4096"] == "member:gpt@4096"


def test_the_best_subsets_stop_where_there_are_too_many(monkeypatch):
    run = evidence([primaries(f"m{n}", "+-" if n else "-+") for n in range(4)])
    assert measure(run)[f"{AT}/best_subset/2/members"] == "m0+m1"
    monkeypatch.setattr("pytest_fusion_audit.analysis.measured_pools.MOST_SUBSETS", 4)
    again = measure(evidence([primaries(f"m{n}", "+-") for n in range(4)]))
    assert f"{AT}/best_subset/1/oracle" in again
    assert f"{AT}/best_subset/2/oracle" not in again


def test_two_published_scorecards_are_named_by_file():
    claims = [Claim(quantity="score", criterion="1.1", value=1, source=name) for name in ("a.json", "b.json")]
    assert {name for name in measure(evidence(claims)) if name.endswith("criteria")} == {
        "scorecard/a.json/published_criteria", "scorecard/b.json/published_criteria",
    }  # fmt: skip


def test_no_evidence_has_no_measurements():
    assert measure(evidence()) == {}


def test_an_unscored_split_is_unknown_and_not_zero():
    found = measure(evidence(candidate("t0", "gpt", None), candidate("t0", "opus", None)))
    assert found[f"{AT}/member:gpt/n"] == found[f"{AT}/oracle_n"] == 0
    for name in ("member:gpt/pass_rate", "oracle", "headroom", "decision_tasks", "member:gpt~member:opus/exact_p"):
        assert found[f"{AT}/{name}"] is None


def test_one_task_is_enough_for_every_figure():
    found = measure(evidence(primaries("gpt", "+"), primaries("opus", "-"), outcomes("compound", "+")))
    expected = {
        "decision_tasks": 1, "both_fail": 0, "passes_outside_recorded": 0, "losses_to_pool": 0, "rescues": 0,
        "regret/over": "all candidates", "best_subset/1/members": "gpt",
    }  # fmt: skip
    assert {name: found[f"{AT}/{name}"] for name in expected} == expected


@pytest.mark.parametrize(("value", "error"), [(math.nan, ValueError), (math.inf, ValueError), ((1,), TypeError)])
def test_a_figure_that_json_would_not_keep_is_a_fault_of_ours(value, error):
    with pytest.raises(error, match="measurement a/b"):
        measurements._check("a/b", value)


def test_hash_order_does_not_show():
    code = (
        "import json; from tests.analysis.test_analysis_measurements import everything, measure;"
        "print(json.dumps(dict(measure(everything()))))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True, text=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1
    assert len(json.loads(texts.pop())) > 500


def test_measuring_does_not_import_scipy_stats():
    code = (
        "import sys; from tests.analysis.analysis_records import *;"
        "from pytest_fusion_audit.analysis.measurements import measure;"
        "measure(evidence(primaries('a', '+-'), primaries('b', '-+'), outcomes('compound', '++')));"
        "sys.exit('scipy.stats' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
