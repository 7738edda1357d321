"""The journal: shared by processes, torn tails forgiven, damage not, one sync for many."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import threading
from typing import TYPE_CHECKING

import pytest

from pytest_fusion_audit.errors import EvidenceError
from pytest_fusion_audit.metering import durability
from pytest_fusion_audit.metering.journal import SCHEMA, Journal, Row
from tests.metering.workers import append_rows, together

if TYPE_CHECKING:
    from pathlib import Path


def open_journal(folder: Path, **settings: bool) -> tuple[Journal, list[Row]]:
    rows: list[Row] = []
    return Journal(folder, rows.append, **settings), rows


def append(journal: Journal, *rows: Row) -> int:
    with journal.exclusively():
        return journal.append(rows)


def test_rows_are_read_back_in_order(tmp_path: Path) -> None:
    journal, seen = open_journal(tmp_path)
    append(journal, {"e": "a"}, {"e": "b", "task": "zwölf\udc80"})
    journal.close()
    again, read = open_journal(tmp_path)
    assert read == seen == [{"e": "a"}, {"e": "b", "task": "zwölf\udc80"}]
    assert journal.path.read_bytes().startswith(b'{"schema":"fusion-calls/1"}\n')
    again.close()


def test_every_writer_sees_every_row_before_its_own(tmp_path: Path) -> None:
    one, seen_by_one = open_journal(tmp_path)
    two, seen_by_two = open_journal(tmp_path)
    for n in range(6):
        append(one if n % 2 else two, {"n": n})
        assert max(seen_by_one, seen_by_two, key=len) == [{"n": each} for each in range(n + 1)]
    one.refresh()
    two.refresh()
    assert seen_by_one == seen_by_two == [{"n": n} for n in range(6)]
    one.close()
    two.close()


def test_processes_at_a_barrier_see_one_order(tmp_path: Path) -> None:
    seen = together(4, append_rows, tmp_path, 40)
    assert seen[0] == seen[1] == seen[2] == seen[3]
    assert sorted(seen[0]) == [[process, n] for process in range(4) for n in range(40)]


def test_a_torn_tail_is_set_aside_at_every_byte(tmp_path: Path) -> None:
    # As another writer may have left it: with characters of several bytes.
    lines = [
        json.dumps(row, ensure_ascii=False).encode() + b"\n"
        for row in [{"schema": SCHEMA}, {"e": "a"}, {"e": "b", "note": "tötal 🎲"}, {"e": "c"}]
    ]
    whole = b"".join(lines)
    for cut in range(len(whole) + 1):
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / "journal.jsonl").write_bytes(whole[:cut])
        complete = max(0, whole[:cut].count(b"\n") - 1)
        tail = whole[:cut].rpartition(b"\n")[2]

        reader = Journal(folder, (seen := []).append, read_only=True)
        reader.close()
        assert len(seen) == complete
        assert (folder / "journal.jsonl").read_bytes() == whole[:cut]

        journal, rows = open_journal(folder)
        append(journal, {"e": "next"})
        journal.close()
        journal, again = open_journal(folder)
        journal.close()
        assert [row["e"] for row in again] == [row["e"] for row in rows] == [*"abc"[:complete], "next"]
        aside = folder / "torn.bin"
        assert (aside.read_bytes() if aside.exists() else b"") == (tail + b"\n" if tail else b"")


@pytest.mark.parametrize("line", [b'{"v":1,"event":', b"\xff\xfe", b"[]", b"12", b'{"e":"a"}\r{"e":"b"', b"\x00" * 9])
def test_a_damaged_line_that_ends_in_a_newline_stops_everything_and_is_named(tmp_path: Path, line: bytes) -> None:
    content = b'{"schema":"fusion-calls/1"}\n{"e":"a"}\n' + line + b'\n{"e":"b"}\n'
    (tmp_path / "journal.jsonl").write_bytes(content)
    for _ in range(2):
        with pytest.raises(EvidenceError, match=r"journal.jsonl, line 3: damaged"):
            open_journal(tmp_path)
    assert (tmp_path / "journal.jsonl").read_bytes() == content


def test_damage_that_appears_while_the_journal_is_open_is_never_read_over(tmp_path: Path) -> None:
    journal, rows = open_journal(tmp_path)
    append(journal, {"e": "a"})
    with journal.path.open("ab") as file:
        file.write(b'damaged\n{"e":"b"}\n')
    for _ in range(3):
        with pytest.raises(EvidenceError, match="line 3"):
            append(journal, {"e": "c"})
    assert rows == [{"e": "a"}]
    journal.close()


def test_a_row_that_its_reader_cannot_use_is_damage(tmp_path: Path) -> None:
    journal, _ = open_journal(tmp_path)
    append(journal, {"e": "settle"})
    journal.close()

    def reader(row: Row) -> None:
        row["id"]

    with pytest.raises(EvidenceError, match=r"line 2: a row without what it needs \(KeyError: 'id'\)"):
        Journal(tmp_path, reader)


def test_blank_lines_are_ignored_and_counted(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_bytes(b'{"schema":"fusion-calls/1"}\n{"e":"a"}\n\n\n')
    journal, rows = open_journal(tmp_path)
    append(journal, {"e": "b"})
    assert rows == [{"e": "a"}, {"e": "b"}]
    with journal.path.open("ab") as file:
        file.write(b"x\n")
    with pytest.raises(EvidenceError, match="line 6"):
        journal.refresh()
    journal.close()


@pytest.mark.parametrize(
    "first", [b'{"e":"a"}\n', b'{"schema":"fusion-calls/2"}\n', b'{"v":1,"event":"reserve","usd":"0.12"}\n']
)
def test_another_format_is_refused(tmp_path: Path, first: bytes) -> None:
    (tmp_path / "journal.jsonl").write_bytes(first)
    with pytest.raises(EvidenceError, match=r"line 1: schema is .*, this version reads 'fusion-calls/1'"):
        open_journal(tmp_path)


def test_a_journal_that_was_cut_while_open_stops_the_run(tmp_path: Path) -> None:
    journal, _ = open_journal(tmp_path)
    append(journal, {"e": "a"})
    os.truncate(journal.path, 3)
    with pytest.raises(EvidenceError, match="shorter than it was"):
        journal.refresh()
    journal.close()


def test_reading_only_needs_a_journal(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="not there"):
        open_journal(tmp_path, read_only=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("taken", [0, 5])
def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int) -> None:
    journal, rows = open_journal(tmp_path)
    append(journal, {"e": "a"})
    before = journal.path.read_bytes()
    write = os.write

    def short(file: int, data: bytes) -> int:
        if not taken:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data[:taken])

    monkeypatch.setattr(os, "write", short)
    with pytest.raises(OSError, match="No space left"):
        append(journal, {"e": "b"})
    monkeypatch.undo()
    assert journal.path.read_bytes() == before
    append(journal, {"e": "c"})
    assert rows == [{"e": "a"}, {"e": "c"}]
    journal.close()


def test_a_hundred_waiting_rows_need_at_most_two_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, _ = open_journal(tmp_path)
    syncs = 0
    everybody = threading.Event()
    sync = os.fdatasync

    def counted(file: int) -> None:
        nonlocal syncs
        syncs += 1
        everybody.wait(10)
        sync(file)

    monkeypatch.setattr(durability.os, "fdatasync", counted)

    async def test() -> None:
        waiting = [asyncio.ensure_future(journal.durable(append(journal, {"n": n}))) for n in range(100)]
        await asyncio.sleep(0)
        everybody.set()
        await asyncio.gather(*waiting)

    asyncio.run(test())
    group = syncs
    assert group in {1, 2}, "one for all, or one more for those who came after it began"
    journal.durably(append(journal, {"n": 100}))
    assert syncs == group + 1
    journal.close()


def test_a_sync_that_fails_is_told_to_all_who_wait_and_to_all_who_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, _ = open_journal(tmp_path)

    def broken(file: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(durability.os, "fdatasync", broken)

    async def test() -> None:
        ends = [append(journal, {"n": n}) for n in range(3)]
        found = await asyncio.gather(*(journal.durable(end) for end in ends), return_exceptions=True)
        assert [type(each) for each in found] == [OSError] * 3
        with pytest.raises(OSError, match="Input/output"):
            await journal.durable(append(journal, {"n": 4}))

    asyncio.run(test())
    with pytest.raises(OSError, match="Input/output"):
        journal.durably(append(journal, {"n": 5}))
    journal.close()


def test_a_loop_that_ended_does_not_keep_others_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, _ = open_journal(tmp_path)
    go = threading.Event()
    sync = os.fdatasync
    monkeypatch.setattr(durability.os, "fdatasync", lambda file: (go.wait(10), sync(file)))
    gone = asyncio.new_event_loop()
    task = gone.create_task(journal.durable(append(journal, {"n": 1})))
    gone.run_until_complete(asyncio.sleep(0))
    task.cancel()
    gone.run_until_complete(asyncio.wait([task]))
    gone.close()
    go.set()
    asyncio.run(journal.durable(append(journal, {"n": 2})))
    journal.close()


def test_loops_of_several_threads_wait_on_one_journal(tmp_path: Path) -> None:
    journal, _ = open_journal(tmp_path)
    together_now = threading.Barrier(4)

    def thread(number: int) -> None:
        async def main() -> None:
            for n in range(20):
                await journal.durable(append(journal, {"n": n, "thread": number}))

        together_now.wait(10)
        asyncio.run(main())

    threads = [threading.Thread(target=thread, args=(number,)) for number in range(3)]
    for each in threads:
        each.start()
    together_now.wait(10)
    for n in range(20):
        journal.durably(append(journal, {"n": n, "thread": 3}))
    for each in threads:
        each.join(60)
        assert not each.is_alive()
    journal.close()


def test_a_closed_journal_takes_nothing(tmp_path: Path) -> None:
    journal, _ = open_journal(tmp_path)
    journal.close()
    journal.close()
    with pytest.raises(ValueError, match="closed"):
        append(journal, {"e": "a"})
    with pytest.raises(ValueError, match="closed"):
        journal.durably(10**6)
