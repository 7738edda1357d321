"""Folders, names of sources, a user's namings, and what files of one import teach each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_fusion_audit.errors import EvidenceError, ImportRefusedError
from pytest_fusion_audit.evidence.container import RunFacts
from pytest_fusion_audit.evidence.importers import import_run, read_sources
from pytest_fusion_audit.evidence.records import Candidate, Config, Fused, ImportedFile, Phase, Split
from tests.evidence.importers.import_plants import (
    TASKS,
    VALID,
    ablations,
    bank,
    candidate,
    envelope,
    history,
    locked_rows,
    matrix,
    shipped,
    slim,
    spend,
    split_manifest,
    turn,
    write,
)

if TYPE_CHECKING:
    from pathlib import Path


def audit_folder(tmp_path: Path) -> Path:
    for name, text in VALID.items():
        write(tmp_path, f"audit/phase1/{name}", text)
    return tmp_path / "audit"


def test_an_audit_folder_is_all_its_files_under_names_without_a_path_of_the_machine(tmp_path: Path) -> None:
    evidence = import_run(audit_folder(tmp_path))
    assert [file.source for file in evidence.of(ImportedFile)] == sorted(f"audit/phase1/{name}" for name in VALID)
    assert str(tmp_path) not in repr(list(evidence))
    assert "/home/" not in repr(list(evidence))
    assert "127.0.0.1" not in repr(list(evidence))
    assert "sk-never" not in repr(list(evidence))


def test_records_do_not_depend_on_the_order_of_paths_or_of_the_file_system(tmp_path: Path) -> None:
    folder = audit_folder(tmp_path)
    by_folder = [repr(r) for r in read_sources([folder])]
    assert by_folder == [repr(r) for r in read_sources([folder])]
    files = sorted(folder.rglob("*.*"))
    assert [repr(r) for r in read_sources(files)] == [repr(r) for r in read_sources(files[::-1])]


def test_names_follow_the_recorded_formats(tmp_path: Path) -> None:
    evidence = import_run(audit_folder(tmp_path))
    arms = {split: evidence.arms(*split) for split in evidence.splits}
    policies = ("compound:exec_select", "compound:rewrite", "compound:select_best")
    members = ("member:gpt", "member:opus")
    assert arms == {
        ("LiveCodeBench code generation", "all"): ("member:B (High)", "member:a/b"),
        ("livecodebench", "caps"): ("member:gpt55@4096", "member:kimi@4096"),
        ("livecodebench", "dev"): (*policies[:2], "compound:rewrite@shallow", policies[2], *members),
        ("livecodebench", "locked"): ("compound", "served", *members),
        ("polyglot", "locked"): ("compound",),
        ("swebench-verified", "n4"): ("member:solo",),
    }
    assert set(evidence.tasks("livecodebench", "manifest")) == set(TASKS)
    assert set(evidence.tasks("livecodebench", "caps")) == set(TASKS)


def test_what_is_known_of_a_suite_is_said_once(tmp_path: Path) -> None:
    evidence = import_run(audit_folder(tmp_path))
    facts = {c.suite: c.facts for c in evidence.of(Config) if c.what == "suite"}
    assert facts["livecodebench"] == {
        "public": True,
        "agentic": False,
        "coding": True,
        "family": "single-shot code",
    }
    assert facts["swebench-verified"]["agentic"] is True
    assert facts["polyglot"]["family"] == "multi-turn edit"
    assert len(facts) == 4


def test_the_same_row_in_two_files_is_one_row_and_each_adds_what_it_knows(tmp_path: Path) -> None:
    write(tmp_path, "audit/locked-test-rows.json", locked_rows())
    write(tmp_path, "audit/locked-test.jsonl", [envelope()])
    evidence = import_run(tmp_path / "audit")
    assert len(evidence.of(Fused)) == 4
    one = evidence.of(Fused)[1]
    assert (one.pick_member, one.pick_status) == ("gpt", "named")
    assert {c.requested_model for c in evidence.of(Candidate)} == {"gpt-5.5", "claude-opus-4-8"}


def test_two_files_that_contradict_each_other_are_both_named(tmp_path: Path) -> None:
    write(tmp_path, "audit/locked-test-rows.json", locked_rows())
    write(tmp_path, "audit/locked-test.jsonl", [envelope(turn(TASKS[0], passed=False))])
    with pytest.raises(EvidenceError, match=r"audit/locked-test-rows\.json and audit/locked-test\.jsonl disagree"):
        import_run(tmp_path / "audit")


def test_a_row_that_was_not_scored_may_have_its_reason_in_one_file_only(tmp_path: Path) -> None:
    row = turn(TASKS[0], passed=None, outcome="infra_error", score=None, cost_usd=None, candidate_scores={})
    write(tmp_path, "audit/locked-rows.json", {TASKS[0]: row, TASKS[1]: turn(TASKS[1])})
    write(tmp_path, "audit/locked.jsonl", [envelope({**row, "error_reason": "HTTP 500"}, turn(TASKS[1]))])
    found = import_run(tmp_path / "audit").arm("livecodebench", "locked", "compound")[TASKS[0]]
    assert (found.state, found.outcome, found.reason) == ("not_run", "provider_error", "infra_error: HTTP 500")


def test_copies_of_a_ledger_count_once(tmp_path: Path) -> None:
    for number in (1, 2):
        write(tmp_path, f"audit/phase{number}/spend.jsonl", spend())
        write(tmp_path, f"audit/phase{number}/history.jsonl", history()[:number])
    evidence = import_run(tmp_path / "audit")
    assert [phase.line for phase in evidence.of(Phase)] == [1, 2]
    assert [c.facts["resolved_tasks"] for c in evidence.of(Config) if c.what == "history"] == [0, 5]


def test_a_path_given_twice_is_read_once_and_equal_names_stay_apart(tmp_path: Path) -> None:
    one = write(tmp_path, "a/runs/spend.jsonl", spend()).parent
    two = write(tmp_path, "b/runs/spend.jsonl", spend()[:1]).parent
    evidence = import_run(one, one, two, tmp_path / "a" / ".." / "a" / "runs")
    assert [file.source for file in evidence.of(ImportedFile)] == ["runs/spend.jsonl", "runs~2/spend.jsonl"]


def test_a_public_matrix_names_nobody_elses_suite(tmp_path: Path) -> None:
    tasks = [{"id": f"q{number}"} for number in range(4)]
    write(tmp_path, "runs/a.json", matrix(benchmark="quiz", tasks=tasks))
    write(tmp_path, "runs/b.json", bank(*({"task_id": t["id"], "candidates": [candidate("gpt")]} for t in tasks)))
    assert import_run(tmp_path / "runs").splits == (("quiz", "all"), ("unnamed", "baseline"))


def test_a_file_that_names_its_suite_teaches_the_others(tmp_path: Path) -> None:
    ids = ["q1", "q2"]
    write(tmp_path, "runs/locked.jsonl", [envelope(*(turn(task) for task in ids), suite="quiz")])
    write(tmp_path, "runs/bank.json", bank(*({"task_id": t, "candidates": [candidate("gpt")]} for t in ids)))
    assert import_run(tmp_path / "runs").splits == (("quiz", "baseline"), ("quiz", "locked"))


def test_a_run_can_bring_its_own_facts(tmp_path: Path) -> None:
    facts = RunFacts(run_id="reaudit")
    assert import_run(write(tmp_path, "s.jsonl", spend()), run=facts).run is facts


def test_a_user_names_the_rows_of_a_file(tmp_path: Path) -> None:
    write(tmp_path, "runs/bank.json", slim(bank()))
    write(tmp_path, "runs/deep/ablations.json", ablations())
    sidecar = """\
files:
  bank.json: {suite: mine, split: val, config: hot}
  deep/ablations.json: {suite: mine, split: val}
"""
    write(tmp_path, "runs/fusion-import.yaml", sidecar)
    evidence = import_run(tmp_path / "runs")
    assert evidence.splits == (("mine", "val"),)
    assert evidence.members("mine", "val") == ("gpt@hot", "opus@hot")
    assert [(s.suite, s.split) for s in evidence.of(Split)] == [("mine", "val")]
    assert evidence.of(ImportedFile)[2].format == "fusion-import"


def test_a_log_whose_model_is_the_compound_becomes_that_arm(tmp_path: Path) -> None:
    tasks = [{"task_id": task, "candidates": [candidate("served-model"), candidate("served-model")]} for task in TASKS]
    write(tmp_path, "runs/log.json", bank(*tasks, panel_models=[]))
    write(tmp_path, "runs/fusion-import.yaml", "files: {log.json: {split: locked, arm: compound, config: v2}}\n")
    evidence = import_run(tmp_path / "runs")
    assert evidence.arms("livecodebench", "locked") == ("compound@v2",)
    assert evidence.replicates("livecodebench", "locked", "compound@v2") == (0, 1)
    assert all(row.passed for row in evidence.arm("livecodebench", "locked", "compound@v2").values())


def test_an_arm_can_be_renamed_to_a_member(tmp_path: Path) -> None:
    write(tmp_path, "runs/bank.json", bank({"task_id": "t", "candidates": [candidate("x")]}, panel_models=[]))
    write(tmp_path, "runs/fusion-import.yaml", "files: {bank.json: {arm: 'member:gpt@16384'}}\n")
    assert import_run(tmp_path / "runs").members("unnamed", "baseline") == ("gpt@16384",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file: {}\n", "field file: unknown key; allowed are files"),
        ("files: {bank.json: {suit: x}}\n", r"field files\.bank\.json\.suit: unknown key; allowed are arm, config"),
        ("files: {nobody.json: {suite: x}}\n", "names 'nobody.json', which is not in its folder"),
        ("files: {bank.json: {suite: [x]}}\n", r"files\.bank\.json, field suite: a text is expected"),
        ("files: [1]\n", "files: an object is expected"),
        ("files: {\n", "not YAML"),
    ],
)
def test_a_mistake_in_the_users_names_is_named(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path, "runs/bank.json", bank())
    write(tmp_path, "runs/fusion-import.yaml", text)
    with pytest.raises(ImportRefusedError, match=message) as refused:
        import_run(tmp_path / "runs")
    assert str(refused.value).startswith("runs/fusion-import.yaml: ")


def test_links_are_followed_and_circles_end(tmp_path: Path) -> None:
    write(tmp_path, "elsewhere/spend.jsonl", spend())
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "linked").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (tmp_path / "elsewhere" / "back").symlink_to(tmp_path / "runs", target_is_directory=True)
    files = import_run(tmp_path / "runs").of(ImportedFile)
    assert [file.source for file in files] == ["runs/linked/spend.jsonl"]


def test_a_manifest_and_the_engines_rows_find_their_places(tmp_path: Path) -> None:
    write(tmp_path, "alone/shipped-path-check.json", shipped())
    alone = import_run(tmp_path / "alone")
    assert alone.arms("livecodebench", "locked") == ("compound", "served")
    write(tmp_path, "both/shipped-path-check.json", shipped())
    write(tmp_path, "both/locked.json", locked_rows())
    both = import_run(tmp_path / "both")
    assert both.arm("livecodebench", "locked", "compound")[TASKS[0]].source == "both/locked.json"
    write(tmp_path, "differ/shipped-path-check.json", shipped())
    rows = locked_rows()
    rows[TASKS[0]]["passed"] = False
    write(tmp_path, "differ/locked.json", rows)
    files = import_run(tmp_path / "differ").of(ImportedFile)
    assert "differs from the recorded locked run on 1 tasks" in files[1].notes[0].message


def test_a_manifest_names_its_split_and_window(tmp_path: Path) -> None:
    (split,) = import_run(write(tmp_path, "val-manifest.json", split_manifest())).of(Split)
    assert (split.suite, split.split, split.how, split.window) == (
        "livecodebench",
        "val",
        "manifest",
        ("2024-07-01", "2025-01-01"),
    )
    assert split.ids == TASKS
