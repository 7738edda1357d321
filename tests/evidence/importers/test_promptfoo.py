"""promptfoo: the JSON and the JSONL export, repeats folded into test numbers, errors that are none, and damage."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.errors import EvidenceError, ImportRefusedError
from pytest_fusion_audit.evidence.importers import import_run
from pytest_fusion_audit.evidence.records import ArmOutcome, Candidate, Split, Task
from tests.evidence.importers.foreign_plants import (
    candidate,
    candidates,
    claims,
    codes,
    copied,
    file_of,
    load,
    note,
    promptfoo_file,
    promptfoo_row,
    recorded,
    rows,
    run_facts,
    split,
    write,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_fusion_audit.evidence.container import Evidence

ECHO, MIXED, LINES = "promptfoo/echo.json", "promptfoo/mixed.json", "promptfoo/mixed.jsonl"


def one(tmp_path: Path, content: object, name: str = "out.json") -> Evidence:
    return import_run(write(tmp_path / name, content))


def verdicts(evidence: Evidence, **wanted: object) -> dict[tuple[str, str, int], str | None]:
    return {(c.member, c.task, c.sample): c.verdict for c in candidates(evidence, **wanted)}


# --- recorded files ------


def test_two_arms_of_one_provider_are_told_apart_by_their_labels() -> None:
    evidence = import_run(recorded(ECHO))
    assert evidence.splits == (("tiny echo fixture", "all"),)
    assert evidence.arms("tiny echo fixture", "all") == ("member:arm_a", "member:arm_b")
    assert {c.requested_model for c in candidates(evidence)} == {"echo"}
    passed = {
        arm: sum(row.passed is True for row in evidence.arm("tiny echo fixture", "all", f"member:{arm}").values())
        for arm in ("arm_a", "arm_b")
    }
    assert passed == {"arm_a": 4, "arm_b": 3}  # one fewer each than the tool's: the case without asserts


def test_success_is_the_tools_word_and_never_derived_from_the_score() -> None:
    evidence = import_run(recorded(ECHO))
    weighted = candidate(evidence, member="arm_b", task="t-03 two asserts, one weighted")
    assert (weighted.verdict, weighted.score) == ("passed", 0.75)
    script = candidate(evidence, member="arm_b", task="t-04 script assert with a graded score")
    assert (script.verdict, script.score) == ("passed", 0.4)


def test_a_case_without_asserts_is_counted_and_has_no_verdict() -> None:
    evidence = import_run(recorded(ECHO))
    for arm in ("arm_a", "arm_b"):
        held = candidate(evidence, member=arm, task="t-06 no asserts")
        assert (held.verdict, held.score, held.outcome) == (None, None, "answered")
    assert codes(evidence, "echo.json") == {"no_assertions": 2, "no_verdict": 2}
    assert claims(evidence, arm="member:arm_a")["stats/passes"] == 5
    assert "passed" not in claims(evidence, arm="member:arm_a")


def test_the_error_of_a_failed_assert_is_no_error() -> None:
    held = candidate(import_run(recorded(ECHO)), member="arm_b", task="t-01 exact text")
    assert (held.outcome, held.verdict) == ("answered", "failed")


def test_a_provider_error_is_neither_right_nor_wrong() -> None:
    evidence = import_run(recorded(MIXED))
    failed = candidates(evidence, task="q-02", member="arm_b")
    assert [(c.outcome, c.verdict, c.answer_chars) for c in failed] == [("provider_error", None, None)] * 2
    assert note(evidence, "mixed.json", "sample_errors").count == 2
    assert split(evidence).complete is False


def test_repeats_are_unfolded_from_the_test_numbers() -> None:
    evidence = import_run(recorded(MIXED))
    assert [task.id for task in evidence.of(Task)] == ["q-01", "q-02", "q-03"]
    held = verdicts(evidence)
    assert len(held) == 12
    assert {sample for _, _, sample in held} == {0, 1}
    assert held["arm_a", "q-03", 0] == held["arm_a", "q-03", 1] == "failed"
    assert run_facts(evidence)["repeats"] == 2


def test_usage_cost_finish_reason_and_parameters() -> None:
    evidence = import_run(recorded(MIXED))
    held = candidate(evidence, member="arm_a", task="q-03", sample=0)
    assert (held.finish_reason, held.outcome) == ("length", "truncated")
    assert (held.input_tokens, held.output_tokens, held.cached_tokens, held.reasoning_tokens) == (15, 9, None, None)
    assert held.cost_micro_usd == 241  # 0.00024000000000000003 in the file, rounded up once
    assert held.parameters_asked == {"max_tokens": 32, "temperature": 0, "seed": 5}
    assert held.latency_s is not None
    facts = run_facts(evidence)
    assert (facts["output_cap"], facts["seed"], facts["harness_version"]) == (32, 5, "0.121.20")
    assert facts["arms"] == {"member:arm_a": "file:provider.js", "member:arm_b": "file:provider.js"}


def test_all_zero_usage_and_the_zero_cost_beside_it_are_unknown() -> None:
    evidence = import_run(recorded(ECHO))
    assert {(c.input_tokens, c.output_tokens, c.cost_micro_usd) for c in candidates(evidence)} == {(None, None, None)}
    unknown = " ".join(file_of(evidence, "echo.json").unknown)
    assert "tokens (all zero" in unknown
    assert "cost" in unknown


def test_lines_have_no_header_and_the_same_rows() -> None:
    evidence = import_run(recorded(LINES))
    assert evidence.splits == (("mixed", "all"),)
    whole = verdicts(import_run(recorded(MIXED)))
    assert verdicts(evidence) == {key: verdict for key, verdict in whole.items() if key[2] == 0}
    unknown = " ".join(file_of(evidence, "mixed.jsonl").unknown)
    assert "no header in JSONL" in unknown
    assert "which rows are repeats" in unknown
    assert "output cap" in unknown


def test_the_files_own_figures_are_claims_and_agree_with_its_rows() -> None:
    evidence = import_run(recorded(MIXED))
    assert claims(evidence, arm=None) == {"stats/successes": 8, "stats/failures": 2, "stats/errors": 2}
    assert claims(evidence, arm="member:arm_b") == {"stats/passes": 4, "stats/failures": 0, "stats/errors": 2}
    for name in ("echo.json", "mixed.json"):
        assert "totals_disagree" not in codes(import_run(recorded(f"promptfoo/{name}")), name)


def test_no_text_and_no_path_is_kept() -> None:
    for name in (ECHO, MIXED, LINES):
        text = repr(list(import_run(recorded(name))))
        for kept_out in (
            "Answer briefly",
            "hash table",
            "Rename branch",
            "upstream answered",
            "work-dir",
            "split(' ')",
        ):
            assert kept_out not in text


# --- rows ------


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        ({"output": "yes", "finishReason": "stop"}, "answered"),
        ({"output": "", "finishReason": "stop"}, "empty"),
        ({"output": " \n"}, "empty"),
        ({"output": "ye", "finishReason": "length"}, "truncated"),
        ({"output": "", "finishReason": "MAX_TOKENS"}, "truncated"),
        ({"output": "no", "finishReason": "content_filter"}, "refused"),
        ({"output": "no", "isRefusal": True}, "refused"),
        ({"output": {"a": 1}}, "answered"),
        ({"output": None}, "empty"),
        ({"output": "yes", "finishReason": "because"}, None),
        ({"output": "yes", "finishReason": "model_context_window_exceeded"}, "truncated"),
    ],
    ids=repr,
)
def test_how_an_answer_ended(tmp_path: Path, response: dict[str, object], outcome: str | None) -> None:
    evidence = one(tmp_path, promptfoo_file(promptfoo_row(0, response=response)))
    assert candidate(evidence).outcome == outcome
    assert candidate(evidence).verdict == "passed"
    unsaid = [line for line in file_of(evidence, "out.json").unknown if line.startswith("how ")]
    assert unsaid == ([] if outcome is not None else ["how 1 answers ended (finish reasons: because 1)"])
    told = [note.items for note in file_of(evidence, "out.json").notes if note.code == "unknown_finish"]
    assert told == ([] if outcome is not None else [("because",)])


def test_a_cached_reply_has_neither_latency_nor_cost_of_its_own(tmp_path: Path) -> None:
    row = promptfoo_row(0)
    row["response"]["cached"] = True
    evidence = one(tmp_path, promptfoo_file(row))
    assert (candidate(evidence).latency_s, candidate(evidence).cost_micro_usd) == (None, None)
    assert codes(evidence, "out.json") == {"cached_replies": 1}


@pytest.mark.parametrize(
    ("response", "cost", "micro"),
    [
        ({"tokenUsage": {"prompt": 5, "completion": 1}, "cost": 0.25}, 0.25, 250_000),
        ({"tokenUsage": {"prompt": 5, "completion": 1}, "cost": 0}, 0, 0),  # a free model says so
        ({"tokenUsage": {"prompt": 5, "completion": 1}}, 0, None),  # filled in by the tool
        ({"tokenUsage": {"prompt": 0, "completion": 0}, "cost": 0}, 0, None),
    ],
    ids=["paid", "free", "unstated", "nothing reported"],
)
def test_costs(tmp_path: Path, response: dict[str, object], cost: float, micro: int | None) -> None:
    row = promptfoo_row(0, response={"output": "yes", **response}, cost=cost, tokenUsage=response["tokenUsage"])
    assert candidate(one(tmp_path, promptfoo_file(row))).cost_micro_usd == micro


def test_reasoning_and_cache_counts_are_read_where_they_are_not_filled_in(tmp_path: Path) -> None:
    usage = {"prompt": 50, "completion": 20, "completionDetails": {"reasoning": 12, "cacheReadInputTokens": 30}}
    row = promptfoo_row(0, response={"output": "yes"}, tokenUsage=usage)
    held = candidate(one(tmp_path, promptfoo_file(row)))
    assert (held.input_tokens, held.cached_tokens, held.output_tokens, held.reasoning_tokens) == (50, 30, 20, 12)


def test_an_error_without_a_failure_reason_is_told_by_the_missing_grading(tmp_path: Path) -> None:
    row = promptfoo_row(0, success=False, gradingResult=None, response={"error": "503"}, error="503")
    del row["failureReason"]
    assert candidate(one(tmp_path, promptfoo_file(row))).outcome == "provider_error"


def test_an_ungraded_answer_that_was_cut_stays_without_a_verdict(tmp_path: Path) -> None:
    grading = {"pass": True, "score": 1, "reason": "No assertions"}
    case = {"description": "c1", "vars": {"q": "c1"}}
    row = promptfoo_row(0, gradingResult=grading, testCase=case, response={"output": "ye", "finishReason": "length"})
    evidence = one(tmp_path, promptfoo_file(row))
    held = evidence.arm("little suite", "all", "member:arm_a")["c1"]
    assert (held.state, held.passed, held.outcome) == ("not_run", None, "truncated")


# --- cases and arms ------


def test_a_repeat_count_that_does_not_fit_falls_back_to_equal_cases(tmp_path: Path) -> None:
    held = [promptfoo_row(0, case="c1"), promptfoo_row(1, case="c2"), promptfoo_row(2, case="c1", success=False)]
    evidence = one(tmp_path, promptfoo_file(*held, repeat=2))
    assert verdicts(evidence) == {
        ("arm_a", "c1", 0): "passed",
        ("arm_a", "c1", 1): "failed",
        ("arm_a", "c2", 0): "passed",
    }
    assert any("which rows are repeats" in line for line in file_of(evidence, "out.json").unknown)


def test_rows_of_lines_with_equal_cases_are_repeats(tmp_path: Path) -> None:
    held = [promptfoo_row(number, column, case=f"c{number // 2}") for number in (3, 0, 2, 1) for column in (1, 0)]
    evidence = one(tmp_path, held, "out.jsonl")
    assert sorted(verdicts(evidence)) == [(f"arm_{a}", f"c{c}", s) for a in "ab" for c in (0, 1) for s in (0, 1)]


def test_a_case_without_a_description_of_its_own_is_named_by_its_content(tmp_path: Path) -> None:
    def row(number: int, question: str, description: str | None) -> dict[str, object]:
        case = {"vars": {"q": question}, "assert": [{"type": "equals", "value": "yes"}]}
        named = case if description is None else {**case, "description": description}
        return promptfoo_row(number, testCase=named, vars={"q": question})

    held = [row(0, "one", None), row(1, "two", "same"), row(2, "three", "same"), row(3, "four", "own")]
    first = [task.id for task in one(tmp_path, promptfoo_file(*held), "a/out.json").of(Task)]
    assert [name.partition("#")[0] for name in first] == ["case", "same", "same", "own"]
    assert len(set(first)) == 4
    turned = [{**made, "testIdx": 3 - made["testIdx"]} for made in held]
    assert sorted(first) == sorted(task.id for task in one(tmp_path, promptfoo_file(*turned), "b/out.json").of(Task))


def test_the_very_same_case_written_twice_is_two_tasks(tmp_path: Path) -> None:
    evidence = one(tmp_path, promptfoo_file(promptfoo_row(0), promptfoo_row(1, success=False)))
    first, second = (task.id for task in evidence.of(Task))
    assert second == f"{first} (2)"
    assert [c.verdict for c in candidates(evidence)] == ["passed", "failed"]


def test_one_provider_under_two_prompts_is_two_configurations(tmp_path: Path) -> None:
    left = promptfoo_row(0, 0, promptId="aaaa1111" * 8, provider={"id": "maker:model"})
    right = promptfoo_row(0, 1, promptId="bbbb2222" * 8, provider={"id": "maker:model"})
    evidence = one(tmp_path, promptfoo_file(left, right))
    assert evidence.arms("little suite", "all") == (
        "member:maker:model@prompt-aaaa1111",
        "member:maker:model@prompt-bbbb2222",
    )


def test_one_provider_twice_under_one_prompt_is_told_by_its_column(tmp_path: Path) -> None:
    held = [promptfoo_row(0, column, provider="maker:model") for column in (0, 1)]  # older files: a provider as text
    arms = one(tmp_path, promptfoo_file(*held)).arms("little suite", "all")
    assert arms == ("member:maker:model@column-0", "member:maker:model@column-1")


@pytest.mark.parametrize(
    ("provider", "kept"),
    [
        ("file:///home/somebody/provider.js", "file:provider.js"),
        ("python:/home/somebody/run.py:call", "python:call"),
        ("exec: python run.py --key=s3cret", "exec"),
        ("https://10.0.0.1/v1?token=s3cret", "https"),
        ("openrouter:maker/model", "openrouter:maker/model"),
    ],
    ids=["file", "python", "exec", "https", "model"],
)
def test_paths_commands_and_addresses_of_providers_are_not_kept(tmp_path: Path, provider: str, kept: str) -> None:
    evidence = one(tmp_path, promptfoo_file(promptfoo_row(0, provider={"id": provider})))
    assert candidate(evidence).requested_model == kept
    for kept_out in ("somebody", "s3cret", "10.0.0.1"):
        assert kept_out not in repr(list(evidence))


def test_of_a_providers_configuration_only_sampling_is_kept(tmp_path: Path) -> None:
    provider = {"id": "maker:model-0", "label": "arm_a"}
    provider["config"] = {
        "apiKey": "s3cret",
        "apiBaseUrl": "http://10.0.0.1",
        "maxTokens": 99,
        "top_p": 0.5,
        "x": "/home/me",
    }  # type: ignore[assignment]
    evidence = one(
        tmp_path, promptfoo_file(promptfoo_row(0), config={"providers": [provider], "env": {"KEY": "s3cret"}})
    )
    assert candidate(evidence).parameters_asked == {"max_tokens": 99, "top_p": 0.5}
    for kept_out in ("s3cret", "10.0.0.1", "/home/me"):
        assert kept_out not in repr(list(evidence))


def test_a_second_run_is_a_replicate_and_another_prompt_is_another_setting(tmp_path: Path) -> None:
    write(tmp_path / "out/1.json", promptfoo_file(promptfoo_row(0), promptfoo_row(1, case="c2")))
    again = promptfoo_file(promptfoo_row(0, success=False), promptfoo_row(1, case="c2"), evalId="eval-2")
    again["results"]["timestamp"] = "2026-02-01T00:00:00Z"
    write(tmp_path / "out/0.json", again)
    evidence = import_run(tmp_path / "out")
    assert evidence.replicates("little suite", "all", "member:arm_a") == (0, 1)
    assert evidence.arm("little suite", "all", "member:arm_a", 1)["c1"].passed is False
    other = promptfoo_file(promptfoo_row(0, promptId="other" * 8), evalId="eval-3")
    write(tmp_path / "out/2.json", other)
    arms = import_run(tmp_path / "out").arms("little suite", "all")
    assert len(arms) == 2
    assert all("@" in arm for arm in arms)


def test_both_exports_of_one_run_are_read_as_one(tmp_path: Path) -> None:
    held = [promptfoo_row(number, column, case=f"c{number}") for number in (0, 1) for column in (0, 1)]
    write(tmp_path / "out/run.json", promptfoo_file(*held))
    write(tmp_path / "out/run.jsonl", held)
    evidence = import_run(tmp_path / "out")
    assert evidence.splits == (("little suite", "all"),)
    assert len(evidence.of(Candidate)) == 4
    held[0] = {**held[0], "success": False}
    write(tmp_path / "out/run.jsonl", held)
    with pytest.raises(EvidenceError, match=r"run\.json and out/run\.jsonl disagree about verdict"):
        import_run(tmp_path / "out")


def test_a_sidecar_names_the_suite_and_one_arm_of_a_file_of_one(tmp_path: Path) -> None:
    write(tmp_path / "out/fused.json", promptfoo_file(promptfoo_row(0), promptfoo_row(1, success=False), repeat=2))
    write(tmp_path / "out/fusion-import.yaml", "files: {fused.json: {arm: compound, suite: mine, split: locked}}")
    evidence = import_run(tmp_path / "out")
    assert {(o.arm, o.task, o.replicate): o.passed for o in evidence.of(ArmOutcome)} == {
        ("compound", "c1", 0): True,
        ("compound", "c1", 1): False,
    }
    write(tmp_path / "out/fused.json", promptfoo_file(promptfoo_row(0), promptfoo_row(0, 1)))
    with pytest.raises(ImportRefusedError, match=r"names one arm, compound, for a file of several \(arm_a, arm_b\)"):
        import_run(tmp_path / "out")


def test_without_a_description_the_suite_is_the_files_stem(tmp_path: Path) -> None:
    held = promptfoo_file(promptfoo_row(0), config={"description": None})
    assert one(tmp_path, held, "my run.json").splits == (("my run", "all"),)


def test_one_case_that_asks_two_things_in_two_files_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "out/1.json", promptfoo_file(promptfoo_row(0)))
    other = promptfoo_file(promptfoo_row(0, vars={"q": "else"}), evalId="eval-2")
    write(tmp_path / "out/2.json", other)
    with pytest.raises(EvidenceError, match="disagree about prompt_sha256"):
        import_run(tmp_path / "out")


# --- bad input ------


def test_totals_that_disagree_with_the_rows_are_noted(tmp_path: Path) -> None:
    held = load(MIXED)
    held["results"]["stats"]["successes"] = 9
    held["results"]["prompts"][0]["metrics"]["testPassCount"] = 7
    assert note(one(tmp_path, held), "out.json", "totals_disagree").items == (
        "stats.successes says 9, the rows say 8",
        "prompts[0].metrics.testPassCount says 7, the rows say 4",
    )


def test_a_grading_that_contradicts_the_verdict_is_noted(tmp_path: Path) -> None:
    row = promptfoo_row(0)
    row["gradingResult"]["pass"] = False
    assert codes(one(tmp_path, promptfoo_file(row)), "out.json") == {"totals_disagree": 1}


def test_a_row_twice_alike_is_one_and_twice_unlike_is_none(tmp_path: Path) -> None:
    held = [promptfoo_row(0, case="c1"), promptfoo_row(0, case="c1"), promptfoo_row(1, case="c2")]
    held.append({**copied(held[2]), "success": False})
    evidence = one(tmp_path, promptfoo_file(*held))
    told = {task: row.passed for task, row in evidence.arm("little suite", "all", "member:arm_a").items()}
    assert told == {"c1": True, "c2": None}
    notes = [n for n in file_of(evidence, "out.json").notes if n.code == "duplicate_ids"]
    assert [n.items for n in notes] == [("c1",), ("c2",)]


def test_a_hole_in_one_column_makes_the_split_incomplete(tmp_path: Path) -> None:
    evidence = one(tmp_path, promptfoo_file(promptfoo_row(0), promptfoo_row(0, 1), promptfoo_row(1, case="c2")))
    assert split(evidence) == Split(
        suite="little suite", split="all", how="recorded", ids=("c1", "c2"), complete=False, source="out.json"
    )


def test_another_layout_is_refused_by_its_number(tmp_path: Path) -> None:
    held = promptfoo_file(promptfoo_row(0))
    held["results"]["version"] = 2
    with pytest.raises(ImportRefusedError, match=r"field results\.version: layout 2 is not known, 3 is"):
        one(tmp_path, held)


def test_an_export_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportRefusedError, match="holds no result"):
        one(tmp_path, promptfoo_file())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"testIdx": None}, "field testIdx: the number of a test is expected, not None"),
        ({"promptIdx": -1}, "field promptIdx: a number of at least 0 is expected, not -1"),
        ({"provider": None}, "field provider: a provider with an id is expected, not None"),
        ({"success": "yes"}, "field success: true or false is expected, not 'yes'"),
        ({"latencyMs": "fast"}, "field latencyMs: a number is expected, not 'fast'"),
        ({"response": []}, "response: an object is expected, not []"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_malformed_row_is_one_line_with_place_and_field(tmp_path: Path, change: dict[str, object], said: str) -> None:
    good, bad = promptfoo_row(0), {**promptfoo_row(1, case="c2"), **change}
    for name, content, place in (
        ("out.json", promptfoo_file(good, {**bad, "promptIdx": 0}), "results.results[1]"),
        ("out.jsonl", [good, bad], "line 2"),
    ):
        if "promptIdx" in change and name == "out.json":
            content["results"]["results"][1]["promptIdx"] = -1  # type: ignore[call-overload,index]
        with pytest.raises(ImportRefusedError) as refused:
            one(tmp_path, content, name)
        line = str(refused.value)
        assert line.startswith(f"{name}: ")
        assert place in line.replace("results[1]", "results.results[1]").replace(
            "results.results.results", "results.results"
        )
        assert said in line
        assert "\n" not in line


def test_nan_is_refused_by_its_field(tmp_path: Path) -> None:
    with pytest.raises(ImportRefusedError, match=r"field results\.results\[0\]\.score: NaN is not a figure"):
        one(tmp_path, promptfoo_file(promptfoo_row(0, score=float("nan"))))


def test_unknown_fields_are_named(tmp_path: Path) -> None:
    evidence = one(tmp_path, {**promptfoo_file(promptfoo_row(0, novelty=1)), "surprise": True})
    assert note(evidence, "out.json", "unknown_fields").items == ("results[].novelty", "surprise")


def test_crlf_changes_nothing(tmp_path: Path) -> None:
    lines = [json.dumps(promptfoo_row(number, case=f"c{number}")) for number in range(3)]
    plain = one(tmp_path, "\n".join(lines) + "\n", "a/out.jsonl")
    other = one(tmp_path, ("\r\n".join(lines) + "\r\n").encode(), "b/out.jsonl")
    assert candidates(plain) == candidates(other)


def test_a_file_of_one_line_is_read_too(tmp_path: Path) -> None:
    assert len(candidates(one(tmp_path, [promptfoo_row(0)], "out.jsonl"))) == 1
    assert len(candidates(one(tmp_path, json.dumps(promptfoo_file(promptfoo_row(0)))))) == 1


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(part=st.floats(0, 0.9999), name=st.sampled_from([ECHO, MIXED, LINES]))
def test_a_cut_off_file_is_refused_or_short_of_whole_lines(tmp_path: Path, part: float, name: str) -> None:
    whole = recorded(name).read_bytes().rstrip()
    kept = whole[: int(len(whole) * part)]
    file = name.rpartition("/")[2]
    try:
        evidence = one(tmp_path, kept, file)
    except ImportRefusedError as refused:
        assert str(refused).startswith(f"{file}: ")  # noqa: PT017 - cut inside a document or a line
        assert "\n" not in str(refused)  # noqa: PT017
    else:
        assert name == LINES
        assert len(candidates(evidence)) == kept.count(b'"promptIdx"')


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.data(),
    junk=st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.text(max_size=3)
    | st.just([])
    | st.just({})
    | st.just([1]),
)
def test_any_value_in_any_field_is_read_or_refused_by_one_line(
    tmp_path: Path, data: st.DataObject, junk: object
) -> None:
    document = copied(promptfoo_file(promptfoo_row(0), promptfoo_row(0, 1), config={"providers": [{"id": "x"}]}))
    place = document
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else list(range(len(place)))))
        if not isinstance(place[key], (dict, list)) or not place[key] or data.draw(st.booleans()):
            place[key] = junk
            break
        place = place[key]
    try:
        evidence = one(tmp_path, json.dumps(document))
    except ImportRefusedError as refused:
        assert "\n" not in str(refused)  # noqa: PT017 - both ways are right
    else:
        json.dumps(repr(list(evidence))).encode()


def test_the_recorded_lines_are_the_rows_of_a_run_without_repeats() -> None:
    assert len(rows(LINES)) == 6
