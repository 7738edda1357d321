"""inspect_ai evaluation logs: the JSON form and the ``.eval`` zip, packed with deflate or zstd (log version 2).

One log is one task run by one model. Suite = task, member = model, epoch 1 = the primary sample, further epochs are
more samples of the same member. A sample that ended in an error is neither right nor wrong, here and in the tool's own
accuracy; one that was cut, refused or stopped by a limit keeps the score the tool gave it and its reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_fusion_audit.evidence.importers.answers import arm_named, member_arm_of, record_of
from pytest_fusion_audit.evidence.importers.base import Context, Peek, Reading, Source, refusal
from pytest_fusion_audit.evidence.importers.inspect_container import HEADER, START, read_log
from pytest_fusion_audit.evidence.importers.inspect_graded import GradedLog, graded_log
from pytest_fusion_audit.evidence.importers.inspect_header import facts_of, header_facts
from pytest_fusion_audit.evidence.importers.inspect_remarks import claims_of, notes_of, unknown_of
from pytest_fusion_audit.evidence.importers.tool_runs import Standing, ToolRun, short_names, standings, superseded_note
from pytest_fusion_audit.evidence.records import Config, Split, Task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import JsonValue

    from pytest_fusion_audit.evidence.records import Record

_VERSION: Final = 2


class InspectLog:
    """Importer of ``inspect-log``."""

    format = "inspect-log"
    stage = 0

    def recognises(self, source: Source, peek: Peek) -> bool:  # noqa: ARG002 - the content decides
        """A zip with a header or a journal, or an object whose ``eval`` says which task ran."""
        if peek.container == "zip":
            return HEADER in peek.members or START in peek.members
        return (
            peek.container == "json"
            and {"eval", "status"} <= peek.keys
            and peek.has("eval", "task")
            and any(peek.has("eval", name) for name in ("eval_id", "run_id", "model"))  # what stands near the start
        )

    def read(self, source: Source, context: Context) -> Reading:
        """Samples as candidates, the plan as split and tasks, the tool's figures as claims; see `Importer.read`."""
        log = read_log(source)
        version = log.header.count("version")
        if version is not None and version > _VERSION:
            then = f"versions up to {_VERSION} are read: inspect log convert writes the one of the tool installed"
            raise refusal(source, f"log version {version} is not known", "field version", then=then)
        facts = header_facts(log)
        standing = self._standing(source, context)
        if standing.superseded_by is not None:
            return Reading((), (), (superseded_note(standing.superseded_by, len(log.samples)),))
        read = graded_log(log, facts, standing.place)
        return Reading(_records(read), unknown_of(read), (*standing.notes, *notes_of(read)))

    def _standing(self, source: Source, context: Context) -> Standing:
        known = context.sources.get(self.format, [])
        if source in known:
            table = context.once(self.format, lambda: _table(known, context))
        else:
            table = _table([source], context)
        return table[source.name, ""]


def _table(sources: Sequence[Source], context: Context) -> dict[tuple[str, str], Standing]:
    """Place of every log of the import, learned from their headers."""
    headers = {source.name: (source, facts_of(source)) for source in sources}
    suites = short_names({f"{f.task} v{f.version}": f.task.rpartition("/")[2] for _, f in headers.values()})
    models = short_names({f.model: f.model.rpartition("/")[2] for _, f in headers.values()})
    runs = []
    for name, (source, facts) in headers.items():
        naming = context.naming(source)
        arm, config = arm_named(naming.arm) if naming.arm is not None else (member_arm_of(models[facts.model]), None)
        runs.append(
            ToolRun(
                file=name,
                suite=naming.suite or suites[f"{facts.task} v{facts.version}"],
                split=naming.split or "all",
                arm=arm,
                config=naming.config or config,
                identity=facts.eval_id,
                lineage=facts.task_id,
                settings="" if naming.arm is not None else facts.settings,
                finished=facts.finished,
                started=facts.created,
                repeats=facts.epochs,
            )
        )
    return standings(runs)


def _records(read: GradedLog) -> list[Record]:
    source, place, facts = read.log.source.name, read.place, read.facts
    checker = read.scorer.name if read.scorer is not None else None
    records: list[Record] = [
        Task(
            id=task,
            suite=place.suite,
            split=place.split,
            checker=checker,
            prompt_sha256=sample.prompt_sha256,
            source=source,
        )
        for task, sample in read.primaries.items()
    ]
    records += [record_of(read.answer(sample), place, source) for sample in read.samples]
    records.append(
        Split(
            suite=place.suite,
            split=place.split,
            how="recorded",
            ids=facts.ids or tuple(read.primaries),
            planned=facts.planned,
            complete=read.complete,
            source=source,
        )
    )
    records.append(Config(what="run", facts=_config(read), suite=place.suite, split=place.split, source=source))
    return [*records, *claims_of(read)]


def _config(read: GradedLog) -> dict[str, JsonValue]:
    facts = read.facts
    member = read.place.arm.removeprefix("member:")
    resolved = sorted({sample.resolved_model for sample in read.samples if sample.resolved_model})
    known: dict[str, JsonValue] = {
        "harness": "inspect_ai",
        **facts.run,
        "arm": read.place.full_arm,
        "replicate": read.place.replicate,
        "requested_model": facts.model,
        "task_version": facts.version,
        "models": {member: ", ".join(resolved)} if resolved else None,
        "config_hash": facts.settings,
        "checker_mode": read.scorer.name if read.scorer is not None else None,
        "generated_at": facts.created or None,
        "status": facts.status,
        "epochs": facts.epochs,
        "output_cap": facts.parameters.get("max_tokens"),
        "seed": facts.parameters.get("seed"),
        "sampling": dict(facts.parameters) or None,
    }
    return {name: value for name, value in known.items() if value is not None}
