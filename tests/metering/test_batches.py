"""Batches against a real loopback server: what is stored, what it costs, what goes back to the queue."""

from __future__ import annotations

import asyncio

import httpx2
import pytest

from pytest_fusion_audit.metering.batch_requests import wanted_calls
from pytest_fusion_audit.metering.batch_wire import BatchAccessError, BatchError
from pytest_fusion_audit.metering.batches import poll_interval_s
from pytest_fusion_audit.metering.hosts import UnlistedHostError
from pytest_fusion_audit.metering.ledger import RunStoppedError
from pytest_fusion_audit.metering.prices import PriceBook
from pytest_fusion_audit.metering.pricing import DoorPricing
from tests.metering.batch_runs import MAKERS, ManualClock, Session, most_committed, text_in
from tests.metering.doors import Placeholder
from tests.metering.planted_keys import OPENAI, leaks
from tests.metering.servers import BatchScript, running_server

DOLLAR = 1_000_000


@pytest.fixture
def server():
    with running_server() as server:
        yield server


@pytest.fixture
def opened(tmp_path, server):
    made = []

    def open_(dialect="openai.chat", *, cap=DOLLAR, clock=None, **options):
        made.append(Session(tmp_path / "calls", server, dialect, clock or ManualClock(), cap, **options))
        return made[-1]

    yield open_
    for session in made:
        session.kill()


def run(session, requests, **options):
    return asyncio.run(session.batches.run(requests, **options))


@pytest.mark.parametrize("dialect", MAKERS)
def test_an_answer_of_a_batch_is_given_like_one_that_was_bought_by_itself(opened, server, dialect):
    session = opened(dialect)
    server.batches.script = BatchScript(polls=2, reverse=True)
    asked = [session.request(f"t{number}") for number in range(5)]
    report = run(session, asked)
    assert report.with_status("stored") == [f"t{number}" for number in range(5)]
    billed = server.billed()
    assert len(billed) == 5
    assert all(row["batch"] for row in billed)
    prompts = {row["prompt"].split()[1]: f"answer {row['n']}" for row in billed}
    for request in asked:
        body = asyncio.run(session.ask(request))
        assert text_in(dialect, body) == prompts[request.custom_id]
    assert len(server.billed()) == 5, "the store gave every answer"


@pytest.mark.parametrize("dialect", MAKERS)
def test_half_price_once_because_it_was_sent_in_a_batch(opened, dialect):
    session = opened(dialect)
    alone = session.request("alone")
    asyncio.run(session.ask(alone))
    (full,) = [row["charged"] for row in session.rows("settle")]
    run(session, [session.request("batch")])  # a prompt of the same length
    charged = session.rows("settle")[-1]["charged"]
    assert charged == (full + 1) // 2
    assert session.money()[1:] == (0, 0)


def test_reading_again_adds_nothing(opened, server):
    session = opened()
    asked = [session.request(f"t{number}") for number in range(3)]
    run(session, asked)
    before, money = len(session.rows()), session.money()
    session.kill()
    again = opened()
    assert run(again, asked).with_status("stored") == ["t0", "t1", "t2"]
    asyncio.run(again.batches.collect())
    assert (len(again.rows()), again.money()) == (before, money)
    assert len(server.batches.batches) == 1
    assert again.wires.sent == []


def test_what_is_stored_already_is_not_sent(opened, server):
    session = opened()
    asyncio.run(session.ask(session.request("t0")))
    session.kill()
    again = opened()
    report = run(again, [again.request("t0"), again.request("t1")])
    assert report.with_status("stored") == ["t0", "t1"]
    assert [row["batch"] for row in server.billed()] == [False, True]


@pytest.mark.parametrize("dialect", MAKERS)
def test_a_row_that_failed_goes_back_to_the_queue_and_costs_nothing(opened, server, dialect):
    session = opened(dialect)
    asked = [session.request("t0"), session.request("t1", "[[script:batch_error*1]]"), session.request("t2")]
    report = run(session, asked)
    assert report.with_status("stored") == ["t0", "t1", "t2"]
    assert len(server.billed()) == 3
    settled = session.rows("settle")
    assert sorted(row["charged"] > 0 for row in settled) == [False, True, True, True]
    assert session.money()[1:] == (0, 0)


@pytest.mark.parametrize("dialect", MAKERS)
@pytest.mark.parametrize("marker", ["batch_expired", "batch_error", "rate_limit"])
def test_a_row_that_never_runs_is_not_run_and_never_wrong(opened, dialect, marker):
    session = opened(dialect)
    report = run(session, [session.request("t0"), session.request("t1", f"[[script:{marker}]]")])
    assert report.outcomes["t0"].status == "stored"
    assert report.outcomes["t1"].status == "not_run"
    assert report.outcomes["t1"].reason
    failed = [row for row in session.rows("settle") if "answer" not in row]
    assert [row["charged"] for row in failed] == [0, 0], "two batches were tried"
    assert session.money()[1:] == (0, 0)


@pytest.mark.parametrize("dialect", MAKERS)
def test_what_no_attempt_would_change_is_not_tried_again(opened, server, dialect):
    session = opened(dialect)
    report = run(session, [session.request("t0", "[[script:unsupported_parameter]]")])
    assert report.outcomes["t0"].status == "not_run"
    assert len(session.rows("reserve")) == 1
    assert len(server.billed()) == 0


@pytest.mark.parametrize("dialect", MAKERS)
def test_of_an_expired_batch_the_answered_rows_count_and_the_others_are_asked_again(opened, server, dialect):
    session = opened(dialect)
    server.batches.script = BatchScript(outcome="half_expired")
    asked = [session.request(f"t{number}") for number in range(4)]
    report = run(session, asked)
    # half of four, then half of the two that were left
    assert len(report.with_status("stored")) == 3
    assert len(report.with_status("not_run")) == 1
    assert len(server.billed()) == 3
    assert session.money()[1:] == (0, 0)


def test_a_batch_whose_input_is_refused_costs_nothing(opened, server):
    session = opened()
    server.batches.script = BatchScript(outcome="failed")
    report = run(session, [session.request("t0")])
    assert report.outcomes["t0"].reason == "invalid_json_line"
    assert session.money() == (0, 0, 0)
    assert server.batches.files == {}


def test_everything_that_lay_with_the_provider_is_deleted(opened, server):
    session = opened()
    run(session, [session.request("t0"), session.request("t1", "[[script:batch_error]]")])
    assert server.batches.files == {}
    session.kill()
    session = opened("anthropic.messages")
    run(session, [session.request("t0")])
    assert [name for name in server.batches.batches if name.startswith("msgbatch")] == []


def test_chunks_are_reserved_whole_and_never_pass_the_cap(opened, server):
    session = opened()
    asked = [session.request(f"t{number:02}") for number in range(12)]
    worst = max(session.transport.pricing.worst_case_of("127.0.0.1", each.facts, batch=True) for each in wanted(asked))
    session.kill()
    cap = worst * 5
    session = opened(cap=cap)
    report = run(session, asked)
    assert report.refusal is None
    assert len(report.with_status("stored")) == 12
    assert most_committed(session.rows()) <= cap
    sizes = [row["rows"] for row in session.rows("batch") if row.get("rows")]
    assert sizes[0] == 5
    assert len(sizes) > 1
    assert sum(sizes) == 12
    # the reservations of a batch and the batch itself stand in one piece of the journal
    events = [row["e"] for row in session.rows() if "e" in row]
    assert events[:6] == ["batch"] + ["reserve"] * 5


def wanted(asked):
    return wanted_calls(asked, DoorPricing(PriceBook(), lambda _: "openai"))


def test_what_does_not_fit_is_reported_and_was_not_sent(opened, server):
    session = opened()
    asked = [session.request(f"t{number}") for number in range(4)]
    worst = max(each.amount for each in wanted(asked))
    session.kill()
    session = opened(cap=worst + 10)
    report = run(session, asked)
    assert 0 < len(report.with_status("stored")) < 4
    assert len(report.with_status("stored")) + len(report.with_status("no_budget")) == 4
    assert report.refusal is not None
    assert report.refusal.limit == "the cap of the run"
    assert len(server.billed()) == len(report.with_status("stored"))
    # in the order in which they were asked for
    assert report.with_status("stored") == [f"t{n}" for n in range(len(report.with_status("stored")))]


def test_a_phase_of_its_own_cap_is_bound_by_it(opened, server):
    session = opened(phases={"3": 10})
    report = run(session, [session.request("t0")])
    assert report.outcomes["t0"].status == "no_budget"
    assert report.refusal is not None
    assert report.refusal.limit == "the cap of phase 3"
    assert session.wires.sent == []


def test_patience_ends_and_another_session_goes_on_days_later(opened, server):
    server.batches.script = BatchScript(polls=40)
    session = opened()
    asked = [session.request("t0"), session.request("t1")]
    report = run(session, asked, patience_s=100)
    assert report.with_status("pending") == ["t0", "t1"]
    spent, reserved, orphaned = session.money()
    assert (spent, orphaned) == (0, 0)
    assert reserved > 0
    session.kill()
    later = opened(clock=ManualClock(ManualClock().now() + 3 * 86_400))
    assert later.money() == (0, reserved, 0), "its answers can be had: no orphan"
    server.batches.script.polls = 1
    assert run(later, asked).with_status("stored") == ["t0", "t1"]
    assert len(server.billed()) == 2
    assert later.money()[1:] == (0, 0)


async def begun(server):
    """Wait until the provider has a batch."""
    for _ in range(60_000):
        if server.batches.batches:
            return
        await asyncio.sleep(0.001)
    raise AssertionError("no batch was asked for")


def test_runs_at_once_share_no_answer_and_do_not_wait_for_each_other(opened, server):
    server.batches.script = BatchScript(polls=100)
    session = opened()

    async def both():
        slow = asyncio.create_task(session.batches.run([session.request("t0")]))
        await begun(server)
        server.batches.script = BatchScript(polls=0)
        server.batches.batches["batch_1"]["looks"] = -10
        quick = await session.batches.run([session.request("t0"), session.request("t1")])
        assert not slow.done()
        return quick, await slow

    quick, slow = asyncio.run(both())
    assert quick.with_status("stored") == ["t0", "t1"]
    assert slow.with_status("stored") == ["t0"]
    assert len(server.billed()) == 3, "the same request twice at once is two draws"
    assert session.money()[1:] == (0, 0)
    assert list(session.calls.batches.unfinished()) == []


def test_a_run_that_was_called_off_sends_nothing_more(opened, server):
    server.batches.script = BatchScript(polls=100)
    session = opened()
    request = session.request("t0")
    job = session.batches.accept(wanted([request]))
    job.cancel()
    report = asyncio.run(session.batches.finish(job))
    assert (report.outcomes["t0"].status, report.outcomes["t0"].reason) == ("not_run", "cancelled")
    assert session.wires.sent == []

    async def called_off_on_its_way():
        job = session.batches.accept(wanted([request]))
        running = asyncio.create_task(session.batches.finish(job))
        await begun(server)
        job.cancel()
        return await running

    assert asyncio.run(called_off_on_its_way()).outcomes["t0"].status == "not_run"
    assert [what for what in session.wires.sent if what.endswith("/cancel")] == ["POST /v1/batches/batch_1/cancel"]
    assert session.money() == (0, 0, 0)
    assert server.billed() == []


def test_collecting_needs_no_requests(opened, server):
    server.batches.script = BatchScript(polls=40)
    session = opened()
    asked = [session.request("t0")]
    run(session, asked, patience_s=0)
    session.kill()
    later = opened()
    server.batches.script.polls = 1
    asyncio.run(later.batches.collect())
    assert text_in("openai.chat", asyncio.run(later.ask(asked[0]))) == "answer 1"
    assert len(server.billed()) == 1


def test_two_models_go_in_two_batches(opened, server):
    session = opened()
    report = run(session, [session.request("t0"), session.request("t1", model="gpt-5.4"), session.request("t2")])
    assert len(report.with_status("stored")) == 3
    assert sorted(row["rows"] for row in session.rows("batch") if "rows" in row) == [1, 2]


def test_usage_that_is_missing_keeps_the_reservation_charged(opened):
    session = opened()
    report = run(session, [session.request("t0", '[[script:{"kind": "answer", "usage": "null"}]]')])
    assert report.with_status("stored") == ["t0"]
    (settled,) = session.rows("settle")
    (reserved,) = session.rows("reserve")
    assert settled["charged"] == reserved["reserved"]
    assert settled["estimated"]
    assert settled["flags"] == ["usage_unknown"]


def test_another_model_without_a_price_stops_the_run(opened):
    session = opened()
    run(session, [session.request("t0", '[[script:{"kind": "answer", "model": "gpt-9-surprise"}]]')])
    with pytest.raises(RunStoppedError, match="gpt-9-surprise"):
        run(session, [session.request("t1")])


def test_an_empty_answer_is_an_answer(opened):
    session = opened()
    report = run(session, [session.request("t0", '[[script:{"kind": "answer", "text": ""}]]')])
    assert report.with_status("stored") == ["t0"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"stream": True}, "stream"),
        ({"service_tier": "flex"}, "flex"),
    ],
)
def test_what_no_batch_takes_is_refused_by_name(opened, server, change, words):
    session = opened()
    with pytest.raises(BatchError, match=f"t0.*{words}"):
        run(session, [session.request("t0", **change)])
    assert session.wires.sent == []
    assert session.rows("reserve") == []


def test_names_are_unique_and_phases_do_not_mix(opened):
    session = opened()
    one = session.request("t0")
    with pytest.raises(BatchError, match="custom_id"):
        run(session, [one, one])
    other = session.request("t1")
    object.__setattr__(other.scope, "phase", "4")
    with pytest.raises(BatchError, match="phases"):
        run(session, [one, other])


def test_an_unlisted_host_gets_no_request_and_no_reservation(opened):
    session = opened()
    request = session.request("t0")
    object.__setattr__(request, "url", "https://collector.example/v1/chat/completions")
    with pytest.raises(UnlistedHostError):
        run(session, [request])
    assert session.rows("reserve") == []


def test_a_replay_sends_nothing(opened, server):
    session = opened()
    run(session, [session.request("t0")])
    session.kill()
    session = opened()
    session.transport.mode = "replay"
    report = run(session, [session.request("t0"), session.request("t1")])
    assert [outcome.status for outcome in report.outcomes.values()] == ["stored", "not_run"]
    assert session.wires.sent == []


def test_a_refused_key_gives_the_money_back_and_stops(tmp_path):
    with running_server(keys=["sk-right"]) as server:
        session = Session(tmp_path / "calls", server, "openai.chat", ManualClock(), DOLLAR)
        with pytest.raises(BatchAccessError, match="401"):
            run(session, [session.request("t0")])
        assert session.money() == (0, 0, 0)
        session.kill()


def test_looks_become_rarer_with_age():
    ages = [0, 60, 600, 6_000, 60_000]
    intervals = [poll_interval_s(age) for age in ages]
    assert intervals == sorted(intervals)
    assert (intervals[0], intervals[-1]) == (15, 300)


def test_the_provider_never_sees_the_names_of_tasks_in_custom_ids(opened, server):
    session = opened()
    session.wires.before = lambda request: seen.append(request.content) or None
    seen: list[bytes] = []
    request = session.request("t0")
    object.__setattr__(request, "custom_id", "HumanEval/0|gpt|0")
    run(session, [request])
    assert seen
    assert not any(b"HumanEval/0" in content for content in seen)


class Keys(Placeholder):
    """Puts a real key on every request."""

    def authorise(self, request):
        request.headers["authorization"] = f"Bearer {OPENAI}"


def test_no_key_reaches_a_file_or_a_message(opened, server, tmp_path):
    session = opened(credentials=Keys())
    run(session, [session.request("t0")])
    assert {request.key for request in server.requests} == {OPENAI}
    said = {"error": {"code": OPENAI, "type": OPENAI, "message": f"wrong key {OPENAI}"}}
    session.wires.before = lambda request: httpx2.Response(401, json=said, request=request)
    with pytest.raises(BatchAccessError) as refused:
        run(session, [session.request("t1")])
    session.wires.before = lambda request: httpx2.Response(400, json=said, request=request)
    report = run(session, [session.request("t2")])
    assert report.outcomes["t2"].reason == "status_400"
    session.kill()
    assert leaks(tmp_path, outputs=(str(refused.value), repr(report))) == []
