"""The whole folder of recorded files of other tools, as a user would import it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from pytest_fusion_audit.evidence.files import read_records, write_records
from pytest_fusion_audit.evidence.importers import import_run, read_sources
from pytest_fusion_audit.evidence.records import KINDS, ImportedFile, kind_of
from tests.evidence.importers.foreign_plants import RECORDED

if TYPE_CHECKING:
    from pathlib import Path


def test_every_recorded_file_is_recognised_and_every_other_stays_visible() -> None:
    evidence = import_run(RECORDED)
    formats = {file.source: file.format for file in evidence.of(ImportedFile)}
    for path in RECORDED.rglob("*"):
        name = f"other_tools/{path.relative_to(RECORDED).as_posix()}"
        if path.is_file() and "__pycache__" not in path.parts:
            assert (formats[name] == "unrecognised") == ("recorded" not in path.parts), name


def test_both_arms_of_each_tool_are_paired_by_task() -> None:
    evidence = import_run(RECORDED)
    paired = {}
    for suite, split in evidence.splits:
        arms = evidence.arms(suite, split)
        if arms == ("member:arm_a", "member:arm_b"):
            left, right = (evidence.arm(suite, split, arm) for arm in arms)
            both = [t for t in left if t in right and left[t].passed is not None and right[t].passed is not None]
            wins = sum(left[t].passed is True and right[t].passed is False for t in both)
            losses = sum(left[t].passed is False and right[t].passed is True for t in both)
            paired[suite] = (len(both), wins, losses)
    assert paired == {
        "tiny_mix": (23, 7, 4),
        "tiny_choice": (12, 3, 1),
        "tiny_write": (6, 0, 0),
        "tiny echo fixture": (6, 2, 1),
        "tiny provider fixture": (2, 0, 1),
        "mixed": (2, 0, 1),
    }


def test_the_records_do_not_depend_on_where_the_folder_lies(tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / RECORDED.name
    shutil.copytree(RECORDED, copy)
    assert repr(read_sources([RECORDED])) == repr(read_sources([copy]))
    assert str(RECORDED) not in repr(read_sources([RECORDED]))


def test_the_records_are_stored_and_read_back_unchanged(tmp_path: Path) -> None:
    records = read_sources([RECORDED])
    for kind in KINDS:
        held = [record for record in records if kind_of(record) == kind]
        if held:
            path = tmp_path / f"{kind}.jsonl"
            write_records(path, kind, held, {})
            assert [repr(record) for record in read_records(path, kind)] == [repr(record) for record in held]
