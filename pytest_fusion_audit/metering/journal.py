"""The journal of calls: append-only JSON lines that several processes share, durable in groups.

A row is written under one lock that all threads and processes of a run take, so that every writer has seen every row
before its own. Durability is asked for separately and granted to all waiting rows by one ``fdatasync``: a hundred calls
at once do not queue for the disk.

Readers forgive one unterminated last line. Whoever holds the lock and finds one knows that its writer died: the bytes
are set aside in ``torn.bin`` and the next row starts on a fresh line. A damaged line that ends in a newline is
corruption and stops everything.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.errors import EvidenceError
from pytest_fusion_audit.metering.durability import GroupCommit, append_whole, sync_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

Row = dict[str, Any]
SCHEMA = "fusion-calls/1"


class Journal:
    """The journal in ``folder/journal.jsonl``.

    Args:
        folder: the run's ``calls`` folder; created when missing.
        on_row: called once for every row of every process, in file order, while the lock is held.
        read_only: never change a byte, not even a torn last line.

    Raises:
        EvidenceError: a terminated line is damaged, or the file is of another schema; names file and line. With
            ``read_only`` also when there is no journal.
    """

    def __init__(self, folder: Path, on_row: Callable[[Row], None], *, read_only: bool = False) -> None:
        self.folder = folder
        self.path = folder / "journal.jsonl"
        self._on_row = on_row
        self._read_only = read_only
        self._thread_lock = threading.Lock()
        self._file = self._open()
        self._read_to = 0
        self._line = 0
        self._closed = False
        self._committer = GroupCommit(self._file)
        try:
            with self.exclusively():
                if self._read_to == 0 and not read_only:
                    self._write([{"schema": SCHEMA}])
                    sync_folder(folder)
        except BaseException:
            os.close(self._file)
            raise

    def _open(self) -> int:
        if self._read_only:
            try:
                return os.open(self.path, os.O_RDONLY)
            except FileNotFoundError:
                raise EvidenceError(f"{self.path}: not there, so no call of this run is stored") from None
        self.folder.mkdir(parents=True, exist_ok=True)
        return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Hold the lock of all threads and processes; on entry every row written so far has been seen."""
        with self._thread_lock:
            if self._closed:
                raise ValueError(f"{self.path}: the journal is closed")
            fcntl.flock(self._file, fcntl.LOCK_SH if self._read_only else fcntl.LOCK_EX)
            try:
                self._catch_up()
                yield
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def append(self, rows: Sequence[Row]) -> int:
        """Append rows while `exclusively` is held; returns the offset that `durable` and `durably` wait for.

        Raises:
            OSError: the disk is full; the file is as it was.
        """
        self._write(rows)
        for row in rows:
            self._on_row(row)
        return self._read_to

    async def durable(self, offset: int) -> None:
        """Return when everything before ``offset`` is on the disk."""
        await self._committer.reached(offset)

    def durably(self, offset: int) -> None:
        """Like `durable`, for callers without an event loop."""
        self._committer.reach(offset)

    def refresh(self) -> None:
        """See the rows that other processes have written."""
        with self.exclusively():
            pass

    def close(self) -> None:
        """Make everything durable and close the file; a second time does nothing."""
        with self._thread_lock:
            if self._closed:
                return
            self._closed = True
        self._committer.close()
        os.close(self._file)

    def _write(self, rows: Sequence[Row]) -> None:
        # ASCII, because a model's name or a finish reason of somebody else may hold half a surrogate pair.
        data = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode("ascii")
        append_whole(self._file, data, self._read_to)
        self._read_to += len(data)
        self._line += len(rows)

    def _catch_up(self) -> None:
        size = os.fstat(self._file).st_size
        if size < self._read_to:
            raise EvidenceError(
                f"{self.path}: shorter than it was: somebody cut the journal while this run was going on"
            )
        if size == self._read_to:
            return
        data = os.pread(self._file, size - self._read_to, self._read_to)
        whole, newline, torn = data.rpartition(b"\n")
        # Only \n ends a row: whatever else splits lines may stand in a damaged one, which must not become two.
        for line in whole.split(b"\n") if newline else ():
            if line.strip():
                self._take(line)
            # Not before the row was understood: a journal found damaged stays damaged, however often it is read.
            self._line += 1
            self._read_to += len(line) + 1
        if torn and not self._read_only:
            self._set_aside(torn)

    def _set_aside(self, torn: bytes) -> None:
        """Keep an unterminated last line in ``torn.bin`` and cut it off: the next row starts on a fresh line."""
        with (self.folder / "torn.bin").open("ab") as aside:
            aside.write(torn + b"\n")
            aside.flush()
            os.fsync(aside.fileno())
        os.ftruncate(self._file, self._read_to)

    def _take(self, line: bytes) -> None:
        number = self._line + 1
        try:
            row = json.loads(line)
        except ValueError as error:
            row, problem = None, str(error)
        else:
            problem = "not an object"
        if not isinstance(row, dict):
            raise EvidenceError(
                f"{self.path}, line {number}: damaged ({problem}); nothing was sent, restore it from git or backup"
            )
        if self._read_to == 0 or "schema" in row:
            if row.get("schema") != SCHEMA:
                raise EvidenceError(
                    f"{self.path}, line {number}: schema is {row.get('schema')!r}, this version reads {SCHEMA!r}; "
                    "nothing was sent, use the version of pytest-fusion-audit that wrote it"
                )
            return
        try:
            self._on_row(row)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EvidenceError(
                f"{self.path}, line {number}: a row without what it needs ({type(error).__name__}: {error}); "
                "nothing was sent, restore the file from git or backup"
            ) from None
