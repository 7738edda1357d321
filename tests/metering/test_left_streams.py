"""What a killed process leaves of the streams it was reading: no key in it once the run is opened again."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from typing import TYPE_CHECKING

import pytest

from pytest_fusion_audit.metering.calls import Calls, DiskFullError
from pytest_fusion_audit.metering.ledger import Limits
from pytest_fusion_audit.metering.scrubbing import Scrubber
from tests.metering.doors import BIG, open_door
from tests.metering.kill_driver import Clients, Work
from tests.metering.planted_keys import OPENAI, PASSWORD
from tests.metering.servers import running_server

if TYPE_CHECKING:
    from pathlib import Path

SCRUBBER = Scrubber({"OPENAI_API_KEY": OPENAI, "PROXY": PASSWORD})
CUT = f'data: {{"model": "{OPENAI}"}}\n\ndata: {{"text": "{PASSWORD} EXAMPLE0 und zwölf'.encode()[:-3]


def calls_of(folder: Path, session: str = "s") -> Calls:
    return Calls(folder, Limits(total=BIG), session)


def parts(folder: Path) -> list[Path]:
    return sorted((folder / "streams").iterdir())


@pytest.mark.parametrize("point", ["before unlink 1", "after recv 9"], ids=["settled", "cut"])
def test_what_a_killed_process_left_is_scrubbed_when_the_run_is_opened(tmp_path: Path, point: str) -> None:
    """The answer names a key in every event, and comes in pieces that do not end where events do."""
    reply = json.dumps({"model": OPENAI, "split": 99, "gap_s": 0.01})
    with running_server() as server:
        clients = Clients()
        clients.start(tmp_path, server.url, Work(prompts=(f"[[script:{reply}]] ~",)), "killed", point)
        assert clients.ended() is None
        clients.close()
        [part] = parts(tmp_path)
        raw = part.read_bytes()
        assert OPENAI.encode() in raw

        async def resume() -> None:
            async with open_door(tmp_path, server.url, session="the next", scrubber=SCRUBBER):
                pass

        asyncio.run(resume())
    assert parts(tmp_path) == [part]
    assert part.read_bytes() == SCRUBBER.content(raw) != raw
    assert OPENAI.encode() not in part.read_bytes()


def test_a_part_is_written_anew_once_and_everything_else_of_it_stays(tmp_path: Path) -> None:
    calls_of(tmp_path).close()
    folder = tmp_path / "streams"
    folder.mkdir()
    (folder / "call.gone.part").write_bytes(CUT)
    (folder / "old.part").write_bytes(CUT)  # without the name of its process
    (folder / "clean.gone.part").write_bytes(b"data: {}\n\n")
    calls = calls_of(tmp_path)
    assert calls.clean_streams(SCRUBBER) == 2
    assert (folder / "call.gone.part").read_bytes() == CUT.replace(OPENAI.encode(), b"[key]").replace(
        PASSWORD.encode(), b"[key]"
    )
    assert [path.name for path in parts(tmp_path)] == ["call.gone.part", "clean.gone.part", "old.part"]
    before = [path.stat() for path in parts(tmp_path)]
    assert calls.clean_streams(SCRUBBER) == 0
    assert [path.stat().st_ino for path in parts(tmp_path)] == [stat.st_ino for stat in before]
    later = Scrubber({"OTHER": "EXAMPLE0"})  # a key that nobody knew of then
    assert calls.clean_streams(later) == 2
    calls.close()


def test_a_living_process_keeps_what_it_is_writing(tmp_path: Path) -> None:
    one, two = calls_of(tmp_path), calls_of(tmp_path)
    spool = one.spool("call")
    spool.write(CUT)
    assert one.clean_streams(SCRUBBER) == two.clean_streams(SCRUBBER) == 0
    spool.write(b"more")
    [part] = parts(tmp_path)
    assert part.read_bytes() == spool.content() == CUT + b"more"
    spool.close()
    one.close()
    assert two.clean_streams(SCRUBBER) == 1
    two.close()


def test_a_reader_changes_nothing(tmp_path: Path) -> None:
    calls = calls_of(tmp_path)
    calls.spool("call").write(CUT)
    calls.close()

    async def replay() -> None:
        async with open_door(tmp_path, "http://127.0.0.1:9", mode="replay", scrubber=SCRUBBER) as door:
            assert door.calls.clean_streams(SCRUBBER) == 0

    asyncio.run(replay())
    assert parts(tmp_path)[0].read_bytes() == CUT


def test_a_full_disk_is_told_and_leaves_the_part_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = calls_of(tmp_path)
    calls.spool("call").write(CUT)
    calls.close()
    calls = calls_of(tmp_path)

    def full(_file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(DiskFullError, match=r"No space left on device\); nothing was sent, make room"):
            calls.clean_streams(SCRUBBER)
    [part] = parts(tmp_path)
    assert part.read_bytes() == CUT
    assert calls.clean_streams(SCRUBBER) == 1
    calls.close()
