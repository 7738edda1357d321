"""The scan at the end of a run: every file, inside packed ones too, by place and never by value."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import zipfile
import zlib
from typing import TYPE_CHECKING

import pytest

from pytest_fusion_audit.metering.bodies import Bodies
from pytest_fusion_audit.metering.scan import Hit, KeysFoundError, check_no_keys, scan
from pytest_fusion_audit.metering.scrubbing import Scrubber
from tests.metering.planted_keys import ANTHROPIC, KEYS, OPENAI, PASSWORD, ROUTER

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAMES = {"OPENAI_API_KEY": OPENAI, "ANTHROPIC_API_KEY": ANTHROPIC, "ROUTER_API_KEY": ROUTER, "PROXY": PASSWORD}
SCRUBBER = Scrubber(NAMES)


def packed(content: bytes) -> bytes:
    """One entry of a pack of bodies."""
    small = zlib.compress(content, 1)
    return b"%s %d\n%s\n" % (hashlib.sha256(content).hexdigest().encode(), len(small), small)


def zipped(name: str, content: bytes) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return held.getvalue()


def zstandard(content: bytes) -> bytes:
    return pytest.importorskip("zstandard").ZstdCompressor().compress(content)


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "among bytes that are no text": lambda content: b"\0\xff\n" + content + b"\xff",
    "gzip": gzip.compress,
    "two gzips in a row": lambda content: gzip.compress(b"first\n") + gzip.compress(content),
    "pack": packed,
    "pack with a torn tail": lambda content: packed(b"other") + packed(content) + b"torn tail",
    "zip": lambda content: zipped("inner/a.json", content),
    "zstandard": zstandard,
    "base64": lambda content: base64.b64encode(b"user:" + content),
}


def test_a_clean_folder_has_no_hits(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"message": "401: key [key] of OPENAI_API_KEY is wrong"}')
    (tmp_path / "calls").mkdir()
    (tmp_path / "calls" / "x.pack").write_bytes(packed(b"task-1 sk-learn") * 3)
    (tmp_path / "empty").touch()
    assert scan(tmp_path, SCRUBBER) == []
    check_no_keys(tmp_path, SCRUBBER)


def test_a_hit_names_file_line_and_variable(tmp_path: Path) -> None:
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "fault.jsonl").write_text(f"one\ntwo {OPENAI}\nthree {OPENAI} {ANTHROPIC}\n")
    assert scan(tmp_path, SCRUBBER) == [
        Hit("evidence/fault.jsonl", 2, "value", "OPENAI_API_KEY"),
        Hit("evidence/fault.jsonl", 3, "value", "ANTHROPIC_API_KEY"),
        Hit("evidence/fault.jsonl", 3, "value", "OPENAI_API_KEY"),
    ]
    assert str(scan(tmp_path, SCRUBBER)[0]) == "evidence/fault.jsonl:2: the key of OPENAI_API_KEY"


def test_a_key_that_nobody_knows_is_found_by_its_shape(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("a\nb sk-proj-5566somebodyELSES5566\n")
    assert scan(tmp_path, SCRUBBER) == [Hit("log.txt", 2, "shape")]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("pack", sorted(PACKINGS))
def test_every_packing_is_looked_into(tmp_path: Path, key: str, pack: str) -> None:
    (tmp_path / "file").write_bytes(PACKINGS[pack](f"x {key} y".encode()))
    hits = scan(tmp_path, SCRUBBER)
    assert {hit.path.split(":")[0] for hit in hits} == {"file"}
    assert "value" in {hit.kind for hit in hits}
    shown = " ".join(str(hit) for hit in hits)
    assert key not in shown


def test_bodies_as_the_store_keeps_them_are_looked_into(tmp_path: Path) -> None:
    bodies = Bodies(tmp_path / "calls", "owner-1")
    for content in (b"clean", f'{{"error": "wrong key\\n{ANTHROPIC}"}}'.encode(), b"clean too"):
        bodies.put(content)
    bodies.close()
    assert [(hit.line, hit.name) for hit in scan(tmp_path, SCRUBBER)] == [(1, "ANTHROPIC_API_KEY")]
    assert str(scan(tmp_path, SCRUBBER)[0]).startswith("calls/bodies/owner-1.pack:")


def test_names_of_files_members_and_links_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / f"task-{OPENAI}.json").touch()
    (tmp_path / "a.zip").write_bytes(zipped(f"{ANTHROPIC}.txt", b""))
    (tmp_path / "link").symlink_to(f"/nowhere/{PASSWORD}")
    hits = scan(tmp_path, SCRUBBER)
    assert {hit.name for hit in hits if hit.kind == "value"} == {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "PROXY"}
    assert all(key not in hit.path for hit in hits for key in KEYS)
    assert any(str(hit) == "task-[key].json: the key of OPENAI_API_KEY in the name of the file" for hit in hits)


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside, run = tmp_path / "outside", tmp_path / "run"
    outside.mkdir()
    run.mkdir()
    (outside / "secret").write_text(OPENAI)
    (run / "folder").symlink_to(outside)
    (run / "file").symlink_to(outside / "secret")
    assert scan(run, SCRUBBER) == []


@pytest.mark.parametrize("at", [0, (1 << 20) - 10, (1 << 20) - 1, (1 << 20), (2 << 20) - 13, (3 << 20) + 5])
def test_a_key_on_the_boundary_of_two_blocks_is_found_once_with_its_line(tmp_path: Path, at: int) -> None:
    before = (b"x" * 99 + b"\n") * (at // 100 + 1)
    (tmp_path / "big").write_bytes(before[:at] + OPENAI.encode() + b"\n" * 50 + b"y" * (1 << 20))
    hits = [hit for hit in scan(tmp_path, SCRUBBER) if hit.kind == "value"]
    assert hits == [Hit("big", 1 + before[:at].count(b"\n"), "value", "OPENAI_API_KEY")]


@pytest.mark.parametrize(
    "head", [b"\x1f\x8b\x08\0damaged", b"PK\x03\x04damaged", b"\x28\xb5\x2f\xfddamaged", b"a" * 64]
)
def test_damaged_packings_are_read_as_they_are(tmp_path: Path, head: bytes) -> None:
    (tmp_path / "damaged").write_bytes(head + b"\n" + OPENAI.encode())
    assert {hit.name for hit in scan(tmp_path, SCRUBBER) if hit.kind == "value"} == {"OPENAI_API_KEY"}


def test_a_hit_fails_the_run_and_the_message_holds_no_key(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"{number:02d}.txt").write_text(f"{ROUTER}\n")
    with pytest.raises(KeysFoundError, match=r"and 2 more\. Revoke them") as caught:
        check_no_keys(tmp_path, SCRUBBER)
    assert ROUTER not in str(caught.value)
    assert "00.txt:1: the key of ROUTER_API_KEY" in str(caught.value)


def test_a_file_that_cannot_be_read_is_not_clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").write_text("x")
    monkeypatch.setattr(
        "pathlib.Path.open", lambda *_a, **_k: (_ for _ in ()).throw(PermissionError(13, "no", "closed"))
    )
    with pytest.raises(PermissionError):
        scan(tmp_path, SCRUBBER)


def test_what_the_scrubber_let_through_is_clean(tmp_path: Path) -> None:
    body = f"{OPENAI} {ANTHROPIC} sk-proj-5566somebodyELSES5566 https://u:{PASSWORD}@h {ROUTER}".encode()
    (tmp_path / "body").write_bytes(SCRUBBER.content(body))
    (tmp_path / "text").write_bytes(SCRUBBER.bytes(body))
    assert scan(tmp_path, SCRUBBER) == []
