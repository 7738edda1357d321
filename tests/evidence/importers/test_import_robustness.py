"""Whatever a file holds, an import ends in records or in one refusal, never in a traceback of something else."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.errors import FusionAuditError
from pytest_fusion_audit.evidence.files import read_records, write_records
from pytest_fusion_audit.evidence.importers import import_run, read_sources
from pytest_fusion_audit.evidence.records import KINDS, ArmOutcome, Candidate, Fused, kind_of
from tests.evidence.importers.import_plants import TASKS, VALID, ablations, bank, envelope, matrix, turn, write

SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

names = st.sampled_from(sorted(VALID))
#: Anything JSON can hold, with figures and ids that are awkward.
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**20),
    st.floats(allow_nan=False),
    st.text(max_size=8),
    st.sampled_from(["", " ", "\ud800", "a/b", "日本", "scored", "length"]),
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner))


def ends_well(name: str, content: bytes | str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), name, content)
        refused, evidence = "", None
        try:
            evidence = import_run(path)
        except FusionAuditError as error:
            refused = str(error)
        assert "\n" not in refused
        if evidence is None:
            assert refused.startswith(name)
        else:
            for split in evidence.splits:
                for arm in evidence.arms(*split):
                    assert evidence.arm(*split, arm) is not None
            json.dumps([repr(record) for record in evidence]).encode()
            repr(list(evidence)).encode()


@SETTINGS
@given(names, st.data())
def test_a_file_cut_anywhere(name: str, data: st.DataObject) -> None:
    raw = VALID[name].encode()
    ends_well(name, raw[: data.draw(st.integers(0, len(raw)))])


@SETTINGS
@given(names, st.data())
def test_a_file_with_changed_bytes(name: str, data: st.DataObject) -> None:
    raw = bytearray(VALID[name].encode())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    ends_well(name, bytes(raw))


@SETTINGS
@given(st.binary(max_size=200))
def test_bytes_of_any_kind(raw: bytes) -> None:
    ends_well("file", raw)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        found += places(item, (*path, key))
    return found


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    made = dict(value) if isinstance(value, dict) else list(value)
    made[path[0]] = replaced(value[path[0]], path[1:], new)
    return made


JSON_NAMES = sorted(name for name in VALID if name.endswith((".json", ".jsonl")))
DOCUMENTS = {
    name: [json.loads(line) for line in VALID[name].splitlines()] if name.endswith("l") else None for name in JSON_NAMES
}


@settings(SETTINGS, max_examples=300)
@given(st.sampled_from(JSON_NAMES), st.data())
def test_a_file_in_which_one_field_holds_something_else(name: str, data: st.DataObject) -> None:
    rows = DOCUMENTS[name] or [json.loads(VALID[name])]
    at = data.draw(st.integers(0, len(rows) - 1))
    place = data.draw(st.sampled_from(places(rows[at])))
    changed = [*rows[:at], replaced(rows[at], place, data.draw(values)), *rows[at + 1 :]]
    ends_well(name, "\n".join(json.dumps(row) for row in changed))


@SETTINGS
@given(st.sampled_from(JSON_NAMES), st.data())
def test_a_file_in_which_one_field_is_missing(name: str, data: st.DataObject) -> None:
    rows = DOCUMENTS[name] or [json.loads(VALID[name])]
    place = data.draw(st.sampled_from([p for p in places(rows[0]) if isinstance(p[-1], str)]))
    holder: Any = json.loads(json.dumps(rows[0]))
    made = holder
    for step in place[:-1]:
        holder = holder[step]
    del holder[place[-1]]
    ends_well(name, "\n".join(json.dumps(row) for row in [made, *rows[1:]]))


@SETTINGS
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=300))
def test_yaml_of_any_kind(text: str) -> None:
    ends_well("panel.yaml", f"panel_models: [a]\nendpoints: []\n{text}")


cells = st.text(st.characters(codec="utf-8", exclude_categories=("Cc",), exclude_characters=',"'), max_size=6)


@SETTINGS
@given(st.lists(st.lists(cells, min_size=4, max_size=4), min_size=1, max_size=4))
def test_csv_of_any_kind(rows: list[list[str]]) -> None:
    lines = ["task_id,endpoint_id,call_status,passed", *(",".join(row) for row in rows)]
    ends_well("o.csv", "\n".join(lines))


ids = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6).filter(lambda text: text.strip())
verdicts = st.dictionaries(ids, st.one_of(st.booleans(), st.none()), min_size=1, max_size=6)


@SETTINGS
@given(verdicts)
def test_verdicts_come_back_by_id(passes: dict[str, bool | None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        evidence = import_run(write(Path(folder), "ablations.json", ablations(passes)))
    found = {o.task: o.passed for o in evidence.of(ArmOutcome) if o.arm == "compound:rewrite"}
    assert found == passes


@SETTINGS
@given(
    st.dictionaries(ids, st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=5), min_size=1, max_size=5)
)
def test_candidates_come_back_in_their_samples(tasks: dict[str, list[tuple[str, bool]]]) -> None:
    made = [
        {"task_id": task, "candidates": [{"model": member, "passed": passed} for member, passed in drawn]}
        for task, drawn in tasks.items()
    ]
    with tempfile.TemporaryDirectory() as folder:
        evidence = import_run(write(Path(folder), "bank.json", bank(*made)))
    for task, drawn in tasks.items():
        for member in "abc":
            expected = [passed for name, passed in drawn if name == member]
            found = sorted(
                (c.sample, c.verdict) for c in evidence.of(Candidate) if (c.task, c.member) == (task, member)
            )
            assert [sample for sample, _ in found] == list(range(len(expected)))
            assert [verdict == "passed" for _, verdict in found] == expected


money = st.integers(0, 10**9).map(lambda micro: micro / 1_000_000)


@SETTINGS
@given(st.dictionaries(ids, st.tuples(st.booleans(), money), min_size=1, max_size=6))
def test_turns_come_back_with_their_money(turns: dict[str, tuple[bool, float]]) -> None:
    rows = [turn(task, passed=passed, cost_usd=cost) for task, (passed, cost) in turns.items()]
    with tempfile.TemporaryDirectory() as folder:
        evidence = import_run(write(Path(folder), "run.jsonl", [envelope(*rows)]))
    found = {f.task: (f.verdict == "passed", f.cost_micro_usd) for f in evidence.of(Fused)}
    assert found == {task: (passed, round(cost * 1_000_000)) for task, (passed, cost) in turns.items()}


@SETTINGS
@given(st.lists(st.one_of(st.none(), st.integers(0, 100)), min_size=4, max_size=4))
def test_matrix_cells_come_back(column: list[int | None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        evidence = import_run(write(Path(folder), "m.json", matrix(models=[{"name": "m"}], pass_percent={"m": column})))
    found = [o.passed for o in evidence.of(ArmOutcome)]
    assert found == [None if value is None else value >= 50 for value in column]


@pytest.mark.parametrize("name", sorted(VALID))
def test_records_of_every_format_survive_being_stored(tmp_path: Path, name: str) -> None:
    records = read_sources([write(tmp_path, name, VALID[name])])
    for kind in KINDS:
        held = [record for record in records if kind_of(record) == kind]
        path = tmp_path / f"{kind}.jsonl"
        write_records(path, kind, held, {})
        assert list(read_records(path, kind)) == held


def test_ids_of_every_kind_survive_being_stored(tmp_path: Path) -> None:
    odd = [*TASKS, "HumanEval/0", "..\\..\\x", "ünï/日本", "a b\tc\n", "x" * 300]
    records = read_sources([write(tmp_path, "run.jsonl", [envelope(*(turn(task) for task in odd))])])
    fused = [record for record in records if isinstance(record, Fused)]
    write_records(tmp_path / "fused.jsonl", "fused", fused, {})
    assert [record.task for record in read_records(tmp_path / "fused.jsonl", "fused")] == odd
