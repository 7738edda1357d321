"""Zip archives: both packings, several frames in a row, limits, encryption, damage."""

from __future__ import annotations

import struct
import zipfile
import zlib
from typing import TYPE_CHECKING

import pytest

from pytest_fusion_audit.errors import ImportRefusedError
from pytest_fusion_audit.evidence.importers import zip_members
from pytest_fusion_audit.evidence.importers.base import Source
from pytest_fusion_audit.evidence.importers.zip_members import Archive
from tests.evidence.importers.foreign_plants import archive, zstd

if TYPE_CHECKING:
    from pathlib import Path

METHODS = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, 93]


def source(tmp_path: Path, content: bytes) -> Source:
    path = tmp_path / "a.eval"
    path.write_bytes(content)
    return Source(path, "a.eval", "")


@pytest.mark.parametrize("method", METHODS)
def test_every_packing_gives_the_same_bytes(tmp_path: Path, method: int) -> None:
    members = [("a.json", b"{}"), ("s/ü.json", b"x" * 100_000), ("empty", b"")]
    with Archive(source(tmp_path, archive(members, method=method))) as opened:
        assert [(name, opened.read(name)) for name in opened.names] == members
        assert opened.rewritten == ()


def test_bytes_before_the_archive_do_not_move_its_members(tmp_path: Path) -> None:
    with Archive(source(tmp_path, b"PK\x03\x04 not yet" * 9 + archive([("a", b"1")], method=93))) as opened:
        assert opened.read("a") == b"1"


def test_a_large_zstd_member_is_several_frames_in_a_row(tmp_path: Path) -> None:
    parts = [bytes([n]) * 300_000 for n in range(4)]
    packed = b"".join(zstd(part) for part in parts)
    whole = b"".join(parts)
    raw = archive([("a", packed)], method=zipfile.ZIP_STORED)
    # A stored member whose bytes are frames, relabelled in both headers: method, check sum and full size.
    local = bytearray(raw)
    central = local.index(b"PK\x01\x02")
    for at in (8, central + 10):
        local[at : at + 2] = struct.pack("<H", 93)
        local[at + 6 : at + 10] = struct.pack("<I", zlib.crc32(whole))
        local[at + 14 : at + 18] = struct.pack("<I", len(whole))
    with Archive(source(tmp_path, bytes(local))) as opened:
        assert opened.read("a") == whole


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, 93])
def test_a_member_over_the_cap_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: int) -> None:
    monkeypatch.setattr(zip_members, "MEMBER_BYTES", 1 << 16)
    with (
        Archive(source(tmp_path, archive([("a", bytes(range(256)) * 1000)], method=method))) as opened,
        pytest.raises(ImportRefusedError, match="member 'a': is larger than allowed"),
    ):
        opened.read("a")


def test_many_members_together_are_capped_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_members, "MEMBER_BYTES", 1 << 20)
    monkeypatch.setattr(zip_members, "MEMBER_RATIO", 2)
    members = [(f"m{n}", b" " * 900_000) for n in range(4)]
    with Archive(source(tmp_path, archive(members))) as opened:
        opened.read("m0")
        with pytest.raises(ImportRefusedError, match="member 'm1': is larger than allowed"):
            opened.read("m1")


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    content = bytearray(archive([("a", b"1")]))
    central = content.index(b"PK\x01\x02")
    content[6] |= 1
    content[central + 8] |= 1
    with (
        Archive(source(tmp_path, bytes(content))) as opened,
        pytest.raises(ImportRefusedError, match="member 'a': is encrypted"),
    ):
        opened.read("a")


def test_a_packing_that_nobody_reads_is_named(tmp_path: Path) -> None:
    content = bytearray(archive([("a", b"1")]))
    central = content.index(b"PK\x01\x02")
    content[8:10] = content[central + 10 : central + 12] = struct.pack("<H", 97)
    with (
        Archive(source(tmp_path, bytes(content))) as opened,
        pytest.raises(ImportRefusedError, match="member 'a': is damaged"),
    ):
        opened.read("a")


def test_a_member_that_is_not_what_its_check_sum_says_is_refused(tmp_path: Path) -> None:
    content = bytearray(archive([("a", b"12345678")], method=93))
    central = content.index(b"PK\x01\x02")
    content[central + 16 : central + 20] = b"\0\0\0\0"
    with (
        Archive(source(tmp_path, bytes(content))) as opened,
        pytest.raises(ImportRefusedError, match="its check sum differs"),
    ):
        opened.read("a")


def test_no_archive_and_no_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportRefusedError, match="a damaged or cut-off zip archive"):
        Archive(source(tmp_path, b"PK\x03\x04 and no more"))
    with pytest.raises(ImportRefusedError, match="cannot be read"):
        Archive(Source(tmp_path / "missing", "missing", ""))
