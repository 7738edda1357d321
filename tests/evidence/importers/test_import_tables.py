"""Outcomes CSV, public pass matrices, ledgers, panels, manifests and published scorecards."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from pytest_fusion_audit.evidence.importers import known_suites
from pytest_fusion_audit.evidence.importers.panel_prices import exact_ids, table_price
from pytest_fusion_audit.evidence.records import ArmOutcome, Candidate, Claim, Config, Phase, Task
from tests.evidence.importers.import_plants import (
    PANEL,
    TASKS,
    codes,
    csv_row,
    history,
    imported,
    matrix,
    note,
    outcomes_csv,
    scorecard,
    spend,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_csv_rows_are_members_under_their_cap(tmp_path: Path) -> None:
    evidence, file = imported(tmp_path, "c3.csv", outcomes_csv())
    cut, fine, failed, open_ended = evidence.of(Candidate)
    assert (cut.member, cut.config, cut.outcome, cut.verdict) == ("gpt55", "4096", "truncated", "failed")
    assert (fine.outcome, fine.verdict, fine.output_tokens) == ("answered", "passed", 1000)
    assert (failed.member, failed.outcome, failed.verdict) == ("kimi", "provider_error", None)
    assert (open_ended.verdict, open_ended.cost_micro_usd) == (None, None)
    assert fine.cost_micro_usd == 42_109
    assert failed.cost_micro_usd == 42_109
    assert fine.requested_model == "gpt-5.5"
    assert note(file, "no_verdict").count == 1
    task = evidence.of(Task)[0]
    assert (task.date, task.cluster, task.difficulty) == ("2025-04-06", "2025-04-06T00:00:00", "hard")


def test_charged_before_providers_before_estimated_cost(tmp_path: Path) -> None:
    rows = [
        csv_row("a", charged_cost_usd="0.3", provider_cost_usd="0.2", estimated_cost_usd="0.1"),
        csv_row("b", charged_cost_usd="", provider_cost_usd="0.2", estimated_cost_usd="0.1"),
        csv_row("c", charged_cost_usd="", provider_cost_usd="", estimated_cost_usd="0.1"),
        csv_row("d", charged_cost_usd="", provider_cost_usd="", estimated_cost_usd=""),
    ]
    evidence, _ = imported(tmp_path, "c.csv", outcomes_csv(*rows))
    assert [c.cost_micro_usd for c in evidence.of(Candidate)] == [300_000, 200_000, 100_000, None]


def test_a_longest_answer_is_not_taken_for_a_cut_one(tmp_path: Path) -> None:
    rows = [
        csv_row(task, completion_tokens=str(tokens)) for task, tokens in zip(TASKS, (713, 1201, 88, 9), strict=True)
    ]
    evidence, file = imported(tmp_path, "c.csv", outcomes_csv(*rows))
    assert {c.outcome for c in evidence.of(Candidate)} == {None}
    assert {c.config for c in evidence.of(Candidate)} == {"1201"}
    assert any("is not known" in text for text in file.unknown)


def test_facts_of_a_task_that_differ_between_rows_are_not_used(tmp_path: Path) -> None:
    rows = [csv_row("a"), csv_row("a", "kimi", difficulty="easy")]
    evidence, file = imported(tmp_path, "c.csv", outcomes_csv(*rows))
    assert not evidence.of(Task)
    assert codes(file) == {"task_facts_differ"}
    assert len(evidence.of(Candidate)) == 2


def test_a_matrix_passes_at_half_of_the_samples(tmp_path: Path) -> None:
    evidence, file = imported(tmp_path, "m.json", matrix())
    suite = "LiveCodeBench code generation"
    assert evidence.members(suite, "all") == ("B (High)", "a/b")
    rows = evidence.arm(suite, "all", "member:a/b")
    assert [(row.passed, row.score) for row in rows.values()] == [
        (False, 0.0),
        (False, 0.49),
        (True, 0.5),
        (True, 1.0),
    ]
    assert evidence.arm(suite, "all", "member:B (High)")[TASKS[2]].state == "not_run"
    assert note(file, "no_verdict").count == 1
    task = evidence.tasks(suite, "all")[TASKS[0]]
    assert (task.date, task.difficulty, task.task_class) == ("2025-01-01", "easy", "atcoder")


def test_a_matrix_of_ones_and_zeros(tmp_path: Path) -> None:
    made = matrix(models=[{"name": "m"}])
    del made["pass_percent"]
    evidence, _ = imported(tmp_path, "m.json", {**made, "pass": {"m": [0, 1, 1, None]}})
    assert [(o.passed, o.score) for o in evidence.of(ArmOutcome)] == [(False, 0), (True, 1), (True, 1), (None, None)]


def test_ledger_lines_keep_their_amounts_and_places(tmp_path: Path) -> None:
    evidence, file = imported(tmp_path, "s.jsonl", spend())
    first, second = evidence.of(Phase)
    assert (first.phase, first.est_micro_usd, first.cum_micro_usd, first.line) == ("1-smoke", 850_000, 850_000, 1)
    assert (second.measured_micro_usd, second.git_sha, second.line) == (None, None, 2)
    assert any("measured" in text for text in file.unknown)


def test_measured_amounts_are_kept_beside_estimates(tmp_path: Path) -> None:
    evidence, file = imported(tmp_path, "s.jsonl", [{**spend()[0], "measured_usd": 0.566}])
    assert evidence.of(Phase)[0].measured_micro_usd == 566_000
    assert not any("measured" in text for text in file.unknown)


def test_history_rows_and_crashed_runs(tmp_path: Path) -> None:
    evidence, file = imported(tmp_path, "h.jsonl", history())
    crashed, whole = [c for c in evidence.of(Config) if c.what == "history"]
    assert crashed.facts["resolved_tasks"] == 0
    assert "score" not in crashed.facts
    assert (whole.suite, whole.facts["suite"], whole.facts["score"]) == ("livecodebench", "livecodebench", 0.4)
    assert note(file, "empty_run").count == 1


def test_a_panel_file_gives_members_in_panel_order_with_both_prices(tmp_path: Path) -> None:
    evidence, file = imported(tmp_path, "panel.yaml", PANEL)
    (panel,) = [c for c in evidence.of(Config) if c.what == "panel"]
    other, gpt = panel.facts["members"]
    assert other == {
        "id": "other",
        "provider": "openai-compatible",
        "model": "nobody-knows-1",
        "cutoff": "2025-06-30",
    }
    assert gpt["pricing"] == {"input": 1.25, "output": 10.0}
    assert gpt["table_pricing"] == {"input": 5.0, "output": 30.0}
    assert panel.facts["panel_models"] == ["other", "gpt"]
    assert (panel.facts["judge"], panel.facts["synthesizer"]) == ("gpt", "gpt")
    assert panel.facts["sampling"] == {"temperature": 0.2, "top_p": 0.95, "max_tokens": 4096}
    assert note(file, "unknown_fields").items == ("harness_prompt_passthrough",)
    assert "sampling.seed" in file.unknown
    assert "sk-never" not in repr(list(evidence))


def test_a_panel_of_model_ids_and_a_member_without_endpoint(tmp_path: Path) -> None:
    text = "routekit_model_ids: [openai/gpt-5.5]\npanel_models: [openai/gpt-5.5, nobody]\n"
    evidence, file = imported(tmp_path, "panel.yaml", text)
    members = next(c for c in evidence.of(Config) if c.what == "panel").facts["members"]
    assert [(m["id"], m["provider"], m["model"]) for m in members] == [("openai/gpt-5.5", "openai", "gpt-5.5")]
    assert note(file, "member_without_endpoint").items == ("nobody",)


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("gpt-5.5", {"input": 5.0, "output": 30.0}),
        ("openai/gpt-5.5", {"input": 5.0, "output": 30.0}),
        ("gpt-5.5-20990101", {"input": 5.0, "output": 30.0}),
        ("claude-opus-4-8", {"input": 5.0, "output": 25.0}),
        ("claude-sonnet-4-6", {"input": 3.0, "output": 15.0}),
        ("gpt-5.5-turbo-invented", None),
        ("gpt-5.5-2099-01-01-preview", None),
        ("", None),
    ],
)
def test_prices_are_those_of_the_exact_id_or_none(model: str, price: dict[str, float] | None) -> None:
    assert table_price(model) == price


def test_one_prefix_and_one_date_are_stripped_and_no_more() -> None:
    assert exact_ids("a/b/c-2025-01-02-2025-01-02") == ("a/b/c-2025-01-02-2025-01-02", "b/c-2025-01-02")
    assert exact_ids("gpt-5.5") == ("gpt-5.5",)


def test_prices_are_not_loaded_for_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    monkeypatch.setitem(sys.modules, "genai_prices.data_snapshot", None)
    imported(tmp_path, "s.jsonl", spend())


def test_published_scores_are_claims(tmp_path: Path) -> None:
    evidence, _ = imported(tmp_path, "p.json", scorecard())
    assert [(c.quantity, c.criterion, c.value) for c in evidence.of(Claim)] == [
        ("weight", "1", 20),
        ("score", "1.1", 1),
        ("score", "1.3", 2),
    ]


@pytest.mark.parametrize(
    ("ids", "suite"),
    [
        (["abc386_e", "arc190_a"], "livecodebench"),
        (["1873_A", "1899_B", "2730", "3550"], "livecodebench"),
        (["python/bowling", "go/forth"], "polyglot"),
        (["HumanEval/0", "HumanEval/163"], "humaneval"),
        (["Mbpp/2"], "mbpp+"),
        (["django__django-11603", "scikit-learn__scikit-learn-14053"], "swebench-verified"),
        (["sample_0"], "cruxeval"),
        (["abc386_e", "other", "more"], None),
        (["0", "1", "2"], None),
        ([], None),
    ],
)
def test_a_suite_is_told_by_most_of_its_ids(ids: list[str], suite: str | None) -> None:
    assert known_suites.suite_by_ids(ids) == suite


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("livecodebench", "single-shot code"),
        ("HumanEval+", "single-shot code"),
        ("mbpp+", "single-shot code"),
        ("polyglot", "multi-turn edit"),
        ("aider-polyglot", "multi-turn edit"),
        ("swebench-verified", "repository issue"),
        ("SWE-bench Verified", "repository issue"),
        ("terminal-bench", "terminal"),
        ("GSM8K test", "reasoning"),
        ("CRUXEval-O (predict the output of a Python function)", "reasoning"),
        ("EvalPerf (118 HumanEval+/MBPP+ tasks)", "single-shot code"),
    ],
)
def test_families_of_known_suites(name: str, family: str) -> None:
    facts = known_suites.facts(name)
    assert facts is not None
    assert (facts["family"], facts["public"]) == (family, True)


@pytest.mark.parametrize("name", ["livecodebench-private", "polyglot_synthetic", "humaneval demo", "math puzzles", ""])
def test_a_suite_of_ones_own_is_not_public_because_of_its_name(name: str) -> None:
    assert known_suites.facts(name) is None
