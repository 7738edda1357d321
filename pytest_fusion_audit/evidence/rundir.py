"""The run directory ``audit/<run-id>/``: the one place an audit reads from and writes to."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from pytest_fusion_audit.errors import EvidenceError
from pytest_fusion_audit.evidence.container import Evidence, RunFacts
from pytest_fusion_audit.evidence.files import read_records, write_durably, write_records
from pytest_fusion_audit.evidence.provenance import provenance
from pytest_fusion_audit.evidence.records import KINDS, ImportedFile, Record, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

RUN_SCHEMA = "fusion-run/1"
_RUN_FIELDS: dict[str, type] = {"run_id": str, "mode": str, "settings": dict, "provenance": dict}
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")


class RunDirectory:
    """One run under ``<base>/audit/<run_id>``. Nothing is created before there is something to store.

    Args:
        base: folder that holds ``audit/`` (the checkout).
        run_id: letters, digits, ``.``, ``_`` and ``-``, not starting with a punctuation mark.

    Raises:
        EvidenceError: the run id is not of that form.
    """

    def __init__(self, base: Path, run_id: str) -> None:
        if not _RUN_ID.match(run_id):
            raise EvidenceError(
                f"run id {run_id!r} is not usable as a folder name: use letters, digits, '.', '_' and '-', "
                "starting with a letter or digit, at most 100 characters"
            )
        self.base = base
        self.run_id = run_id
        self.path = base / "audit" / run_id

    @property
    def shown(self) -> str:
        """The folder as messages print it."""
        return f"audit/{self.run_id}"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run's lock: of all workers and processes on this run directory one writes at a time."""
        self.path.mkdir(parents=True, exist_ok=True)
        # One lock object per path and process: two would wait for each other for ever.
        with FileLock(self.path / "run.lock", is_singleton=True):
            yield

    def read_run(self) -> dict[str, Any] | None:
        """Contents of run.json, None when the run does not exist.

        Raises:
            EvidenceError: run.json is damaged or written by another version.
        """
        path = self.path / "run.json"
        try:
            run = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError) as error:
            raise EvidenceError(
                f"{self.shown}/run.json is damaged ({type(error).__name__}); restore it or use another run id"
            ) from None
        if not isinstance(run, dict) or run.get("schema") != RUN_SCHEMA:
            raise EvidenceError(f"{self.shown}/run.json is not of schema {RUN_SCHEMA}; use another --fusion-run-id")
        wrong = [name for name, kind in _RUN_FIELDS.items() if not isinstance(run.get(name), kind)]
        if wrong:
            raise EvidenceError(
                f"{self.shown}/run.json: {', '.join(wrong)} missing or of another type; use another --fusion-run-id"
            )
        return run

    def evidence(self) -> Evidence:
        """All evidence stored in this run.

        Raises:
            EvidenceError: the run does not exist or a file of it is damaged.
        """
        run = self.read_run()
        if run is None:
            raise EvidenceError(f"{self._missing()}; to score recorded files add --fusion-import=PATH")
        records: list[Record] = []
        for kind in KINDS:
            path = self.path / "evidence" / f"{kind}.jsonl"
            if path.exists():
                records.extend(read_records(path, kind))
        changed = self._changed_file(run) if run["mode"] == "imported" else None
        if changed is not None:
            raise EvidenceError(
                f"{self.shown}/evidence/{changed} is not what was stored: it was edited, cut or removed; "
                "import again under this run id"
            )
        return Evidence(_facts(run), records)

    def store_import(self, records: Sequence[Record], settings: Mapping[str, Any]) -> bool:
        """Store imported records as this run's evidence; False when the very same import is stored already.

        An import costs nothing and can be repeated, so another import under the same run id replaces the evidence as a
        whole. A run that made or paid for its own evidence is never replaced.

        Raises:
            EvidenceError: the run holds evidence of its own (live or offline).
        """
        digest = imports_digest(records)
        with self.locked():
            run = self.read_run()
            if run is not None:
                if run["mode"] != "imported":
                    raise EvidenceError(
                        f"{self.shown} holds a run of mode {run['mode']!r}: imports go into a run of their own, "
                        "choose another --fusion-run-id"
                    )
                if run.get("imports_sha256") == digest and self._changed_file(run) is None:
                    return False
            written = provenance(self.base)
            fresh = self.path / f"evidence.new-{os.getpid()}"
            try:
                stored = self._write_evidence(fresh, records, written)
                # Everything is on the disk: from here on the old evidence gives way, and its artifacts with it.
                for name in ("run.json", "scorecard.json", "rubric-scorecard.md"):
                    (self.path / name).unlink(missing_ok=True)
                shutil.rmtree(self.path / "evidence", ignore_errors=True)
                fresh.rename(self.path / "evidence")
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
            self.write_json(
                "run.json",
                {
                    "schema": RUN_SCHEMA,
                    "run_id": self.run_id,
                    "mode": "imported",
                    "journal": False,
                    "settings": dict(settings),
                    "imports": [
                        {"source": f.source, "sha256": f.sha256, "format": f.format}
                        for f in records
                        if isinstance(f, ImportedFile)
                    ],
                    "imports_sha256": digest,
                    "evidence": stored,
                    "provenance": written,
                },
            )
        for left in self.path.glob("evidence.new-*"):  # of a process that was killed
            shutil.rmtree(left, ignore_errors=True)
        return True

    @staticmethod
    def _write_evidence(folder: Path, records: Sequence[Record], written: Mapping[str, Any]) -> dict[str, str]:
        """Write one file per kind into a folder of their own; returns their hashes by name."""
        shutil.rmtree(folder, ignore_errors=True)
        by_kind: dict[str, list[Record]] = {kind: [] for kind in KINDS}
        for record in records:
            by_kind[kind_of(record)].append(record)
        for kind, held in by_kind.items():
            if held:
                write_records(folder / f"{kind}.jsonl", kind, held, written)
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("*.jsonl"))}

    def _changed_file(self, run: Mapping[str, Any]) -> str | None:
        """Name of an evidence file that is not what was stored; None when all are."""
        folder = self.path / "evidence"
        expected: Mapping[str, str] = run.get("evidence") or {}
        found = {path.name for path in folder.glob("*.jsonl")}
        for name in sorted(found | set(expected)):
            if name not in expected or name not in found:
                return name
            if hashlib.sha256((folder / name).read_bytes()).hexdigest() != expected[name]:
                return name
        return None

    def begin(
        self,
        session: str,
        facts: Mapping[str, Any],
        *,
        resume: bool,
        begun: bool,
        compare: Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]]],
    ) -> None:
        """Begin a live run of our own, join it (another worker of the same session), or go on with it.

        Args:
            session: name that all workers of a session share.
            facts: what run.json is to hold: ``mode``, ``settings``, ``cap_micro_usd``, …
            resume: whether the user asked to go on.
            begun: whether calls of the run are stored; one without any is begun anew.
            compare: given the stored settings, the changes to log; raises when it would be another experiment.

        Raises:
            EvidenceError: the run is imported, or was begun by another session and nobody asked to go on.
        """
        with self.locked():
            run = self.read_run()
            if run is not None and run["mode"] != facts["mode"]:
                raise EvidenceError(
                    f"{self.shown} holds a run of mode {run['mode']!r}, not {facts['mode']!r}; nothing was sent: "
                    "choose another --fusion-run-id"
                )
            sessions = [] if run is None else run.get("sessions") or []
            if not isinstance(sessions, list) or not all(isinstance(each, dict) for each in sessions):
                raise EvidenceError(f"{self.shown}/run.json: sessions: not a list of sessions; use another run id")
            if sessions and sessions[-1].get("session") == session:
                return
            if run is None and resume:
                raise EvidenceError(
                    f"--fusion-resume: {self._missing()}; nothing was sent. Leave the option out to begin"
                )
            began = datetime.now(UTC).isoformat(timespec="seconds")
            entry: dict[str, Any] = {"session": session, "began_utc": began, "changes": []}
            if run is None or not begun:
                run = {"schema": RUN_SCHEMA, "run_id": self.run_id, "provenance": provenance(self.base)}
            elif resume:
                entry["changes"] = list(compare(run["settings"]))
            else:
                raise EvidenceError(
                    f"{self.shown} was begun at {run['provenance'].get('written_utc', 'an unknown time')}; nothing was "
                    "sent. To go on with it, paying nothing twice, add --fusion-resume to this command; else choose "
                    "another --fusion-run-id"
                )
            self.write_json("run.json", {**run, **facts, "sessions": [*sessions, entry]})

    def store(self, kind: str, records: Sequence[Record]) -> None:
        """Write all records of one kind of a live run, in the place of those that were there.

        Raises:
            EvidenceError: the run is imported: its evidence is what was imported.
        """
        with self.locked():
            run = self.read_run()
            if run is None or run["mode"] == "imported":
                raise EvidenceError(f"{self.shown} is no run of our own: nothing can be added to its evidence")
            write_records(self.path / "evidence" / f"{kind}.jsonl", kind, records, provenance(self.base))

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON document of the run, whole or not at all."""
        text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
        write_durably(self.path / name, text.encode() + b"\n")

    def write_text(self, name: str, text: str) -> None:
        """Write a text artifact of the run, whole or not at all."""
        write_durably(self.path / name, text.encode())

    def _missing(self) -> str:
        there = runs_by_age(self.base)
        known = f"runs there: {', '.join(there[:8])}" if there else "there is no run yet"
        return f"{self.shown} holds no run ({known})"


def _facts(run: Mapping[str, Any]) -> RunFacts:
    subject = run.get("subject") or {}
    return RunFacts(
        run_id=run["run_id"],
        mode=run["mode"],
        subject_hash=subject.get("hash"),
        doors=tuple(subject.get("doors", ())),
        journal=bool(run.get("journal")),
        cap_micro_usd=run.get("cap_micro_usd"),
        settings=run.get("settings") or {},
    )


def imports_digest(records: Sequence[Record]) -> str:
    """Identity of an import: which files, by name and content, and into which records this version reads them."""
    digest = hashlib.sha256()
    for record in records:
        digest.update(repr(record).encode())
    return digest.hexdigest()


def runs_by_age(base: Path) -> list[str]:
    """Run ids under ``<base>/audit``, newest first by what run.json says was written when."""
    found: list[tuple[str, str]] = []
    for path in (base / "audit").glob("*/run.json"):
        try:
            run = json.loads(path.read_bytes())
            found.append((run["provenance"]["written_utc"], path.parent.name))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue  # a damaged run is reported when somebody asks for it by name
    return [name for _, name in sorted(found, reverse=True)]


def resolve_run_id(given: str, base: Path) -> str:
    """``now`` -> UTC time as YYYYMMDD-HHMM, ``latest`` -> the newest run, anything else as it is.

    Raises:
        EvidenceError: ``latest`` and there is no run.
    """
    if given == "now":
        return datetime.now(UTC).strftime("%Y%m%d-%H%M")
    if given == "latest":
        runs = runs_by_age(base)
        if not runs:
            raise EvidenceError("--fusion-run-id=latest: there is no run under audit/ yet")
        return runs[0]
    return given
