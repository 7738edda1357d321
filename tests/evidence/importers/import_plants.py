"""A small valid file of every format, made up for these tests, to be damaged by them."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.evidence.importers import import_run
from pytest_fusion_audit.evidence.records import ImportedFile, Note

if TYPE_CHECKING:
    from pathlib import Path

TASKS = ("abc101_a", "abc101_b", "abc101_c", "arc050_d")


def candidate(model: str, **fields: Any) -> dict[str, Any]:
    return {"model_id": model, "passed": True, "content": "print(1)\n", **fields}


def bank(*tasks: dict[str, Any], **top: Any) -> dict[str, Any]:
    if not tasks:
        tasks = tuple(
            {
                "task_id": task,
                "difficulty": "hard",
                "prompt": f"Solve {task}.",
                "tests": [{"input": "1", "output": "1"}] * (index + 1),
                "candidates": [candidate("gpt", passed=index != 3), candidate("opus", passed=index in {0, 3})],
            }
            for index, task in enumerate(TASKS)
        )
    return {"signature": "s1", "panel_models": ["gpt", "opus"], "tasks": list(tasks), **top}


def slim(full: dict[str, Any]) -> dict[str, Any]:
    """The same bank without its texts."""
    import hashlib  # noqa: PLC0415 - only this

    made = deepcopy(full)
    for task in made["tasks"]:
        task["n_tests"] = len(task.pop("tests"))
        task["prompt_sha256"] = hashlib.sha256(task.pop("prompt").encode()).hexdigest()[:16]
        for one in task["candidates"]:
            text = one.pop("content")
            one["content_chars"], one["content_empty"] = len(text), not text.strip()
    return made


def turn(task: str, *, passed: bool | None = True, **fields: Any) -> dict[str, Any]:
    return {
        "task_id": task,
        "outcome": "scored",
        "passed": passed,
        "score": 1.0 if passed else 0.0,
        "cost_usd": 0.25,
        "latency_s": 12.5,
        "candidate_scores": {"gpt": 1.0, "opus": 0.0},
        **fields,
    }


def locked_rows() -> dict[str, Any]:
    stages = {
        "cost_total_usd": 0.25,
        "cost_panel_usd": 0.2,
        "cost_judge_usd": 0.02,
        "cost_synth_usd": 0.03,
        "latency_panel_s": 8.0,
        "latency_judge_s": 2.5,
        "latency_synth_s": 2.0,
    }
    skipped = {**stages, "cost_synth_usd": None, "latency_synth_s": 0}
    return {
        task: turn(
            task,
            passed=index < 3,
            judge_pick_model="gpt" if index == 1 else None,
            stages=skipped if index == 1 else stages,
        )
        for index, task in enumerate(TASKS)
    }


def envelope(*tasks: dict[str, Any], **top: Any) -> dict[str, Any]:
    rows = list(tasks) or [turn(task, passed=index < 3, error_reason=None) for index, task in enumerate(TASKS)]
    scored = [row for row in rows if row["outcome"] == "scored"]
    passed = sum(row["passed"] is True for row in scored)
    made = {
        "suite": "livecodebench",
        "mount_mode": "fusion_behind_agent",
        "availability": "ran",
        "panel_id": "peers",
        "gateway_model": "fusionkit/panel",
        "harness": "lcb",
        "harness_version": "v6",
        "resolved_tasks": len(scored),
        "total_tasks": len(rows),
        "passed_tasks": passed,
        "model_failed_tasks": sum(row["outcome"] == "model_failed" for row in rows),
        "infra_error_tasks": sum(row["outcome"] == "infra_error" for row in rows),
        "excluded_tasks": sum(row["outcome"] == "excluded" for row in rows),
        "score": passed / len(scored) if scored else None,
        "cost_total_usd": sum(row["cost_usd"] for row in rows if isinstance(row["cost_usd"], float)),
        "cost_per_task_usd": 0.25,
        "tasks": rows,
        "unavailable_reason": None,
        "provenance": {
            "generated_at": "2026-01-02T03:04:05+00:00",
            "repo_sha": "abc",
            "platform": "a machine",
            "manifest": "/home/somebody/manifest.json",
            "model_versions": {"gpt": "gpt-5.5", "opus": "claude-opus-4-8"},
            "prompt_template_hash": "sha256:00",
            "dataset_revision": "v6",
            "checker_mode": "exact",
            "contamination_window_min_date": "2025-01-01",
            "cost_scope": "full_fusion_pipeline",
        },
        "raw_metadata": {"cache_signature": "c1"},
    }
    return {**made, **top}


def ablations(passes: dict[str, Any] | None = None, **top: Any) -> dict[str, Any]:
    verdicts = passes if passes is not None else {task: index != 2 for index, task in enumerate(TASKS)}
    rate = sum(verdict is True for verdict in verdicts.values()) / max(len(verdicts), 1)
    policies = [
        {
            "policy": policy,
            "n": len(verdicts),
            "pass_rate": rate,
            "ci": [0.3, 0.95],
            "vs_best_single": {
                "uplift": 0.1,
                "mcnemar_wins": 1,
                "mcnemar_losses": 0,
                "mcnemar_statistic": 0.0,
                "significant": False,
            },
            "regret_split": {
                "n": len(verdicts),
                "oracle_rate": 0.75,
                "judge_pick_rate": 0.75,
                "fused_rate": rate,
                "total_regret": 0.0,
                "judge_regret": 0.0,
                "synthesis_regret": 0.0,
                "picks_named": 3,
                "judge_pick_accuracy": 1.0,
                "judge_pick_accuracy_strict": None,
            },
            "passes": verdicts,
        }
        for policy in ("llm_rewrite", "judge_pick_verbatim", "exec_select_public_private")
    ]
    made = {
        "bank_signature": "s1",
        "n_tasks": len(verdicts),
        "best_single": {"model": "gpt", "pass_rate": 0.75},
        "policies": policies,
        "synthesis_regressions_4_2": {"picked_pass_rewrite_fail": [], "rate_over_picked_pass": 0.0},
        "leave_one_out_2_3": {
            "full_oracle": 1.0,
            "members": {
                "gpt": {"solo_rate": 0.75, "oracle_without": 0.5, "marginal_oracle_value": 0.5},
                "opus": {"solo_rate": 0.5, "oracle_without": 0.75, "marginal_oracle_value": 0.25},
            },
        },
        "router_5_1": {"always_fuse": {"pass_rate": rate, "cost_per_task": 0.17}},
    }
    return {**made, **top}


def polyglot(**top: Any) -> dict[str, Any]:
    made = {
        "n": 3,
        "fused_rate": 2 / 3,
        "fused_ci": [0.2, 0.94],
        "best_single": {"model": "opus", "rate": 1.0},
        "uplift": -1 / 3,
        "mcnemar": {"wins": 0, "losses": 1, "statistic": 0.0, "significant": False},
        "regret_split": {"n": 3, "oracle_rate": 1.0, "total_regret": 1 / 3},
        "per_language": {"python": {"n": 2, "fused": 1, "best": 2}, "go": {"n": 1, "fused": 1, "best": 1}},
        "passes": {"python/bowling": True, "python/zipper": False, "go/forth": True},
    }
    return {**made, **top}


def shallow(**top: Any) -> dict[str, Any]:
    made = {
        "n": 4,
        "incumbent_shallow_rewrite": {"fused_rate": 0.5, "best_single": {"model": "opus", "rate": 0.5}},
        "candidate_deep_select_best": {"fused_rate": 0.75},
        "deep_vs_shallow_mcnemar": {"wins": 1, "losses": 0, "statistic": 0.0, "significant": False},
        "shallow_passes": {task: index < 2 for index, task in enumerate(TASKS)},
    }
    return {**made, **top}


def shipped(**top: Any) -> dict[str, Any]:
    made = {
        "gateway": "http://127.0.0.1:8091",
        "n_tasks": 4,
        "scored": 3,
        "pipeline_errors": 1,
        "gateway_pass_rate": 2 / 3,
        "engine_pass_rate_same_tasks": 0.75,
        "gateway_vs_engine_mcnemar": {"wins": 0, "losses": 1, "statistic": 0.0, "significant": False},
        "results": {
            TASKS[0]: {"outcome": "scored", "gateway_passed": True, "engine_passed": True},
            TASKS[1]: {"outcome": "scored", "gateway_passed": True, "engine_passed": True},
            TASKS[2]: {"outcome": "pipeline_error", "gateway_passed": None, "engine_passed": True},
            TASKS[3]: {"outcome": "scored", "gateway_passed": False, "engine_passed": False},
        },
    }
    return {**made, **top}


def spend() -> list[dict[str, Any]]:
    return [
        {"phase": "1-smoke", "suite": "lcb", "tasks": 5, "est_usd": 0.85, "cum_usd": 0.85, "note": "", "git_sha": "a"},
        {"phase": "6-self", "suite": "self-mode gpt x4 dev bank", "tasks": 9, "est_usd": 2.1, "cum_usd": 2.95},
    ]


def history() -> list[dict[str, Any]]:
    row = {"suite": "livecodebench", "panel_id": "peers", "ci_low": None, "ci_high": None, "notes": ""}
    return [
        {**row, "recorded_at": "2026-01-01T00:00:00Z", "resolved_tasks": 0, "score": None},
        {**row, "recorded_at": "2026-01-02T00:00:00Z", "resolved_tasks": 5, "score": 0.4, "repo_sha": "abc"},
    ]


def split_manifest(**top: Any) -> dict[str, Any]:
    note = "DEV window: 2024-07-01 <= contest_date < 2025-01-01."
    return {"version": "v6", "note": note, "question_ids": list(TASKS), **top}


def task_rows() -> list[dict[str, Any]]:
    return [
        {
            "task_id": task,
            "contest_date": "2025-04-06T00:00:00",
            "difficulty": "hard",
            "prompt_sha256": f"{index:064x}",
            "public_test_count": index + 1,
        }
        for index, task in enumerate(TASKS)
    ]


def clustered_tasks() -> dict[str, Any]:
    rows = [
        {
            "task_id": task,
            "question_id": task,
            "contest_date": "2025-04-06T00:00:00",
            "cluster_key": "2025-04-06T00:00:00",
            "difficulty": "hard",
            "version": "v6",
        }
        for task in TASKS
    ]
    return {"version": "v6", "tasks": rows}


def scorecard() -> dict[str, Any]:
    return {
        "schema": "published-scorecard/1",
        "origin": "a report",
        "weights": {"1": 20},
        "scores": {"1.1": 1, "1.3": 2},
    }


def swebench(**top: Any) -> dict[str, Any]:
    ids = ["django__django-1", "django__django-2", "sympy__sympy-3", "sympy__sympy-4"]
    made = {
        "total_instances": 500,
        "submitted_instances": 4,
        "completed_instances": 2,
        "resolved_instances": 1,
        "unresolved_instances": 1,
        "empty_patch_instances": 1,
        "error_instances": 1,
        "completed_ids": ids[:2],
        "incomplete_ids": ["astropy__astropy-9"],
        "submitted_ids": ids,
        "resolved_ids": ids[:1],
        "unresolved_ids": ids[1:2],
        "error_ids": ids[2:3],
        "empty_patch_ids": ids[3:],
        "schema_version": 2,
    }
    return {**made, **top}


def matrix(**top: Any) -> dict[str, Any]:
    made = {
        "benchmark": "LiveCodeBench code generation",
        "value": "percent",
        "provenance": {"licence": "none"},
        "tasks": [
            {"id": task, "date_ms": 1735689600000, "difficulty": "easy", "platform": "atcoder"} for task in TASKS
        ],
        "models": [{"name": "B (High)"}, {"name": "a/b"}],
        "pass_percent": {"a/b": [0, 49, 50, 100], "B (High)": [100, 100, None, 40]},
    }
    return {**made, **top}


CSV_HEADER = (
    "task_id,cluster_key,contest_date,difficulty,endpoint_id,provider,model,call_status,passed,prompt_tokens,"
    "completion_tokens,total_tokens,estimated_cost_usd,provider_cost_usd,charged_cost_usd,latency_s,error_message"
)


def csv_row(task: str, endpoint: str = "gpt55", **cells: str) -> str:
    row = {
        "task_id": task,
        "cluster_key": "2025-04-06T00:00:00",
        "contest_date": "2025-04-06T00:00:00",
        "difficulty": "hard",
        "endpoint_id": endpoint,
        "provider": "openai",
        "model": "gpt-5.5",
        "call_status": "succeeded",
        "passed": "1",
        "prompt_tokens": "900",
        "completion_tokens": "1000",
        "total_tokens": "1900",
        "estimated_cost_usd": "0.0421087",
        "charged_cost_usd": "0.0421087",
        "latency_s": "77.5",
        **cells,
    }
    return ",".join(row.get(name, "") for name in CSV_HEADER.split(","))


def outcomes_csv(*rows: str) -> str:
    made = rows or (
        csv_row(TASKS[0], completion_tokens="4096", passed="0"),
        csv_row(TASKS[1]),
        csv_row(TASKS[0], "kimi", call_status="failed", passed="0", completion_tokens="", charged_cost_usd=""),
        csv_row(TASKS[1], "kimi", passed="", charged_cost_usd="", estimated_cost_usd=""),
    )
    return "\n".join([CSV_HEADER, *made]) + "\n"


PANEL = """\
endpoints:
  - id: gpt
    provider: openai
    model: gpt-5.5
    base_url: https://api.openai.com
    api_key: sk-never-to-be-kept
    pricing: {input_per_1m_tokens: 1.25, output_per_1m_tokens: 10.0, currency: USD}
  - id: other
    provider: openai-compatible
    model: nobody-knows-1
    cutoff: 2025-06-30
default_model: gpt
judge_model: gpt
synthesizer_model: gpt
panel_models: [other, gpt]
harness_prompt_passthrough: true
sampling: {temperature: 0.2, top_p: 0.95, max_tokens: 4096}
"""

#: File name -> text, one of every format.
VALID: dict[str, str] = {
    "bank.json": json.dumps(bank(), indent=1),
    "bank-slim.json": json.dumps(slim(bank())),
    "locked-rows.json": json.dumps(locked_rows()),
    "locked-test.jsonl": json.dumps(envelope()) + "\n",
    "ablations.json": json.dumps(ablations(), indent=2),
    "poly-full-eval.json": json.dumps(polyglot()),
    "shallow-vs-deep.json": json.dumps(shallow()),
    "shipped-path-check.json": json.dumps(shipped()),
    "spend-ledger.jsonl": "".join(json.dumps(row) + "\n" for row in spend()),
    "history.jsonl": "".join(json.dumps(row) + "\n" for row in history()),
    "dev-manifest.json": json.dumps(split_manifest()),
    "manifest.jsonl": "".join(json.dumps(row) + "\n" for row in task_rows()),
    "task_manifest.json": json.dumps(clustered_tasks(), indent=1),
    "published.json": json.dumps(scorecard()),
    "solo.json": json.dumps(swebench()),
    "matrix.json": json.dumps(matrix()),
    "outcomes.csv": outcomes_csv(),
    "panel.yaml": PANEL,
}

#: Format that recognition must give each of them.
FORMATS: dict[str, str] = {
    "bank.json": "fusionkit-bank",
    "bank-slim.json": "fusionkit-bank",
    "locked-rows.json": "fusionkit-locked-rows",
    "locked-test.jsonl": "fusionkit-benchmark-run",
    "ablations.json": "fusionkit-ablations",
    "poly-full-eval.json": "fusionkit-polyglot-eval",
    "shallow-vs-deep.json": "fusionkit-shallow-vs-deep",
    "shipped-path-check.json": "fusionkit-shipped-path-check",
    "spend-ledger.jsonl": "fusionkit-spend-ledger",
    "history.jsonl": "fusionkit-history-ledger",
    "dev-manifest.json": "fusionkit-split-manifest",
    "manifest.jsonl": "task-manifest",
    "task_manifest.json": "task-manifest",
    "published.json": "published-scorecard",
    "solo.json": "swebench-report",
    "matrix.json": "pass-matrix",
    "outcomes.csv": "outcomes-csv",
    "panel.yaml": "fusionkit-panel",
}


def write(folder: Path, name: str, content: Any) -> Path:
    """Write a file: text and bytes as they are, a list as JSONL, anything else as JSON."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, str):
        path.write_bytes(content.encode())
    elif isinstance(content, list):
        path.write_text("".join(json.dumps(row) + "\n" for row in content))
    else:
        path.write_text(json.dumps(content))
    return path


def imported(folder: Path, name: str, content: Any) -> tuple[Any, ImportedFile]:
    """Evidence of one file, and what the import says about the file."""
    evidence = import_run(write(folder, name, content))
    return evidence, evidence.of(ImportedFile)[0]


def note(file: ImportedFile, code: str) -> Note:
    """The note of one code; fails when there is none."""
    return next(one for one in file.notes if one.code == code)


def codes(file: ImportedFile) -> set[str]:
    return {one.code for one in file.notes}
