"""What the checks find, by computation, on the recorded runs that lie beside the checkout."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest

from pytest_fusion_audit.analysis.validity import find
from pytest_fusion_audit.evidence.importers import import_run
from tests.shared_data import shared

if TYPE_CHECKING:
    from pytest_fusion_audit.analysis.validity import Finding
    from pytest_fusion_audit.evidence.container import Evidence

AUDIT = "fusionkit-20260701"


@pytest.fixture(scope="module")
def audit() -> Evidence:
    return import_run(shared(f"runs/{AUDIT}"))


@pytest.fixture(scope="module")
def with_caps() -> Evidence:
    return import_run(shared(f"runs/{AUDIT}"), shared("runs/lcb-60-caps"))


def the(evidence: Evidence, code: str, *words: str) -> Finding:
    """The only finding of a code with these words in it."""
    found = [f for f in find(evidence) if f.code == code and all(word in f.message for word in words)]
    assert len(found) == 1, [f.message for f in find(evidence) if f.code == code]
    return found[0]


def _rows(name: str) -> list[dict]:
    with shared(name).open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines)) if name.endswith(".csv") else [json.loads(line) for line in lines]


def _gpt_in_bank(flag: str) -> set[str]:
    """Tasks of the bank whose answer of gpt has this flag set."""
    bank = json.loads(shared(f"runs/{AUDIT}/phase3/bank-slim.json").read_text(encoding="utf-8"))
    answers = [(task["task_id"], answer) for task in bank["tasks"] for answer in task["candidates"]]
    return {task for task, answer in answers if answer["model_id"] == "gpt" and answer[flag]}


def test_the_codes_of_the_recorded_audit(audit: Evidence) -> None:
    errors = [finding.code for finding in find(audit) if finding.severity == "error"]
    warnings = [finding.code for finding in find(audit) if finding.severity == "warning"]
    assert errors == [
        "cap_exceeded",
        "ledger_mismatch",
        "provenance_missing",
        "selector_outside_pool",
        "split_reuse",
        "split_reuse",
        "truncated_answers",
        "truncated_answers",
        "tuning_asymmetry",
        "unequal_compute",
    ]
    expected = {"best_single_post_hoc", "estimates_only", "never_worse_unproven", "prices_differ", "provenance_missing"}
    assert expected | {"underpowered"} <= set(warnings)


def test_empty_answers_of_one_member(audit: Evidence) -> None:
    empty, passed = _gpt_in_bank("content_empty"), _gpt_in_bank("passed")
    ablations = json.loads(shared(f"runs/{AUDIT}/phase4/ablations.json").read_text(encoding="utf-8"))
    rewrite = next(p["passes"] for p in ablations["policies"] if p["policy"] == "llm_rewrite")
    intact = rewrite.keys() - empty
    won = sum(rewrite[task] and task not in passed for task in intact)
    lost = sum(not rewrite[task] and task in passed for task in intact)
    bound = (sum(rewrite.values()) - len(passed | empty)) / len(rewrite)
    message = the(audit, "truncated_answers", "livecodebench/baseline: member:gpt").message
    assert f"{len(empty)} of 86 (44.2 %) answers empty, finish reasons not recorded, limit 5 %" in message
    assert "compound:rewrite against it 8 won, 0 lost of 86 (+9.3 points)" in message
    assert f"on intact pairs {won} won, {lost} lost of 48 (+0.0 points)" in message
    assert f"had every cut answer passed {100 * bound:+.1f} points: uplift not identified" in message
    assert (len(empty), won, lost) == (38, 0, 0)


def test_the_same_tasks_in_the_locked_split(audit: Evidence) -> None:
    empty = _gpt_in_bank("content_empty")
    path = shared(f"runs/{AUDIT}/phase6/locked-test-rows-with-stages.json")
    rows = json.loads(path.read_text(encoding="utf-8"))
    gpt = {task: row["candidate_scores"]["gpt"] >= 1 for task, row in rows.items()}
    won = sum(row["passed"] and not gpt[task] for task, row in rows.items() if task not in empty)
    lost = sum(not row["passed"] and gpt[task] for task, row in rows.items() if task not in empty)
    bound = sum(row["passed"] - (gpt[task] or task in empty) for task, row in rows.items()) / len(rows)
    finding = the(audit, "truncated_answers", "livecodebench/locked: member:gpt")
    assert "joined by task id with livecodebench/baseline/member:gpt" in finding.message
    again = sum(gpt[task] for task in empty & gpt.keys())
    assert f"not this one: of the {len(empty)} tasks cut there, {again} passed in" in finding.message
    assert (len(empty), again) == (38, 3)
    assert f"on intact pairs {won} won, {lost} lost of {len(rows) - len(empty)}" in finding.message
    assert f"had every cut answer passed {100 * bound:+.1f} points: uplift not identified" in finding.message
    assert bound <= 0
    assert finding.severity == "error"
    assert {"1.1", "1.2", "1.3", "1.4", "1.5", "2.1", "2.5"} <= set(finding.affects)


def test_the_same_member_at_a_larger_cap(with_caps: Evidence) -> None:
    message = the(with_caps, "truncated_answers", "livecodebench/locked: member:gpt").message
    assert "livecodebench/caps/member:gpt55@16384, gpt-5.5, 16384 tokens, not 4096, 1 of 60 cut" in message
    assert "compound 1 won, 11 lost of 60 shared tasks (-16.7 points), exact p .0063" in message


def test_locked_ids_read_in_earlier_phases(audit: Evidence) -> None:
    finding = the(audit, "split_reuse", "livecodebench/locked")
    for words in (
        f"5 of 86 (5.8 %) in livecodebench/smoke: 5 in {AUDIT}/phase1/smoke.jsonl",
        f"86 in {AUDIT}/phase3/bank-slim.json, 86 in {AUDIT}/phase4/ablations.json",
        f"25 again through the gateway: {AUDIT}/phase6/shipped-path-check.json",
        "2 crashed runs of livecodebench in the history ledger",
    ):
        assert words in finding.message
    assert f"{AUDIT}/phase3/bank-slim.json" in finding.evidence
    assert "livecodebench/dev" not in finding.message


def test_the_second_locked_suite_was_answered_by_two_configurations(audit: Evidence) -> None:
    assert "compound, compound@trunc8000" in the(audit, "split_reuse", "polyglot/locked").message


def test_the_ledger(audit: Evidence) -> None:
    lines = _rows(f"runs/{AUDIT}/spend-ledger.jsonl")
    running, off = 0.0, []
    for number, line in enumerate(lines, 1):
        running += line["est_usd"]
        if abs(running - line["cum_usd"]) > 1e-6:
            off.append(number)
    mismatch = the(audit, "ledger_mismatch").message
    assert f"on lines {off[0]}-{off[-1]} of {len(lines)}" in mismatch
    assert "the last says 240.00 USD, the lines add up to 240.06 USD" in mismatch
    over = the(audit, "cap_exceeded").message
    assert "phase 6, the reserve: 107.00 USD over its cap of 90.00 USD by 17.00 USD (lines 7-11)" in over
    assert "no measured amount on 11 of 11 lines" in the(audit, "estimates_only").message
    assert not [finding for finding in find(audit) if finding.code == "reserve_touched"]


def test_six_samples_and_a_judge_against_one(audit: Evidence, with_caps: Evidence) -> None:
    finding = the(audit, "unequal_compute")
    assert "livecodebench/locked/compound spends 6 samples (panel depth 3x in" in finding.message
    assert "member:gpt (21 won, 0 lost of 86" in finding.message
    assert "member:opus (16 won, 0 lost of 86" in finding.message
    assert set(finding.affects) == {"1.1", "1.2", "1.3", "2.5"}
    locked = json.loads(shared(f"runs/{AUDIT}/phase6/locked-test-rows-with-stages.json").read_text(encoding="utf-8"))
    alone = {
        row["task_id"]: float(row["charged_cost_usd"])
        for row in _rows("runs/lcb-60-caps/c3_outcomes.csv")
        if row["endpoint_id"] == "gpt55"
    }
    ratio = sum(locked[task]["cost_usd"] for task in alone) / sum(alone.values())
    assert f"on {len(alone)} of them one sample of gpt-5.5 at cap 4096" in the(with_caps, "unequal_compute").message
    assert f"{ratio:.1f} times as much" in the(with_caps, "unequal_compute").message


def test_missing_seed_and_cap_in_the_runs_own_records(audit: Evidence) -> None:
    error = the(audit, "provenance_missing", "output cap")
    seed = the(audit, "provenance_missing", "seed")
    assert (error.severity, seed.severity) == ("error", "warning")
    assert "no panel hash recorded for" in error.message
    assert "livecodebench/locked" in error.message
    # The envelopes of smoke and locked do record models and config hash.
    assert "no resolved models recorded for livecodebench/baseline, livecodebench/dev, polyglot/locked" in error.message


def test_a_tuned_compound_against_members_as_they_came(audit: Evidence, with_caps: Evidence) -> None:
    message = the(audit, "tuning_asymmetry").message
    assert "phase 5 billed 115.00 USD" in message
    assert "gpt, opus never" in message
    assert "gpt-5.5 at cap 16384 against cap 4096: 19 won, 0 lost of 60" in the(with_caps, "tuning_asymmetry").message


def test_policies_that_select_outside_the_bank(audit: Evidence) -> None:
    bank = json.loads(shared(f"runs/{AUDIT}/phase3/bank-slim.json").read_text(encoding="utf-8"))
    solved = {t["task_id"] for t in bank["tasks"] if any(c["passed"] for c in t["candidates"])}
    ablations = json.loads(shared(f"runs/{AUDIT}/phase4/ablations.json").read_text(encoding="utf-8"))
    message = the(audit, "selector_outside_pool").message
    for ours, theirs in (("select_best", "judge_pick_verbatim"), ("exec_select", "exec_select_public_private")):
        passes = next(p["passes"] for p in ablations["policies"] if p["policy"] == theirs)
        outside = sorted(task for task, passed in passes.items() if passed and task not in solved)
        assert f"compound:{ours} on {len(outside)} of 86 ({', '.join(outside)})" in message


def test_size_and_never_worse_of_the_second_suite(audit: Evidence) -> None:
    power = the(audit, "underpowered").message
    assert "polyglot/locked/compound against member:opus: 103 tasks, 1,099 needed at discordance 0.126" in power
    assert "7 won, 6 lost of 103, as the file states" in the(audit, "never_worse_unproven").message


def test_prices_of_the_panel_file(audit: Evidence) -> None:
    message = the(audit, "prices_differ").message
    assert "gpt (gpt-5.5): input 1.25 against 5 (4 times), output 10 against 30 (3 times)" in message
    assert "opus" not in message


def test_caps_alone_accuse_no_compound() -> None:
    found = find(import_run(shared("runs/lcb-60-caps")))
    assert {finding.code for finding in found} == {"truncated_answers"}
    assert len(found) == 2
    small = next(finding for finding in found if "@4096" in finding.message)
    cut = [
        row["task_id"]
        for row in _rows("runs/lcb-60-caps/c3_outcomes.csv")
        if row["endpoint_id"] == "kimi" and int(row["completion_tokens"] or 0) >= 4096
    ]
    assert f"member:kimi@4096 {len(cut)} of 60 (85.0 %) answers truncated" in small.message
    assert len(cut) == 51
    assert not {"1.1", "1.2", "1.3"} & {name for finding in found for name in finding.affects}


def test_panels_of_three() -> None:
    evidence = import_run(shared("runs/judge-panels"))
    codes = {finding.code for finding in find(evidence)}
    assert {"unequal_compute", "provenance_missing", "underpowered"} <= codes
    # The rows a provider failed on lack member scores too: no rate is over other tasks.
    assert not codes & {"unequal_denominators", "split_reuse", "truncated_answers", "suite_undeclared"}
    spends = [finding.message for finding in find(evidence) if finding.code == "unequal_compute"]
    assert all("spends 3 samples" in message for message in spends)


def test_a_compound_that_loses_claims_no_uplift() -> None:
    found = find(import_run(shared("runs/swebench-30")))
    codes = {finding.code for finding in found}
    assert "unequal_compute" not in codes
    assert {"never_worse_unproven", "underpowered", "provenance_missing"} <= codes
    worse = next(finding for finding in found if finding.code == "never_worse_unproven")
    assert "2 won, 5 lost of 30" in worse.message


def test_public_matrices_of_other_models_are_clean() -> None:
    assert find(import_run(shared("datasets/passmatrix"))) == ()


def test_two_reads_find_the_same(audit: Evidence) -> None:
    assert find(import_run(shared(f"runs/{AUDIT}"))) == find(audit)
