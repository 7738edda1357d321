"""A client process killed at every step, against a server process that keeps its own bill.

After each kill the run is resumed. No answer that was stored is ever billed again, and the ledger differs from the
server's bill only by orphans that it lists.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_fusion_audit.metering.calls import Calls
from pytest_fusion_audit.metering.ledger import Limits
from tests.metering.doors import journal_rows
from tests.metering.kill_driver import Clients, Work
from tests.metering.servers import ServerProcess, server_process
from tests.shared_data import shared

if TYPE_CHECKING:
    from pathlib import Path

#: Plain answers, streams, answers that come after a 429, and a question that is asked twice and answered twice.
PROMPTS = ("one", "two~", "three [[script:rate_limit*1]]", "four", "five~", "four", "six [[script:rate_limit*2]] ~")
NO_LIMITS = Limits(total=10**12)
SEQUENTIAL = Work(prompts=PROMPTS)
CONCURRENT = Work(prompts=PROMPTS, at_once=3)


class Setting(NamedTuple):
    """A server that bills, and clients to be killed."""

    server: ServerProcess
    clients: Clients


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory):
    with server_process(tmp_path_factory.mktemp("server") / "bill.jsonl") as running:
        clients = Clients()
        yield Setting(running, clients)
        clients.close()


class Run:
    """One run directory and what the server has billed for it."""

    def __init__(self, folder: Path, setting: Setting, work: Work) -> None:
        self.folder, (self.server, self.clients) = folder, setting
        self.sessions = 0
        # Prompts are made unique, so that one server can bill many runs apart.
        self._mark = f"run {folder.parent.name}/{folder.name} "
        self.work = Work(
            prompts=tuple(self._mark + prompt for prompt in work.prompts),
            at_once=work.at_once,
            worst=work.worst,
            actual=work.actual,
            bank=work.bank,
        )

    def session(self, fatal: int | str | None = None) -> int | None:
        """One session of this run, killed at a point or not."""
        self.start(fatal)
        return self.clients.ended()

    def start(self, fatal: int | str | None = None) -> int:
        """Start a session; returns its process id."""
        self.sessions += 1
        return self.clients.start(self.folder, self.server.url, self.work, f"session {self.sessions}", fatal)

    def billed(self) -> list[dict[str, Any]]:
        return [row for row in self.server.billed() if row["prompt"].startswith(self._mark)]

    def stored(self) -> Counter[str]:
        """Prompts whose answer is stored, as often as it is."""
        if not (self.folder / "journal.jsonl").exists():
            return Counter()
        reader = Calls.reading(self.folder)
        rows = journal_rows(self.folder)
        prompts = {row["id"]: self._prompt(reader, row) for row in rows if row["e"] == "reserve"}
        for row in rows:
            if "answer" in row:
                assert reader.bodies.get(row["answer"])  # whatever the journal names can be read
        reader.close()
        return Counter(prompts[row["id"]] for row in rows if row["e"] == "settle" and "answer" in row)

    @staticmethod
    def _prompt(reader: Calls, row: dict[str, Any]) -> str:
        return json.loads(reader.bodies.get(row["request"]))["messages"][-1]["content"]

    def asked_again_only_what_was_not_stored(self, stored: Counter[str], billed_before: Counter[str]) -> None:
        """After a resume: each prompt was billed once for every answer that was missing, and no more."""
        bought = Counter(row["prompt"] for row in self.billed()) - billed_before
        wanted = Counter(self.work.prompts)
        assert bought == wanted - stored

    def ledger_equals_the_bill_but_for_listed_orphans(self) -> None:
        calls = Calls(self.folder, NO_LIMITS, "looking")
        account, orphans = calls.ledger.balance(), dict(calls.balances.orphans)
        rows = journal_rows(self.folder)
        prompts = {row["id"]: self._prompt(calls, row) for row in rows if row["e"] == "reserve"}
        cost = {row["prompt"]: self._cost(row) for row in self.billed()}
        settled = Counter(prompts[row["id"]] for row in rows if row["e"] == "settle" and row["charged"])
        billed = Counter(row["prompt"] for row in self.billed())
        lost = billed - settled
        assert not settled - billed, "charged for what was never billed"
        assert not lost - Counter(prompts[call] for call in orphans), "billed and in no list"
        assert account.settled == sum(cost[prompt] * times for prompt, times in settled.items())
        assert (account.estimated, account.reserved, account.held) == (0, 0, 0)
        assert account.committed >= sum(self._cost(row) for row in self.billed())
        assert account.orphaned == sum(orphan.amount for orphan in orphans.values())
        calls.close()

    def _cost(self, row: dict[str, Any]) -> int:
        if self.work.actual is not None:
            return self.work.actual
        return int(row["usage"]["prompt_tokens"] + 10 * row["usage"]["completion_tokens"])


def check_kill(folder: Path, setting: Setting, work: Work, *fatal: int | str) -> list[bool]:
    """Kill a run at these points, one session after the other, then resume it; whether each session was killed."""
    run = Run(folder, setting, work)
    killed = []
    for point in fatal:
        stored, before = run.stored(), Counter(row["prompt"] for row in run.billed())
        killed.append(run.session(point) is None)
        again = Counter(row["prompt"] for row in run.billed()) - before
        # An answer that was stored is not billed again, in a session that is killed itself neither.
        assert not again - (Counter(run.work.prompts) - stored)
    stored, before = run.stored(), Counter(row["prompt"] for row in run.billed())
    assert run.session() is not None
    run.asked_again_only_what_was_not_stored(stored, before)
    run.ledger_equals_the_bill_but_for_listed_orphans()
    assert run.stored() == Counter(run.work.prompts)
    sent = len(run.billed())
    assert run.session() is not None
    assert len(run.billed()) == sent  # a second resume sends nothing
    shutil.rmtree(folder)
    return killed


def points_of(folder: Path, setting: Setting, work: Work) -> int:
    """How many points a run that nobody kills reaches."""
    run = Run(folder, setting, work)
    count = run.session()
    assert count is not None
    run.ledger_equals_the_bill_but_for_listed_orphans()
    return count


@pytest.mark.parametrize("work", [SEQUENTIAL, CONCURRENT], ids=["one at a time", "three at once"])
def test_a_dozen_kills(tmp_path: Path, setting: Setting, work: Work) -> None:
    last = points_of(tmp_path / "whole", setting, work)
    for number in range(6):
        point = 1 + number * (last - 1) // 6 + number  # not always the same kind of step
        assert check_kill(tmp_path / str(point), setting, work, point) == [True]


@pytest.mark.deep
@pytest.mark.parametrize("work", [SEQUENTIAL, CONCURRENT], ids=["one at a time", "three at once"])
def test_a_kill_at_every_step(tmp_path: Path, setting: Setting, work: Work) -> None:
    last = points_of(tmp_path / "whole", setting, work)
    killed = [check_kill(tmp_path / str(point), setting, work, point) for point in range(1, last + 1)]
    # A few of the last points are not reached when syncs of several calls fall together.
    assert sum(each == [True] for each in killed) >= max(200, last * 9 // 10)


@pytest.mark.deep
def test_a_resume_that_is_killed_too(tmp_path: Path, setting: Setting) -> None:
    last = points_of(tmp_path / "whole", setting, SEQUENTIAL)
    for first in range(7, last, 23):
        for second in (5, 40, 90):
            check_kill(tmp_path / f"{first}-{second}", setting, CONCURRENT, first, second, second // 2)


@pytest.mark.parametrize("point", ["K1", "K2", "K3", "K4 before", "K4 after"])
def test_case_9(tmp_path: Path, setting: Setting, point: str) -> None:
    found = json.loads(shared("cases/09-kill-between-answer-and-save.json").read_text(encoding="utf-8"))
    given, expected = found["input"], found["expected"]
    name = point.partition(" ")[0]
    slow = ' [[script:{"latency_s": 60}*1]]'
    prompts = tuple(
        call["call_id"] + (slow if point == "K1" and call["call_id"] == "p-2" else "") for call in given["calls"]
    )
    usd = {"worst": given["reserve_usd_each"], "actual": given["calls"][0]["usd"]}
    work = Work(prompts=prompts, bank=True, **{key: int(Decimal(value) * 10**6) for key, value in usd.items()})
    run = Run(tmp_path / "calls", setting, work)
    if point == "K1":
        client = run.start()
        while len(run.billed()) < 2:  # its request has arrived, its answer will take a minute
            time.sleep(0.005)
        os.kill(client, signal.SIGKILL)
        assert run.clients.ended() is None
    else:
        # A head and a body that leave in one send arrive in one.
        at = {"K2": "after recv 2", "K3": "done 2", "K4 before": "before replace 1", "K4 after": "after replace 1"}
        assert run.session(at[point]) is None
    bank = run.folder / "bank.json"
    assert bank.exists() == (point == "K4 after")
    calls = Calls(run.folder, NO_LIMITS, "looking")
    assert calls.ledger.balance().committed == int(Decimal(expected["committed_usd_right_after_kill"][name]) * 10**6)
    calls.close()
    before = len(run.billed())
    assert run.session() is not None
    sent = [row["prompt"] for row in run.billed()[before:]]
    assert [prompt.rpartition("p-")[2][0] for prompt in (text.partition(" [[")[0] for text in sent)] == [
        call.removeprefix("p-") for call in expected["resume_sends"][name]
    ]
    calls = Calls(run.folder, NO_LIMITS, "looking")
    final = int(Decimal(expected["final_committed_usd_after_resume"][name]) * 10**6)
    assert calls.ledger.balance().committed == final
    calls.close()
    assert eval(bank.read_bytes()[: len(bank.read_bytes()) // 50])
