"""Members of a zip archive as bytes, with limits: nothing is unpacked to disk, a bomb is refused, damage has a name.

Inspect writes its logs with zstd (method 93), which `zipfile` reads from Python 3.14 on. Before that the member's raw
bytes are found by its local header (APPNOTE.TXT 4.3.7: 30 bytes, then name and extra field) and given to `zstandard`.
"""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
import zlib
from collections import Counter
from typing import IO, TYPE_CHECKING, Final, Self

from pytest_fusion_audit.evidence.importers.base import Source, printable, refusal, shown
from pytest_fusion_audit.evidence.importers.text import unreadable

if TYPE_CHECKING:
    from types import TracebackType

    from pytest_fusion_audit.errors import ImportRefusedError

#: Method number of zstd in zip archives.
ZSTD: Final = 93
#: A member may unpack to this many bytes and no more.
MEMBER_BYTES: Final = 256 << 20
#: Beyond `_FREE_BYTES` a member may unpack to this many times its packed size; all members read together to half of it.
MEMBER_RATIO: Final = 1000
_FREE_BYTES: Final = 16 << 20
_BLOCK: Final = 1 << 20
_LOCAL_HEADER: Final = 30
_ENCRYPTED: Final = 0x1

#: What the standard library raises on archives that are cut off or were changed.
_DAMAGE: Final = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    RuntimeError,
    OverflowError,
    IndexError,
)


class Archive:
    """An open zip file. Member names are only compared, never used as paths.

    Args:
        source: the file.

    Raises:
        ImportRefusedError: not a zip archive, cut off, or unreadable.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        try:
            self._zip = zipfile.ZipFile(source.path)
            self._size = source.path.stat().st_size
        except OSError as error:
            raise unreadable(source.name, error) from None
        except _DAMAGE as error:
            raise refusal(source, f"a damaged or cut-off zip archive ({_reason(error)})") from None
        counts = Counter(info.filename for info in self._zip.infolist())
        #: Names, each once, in the order in which they were first written.
        self.names = tuple(counts)
        #: Names written more than once, by a retry or an edit: the last one is read.
        self.rewritten = tuple(name for name, count in counts.items() if count > 1)
        self._unpacked = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    def read(self, name: str) -> bytes:
        """Bytes of a member; of several of one name the last.

        Raises:
            ImportRefusedError: damaged, encrypted, packed by a method that cannot be read here, or larger than allowed.
        """
        info = self._zip.getinfo(name)
        if info.flag_bits & _ENCRYPTED:
            raise self._refuse(name, "is encrypted")
        try:
            if info.compress_type == ZSTD and not hasattr(zipfile, "ZIP_ZSTANDARD"):
                return self._read_zstd(info)
            with self._zip.open(info) as stream:
                return self._bounded(stream, info)
        except _DAMAGE as error:
            raise self._refuse(name, f"is damaged ({_reason(error)})") from None

    def _read_zstd(self, info: zipfile.ZipInfo) -> bytes:
        try:
            import zstandard  # noqa: PLC0415 - needed before Python 3.14 only, and for these files only
        except ImportError:
            raise refusal(
                self.source,
                "packed with zstd, which this Python cannot read without the package zstandard",
                then="pip install zstandard, or convert it: inspect log convert --to json --output-dir DIR FILE",
            ) from None
        with self.source.path.open("rb") as file:
            file.seek(info.header_offset)
            header = file.read(_LOCAL_HEADER)
            if len(header) < _LOCAL_HEADER or not header.startswith(b"PK\x03\x04"):
                raise zipfile.BadZipFile("no local header where the directory points")
            name_length, extra_length = struct.unpack("<HH", header[26:30])
            file.seek(name_length + extra_length, io.SEEK_CUR)
            packed = file.read(min(info.compress_size, self._size))
        try:
            # Large members are several frames in a row.
            with zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True) as stream:
                content = self._bounded(stream, info)
        except zstandard.ZstdError as error:
            raise self._refuse(info.filename, f"is damaged ({_reason(error)})") from None
        if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
            raise self._refuse(info.filename, "is damaged (its check sum differs)")
        return content

    def _bounded(self, stream: IO[bytes], info: zipfile.ZipInfo) -> bytes:
        """Read to the end in blocks, whatever size the archive states: a bomb states a small one."""
        most = min(MEMBER_BYTES, max(_FREE_BYTES, MEMBER_RATIO * info.compress_size))
        whole = MEMBER_BYTES + MEMBER_RATIO // 2 * self._size
        content = bytearray()
        while block := stream.read(_BLOCK):
            content += block
            self._unpacked += len(block)
            if len(content) > most or self._unpacked > whole:
                packed = f"{info.compress_size:,} bytes unpack to more than {len(content) - 1:,}"
                raise self._refuse(info.filename, f"is larger than allowed ({packed})")
        return bytes(content)

    def _refuse(self, name: str, what: str) -> ImportRefusedError:
        return refusal(self.source, what, f"member {shown(name)}")


def _reason(error: BaseException) -> str:
    text = printable(str(error)) or type(error).__name__
    return text[:1].lower() + text[1:]
