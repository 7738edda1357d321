"""inspect_ai logs: both containers, every way a sample can end, runs beside each other, and damage of every kind."""

from __future__ import annotations

import json
import math
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.errors import EvidenceError, FusionAuditError, ImportRefusedError
from pytest_fusion_audit.evidence.importers import import_run, read_sources
from pytest_fusion_audit.evidence.records import ArmOutcome, Candidate, Split, Task
from tests.evidence.importers.foreign_plants import (
    answered,
    archive,
    candidate,
    candidates,
    claims,
    codes,
    file_of,
    inspect_log,
    inspect_sample,
    load,
    note,
    recorded,
    run_facts,
    split,
    write,
    zip_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_fusion_audit.evidence.container import Evidence

NEWER, OLDER = "inspect_ai/0.3.285", "inspect_ai/0.3.160"
ALL = (
    "tiny_mix.arm_a.json",
    "tiny_mix.arm_b.json",
    "tiny_graded.arm_b.json",
    "tiny_twice.arm_a.eval",
    "tiny_broken.arm_b.eval",
)


def one(tmp_path: Path, log: object, name: str = "log.json") -> Evidence:
    return import_run(write(tmp_path / name, log))


# --- recorded files ------


@pytest.mark.parametrize(
    ("file", "suite", "arm", "passed", "scored", "held"),
    [
        (f"{NEWER}/tiny_mix.arm_a.json", "tiny_mix", "arm_a", 19, 24, 24),
        (f"{NEWER}/tiny_mix.arm_b.json", "tiny_mix", "arm_b", 15, 23, 24),
        (f"{NEWER}/tiny_graded.arm_b.json", "tiny_graded", "arm_b", 1, 4, 4),
        (f"{NEWER}/tiny_twice.arm_a.eval", "tiny_twice", "arm_a", 3, 4, 4),
        (f"{NEWER}/tiny_broken.arm_b.eval", "tiny_broken", "arm_b", 2, 2, 3),
        (f"{OLDER}/tiny_mix.arm_a.eval", "tiny_mix", "arm_a", 19, 24, 24),
        (f"{OLDER}/tiny_mix.arm_b.eval", "tiny_mix", "arm_b", 15, 23, 24),
        (f"{OLDER}/tiny_twice.arm_a.eval", "tiny_twice", "arm_a", 3, 4, 4),
    ],
)
def test_recorded_logs_give_the_figures_of_the_tool(
    *, file: str, suite: str, arm: str, passed: int, scored: int, held: int
) -> None:
    evidence = import_run(recorded(file))
    rows = evidence.arm(suite, "all", f"member:{arm}")
    assert len(rows) == held
    assert sum(row.passed is not None for row in rows.values()) == scored
    assert sum(row.passed is True for row in rows.values()) == passed
    name = recorded(file).name
    assert not {"totals_disagree", "unknown_fields"} & codes(evidence, name).keys()
    assert file_of(evidence, name).format == "inspect-log"


def test_zstd_and_deflate_archives_hold_the_same_answers() -> None:
    def told(file: str) -> list[tuple[object, ...]]:
        found = candidates(import_run(recorded(file)))
        return [
            (c.task, c.sample, c.verdict, c.outcome, c.finish_reason, c.answer_sha256, c.output_tokens) for c in found
        ]

    assert {info.compress_type for info in zipfile.ZipFile(recorded(f"{NEWER}/tiny_twice.arm_a.eval")).infolist()} == {
        93
    }
    assert told(f"{NEWER}/tiny_twice.arm_a.eval") == told(f"{OLDER}/tiny_twice.arm_a.eval")
    assert told(f"{NEWER}/tiny_mix.arm_b.json") == told(f"{OLDER}/tiny_mix.arm_b.eval")


@pytest.mark.skipif(hasattr(zipfile, "ZIP_ZSTANDARD"), reason="this Python reads zstd by itself")
def test_without_zstandard_a_zstd_archive_is_refused_by_one_line_that_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ImportRefusedError) as refused:
        import_run(recorded(f"{NEWER}/tiny_twice.arm_a.eval"))
    line = str(refused.value)
    assert "tiny_twice.arm_a.eval: packed with zstd" in line
    assert "pip install zstandard" in line
    assert "--to json" in line
    assert "\n" not in line


def test_an_errored_sample_is_neither_right_nor_wrong_and_counted() -> None:
    evidence = import_run(recorded(f"{NEWER}/tiny_mix.arm_b.json"))
    broken = candidate(evidence, task="code-12")
    assert (broken.outcome, broken.verdict, broken.score, broken.finish_reason) == ("provider_error", None, None, None)
    row = evidence.arm("tiny_mix", "all", "member:arm_b")["code-12"]
    assert (row.state, row.passed, row.reason) == ("not_run", None, "provider_error")
    assert note(evidence, "arm_b.json", "sample_errors").items == ("code-12: RuntimeError",)
    assert claims(evidence, arm="member:arm_b")["n"] == 23
    assert split(evidence).complete is False


def test_cut_and_filtered_answers_keep_their_reason_beside_their_verdict() -> None:
    cut = candidate(import_run(recorded(f"{NEWER}/tiny_mix.arm_a.json")), task="code-07")
    assert (cut.finish_reason, cut.outcome, cut.verdict) == ("max_tokens", "truncated", "failed")
    filtered = candidate(import_run(recorded(f"{NEWER}/tiny_mix.arm_b.json")), task="code-09")
    assert (filtered.finish_reason, filtered.outcome, filtered.verdict) == ("content_filter", "refused", "failed")


def test_a_sample_stopped_by_a_limit_has_no_stop_reason_and_is_scored() -> None:
    evidence = import_run(recorded(f"{NEWER}/tiny_graded.arm_b.json"))
    stopped = candidate(evidence, task="code-04")
    assert (stopped.finish_reason, stopped.outcome, stopped.verdict, stopped.score) == (
        None,
        "truncated",
        "failed",
        0.0,
    )
    assert note(evidence, "tiny_graded.arm_b.json", "limits").items == ("code-04: token",)


def test_epochs_are_samples_of_the_member_and_the_first_is_primary() -> None:
    evidence = import_run(recorded(f"{NEWER}/tiny_twice.arm_a.eval"))
    verdicts = {(c.task, c.sample): c.verdict for c in candidates(evidence)}
    assert (verdicts["sum-02", 0], verdicts["sum-02", 1]) == ("passed", "failed")
    assert (verdicts["sum-05", 0], verdicts["sum-05", 1]) == ("failed", "passed")
    assert len(verdicts) == 8
    told = claims(evidence, arm="member:arm_a")
    assert told["score/accuracy"] == 0.75  # over both epochs: no pass rate of the primary sample
    assert "pass_rate" not in told
    assert split(evidence).planned == 4


def test_the_headline_score_decides_and_the_other_is_named() -> None:
    evidence = import_run(recorded(f"{NEWER}/tiny_graded.arm_b.json"))
    assert [c.score for c in candidates(evidence)] == [0.2727, 1.0, 0.0, 0.3333]
    assert any("scores of exact_answer" in text for text in file_of(evidence, "arm_b.json").unknown)
    assert claims(evidence, arm="member:arm_b")["score/mean"] == pytest.approx(0.4015, abs=1e-12)


def test_another_headline_decides_otherwise(tmp_path: Path) -> None:
    log = load(f"{NEWER}/tiny_graded.arm_b.json")
    log["results"]["headline"] = {"scorer": "exact_answer", "score": "exact_answer", "metric": "accuracy"}
    evidence = one(tmp_path, log)
    assert {c.score for c in candidates(evidence)} == {0.0, 1.0}
    assert any("scores of overlap" in text for text in file_of(evidence, "log.json").unknown)
    assert codes(evidence, "log.json") == {"limits": 1}


def test_a_run_that_ended_in_an_error_is_read_and_marked() -> None:
    evidence = import_run(recorded(f"{NEWER}/tiny_broken.arm_b.eval"))
    assert split(evidence) == Split(
        suite="tiny_broken",
        split="all",
        how="recorded",
        ids=("code-10", "code-11", "code-12"),
        planned=3,
        complete=False,
        source="tiny_broken.arm_b.eval",
    )
    assert "status error" in note(evidence, "tiny_broken.arm_b.eval", "run_not_finished").message
    assert run_facts(evidence)["status"] == "error"
    assert claims(evidence) == {}


def test_facts_of_the_run_and_of_a_candidate() -> None:
    evidence = import_run(recorded(f"{NEWER}/tiny_mix.arm_a.json"))
    facts = run_facts(evidence)
    assert facts["harness"] == "inspect_ai"
    assert facts["harness_version"] == "0.3.285"
    assert (facts["output_cap"], facts["seed"], facts["epochs"]) == (64, 11, 1)
    assert facts["models"] == {"arm_a": "mockllm/arm_a"}
    assert facts["generated_at"] == "2026-11-30T21:44:58+00:00"
    first = candidate(evidence, task="sum-01")
    assert (first.member, first.config, first.sample, first.replicate) == ("arm_a", None, 0, 0)
    assert (first.requested_model, first.resolved_model) == ("mockllm/arm_a", "mockllm/arm_a")
    assert first.parameters_asked == {"max_tokens": 64, "temperature": 0.0, "seed": 11}
    assert (first.input_tokens, first.cached_tokens, first.reasoning_tokens) == (22, None, None)
    assert first.cost_micro_usd is None
    stated = {sample["id"]: sample for sample in load(f"{NEWER}/tiny_mix.arm_a.json")["samples"]}["sum-01"]
    assert first.latency_s == stated["total_time"]
    assert first.answer_chars == len(stated["output"]["completion"])
    task = next(task for task in evidence.of(Task) if task.id == "sum-01")
    assert task.checker == "exact_answer"
    assert len(task.prompt_sha256 or "") == 64
    told = claims(evidence, arm="member:arm_a")
    assert (told["total_samples"], told["completed_samples"], told["n"]) == (24, 24, 24)
    assert told["pass_rate"] == pytest.approx(19 / 24)


@pytest.mark.parametrize("name", ALL)
def test_no_text_of_prompts_answers_or_errors_is_kept(name: str) -> None:
    text = repr(read_sources([recorded(f"{NEWER}/{name}")]))
    for kept_out in ("Which Python", "xs[len", "Traceback", "site-packages", "work-dir", "mock provider refused"):
        assert kept_out not in text


# --- how a sample ends ------


@pytest.mark.parametrize(
    ("text", "reason", "outcome"),
    [
        ("yes", "stop", "answered"),
        ("", "stop", "empty"),
        (" \n", "stop", "empty"),
        ("", "max_tokens", "truncated"),
        ("ye", "model_length", "truncated"),
        ("ye", "length", "truncated"),
        ("no", "content_filter", "refused"),
        ("done", "tool_calls", "answered"),
        ("", "tool_calls", None),
        ("yes", "unknown", None),
        ("yes", "because", None),
        ("yes", None, None),
    ],
)
def test_stop_reasons(tmp_path: Path, text: str, reason: str | None, outcome: str | None) -> None:
    evidence = one(tmp_path, inspect_log(inspect_sample(output=answered(text, reason))))
    only = candidate(evidence)
    assert only.outcome == outcome
    assert only.verdict == "passed"  # the tool's verdict stands, whatever the ending
    unsaid = [line for line in file_of(evidence, "log.json").unknown if line.startswith("how ")]
    assert unsaid == ([f"how 1 answers ended (stop reasons: {reason or 'none'} 1)"] if outcome is None else [])
    assert ("unknown_finish" in codes(evidence, "log.json")) is (reason == "because")


@pytest.mark.parametrize("kind", ["context", "time", "working", "message", "token", "turn", "cost", "custom"])
def test_limits_cut_an_answer(tmp_path: Path, kind: str) -> None:
    sample = inspect_sample(value="I", output=answered("", None), limit={"type": kind, "limit": 4.0})
    only = candidate(one(tmp_path, inspect_log(sample)))
    assert (only.outcome, only.verdict) == ("truncated", "failed")


def test_a_person_who_stops_a_sample_says_nothing_about_the_model(tmp_path: Path) -> None:
    stopped = inspect_sample("t1", "I", limit={"type": "operator", "limit": 0.0})
    withdrawn = inspect_sample("t2", "C", invalidation={"author": "me", "reason": "wrong target"})
    evidence = one(tmp_path, inspect_log(stopped, withdrawn, inspect_sample("t3")))
    rows = evidence.arm("little", "all", "member:model-a")
    assert {task: row.passed for task, row in rows.items()} == {"t1": None, "t2": None, "t3": True}
    assert codes(evidence, "log.json") == {"withdrawn": 2, "limits": 1, "no_verdict": 2}


@pytest.mark.parametrize(
    ("value", "passed", "score"),
    [
        ("C", True, 1.0),
        ("I", False, 0.0),
        ("P", False, 0.5),
        ("N", False, 0.0),
        (True, True, 1.0),
        (False, False, 0.0),
        (1, True, 1.0),
        (0.75, False, 0.75),
        ("1.0", True, 1.0),
        ("yes", True, 1.0),
        (math.nan, None, None),
        (None, None, None),
    ],
)
def test_scores(tmp_path: Path, value: object, passed: bool | None, score: float | None) -> None:
    evidence = one(tmp_path, inspect_log(inspect_sample("t1", value)))
    row = evidence.arm("little", "all", "member:model-a")["t1"]
    assert (row.passed, row.score) == (passed, score)
    assert codes(evidence, "log.json") == ({} if passed is not None else {"no_verdict": 1})


def test_an_unscored_sample_stays_unscored_when_its_answer_was_cut(tmp_path: Path) -> None:
    sample = inspect_sample("t1", math.nan, output=answered("ye", "max_tokens"))
    row = one(tmp_path, inspect_log(sample)).arm("little", "all", "member:model-a")["t1"]
    assert (row.state, row.passed, row.outcome) == ("not_run", None, "truncated")


@pytest.mark.parametrize("value", [[1, 0], {"a": 1}, "fine", math.inf])
def test_a_score_that_is_no_single_number_gives_no_verdict(tmp_path: Path, value: object) -> None:
    evidence = one(tmp_path, inspect_log(inspect_sample("t1", value), inspect_sample("t2")))
    assert candidate(evidence, task="t1").verdict is None
    assert codes(evidence, "log.json") == {"score_not_a_number": 1, "no_verdict": 1}


def test_one_value_of_a_score_of_several_can_be_the_headline(tmp_path: Path) -> None:
    log = inspect_log(
        inspect_sample("t1", {"style": 0.5, "right": 1}),
        results={"scores": [{"name": "style", "scorer": "match"}, {"name": "right", "scorer": "match"}],
                 "headline": {"scorer": "match", "score": "right", "metric": "mean"}},
    )  # fmt: skip
    evidence = one(tmp_path, log)
    assert (candidate(evidence).verdict, candidate(evidence).score) == ("passed", 1.0)


def test_scores_off_the_scale_of_0_to_1_give_no_verdicts_at_all(tmp_path: Path) -> None:
    evidence = one(tmp_path, inspect_log(inspect_sample("t1", 7), inspect_sample("t2", 1)))
    assert [c.verdict for c in candidates(evidence)] == [None, None]
    assert codes(evidence, "log.json") == {"score_scale": 1, "no_verdict": 2}


def test_usage_counts_the_cache_into_the_input_and_leaves_graders_out(tmp_path: Path) -> None:
    usage = {"input_tokens": 10, "output_tokens": 5, "input_tokens_cache_read": 30, "input_tokens_cache_write": 2,
             "reasoning_tokens": 4, "total_cost": 0.25}  # fmt: skip
    alone = inspect_sample("t1", model_usage={"maker/model-a": usage})
    graded = inspect_sample("t2", model_usage={"maker/model-a": usage, "maker/grader": usage})
    silent = inspect_sample(
        "t3", model_usage={"maker/model-a": {"input_tokens": 0, "output_tokens": 0, "total_cost": 0}}
    )
    evidence = one(tmp_path, inspect_log(alone, graded, silent))
    first, second, third = candidates(evidence)
    assert (first.input_tokens, first.cached_tokens, first.output_tokens, first.reasoning_tokens) == (42, 30, 5, 4)
    assert first.cost_micro_usd == 250_000
    assert (second.input_tokens, second.cost_micro_usd) == (42, None)
    assert (third.input_tokens, third.output_tokens, third.cost_micro_usd) == (None, None, None)
    assert any("maker/grader" in line for line in file_of(evidence, "log.json").unknown)


def test_of_the_revision_only_the_commit_is_kept(tmp_path: Path) -> None:
    revision = {"type": "git", "origin": "git@private.example:me/secret.git", "commit": "abc123", "dirty": True}
    evidence = one(tmp_path, inspect_log(spec={"revision": revision, "model_base_url": "http://10.0.0.1"}))
    facts = run_facts(evidence)
    assert (facts["repo_sha"], facts["repo_dirty"]) == ("abc123", True)
    text = repr(list(evidence))
    assert "private.example" not in text
    assert "10.0.0.1" not in text


def test_ids_may_be_numbers_or_hold_slashes_and_other_alphabets(tmp_path: Path) -> None:
    log = inspect_log(inspect_sample(7), inspect_sample("HumanEval/0"), inspect_sample("日本/ü"))  # type: ignore[arg-type]
    for name, content in (("a/log.json", log), ("b/log.eval", zip_of(log))):
        evidence = one(tmp_path, content, name)
        assert [c.task for c in candidates(evidence)] == ["7", "HumanEval/0", "日本/ü"]


def test_samples_come_in_the_order_of_the_plan_whatever_the_order_of_the_file(tmp_path: Path) -> None:
    log = inspect_log(*(inspect_sample(f"t{n}", epoch=epoch) for epoch in (1, 2) for n in range(4)))
    turned = {**log, "samples": log["samples"][::-1]}
    left, right = (one(tmp_path, made, f"{side}/log.json") for side, made in (("a", log), ("b", turned)))
    assert list(left) == list(right) or [list(left.of(kind)) for kind in (Task, Candidate, Split)] == [
        list(right.of(kind)) for kind in (Task, Candidate, Split)
    ]


# --- runs beside each other ------


def test_a_second_run_of_one_arm_is_a_replicate(tmp_path: Path) -> None:
    write(tmp_path / "logs/one.json", inspect_log())
    again = {"eval_id": "eval-2", "task_id": "task-2", "created": "2026-01-03T00:00:00+00:00"}
    write(tmp_path / "logs/0-two.json", inspect_log(inspect_sample("t1", "I"), inspect_sample("t2", "I"), spec=again))
    evidence = import_run(tmp_path / "logs")
    assert evidence.replicates("little", "all", "member:model-a") == (0, 1)
    assert (
        evidence.arm("little", "all", "member:model-a", 0)["t1"].passed is True
    )  # the earlier start, not the first name
    assert evidence.arm("little", "all", "member:model-a", 1)["t1"].passed is False


def test_the_same_run_in_two_containers_is_read_as_one(tmp_path: Path) -> None:
    log = inspect_log(inspect_sample("t1", total_time=1.25), inspect_sample("t2", "I"))
    write(tmp_path / "logs/run.json", log)
    write(tmp_path / "logs/run.eval", zip_of(log, method=93))
    evidence = import_run(tmp_path / "logs")
    assert evidence.replicates("little", "all", "member:model-a") == (0,)
    assert len(candidates(evidence)) == 2
    assert len(evidence.of(Split)) == 1


def test_two_copies_of_one_run_that_contradict_each_other_are_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path / "logs/run.json", inspect_log(inspect_sample("t1", "C")))
    write(tmp_path / "logs/run.eval", zip_of(inspect_log(inspect_sample("t1", "I"))))
    with pytest.raises(EvidenceError, match=r"run\.eval and logs/run\.json disagree about verdict"):
        import_run(tmp_path / "logs")


def test_a_retry_replaces_the_run_it_retried(tmp_path: Path) -> None:
    failed = inspect_sample("t2", scores={}, error={"message": "TimeoutError()"}, output=answered("", None))
    write(tmp_path / "logs/b-first.json", inspect_log(inspect_sample("t1"), failed, status="error"))
    again = {"eval_id": "eval-2", "created": "2026-01-03T00:00:00+00:00"}
    write(tmp_path / "logs/a-retry.json", inspect_log(inspect_sample("t1"), inspect_sample("t2"), spec=again))
    evidence = import_run(tmp_path / "logs")
    assert evidence.replicates("little", "all", "member:model-a") == (0,)
    assert all(row.passed for row in evidence.arm("little", "all", "member:model-a").values())
    assert note(evidence, "b-first.json", "superseded_run").items == ("logs/a-retry.json",)
    assert file_of(evidence, "b-first.json").records == {}


def test_a_run_without_a_header_is_read_from_its_journal_and_is_incomplete(tmp_path: Path) -> None:
    log = inspect_log(inspect_sample("t1"), inspect_sample("t2"))
    log["eval"]["dataset"] = {"samples": 3, "sample_ids": ["t1", "t2", "t3"]}
    evidence = one(tmp_path, zip_of(log, header=False), "log.eval")
    assert (split(evidence).complete, split(evidence).planned) == (False, 3)
    assert codes(evidence, "log.eval") == {"run_not_finished": 1, "not_run": 1}
    assert run_facts(evidence)["status"] == "started"
    assert len(candidates(evidence)) == 2


def test_an_unfinished_run_gives_way_to_a_finished_one(tmp_path: Path) -> None:
    write(tmp_path / "logs/crash.eval", zip_of(inspect_log(), header=False))
    other = {"eval_id": "eval-2", "task_id": "task-2", "created": "2026-01-05T00:00:00+00:00"}
    write(tmp_path / "logs/whole.json", inspect_log(spec=other))
    evidence = import_run(tmp_path / "logs")
    assert evidence.replicates("little", "all", "member:model-a") == (0,)
    assert {c.source for c in candidates(evidence)} == {"logs/whole.json"}
    assert codes(evidence, "crash.eval") == {"superseded_run": 2}


def test_runs_under_other_settings_are_told_apart_and_none_is_the_incumbent(tmp_path: Path) -> None:
    write(tmp_path / "logs/cold.json", inspect_log())
    warm = inspect_log(spec={"eval_id": "eval-2", "task_id": "task-2"})
    warm["plan"]["config"]["temperature"] = 1.0
    write(tmp_path / "logs/warm.json", warm)
    evidence = import_run(tmp_path / "logs")
    arms = evidence.arms("little", "all")
    assert len(arms) == 2
    assert all(arm.startswith("member:model-a@") for arm in arms)
    assert note(evidence, "warm.json", "settings_differ").items == ("logs/cold.json", "logs/warm.json")


def test_another_seed_is_a_replicate_and_no_other_setting(tmp_path: Path) -> None:
    for number in (1, 2):
        log = inspect_log(spec={"eval_id": f"e{number}", "task_id": f"t{number}"})
        log["plan"]["config"]["seed"] = number
        write(tmp_path / f"logs/{number}.json", log)
    evidence = import_run(tmp_path / "logs")
    assert evidence.arms("little", "all") == ("member:model-a",)
    assert evidence.replicates("little", "all", "member:model-a") == (0, 1)


def test_two_models_of_one_short_name_keep_their_providers(tmp_path: Path) -> None:
    for provider in ("maker", "reseller"):
        spec = {"model": f"{provider}/model-a", "eval_id": provider, "task_id": provider}
        write(tmp_path / f"logs/{provider}.json", inspect_log(spec=spec))
    evidence = import_run(tmp_path / "logs")
    assert evidence.arms("little", "all") == ("member:maker:model-a", "member:reseller:model-a")
    assert {c.requested_model for c in candidates(evidence)} == {"maker/model-a", "reseller/model-a"}


def test_two_versions_of_a_task_are_two_suites(tmp_path: Path) -> None:
    for version in (1, 2):
        spec = {
            "task_version": version,
            "eval_id": f"e{version}",
            "task_id": f"t{version}",
            "model": f"maker/m{version}",
        }
        write(tmp_path / f"logs/{version}.json", inspect_log(spec=spec))
    assert import_run(tmp_path / "logs").splits == (("little v1", "all"), ("little v2", "all"))


def test_a_task_of_a_package_is_named_by_its_last_part(tmp_path: Path) -> None:
    assert one(tmp_path, inspect_log(spec={"task": "some_evals/little"})).splits == (("little", "all"),)


def test_one_task_that_asks_two_things_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "logs/a.json", inspect_log())
    other = {"model": "maker/model-b", "eval_id": "e2", "task_id": "t2"}
    write(tmp_path / "logs/b.json", inspect_log(inspect_sample("t1", input="Another question?"), spec=other))
    with pytest.raises(EvidenceError, match=r"a\.json and logs/b\.json disagree about prompt_sha256"):
        import_run(tmp_path / "logs")


def test_message_ids_do_not_make_a_question_another(tmp_path: Path) -> None:
    for model, number in (("maker/a", "x1"), ("maker/b", "x2")):
        question = [{"id": number, "role": "user", "content": [{"type": "text", "text": "Which?"}]}]
        spec = {"model": model, "eval_id": number, "task_id": number}
        write(tmp_path / f"logs/{number}.json", inspect_log(inspect_sample("t1", input=question), spec=spec))
    assert len(import_run(tmp_path / "logs").of(Task)) == 1


def test_a_sidecar_says_that_the_model_of_a_log_is_the_compound(tmp_path: Path) -> None:
    log = inspect_log(inspect_sample("t1"), inspect_sample("t1", "I", epoch=2), inspect_sample("t2", "I"))
    write(tmp_path / "logs/fused.json", log)
    again = {"eval_id": "e2", "task_id": "t2", "created": "2026-02-01T00:00:00+00:00"}
    write(tmp_path / "logs/fused2.json", inspect_log(inspect_sample("t1"), inspect_sample("t2"), spec=again))
    write(tmp_path / "logs/solo.json", inspect_log(spec={"model": "maker/model-b", "eval_id": "e3", "task_id": "t3"}))
    named = "{arm: compound, split: locked, suite: mine}"
    sidecar = (
        f"files: {{fused.json: {named}, fused2.json: {named}, solo.json: {{split: locked, suite: mine, config: x}}}}"
    )
    write(tmp_path / "logs/fusion-import.yaml", sidecar)
    evidence = import_run(tmp_path / "logs")
    assert evidence.splits == (("mine", "locked"),)
    assert evidence.arms("mine", "locked") == ("compound", "member:model-b@x")
    fused = {(o.task, o.replicate): o.passed for o in evidence.of(ArmOutcome)}
    assert fused == {("t1", 0): True, ("t1", 1): False, ("t2", 0): False, ("t1", 2): True, ("t2", 2): True}
    assert set(claims(evidence, suite="mine", arm="compound")) == set()  # these logs state no results


# --- bad input ------


def test_totals_that_disagree_with_the_samples_are_noted(tmp_path: Path) -> None:
    log = load(f"{NEWER}/tiny_mix.arm_a.json")
    log["results"]["scores"][0]["metrics"]["accuracy"]["value"] = 0.9
    log["results"]["total_samples"] = 25
    found = note(one(tmp_path, log), "log.json", "totals_disagree")
    assert found.count == 2
    assert "accuracy says 0.9, the rows say 0.791667" in found.message
    assert "total_samples says 25, the rows say 24" in found.message


def test_missing_samples_are_counted(tmp_path: Path) -> None:
    log = load(f"{NEWER}/tiny_mix.arm_a.json")
    del log["samples"][:5]
    evidence = one(tmp_path, log)
    assert codes(evidence, "log.json")["not_run"] == 5
    assert "totals_disagree" in codes(evidence, "log.json")
    assert split(evidence).complete is False


def test_a_success_without_samples_is_refused_and_a_failure_without_samples_is_visible(tmp_path: Path) -> None:
    log = inspect_log()
    empty = {**log, "samples": []}
    with pytest.raises(ImportRefusedError, match="claims success but holds 0 of 2 samples"):
        one(tmp_path, empty)
    evidence = one(tmp_path, {**empty, "status": "error", "error": {"message": "ValueError('no key')"}}, "failed.json")
    assert split(evidence).complete is False
    assert codes(evidence, "failed.json") == {"run_not_finished": 1, "not_run": 2}


def test_a_sample_twice_alike_is_one_and_twice_unlike_is_none(tmp_path: Path) -> None:
    log = inspect_log(inspect_sample("t1"), inspect_sample("t1"), inspect_sample("t2"), inspect_sample("t2", "I"))
    evidence = one(tmp_path, log)
    rows = evidence.arm("little", "all", "member:model-a")
    assert {task: row.passed for task, row in rows.items()} == {"t1": True, "t2": None}
    assert [n.items for n in file_of(evidence, "log.json").notes if n.code == "duplicate_ids"] == [("t1",), ("t2",)]


def test_of_a_member_written_twice_the_last_counts(tmp_path: Path) -> None:
    members = [
        ("header.json", {k: v for k, v in inspect_log(inspect_sample("t1")).items() if k != "samples"}),
        ("samples/t1_epoch_1.json", inspect_sample("t1", "I")),
        ("samples/t1_epoch_1.json", inspect_sample("t1", "C")),
    ]
    content = [(name, json.dumps(value).encode()) for name, value in members]
    with pytest.warns(UserWarning, match="Duplicate name"):
        packed = archive(content)
    for name, made in (("deflate.eval", packed), ("zstd.eval", archive(content, method=93))):
        evidence = one(tmp_path, made, name)
        assert candidate(evidence).verdict == "passed"
        assert codes(evidence, name) == {"rewritten_members": 1}


def test_member_names_are_never_used_as_paths(tmp_path: Path) -> None:
    log = inspect_log(inspect_sample("../../../../tmp/x"))
    evidence = one(tmp_path, zip_of(log), "in/log.eval")
    assert candidate(evidence).task == "../../../../tmp/x"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["in", "log.eval"]


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, 93])
def test_a_bomb_is_refused_by_its_ratio(tmp_path: Path, method: int) -> None:
    header = {k: v for k, v in inspect_log().items() if k != "samples"}
    members = [("header.json", json.dumps(header).encode()), ("samples/t1_epoch_1.json", b" " * (40 << 20))]
    with pytest.raises(ImportRefusedError, match=r"member 'samples/t1_epoch_1\.json': is larger than allowed"):
        one(tmp_path, archive(members, method=method), "log.eval")


def test_a_damaged_member_is_named(tmp_path: Path) -> None:
    content = bytearray(zip_of(inspect_log(), method=93))
    at = content.index(b"samples/t1_epoch_1.json") + len("samples/t1_epoch_1.json") + 12
    content[at : at + 8] = b"\0" * 8
    with pytest.raises(ImportRefusedError, match=r"log\.eval: member 'samples/t1_epoch_1\.json': is damaged"):
        one(tmp_path, bytes(content), "log.eval")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": None}, "samples[0], field id: an id is expected, not None"),
        ({"epoch": "one"}, "samples[0], field epoch: a number is expected, not 'one'"),
        ({"total_time": "1.5"}, "samples[0], sample t1 epoch 1, field total_time: a number is expected, not '1.5'"),
        ({"total_time": math.nan}, "field total_time: a finite number is expected, not nan"),
        ({"total_time": -1}, "field total_time: a number of at least 0 is expected, not -1"),
        ({"scores": [1]}, "samples[0], sample t1 epoch 1.scores: an object is expected, not [1]"),
        ({"output": {"completion": 5}}, "epoch 1.output, field completion: a text is expected, not 5"),
        (
            {"model_usage": {"maker/model-a": {"input_tokens": -4, "output_tokens": 1}}},
            "model_usage.maker/model-a, field input_tokens: a number of at least 0 is expected, not -4",
        ),
    ],
)
def test_a_malformed_sample_is_one_line_with_sample_and_field(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    with pytest.raises(ImportRefusedError) as refused:
        one(tmp_path, {**inspect_log(), "samples": [{**inspect_sample("t1"), **change}]})
    line = str(refused.value)
    assert line.startswith("log.json: ")
    assert said in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 3}, "field version: log version 3 is not known"),
        ({"eval": {"task": "", "model": "m"}}, "eval, field task: a name is expected, not ''"),
        ({"samples": {"t1": {}}}, "field samples: a list is expected"),
        ({"results": []}, "results: an object is expected, not []"),
    ],
)
def test_a_malformed_header_is_one_line_with_the_field(tmp_path: Path, change: dict[str, object], said: str) -> None:
    with pytest.raises(ImportRefusedError) as refused:
        one(tmp_path, {**inspect_log(), **change})
    assert said in str(refused.value)


def test_unknown_fields_are_named(tmp_path: Path) -> None:
    evidence = one(tmp_path, {**inspect_log(inspect_sample("t1", novelty=1)), "surprise": True})
    assert note(evidence, "log.json", "unknown_fields").items == ("samples[].novelty", "surprise")


def test_crlf_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    text = json.dumps(inspect_log(), indent=2)
    plain = one(tmp_path, text, "a/log.json")
    other = one(tmp_path, b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(), "b/log.json")
    assert candidates(plain) == candidates(other)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(part=st.floats(0, 0.9999), name=st.sampled_from(["tiny_mix.arm_b.json", "tiny_broken.arm_b.eval"]))
def test_a_cut_off_log_is_refused_by_one_line(tmp_path: Path, part: float, name: str) -> None:
    whole = recorded(f"{NEWER}/{name}").read_bytes().rstrip()
    with pytest.raises(ImportRefusedError) as refused:
        one(tmp_path, whole[: int(len(whole) * part)], name)
    assert str(refused.value).startswith(f"{name}: ")
    assert "\n" not in str(refused.value)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), method=st.sampled_from([zipfile.ZIP_DEFLATED, 93]))
def test_flipped_bytes_in_an_archive_are_refused_or_read_but_never_a_traceback(
    tmp_path: Path, data: st.DataObject, method: int
) -> None:
    content = bytearray(zip_of(inspect_log(), method=method))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        one(tmp_path, bytes(content), "log.eval")
    except FusionAuditError as refused:
        assert "\n" not in str(refused)  # noqa: PT017 - both ways are right


_JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=True) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), junk=_JUNK)
def test_any_value_in_any_field_is_read_or_refused_by_one_line(
    tmp_path: Path, data: st.DataObject, junk: object
) -> None:
    log = json.loads(json.dumps(inspect_log(inspect_sample("t1"), inspect_sample("t2"), results={"scores": []})))
    place = log
    while True:
        keys = sorted(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], (dict, list)) or not place[key] or data.draw(st.booleans()):
            place[key] = junk
            break
        place = place[key]
    try:
        evidence = one(tmp_path, json.dumps(log), "log.json")
    except ImportRefusedError as refused:
        assert "\n" not in str(refused)  # noqa: PT017 - both ways are right
    else:
        json.dumps(repr(list(evidence))).encode()
