"""The command: render a stored run, show the findings of a report, look at recorded files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_fusion_audit.cli import main
from pytest_fusion_audit.evidence.importers import read_sources
from pytest_fusion_audit.evidence.rundir import RunDirectory
from tests.plugin.conftest import bank

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bank.json").write_text(json.dumps(bank()))
    return tmp_path / "bank.json"


def test_render_writes_the_same_bytes_again(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = RunDirectory(recorded.parent, "r")
    run.store_import(read_sources([recorded]), {})
    assert main(["render", "r"]) == 0
    first = (run.path / "scorecard.json").read_bytes()
    assert "fusion scorecard · r · imported" in capsys.readouterr().out
    assert main(["render", "r"]) == 0
    assert (run.path / "scorecard.json").read_bytes() == first


def test_render_from_a_report_gives_the_scorecards_table(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = RunDirectory(recorded.parent, "r")
    run.store_import(read_sources([recorded]), {})
    assert main(["render", "r"]) == 0
    shown = capsys.readouterr().out.splitlines()
    scorecard = json.loads((run.path / "scorecard.json").read_text())
    tests = [{"user_properties": [{"fusion_score": row}]} for row in scorecard["criteria"]]
    report = recorded.parent / "report.json"
    report.write_text(json.dumps({"tests": [*tests, {"nodeid": "another"}]}))
    assert main(["render", "--from", str(report)]) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0] == " findings  57 of 57 criteria"
    assert table[1:] == [line for line in shown if line in table[1:]]
    assert len(table) == 11


def test_a_report_of_a_part_says_so(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"id": "2.1", "score": 2, "status": "met"}
    report = recorded.parent / "report.json"
    report.write_text(json.dumps({"tests": [{"user_properties": [{"fusion_score": row}]}]}))
    assert main(["render", "--from", str(report)]) == 0
    assert capsys.readouterr().out.startswith(" findings  1 of 57 criteria; 56 items did not run")


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"tests": [1]}', '{"tests": []}'])
def test_what_is_no_report_is_one_line(recorded: Path, content: str, capsys: pytest.CaptureFixture[str]) -> None:
    report = recorded.parent / "report.json"
    report.write_text(content)
    assert main(["render", "--from", str(report)]) == 4
    said = capsys.readouterr().err
    assert said.startswith("fusion-audit: ")
    assert "--json-report" in said
    assert said.count("\n") == 1


def test_a_run_that_is_not_there(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "nowhere"]) == 4
    assert "audit/nowhere holds no run" in capsys.readouterr().err
    assert not (recorded.parent / "audit").exists()


def test_import_shows_what_a_file_was_taken_for(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(recorded)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("bank.json: fusionkit-bank: ")
    assert "24 candidate" in said
    assert "unknown: " in said
    assert not (recorded.parent / "audit").exists()


def test_import_of_nothing(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(recorded.parent / "nothing.json")]) == 4
    assert "nothing.json" in capsys.readouterr().err
