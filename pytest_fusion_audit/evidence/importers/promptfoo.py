"""promptfoo results: ``-o x.json`` (results.version 3) and ``-o x.jsonl``, the same rows without a header.

One file holds several arms: each column is a provider under a prompt. Suite = the configuration's description, else the
file's stem; task = test case; member = the provider's label, else its id. Repeats of a case are samples of a member.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_fusion_audit.evidence.importers.answers import Answer, arm_named, member_arm_of, record_of
from pytest_fusion_audit.evidence.importers.base import Context, Peek, Reading, Source, refusal
from pytest_fusion_audit.evidence.importers.claims import Claims
from pytest_fusion_audit.evidence.importers.outcomes import unknown_finish
from pytest_fusion_audit.evidence.importers.promptfoo_cases import Cases, Counts, answer_of, cases_of, is_error
from pytest_fusion_audit.evidence.importers.promptfoo_file import Arm, ResultsFile, read_file
from pytest_fusion_audit.evidence.importers.rows import Totals, no_verdict, unknown_fields
from pytest_fusion_audit.evidence.importers.tool_runs import Standing, ToolRun, short_names, standings
from pytest_fusion_audit.evidence.records import Config, Note, Split, Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic import JsonValue

    from pytest_fusion_audit.evidence.records import Claim, Record

_ROW = {
    "cost", "error", "gradingResult", "id", "latencyMs", "namedScores", "prompt", "promptId", "promptIdx", "provider",
    "response", "score", "success", "testCase", "testIdx", "tokenUsage", "vars", "metadata", "failureReason",
    "description", "pluginId", "strategyId", "evalId",
}  # fmt: skip

#: What no file of this tool tells.
_UNKNOWN = (
    "resolved models",
    "when each answer was given",
    "cases that were planned and never run",
    "whether an answer without a finish reason was cut",
)


@dataclass(slots=True)
class _Read:
    """One file while it is turned into records."""

    file: ResultsFile
    cases: Cases
    standings: dict[int, Standing]  # by column
    counts: Counts
    answers: dict[int, list[Answer]]

    @property
    def suite_and_split(self) -> tuple[str, str]:
        place = next(iter(self.standings.values())).place
        return place.suite, place.split


class Promptfoo:
    """Importer of ``promptfoo-results``."""

    format = "promptfoo-results"
    stage = 0

    def recognises(self, source: Source, peek: Peek) -> bool:  # noqa: ARG002 - the content decides
        """An object with an evaluation's id and its results, or rows with a column, a test and a verdict."""
        if {"promptIdx", "testIdx", "success"} <= peek.keys:
            return peek.container in {"json", "jsonl"}
        return peek.container == "json" and {"evalId", "results"} <= peek.keys and peek.has("results", "version")

    def read(self, source: Source, context: Context) -> Reading:
        """Columns as arms, cases as tasks, the file's figures as claims; see `Importer.read`."""
        file = read_file(source)
        if not file.rows:
            raise refusal(source, "holds no result", then="run it again or leave it out")
        table = _table(source, context)
        read = _Read(file, cases_of(file), {index: table[source.name, str(index)] for index in file.arms}, Counts(), {})
        for index, arm in file.arms.items():
            read.answers[index] = [
                answer_of(row, case, repeat, arm, read.counts)
                for case in read.cases.cases
                for (column, repeat), row in sorted(case.rows.items())
                if column == index
            ]
        standing_notes = dict.fromkeys(note for standing in read.standings.values() for note in standing.notes)
        return Reading(_records(read), _unknown(read), (*standing_notes, *_notes(read)))


def _table(source: Source, context: Context) -> dict[tuple[str, str], Standing]:
    """Place of each column of every file of the import."""
    known = context.sources.get(Promptfoo.format, [])
    if source in known:
        return context.once(Promptfoo.format, lambda: _placed(known, context))
    return _placed([source], context)


def _placed(sources: Sequence[Source], context: Context) -> dict[tuple[str, str], Standing]:
    files = {source.name: read_file(source) for source in sources}
    names = {arm.name: arm.name.rpartition("/")[2] for file in files.values() for arm in file.arms.values()}
    short = short_names(names)
    whole = {row_id: file for file in files.values() if file.run_id is not None for row_id in _row_ids(file)}
    runs = []
    for name, file in files.items():
        # A JSONL export whose rows stand in a JSON export of the same import is the same run.
        ids = _row_ids(file) if file.run_id is None else []
        same = next((whole[row_id] for row_id in ids if row_id in whole), file)
        naming = context.naming(file.source)
        if naming.arm is not None and len(file.arms) > 1:
            arms = ", ".join(arm.name for arm in file.arms.values())
            raise refusal(
                file.source,
                f"fusion-import.yaml names one arm, {naming.arm}, for a file of several ({arms})",
                then="leave arm out, or export one provider a file",
            )
        identity = same.run_id or file.source.name
        for index, arm in file.arms.items():
            named, config = arm_named(naming.arm) if naming.arm is not None else (member_arm_of(short[arm.name]), None)
            runs.append(
                ToolRun(
                    file=name,
                    key=str(index),
                    suite=naming.suite or same.description or same.source.stem,
                    split=naming.split or "all",
                    arm=named,
                    config=naming.config or config or arm.config,
                    identity=identity,
                    lineage=identity,
                    settings=same.arms[index].settings if naming.arm is None and index in same.arms else "",
                    started=same.started,
                    repeats=same.repeat or 1,
                )
            )
    return standings(runs)


def _row_ids(file: ResultsFile) -> list[str]:
    return [value for row in file.rows if isinstance(value := row.data.get("id"), str)]


def _records(read: _Read) -> list[Record]:
    source = read.file.source.name
    suite, split = read.suite_and_split
    records: list[Record] = [
        # The rendered prompt belongs to the arm; what the case itself says are its variables.
        Task(id=case.id, suite=suite, split=split, checker=case.checker, prompt_sha256=case.variables, source=source)
        for case in read.cases.cases
    ]
    for index, standing in read.standings.items():
        records += [record_of(answer, standing.place, source) for answer in read.answers[index]]
    ids = tuple(case.id for case in read.cases.cases)
    records.append(
        Split(
            suite=suite, split=split, how="recorded", ids=ids, complete=False if _holes(read) else None, source=source
        )
    )
    records.append(Config(what="run", facts=_facts(read), suite=suite, split=split, source=source))
    return [*records, *_claims(read)]


def _holes(read: _Read) -> int:
    """Answers that are not there although another column has one for the same case, or that ended in an error."""
    expected = len(read.file.arms) * sum(len({repeat for _, repeat in case.rows}) for case in read.cases.cases)
    return expected - sum(map(len, read.answers.values())) + len(read.counts.errors)


def _facts(read: _Read) -> dict[str, JsonValue]:
    file = read.file
    parameters: dict[str, JsonValue] = {
        read.standings[index].place.full_arm: dict(arm.parameters) for index, arm in file.arms.items() if arm.parameters
    }
    known: dict[str, JsonValue] = {
        "harness": "promptfoo",
        "harness_version": file.version,
        "arms": {read.standings[index].place.full_arm: arm.provider for index, arm in file.arms.items()},
        "generated_at": file.started or None,
        "repeats": file.repeat,
        "cache": file.cached,
        "output_cap": _common(file.arms.values(), "max_tokens"),
        "seed": _common(file.arms.values(), "seed"),
        "sampling_by_arm": parameters or None,
    }
    return {name: value for name, value in known.items() if value is not None}


def _common(arms: Iterable[Arm], name: str) -> JsonValue:
    """A parameter that all arms share; None when one lacks it or has another."""
    values = [arm.parameters.get(name) for arm in arms]
    return values[0] if values and all(value == values[0] for value in values) else None


def _claims(read: _Read) -> list[Claim]:
    """The file's own figures. Its passes are ours only where each case ran once and every case has asserts."""
    suite, split = read.suite_and_split
    claims = Claims(suite, split, read.file.source.name)
    found: list[Claim] = []
    if read.file.stats is not None:
        stats = read.file.stats
        found += claims.of(None, {f"stats/{name}": stats.count(name) for name in ("successes", "failures", "errors")})
    ours = read.file.repeat == 1 and not read.counts.unasserted
    for index, arm in read.file.arms.items():
        metrics = arm.stated.child("metrics") if arm.stated is not None else None
        if metrics is None:
            continue
        place = read.standings[index].place
        again = f"replicate/{place.replicate}/" if place.replicate else ""
        figures: dict[str, JsonValue] = {
            f"{again}{'passed' if ours else 'stats/passes'}": metrics.count("testPassCount"),
            f"{again}stats/failures": metrics.count("testFailCount"),
            f"{again}stats/errors": metrics.count("testErrorCount"),
        }
        found += claims.of(place.full_arm, figures)
    return found


def _unknown(read: _Read) -> tuple[str, ...]:
    unknown = list(_UNKNOWN)
    answers = [answer for held in read.answers.values() for answer in held]
    for name, silent in (
        ("finish reasons", all(answer.finish_reason is None for answer in answers)),
        (
            "tokens (all zero is how the tool writes that none were reported)",
            all(a.output_tokens is None for a in answers),
        ),
        ("cost", all(answer.cost_micro_usd is None for answer in answers)),
        ("tool version, date, sampling and settings (no header in JSONL)", read.file.run_id is None),
        ("seed asked for", all("seed" not in arm.parameters for arm in read.file.arms.values())),
        ("output cap", all("max_tokens" not in arm.parameters for arm in read.file.arms.values())),
        ("which rows are repeats (rows of equal cases are taken for repeats)", read.cases.by_content),
    ):
        if silent:
            unknown.append(name)
    if read.counts.finish_unknown:
        words = ", ".join(f"{word} {count}" for word, count in sorted(read.counts.finish_unknown.items()))
        unknown.append(f"how {read.counts.finish_unknown.total()} answers ended (finish reasons: {words})")
    return tuple(unknown)


def _notes(read: _Read) -> list[Note]:
    counts, file = read.counts, read.file
    notes = [*read.cases.repeats.notes(), *_totals(read)]

    def note(code: str, found: list[str], text: str) -> None:
        if found:
            items = tuple(dict.fromkeys(found))[:10]
            notes.append(Note(code=code, message=f"{len(found)} {text}", count=len(found), items=items))

    note("sample_errors", counts.errors, "answers ended in an error: neither right nor wrong, not scored, counted")
    note(
        "no_assertions",
        counts.unasserted,
        "answers were graded by nothing: the tool passes them, here they have no verdict",
    )
    note(
        "cached_replies", counts.cached, "replies came out of a cache: no draws of their own, latency and cost unknown"
    )
    note("score_scale", counts.off_scale, "scores are outside 0..1: left out, the verdict stands")
    unread = {*file.unread, *(f"results[].{name}" for row in file.rows for name in row.others(_ROW))}
    unscored = sum(a.verdict not in {"passed", "failed"} for held in read.answers.values() for a in held)
    notes += no_verdict(unscored - len(counts.errors), "answers")
    notes += unknown_finish(counts.finish_unknown.elements())
    return [*notes, *unknown_fields(unread)]


def _totals(read: _Read) -> list[Note]:
    """Compare the file's counts with its rows by the tool's own rule: errors apart, no asserts is a success."""
    totals = Totals()
    rows = read.file.rows
    errors = sum(map(is_error, rows))
    successes = sum(row.flag("success") is True for row in rows)
    if read.file.stats is not None:
        totals.expect("stats.errors", read.file.stats.count("errors"), errors)
        totals.expect("stats.successes", read.file.stats.count("successes"), successes)
        totals.expect("stats.failures", read.file.stats.count("failures"), len(rows) - errors - successes)
    for index, arm in read.file.arms.items():
        metrics = arm.stated.child("metrics") if arm.stated is not None else None
        if metrics is not None:
            own = sum(row.flag("success") is True for row in rows if row.count("promptIdx") == index)
            totals.expect(f"prompts[{index}].metrics.testPassCount", metrics.count("testPassCount"), own)
    for case in dict.fromkeys(read.counts.disagree):
        totals.say(f"success of {case} is not what its grading says")
    return totals.notes()
