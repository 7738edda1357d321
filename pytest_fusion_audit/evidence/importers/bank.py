"""FusionKit bank: frozen candidates with their verdicts, full (with texts) or slim (with lengths).

``{signature, panel_models, tasks: [{task_id, prompt | prompt_sha256, tests | n_tests, difficulty, candidates:
[{model_id, passed, content | content_chars, …}]}]}``. Also read: ``model`` for ``model_id``, an explicit ``sample``,
``status``, finish reasons and token counts, and at the top ``planned_tasks`` and ``status``. A repeated member is one
more sample; its first occurrence is the primary sample.

Several files of one signature are one bank, joined by (task, member, sample): the newest never wins by date.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.evidence.importers.bank_state import home_of, note_state
from pytest_fusion_audit.evidence.importers.bank_stream import Counted, Digest, parts_of
from pytest_fusion_audit.evidence.importers.base import (
    UNNAMED_SUITE,
    BankFacts,
    Context,
    Peek,
    Reading,
    Source,
    refusal,
)
from pytest_fusion_audit.evidence.importers.judged import contradictions, surely_contradict
from pytest_fusion_audit.evidence.importers.outcomes import (
    VERDICTS,
    known_status,
    outcome_of,
    unknown_finish,
    verdict_of,
)
from pytest_fusion_audit.evidence.importers.rows import Repeats, Row, no_verdict, unknown_fields
from pytest_fusion_audit.evidence.records import ANSWERLESS_OUTCOMES, UNSCORED_OUTCOMES, Candidate, Note, Task

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_fusion_audit.evidence.records import Record

_TOP = {"schema", "signature", "status", "planned_tasks", "panel_models", "note", "suite"}
_TASK = {
    "task_id", "question_id", "candidates", "difficulty", "prompt", "prompt_sha256", "n_tests", "tests", "public_tests",
    "hidden_tests", "private_tests", "public_test_cases", "private_test_cases", "test_cases", "contest_date",
    "cluster_key", "platform", "class",
}  # fmt: skip
_CANDIDATE = {
    "model_id", "model", "sample", "status", "passed", "content", "content_chars", "content_empty", "finish_reason",
    "stop_reason", "prompt_tokens", "input_tokens", "cached_tokens", "completion_tokens", "output_tokens",
    "reasoning_tokens", "cost_usd", "latency_s", "requested_model", "resolved_model", "score",
    "verdict",
}  # fmt: skip
#: What a bank may leave out, and the field of a candidate that tells it.
_TELLS = {
    "finish reasons (an answer that is there may still have been cut)": ("finish_reason", "stop_reason"),
    "tokens": ("completion_tokens", "output_tokens"),
    "cost": ("cost_usd",),
    "latency": ("latency_s",),
    "resolved models": ("resolved_model",),
}


@dataclass(slots=True)
class _Bank:
    """One file while it is read."""

    top: dict[str, Any] = field(default_factory=dict)
    tasks: dict[str, Row] = field(default_factory=dict)
    candidates: dict[tuple[str, str, int], Row] = field(default_factory=dict)
    repeats: Repeats = field(default_factory=Repeats)
    fields: set[str] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)


class Bank:
    """Importer of ``fusionkit-bank``."""

    format = "fusionkit-bank"
    stage = 1

    def recognises(self, _source: Source, peek: Peek) -> bool:
        """An object with a list of tasks that hold candidates, or an empty one that says it is a bank."""
        if peek.container != "json" or "tasks" not in peek.keys:
            return False
        if peek.has("tasks", "[]", "candidates"):
            return True
        of_bank = bool(peek.keys & {"signature", "planned_tasks", "panel_models"}) or peek.keys <= _TOP | {"tasks"}
        holds_other = any(path[:2] == ("tasks", "[]") and len(path) == 3 for path in peek.paths)
        return of_bank and peek.has("tasks", "[]") and (not holds_other or "signature" in peek.keys)

    def read(self, source: Source, context: Context) -> Reading:
        """Candidates, tasks and what was planned; see `Importer.read`."""
        bank = _Bank()
        for key, value in parts_of(source):
            if key == "task":
                _take_task(source, bank, value)
            elif key in bank.top and bank.top[key] != value:
                raise refusal(source, "stands twice with different values", f"field {key}")
            else:
                bank.top[key] = value
        top = Row(source, "", bank.top)
        bank.unread.update(top.others(_TOP))
        facts = home_of(source, top, bank.tasks, context)
        held: dict[str, set[str]] = {task: set() for task in bank.tasks}
        for task, member, _ in bank.candidates:
            held[task].add(member)
        notes = [*note_state(top, held, facts), *bank.repeats.notes(), *unknown_fields(bank.unread)]
        facts.panel.update(dict.fromkeys(member for _, member, _ in bank.candidates))
        candidates = _candidates(bank, facts)
        undecided = sum(_undecided(candidate) for candidate in candidates)
        torn = [task for (task, _, _), row in bank.candidates.items() if _contradicts(row)]
        notes += [*_strange_words(bank), *contradictions(list(dict.fromkeys(torn)))]
        notes += unknown_finish(candidate.finish_reason for candidate in candidates)
        notes += no_verdict(undecided, "candidates")
        records: list[Record] = [_task(row, task, facts) for task, row in bank.tasks.items()]
        records += _in_panel_order(candidates, list(facts.panel))
        silent = [what for what, names in _TELLS.items() if not bank.fields.intersection(names)]
        unknown = (*silent, "temperature", "judge picks", *(("suite",) if facts.suite == UNNAMED_SUITE else ()))
        return Reading(records, unknown, tuple(notes))


def _take_task(source: Source, bank: _Bank, value: Any) -> None:
    row = Row(source, f"tasks[{len(bank.tasks)}]", value)
    task = row.id("task_id", "question_id")
    row.where = f"task {task}"
    bank.unread.update(f"tasks[].{name}" for name in row.others(_TASK))
    if "candidates" not in row.data:
        raise row.refuse("candidates", "a list")
    if task not in bank.tasks:
        bank.tasks[task] = row
    else:
        facts, held = _without_candidates(row.data), _without_candidates(bank.tasks[task].data)
        (bank.repeats.same if facts == held else bank.repeats.spoiled).setdefault(task)
    seen: Counter[str] = Counter()
    for candidate in row.rows("candidates"):
        member = candidate.id("model_id", "model")
        sample = candidate.count("sample")
        if sample is None:
            sample = seen[member]
        seen[member] += 1
        bank.fields.update(name for name, held in candidate.data.items() if held is not None)
        bank.unread.update(f"candidates[].{name}" for name in candidate.others(_CANDIDATE))
        key = (task, member, sample)
        if key not in bank.candidates:
            bank.candidates[key] = candidate
        else:
            same = bank.candidates[key].data == candidate.data
            (bank.repeats.same if same else bank.repeats.spoiled).setdefault(task)


def _without_candidates(task: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in task.items() if name != "candidates"}


def _strange_words(bank: _Bank) -> list[Note]:
    words = {row.text("status") or "ok" for row in bank.candidates.values()}
    strange = tuple(sorted(word for word in words if not known_status(word)))
    if not strange:
        return []
    text = f"status words that are not known and tell nothing: {', '.join(strange[:10])}"
    return [Note(code="unknown_status", message=text, count=len(strange), items=strange[:10])]


def _undecided(candidate: Candidate) -> bool:
    return candidate.verdict is None and candidate.outcome not in ANSWERLESS_OUTCOMES | UNSCORED_OUTCOMES


def _task(row: Row, task: str, facts: BankFacts) -> Task:
    prompt = row.data.get("prompt")
    sha = prompt.sha256[:16] if isinstance(prompt, Digest) else row.text("prompt_sha256")
    public = _counted(row, "public_tests", "public_test_cases")
    hidden = _counted(row, "hidden_tests", "private_tests", "private_test_cases")
    total = _counted(row, "tests", "test_cases")
    if total is None:
        total = row.count("n_tests")
    if total is None and hidden is not None:
        total = hidden + (public or 0)
    date = row.text("contest_date")
    return Task(
        id=task,
        suite=facts.suite,
        split=facts.split,
        task_class=row.text("class") or row.text("platform"),
        cluster=row.text("cluster_key"),
        date=date[:10] if date else None,
        difficulty=row.text("difficulty"),
        public_tests=public,
        total_tests=total,
        prompt_sha256=sha,
        source=row.source.name,
    )


def _counted(row: Row, *names: str) -> int | None:
    for name in names:
        value = row.data.get(name)
        if isinstance(value, Counted) and value.count is not None:
            return value.count
    return None


def _candidates(bank: _Bank, facts: BankFacts) -> list[Candidate]:
    return [_candidate(row, key, facts, spoiled=key[0] in bank.repeats.spoiled) for key, row in bank.candidates.items()]


def _contradicts(row: Row) -> bool:
    """Whether a row says passed at a score of 0, or failed at a full one. A bank has one bar for all its candidates."""
    return surely_contradict(row.flag("passed"), row.number("score"))


def _candidate(row: Row, key: tuple[str, str, int], facts: BankFacts, *, spoiled: bool) -> Candidate:
    task, member, sample = key
    content = row.data.get("content")
    if content is not None and not isinstance(content, Digest):
        raise row.refuse("content", "a text")
    chars = content.chars if content is not None else row.count("content_chars")
    blank = content.blank if content is not None else row.flag("content_empty")
    if blank is None and chars == 0:
        blank = True
    finish = row.text("finish_reason") or row.text("stop_reason")
    outcome = outcome_of(row.text("status"), finish, blank=blank)
    output = row.count("completion_tokens")
    tokens = row.count("prompt_tokens")
    passed, stated = row.flag("passed"), row.text("verdict")
    if stated is not None and (stated not in VERDICTS or (passed is not None and passed != (stated == "passed"))):
        raise row.refuse("verdict", f"one of {', '.join(sorted(VERDICTS))} that agrees with passed")
    verdict = verdict_of(passed, outcome, stated)
    return Candidate(
        task=task,
        suite=facts.suite,
        split=facts.split,
        member=member,
        sample=sample,
        requested_model=row.text("requested_model"),
        resolved_model=row.text("resolved_model"),
        finish_reason=finish,
        outcome=outcome,
        input_tokens=tokens if tokens is not None else row.count("input_tokens"),
        cached_tokens=row.count("cached_tokens"),
        output_tokens=output if output is not None else row.count("output_tokens"),
        reasoning_tokens=row.count("reasoning_tokens"),
        cost_micro_usd=row.money("cost_usd"),
        latency_s=row.number("latency_s", 0),
        answer_chars=chars,
        answer_sha256=content.sha256 if content is not None else None,
        verdict="ungradeable" if spoiled or _contradicts(row) else verdict,
        score=row.number("score"),
        source=row.source.name,
    )


def _in_panel_order(candidates: list[Candidate], panel: list[str]) -> list[Candidate]:
    place = {member: index for index, member in enumerate(panel)}
    return sorted(candidates, key=lambda candidate: place[candidate.member])
