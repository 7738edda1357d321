"""Evidence files: written whole, read back equal, forgiving one torn last line and nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.errors import EvidenceError
from pytest_fusion_audit.evidence.files import read_records, write_durably, write_records
from pytest_fusion_audit.evidence.records import (
    KINDS,
    ArmOutcome,
    Candidate,
    Change,
    Claim,
    ComparisonPlan,
    Config,
    Fused,
    ImportedFile,
    Note,
    Record,
    Split,
    Task,
    kind_of,
)

if TYPE_CHECKING:
    from pathlib import Path

IDS = ["HumanEval/0", "a::b[c]", "../../etc/passwd", "CON", "ünï/日本", "a b\tc\n", "x" * 200, "\u2028", "🦉"]
SAMPLES: list[Record] = [
    Task(id="HumanEval/0", suite="s", split="dev", task_class="go", public_tests=2, source="f.json"),
    Candidate(
        task="t",
        suite="s",
        split="dev",
        member="gpt",
        config="16384",
        sample=2,
        parameters_sent={"temperature": 0.2, "stop": ["a"], "seed": None},
        outcome="truncated",
        verdict="failed",
        regrades=("passed", "failed"),
        cost_micro_usd=12,
        call_ids=("c1",),
    ),
    Fused(
        task="t",
        suite="s",
        split="dev",
        candidate_ids=("gpt#0", "opus#0"),
        pick="gpt#0",
        pick_status="named",
        stage_cost_micro_usd={"panel": 5},
        stage_latency_s={"judge": 0.1},
        verdict="passed",
    ),
    ArmOutcome(task="t", suite="s", split="dev", arm="self:gpt*6:rewrite", passed=False, score=0.25),
    Split(suite="s", split="locked", ids=("a", "b"), window=("2025-01-01", "2025-04-01")),
    ComparisonPlan(suite="s", split="locked", arms=("compound",), n=200, baseline_settings={"gpt": {"cap": 16384}}),
    Config(what="panel", facts={"members": [{"id": "gpt", "pricing": {"input": 5}}], "seed": None}),
    Change(change="c", tier=1, accepted=True, facts={"p": 0.01}),
    Claim(quantity="score", value=2, criterion="3.1"),
    ImportedFile(
        source="f", sha256="0", format="x", records={"task": 1}, unknown=("cost",), notes=(Note(code="a", message="b"),)
    ),
]


@pytest.mark.parametrize("record", SAMPLES, ids=kind_of)
def test_what_is_written_is_read_back_equal(tmp_path: Path, record: Record) -> None:
    kind = kind_of(record)
    path = tmp_path / f"{kind}.jsonl"
    assert write_records(path, kind, [record, record], {"git": {"commit": None}}) == 2
    assert list(read_records(path, kind)) == [record, record]


def test_the_first_line_holds_schema_and_provenance(tmp_path: Path) -> None:
    path = tmp_path / "task.jsonl"
    write_records(path, "task", SAMPLES[:1], {"python": "3.11"})
    first, second = path.read_text().splitlines()
    assert json.loads(first) == {"schema": "fusion-evidence/task/1", "python": "3.11"}
    assert json.loads(second)["class"] == "go"
    assert "cluster" not in json.loads(second), "unknown is left out, never 0 or false"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ids=st.lists(st.text(min_size=1, max_size=30).filter(lambda text: text.isprintable()), max_size=8))
def test_any_id_survives_and_no_id_becomes_a_file_name(tmp_path: Path, ids: list[str]) -> None:
    path = tmp_path / "evidence" / "task.jsonl"
    records: list[Record] = [Task(id=name, suite="s", split="d") for name in ids + IDS]
    write_records(path, "task", records, {})
    assert list(read_records(path, "task")) == records
    assert [file.name for file in path.parent.iterdir()] == ["task.jsonl"]


def test_a_torn_last_line_is_set_aside_at_every_byte(tmp_path: Path) -> None:
    path = tmp_path / "task.jsonl"
    records: list[Record] = [Task(id=name, suite="s", split="d") for name in ("ä", "日本")]
    write_records(path, "task", records, {})
    whole = path.read_bytes()
    begin = whole.rstrip(b"\n").rindex(b"\n") + 1
    for cut in range(begin, len(whole) - 1):
        path.write_bytes(whole[:cut])
        assert list(read_records(path, "task")) == records[:1]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"id": 5, "suite": "s", "split": "d"}\n', "line 2: id"),
        (b'{"id": "a", "suite": "s"}\n', "line 2: split"),
        (b'{"id": "a", "suite": "s", "split": "d", "colour": "red"}\n', "line 2: colour"),
        (b'{"id": "a", "suite\n', "line 2: line"),
        (b"\xff\xfe\n", "line 2: line"),
        (b"\n", "line 2: line"),
    ],
)
def test_a_damaged_line_in_the_middle_names_file_line_and_field(tmp_path: Path, line: bytes, said: str) -> None:
    path = tmp_path / "task.jsonl"
    write_records(path, "task", SAMPLES[:1], {})
    head, row = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(head + line + row)
    with pytest.raises(EvidenceError, match=said) as caught:
        list(read_records(path, "task"))
    assert "task.jsonl" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("first", [b"{}\n", b'{"schema": "fusion-evidence/task/2"}\n', b"no\n", b"[]\n"])
def test_another_schema_is_refused(tmp_path: Path, first: bytes) -> None:
    path = tmp_path / "task.jsonl"
    path.write_bytes(first)
    with pytest.raises(EvidenceError, match="line 1"):
        list(read_records(path, "task"))


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "task.jsonl"
    write_durably(path, b"old")
    with pytest.raises(TypeError):
        write_durably(path, "not bytes")  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["task.jsonl"]


def test_every_kind_of_the_design_has_a_type() -> None:
    design = {
        "task",
        "candidate",
        "fused",
        "arm_outcome",
        "phase",
        "drill",
        "split",
        "comparison_plan",
        "route",
        "panel_choice",
        "config",
        "attestation",
        "fault",
        "change",
    }
    assert design | {"claim", "import"} == set(KINDS)


def test_text_that_is_not_unicode_is_refused_by_its_source(tmp_path: Path) -> None:
    path = tmp_path / "config.jsonl"
    records: list[Record] = [Config(what="run", facts={"output_cap": "\ud800"}, source="run.jsonl")]
    with pytest.raises(EvidenceError, match=r"run\.jsonl: holds text that is not Unicode"):
        write_records(path, "config", records, {})
    assert not path.exists()
