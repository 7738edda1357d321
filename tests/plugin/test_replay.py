"""The main job through pytest: score a recorded run, serial and on two workers."""

from __future__ import annotations

import json

import pytest

from tests.plugin.conftest import run

REPLAY = ("audits", "-m", "replay", "--fusion-run-id=r", "--fusion-import=recorded")


def test_replay_ends_with_a_scorecard(project: pytest.Pytester) -> None:
    result = run(project, *REPLAY)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*fusion scorecard*r*imported*", "*gates*", "*1 headline uplift*"])
    folder = project.path / "audit" / "r"
    scorecard = json.loads((folder / "scorecard.json").read_text())
    assert scorecard["schema"] == "fusion-scorecard/1"
    assert len(scorecard["criteria"]) == 57
    assert scorecard["measurements"]["livecodebench/baseline/member:gpt/passed"] == 6
    assert (folder / "rubric-scorecard.md").read_text().startswith("#")
    assert (folder / "evidence" / "candidate.jsonl").is_file()


def test_score_letters_and_the_fixed_line(project: pytest.Pytester) -> None:
    result = run(project, *REPLAY)
    lines = [line for line in result.outlines if line.startswith("audits/test_dimension_")]
    assert len(lines) == 10
    letters = [line.split()[1] for line in lines]
    assert [len(row) for row in letters] == [6, 5, 6, 6, 6, 6, 6, 5, 7, 4]
    assert set("".join(letters)) <= set("012")
    result.stdout.fnmatch_lines([" items     57 criteria scored in this session: * x 2, * x 1, * x 0"])
    result.assert_outcomes(passed=57, deselected=4)


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_scorecards_are_byte_equal_whatever_the_workers(project: pytest.Pytester, workers: str) -> None:
    assert run(project, *REPLAY, "-n0").ret == 0
    path = project.path / "audit" / "r" / "scorecard.json"
    first = path.read_bytes()
    path.unlink()
    assert run(project, *REPLAY, workers).ret == 0
    assert path.read_bytes() == first


def test_another_selection_gives_the_same_bytes_and_all_57(project: pytest.Pytester) -> None:
    assert run(project, *REPLAY).ret == 0
    path = project.path / "audit" / "r" / "scorecard.json"
    first = path.read_bytes()
    result = run(project, "audits", "-k", "2.1", "--fusion-run-id=r")
    assert result.ret == 0
    assert path.read_bytes() == first
    result.stdout.fnmatch_lines([" items     1 criteria scored in this session: *"])


def test_stored_evidence_is_scored_without_the_files(project: pytest.Pytester) -> None:
    assert run(project, *REPLAY).ret == 0
    path = project.path / "audit" / "r" / "scorecard.json"
    first = path.read_bytes()
    (project.path / "recorded" / "bank.json").unlink()
    assert run(project, "audits", "-m", "replay", "--fusion-run-id=r").ret == 0
    assert path.read_bytes() == first


def test_another_import_replaces_the_evidence(project: pytest.Pytester) -> None:
    assert run(project, *REPLAY).ret == 0
    document = json.loads((project.path / "recorded" / "bank.json").read_text())
    document["tasks"][1]["candidates"][0]["passed"] = True
    (project.path / "recorded" / "bank.json").write_text(json.dumps(document))
    assert run(project, *REPLAY).ret == 0
    scorecard = json.loads((project.path / "audit" / "r" / "scorecard.json").read_text())
    assert scorecard["measurements"]["livecodebench/baseline/member:gpt/passed"] == 7


def test_latest_and_now_name_runs(project: pytest.Pytester) -> None:
    result = run(project, "audits", "-m", "replay", "--fusion-run-id=now", "--fusion-import=recorded")
    assert result.ret == 0
    (folder,) = (project.path / "audit").iterdir()
    assert len(folder.name) == len("YYYYMMDD-HHMM")
    result = run(project, "audits", "-k", "1.1", "--fusion-run-id=latest", "-n2")
    assert result.ret == 0
    assert [found.name for found in (project.path / "audit").iterdir()] == [folder.name]


def test_a_run_of_its_own_evidence_is_never_replaced(project: pytest.Pytester) -> None:
    assert run(project, *REPLAY).ret == 0
    path = project.path / "audit" / "r" / "run.json"
    stored = json.loads(path.read_text())
    stored["mode"] = "live"
    path.write_text(json.dumps(stored))
    result = run(project, *REPLAY)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: audit/r holds a run of mode 'live'*choose another --fusion-run-id*"])


def test_json_report_goes_to_the_run_directory_and_holds_the_findings(project: pytest.Pytester) -> None:
    assert run(project, *REPLAY, "--json-report").ret == 0
    report = json.loads((project.path / "audit" / "r" / "report.json").read_text())
    findings = [
        value
        for test in report["tests"]
        for row in test["user_properties"]
        for name, value in row.items()
        if name == "fusion_score"
    ]
    assert len(findings) == 57
    scorecard = json.loads((project.path / "audit" / "r" / "scorecard.json").read_text())
    assert {row["id"]: row["score"] for row in findings} == {row["id"]: row["score"] for row in scorecard["criteria"]}


def test_a_report_path_of_the_users_stays(project: pytest.Pytester) -> None:
    assert run(project, *REPLAY, "--json-report", "--json-report-file=mine.json").ret == 0
    assert (project.path / "mine.json").is_file()
    assert not (project.path / "audit" / "r" / "report.json").exists()


def test_junit_holds_the_findings(project: pytest.Pytester) -> None:
    assert run(project, *REPLAY, "--junitxml=junit.xml", "-n2").ret == 0
    text = (project.path / "junit.xml").read_text()
    assert text.count('name="fusion_score"') == 57


def test_rootdir_with_an_ini_file_holds_audit(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\n")
    below = project.mkdir("below")
    result = run(project, "--rootdir", str(project.path), "-c", str(project.path / "tox.ini"), *REPLAY)
    assert result.ret == 0
    assert (project.path / "audit" / "r").is_dir()
    assert not (below / "audit").exists()


def test_verbose_names_the_score(project: pytest.Pytester) -> None:
    result = run(project, *REPLAY, "-v", "-k", "2.1")
    result.stdout.fnmatch_lines(["audits/test_dimension_02_ensemble_headroom.py::*2.1-oracle-gap* SCORE *"])


def test_without_terminal_and_without_xdist(project: pytest.Pytester) -> None:
    assert run(project, *REPLAY, "-p", "no:terminal").ret == 0
    assert run(project, *REPLAY, "-p", "no:xdist", "-p", "no:jsonreport").ret == 0
    assert (project.path / "audit" / "r" / "scorecard.json").is_file()
