"""Who is alive: one lock file per process of a run, and one session at a time on a run.

A reservation whose process died is an orphan: it was sent or not, nobody knows, and it stays charged. A process holds
the lock on its own file for as long as it lives; the system lets go of it at its death, also after SIGKILL, and a
copied run directory carries no locks along.
"""

from __future__ import annotations

import fcntl
import json
import os
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pytest_fusion_audit.errors import FusionAuditError

if TYPE_CHECKING:
    from pathlib import Path


class RunBusyError(FusionAuditError):
    """Another session works on the same run."""


class Owner:
    """This process as an owner of reservations; `close` lets go.

    Args:
        folder: the run's ``calls`` folder.
        session: name that all workers of one session share; another session is refused while one is alive.

    Attributes:
        name: name of this process in the journal.
        new_session: whether the session before, if there was one, had another name: somebody decided to go on.

    Raises:
        RunBusyError: another session works on this run; the message names it.
    """

    def __init__(self, folder: Path, session: str) -> None:
        self.folder = folder / "owners"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.new_session = False
        self._session_file = os.open(folder / "session.json", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self._join(session)
        except BaseException:
            os.close(self._session_file)
            raise
        self.name = uuid4().hex[:16]
        self._file = os.open(self._path(self.name), os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._closed = False

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.lock"

    def _join(self, session: str) -> None:
        """Share the lock of a session that is at work, or begin one when nobody is."""
        file = self._session_file
        if not _locked(file, fcntl.LOCK_EX):
            # Somebody is at work, or is just writing down who it is; that takes a moment, so this waits for it.
            fcntl.flock(file, fcntl.LOCK_SH)
            if _read(file).get("session") == session:
                return
            if not _locked(file, fcntl.LOCK_EX):
                raise _busy(file)
        self.new_session = _read(file).get("session") != session
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps({"session": session, "process": os.getpid()}).encode(), 0)
        # From exclusive to shared is not one step for the system: another session may have come in between.
        fcntl.flock(file, fcntl.LOCK_SH)
        if _read(file).get("session") != session:
            raise _busy(file)

    def dead(self, name: str) -> bool:
        """Whether the process of that name has ended."""
        if name == self.name:
            return False
        try:
            file = os.open(self._path(name), os.O_RDWR)
        except FileNotFoundError:
            return True
        try:
            return _locked(file, fcntl.LOCK_SH)
        finally:
            os.close(file)

    def close(self) -> None:
        """Let go of both locks and remove the own file; a second time does nothing."""
        if self._closed:
            return
        self._closed = True
        self._path(self.name).unlink(missing_ok=True)
        os.close(self._file)
        os.close(self._session_file)


def check_free(folder: Path, session: str) -> None:
    """Return when no other session works on the run in this ``calls`` folder.

    Raises:
        RunBusyError: one does; the message names it.
    """
    try:
        file = os.open(folder / "session.json", os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        if not _locked(file, fcntl.LOCK_EX) and _read(file).get("session") != session:
            raise _busy(file)
    finally:
        os.close(file)


def at_work(folder: Path) -> bool:
    """Whether any session works on the run in this ``calls`` folder."""
    try:
        check_free(folder, "")
    except RunBusyError:
        return True
    return False


class Reader:
    """A process that only reads: it owns nothing, refuses nobody and finds nobody dead."""

    name = "reader"
    new_session = False

    def dead(self, name: str) -> bool:  # noqa: ARG002 - as `Owner.dead`
        """Nobody is dead to a reader: it takes nothing over."""
        return False

    def close(self) -> None:
        """Nothing is held."""


def _locked(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(file: int) -> dict[str, Any]:
    try:
        held = json.loads(os.pread(file, 4096, 0))
    except ValueError:
        return {}
    return held if isinstance(held, dict) else {}


def _busy(file: int) -> RunBusyError:
    return RunBusyError(
        f"another session (process {_read(file).get('process', 'unknown')}) works on this run; wait for it to end, "
        "or take another --fusion-run-id"
    )
