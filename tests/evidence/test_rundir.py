"""The run directory: one import under a lock, whole or not at all."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_fusion_audit.errors import EvidenceError
from pytest_fusion_audit.evidence.provenance import git_state
from pytest_fusion_audit.evidence.records import Candidate, ImportedFile, Record
from pytest_fusion_audit.evidence.rundir import RunDirectory, resolve_run_id

if TYPE_CHECKING:
    from pathlib import Path

RECORDS: list[Record] = [
    ImportedFile(source="a.json", sha256="00", format="bank"),
    Candidate(task="../../etc/passwd", suite="s", split="dev", member="gpt", verdict="passed", source="a.json"),
    Candidate(task="CON", suite="s", split="dev", member="gpt", verdict="failed", source="a.json"),
]


def test_nothing_is_created_by_naming_a_run(tmp_path: Path) -> None:
    RunDirectory(tmp_path, "r")
    assert list(tmp_path.iterdir()) == []


def test_an_import_is_stored_once_and_read_back(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path, "r")
    assert run.store_import(RECORDS, {}) is True
    assert run.store_import(RECORDS, {}) is False
    evidence = run.evidence()
    assert evidence.run.mode == "imported"
    assert evidence.run.journal is False
    assert set(evidence.arm("s", "dev", "member:gpt")) == {"../../etc/passwd", "CON"}
    names = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {
        "audit/r/run.json",
        "audit/r/run.lock",
        "audit/r/evidence/import.jsonl",
        "audit/r/evidence/candidate.jsonl",
    }


def test_a_kill_between_evidence_and_run_json_leaves_no_run(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path, "r")
    run.store_import(RECORDS, {})
    (run.path / "run.json").unlink()
    with pytest.raises(EvidenceError, match="holds no run"):
        run.evidence()
    assert run.store_import(RECORDS, {}) is True
    assert len(run.evidence().of(Candidate)) == 2


def test_run_json_holds_no_path_of_the_machine(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path, "r")
    run.store_import(RECORDS, {})
    assert str(tmp_path) not in (run.path / "run.json").read_text()


def test_latest_is_the_newest_by_what_was_written_when(tmp_path: Path) -> None:
    for name, when in (("b", "2026-01-02T00:00:00+00:00"), ("a", "2026-01-03T00:00:00+00:00"), ("c", "2026-01-01")):
        run = RunDirectory(tmp_path, name)
        run.store_import(RECORDS, {})
        document = json.loads((run.path / "run.json").read_text())
        document["provenance"]["written_utc"] = when
        (run.path / "run.json").write_text(json.dumps(document))
    assert resolve_run_id("latest", tmp_path) == "a"
    assert resolve_run_id("mine", tmp_path) == "mine"


def test_another_version_of_run_json_is_refused(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path, "r")
    run.store_import(RECORDS, {})
    (run.path / "run.json").write_text('{"schema": "fusion-run/9"}')
    with pytest.raises(EvidenceError, match="fusion-run/1"):
        run.evidence()


def test_two_processes_store_one_import(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from pytest_fusion_audit.evidence.records import Candidate, ImportedFile\n"
        "from pytest_fusion_audit.evidence.rundir import RunDirectory\n"
        "records = [ImportedFile(source='a', sha256='0', format='x')] + [\n"
        "    Candidate(task=str(n), suite='s', split='d', member='m', verdict='passed') for n in range(3000)]\n"
        "print(RunDirectory(Path(sys.argv[1]), 'r').store_import(records, {}))\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = sorted(process.communicate(timeout=60)[0].strip() for process in running)
    assert said == ["False", "False", "True"]
    assert len(RunDirectory(tmp_path, "r").evidence().of(Candidate)) == 3000


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    subprocess.run(["git", *identity, "-C", str(folder), *arguments], check=True, capture_output=True)


def test_git_states(tmp_path: Path) -> None:
    assert git_state(tmp_path)["commit"] is None
    assert git_state(tmp_path)["dirty"] is None
    assert git_state(tmp_path)["reason"] == "not a git repository"
    git(tmp_path, "init")
    assert git_state(tmp_path)["reason"] == "no commit yet"
    (tmp_path / "file").write_text("x")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    clean = git_state(tmp_path)
    assert len(clean["commit"]) == 40
    assert clean["dirty"] is False
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "out.json").write_text("{}")
    assert git_state(tmp_path)["dirty"] is False, "outputs of runs never make the tree dirty"
    (tmp_path / "file").write_text("y")
    assert git_state(tmp_path)["dirty"] is True
