"""The recorded runs of others, read whole: names, counts and what cannot be known, as runs/FORMATS.md has them."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from pytest_fusion_audit.evidence.importers import import_run
from pytest_fusion_audit.evidence.records import Candidate, Claim, Config, Fused, ImportedFile, Phase, Split, Task
from tests.shared_data import shared

if TYPE_CHECKING:
    from pytest_fusion_audit.evidence.container import Evidence


@pytest.fixture(scope="module")
def audit() -> Evidence:
    return import_run(shared("runs/fusionkit-20260701"))


def passed(evidence: Evidence, suite: str, split: str, arm: str) -> tuple[int, int]:
    rows = evidence.arm(suite, split, arm)
    return sum(row.passed is True for row in rows.values()), len(rows)


def test_every_file_of_the_audit_is_recognised_and_clean(audit: Evidence) -> None:
    files = audit.of(ImportedFile)
    assert len(files) == 19
    assert Counter(file.format for file in files)["unrecognised"] == 0
    codes = {note.code for file in files for note in file.notes}
    assert codes == {"unknown_fields", "empty_run"}
    assert all(file.unknown for file in files)


def test_arms_have_the_names_of_the_formats_page(audit: Evidence) -> None:
    policies = ("exec_select", "rewrite", "select_best")
    found = {split: audit.arms(*split) for split in audit.splits}
    assert found == {
        ("livecodebench", "baseline"): (*(f"compound:{p}" for p in policies), "member:gpt", "member:opus"),
        ("livecodebench", "dev"): tuple(
            sorted(
                [
                    *(f"compound:{p}" for p in policies),
                    *(f"compound:{p}@trunc8000" for p in policies),
                    *(f"self:gpt*6:{p}" for p in policies),
                    "compound:rewrite@shallow",
                ]
            )
        ),
        ("livecodebench", "locked"): ("compound", "served", "member:gpt", "member:opus"),
        ("livecodebench", "smoke"): ("compound", "member:gpt", "member:opus"),
        ("polyglot", "locked"): ("compound", "compound@trunc8000"),
    }


@pytest.mark.parametrize(
    ("split", "arm", "count"),
    [
        ("locked", "compound", (57, 86)),
        ("locked", "member:opus", (41, 86)),
        ("locked", "member:gpt", (36, 86)),
        ("locked", "served", (20, 25)),
        ("baseline", "member:gpt", (41, 86)),
        ("baseline", "member:opus", (38, 86)),
        ("baseline", "compound:rewrite", (49, 86)),
        ("dev", "compound:select_best", (101, 150)),
        ("dev", "compound:rewrite@shallow", (95, 150)),
        ("dev", "self:gpt*6:select_best", (92, 150)),
    ],
)
def test_counts(audit: Evidence, split: str, arm: str, count: tuple[int, int]) -> None:
    assert passed(audit, "livecodebench", split, arm) == count


def test_empty_answers_are_known_and_truncation_is_not(audit: Evidence) -> None:
    rows = audit.arm("livecodebench", "baseline", "member:gpt").values()
    assert sum(row.outcome == "empty" for row in rows) == 38
    assert {c.finish_reason for c in audit.of(Candidate)} == {None}


def test_the_same_locked_row_in_two_files_is_one(audit: Evidence) -> None:
    turns = [turn for turn in audit.of(Fused) if turn.split == "locked"]
    assert len(turns) == 86
    assert Counter(turn.pick_member for turn in turns) == {"gpt": 51, None: 34, "opus": 1}
    assert sum(turn.cost_micro_usd or 0 for turn in turns) == 25_235_906
    assert all(("synthesizer" in turn.stage_cost_micro_usd) == (turn.pick_member is None) for turn in turns)
    assert {turn.cost_micro_usd for turn in audit.of(Fused) if turn.split == "smoke"} == {None}


def test_ledgers_manifest_panel_and_claims(audit: Evidence) -> None:
    phases = audit.of(Phase)
    assert (len(phases), sum(p.est_micro_usd or 0 for p in phases), phases[-1].cum_micro_usd) == (
        11,
        240_060_000,
        240_000_000,
    )
    history = [c for c in audit.of(Config) if c.what == "history"]
    assert [c.facts["resolved_tasks"] for c in history] == [0, 5, 5, 16, 0, 86]
    (dev,) = [split for split in audit.of(Split) if split.how == "manifest"]
    assert (dev.split, len(dev.ids or ()), dev.window) == ("dev", 150, ("2024-07-01", "2025-01-01"))
    scores = [c for c in audit.of(Claim) if c.quantity == "score"]
    assert len(scores) == 57
    strict = [c for c in audit.of(Claim) if c.quantity == "judge_pick_accuracy_strict" and c.suite == "polyglot"]
    assert [(c.arm, c.value) for c in strict] == [("compound@trunc8000", 1 / 3), ("compound", 0.0)]
    (panel,) = [c for c in audit.of(Config) if c.what == "panel"]
    assert [m["pricing"] == m["table_pricing"] for m in panel.facts["members"]] == [False, True]


def test_nothing_of_the_machine_is_in_the_records(audit: Evidence) -> None:
    everything = repr(list(audit))
    assert "/workspace" not in everything
    assert str(shared("runs")) not in everything
    assert "127.0.0.1" not in everything


def test_the_caps_beside_the_audit(audit: Evidence) -> None:
    caps = import_run(shared("runs/lcb-60-caps"))
    found = {arm: passed(caps, "livecodebench", "caps", arm)[0] for arm in caps.arms("livecodebench", "caps")}
    assert found["member:gpt55@4096"] == 29
    assert found["member:gpt55@16384"] == 48
    assert len(found) == 10
    rows = caps.arm("livecodebench", "caps", "member:gpt55@4096").values()
    assert sum(row.outcome == "truncated" for row in rows) == 26
    assert (
        sum(row.outcome == "provider_error" for c in found for row in caps.arm("livecodebench", "caps", c).values())
        == 3
    )
    assert len(caps.of(Task)) == 60
    larger, compound = (
        caps.arm("livecodebench", "caps", "member:gpt55@16384"),
        audit.arm("livecodebench", "locked", "compound"),
    )
    assert len(larger.keys() & compound.keys()) == 60


@pytest.mark.parametrize(("name", "scored"), [("j1-g-20260708T171321Z", 59), ("j1-m-20260708T171321Z", 58)])
def test_judge_panels(name: str, scored: int) -> None:
    panels = import_run(shared("runs/judge-panels"))
    arms = ("compound", "member:dsv4pro", "member:mimo", "member:gemini")
    assert panels.arms("livecodebench", name) == arms
    rows = panels.arm("livecodebench", name, "compound").values()
    assert (len(rows), sum(row.passed is not None for row in rows)) == (60, scored)
    assert {row.cost_micro_usd for row in rows} == {None}
    assert len([task for task in panels.of(Task) if task.split == "manifest"]) == 60


def test_official_reports() -> None:
    reports = import_run(shared("runs/swebench-30"))
    assert passed(reports, "swebench-verified", "n30", "compound") == (16, 30)
    assert passed(reports, "swebench-verified", "n30", "member:solo") == (19, 30)


def test_public_matrices() -> None:
    folder = shared("datasets/passmatrix")
    matrices = import_run(folder)
    assert sum(len(matrices.arm(*split, arm)) for split in matrices.splits for arm in matrices.arms(*split)) == 54_168
    suite = "LiveCodeBench code generation"
    assert len(matrices.members(suite, "all")) == 16
    assert passed(matrices, suite, "all", "member:O4-Mini (High)") == (878, 1055)
    document = json.loads((folder / "passmatrix-livecodebench-v6-2025-04.json").read_text())
    column = document["pass_percent"]["DeepSeek-V3"]
    assert passed(matrices, suite, "all", "member:DeepSeek-V3")[0] == sum(value >= 50 for value in column)
    assert len({file.format for file in matrices.of(ImportedFile)}) == 1


@pytest.mark.parametrize(
    "relative", ["datasets/gsm8k", "datasets/humaneval", "datasets/humanevalplus", "datasets/lcb-synthetic", "cases"]
)
def test_what_is_no_run_is_not_taken_for_one(relative: str) -> None:
    from pytest_fusion_audit.errors import ImportRefusedError  # noqa: PLC0415 - only here

    with pytest.raises(ImportRefusedError, match="no file of a known format"):
        import_run(shared(relative))
