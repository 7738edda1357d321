"""Owners: who is alive, and one session at a time on a run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_fusion_audit.metering.calls import Calls
from pytest_fusion_audit.metering.ledger import Limits
from pytest_fusion_audit.metering.owners import Owner, RunBusyError
from tests.metering.workers import reserve_and_vanish, together

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def somebody(tmp_path: Path):
    """Another process that is an owner of session ``theirs``, until its standard input closes."""
    code = (
        "import sys; from pathlib import Path; from pytest_fusion_audit.metering.owners import Owner\n"
        f"owner = Owner(Path({str(tmp_path)!r}), 'theirs'); print(owner.name, flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.name = process.stdout.readline().strip()  # type: ignore[attr-defined]
    yield process
    process.kill()
    process.communicate()


def test_a_killed_process_is_dead_and_a_living_one_is_not(tmp_path: Path, somebody: Any) -> None:
    owner = Owner(tmp_path, "theirs")
    assert not owner.dead(somebody.name)
    assert not owner.dead(owner.name)
    assert owner.dead("never there")
    somebody.kill()
    somebody.wait()
    assert owner.dead(somebody.name)
    owner.close()


def test_another_session_is_refused_by_the_process_that_is_at_work(tmp_path: Path, somebody: Any) -> None:
    for _ in range(2):
        with pytest.raises(RunBusyError, match=rf"another session \(process {somebody.pid}\) works on this run"):
            Owner(tmp_path, "mine")
    with pytest.raises(RunBusyError):
        Calls(tmp_path, Limits(total=1), "mine")
    assert json.loads((tmp_path / "session.json").read_text())["session"] == "theirs"
    somebody.kill()
    somebody.wait()
    owner = Owner(tmp_path, "mine")
    assert owner.new_session
    owner.close()


def test_the_workers_of_one_session_share_it_and_the_next_session_is_new(tmp_path: Path) -> None:
    first = Owner(tmp_path, "a")
    second = Owner(tmp_path, "a")
    assert (first.new_session, second.new_session) == (True, False)
    first.close()
    with pytest.raises(RunBusyError):
        Owner(tmp_path, "b")
    second.close()
    again = Owner(tmp_path, "a")  # the successor of a worker that crashed
    assert not again.new_session
    again.close()
    other = Owner(tmp_path, "b")
    assert other.new_session
    other.close()
    other.close()


def join(number: int, barrier: Any, folder: Path, sessions: int) -> str:
    """Join a session at the same moment as others; hold it until all have tried."""
    barrier.wait(60)
    try:
        owner = Owner(folder, str(number % sessions))
    except RunBusyError:
        barrier.wait(60)
        return "refused"
    barrier.wait(60)
    owner.close()
    return str(number % sessions)


@pytest.mark.parametrize("attempt", range(3))
def test_workers_that_start_together_all_join_and_of_two_sessions_one_does(tmp_path: Path, attempt: int) -> None:
    assert together(4, join, tmp_path, 1) == ["0"] * 4
    assert len(set(together(4, join, tmp_path, 2)) - {"refused"}) <= 1


def test_a_copied_run_carries_no_locks_along(tmp_path: Path, somebody: Any) -> None:
    copy = tmp_path.parent / "copy"
    shutil.copytree(tmp_path, copy)
    owner = Owner(copy, "mine")
    assert owner.dead(somebody.name)
    owner.close()


def test_what_a_dead_process_left_is_charged_and_its_holds_are_released(tmp_path: Path) -> None:
    together(2, reserve_and_vanish, tmp_path, 700, Limits(total=10_000))
    calls = Calls(tmp_path, Limits(total=10_000), "the next one")
    balance = calls.ledger.balance()
    assert (balance.orphaned, balance.reserved, balance.held, balance.calls) == (1400, 0, 0, 2)
    calls.close()
