"""duplicate_ids: a task counts once, whatever it is called."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_fusion_audit.evidence.records import Candidate, Fused, Split, Task
from tests.analysis.validity.validity_plants import IDS, SUITE, changed, clean, codes, evidence, the


def _again(twin: str, *, of: str = IDS[30], prompt: str | None = "own") -> list:
    """A clean audit in which one task stands a second time, in every arm, under another id."""
    more = []
    for record in clean():
        if isinstance(record, (Candidate, Fused)) and record.task == of:
            more.append(replace(record, task=twin))
        elif isinstance(record, Task) and record.id == of and prompt is not None:
            more.append(replace(record, id=twin, prompt_sha256=record.prompt_sha256 if prompt == "own" else prompt))
    return [*clean(), *more]


@pytest.mark.parametrize("twin", ["another-name", f"{IDS[30]}-copy", f"{IDS[30]} "])
def test_two_ids_with_one_prompt_are_one_task(twin: str) -> None:
    finding = the(evidence(_again(twin)), "duplicate_ids")
    assert finding.severity == "error"
    pair = " = ".join(repr(name) for name in sorted([IDS[30], twin]))
    assert f"{SUITE}/locked: 1 of 240 tasks stand under more than one id and count more than once: {pair}" in (
        finding.message
    )
    assert "(the same prompt)" in finding.message
    assert {"1.1", "1.2", "1.3", "2.1"} <= set(finding.affects)


@pytest.mark.parametrize(
    "twin", [f"{IDS[30]} ", f"{IDS[30]}\u200b", f"\ufeff{IDS[30]}", "T030", f"{IDS[30]}-copy", f"{IDS[30]} (copy 2)"]
)
def test_two_ids_that_read_alike_are_one_task_where_no_prompt_is_recorded(twin: str) -> None:
    finding = the(evidence(_again(twin, prompt=None)), "duplicate_ids")
    assert repr(twin) in finding.message
    assert repr(IDS[30]) in finding.message


def test_an_id_that_only_sounds_like_a_copy_is_another_task_where_the_prompts_say_so() -> None:
    assert "duplicate_ids" not in codes(evidence(_again(f"{IDS[30]}-copy", prompt="ab" * 32)))
    assert "duplicate_ids" not in codes(evidence(_again("deep-copy", prompt=None)))


def test_prompts_recorded_to_different_lengths_are_compared_over_what_both_have() -> None:
    whole = next(r for r in clean() if isinstance(r, Task) and r.id == IDS[30]).prompt_sha256
    assert "duplicate_ids" in codes(evidence(_again("z", prompt=whole[:16].upper())))


def test_one_task_in_two_splits_is_counted_in_each_of_them() -> None:
    dev = [replace(r, split="dev") for r in clean() if isinstance(r, Candidate) and r.task == IDS[30]]
    assert "duplicate_ids" not in codes(evidence([*clean(), *dev]))


def test_a_plan_that_lists_a_task_twice_is_told_as_before() -> None:
    records = changed(
        clean(), lambda r: replace(r, ids=(*IDS, IDS[3])) if isinstance(r, Split) and r.split == "locked" else r
    )
    assert f"listed more than once in plan.json: {IDS[3]}" in the(evidence(records), "duplicate_ids").message
