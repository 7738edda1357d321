"""Bodies of requests and responses: compressed, named by their hash, appended to one pack per process.

A pack is a line ``<sha256> <compressed length>``, the compressed bytes and a newline, repeated. One file per process
needs no lock and one sync serves every body written before it. A torn tail ends the reading of a pack; no answer is
handed on whose body is not durable.
"""

from __future__ import annotations

import hashlib
import os
import threading
import zlib
from typing import TYPE_CHECKING

from pytest_fusion_audit.errors import EvidenceError
from pytest_fusion_audit.metering.durability import GroupCommit, append_whole, sync_folder

if TYPE_CHECKING:
    from pathlib import Path


class Bodies:
    """The bodies in ``folder/bodies``; reads the packs of all processes, writes one of its own.

    Args:
        folder: the run's ``calls`` folder.
        owner: unique name of this process's pack.
    """

    def __init__(self, folder: Path, owner: str) -> None:
        self.folder = folder / "bodies"
        self._own = self.folder / f"{owner}.pack"
        self._file: int | None = None
        self._end = 0
        self._committer: GroupCommit | None = None
        self._lock = threading.Lock()
        self._where: dict[str, tuple[Path, int, int]] = {}
        self._indexed: dict[Path, int] = {}

    def put(self, content: bytes) -> tuple[str, int]:
        """Store a body; returns its hash and the offset to wait for with `durable`.

        One that this process has stored costs nothing; one in another's pack is stored again, since only the own pack
        can be made durable here.

        Raises:
            OSError: the disk is full; the pack is as it was.
        """
        sha = hashlib.sha256(content).hexdigest()
        with self._lock:
            if sha in self._where and self._where[sha][0] == self._own:
                return sha, self._end
            packed = zlib.compress(content, 1)
            entry = b"%s %d\n%s\n" % (sha.encode(), len(packed), packed)
            append_whole(self._opened(), entry, self._end)
            begin = self._end + len(entry) - len(packed) - 1
            self._where[sha] = (self._own, begin, len(packed))
            self._end += len(entry)
            return sha, self._end

    async def durable(self, offset: int) -> None:
        """Return when the bodies before ``offset`` of the own pack are on the disk."""
        if self._committer is not None:
            await self._committer.reached(offset)

    def get(self, sha: str) -> bytes:
        """A body by its hash.

        Raises:
            EvidenceError: no pack holds it, or its content does not match its hash.
        """
        with self._lock:
            if sha not in self._where:
                self._index()
            found = self._where.get(sha)
        if found is None:
            raise EvidenceError(f"{self.folder}: the body {sha[:16]}… is in no pack; restore the calls folder")
        path, begin, length = found
        with path.open("rb") as file:
            file.seek(begin)
            packed = file.read(length)
        try:
            content = zlib.decompress(packed)
        except zlib.error:
            content = b""
        if hashlib.sha256(content).hexdigest() != sha:
            raise EvidenceError(f"{path}: the body {sha[:16]}… is damaged; restore the calls folder")
        return content

    def close(self) -> None:
        """Sync and close the own pack."""
        if self._committer is not None:
            self._committer.close()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _opened(self) -> int:
        if self._file is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._own, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            sync_folder(self.folder)
            sync_folder(self.folder.parent)
            self._committer = GroupCommit(self._file)
        return self._file

    def _index(self) -> None:
        for path in sorted(self.folder.glob("*.pack")):
            begin = self._indexed.get(path, 0)
            if path.stat().st_size <= begin:
                continue
            with path.open("rb") as file:
                file.seek(begin)
                while (head := file.readline(100)).endswith(b"\n"):
                    sha, _, length = head[:-1].partition(b" ")
                    if len(sha) != 64 or not length.isdigit():
                        break
                    at, size = file.tell(), int(length)
                    file.seek(size, os.SEEK_CUR)
                    if file.read(1) != b"\n":
                        break  # torn by a kill
                    self._where.setdefault(sha.decode(), (path, at, size))
                    begin = file.tell()
            self._indexed[path] = begin
