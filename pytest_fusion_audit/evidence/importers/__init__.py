"""Importers: recorded runs of this and of other tools, read into evidence records.

`import_run` is the public way in; `read_sources` gives the records without the container. A format is one module and
one line in `IMPORTERS`; the first importer that recognises a file reads it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_fusion_audit.evidence.container import Evidence, RunFacts
from pytest_fusion_audit.evidence.importers import known_suites
from pytest_fusion_audit.evidence.importers.ablations import Ablations
from pytest_fusion_audit.evidence.importers.bank import Bank
from pytest_fusion_audit.evidence.importers.bank_state import settle
from pytest_fusion_audit.evidence.importers.base import (
    Context,
    FolderImporter,
    Importer,
    Reading,
    Source,
    refusal,
)
from pytest_fusion_audit.evidence.importers.envelope import Envelope
from pytest_fusion_audit.evidence.importers.history_ledger import HistoryLedger
from pytest_fusion_audit.evidence.importers.inspect_log import InspectLog
from pytest_fusion_audit.evidence.importers.lm_eval import LmEvalResults, LmEvalSamples
from pytest_fusion_audit.evidence.importers.locked_rows import LockedRows
from pytest_fusion_audit.evidence.importers.naming import renamed
from pytest_fusion_audit.evidence.importers.outcomes_csv import OutcomesCsv
from pytest_fusion_audit.evidence.importers.panel import Panel
from pytest_fusion_audit.evidence.importers.pass_matrix import PassMatrixFile
from pytest_fusion_audit.evidence.importers.peek import EMPTY, peek_at
from pytest_fusion_audit.evidence.importers.polyglot_eval import PolyglotEval
from pytest_fusion_audit.evidence.importers.promptfoo import Promptfoo
from pytest_fusion_audit.evidence.importers.published_scorecard import PublishedScorecard
from pytest_fusion_audit.evidence.importers.shallow_deep import ShallowDeep
from pytest_fusion_audit.evidence.importers.shipped_path import ShippedPath
from pytest_fusion_audit.evidence.importers.spend_ledger import SpendLedger
from pytest_fusion_audit.evidence.importers.split_manifest import SplitManifest
from pytest_fusion_audit.evidence.importers.swebench_report import SwebenchReport
from pytest_fusion_audit.evidence.importers.task_manifest import TaskManifest
from pytest_fusion_audit.evidence.importers.walk import Found, files_of, namings_of
from pytest_fusion_audit.evidence.records import (
    ArmOutcome,
    Candidate,
    Config,
    Fused,
    ImportedFile,
    Note,
    Phase,
    Record,
    Split,
    Task,
    kind_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

#: Every file format, one line each, in the order in which they are asked whether they recognise a file.
IMPORTERS: tuple[Importer, ...] = (
    Bank(),
    Envelope(),
    LockedRows(),
    Ablations(),
    PolyglotEval(),
    ShallowDeep(),
    ShippedPath(),
    SpendLedger(),
    HistoryLedger(),
    SplitManifest(),
    TaskManifest(),
    PublishedScorecard(),
    SwebenchReport(),
    PassMatrixFile(),
    OutcomesCsv(),
    Panel(),
    InspectLog(),
    LmEvalSamples(),
    LmEvalResults(),
    Promptfoo(),
)

#: Formats that are a whole folder, such as a run directory of our own; asked before the folder is looked into.
FOLDER_IMPORTERS: tuple[FolderImporter, ...] = ()


def import_run(path: str | Path, *more: str | Path, run: RunFacts | None = None) -> Evidence:
    """Read recorded runs into evidence.

    Args:
        path: a file or a folder. A folder is read with all its folders, hidden ones excepted; a file in it that no
            importer recognises stays visible as an `ImportedFile` of format ``unrecognised``.
        more: further files or folders of the same import.
        run: facts of the run the evidence belongs to; by default an unnamed imported run.

    Raises:
        ImportRefusedError: a path is missing, a file is damaged, a file named directly is of no known format, or a
            folder holds no file of a known format. One line that names file, place and field.
        EvidenceError: two files contradict each other about one row; names both files.
    """
    return Evidence(run if run is not None else RunFacts(), read_sources([path, *more]))


def read_sources(paths: Iterable[str | Path]) -> list[Record]:
    """Records of all files under the paths, in the order of their names; see `import_run`."""
    paths = list(paths)
    walked = files_of(paths, FOLDER_IMPORTERS)
    context = Context(namings_of(walked.sidecars, (item.source.name for item in walked.files)))
    recognised, files = _recognise(walked.files)
    for importer, source in recognised:
        context.sources.setdefault(importer.format, []).append(source)
    if not recognised and not walked.folders:
        raise refusal(", ".join(map(str, paths)) or "import", "no file of a known format", then=_known_formats())
    readings: dict[str, Sequence[Record]] = {
        name: importer.read(folder, name).records for importer, folder, name in walked.folders
    }
    for importer, source in sorted(recognised, key=lambda pair: pair[0].stage):
        reading = importer.read(source, context)
        if importer.stage < 3:
            context.learn(reading.records)
        readings[source.name] = renamed(reading.records, context.naming(source))
        files.append(_imported(source, importer, reading))
    files += [ImportedFile(source=side.name, sha256=side.sha256, format="fusion-import") for side in walked.sidecars]
    records = [record for name in sorted(readings) for record in readings[name]]
    records = _without_copies([*records, *settle(context)])
    return [*sorted(files, key=lambda file: file.source), *_suites(records), *records]


def _recognise(found: Iterable[Found]) -> tuple[list[tuple[Importer, Source]], list[ImportedFile]]:
    """Each file with its importer, and the files of a folder that nobody recognises."""
    recognised: list[tuple[Importer, Source]] = []
    others: list[ImportedFile] = []
    for item in found:
        source = item.source
        peek = peek_at(source)
        # Damaged data is refused; inside a folder prose that merely looks like YAML, and binaries, are passed over.
        if peek.damage is not None and (item.named or peek.container in {"json", "jsonl", "zip"}):
            raise refusal(source, peek.damage, peek.place)
        importer = None
        if peek.damage is None:
            importer = next((importer for importer in IMPORTERS if importer.recognises(source, peek)), None)
        if importer is not None:
            recognised.append((importer, source))
        elif item.named:
            raise refusal(source, "of no known format", then=_known_formats())
        else:
            what = "of no known format" if peek.damage is None else peek.damage
            note = Note(code="empty_file" if peek.damage == EMPTY else "unrecognised", message=f"{what}: not read")
            others.append(ImportedFile(source=source.name, sha256=source.sha256, format="unrecognised", notes=(note,)))
    return recognised, others


def _known_formats() -> str:
    return "known formats: " + ", ".join(sorted(importer.format for importer in IMPORTERS))


def _imported(source: Source, importer: Importer, reading: Reading) -> ImportedFile:
    counts = Counter(kind_of(record) for record in reading.records)
    return ImportedFile(
        source=source.name,
        sha256=source.sha256,
        format=importer.format,
        records=dict(sorted(counts.items())),
        unknown=reading.unknown,
        notes=reading.notes,
    )


def _without_copies(records: list[Record]) -> list[Record]:
    """The same line of a ledger, or the same fact, in two files is one; the first file is named as its source."""
    seen: set[str] = set()
    kept = []
    for record in records:
        if isinstance(record, (Phase, Config, Split)):
            key = repr(replace(record, source=""))
            if key in seen:
                continue
            seen.add(key)
        kept.append(record)
    return kept


def _suites(records: Iterable[Record]) -> list[Record]:
    """What is known of the suites met; a suite that is not a known benchmark gets no record."""
    met = sorted({r.suite for r in records if isinstance(r, (Task, Candidate, Fused, ArmOutcome, Split))})
    known = ((suite, known_suites.facts(suite)) for suite in met)
    return [
        Config(what="suite", suite=s, facts=facts, source="known suites") for s, facts in known if facts is not None
    ]
