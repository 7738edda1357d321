"""Planted runs: two members, a compound that beats both, and whatever a test adds, drops or changes.

Task ids are ``t000`` … ``t239``. Passes are ranges of task numbers, so that wins and losses can be read off: the
compound (4..151) wins 32 and loses 4 against gpt (0..119), wins 52 and loses 0 against opus (12..107).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit import load_rubric
from pytest_fusion_audit.evidence.container import Evidence, RunFacts
from pytest_fusion_audit.evidence.records import ArmOutcome, Candidate, Config, Fused, PanelChoice, Record, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pytest_fusion_audit.rubric.score import Score

SUITE, LOCKED, DEV = "tasks-of-ours", "locked", "dev"
N = 240
PASSES: dict[str, Iterable[int]] = {
    "member:gpt": range(120),
    "member:opus": range(12, 108),
    "compound": range(4, 152),
}
LIVE = RunFacts(run_id="planted", mode="live", journal=True, subject_hash="5b", doors=("chat",))
FACTS: dict[str, Any] = {"public": True, "agentic": True, "coding": True, "family": "repository issue"}


def ids(numbers: Iterable[int] = range(N)) -> list[str]:
    """Task ids by number."""
    return [f"t{number:03d}" for number in numbers]


def rows(
    arm: str,
    passes: Iterable[int] | None = None,
    *,
    split: str = LOCKED,
    suite: str = SUITE,
    tasks: Iterable[int] = range(N),
    **fields: Any,
) -> list[Record]:
    """Rows of one arm: candidates of a member (primary samples), turns of anything else."""
    passed = set(ids(PASSES[arm] if passes is None else passes))
    source = fields.pop("source", f"{split}.json")
    member, _, config = arm.removeprefix("member:").partition("@")
    found: list[Record] = []
    for task in ids(tasks):
        verdict = "passed" if task in passed else "failed"
        shared = {"task": task, "suite": suite, "split": split, "verdict": verdict, "source": source, **fields}
        if arm.startswith("member:"):
            found.append(Candidate(member=member, config=config or None, **shared))
        else:
            found.append(Fused(arm=arm, **shared))
    return found


def outcomes(arm: str, passes: Iterable[int], *, split: str = LOCKED, suite: str = SUITE) -> list[Record]:
    """Rows of an arm of which verdicts are all that is known."""
    passed = set(passes)
    return [
        ArmOutcome(task=ids([n])[0], suite=suite, split=split, arm=arm, passed=n in passed, source=f"{split}.json")
        for n in range(N)
    ]


def suite_facts(suite: str = SUITE, **changes: Any) -> Config:
    """What is known of a suite."""
    return Config(what="suite", suite=suite, facts={**FACTS, **changes}, source="known suites")


def panel(*members: Mapping[str, Any]) -> Config:
    """A panel file."""
    default = (
        {"id": "gpt", "provider": "openai", "model": "gpt-5.5"},
        {"id": "opus", "provider": "anthropic", "model": "claude-opus-4-8"},
    )
    return Config(what="panel", facts={"members": [dict(m) for m in members or default]}, source="panel.yaml")


def choice(*chosen: str) -> PanelChoice:
    """A record of two compositions weighed and one chosen."""
    compositions = ({"members": ["gpt", "opus"], "headroom": 0.1}, {"members": ["gpt"], "headroom": 0.0})
    return PanelChoice(compositions=compositions, chosen=chosen or ("gpt", "opus"), source="panel-choice.json")


def served(passes: Iterable[int] = range(4, 60), tasks: Iterable[int] = range(60)) -> list[Record]:
    """A served-path check on sixty of the locked tasks."""
    return rows("served", passes, tasks=tasks)


def clean() -> list[Record]:
    """A locked run that meets 1.1: three arms, a served-path check, suite facts."""
    return [suite_facts(), *rows("member:gpt"), *rows("member:opus"), *rows("compound"), *served()]


def dev_bank(**fields: Any) -> list[Record]:
    """The same panel and compound on the dev split."""
    return [record for arm in PASSES for record in rows(arm, split=DEV, **fields)]


def changed(records: Iterable[Record], when: Callable[[Any], bool], **fields: Any) -> list[Record]:
    """The records, some of them with other fields."""
    return [replace(record, **fields) if when(record) else record for record in records]


def classed(names: Mapping[str, Iterable[int]], *, split: str = LOCKED, suite: str = SUITE) -> list[Record]:
    """Task records with classes."""
    return [
        Task(id=task, suite=suite, split=split, task_class=name, source="tasks.json")
        for name, numbers in names.items()
        for task in ids(numbers)
    ]


def evidence(records: Iterable[Record], run: RunFacts = LIVE, **changes: Any) -> Evidence:
    """Evidence of a run; ``changes`` go to its facts."""
    return Evidence(replace(run, **changes), records)


def score(criterion: str, records: Iterable[Record], run: RunFacts = LIVE, **changes: Any) -> Score:
    """What a criterion of the shipped rubric scores on planted records."""
    return load_rubric().criterion(criterion).measure(evidence(records, run, **changes))
