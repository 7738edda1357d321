"""Streams that are being read: their chunks on the disk, and what a process that was killed left of them.

A chunk is kept as it comes: a key may begin in one and end in the next, so that only the whole can be scrubbed. While a
process lives, it does that when it settles the call. What a dead one left is scrubbed by whoever opens the run next.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_fusion_audit.evidence.files import write_durably
from pytest_fusion_audit.metering.durability import sync_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_fusion_audit.metering.scrubbing import Scrubber

_SUFFIX = ".part"


class Spool:
    """Chunks of a stream, appended before they are handed on; a kill leaves what had arrived.

    Args:
        folder: created when missing.
        call: id of the call.
        owner: name of this process; part of the file's name, so that others can tell whether it still writes.
    """

    def __init__(self, folder: Path, call: str, owner: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{call}.{owner}{_SUFFIX}"
        self._file: int | None = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        self._chunks: list[bytes] = []

    def write(self, chunk: bytes) -> None:
        """Keep a chunk.

        Raises:
            OSError: the disk is full.
        """
        self._chunks.append(chunk)
        if self._file is not None and os.write(self._file, chunk) < len(chunk):
            raise OSError(28, "No space left on device", str(self._path))

    def content(self) -> bytes:
        """Everything that has arrived, also what the disk did not take."""
        return b"".join(self._chunks)

    def remove(self) -> None:
        """Drop the file, once its content is stored as a body."""
        self.close()
        self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file and leave it; a second time does nothing."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def clean_parts(folder: Path, dead: Callable[[str], bool], scrubber: Scrubber) -> int:
    """Take keys out of the parts that dead processes left, in place; returns how many files held any.

    A file that holds none stays as it is: a part is written anew once, and again only for keys not known then.

    Args:
        folder: of the spools.
        dead: whether the process of that name has ended.
        scrubber: knows the keys.

    Raises:
        OSError: the disk is full; the file is as it was.
    """
    cleaned = 0
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        if not dead(path.name.removesuffix(_SUFFIX).partition(".")[2]):
            continue
        with suppress(FileNotFoundError):  # another worker of the session was faster
            raw = path.read_bytes()
            content = scrubber.content(raw)
            if content != raw:
                write_durably(path, content)
                cleaned += 1
    if cleaned:
        sync_folder(folder)
    return cleaned
