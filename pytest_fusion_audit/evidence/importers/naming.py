"""Applies a user's names (`fusion-import.yaml`) to the records of one file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from pytest_fusion_audit.evidence.container import is_member
from pytest_fusion_audit.evidence.importers.base import Naming
from pytest_fusion_audit.evidence.records import ArmOutcome, Candidate, Claim, Config, Fused, Record, Split, Task

if TYPE_CHECKING:
    from collections.abc import Sequence

R = TypeVar("R", bound=Candidate | Fused | ArmOutcome | Task | Split)


def renamed(records: Sequence[Record], naming: Naming) -> list[Record]:
    """The records under the names the user gave; unchanged where the user gave none.

    A suite or split is put in the place of the importer's own. ``arm: member:x`` names the member of candidates and of
    member arms; any other arm says that the one model a log knows *is* that arm: candidates become outcomes of the arm,
    further samples its replicates. ``config`` becomes the ``@config`` of the arm.
    """
    if naming == Naming():
        return list(records)
    return [_renamed(record, naming) for record in records]


def _renamed(record: Record, naming: Naming) -> Record:
    if isinstance(record, Candidate):
        return _candidate(_placed(record, naming), naming)
    if isinstance(record, (Fused, ArmOutcome)):
        arm = _arm(naming.arm or record.arm, naming.config)
        return replace(_placed(record, naming), arm=arm)
    if isinstance(record, (Task, Split)):
        return _placed(record, naming)
    if isinstance(record, (Claim, Config)) and record.suite is not None:
        return replace(record, suite=naming.suite or record.suite, split=naming.split or record.split)
    return record


def _placed(record: R, naming: Naming) -> R:
    return replace(record, suite=naming.suite or record.suite, split=naming.split or record.split)


def _arm(arm: str, config: str | None) -> str:
    return arm if config is None else f"{arm.partition('@')[0]}@{config}"


def _candidate(candidate: Candidate, naming: Naming) -> Record:
    config = naming.config or candidate.config
    if naming.arm is None or is_member(naming.arm):
        member, _, stated = (naming.arm or f"member:{candidate.member}").removeprefix("member:").partition("@")
        return replace(candidate, member=member, config=naming.config or stated or candidate.config)
    verdict = candidate.verdict
    graded = None if verdict is None or verdict == "ungradeable" else verdict == "passed"
    arm = naming.arm if config is None else _arm(naming.arm, config)
    return ArmOutcome(
        task=candidate.task,
        suite=candidate.suite,
        split=candidate.split,
        arm=arm,
        replicate=candidate.replicate or candidate.sample,
        reason="ungradeable" if verdict == "ungradeable" else None,
        outcome=candidate.outcome,
        passed=graded,
        score=candidate.score,
        cost_micro_usd=candidate.cost_micro_usd,
        latency_s=candidate.latency_s,
        output_tokens=candidate.output_tokens,
        model=candidate.resolved_model or candidate.requested_model or candidate.member,
        source=candidate.source,
    )
