"""Search a finished run directory for keys: every file, inside compressed ones too, and the names of files."""

from __future__ import annotations

import gzip
import os
import re
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Protocol

from pytest_fusion_audit.errors import FusionAuditError
from pytest_fusion_audit.metering.key_shapes import LONGEST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_fusion_audit.metering.scrubbing import Kind, Scrubber

_BLOCK: Final = 1 << 20
_MOST_UNPACKED: Final = 1 << 30  # of one member: a bomb is not worth more
_PACK_HEAD: Final = re.compile(rb"([0-9a-f]{64}) ([0-9]{1,12})\n")


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class KeysFoundError(FusionAuditError):
    """Keys stand in files that are about to be kept; the message names the places, never the keys."""


@dataclass(frozen=True, slots=True, order=True)
class Hit:
    """Where a key stands.

    Attributes:
        path: relative to the folder, scrubbed; a member of an archive after a colon.
        line: from 1; 0 for the name of the file itself.
        kind: ``value``, one of the session's keys, or ``shape``, something that looks like a maker's key.
        name: variable that holds the key, empty where it is not known.
    """

    path: str
    line: int
    kind: Kind
    name: str = ""

    def __str__(self) -> str:
        what = f"the key of {self.name}" if self.name else "a key" if self.kind == "value" else "what looks like a key"
        return f"{self.path}:{self.line}: {what}" if self.line else f"{self.path}: {what} in the name of the file"


def scan(folder: Path, scrubber: Scrubber) -> list[Hit]:
    """Find keys in a folder.

    Args:
        folder: a run directory; links are not followed.
        scrubber: knows the session's keys.

    Returns:
        One hit for each line and key, sorted; empty when all is well.

    Raises:
        OSError: a file cannot be read. What was not read is not clean.
    """
    hits: set[Hit] = set()
    for root, folders, files in os.walk(folder, onerror=_raise):
        folders.sort()
        for file in sorted(files):
            path = Path(root) / file
            shown = path.relative_to(folder).as_posix()
            hits.update(Hit(scrubber.text(shown), 0, kind, name) for _, _, kind, name in scrubber.spans(shown))
            if path.is_symlink():
                target = str(path.readlink())
                hits.update(Hit(scrubber.text(shown), 1, kind, name) for _, _, kind, name in scrubber.spans(target))
            elif path.is_file():
                with path.open("rb") as stream:
                    hits.update(_in_file(stream, scrubber.text(shown), scrubber))
    return sorted(hits)


def check_no_keys(folder: Path, scrubber: Scrubber) -> None:
    """Return when no key stands in a folder.

    Raises:
        KeysFoundError: one does; lists up to ten places.
    """
    hits = scan(folder, scrubber)
    if hits:
        listed = "; ".join(str(hit) for hit in hits[:10])
        more = f"; and {len(hits) - 10} more" if len(hits) > 10 else ""
        raise KeysFoundError(
            f"keys stand in {folder.name}: {listed}{more}. Revoke them, and do not commit or share the run"
        )


def _raise(error: OSError) -> None:
    raise error


def _in_file(stream: IO[bytes], shown: str, scrubber: Scrubber) -> Iterator[Hit]:
    yield from _in_stream(stream, shown, scrubber)
    stream.seek(0)
    head = stream.read(78)
    stream.seek(0)
    if head.startswith(b"\x1f\x8b"):
        with gzip.open(stream) as plain:
            yield from _in_damaged(plain, shown, scrubber)
    elif head.startswith(b"PK\x03\x04"):
        yield from _in_zip(stream, shown, scrubber)
    elif head.startswith(b"\x28\xb5\x2f\xfd"):
        with _zstd(stream) as plain:
            yield from _in_damaged(plain, shown, scrubber)
    elif _PACK_HEAD.match(head):
        yield from _in_pack(stream, shown, scrubber)


def _in_stream(stream: _Readable, shown: str, scrubber: Scrubber) -> Iterator[Hit]:
    """Hits in plain bytes, in blocks that overlap by more than any key is long."""
    overlap = max([LONGEST, *(len(form) for form in scrubber.forms)]) * 6  # a character escaped is up to six
    line, kept, total = 1, b"", 0
    while (block := stream.read(_BLOCK)) and total <= _MOST_UNPACKED:
        total += len(block)
        window = kept + block
        text = window.decode("latin-1")
        for begin, _, kind, name in scrubber.spans(text):
            yield Hit(shown, line + text.count("\n", 0, begin), kind, name)
        kept = window[-overlap:]
        line += window.count(b"\n", 0, len(window) - len(kept))


def _in_damaged(stream: _Readable, shown: str, scrubber: Scrubber) -> Iterator[Hit]:
    """As `_in_stream`; what cannot be unpacked (any more) holds nothing that could be read."""
    try:
        yield from _in_stream(stream, shown, scrubber)
    except Exception:  # noqa: BLE001 - each format has errors of its own, and the raw bytes were looked at already
        return


def _in_zip(stream: IO[bytes], shown: str, scrubber: Scrubber) -> Iterator[Hit]:
    try:
        archive = zipfile.ZipFile(stream)
    except zipfile.BadZipFile:
        return
    with archive:
        for member in archive.infolist():
            named = f"{shown}:{scrubber.text(member.filename)}"
            yield from (Hit(named, 0, kind, name) for _, _, kind, name in scrubber.spans(member.filename))
            try:
                plain = archive.open(member)
            except (RuntimeError, NotImplementedError, zipfile.BadZipFile):
                continue  # encrypted or packed in a way that nobody here can read
            with plain:
                yield from _in_damaged(plain, named, scrubber)


def _in_pack(stream: IO[bytes], shown: str, scrubber: Scrubber) -> Iterator[Hit]:
    """Bodies of calls; see `metering.bodies` for the form of a pack."""
    while head := _PACK_HEAD.fullmatch(stream.readline(100)):
        packed = stream.read(int(head[2]))
        stream.read(1)
        unpacking = zlib.decompressobj()
        try:
            text = unpacking.decompress(packed, _MOST_UNPACKED).decode("latin-1")
        except zlib.error:
            continue
        for begin, _, kind, name in scrubber.spans(text):
            yield Hit(f"{shown}:{head[1][:16].decode()}", 1 + text.count("\n", 0, begin), kind, name)


def _zstd(stream: IO[bytes]) -> IO[bytes]:
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - Python 3.14
    except ImportError:
        import zstandard  # noqa: PLC0415 - only where such a file lies

        return zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True, closefd=False)  # type: ignore[return-value,unused-ignore]
    plain: IO[bytes] = zstd.open(stream)
    return plain
