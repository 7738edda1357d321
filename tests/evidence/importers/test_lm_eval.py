"""lm-evaluation-harness: samples with and without their results file, filters, repeats, metrics, and damage."""

from __future__ import annotations

import json
import math
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.errors import EvidenceError, ImportRefusedError
from pytest_fusion_audit.evidence.importers import import_run
from pytest_fusion_audit.evidence.records import ArmOutcome, Candidate, ImportedFile, Split, Task
from tests.evidence.importers.foreign_plants import (
    candidate,
    candidates,
    claims,
    codes,
    file_of,
    note,
    recorded,
    rows,
    run_facts,
    split,
    write,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_fusion_audit.evidence.container import Evidence

A, B = "2026-11-30T21-43-54.014782", "2026-11-30T21-44-11.884656"
CHOICE_A = f"lm_eval/arm_a/samples_tiny_choice_{A}.jsonl"
WRITE_A = f"lm_eval/arm_a/samples_tiny_write_{A}.jsonl"
RESULTS_A = f"lm_eval/arm_a/results_{A}.json"
WHOLE = recorded("lm_eval/")


def row(
    doc: int, score: Any = 1.0, *, name: str = "none", metric: str = "exact_match", **fields: Any
) -> dict[str, Any]:
    made = {
        "doc_id": doc,
        "doc": {"q": doc},
        "target": "yes",
        "arguments": {"gen_args_0": {"arg_0": "q", "arg_1": {"max_gen_toks": 32, "temperature": 0.0, "until": ["\n"]}}},
        "resps": [["yes"]],
        "filtered_resps": ["yes"],
        "filter": name,
        "metrics": [metric],
        "doc_hash": f"{doc:064x}",
        metric: score,
    }
    return {**made, **fields}


def results(task: str = "little", model: str = "model-a", **top: Any) -> dict[str, Any]:
    made = {
        "results": {task: {"exact_match,none": 1.0}},
        "configs": {task: {"generation_kwargs": {"max_gen_toks": 32}}},
        "versions": {task: 1},
        "higher_is_better": {task: {"exact_match": True}},
        "n-samples": {task: {"original": 2, "effective": 2}},
        "config": {"model": "dummy", "model_args": {"pretrained": model}},
        "lm_eval_version": "0.4.13",
        "model_name": model,
    }
    return {**made, **top}


def one(
    tmp_path: Path, *held: dict[str, Any], name: str = "model-a/samples_little_2026-01-02T03-04-05.5.jsonl"
) -> Evidence:
    write(tmp_path / name, list(held))
    return import_run(tmp_path / name.partition("/")[0])


# --- recorded files ------


def test_the_recorded_runs_pair_their_arms_and_give_the_harnesss_figures() -> None:
    evidence = import_run(WHOLE)
    assert evidence.splits == (("tiny_choice", "all"), ("tiny_write", "all"))
    told = {}
    for suite in ("tiny_choice", "tiny_write"):
        assert evidence.arms(suite, "all") == ("member:arm_a", "member:arm_b")
        for arm in ("member:arm_a", "member:arm_b"):
            held = evidence.arm(suite, "all", arm).values()
            told[suite, arm] = (sum(row.passed is True for row in held), len(held))
            assert claims(evidence, suite=suite, arm=arm) == {
                "n": len(held),
                "pass_rate": pytest.approx(sum(row.passed is True for row in held) / len(held)),
            }
    assert told == {
        ("tiny_choice", "member:arm_a"): (5, 12),
        ("tiny_choice", "member:arm_b"): (3, 12),
        ("tiny_write", "member:arm_a"): (2, 6),
        ("tiny_write", "member:arm_b"): (2, 6),
    }
    for file in evidence.of(ImportedFile):
        assert not {"totals_disagree", "unknown_fields"} & {found.code for found in file.notes}
    assert {file.format for file in evidence.of(ImportedFile)} == {"lm-eval-samples", "lm-eval-results"}


def test_of_two_filters_the_first_in_the_file_counts_and_the_other_is_named() -> None:
    evidence = import_run(WHOLE)
    held = candidates(evidence, suite="tiny_write", member="arm_a")
    assert len(held) == 6
    assert len(rows(WRITE_A)) == 12
    assert [c.verdict for c in held].count("passed") == 2  # under `upper` it would be none
    assert any(
        "filters upper (the verdict is under first)" in line
        for line in file_of(evidence, f"tiny_write_{A}.jsonl").unknown
    )
    assert run_facts(evidence, arm="member:arm_a", checker_mode="exact_match,first")["output_cap"] == 32


def test_repeats_behind_one_score_are_no_samples_of_their_own() -> None:
    evidence = import_run(WHOLE)
    assert {c.sample for c in evidence.of(Candidate)} == {0}
    assert note(evidence, f"tiny_write_{A}.jsonl", "replies_in_one_score").count == 6
    several = candidate(evidence, suite="tiny_write", member="arm_a", task="0")
    assert (several.answer_sha256, several.outcome, several.finish_reason) == (None, "answered", None)


def test_acc_decides_over_acc_norm_and_multiple_choice_has_no_text() -> None:
    evidence = import_run(WHOLE)
    first = candidate(evidence, suite="tiny_choice", member="arm_a", task="0")
    assert (first.outcome, first.answer_chars, first.parameters_asked) == (None, None, None)
    assert any(
        "acc_norm (the verdict is by acc)" in line for line in file_of(evidence, f"tiny_choice_{A}.jsonl").unknown
    )
    assert {task.checker for task in evidence.of(Task) if task.suite == "tiny_choice"} == {"acc"}


def test_facts_of_the_run_come_from_the_results_file() -> None:
    evidence = import_run(WHOLE)
    facts = run_facts(evidence, arm="member:arm_b", checker_mode="acc,none")
    assert facts["harness"] == "lm_eval"
    assert facts["harness_version"] == "0.4.13"
    assert facts["harness_seed"] == 2
    assert facts["generated_at"].startswith("2026-11-30T21:44:11")
    assert facts["task_version"] == "1.0"
    assert "output_cap" not in facts
    for planned in evidence.of(Split):
        assert planned.complete is True
        assert planned.planned == (12 if planned.suite == "tiny_choice" else 6)
    assert "cuda" not in repr(list(evidence))


def test_no_text_of_prompts_and_answers_is_kept() -> None:
    text = repr(list(import_run(WHOLE)))
    for kept_out in ("Spell the three", "lol", "Question:", "wr-01"):
        assert kept_out not in text


# --- whose answers ------


def test_without_the_results_file_the_folder_names_the_model_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "arm_a").mkdir()
    shutil.copy(recorded(CHOICE_A), tmp_path / "arm_a")
    evidence = import_run(tmp_path / "arm_a")
    assert evidence.arms("tiny_choice", "all") == ("member:arm_a",)
    unknown = file_of(evidence, ".jsonl").unknown
    assert "the model's own name (taken from the folder)" in unknown
    assert any("no results file of this run" in line for line in unknown)
    assert (split(evidence).planned, split(evidence).complete) == (None, None)


def test_a_sanitised_folder_name_is_read_back(tmp_path: Path) -> None:
    evidence = one(tmp_path, row(0), name="out/maker__model-a/samples_little_2026-01-02T03-04-05.5.jsonl")
    assert (candidate(evidence).member, candidate(evidence).requested_model) == ("model-a", "maker/model-a")


def test_a_file_named_alone_is_refused_with_what_to_do(tmp_path: Path) -> None:
    alone = write(tmp_path / "samples_little_2026-01-02T03-04-05.5.jsonl", [row(0)])
    with pytest.raises(ImportRefusedError, match="does not say which model answered") as refused:
        import_run(alone)
    assert "fusion-import.yaml" in str(refused.value)
    assert "results file" in str(refused.value)


def test_a_file_and_its_results_file_named_together_belong_together() -> None:
    evidence = import_run(recorded(CHOICE_A), recorded(RESULTS_A))
    assert evidence.arms("tiny_choice", "all") == ("member:arm_a",)


def test_the_results_file_of_another_run_is_not_taken(tmp_path: Path) -> None:
    write(tmp_path / "out/model-a/samples_little_2026-01-02T03-04-05.5.jsonl", [row(0)])
    write(tmp_path / "out/model-a/results_2026-01-09T00-00-00.5.json", results(model="model-b"))
    evidence = import_run(tmp_path / "out")
    assert evidence.arms("little", "all") == ("member:model-a",)
    assert codes(evidence, "results_2026-01-09T00-00-00.5.json") == {"aggregate_only": 1}


def test_the_model_may_stand_in_the_arguments_only_as_an_object_or_as_a_text(tmp_path: Path) -> None:
    for number, arguments in enumerate(({"pretrained": "maker/m0"}, "pretrained=maker/m1,dtype=float16")):
        stamp = f"2026-01-0{number + 1}T00-00-00.5"
        write(tmp_path / f"out/x{number}/samples_little_{stamp}.jsonl", [row(0)])
        made = results(model="", config={"model": "hf", "model_args": arguments})
        write(tmp_path / f"out/x{number}/results_{stamp}.json", made)
    assert import_run(tmp_path / "out").arms("little", "all") == ("member:m0", "member:m1")


def test_a_task_name_with_underscores_is_cut_out_of_the_file_name(tmp_path: Path) -> None:
    evidence = one(tmp_path, row(0), name="m/samples_my_long_task_2026-01-02T03-04-05.jsonl")
    assert evidence.splits == (("my_long_task", "all"),)


def test_a_renamed_file_takes_the_task_of_the_one_results_file_beside_it(tmp_path: Path) -> None:
    write(tmp_path / "out/mine.jsonl", [row(0), row(1)])
    write(tmp_path / "out/mine-results.json", results())
    evidence = import_run(tmp_path / "out")
    assert evidence.splits == (("little", "all"),)
    assert evidence.arms("little", "all") == ("member:model-a",)


def test_a_second_run_is_a_replicate_and_other_shots_are_another_setting(tmp_path: Path) -> None:
    for number, shots in ((1, 0), (2, 0)):
        stamp = f"2026-01-0{number}T00-00-00.5"
        write(tmp_path / f"out/model-a/samples_little_{stamp}.jsonl", [row(0), row(1, 0.0)])
        made = results(configs={"little": {"num_fewshot": shots}}, results={"little": {"exact_match,none": 0.5}})
        write(tmp_path / f"out/model-a/results_{stamp}.json", made)
    evidence = import_run(tmp_path / "out")
    assert evidence.replicates("little", "all", "member:model-a") == (0, 1)
    assert claims(evidence) == {"n": 2, "pass_rate": 0.5, "replicate/1/n": 2, "replicate/1/pass_rate": 0.5}
    write(tmp_path / "out/model-a/results_2026-01-02T00-00-00.5.json", results(configs={"little": {"num_fewshot": 5}}))
    evidence = import_run(tmp_path / "out")
    assert len(evidence.arms("little", "all")) == 2
    assert all("@" in arm for arm in evidence.arms("little", "all"))


def test_a_run_without_its_results_file_is_a_replicate_of_one_that_has_it(tmp_path: Path) -> None:
    for number in (1, 2):
        write(tmp_path / f"out/model-a/samples_little_2026-01-0{number}T00-00-00.5.jsonl", [row(0), row(1)])
    write(tmp_path / "out/model-a/results_2026-01-02T00-00-00.5.json", results())
    evidence = import_run(tmp_path / "out")
    assert evidence.arms("little", "all") == ("member:model-a",)
    assert evidence.replicates("little", "all", "member:model-a") == (0, 1)


def test_two_versions_of_a_task_are_two_suites(tmp_path: Path) -> None:
    for number in (1, 2):
        stamp = f"2026-01-0{number}T00-00-00.5"
        write(tmp_path / f"out/m{number}/samples_little_{stamp}.jsonl", [row(0), row(1)])
        write(
            tmp_path / f"out/m{number}/results_{stamp}.json", results(model=f"m{number}", versions={"little": number})
        )
    assert import_run(tmp_path / "out").splits == (("little-v1", "all"), ("little-v2", "all"))


def test_arms_that_answered_different_documents_under_one_id_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "out/m1/samples_little_2026-01-01T00-00-00.5.jsonl", [row(0)])
    write(tmp_path / "out/m2/samples_little_2026-01-01T00-00-00.6.jsonl", [row(0, doc_hash="ab" * 32)])
    with pytest.raises(EvidenceError, match="disagree about prompt_sha256"):
        import_run(tmp_path / "out")


def test_a_sidecar_names_the_arm(tmp_path: Path) -> None:
    name = "samples_little_2026-01-02T03-04-05.5.jsonl"
    write(tmp_path / f"out/{name}", [row(0), row(1, 0.0)])
    write(tmp_path / "out/fusion-import.yaml", f"files: {{{name}: {{arm: compound, split: locked}}}}")
    evidence = import_run(tmp_path / "out")
    assert {outcome.task: outcome.passed for outcome in evidence.of(ArmOutcome)} == {"0": True, "1": False}
    assert evidence.arms("little", "locked") == ("compound",)


def test_a_results_file_alone_gives_claims_and_no_outcomes(tmp_path: Path) -> None:
    made = results(
        results={"little": {"exact_match,none": 0.25, "exact_match_stderr,none": "N/A", "perplexity,none": math.nan}}
    )
    evidence = import_run(write(tmp_path / "results_2026-01-02T03-04-05.5.json", made))
    assert claims(evidence) == {"n": 2, "score/exact_match,none": 0.25}
    assert evidence.splits == ()
    assert codes(evidence, ".json") == {"aggregate_only": 1}


# --- scores ------


@pytest.mark.parametrize(
    ("score", "verdict"), [(1.0, "passed"), (0.0, "failed"), (0.5, "failed"), (1, "passed"), (True, "passed")], ids=repr
)
def test_scores(tmp_path: Path, score: object, verdict: str) -> None:
    assert candidate(one(tmp_path, row(0, score))).verdict == verdict


@pytest.mark.parametrize("score", [[1.0, 0.0], {"a": 1}, "high"], ids=["list", "object", "word"])
def test_a_score_that_is_no_single_number_gives_no_verdict(tmp_path: Path, score: object) -> None:
    evidence = one(tmp_path, row(0, score), row(1))
    assert [c.verdict for c in candidates(evidence)] == [None, "passed"]
    assert codes(evidence, ".jsonl") == {"score_not_a_number": 1, "no_verdict": 1}


def test_scores_off_the_scale_give_no_verdicts(tmp_path: Path) -> None:
    evidence = one(tmp_path, row(0, 55.0, metric="bleu"), row(1, 1.0, metric="bleu"))
    assert [c.verdict for c in candidates(evidence)] == [None, None]
    assert codes(evidence, ".jsonl") == {"score_scale": 1, "no_verdict": 2}


@pytest.mark.parametrize("metric", ["perplexity", "word_perplexity", "brier_score", "ter"])
def test_metrics_that_are_better_when_lower_are_refused_by_name(tmp_path: Path, metric: str) -> None:
    with pytest.raises(ImportRefusedError, match=f"{metric} is better when lower"):
        one(tmp_path, row(0, 0.2, metric=metric))


def test_a_metric_of_unknown_direction_is_refused_unless_the_results_file_states_it(tmp_path: Path) -> None:
    with pytest.raises(ImportRefusedError, match="the direction of my_score is not stated"):
        one(tmp_path, row(0, 1.0, metric="my_score"))
    write(
        tmp_path / "model-a/results_2026-01-02T03-04-05.5.json",
        results(higher_is_better={"little": {"my_score": True}}),
    )
    assert candidate(import_run(tmp_path / "model-a")).verdict == "passed"
    write(
        tmp_path / "model-a/results_2026-01-02T03-04-05.5.json",
        results(higher_is_better={"little": {"my_score": False}}),
    )
    with pytest.raises(ImportRefusedError, match="my_score is better when lower"):
        import_run(tmp_path / "model-a")


def test_of_several_metrics_the_one_that_tells_right_from_wrong_decides(tmp_path: Path) -> None:
    held = row(0, 1.0, metrics=["perplexity", "f1", "exact_match"], perplexity=9.0, f1=0.5)
    evidence = one(tmp_path, held)
    assert candidate(evidence).score == 1.0
    assert any("perplexity, f1 (the verdict is by exact_match)" in line for line in file_of(evidence, ".jsonl").unknown)


def test_rows_of_versions_that_did_not_list_their_metrics_are_read(tmp_path: Path) -> None:
    held = [row(0, metric="acc"), row(1, 0.0, metric="acc")]
    for made in held:
        del made["metrics"], made["filter"]
    assert [c.verdict for c in candidates(one(tmp_path, *held))] == ["passed", "failed"]


def test_blank_replies_are_empty_answers(tmp_path: Path) -> None:
    evidence = one(tmp_path, row(0, 0.0, resps=[[" \n"]], filtered_resps=["[invalid]"]), row(1))
    first, second = candidates(evidence)
    assert (first.outcome, first.verdict, first.answer_chars) == ("empty", "failed", 2)
    assert (second.outcome, second.finish_reason, second.answer_chars) == ("answered", None, 3)
    assert second.parameters_asked == {"max_tokens": 32, "temperature": 0.0}


# --- bad input ------


def test_totals_that_disagree_with_the_rows_are_noted(tmp_path: Path) -> None:
    write(tmp_path / "out/samples_little_2026-01-02T03-04-05.5.jsonl", [row(0), row(1, 0.0), row(2)])
    write(tmp_path / "out/results_2026-01-02T03-04-05.5.json", results())
    found = note(import_run(tmp_path / "out"), ".jsonl", "totals_disagree")
    assert found.items == ("n-samples says 2, the rows say 3", "exact_match,none says 1, the rows say 0.666667")


def test_missing_documents_make_the_split_incomplete(tmp_path: Path) -> None:
    write(tmp_path / "out/samples_little_2026-01-02T03-04-05.5.jsonl", [row(0)])
    write(tmp_path / "out/results_2026-01-02T03-04-05.5.json", results())
    planned = split(import_run(tmp_path / "out"))
    assert (planned.planned, planned.complete) == (2, False)


def test_a_document_twice_alike_is_one_and_twice_unlike_is_none(tmp_path: Path) -> None:
    evidence = one(tmp_path, row(0), row(0), row(1), row(1, 0.0))
    rows_ = evidence.arm("little", "all", "member:model-a")
    assert {task: held.passed for task, held in rows_.items()} == {"0": True, "1": None}
    assert [n.items for n in file_of(evidence, ".jsonl").notes if n.code == "duplicate_ids"] == [("0",), ("1",)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"doc_id": None}, "line 2, field doc_id: an id is expected, not None"),
        ({"exact_match": math.nan}, "line 2, doc 1, field exact_match: a finite number is expected, not nan"),
        ({"metrics": "exact_match"}, "line 2, field metrics: a list of names is expected, not 'exact_match'"),
        ({"filter": 3}, "line 2, field filter: a text is expected, not 3"),
        ({"arguments": []}, "line 2, doc 1.arguments: an object is expected, not []"),
        ({"doc_hash": 3}, "line 2, doc 1, field doc_hash: a text is expected, not 3"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_malformed_row_is_one_line_with_line_and_field(tmp_path: Path, change: dict[str, object], said: str) -> None:
    with pytest.raises(ImportRefusedError) as refused:
        one(tmp_path, row(0), {**row(1), **change})
    assert said in str(refused.value)
    assert str(refused.value).startswith("model-a/samples_little_2026-01-02T03-04-05.5.jsonl: ")
    assert "\n" not in str(refused.value)


def test_nan_in_a_document_is_nobodys_figure(tmp_path: Path) -> None:
    assert candidate(one(tmp_path, {**row(0), "doc": {"weight": math.nan}})).verdict == "passed"


def test_unknown_fields_are_named(tmp_path: Path) -> None:
    assert note(one(tmp_path, row(0, novelty=1)), ".jsonl", "unknown_fields").items == ("novelty",)


def test_crlf_changes_nothing(tmp_path: Path) -> None:
    text = "".join(json.dumps(row(n)) + "\r\n" for n in range(3))
    write(tmp_path / "a/model-a/samples_little_2026-01-02T03-04-05.5.jsonl", text.encode())
    plain = one(tmp_path / "b", *(row(n) for n in range(3)))
    assert [c.verdict for c in candidates(import_run(tmp_path / "a"))] == [c.verdict for c in candidates(plain)]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(part=st.floats(0, 0.9999))
def test_a_cut_off_file_is_refused_or_short_of_whole_lines(tmp_path: Path, part: float) -> None:
    whole = recorded(CHOICE_A).read_bytes()
    kept = whole[: int(len(whole) * part)]
    write(tmp_path / f"arm_a/samples_tiny_choice_{A}.jsonl", kept)
    shutil.copy(recorded(RESULTS_A), tmp_path / "arm_a")
    try:
        evidence = import_run(tmp_path / "arm_a")
    except ImportRefusedError as refused:
        assert "\n" not in str(refused)  # noqa: PT017 - cut inside a line
    else:  # cut between two lines: the results file tells what is missing
        held = kept.count(b"doc_hash")
        assert len(candidates(evidence)) == held
        assert all(planned.complete is False for planned in evidence.of(Split))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    field=st.sampled_from([*row(0), "acc"]),
    junk=st.none() | st.booleans() | st.integers(-2, 2) | st.floats() | st.text(max_size=3) | st.just([]) | st.just({}),
)
def test_any_value_in_any_field_is_read_or_refused_by_one_line(tmp_path: Path, field: str, junk: object) -> None:
    try:
        evidence = one(tmp_path, row(0), {**row(1), field: junk}, row(2, name="other"))
    except ImportRefusedError as refused:
        assert "\n" not in str(refused)  # noqa: PT017 - both ways are right
    else:
        json.dumps(repr(list(evidence))).encode()
