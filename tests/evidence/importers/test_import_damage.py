"""What can be wrong with a file, whatever its format: each is one line that names file, place and what to do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_fusion_audit.errors import ImportRefusedError
from pytest_fusion_audit.evidence.importers import IMPORTERS, import_run
from pytest_fusion_audit.evidence.importers.peek import SMALL_BYTES
from pytest_fusion_audit.evidence.records import ImportedFile
from tests.evidence.importers.import_plants import (
    FORMATS,
    TASKS,
    VALID,
    ablations,
    bank,
    codes,
    csv_row,
    envelope,
    imported,
    locked_rows,
    matrix,
    note,
    outcomes_csv,
    polyglot,
    shallow,
    shipped,
    split_manifest,
    swebench,
    task_rows,
    turn,
    write,
)

if TYPE_CHECKING:
    from pathlib import Path

EVERY = sorted(VALID)


def refused(path: Path) -> str:
    with pytest.raises(ImportRefusedError) as error:
        import_run(path)
    text = str(error.value)
    assert "\n" not in text
    assert text.startswith(path.name)
    return text


@pytest.mark.parametrize("name", EVERY)
def test_every_format_is_recognised_by_content_and_says_what_is_unknown(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, "nothing-in-the-name", VALID[name])
    (file,) = import_run(path).of(ImportedFile)
    assert file.format == FORMATS[name]
    assert file.unknown
    assert sum(file.records.values()) > 0
    assert file.source == "nothing-in-the-name"
    assert len(file.sha256) == 64


def test_no_two_importers_claim_one_file(tmp_path: Path) -> None:
    from pytest_fusion_audit.evidence.importers.peek import peek_at  # noqa: PLC0415 - only this test looks inside
    from pytest_fusion_audit.evidence.importers.text import source_of  # noqa: PLC0415

    for name in EVERY:
        path = write(tmp_path, name, VALID[name])
        source = source_of(path, name)
        peek = peek_at(source)
        assert [one.format for one in IMPORTERS if one.recognises(source, peek)] == [FORMATS[name]], name


@pytest.mark.parametrize("name", EVERY)
def test_crlf_reads_as_lf(tmp_path: Path, name: str) -> None:
    lf = list(import_run(write(tmp_path, f"a/{name}", VALID[name])))
    crlf = list(import_run(write(tmp_path, f"b/{name}", VALID[name].replace("\n", "\r\n"))))
    assert [repr(r) for r in lf if not isinstance(r, ImportedFile)] == [
        repr(r) for r in crlf if not isinstance(r, ImportedFile)
    ]


@pytest.mark.parametrize("name", [name for name in EVERY if name.endswith((".json", ".jsonl"))])
def test_a_cut_off_json_file_is_refused_at_its_place(tmp_path: Path, name: str) -> None:
    text = VALID[name].rstrip()
    message = refused(write(tmp_path, name, text[: -len(text) // 3]))
    assert ": line " in message
    assert ", column " in message
    assert "cut off: not complete JSON" in message
    assert "repair the file or leave it out" in message


def test_a_cut_off_csv_is_refused_at_its_line(tmp_path: Path) -> None:
    text = outcomes_csv()
    assert "line 5: 9 fields where the header has 17" in refused(write(tmp_path, "o.csv", text[: text.rindex(",900")]))


@pytest.mark.parametrize("name", EVERY)
def test_an_empty_file_is_refused_when_named(tmp_path: Path, name: str) -> None:
    assert "an empty file" in refused(write(tmp_path, name, b""))


def test_a_missing_path_is_refused() -> None:
    with pytest.raises(ImportRefusedError, match=r"no/such/run\.json: no such file or folder; check the path"):
        import_run("no/such/run.json")


@pytest.mark.parametrize(
    "content", ["hello\n", "{}", "[]", "[1, 2]", '"text"', "3", '{"a": 1}', "a,b\n1,2\n", "a: 1\n"]
)
def test_an_unknown_format_is_refused_with_the_known_ones(tmp_path: Path, content: str) -> None:
    message = refused(write(tmp_path, "what.json", content))
    assert "of no known format; known formats: " in message
    assert "fusionkit-bank" in message


def test_an_unknown_file_in_a_folder_stays_visible(tmp_path: Path) -> None:
    write(tmp_path, "runs/bank.json", bank())
    write(tmp_path, "runs/README.md", "# Notes: these are\nruns\n")
    write(tmp_path, "runs/picture.png", b"\x89PNG\r\n\x1a\n\xff\xfe")
    write(tmp_path, "runs/empty.jsonl", b"")
    write(tmp_path, "runs/.hidden.json", b"{")
    write(tmp_path, "runs/.git/config", b"{")
    files = {file.source: file for file in import_run(tmp_path / "runs").of(ImportedFile)}
    assert set(files) == {"runs/bank.json", "runs/README.md", "runs/picture.png", "runs/empty.jsonl"}
    assert codes(files["runs/README.md"]) == codes(files["runs/picture.png"]) == {"unrecognised"}
    assert codes(files["runs/empty.jsonl"]) == {"empty_file"}


def test_damaged_json_in_a_folder_is_refused_and_not_passed_over(tmp_path: Path) -> None:
    write(tmp_path, "runs/bank.json", bank())
    write(tmp_path, "runs/other.json", '{"signature": "s')
    with pytest.raises(ImportRefusedError, match=r"runs/other\.json: line 1, column 15: cut off"):
        import_run(tmp_path / "runs")


@pytest.mark.parametrize("make", [{}, {"notes.txt": "hello\n"}])
def test_a_folder_without_a_known_file_is_refused(tmp_path: Path, make: dict[str, str]) -> None:
    (tmp_path / "runs").mkdir()
    for name, text in make.items():
        write(tmp_path, f"runs/{name}", text)
    with pytest.raises(ImportRefusedError, match=r"an empty folder|no file of a known format"):
        import_run(tmp_path / "runs")


@pytest.mark.parametrize("name", [name for name in EVERY if name != "panel.yaml"])
def test_bytes_that_are_not_utf8_are_refused_at_their_line(tmp_path: Path, name: str) -> None:
    raw = VALID[name].encode()
    at = raw.rindex(b"a" if name.endswith(".csv") else b'"') - 1
    message = refused(write(tmp_path, name, raw[:at] + b"\xff" + raw[at + 1 :]))
    assert "not UTF-8" in message or "line" in message


@pytest.mark.parametrize(
    ("name", "content", "field"),
    [
        ("b.json", bank({"task_id": "t", "candidates": [{"model": "g", "latency_s": float("nan")}]}), "latency_s"),
        ("l.json", {**locked_rows(), "x": turn("x", score=float("nan"))}, "field x.score"),
        ("e.jsonl", [envelope(turn("t", latency_s=float("inf")))], "line 1, field tasks[0].latency_s"),
        ("a.json", ablations(n_tasks=float("nan")), "field n_tasks"),
        ("p.json", polyglot(fused_rate=float("-inf")), "field fused_rate: -Infinity"),
        ("s.json", shallow(n=float("nan")), "field n"),
        ("g.json", shipped(scored=float("nan")), "field scored"),
        ("m.json", matrix(pass_percent={"a/b": [float("nan")] * 4}), "field pass_percent.a/b[0]"),
        ("w.json", swebench(submitted_instances=float("nan")), "field submitted_instances"),
        (
            "spend.jsonl",
            [{"phase": "1", "est_usd": 1, "cum_usd": 1}, {"phase": "1", "est_usd": float("nan")}],
            "line 2",
        ),
        ("o.csv", outcomes_csv(csv_row("t", latency_s="nan")), "line 2, field latency_s"),
        ("o.csv", outcomes_csv(csv_row("t", charged_cost_usd="inf")), "line 2, field charged_cost_usd"),
        (
            "panel.yaml",
            "endpoints: []\npanel_models: [a]\nsampling: {temperature: .nan}\n",
            "sampling, field temperature",
        ),
    ],
)
def test_nan_is_refused_by_its_field(tmp_path: Path, name: str, content: object, field: str) -> None:
    assert field in refused(write(tmp_path, name, content))


@pytest.mark.parametrize("size", ["small", "large"])
def test_nan_in_a_bank_is_refused_whatever_its_size(tmp_path: Path, size: str) -> None:
    text = "c" * (10 if size == "small" else SMALL_BYTES)
    made = bank({"task_id": "t", "candidates": [{"model": "g", "content": text, "cost_usd": float("nan")}]})
    assert "field tasks[0].candidates[0].cost_usd: NaN is not a figure" in refused(write(tmp_path, "b.json", made))


def repeated(text: str, key: str, value: object) -> str:
    """The JSON object with one more member at its front, so that a key stands twice."""
    return "{" + json.dumps(key) + ": " + json.dumps(value) + ", " + text.lstrip()[1:]


@pytest.mark.parametrize(
    ("name", "same", "other"),
    [
        (
            "locked.json",
            repeated(json.dumps(locked_rows()), TASKS[0], locked_rows()[TASKS[0]]),
            repeated(json.dumps(locked_rows()), TASKS[0], {**locked_rows()[TASKS[0]], "passed": False}),
        ),
        (
            "locked.jsonl",
            [envelope(turn(TASKS[0]), turn(TASKS[0]))],
            [envelope(turn(TASKS[0]), turn(TASKS[0], passed=False))],
        ),
        (
            "shipped.json",
            json.dumps(shipped()).replace(
                '"results": {', f'"results": {{"{TASKS[0]}": {json.dumps(shipped()["results"][TASKS[0]])}, '
            ),
            json.dumps(shipped()).replace('"results": {', f'"results": {{"{TASKS[0]}": {{"gateway_passed": false}}, '),
        ),
        (
            "shallow.json",
            json.dumps(shallow()).replace('"shallow_passes": {', f'"shallow_passes": {{"{TASKS[0]}": true, '),
            json.dumps(shallow()).replace('"shallow_passes": {', f'"shallow_passes": {{"{TASKS[0]}": false, '),
        ),
        (
            "o.csv",
            outcomes_csv(csv_row(TASKS[0]), csv_row(TASKS[0])),
            outcomes_csv(csv_row(TASKS[0]), csv_row(TASKS[0], passed="0")),
        ),
        (
            "m.json",
            matrix(tasks=[{"id": t} for t in (TASKS[0], TASKS[0])], pass_percent={"a/b": [100, 100]}, models=[]),
            matrix(tasks=[{"id": t} for t in (TASKS[0], TASKS[0])], pass_percent={"a/b": [100, 0]}, models=[]),
        ),
    ],
    ids=["locked-rows", "envelope", "shipped", "pass-map", "csv", "matrix"],
)
def test_repeated_ids_merge_when_alike_and_leave_both_sides_when_not(tmp_path: Path, name, same, other) -> None:
    evidence, file = imported(tmp_path, f"same/{name}", same)
    assert note(file, "duplicate_ids").items == (TASKS[0],)
    assert all(
        evidence.arm(*split, arm)[TASKS[0]].passed is True
        for split in evidence.splits
        for arm in evidence.arms(*split)
        if arm != "member:opus"
    )
    evidence, file = imported(tmp_path, f"other/{name}", other)
    assert "excluded on both sides" in note(file, "duplicate_ids").message
    for split in evidence.splits:
        for arm in evidence.arms(*split):
            row = evidence.arm(*split, arm)[TASKS[0]]
            assert (row.state, row.passed) == ("not_run", None), arm


def test_repeated_ids_of_manifests_are_counted(tmp_path: Path) -> None:
    _, file = imported(tmp_path, "dev-manifest.json", split_manifest(question_ids=[*TASKS, TASKS[0]]))
    assert note(file, "duplicate_ids").items == (TASKS[0],)
    rows = task_rows()
    _, file = imported(tmp_path, "manifest.jsonl", [*rows, {**rows[0], "difficulty": "easy"}])
    assert "different values" in note(file, "duplicate_ids").message
    assert file.records == {"task": 3}


@pytest.mark.parametrize(
    ("name", "content", "figure"),
    [
        ("e.jsonl", [envelope(passed_tasks=4)], "passed_tasks says 4, the rows say 3"),
        ("e.jsonl", [envelope(score=0.5)], "score says 0.5"),
        ("e.jsonl", [envelope(cost_total_usd=2.0)], "cost_total_usd says 2, the rows say 1"),
        ("e.jsonl", [envelope(total_tasks=5)], "total_tasks says 5"),
        ("e.jsonl", [envelope(infra_error_tasks=1)], "infra_error_tasks says 1"),
        ("a.json", ablations(n_tasks=5), "n_tasks says 5, the rows say 4"),
        ("p.json", polyglot(fused_rate=0.7), "fused_rate says 0.7"),
        ("p.json", polyglot(per_language={"go": {"n": 2, "fused": 1}}), "n of go says 2"),
        ("s.json", shallow(n=3), "n says 3"),
        ("g.json", shipped(pipeline_errors=0), "pipeline_errors says 0, the rows say 1"),
        ("g.json", shipped(gateway_pass_rate=0.9), "gateway_pass_rate says 0.9"),
        ("w.json", swebench(resolved_instances=2), "resolved_instances says 2, the rows say 1"),
        ("w.json", swebench(resolved_ids=["django__django-1", "x__x-1"]), "were not submitted"),
        ("m.json", matrix(models=[{"name": "a/b"}, {"name": "nobody"}]), "listed without a column"),
    ],
)
def test_totals_that_disagree_with_the_rows_are_noted(tmp_path: Path, name: str, content, figure: str) -> None:
    _, file = imported(tmp_path, name, content)
    assert figure in note(file, "totals_disagree").message


@pytest.mark.parametrize("name", EVERY)
def test_totals_that_agree_are_not(tmp_path: Path, name: str) -> None:
    _, file = imported(tmp_path, name, VALID[name])
    assert not codes(file) & {"totals_disagree", "duplicate_ids"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("l.json", {TASKS[0]: turn(TASKS[0], colour=1)}),
        ("e.jsonl", [envelope(turn(TASKS[0], colour=1), colour=2)]),
        ("a.json", ablations(colour=1)),
        ("p.json", polyglot(colour=1)),
        ("s.json", shallow(colour=1)),
        ("g.json", shipped(colour=1)),
        ("w.json", swebench(colour=1)),
        ("m.json", matrix(colour=1)),
        ("spend.jsonl", [{"phase": "1", "est_usd": 1, "colour": 1}]),
        ("o.csv", outcomes_csv().replace("error_message", "colour", 1)),
        ("panel.yaml", "colour: 1\nendpoints: []\npanel_models: []\n"),
    ],
)
def test_fields_nobody_reads_are_named(tmp_path: Path, name: str, content: object) -> None:
    _, file = imported(tmp_path, name, content)
    assert "colour" in note(file, "unknown_fields").message


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("l.json", {TASKS[0]: turn(TASKS[1])}, f"task {TASKS[0]}, field task_id: the key '{TASKS[0]}' is expected"),
        ("l.json", {TASKS[0]: turn(TASKS[0], outcome="lost")}, "field outcome: one of scored, model_failed"),
        ("l.json", {TASKS[0]: turn(TASKS[0], candidate_scores=[1])}, "candidate_scores: an object is expected"),
        ("l.json", {TASKS[0]: turn(TASKS[0], candidate_scores={"gpt": "1"})}, "field gpt: a number is expected"),
        ("e.jsonl", [envelope(turn(TASKS[0], cost_usd="free"))], "line 1.tasks[0], field cost_usd: a number"),
        ("e.jsonl", [envelope(tasks={})], "line 1, field tasks: a list is expected"),
        ("e.jsonl", [envelope(), 3], "line 2, column 1: not JSON"),
        ("a.json", ablations(policies=[]), "field policies: no policy in it"),
        ("a.json", ablations({TASKS[0]: "yes"}), f"policies[0].passes.{TASKS[0]}: true or false is expected"),
        ("p.json", polyglot(passes=[True]), "field passes: an object from task id to true or false"),
        ("p.json", polyglot(fused_ci=[1]), "field fused_ci: a pair of numbers is expected"),
        ("s.json", shallow(n=-4), "field n: a number of at least 0"),
        ("g.json", shipped(results=[1]), "field results: an object keyed by task ids is expected"),
        ("w.json", swebench(resolved_ids=[1]), "field resolved_ids: a list of ids"),
        ("m.json", matrix(pass_percent={"a/b": [1, 2]}), "field pass_percent.a/b: 2 values for 4 tasks"),
        ("m.json", matrix(pass_percent={"a/b": [1, 2, 3, 101]}), "pass_percent.a/b[3]: a number from 0 to 100"),
        ("m.json", matrix(pass_percent={"a/b": 3}), "field pass_percent.a/b: a list is expected, not 3"),
        ("m.json", matrix(tasks=[{"name": 1}], pass_percent={}), "tasks[0], field id: missing"),
        ("spend.jsonl", [{"phase": "1", "est_usd": "1.5"}], "line 1, field est_usd: a number is expected, not '1.5'"),
        ("spend.jsonl", [{"phase": None, "est_usd": 1}], "line 1, field phase: an id is expected, not None"),
        ("h.jsonl", [{"recorded_at": 3, "resolved_tasks": 1, "score": 1}], "line 1, field recorded_at: a text"),
        ("dev.json", split_manifest(question_ids=["a", 3]), "field question_ids: a list of ids"),
        ("t.jsonl", [{"task_id": "a", "public_test_count": 1.5}], "line 1, field public_test_count: a whole number"),
        ("pub.json", {"weights": {}, "scores": {"1.1": 3}}, "scores, field 1.1: 0, 1 or 2 is expected, not 3"),
        ("o.csv", outcomes_csv(csv_row("t", passed="2")), "line 2, field passed: 0, 1 or blank is expected, not '2'"),
        ("o.csv", outcomes_csv(csv_row("t", completion_tokens="many")), "line 2, field completion_tokens: a number"),
        ("o.csv", outcomes_csv(csv_row("t", prompt_tokens="1.5")), "line 2, field prompt_tokens: a whole number"),
        ("o.csv", outcomes_csv(csv_row("")), "line 2, field task_id: blank"),
        ("o.csv", outcomes_csv().replace("provider,", "model,", 1), "line 1: column 'model' stands twice"),
        ("panel.yaml", "panel_models: [a]\nendpoints: 3\n", "field endpoints: a list is expected"),
        ("panel.yaml", "panel_models: [a]\nendpoints:\n - {id: a, model: [1]}\n", "field model: a text"),
        ("panel.yaml", "panel_models: [a]\nendpoints: [\n", "line 3, column 1: not YAML"),
    ],
)
def test_a_malformed_row_is_named_by_line_or_place_and_field(tmp_path: Path, name, content, message: str) -> None:
    assert message in refused(write(tmp_path, name, content))


def test_figures_too_large_to_compute_with_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "spend.jsonl", '{"phase": "1", "est_usd": 1' + "0" * 400 + "}\n")
    assert "field est_usd: a finite number" in refused(path)
    path = write(tmp_path, "spend.jsonl", '{"phase": "1", "est_usd": 1' + "0" * 5000 + "}\n")
    assert "exceeds the limit" in refused(path)


def test_nesting_without_end_is_refused(tmp_path: Path) -> None:
    assert "nested too deeply" in refused(write(tmp_path, "deep.json", '{"tasks": ' + "[" * 100_000))


def test_half_a_character_in_an_id_is_refused_and_elsewhere_replaced(tmp_path: Path) -> None:
    assert "half a character" in refused(write(tmp_path, "l.json", json.dumps({"\ud800": turn("\ud800")})))
    evidence, _ = imported(tmp_path, "spend.jsonl", [{"phase": "1", "est_usd": 1, "note": "a\ud800b"}])
    assert "a?b" in repr(list(evidence))
