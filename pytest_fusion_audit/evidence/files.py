"""Evidence files: one JSON line per record, schema and provenance in the first line.

Writers replace a file whole and durably. Readers forgive exactly one thing, an unterminated last line (a kill in the
middle of an append); any other damage names file and line. Fields that are unknown (null) are left out of a line.
"""

from __future__ import annotations

import json
import os
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from pytest_fusion_audit.errors import EvidenceError
from pytest_fusion_audit.evidence.records import KINDS, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

SCHEMA_VERSION = 1


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    record_type = KINDS[kind]
    record_type.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[attr-defined]
    return TypeAdapter(record_type)


def schema_of(kind: str) -> str:
    """Schema name and version in the first line of an evidence file.

    >>> schema_of("candidate")
    'fusion-evidence/candidate/1'
    """
    return f"fusion-evidence/{kind}/{SCHEMA_VERSION}"


def write_records(path: Path, kind: str, records: Iterable[Record], provenance: Mapping[str, Any]) -> int:
    """Write one evidence file; returns the number of records. The file appears whole or not at all."""
    adapter = _adapter(kind)
    lines = [json.dumps({"schema": schema_of(kind), **provenance}, sort_keys=True, ensure_ascii=False).encode()]
    for record in records:
        try:
            lines.append(adapter.dump_json(record, by_alias=True, exclude_none=True))
        except (ValueError, UnicodeError):
            source = getattr(record, "source", "") or "a record"
            raise EvidenceError(
                f"{source}: holds text that is not Unicode and cannot be stored; repair the file"
            ) from None
    write_durably(path, b"\n".join(lines) + b"\n")
    return len(lines) - 1


def read_records(path: Path, kind: str) -> Iterator[Record]:
    """Records of one evidence file.

    Raises:
        EvidenceError: the file is of another schema, or a terminated line is damaged; names file, line and field.
    """
    adapter = _adapter(kind)
    for number, line in _whole_lines(path):
        if number == 1:
            _check_schema(path, kind, line)
            continue
        try:
            yield adapter.validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "line"
            raise EvidenceError(
                f"{path}, line {number}: {where}: {first['msg']}; the file was edited or is damaged, "
                "restore it or import again"
            ) from None


def _whole_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Numbered lines as bytes, so that half a UTF-8 character at the end is a torn line and not a crash."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return  # torn by a kill in the middle of an append: set aside
            yield number, line


def _check_schema(path: Path, kind: str, line: bytes) -> None:
    try:
        found = json.loads(line)["schema"]
    except (ValueError, KeyError, TypeError):
        raise EvidenceError(f"{path}, line 1: no schema line; this is not an evidence file of this tool") from None
    if found != schema_of(kind):
        raise EvidenceError(
            f"{path}, line 1: schema is {found!r}, this version reads {schema_of(kind)!r}; "
            "use the version of pytest-fusion-audit that wrote it"
        )


def write_durably(path: Path, content: bytes) -> None:
    """Replace ``path`` by ``content``: written aside, synced, renamed; a crash leaves the old or the new file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
