"""All evidence of one run, merged and indexed by suite, split and arm.

The way from a record to a number starts here: `Evidence.arm` gives one row per task, whichever record kind the arm was
learned from, and everything above joins those rows by task id.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from pytest_fusion_audit.errors import EvidenceError
from pytest_fusion_audit.evidence.records import (
    ANSWERLESS_OUTCOMES,
    CUT_OUTCOMES,
    UNSCORED_OUTCOMES,
    ArmOutcome,
    Candidate,
    Fused,
    Outcome,
    Record,
    Split,
    State,
    Task,
    Verdict,
    kind_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

R = TypeVar("R")
Mode = Literal["live", "offline", "imported"]

#: What makes two records the same row; records of other kinds are never merged, only exact repeats are dropped.
_IDENTITY: dict[type, tuple[str, ...]] = {
    Task: ("suite", "split", "id"),
    Candidate: ("suite", "split", "task", "member", "config", "sample", "replicate", "turn"),
    Fused: ("suite", "split", "task", "arm", "replicate"),
    ArmOutcome: ("suite", "split", "task", "arm", "replicate"),
}


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What run.json says and scoring may use: no clock, no host, no path."""

    run_id: str = "unnamed"
    mode: Mode = "imported"
    subject_hash: str | None = None
    doors: tuple[str, ...] = ()
    journal: bool = False  # whether the calls of this run stand in a journal of ours
    cap_micro_usd: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ArmRow:
    """What one arm did on one task. ``passed`` is None exactly when ``state`` is ``not_run``."""

    task: str
    state: State
    passed: bool | None
    reason: str | None = None
    outcome: Outcome | None = None
    score: float | None = None
    cost_micro_usd: int | None = None
    latency_s: float | None = None
    output_tokens: int | None = None
    source: str = ""

    @property
    def cut(self) -> bool | None:
        """Whether the answer was truncated or empty; None when the source does not tell."""
        return None if self.outcome is None else self.outcome in CUT_OUTCOMES


class Evidence:
    """Immutable collection of the records of one run, with the joins everything else is computed from.

    Args:
        run: facts of run.json.
        records: records in any order. The same row in two files is one row: fields known on one side only are taken
            over, and two different known values raise.

    Raises:
        EvidenceError: two records of one row contradict each other; the message names both files and the field.
    """

    def __init__(self, run: RunFacts, records: Iterable[Record]) -> None:
        self.run = run
        self._by_type: dict[type, list[Any]] = defaultdict(list)
        rows: dict[tuple[object, ...], int] = {}
        seen: set[tuple[str, str]] = set()
        for record in records:
            kind = type(record)
            held = self._by_type[kind]
            identity = _IDENTITY.get(kind)
            if identity is None:
                key = (kind_of(record), repr(record))
                if key not in seen:
                    seen.add(key)
                    held.append(record)
                continue
            row = (kind, *(getattr(record, name) for name in identity))
            at = rows.get(row)
            if at is None:
                rows[row] = len(held)
                held.append(record)
            else:
                held[at] = _merged(held[at], record)

    def of(self, kind: type[R]) -> Sequence[R]:
        """Records of one type, in the order in which they were read."""
        return cast("Sequence[R]", self._by_type.get(kind, ()))

    def __iter__(self) -> Any:
        for records in self._by_type.values():
            yield from records

    @cached_property
    def _arms(self) -> dict[tuple[str, str], dict[str, dict[int, dict[str, ArmRow]]]]:
        """(suite, split) -> arm -> replicate -> task id -> row."""
        table: dict[tuple[str, str], dict[str, dict[int, dict[str, ArmRow]]]] = {}

        def put(suite: str, split: str, arm: str, replicate: int, row: ArmRow) -> None:
            replicates = table.setdefault((suite, split), {}).setdefault(arm, {})
            replicates.setdefault(replicate, {}).setdefault(row.task, row)

        for fused in self.of(Fused):
            put(fused.suite, fused.split, fused.arm, fused.replicate, row_of_turn(fused))
        for outcome in self.of(ArmOutcome):
            put(outcome.suite, outcome.split, outcome.arm, outcome.replicate, _row_of_outcome(outcome))
        for candidate in self.of(Candidate):
            if candidate.sample == 0 and candidate.turn == 0:  # an arm member:… is its primary sample
                row = row_of_turn(candidate)
                arm = member_arm(candidate.member, candidate.config)
                put(candidate.suite, candidate.split, arm, candidate.replicate, row)
        return table

    @cached_property
    def splits(self) -> tuple[tuple[str, str], ...]:
        """Every (suite, split) in which an arm or a candidate was recorded, sorted."""
        return tuple(sorted(self._arms))

    def arms(self, suite: str, split: str) -> tuple[str, ...]:
        """Names of the arms of a split: compounds and other non-members first, then members in panel order."""
        names = self._arms.get((suite, split), {})
        return tuple(sorted(n for n in names if not is_member(n))) + tuple(n for n in names if is_member(n))

    def members(self, suite: str, split: str) -> tuple[str, ...]:
        """Members of a split in panel order, as bare names (``gpt``, ``gpt@16384``)."""
        return tuple(arm.removeprefix("member:") for arm in self.arms(suite, split) if is_member(arm))

    def arm(self, suite: str, split: str, arm: str, replicate: int = 0) -> Mapping[str, ArmRow]:
        """Rows of one arm by task id; empty when the arm was not recorded there."""
        return self._arms.get((suite, split), {}).get(arm, {}).get(replicate, {})

    def replicates(self, suite: str, split: str, arm: str) -> tuple[int, ...]:
        """Indices of the seeds recorded for an arm."""
        return tuple(sorted(self._arms.get((suite, split), {}).get(arm, {})))

    @cached_property
    def _candidates(self) -> dict[tuple[str, str], dict[str, list[Candidate]]]:
        table: dict[tuple[str, str], dict[str, list[Candidate]]] = {}
        for candidate in self.of(Candidate):
            table.setdefault((candidate.suite, candidate.split), {}).setdefault(candidate.task, []).append(candidate)
        return table

    def candidates(self, suite: str, split: str) -> Mapping[str, Sequence[Candidate]]:
        """Candidates of a split by task id, all samples and replicates, in recorded order."""
        return self._candidates.get((suite, split), {})

    @cached_property
    def _tasks(self) -> dict[tuple[str, str], dict[str, Task]]:
        table: dict[tuple[str, str], dict[str, Task]] = {}
        for task in self.of(Task):
            table.setdefault((task.suite, task.split), {})[task.id] = task
        return table

    def tasks(self, suite: str, split: str) -> Mapping[str, Task]:
        """Task records of a split by id. A split may have rows without task records: facts about them are unknown."""
        return self._tasks.get((suite, split), {})

    def task_facts(self, suite: str, split: str, task: str) -> Task | None:
        """The task's record in this split, else in any other split of the suite (date and class do not change)."""
        own = self.tasks(suite, split).get(task)
        return own if own is not None else self._any_split.get((suite, task))

    @cached_property
    def _any_split(self) -> dict[tuple[str, str], Task]:
        known: dict[tuple[str, str], Task] = {}
        for task in self.of(Task):
            held = known.get((task.suite, task.id))
            if held is None:
                known[task.suite, task.id] = task
            else:
                filled = {f.name: getattr(task, f.name) for f in fields(task) if getattr(held, f.name) is None}
                known[task.suite, task.id] = replace(held, **filled)
        return known

    @cached_property
    def _ids(self) -> dict[tuple[str, str], frozenset[str]]:
        ids: dict[tuple[str, str], set[str]] = defaultdict(set)
        for split in self.of(Split):
            ids[split.suite, split.split].update(split.ids or ())
        for key, arms in self._arms.items():
            for replicates in arms.values():
                for rows in replicates.values():
                    ids[key].update(rows)
        return {key: frozenset(found) for key, found in ids.items()}

    def task_ids(self, suite: str, split: str) -> frozenset[str]:
        """Every task id read or planned in a split."""
        return self._ids.get((suite, split), frozenset())

    @cached_property
    def all_splits(self) -> tuple[tuple[str, str], ...]:
        """Like `splits`, with the splits that are known by their manifest only."""
        return tuple(sorted(self._ids))


def member_arm(member: str, config: str | None = None) -> str:
    """Arm name of a member.

    >>> member_arm("gpt"), member_arm("gpt", "16384")
    ('member:gpt', 'member:gpt@16384')
    """
    return f"member:{member}" if config is None else f"member:{member}@{config}"


def is_member(arm: str) -> bool:
    """Whether the arm is a single member of the panel."""
    return arm.startswith("member:")


def _verdict_passed(verdict: Verdict | None) -> bool | None:
    if verdict is None or verdict == "ungradeable":
        return None
    return verdict == "passed"


def row_of_turn(record: Candidate | Fused) -> ArmRow:
    """What a turn counts as: scored, the compound's own fault (failed), or not run with a reason."""
    passed = _verdict_passed(record.verdict)
    outcome = record.outcome
    state: State = "scored"
    reason = record.reason if isinstance(record, Fused) else None
    if outcome == "pipeline_error":
        state, passed = "pipeline_error", False
    elif outcome in UNSCORED_OUTCOMES:
        state, passed, reason = "not_run", None, reason or outcome
    elif passed is None and record.verdict is None and outcome in ANSWERLESS_OUTCOMES:
        passed = False  # an answer without code is scored and failed
    elif passed is None:
        state = "not_run"
        reason = reason or ("ungradeable" if record.verdict == "ungradeable" else "no verdict recorded")
    return ArmRow(
        task=record.task,
        state=state,
        passed=passed,
        reason=reason,
        outcome=outcome,
        score=record.score,
        cost_micro_usd=record.cost_micro_usd,
        latency_s=record.latency_s,
        output_tokens=record.output_tokens if isinstance(record, Candidate) else None,
        source=record.source,
    )


def _row_of_outcome(record: ArmOutcome) -> ArmRow:
    state, passed = record.state, record.passed
    reason = record.reason
    if state == "pipeline_error":
        passed = False
    elif state == "not_run" or passed is None:
        state, passed, reason = "not_run", None, reason or "no verdict recorded"
    return ArmRow(
        task=record.task,
        state=state,
        passed=passed,
        reason=reason,
        outcome=record.outcome,
        score=record.score,
        cost_micro_usd=record.cost_micro_usd,
        latency_s=record.latency_s,
        output_tokens=record.output_tokens,
        source=record.source,
    )


#: Words that a source uses when it knows no better, and what a source that knows more says of the same answer: a pass
#: map has nothing but failed, a bank without finish reasons nothing but an empty or a non-empty text.
_COARSE: dict[tuple[str, str], frozenset[str]] = {
    ("verdict", "failed"): frozenset({"timeout", "crashed"}),
    ("outcome", "answered"): frozenset({"truncated", "refused"}),
    ("outcome", "empty"): frozenset({"truncated", "refused", "no_text"}),
}


def _refines(name: str, coarse: Any, fine: Any, record: Any) -> bool:
    """Whether ``fine`` says more precisely what ``record`` says with ``coarse``."""
    if name == "outcome" and getattr(record, "finish_reason", None) is not None:
        return False  # a source that saw the answer end knows how it ended
    return isinstance(coarse, str) and fine in _COARSE.get((name, coarse), frozenset())


def _merged(held: Any, record: Any) -> Any:
    changes: dict[str, Any] = {}
    for f in fields(held):
        if f.name == "source":
            continue
        old, new = getattr(held, f.name), getattr(record, f.name)
        if new is None or new == old or (new in ((), {}) and old is not None):
            continue
        if old is None or old in ((), {}) or _refines(f.name, old, new, held):
            changes[f.name] = new
            continue
        if _refines(f.name, new, old, record):
            continue
        where = ", ".join(f"{name} {getattr(held, name)!r}" for name in _IDENTITY[type(held)] if name != "config")
        raise EvidenceError(
            f"{held.source} and {record.source} disagree about {f.name} ({old!r} and {new!r}) of one row: {where}; "
            "remove the file that is wrong and import again"
        )
    if not changes and held.source == record.source:
        return held
    sources = held.source.split(" + ")
    if record.source not in sources:
        changes["source"] = " + ".join([*sources, record.source])
    return replace(held, **changes) if changes else held
