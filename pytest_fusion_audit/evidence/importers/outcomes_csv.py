"""Outcomes CSV: one line per task and endpoint, several endpoints a file, all under one output cap."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from pytest_fusion_audit.evidence.importers.base import Context, Peek, Reading, Source, refusal, shown
from pytest_fusion_audit.evidence.importers.outcomes import FINE
from pytest_fusion_audit.evidence.importers.rows import LARGEST, Repeats, checked_id, no_verdict, unknown_fields
from pytest_fusion_audit.evidence.importers.text import load_csv
from pytest_fusion_audit.evidence.money import micro_usd
from pytest_fusion_audit.evidence.records import Candidate, Note, Task

if TYPE_CHECKING:
    from pytest_fusion_audit.evidence.records import Outcome, Verdict

_FIELDS = {
    "task_id", "cluster_key", "contest_date", "difficulty", "endpoint_id", "provider", "model", "call_status", "passed",
    "prompt_tokens", "completion_tokens", "total_tokens", "estimated_cost_usd", "provider_cost_usd", "charged_cost_usd",
    "latency_s", "error_message",
}  # fmt: skip
#: What a call cost: what was charged, else what the provider says, else what the authors estimated.
_COSTS = ("charged_cost_usd", "provider_cost_usd", "estimated_cost_usd")


class _Cells:
    """Typed cells of one line; blank is unknown."""

    def __init__(self, source: Source, line: int, cells: dict[str, str]) -> None:
        self.source = source
        self.line = line
        self.cells = cells

    def text(self, name: str) -> str | None:
        return self.cells.get(name, "").strip() or None

    def required(self, name: str) -> str:
        value = self.cells.get(name, "")
        if not value.strip():
            raise refusal(self.source, "blank", f"line {self.line}, field {name}")
        return checked_id(self.source, value, f"line {self.line}, field {name}")

    def number(self, name: str) -> Decimal | None:
        value = self.text(name)
        if value is None:
            return None
        try:
            number = Decimal(value)
        except InvalidOperation:
            number = Decimal("NaN")
        if not number.is_finite() or not 0 <= number <= LARGEST:
            what = f"a number of at least 0 is expected, not {shown(value)}"
            raise refusal(self.source, what, f"line {self.line}, field {name}")
        return number

    def count(self, name: str) -> int | None:
        number = self.number(name)
        if number is not None and number != int(number):
            what = f"a whole number is expected, not {shown(self.cells[name])}"
            raise refusal(self.source, what, f"line {self.line}, field {name}")
        return None if number is None else int(number)

    def passed(self) -> bool | None:
        value = self.text("passed")
        if value not in {None, "0", "1"}:
            raise refusal(
                self.source, f"0, 1 or blank is expected, not {shown(value)}", f"line {self.line}, field passed"
            )
        return None if value is None else value == "1"


class OutcomesCsv:
    """Importer of ``outcomes-csv``."""

    format = "outcomes-csv"
    stage = 0

    def recognises(self, _source: Source, peek: Peek) -> bool:
        """A header with tasks, endpoints, the state of the call and the verdict."""
        return peek.container == "csv" and {"task_id", "endpoint_id", "call_status", "passed"} <= peek.keys

    def read(self, source: Source, context: Context) -> Reading:
        """Members under ``@<cap>`` and facts of the tasks.

        The cap is the largest count of completion tokens in the file; answers that reach it were cut. See
        `Importer.read`.
        """
        rows = [_Cells(source, line, cells) for line, cells in load_csv(source)]
        if not rows:
            raise refusal(source, "a header without rows")
        first: dict[tuple[str, str], _Cells] = {}
        repeats = Repeats()
        for row in rows:
            key = (row.required("task_id"), row.required("endpoint_id"))
            if key not in first:
                first[key] = row
            else:
                (repeats.same if first[key].cells == row.cells else repeats.spoiled).setdefault(key[0])
        cap = _Cap.of(rows)
        ids = list(dict.fromkeys(task for task, _ in first))
        suite = context.suite_name(source, ids)
        split = context.naming(source).split or "caps"
        tasks, task_notes = _tasks(source, rows, suite, split)
        candidates = [
            _candidate(row, suite, split, cap, spoiled=task in repeats.spoiled) for (task, _), row in first.items()
        ]
        order = {member: index for index, member in enumerate(dict.fromkeys(member for _, member in first))}
        candidates.sort(key=lambda candidate: order[candidate.member])
        undecided = sum(c.verdict is None and c.outcome != "provider_error" for c in candidates)
        notes = [*repeats.notes(), *task_notes, *no_verdict(undecided, "rows")]
        notes += unknown_fields(name for name in rows[0].cells if name not in _FIELDS)
        unknown = ["finish reasons", "answers and their lengths", "temperature and seed"]
        unknown.append(
            "the output cap as asked for (taken from the largest completion_tokens)"
            if cap.binds
            else "the output cap: no answer looks cut at one, whether any was is not known"
        )
        if any(c.cost_micro_usd is None for c in candidates):
            unknown.append("cost where all three cost columns are blank")
        return Reading([*tasks, *candidates], tuple(unknown), tuple(notes))


def _tasks(source: Source, rows: list[_Cells], suite: str, split: str) -> tuple[list[Task], list[Note]]:
    facts: dict[str, Task] = {}
    differing: dict[str, None] = {}
    for row in rows:
        date = row.text("contest_date")
        task = Task(
            id=row.required("task_id"),
            suite=suite,
            split=split,
            cluster=row.text("cluster_key"),
            date=date[:10] if date else None,
            difficulty=row.text("difficulty"),
            source=source.name,
        )
        if facts.setdefault(task.id, task) != task:
            differing.setdefault(task.id)
    notes = []
    if differing:
        text = f"date, cluster or difficulty of {len(differing)} tasks differ between their rows: not used"
        notes.append(
            Note(code="task_facts_differ", message=text, count=len(differing), items=tuple(list(differing)[:10]))
        )
    return [task for task in facts.values() if task.id not in differing], notes


@dataclass(frozen=True, slots=True)
class _Cap:
    """Output cap of a file: its largest count of completion tokens, and whether that looks like a cap at all.

    Nothing says so, but a cap leaves traces: several answers reach it, or it is a round number.
    """

    tokens: int | None
    binds: bool

    @classmethod
    def of(cls, rows: list[_Cells]) -> _Cap:
        counts = [count for row in rows if (count := row.count("completion_tokens")) is not None]
        most = max(counts, default=None)
        binds = most is not None and most > 0 and (counts.count(most) > 1 or most % 256 == 0 or most % 1000 == 0)
        return cls(most, binds)


def _candidate(row: _Cells, suite: str, split: str, cap: _Cap, *, spoiled: bool) -> Candidate:
    status = row.text("call_status")
    tokens = row.count("completion_tokens")
    passed = row.passed()
    outcome: Outcome | None = None
    verdict: Verdict | None = None
    if status is not None and status.lower() not in FINE:
        outcome = "provider_error"
    else:
        if cap.binds and tokens is not None and cap.tokens is not None:
            outcome = "truncated" if tokens >= cap.tokens else "answered"
        if passed is not None:
            verdict = "passed" if passed else "failed"
    cost = next((amount for name in _COSTS if (amount := row.number(name)) is not None), None)
    latency = row.number("latency_s")
    return Candidate(
        task=row.required("task_id"),
        suite=suite,
        split=split,
        member=row.required("endpoint_id"),
        config=None if cap.tokens is None else str(cap.tokens),
        requested_model=row.text("model"),
        outcome=outcome,
        input_tokens=row.count("prompt_tokens"),
        output_tokens=tokens,
        cost_micro_usd=None if cost is None else micro_usd(cost),
        latency_s=None if latency is None else float(latency),
        verdict="ungradeable" if spoiled else verdict,
        source=row.source.name,
    )
