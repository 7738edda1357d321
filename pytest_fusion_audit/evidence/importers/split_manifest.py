"""FusionKit split manifest: the ids of a split, ``{version, note, question_ids}``."""

from __future__ import annotations

import re

from pytest_fusion_audit.evidence.importers.base import Context, Peek, Reading, Source
from pytest_fusion_audit.evidence.importers.rows import Repeats, Row, unknown_fields
from pytest_fusion_audit.evidence.importers.text import load_json
from pytest_fusion_audit.evidence.records import Split

_FIELDS = {"version", "note", "question_ids", "task_ids"}
_STEM = re.compile(r"(dev|val|locked|monitor)-manifest")
_WINDOW = re.compile(r"(\d{4}-\d{2}-\d{2}) <= contest_date < (\d{4}-\d{2}-\d{2})")


class SplitManifest:
    """Importer of ``fusionkit-split-manifest``."""

    format = "fusionkit-split-manifest"
    stage = 0

    def recognises(self, _source: Source, peek: Peek) -> bool:
        """An object with a list of ids and nothing run on them."""
        listed = peek.has("question_ids", "[]") or peek.has("task_ids", "[]")
        return peek.container == "json" and listed and peek.keys <= _FIELDS | {"schema", "suite", "split", "seed"}

    def read(self, source: Source, context: Context) -> Reading:
        """The split with its ids, and its window where the note states one; see `Importer.read`."""
        document = Row(source, "", load_json(source))
        listed = document.ids("question_ids") or document.ids("task_ids") or ()
        ids = tuple(dict.fromkeys(listed))
        repeats = Repeats()
        repeats.same.update(dict.fromkeys(task for task in ids if listed.count(task) > 1))
        stem = _STEM.fullmatch(source.stem)
        split = context.naming(source).split or document.text("split") or (stem[1] if stem is not None else "dev")
        suite = context.suite_name(source, ids, document.text("suite"))
        note = document.text("note")
        window = _WINDOW.search(note or "")
        record = Split(
            suite=suite,
            split=split,
            how="manifest",
            ids=ids,
            planned=len(ids),
            seed=document.count("seed"),
            window=(window[1], window[2]) if window is not None else None,
            note=note,
            source=source.name,
        )
        unread = unknown_fields(document.others(_FIELDS | {"schema", "suite", "split", "seed"}))
        unknown = ("dates, classes and difficulty of the tasks", "the seed of the split")
        return Reading([record], unknown, (*repeats.notes(), *unread))
