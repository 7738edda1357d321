"""The container: one row per task and arm; unknown stays unknown; contradictions name both files."""

from __future__ import annotations

import pytest

from pytest_fusion_audit.errors import EvidenceError
from pytest_fusion_audit.evidence.container import Evidence, RunFacts
from pytest_fusion_audit.evidence.records import ArmOutcome, Candidate, Fused, Split, Task


def candidate(**fields: object) -> Candidate:
    given = {"task": "t", "suite": "s", "split": "dev", "member": "gpt", "source": "a.json", **fields}
    return Candidate(**given)  # type: ignore[arg-type]


def row(**fields: object) -> object:
    return Evidence(RunFacts(), [candidate(**fields)]).arm("s", "dev", "member:gpt")["t"]


@pytest.mark.parametrize(
    ("fields", "state", "passed"),
    [
        ({"verdict": "passed"}, "scored", True),
        ({"verdict": "failed"}, "scored", False),
        ({"verdict": "timeout"}, "scored", False),
        ({"verdict": "crashed"}, "scored", False),
        ({"verdict": "ungradeable"}, "not_run", None),
        ({}, "not_run", None),
        ({"outcome": "answered"}, "not_run", None),
        ({"outcome": "truncated"}, "scored", False),
        ({"outcome": "empty"}, "scored", False),
        ({"outcome": "refused"}, "scored", False),
        ({"outcome": "truncated", "verdict": "passed"}, "scored", True),
        ({"outcome": "provider_error"}, "not_run", None),
        ({"outcome": "provider_error", "verdict": "failed"}, "not_run", None),
        ({"outcome": "context_length"}, "not_run", None),
        ({"outcome": "censored_budget"}, "not_run", None),
        ({"outcome": "censored_rate_limit"}, "not_run", None),
        ({"outcome": "pipeline_error"}, "pipeline_error", False),
    ],
)
def test_state_of_a_row(fields: dict[str, object], state: str, passed: bool | None) -> None:
    found = row(**fields)
    assert (found.state, found.passed) == (state, passed)  # type: ignore[attr-defined]


def test_the_same_row_in_two_files_is_one_row_and_fills_up() -> None:
    evidence = Evidence(
        RunFacts(), [candidate(verdict="passed"), candidate(latency_s=2.0, cost_micro_usd=5, source="b.json")]
    )
    (found,) = evidence.of(Candidate)
    assert (found.verdict, found.latency_s, found.cost_micro_usd) == ("passed", 2.0, 5)
    assert found.source == "a.json + b.json"


def test_two_files_that_contradict_each_other_are_named() -> None:
    with pytest.raises(EvidenceError, match=r"a\.json and b\.json disagree about verdict .*'t'"):
        Evidence(RunFacts(), [candidate(verdict="passed"), candidate(verdict="failed", source="b.json")])


def test_only_the_primary_sample_is_the_members_arm() -> None:
    records = [candidate(verdict="failed"), candidate(verdict="passed", sample=1)]
    evidence = Evidence(RunFacts(), records)
    assert evidence.arm("s", "dev", "member:gpt")["t"].passed is False
    assert [c.id for c in evidence.candidates("s", "dev")["t"]] == ["gpt#0", "gpt#1"]


def test_arms_are_listed_compounds_first_members_in_panel_order() -> None:
    records = [
        candidate(member="opus", verdict="passed"),
        candidate(member="gpt", verdict="passed"),
        ArmOutcome(task="t", suite="s", split="dev", arm="served", passed=True),
        Fused(task="t", suite="s", split="dev", verdict="passed"),
    ]
    evidence = Evidence(RunFacts(), records)
    assert evidence.arms("s", "dev") == ("compound", "served", "member:opus", "member:gpt")
    assert evidence.members("s", "dev") == ("opus", "gpt")


def test_facts_of_a_task_are_found_in_another_split_of_its_suite() -> None:
    evidence = Evidence(
        RunFacts(),
        [
            candidate(split="locked", verdict="passed"),
            Task(id="t", suite="s", split="manifest", date="2025-01-01"),
            Task(id="t", suite="s", split="caps", cluster="c1"),
        ],
    )
    found = evidence.task_facts("s", "locked", "t")
    assert found is not None
    assert (found.date, found.cluster) == ("2025-01-01", "c1")
    assert evidence.task_facts("other", "locked", "t") is None


def test_ids_of_a_split_are_those_read_and_those_planned() -> None:
    evidence = Evidence(
        RunFacts(), [candidate(verdict="passed"), Split(suite="s", split="dev", ids=("t", "u"), source="m.json")]
    )
    assert evidence.task_ids("s", "dev") == {"t", "u"}
    assert evidence.task_ids("s", "nowhere") == frozenset()


def test_seeds_stay_apart() -> None:
    evidence = Evidence(
        RunFacts(), [candidate(verdict="passed"), candidate(verdict="failed", replicate=1, source="b.json")]
    )
    assert evidence.replicates("s", "dev", "member:gpt") == (0, 1)
    assert evidence.arm("s", "dev", "member:gpt", 1)["t"].passed is False
