"""What a user gets wrong ends in one line: what, where, and what to do next. Nothing is stored then."""

from __future__ import annotations

import json

import pytest

from tests.plugin.conftest import files_of, run

REPLAY = ("audits", "-m", "replay")


def refused(result: pytest.RunResult, *, said: str, status: int = 4) -> None:
    assert result.ret == status
    text = [*result.errlines, *result.outlines]
    lines = [line for line in text if line.startswith("ERROR: ")]
    assert len(lines) == 1, text
    assert said in lines[0]
    assert not [line for line in text if "Traceback" in line or "INTERNALERROR" in line]


#: One mistake is made in two workers in every run of the tests, the others take the same way in `make test-all`.
SERIAL_AND_DEEP = ["-n0", pytest.param("-n2", marks=pytest.mark.deep)]


@pytest.mark.parametrize("workers", SERIAL_AND_DEEP)
def test_no_run_id(project: pytest.Pytester, workers: str) -> None:
    result = run(project, *REPLAY, workers)
    refused(result, said="add --fusion-run-id=ID")
    assert not (project.path / "audit").exists()


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_run_that_is_not_there(project: pytest.Pytester, workers: str) -> None:
    refused(run(project, *REPLAY, "--fusion-run-id=x", workers), said="add --fusion-import=PATH")
    assert not (project.path / "audit").exists()


@pytest.mark.parametrize("run_id", ["../x", "a/b", ".hidden", "", "x" * 101, "ü"])
def test_a_run_id_that_is_not_a_folder_name(project: pytest.Pytester, run_id: str) -> None:
    before = files_of(project.path)
    result = run(project, *REPLAY, f"--fusion-run-id={run_id}", "--fusion-import=recorded")
    refused(result, said="use letters, digits")
    assert files_of(project.path) == before


def test_latest_without_runs(project: pytest.Pytester) -> None:
    refused(run(project, *REPLAY, "--fusion-run-id=latest"), said="no run under audit/")


@pytest.mark.parametrize("workers", SERIAL_AND_DEEP)
@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("missing.json", None, "missing.json"),
        ("cut.json", '{"signature": "s", "tasks": [{"task_id": "a", "cand', "cut.json"),
        ("what.json", '{"hello": "world"}', "what.json"),
        ("empty.json", "", "empty.json"),
        ("bank.json", '{"signature": "s", "panel_models": ["a"], "tasks": []}', "bank.json"),
    ],
)
def test_a_file_that_cannot_be_imported(
    project: pytest.Pytester, name: str, content: str | None, said: str, workers: str
) -> None:
    if content is not None:
        (project.path / name).write_text(content)
    result = run(project, *REPLAY, "--fusion-run-id=r", f"--fusion-import={name}", workers)
    refused(result, said=said)
    assert not (project.path / "audit" / "r" / "scorecard.json").exists()
    assert not (project.path / "audit" / "r" / "evidence").exists()


def test_a_refused_import_leaves_the_stored_run_as_it_was(project: pytest.Pytester) -> None:
    named = ("--fusion-run-id=r",)
    assert run(project, *REPLAY, *named, "--fusion-import=recorded").ret == 0
    stored = {name: (project.path / name).read_bytes() for name in files_of(project.path)}
    (project.path / "bad.json").write_text("{")
    refused(run(project, *REPLAY, *named, "--fusion-import=bad.json"), said="bad.json")
    assert {name: (project.path / name).read_bytes() for name in stored} == stored


def test_damaged_evidence_names_file_and_line(project: pytest.Pytester) -> None:
    assert run(project, *REPLAY, "--fusion-run-id=r", "--fusion-import=recorded").ret == 0
    path = project.path / "audit" / "r" / "evidence" / "candidate.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    lines[3] = '{"task": 5}\n'
    path.write_text("".join(lines))
    refused(run(project, *REPLAY, "--fusion-run-id=r"), said="candidate.jsonl, line 4")


def test_damaged_run_json(project: pytest.Pytester) -> None:
    assert run(project, *REPLAY, "--fusion-run-id=r", "--fusion-import=recorded").ret == 0
    (project.path / "audit" / "r" / "run.json").write_text('{"schema": "fusion-run/1"')
    refused(run(project, *REPLAY, "--fusion-run-id=r"), said="run.json is damaged")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--fusion-budget=much", "is not an amount of US dollars"),
        ("--fusion-budget=-1", "is not an amount of US dollars"),
        ("--fusion-deadline=soon", "is not a duration"),
        ("--fusion-until=9", "is not a phase"),
        ("--fusion-seed=-3", "is not a whole number"),
        ("--fusion-mode=dream", "invalid choice"),
    ],
)
def test_an_option_that_makes_no_sense(project: pytest.Pytester, option: str, said: str) -> None:
    result = run(project, *REPLAY, "--fusion-run-id=r", "--fusion-import=recorded", option)
    assert result.ret == 4
    assert said in "\n".join(result.errlines)


def test_an_option_for_phases_says_that_it_has_no_effect(project: pytest.Pytester) -> None:
    result = run(
        project, *REPLAY, "--fusion-run-id=r", "--fusion-import=recorded", "--fusion-budget=5", "--fusion-resume"
    )
    assert result.ret == 0
    result.stdout.fnmatch_lines([" note *no phase is selected: --fusion-budget, --fusion-resume"])


def test_an_item_that_records_no_score_fails(project: pytest.Pytester) -> None:
    module = project.path / "audits" / "test_dimension_02_ensemble_headroom.py"
    module.write_text(module.read_text().replace("score(criterion.measure(evidence))", "criterion.measure(evidence)"))
    result = run(project, *REPLAY, "--fusion-run-id=r", "--fusion-import=recorded")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*2.1-oracle-gap*recorded no score*"])


def test_an_item_that_scores_something_else_than_the_evidence_is_told_apart(project: pytest.Pytester) -> None:
    module = project.path / "audits" / "test_dimension_02_ensemble_headroom.py"
    module.write_text(
        module.read_text().replace(
            "score(criterion.measure(evidence))",
            "from dataclasses import replace\n    score(replace(criterion.measure(evidence), status='met'))",
        )
    )
    result = run(project, *REPLAY, "--fusion-run-id=r", "--fusion-import=recorded")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["ERROR: 2.1: its item recorded 2, the evidence gives 1*"])
    scorecard = json.loads((project.path / "audit" / "r" / "scorecard.json").read_text())
    assert {row["id"]: row["score"] for row in scorecard["criteria"]}["2.1"] == 1


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_lost_results_are_noticed(project: pytest.Pytester, workers: str) -> None:
    # Loses the report of one item on its way to the controller, as a value that xdist cannot serialise does.
    project.makeconftest(
        """
        import pytest

        class Loser:
            @pytest.hookimpl(tryfirst=True)
            def pytest_runtest_protocol(self, item, nextitem):
                return True if "2.3-" in item.nodeid else None

        def pytest_configure(config):
            config.pluginmanager.register(Loser())
        """
    )
    result = run(project, *REPLAY, "--fusion-run-id=r", "--fusion-import=recorded", workers)
    assert result.ret == 12
    result.stdout.fnmatch_lines(["ERROR: 1 results were lost*2.3-*run again"])


def test_a_full_disk_is_one_line(project: pytest.Pytester) -> None:
    # A real fault of the kernel that needs no root: no file may grow over 4 KiB.
    project.makeconftest(
        """
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        """
    )
    result = run(project, *REPLAY, "--fusion-run-id=r", "--fusion-import=recorded", apart=True)
    refused(result, said="nothing was sent or billed, make room and run again")
    assert not (project.path / "audit" / "r" / "run.json").exists()


def test_an_unusable_run_id_writes_nothing_anywhere(project: pytest.Pytester) -> None:
    before = files_of(project.path.parent)
    result = run(project, *REPLAY, "--json-report", "--fusion-run-id=../../esc", "--fusion-import=recorded", apart=True)
    assert result.ret == 4
    written = files_of(project.path.parent) - before
    assert not [name for name in written if "esc" in name]


def test_an_import_that_names_nothing(project: pytest.Pytester) -> None:
    refused(run(project, *REPLAY, "--fusion-run-id=r", "--fusion-import="), said="names nothing")
    assert not (project.path / "audit").exists()


@pytest.mark.parametrize("content", ["", "{}", "[1]", "a: [", "dimensions: []"])
def test_a_faulty_rubric_is_one_line(project: pytest.Pytester, content: str) -> None:
    (project.path / "mine.yaml").write_text(content)
    result = run(project, *REPLAY, "--fusion-run-id=r", "--fusion-import=recorded", "--fusion-rubric=mine.yaml")
    refused(result, said="mine.yaml")


@pytest.mark.parametrize("change", ["remove", "append", "cut"])
def test_changed_evidence_is_noticed_and_importing_again_repairs_it(project: pytest.Pytester, change: str) -> None:
    assert run(project, *REPLAY, "--fusion-run-id=r", "--fusion-import=recorded").ret == 0
    scorecard = (project.path / "audit" / "r" / "scorecard.json").read_bytes()
    path = project.path / "audit" / "r" / "evidence" / "candidate.jsonl"
    content = path.read_bytes()
    if change == "remove":
        path.unlink()
    else:
        path.write_bytes(content + content.splitlines(keepends=True)[-1] if change == "append" else content[:-40])
    refused(run(project, *REPLAY, "--fusion-run-id=r"), said="candidate.jsonl is not what was stored")
    assert run(project, *REPLAY, "--fusion-run-id=r", "--fusion-import=recorded").ret == 0
    assert path.read_bytes() == content or path.read_bytes().splitlines()[1:] == content.splitlines()[1:]
    assert (project.path / "audit" / "r" / "scorecard.json").read_bytes() == scorecard


@pytest.mark.parametrize(
    "content", ['{"schema": "fusion-run/1"}', '{"schema":"fusion-run/1","run_id":5,"mode":"x"}', "[" * 100000]
)
def test_a_run_json_of_other_shape_is_one_line_and_latest_passes_over_it(
    project: pytest.Pytester, content: str
) -> None:
    assert run(project, *REPLAY, "--fusion-run-id=good", "--fusion-import=recorded").ret == 0
    (project.path / "audit" / "bad").mkdir()
    (project.path / "audit" / "bad" / "run.json").write_text(content)
    refused(run(project, *REPLAY, "--fusion-run-id=bad"), said="audit/bad/run.json")
    assert run(project, *REPLAY, "--fusion-run-id=latest").ret == 0
