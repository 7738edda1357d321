"""Errors a user can cause. Each message says what is wrong, where (file and line or field) and what to do next."""

from __future__ import annotations

from pathlib import Path


class FusionAuditError(Exception):
    """Base of every error this package raises on purpose; command line and plugin print it without traceback."""


class EvidenceError(FusionAuditError):
    """A stored evidence file or a run directory cannot be read as what it claims to be."""


class ImportRefusedError(FusionAuditError):
    """A file given to ``--fusion-import`` is missing, damaged, of an unknown format, or contradicts another file."""


class RubricError(FusionAuditError):
    """A rubric file is malformed; the message names the file and the field."""


def one_line(error: BaseException) -> str:
    """An error as one line for people, without a traceback.

    >>> one_line(EvidenceError("run x:   not there"))
    'run x: not there'
    """
    if isinstance(error, OSError):
        name = Path(error.filename).name if error.filename else "the run directory"
        return f"cannot read or write {name}: {error.strerror}; nothing was sent or billed, make room and run again"
    return " ".join(str(error).split())
