"""A process that dies between any two steps of a batch, or an exchange that fails: nothing is paid twice or lost."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress

import httpx2
import pytest

from pytest_fusion_audit.metering import batch_steps
from pytest_fusion_audit.metering.batches import Batches
from pytest_fusion_audit.metering.ledger import CostLimitExceeded
from pytest_fusion_audit.metering.wire.base import request_facts
from tests.metering.batch_runs import Killed, ManualClock, Session, most_committed, request_for
from tests.metering.servers import BatchScript, running_server, server_process

CAP = 1_000_000
NAMES = ["t0", "t1", "t2"]


@pytest.fixture
def never_cleans_up(monkeypatch):
    """A killed process leaves its batches as they are."""
    let_go = Batches._let_go

    def leave(self, job):
        if not isinstance(sys.exc_info()[1], Killed):
            let_go(self, job)

    monkeypatch.setattr(Batches, "_let_go", leave)


def session_on(folder, server, dialect, *, clock=None, cap=CAP):
    return Session(folder / "calls", server, dialect, clock or ManualClock(), cap)


def requests_of(session):
    return [session.request(name) for name in NAMES]


def finish(folder, server, dialect, clock=None):
    """Resume until nothing is open; everything is stored, billed once, and nothing is left anywhere."""
    session = session_on(folder, server, dialect, clock=clock)
    try:
        report = asyncio.run(session.batches.run(requests_of(session)))
        assert report.with_status("stored") == NAMES
        assert session.money()[1:] == (0, 0)
        assert list(session.calls.batches.unfinished()) == []
        assert most_committed(session.rows()) <= CAP
        return session.money()[0]
    finally:
        session.kill()


def assert_billed_once(server, spent):
    billed = server.billed()
    assert Counter(row["prompt"].split()[1] for row in billed) == dict.fromkeys(NAMES, 1)
    assert spent > 0


class KillAt:
    """Kills before or after the n-th time something happens."""

    def __init__(self, number, *, after):
        self.left, self.after, self.struck = number, after, False

    def passes(self, *, after):
        if after is not self.after or self.struck:
            return
        self.left -= 1
        if self.left < 0:
            self.struck = True
            raise Killed


@pytest.mark.usefixtures("never_cleans_up")
@pytest.mark.parametrize("dialect", ["openai.chat", "anthropic.messages"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", range(9))
def test_killed_around_an_exchange(tmp_path, dialect, after, step):
    with running_server(state=tmp_path / "state") as server:
        session = session_on(tmp_path, server, dialect)
        kill = KillAt(step, after=after)

        def before(request):
            kill.passes(after=False)

        def afterwards(request, response):
            kill.passes(after=True)
            return response

        session.wires.before, session.wires.after = before, afterwards
        with suppress(Killed):
            asyncio.run(session.batches.run(requests_of(session)))
        session.kill()
        assert_billed_once(server, finish(tmp_path, server, dialect))
        assert server.batches.files == {}


@pytest.mark.usefixtures("never_cleans_up")
@pytest.mark.parametrize("dialect", ["openai.chat", "anthropic.messages"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", range(7))
def test_killed_around_a_write_to_the_journal(tmp_path, monkeypatch, dialect, after, step):
    with running_server(state=tmp_path / "state") as server:
        session = session_on(tmp_path, server, dialect)
        kill = KillAt(step, after=after)
        append = session.calls.journal.append

        def killing(rows):
            kill.passes(after=False)
            end = append(rows)
            kill.passes(after=True)
            return end

        monkeypatch.setattr(session.calls.journal, "append", killing)
        with suppress(Killed):
            asyncio.run(session.batches.run(requests_of(session)))
        session.kill()
        assert_billed_once(server, finish(tmp_path, server, dialect))
        assert server.batches.files == {}


@pytest.mark.usefixtures("never_cleans_up")
@pytest.mark.parametrize("keep", [0.2, 0.5, 0.9])
def test_killed_in_the_middle_of_reserving(tmp_path, keep):
    with running_server() as server:
        session = session_on(tmp_path, server, "openai.chat")
        append = session.calls.journal.append

        def torn(rows):
            before = session.calls.journal.path.stat().st_size
            append(rows)
            size = session.calls.journal.path.stat().st_size
            os.truncate(session.calls.journal.path, before + int((size - before) * keep))
            raise Killed

        session.calls.journal.append = torn
        with pytest.raises(Killed):
            asyncio.run(session.batches.run(requests_of(session)))
        session.kill()
        assert_billed_once(server, finish(tmp_path, server, "openai.chat"))


@pytest.mark.usefixtures("never_cleans_up")
@pytest.mark.parametrize("dialect", ["openai.chat", "anthropic.messages"])
def test_a_batch_of_unknown_id_is_found_among_others(tmp_path, dialect):
    """Other batches of the same size lie there, some on their way; none of them is ours."""
    with running_server() as server:
        for name in ("other", "another"):
            session = session_on(tmp_path / name, server, dialect)
            server.batches.script.polls = 500 if name == "another" else 0
            asked = [session.request(f"{name}-{number}") for number in range(3)]
            asyncio.run(session.batches.run(asked, patience_s=30))
            session.kill()
        server.batches.script.polls = 1
        session = session_on(tmp_path, server, dialect)

        def die_when_made(request, response):
            if request.method == "POST" and request.url.path.endswith("/batches"):
                raise Killed
            return response

        session.wires.after = die_when_made
        with pytest.raises(Killed):
            asyncio.run(session.batches.run(requests_of(session)))
        session.kill()
        before = len(server.batches.batches)
        spent = finish(tmp_path, server, dialect)
        assert spent > 0
        assert len(server.batches.batches) <= before, "no further batch was asked for"
        names = Counter(row["prompt"].split()[1] for row in server.billed())
        assert all(names[name] == 1 for name in NAMES)


@pytest.mark.usefixtures("never_cleans_up")
@pytest.mark.parametrize("dialect", ["openai.chat", "anthropic.messages"])
def test_a_list_that_lags_does_not_make_a_second_batch(tmp_path, dialect):
    with running_server() as server:
        session = session_on(tmp_path, server, dialect)

        def die_when_made(request, response):
            if request.method == "POST" and request.url.path.endswith("/batches"):
                raise Killed
            return response

        session.wires.after = die_when_made
        with pytest.raises(Killed):
            asyncio.run(session.batches.run(requests_of(session)))
        session.kill()
        later = session_on(tmp_path, server, dialect)
        looks = []

        def lagging(request, response):
            if request.method == "GET" and request.url.path.endswith("/batches"):
                looks.append(later.clock.now())
                if len(looks) == 1:
                    return httpx2.Response(200, json={"data": [], "has_more": False}, request=request)
            return response

        later.wires.after = lagging
        report = asyncio.run(later.batches.run(requests_of(later)))
        assert report.with_status("stored") == NAMES
        later.kill()
        assert len(looks) > 1
        assert_billed_once(server, 1)


@pytest.mark.parametrize("dialect", ["openai.chat", "anthropic.messages"])
@pytest.mark.parametrize("fault", ["lost_answer", "connect", 429, 500])
def test_an_exchange_that_fails_is_repeated_later(tmp_path, dialect, fault):
    """Every exchange fails the first time; an answer that is lost may have done its work."""
    with running_server() as server:
        session = session_on(tmp_path, server, dialect)
        failed = set()

        def fails(request):
            key = (request.method, request.url.path)
            if key in failed or fault == "lost_answer":
                return None
            failed.add(key)
            if fault == "connect":
                raise httpx2.ConnectError("no route")
            return httpx2.Response(fault, json={"error": {"code": "slow_down"}}, request=request)

        def loses(request, response):
            key = (request.method, request.url.path)
            if fault == "lost_answer" and key not in failed:
                failed.add(key)
                raise httpx2.ReadTimeout("gone")
            return response

        session.wires.before, session.wires.after = fails, loses
        report = asyncio.run(session.batches.run(requests_of(session)))
        assert report.with_status("stored") == NAMES
        session.kill()
        assert failed
        assert_billed_once(server, finish(tmp_path, server, dialect))
        assert server.batches.files == {}


def test_a_results_file_cut_on_its_way_is_read_again(tmp_path):
    with running_server() as server:
        session = session_on(tmp_path, server, "openai.chat")
        cut = []

        def cuts(request, response):
            if request.url.path.endswith("/content") and not cut:
                cut.append(1)
                return httpx2.Response(200, content=response.content[:-50], request=request)
            return response

        session.wires.after = cuts
        report = asyncio.run(session.batches.run(requests_of(session)))
        assert report.with_status("stored") == NAMES
        assert session.money()[1:] == (0, 0)
        session.kill()


def test_an_answer_that_the_results_leave_out_stays_charged(tmp_path):
    """The provider says that it answered three, and gives two: the third may have been billed."""
    with running_server() as server:
        session = session_on(tmp_path, server, "openai.chat")

        def drops(request, response):
            if request.url.path.endswith("/content"):
                lines = response.content.splitlines(keepends=True)
                return httpx2.Response(200, content=b"".join(lines[:2]), request=request)
            return response

        session.wires.after = drops
        report = asyncio.run(session.batches.run(requests_of(session)))
        assert len(report.with_status("stored")) == 2
        assert len(report.with_status("not_run")) == 1
        (orphan,) = session.rows("orphan")
        reserved = next(row["reserved"] for row in session.rows("reserve") if row["id"] == orphan["id"])
        assert session.money()[1:] == (0, reserved)
        session.kill()


@pytest.mark.parametrize("dialect", ["openai.chat", "anthropic.messages"])
def test_a_batch_that_the_provider_no_longer_knows_stays_charged(tmp_path, dialect):
    with running_server() as server:
        server.batches.script.polls = 500
        session = session_on(tmp_path, server, dialect)
        asyncio.run(session.batches.run(requests_of(session), patience_s=0))
        server.batches.batches.clear()
        report = asyncio.run(session.batches.run(requests_of(session)))
        assert report.with_status("not_run") == NAMES
        assert session.money()[2] == sum(row["reserved"] for row in session.rows("reserve")) > 0
        session.kill()


@pytest.mark.usefixtures("never_cleans_up")
def test_what_cannot_be_found_after_weeks_stays_charged_and_is_not_sent_again(tmp_path):
    with running_server() as server:
        session = session_on(tmp_path, server, "anthropic.messages")

        def die(request):
            if request.method == "POST":
                raise Killed

        session.wires.before = die
        with pytest.raises(Killed):
            asyncio.run(session.batches.run(requests_of(session)))
        session.kill()
        late = ManualClock(ManualClock().now() + batch_steps.KEPT_S + 1)
        later = session_on(tmp_path, server, "anthropic.messages", clock=late)
        asyncio.run(later.batches.collect())
        assert later.money()[2] > 0
        assert server.batches.batches == {}
        later.kill()


@pytest.mark.usefixtures("never_cleans_up")
def test_nobody_waits_for_a_batch_that_nobody_looks_after(tmp_path):
    with running_server() as server:
        server.batches.script.polls = 500
        session = session_on(tmp_path, server, "openai.chat")

        def die(request, response):
            raise Killed

        session.wires.after = die
        with pytest.raises(Killed):
            asyncio.run(session.batches.run(requests_of(session)))
        reserved = session.money()[1]
        session.kill()
        later = session_on(tmp_path, server, "openai.chat", cap=reserved + 1)
        assert later.money() == (0, reserved, 0)
        with pytest.raises(CostLimitExceeded):
            asyncio.run(asyncio.wait_for(later.ask(later.request("t9")), 20))
        later.kill()


def test_a_call_waits_for_a_batch_that_is_looked_after(tmp_path):
    with running_server() as server:
        session = session_on(tmp_path, server, "openai.chat")
        asked = requests_of(session)
        full = session.transport.pricing.worst_case_of("127.0.0.1", facts_of(asked[0]))
        session.kill()
        session = session_on(tmp_path, server, "openai.chat", cap=full + full // 2)

        async def both():
            reserved = asyncio.Event()
            session.wires.before = lambda _: reserved.set()
            batch = asyncio.create_task(session.batches.run(asked))
            await reserved.wait()
            return await asyncio.gather(batch, session.ask(session.request("t9")))

        report, answer = asyncio.run(both())
        assert report.with_status("stored") == NAMES
        assert answer["choices"]
        session.kill()


def facts_of(request):
    return request_facts("POST", request.url, request.body)


def test_a_server_that_restarts_with_its_state_loses_nothing(tmp_path):
    state, bill = tmp_path / "state", tmp_path / "bill.jsonl"
    with server_process(bill, state=state) as server:
        server.batch_script(BatchScript(polls=2))
        session = session_on(tmp_path, server, "openai.chat")
        asked = requests_of(session)
        asyncio.run(session.batches.run(asked, patience_s=0))
        session.kill()
        port = int(server.url.rsplit(":", 1)[1])
    with server_process(bill, state=state, port=port) as server:
        assert_billed_once(server, finish(tmp_path, server, "openai.chat"))


CHILD = """
import asyncio, sys
from pathlib import Path
from tests.metering.batch_runs import Session, request_for

class Server:
    url = sys.argv[2]

class Clock:
    def now(self):
        return 1_796_040_000.0
    async def sleep(self, seconds):
        await asyncio.sleep(0.01)

session = Session(Path(sys.argv[1]), Server, sys.argv[3], Clock(), 1_000_000)
asyncio.run(session.batches.run([session.request(name) for name in ("t0", "t1", "t2")]))
"""


@pytest.mark.parametrize("dialect", ["openai.chat", "anthropic.messages"])
def test_a_killed_process_is_taken_over_by_the_next(tmp_path, dialect):
    """SIGKILL, for real, while the batch is on its way."""
    with server_process(tmp_path / "bill.jsonl") as server:
        server.batch_script(BatchScript(polls=1_000_000))
        journal = tmp_path / "calls" / "journal.jsonl"
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path / "calls"), server.url, dialect])
        while not (journal.exists() and b'"submitted"' in journal.read_bytes()):
            assert child.poll() is None
            time.sleep(0.02)
        child.send_signal(signal.SIGKILL)
        child.wait()
        server.batch_script(BatchScript(polls=1))
        assert_billed_once(server, finish(tmp_path, server, dialect))


@pytest.mark.deep
@pytest.mark.parametrize("dialect", ["openai.chat", "anthropic.messages"])
def test_killed_at_any_moment_again_and_again(tmp_path, dialect):
    with server_process(tmp_path / "bill.jsonl", state=tmp_path / "state") as server:
        server.batch_script(BatchScript(polls=3))
        for moment in range(25):
            command = [sys.executable, "-c", CHILD, str(tmp_path / "calls"), server.url, dialect]
            child = subprocess.Popen(command)
            time.sleep(0.4 + moment * 0.03)
            child.send_signal(signal.SIGKILL)
            child.wait()
        assert_billed_once(server, finish(tmp_path, server, dialect))


def test_requests_of_two_processes_have_the_same_key():
    assert request_for("http://127.0.0.1:1", "openai.chat", "t0") == request_for(
        "http://127.0.0.1:1", "openai.chat", "t0"
    )
