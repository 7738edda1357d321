"""Errors a user can cause. Each message says what is wrong, where (file and line or field) and what to do next."""

from __future__ import annotations


class FusionAuditError(Exception):
    """Base of every error this package raises on purpose; command line and plugin print it without traceback."""


class EvidenceError(FusionAuditError):
    """A stored evidence file or a run directory cannot be read as what it claims to be."""


class ImportRefusedError(FusionAuditError):
    """A file given to ``--fusion-import`` is missing, damaged, of an unknown format, or contradicts another file."""


class RubricError(FusionAuditError):
    """A rubric file is malformed; the message names the file and the field."""
