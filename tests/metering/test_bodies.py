"""Bodies: found by their hash in any process's pack, torn tails passed over, damage told."""

from __future__ import annotations

import asyncio
import errno
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fusion_audit.errors import EvidenceError
from pytest_fusion_audit.metering import durability
from pytest_fusion_audit.metering.bodies import Bodies

if TYPE_CHECKING:
    from pathlib import Path

CONTENTS = [b"", b"\n", b"plain", bytes(range(256)) * 40, b"0" * 100_000, ("\n" + "f" * 64 + " 3\nabc\n").encode()]


def test_bodies_are_found_in_every_pack(tmp_path: Path) -> None:
    one, two = Bodies(tmp_path, "one"), Bodies(tmp_path, "two")
    names = [(one if n % 2 else two).put(content)[0] for n, content in enumerate(CONTENTS)]
    reader = Bodies(tmp_path, "reader")
    for bodies in (one, two, reader):
        assert [bodies.get(name) for name in names] == CONTENTS
    assert not (tmp_path / "bodies" / "reader.pack").exists()
    late = two.put(b"written after the packs were read")[0]
    assert reader.get(late) == b"written after the packs were read"
    for bodies in (one, two, reader):
        bodies.close()


def test_an_equal_body_costs_nothing_in_the_own_pack(tmp_path: Path) -> None:
    bodies, other = Bodies(tmp_path, "own"), Bodies(tmp_path, "other")
    first = bodies.put(b"x" * 1000)
    assert bodies.put(b"x" * 1000) == first
    # In another's pack it may not be on the disk yet, and only its writer can see to that.
    name, _ = other.put(b"shared")
    assert bodies.get(name) == b"shared"
    bodies.put(b"shared")
    (tmp_path / "bodies" / "other.pack").unlink()
    assert Bodies(tmp_path, "reader").get(name) == b"shared"
    bodies.close()
    other.close()


def test_a_pack_torn_at_any_byte_keeps_what_is_whole_before_it(tmp_path: Path) -> None:
    bodies = Bodies(tmp_path, "killed")
    ends = [bodies.put(content) for content in (b"first", b"second\n", b"third")]
    bodies.close()
    pack = tmp_path / "bodies" / "killed.pack"
    whole = pack.read_bytes()
    for cut in range(len(whole) + 1):
        pack.write_bytes(whole[:cut])
        reader = Bodies(tmp_path, "reader")
        for (name, end), content in zip(ends, (b"first", b"second\n", b"third"), strict=True):
            if end <= cut:
                assert reader.get(name) == content
            else:
                with pytest.raises(EvidenceError, match=r"is in no pack; restore the calls folder"):
                    reader.get(name)


def test_a_damaged_body_is_told(tmp_path: Path) -> None:
    bodies = Bodies(tmp_path, "own")
    name, _ = bodies.put(b"answer" * 100)
    pack = tmp_path / "bodies" / "own.pack"
    content = bytearray(pack.read_bytes())
    content[-5] ^= 1
    pack.write_bytes(content)
    with pytest.raises(EvidenceError, match=r"own.pack: the body .* is damaged"):
        bodies.get(name)
    bodies.close()


def test_durable_waits_for_a_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs: list[int] = []
    sync = os.fdatasync
    monkeypatch.setattr(durability.os, "fdatasync", lambda file: (syncs.append(file), sync(file)))
    bodies = Bodies(tmp_path, "own")

    async def test() -> None:
        _, end = bodies.put(b"one")
        await bodies.durable(end)
        await bodies.durable(end)

    asyncio.run(test())
    assert len(syncs) == 1
    bodies.close()


def test_a_full_disk_leaves_the_pack_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = Bodies(tmp_path, "own")
    first, _ = bodies.put(b"one")
    write = os.write

    def short(file: int, data: bytes) -> int:
        write(file, data[:30])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", short)
    with pytest.raises(OSError, match="No space"):
        bodies.put(b"two")
    monkeypatch.undo()
    last, _ = bodies.put(b"three")
    reader = Bodies(tmp_path, "reader")
    assert [reader.get(first), reader.get(last)] == [b"one", b"three"]
    bodies.close()


@given(st.lists(st.binary(max_size=300), max_size=20), st.integers(min_value=0, max_value=10**6))
def test_whatever_is_put_is_got_back(tmp_path_factory: pytest.TempPathFactory, contents: list[bytes], cut: int) -> None:
    folder = tmp_path_factory.mktemp("bodies")
    bodies = Bodies(folder, "own")
    names = [bodies.put(content) for content in contents]
    bodies.close()
    pack = folder / "bodies" / "own.pack"
    if contents:
        os.truncate(pack, size := cut % (pack.stat().st_size + 1))
    reader = Bodies(folder, "reader")
    for (name, end), content in zip(names, contents, strict=True):
        if end <= size:
            assert reader.get(name) == content
