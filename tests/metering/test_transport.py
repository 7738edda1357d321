"""The metered transport against a real loopback server: look up, reserve, send, settle, store, hand on."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from pytest_fusion_audit.errors import FusionAuditError
from pytest_fusion_audit.metering import settling
from pytest_fusion_audit.metering.calls import Calls, DiskFullError
from pytest_fusion_audit.metering.ledger import CostLimitExceeded, Limits, RunStoppedError
from pytest_fusion_audit.metering.scope import HEADER, Scope
from pytest_fusion_audit.metering.store import ReplayMissError
from pytest_fusion_audit.metering.wire.base import WireError
from tests.metering.doors import FlatPrices, chat, journal_rows, open_door
from tests.metering.servers import Reply, Server, running_server


@pytest.fixture
def server():
    with running_server() as running:
        yield running


def run(test: Any) -> Any:
    """Run a coroutine in a loop of its own."""
    return asyncio.run(test)


def test_a_call_is_reserved_sent_settled_and_stored(tmp_path: Path, server: Server) -> None:
    async def test() -> None:
        async with open_door(tmp_path, server.url) as door:
            scope = Scope(phase="3", arm="member:gpt", stage="panel", task="t/1", sample=2)
            response = await door.ask("hi", scope, max_tokens=50, temperature=0.5)
            assert response.json()["choices"][0]["message"]["content"] == "answer 1"
            [reserve], [settle] = door.rows("reserve"), door.rows("settle")
            balance = door.calls.ledger.balance()
            assert (reserve["id"], response.headers["x-fusion-call"]) == (settle["id"], settle["id"])
            assert reserve["reserved"] == len(json.dumps(chat("hi", max_tokens=50, temperature=0.5))) + 500
            assert (reserve["phase"], reserve["model"], reserve["dialect"]) == ("3", "gpt-5.5", "openai.chat")
            assert reserve["parameters"] == {"max_tokens": 50, "temperature": 0.5}
            assert reserve["scope"] == {
                "phase": "3",
                "arm": "member:gpt",
                "stage": "panel",
                "task": "t/1",
                "sample": 2,
            }
            usage = server.billed()[0]["usage"]
            assert settle["usage"] == {"input": usage["prompt_tokens"], "output": 20, "tier": "default"}
            assert settle["charged"] == usage["prompt_tokens"] + 200 == balance.settled == balance.committed
            assert (settle["outcome"], settle["finish"], settle["model"]) == ("answered", "stop", "gpt-5.5")
            assert settle["request_id"] == "chatcmpl-1"
            assert settle["latency_s"] > 0
            assert json.loads(door.calls.bodies.get(settle["answer"])) == response.json()
            assert json.loads(door.calls.bodies.get(reserve["request"])) == chat("hi", max_tokens=50, temperature=0.5)

    run(test())


def test_the_scope_is_not_forwarded_and_the_key_is_not_seen_by_whoever_asked(tmp_path: Path, server: Server) -> None:
    async def test() -> None:
        async with open_door(tmp_path, server.url) as door:
            response = await door.ask("hi")
            assert "real-key" not in str(response.request.headers)
            [request] = server.requests
            assert HEADER not in request.headers
            assert request.key == "real-key"
            models = await door.client.get(f"{server.url}/v1/models")
            assert "real-key" not in str(models.request.headers)

    run(test())


def test_a_resume_takes_stored_answers_and_sends_only_the_rest(tmp_path: Path, server: Server) -> None:
    async def first() -> list[str]:
        async with open_door(tmp_path, server.url) as door:
            return [(await door.ask(prompt)).text for prompt in ("one", "two", "two")]

    async def second() -> list[str]:
        async with open_door(tmp_path, server.url, session="another") as door:
            responses = [await door.ask(prompt) for prompt in ("two", "one", "two", "three")]
            assert ["x-fusion-stored" in each.headers for each in responses] == [True, True, True, False]
            return [each.text for each in responses]

    one, two, again = run(first())
    assert two != again
    assert run(second())[:3] == [two, one, again]
    assert [row["prompt"] for row in server.billed()] == ["one", "two", "two", "three"]


def test_another_scope_never_shares_an_answer(tmp_path: Path, server: Server) -> None:
    scopes = [
        Scope(phase="3", task="t"),
        Scope(phase="4", task="t"),
        Scope(phase="3", task="u"),
        Scope(phase="3", task="t", arm="compound"),
        Scope(phase="3", task="t", stage="judge"),
        Scope(phase="3", task="t", replicate=1),
        Scope(phase="3", task="t", sample=1),
        Scope(phase="3", task="t", detail="rewrite"),
        Scope(phase="3", task="t", occurrence=1),
    ]

    async def test() -> None:
        async with open_door(tmp_path, server.url, session="a") as door:
            for scope in scopes:
                await door.ask("hi", scope)
        async with open_door(tmp_path, server.url, session="b") as door:
            texts = [(await door.ask("hi", scope)).json()["choices"][0]["message"]["content"] for scope in scopes]
            assert texts == [f"answer {n}" for n in range(1, 10)]
            # What is only about whose turn pays does not count, and a drill never takes a stored answer.
            await door.ask("hi", Scope(phase="3", task="t", arm="drill:x", reuse=False))

    run(test())
    assert len(server.billed()) == len(scopes) + 1

    async def drill_again() -> None:
        async with open_door(tmp_path, server.url, session="c") as door:
            await door.ask("hi", Scope(phase="3", task="t", arm="drill:x", reuse=False))

    run(drill_again())
    assert len(server.billed()) == len(scopes) + 2


def test_replay_needs_no_server_and_changes_no_byte(tmp_path: Path, server: Server) -> None:
    async def live() -> list[bytes]:
        async with open_door(tmp_path, server.url) as door:
            answers = [(await door.ask(prompt, stream=stream)).content for prompt in "abc" for stream in (False, True)]
            with pytest.raises(httpx2.RemoteProtocolError):
                await door.ask("[[script:reset]]")
            return answers

    answers = run(live())
    # A run that was killed leaves a torn line and an open reservation; a replay forgives both and touches neither.
    reserve = next(row for row in journal_rows(tmp_path) if row["e"] == "reserve")
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(json.dumps({**reserve, "id": "open", "owner": "gone"}).encode() + b'\n{"e":"settle","id":"op')
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}

    class NoSocket(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:  # noqa: ARG002
            raise AssertionError("a replay sent something")

    async def replay() -> list[bytes]:
        async with open_door(tmp_path, server.url, mode="replay", inner=NoSocket()) as door:
            found = [(await door.ask(prompt, stream=stream)).content for prompt in "abc" for stream in (False, True)]
            with pytest.raises(ReplayMissError, match=r"task 'new', phase 3, stage judge, .*model gpt-5.5.*no call of"):
                await door.ask("new", Scope(phase="3", task="new", stage="judge"))
            return found

    assert run(replay()) == answers
    assert {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()} == before


def test_a_replay_miss_says_what_differs(tmp_path: Path, server: Server) -> None:
    scope = Scope(phase="3", task="t")

    async def test() -> None:
        async with open_door(tmp_path, server.url) as door:
            await door.ask("hi", scope, temperature=1)
        async with open_door(tmp_path, server.url, mode="replay") as door:
            for change, what in (
                ({"temperature": 0}, "differs in: parameters"),
                ({"temperature": 1, "model": "gpt-5.5-mini"}, "differs in: model"),
            ):
                with pytest.raises(ReplayMissError, match=what):
                    await door.post("/v1/chat/completions", {**chat("hi"), **change}, scope)
            with pytest.raises(ReplayMissError, match="differs in: prompt"):
                await door.ask("hi ", scope, temperature=1)
            await door.ask("hi", scope, temperature=1)
            with pytest.raises(ReplayMissError, match="1 answers are stored and all were taken"):
                await door.ask("hi", scope, temperature=1)

    run(test())


def test_a_replay_miss_names_the_header(tmp_path: Path, server: Server) -> None:
    scope = Scope(phase="3", task="t")

    async def ask(mode: str, **headers: str) -> int:
        async with open_door(tmp_path, server.url, mode=mode) as door:
            fields = {HEADER: scope.header(), **headers}
            return (await door.client.post(f"{server.url}/v1/messages", json=chat("hi"), headers=fields)).status_code

    assert run(ask("live", **{"anthropic-beta": "a", "authorization": "Bearer x"})) == 200
    assert run(ask("replay", **{"anthropic-beta": "a", "x-stainless-timeout": "9"})) == 200
    for other in ({}, {"anthropic-beta": "b"}):
        with pytest.raises(ReplayMissError, match="differs in: headers;"):
            run(ask("replay", **other))


def test_a_list_of_models_is_stored_costs_nothing_and_is_always_asked_anew(tmp_path: Path, server: Server) -> None:
    headers = {HEADER: Scope(phase="0", stage="keys").header()}

    async def ask(session: str, mode: str = "live", path: str = "/v1/models") -> httpx2.Response:
        async with open_door(tmp_path, server.url, session=session, mode=mode, limits=Limits(total=0)) as door:
            return await door.client.get(f"{server.url}{path}", headers=headers)

    server.keys = frozenset({"another"})
    assert run(ask("one")).status_code == 401
    assert run(ask("a replay", "replay")).status_code == 401
    server.keys = frozenset()
    listed = [run(ask(session)) for session in ("two", "two", "three")]
    assert len(server.requests) == 4
    assert not any("x-fusion-stored" in each.headers for each in listed)
    replayed = run(ask("a replay", "replay"))
    assert replayed.content == listed[0].content
    assert "x-fusion-stored" in replayed.headers
    with pytest.raises(ReplayMissError, match=r"model None, key .*differs in: endpoint"):
        run(ask("a replay", "replay", "/v1/models?limit=1"))
    assert len(server.requests) == 4
    rows = journal_rows(tmp_path)
    assert {(row["reserved"], row["dialect"]) for row in rows if row["e"] == "reserve"} == {(0, "openai.models")}
    settled = [(row["charged"], row["estimated"], "answer" in row) for row in rows if row["e"] == "settle"]
    assert settled == [(0, False, False)] + [(0, False, True)] * 3
    assert not any("flags" in row for row in rows)


def test_what_is_no_call_of_a_model_is_passed_on_if_it_only_reads_and_never_in_a_replay(
    tmp_path: Path, server: Server
) -> None:
    async def ask(mode: str, method: str, path: str) -> int:
        async with open_door(tmp_path, server.url, mode=mode) as door:
            return (await door.client.request(method, f"{server.url}{path}")).status_code

    assert run(ask("live", "GET", "/v1/files")) == 200
    assert journal_rows(tmp_path) == []
    with pytest.raises(ReplayMissError, match=r"replay: GET /v1/files is no call of a model.*nothing was sent"):
        run(ask("replay", "GET", "/v1/files"))
    for mode in ("live", "replay"):
        for method, path in (("POST", "/v1/files"), ("DELETE", "/v1/models/ft:x"), ("PUT", "/v1/models")):
            with pytest.raises(FusionAuditError, match=f"{method} {path} is not a call that can be metered; nothing"):
                run(ask(mode, method, path))
    assert len(server.requests) == 1


def test_a_replay_repeats_a_failure_that_was_never_answered(tmp_path: Path, server: Server) -> None:
    async def test(mode: str) -> list[int]:
        async with open_door(tmp_path, server.url, mode=mode) as door:
            prompts = ("[[script:context_length]]", "[[script:unavailable]]", "x [[script:rate_limit*1]]")
            return [(await door.ask(prompt)).status_code for prompt in prompts for _ in range(2)]

    assert run(test("live")) == [400, 400, 503, 503, 429, 200]
    with pytest.raises(ReplayMissError):
        run(test("replay"))  # the third was answered once and is asked for twice

    async def shorter() -> list[int]:
        async with open_door(tmp_path, server.url, mode="replay") as door:
            prompts = ("[[script:context_length]]", "[[script:unavailable]]", "x [[script:rate_limit*1]]")
            return [(await door.ask(prompt)).status_code for prompt in prompts]

    assert run(shorter()) == [400, 503, 200]


@pytest.mark.parametrize(
    ("kind", "charged", "stored"),
    [
        ("rate_limit", 0, False),
        ("insufficient_quota", 0, False),
        ("overloaded", 0, False),
        ("unavailable", 0, False),
        ("server_error", 0, False),
        ("key_refused", 0, False),
        ("model_not_found", 0, False),
        ("unsupported_parameter", 0, False),
        ("context_length", 0, True),
        ('{"status": 502, "body": "<html>Bad gateway</html>"}', 700, False),
        ("html", 700, False),
        ("choices_null", 700, False),
        ("choices_empty", 229, False),
        ("error_object", 700, False),
        ('{"usage": "null"}', 700, True),
        ('{"usage": "absent"}', 700, True),
        ('{"model": "gpt-5.5-2026-04-23"}', 229, True),
        ('{"finish": "length", "text": ""}', 229, True),
    ],
)
def test_what_is_charged_and_kept(tmp_path: Path, server: Server, kind: str, charged: int, stored: bool) -> None:
    async def test() -> None:
        async with open_door(tmp_path, server.url, prices=FlatPrices(worst=700)) as door:
            server.script(Reply(**{"input_tokens": 29} | (json.loads(kind) if kind[0] == "{" else {"kind": kind})))
            await door.ask("hi")
            [row] = door.rows("settle")
            assert (row["charged"], "answer" in row) == (charged, stored)
            assert row["estimated"] == ("usage_unknown" in row.get("flags", ())) == (charged == 700)
            assert door.calls.ledger.balance().committed == charged

    run(test())


@pytest.mark.parametrize(("path", "dialect"), [("chat/completions", 0), ("responses", 1), ("messages", 2)])
@pytest.mark.parametrize("split", [None, 5])
def test_streams_of_all_dialects(tmp_path: Path, server: Server, path: str, dialect: int, split: int | None) -> None:
    async def test() -> None:
        async with open_door(tmp_path, server.url) as door:
            server.script(Reply(text="zwölf", input_tokens=30, split=split))
            body = chat("hi", stream=True, max_tokens=40)
            if dialect == 1:
                body = {"model": "gpt-5.5", "input": "hi", "stream": True, "max_output_tokens": 40}
            response = await door.post(f"/v1/{path}", body)
            [row] = door.rows("settle")
            assert (row["charged"], row["outcome"]) == (230, "answered")
            stored = door.calls.bodies.get(row["answer"])
            assert response.content.startswith(stored)
            assert not response.content[len(stored) :].strip()
            assert not list((tmp_path / "streams").iterdir())

    run(test())


def test_a_stream_is_settled_before_its_last_event_is_handed_on(tmp_path: Path, server: Server) -> None:
    async def test() -> None:
        async with open_door(tmp_path, server.url) as door:
            server.script(Reply(gap_s=0.01))
            settled: list[int] = []
            async with door.client.stream(
                "POST", f"{server.url}/v1/chat/completions", json=chat("hi", stream=True)
            ) as r:
                async for chunk in r.aiter_raw():
                    settled.append(len(door.rows("settle")))
                    last = chunk
                    if b"[DONE]" in chunk:
                        break
            assert b"[DONE]" in last
            assert (settled[0], settled[-1]) == (0, 1)

    run(test())


@pytest.mark.parametrize("kind", ["cut", "ends_early", "no_usage", "error_event"])
def test_a_stream_without_usage_stays_charged_at_its_reservation(tmp_path: Path, server: Server, kind: str) -> None:
    async def test() -> None:
        async with open_door(tmp_path, server.url, prices=FlatPrices(worst=700)) as door:
            server.script(Reply(kind=kind))
            try:
                await door.ask("hi", stream=True)
            except httpx2.RemoteProtocolError:
                assert kind == "cut"
            else:
                assert kind != "cut"
            [row] = door.rows("settle")
            assert (row["charged"], row["estimated"]) == (700, True)
            assert ("answer" in row) == (kind == "no_usage")

    run(test())


@pytest.mark.parametrize("how", ["close", "cancel"])
def test_a_client_that_hangs_up_mid_stream_does_not_cost_us_the_usage(tmp_path: Path, server: Server, how: str) -> None:
    async def test() -> None:
        async with open_door(tmp_path, server.url) as door:
            server.script(*[Reply(input_tokens=30, gap_s=0.02)] * 9)
            first = asyncio.Event()

            async def one(number: int) -> None:
                body = chat(f"hi {number}", stream=True)
                async with door.client.stream("POST", f"{server.url}/v1/chat/completions", json=body) as response:
                    async for _ in response.aiter_raw():
                        first.set()
                        if how == "close":
                            return

            # As FusionKit does: nine attempts, each given up in the middle.
            for number in range(9):
                task = asyncio.create_task(one(number))
                await first.wait()
                first.clear()
                if how == "cancel":
                    task.cancel()
                await asyncio.wait([task])
        rows = [row for row in journal_rows(tmp_path) if row["e"] == "settle"]
        assert [(row["charged"], row["outcome"]) for row in rows] == [(230, "answered")] * 9
        assert len(server.billed()) == 9

    run(test())


def test_a_caller_that_is_cancelled_does_not_cost_us_the_answer(tmp_path: Path, server: Server) -> None:
    async def test() -> None:
        async with open_door(tmp_path, server.url) as door:
            server.script(Reply(latency_s=0.2))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await door.ask("hi")
        async with open_door(tmp_path, server.url) as door:
            assert "x-fusion-stored" in (await door.ask("hi")).headers

    run(test())
    assert len(server.billed()) == 1


def test_a_call_that_never_ends_is_given_up_at_the_ceiling_and_stays_charged(tmp_path: Path, server: Server) -> None:
    async def test() -> None:
        async with open_door(tmp_path, server.url, drain_ceiling_s=0.05) as door:
            for stream, script in ((False, "hang"), (True, Reply(gap_s=60))):
                server.script(script)
                task = asyncio.create_task(door.ask("hi", stream=stream))
                while len(server.rows) < 1 + stream:  # noqa: ASYNC110 - the server is in another thread
                    await asyncio.sleep(0.01)
                task.cancel()
                await asyncio.wait([task])
        endings = [
            (row["e"], row.get("estimated")) for row in journal_rows(tmp_path) if row["e"] in {"settle", "orphan"}
        ]
        assert endings == [("orphan", None), ("settle", True)]
        with pytest.raises(ValueError, match="closed"):
            door.calls.ledger.balance()

    run(test())


@pytest.mark.parametrize("kind", ["reset", "cut", "hang"])
def test_a_call_without_an_answer_is_an_orphan(tmp_path: Path, server: Server, kind: str) -> None:
    async def test() -> None:
        async with open_door(tmp_path, server.url, prices=FlatPrices(worst=700), timeout_s=0.3) as door:
            server.script(kind)
            with pytest.raises(httpx2.TransportError):
                await door.ask("hi")
            balance = door.calls.ledger.balance()
            assert (balance.orphaned, balance.reserved, balance.committed) == (700, 0, 700)
            [row] = door.rows("orphan")
            assert row["reason"] in {"RemoteProtocolError", "ReadError", "ReadTimeout"}

    run(test())


def test_a_server_that_is_not_there_costs_nothing(tmp_path: Path, server: Server) -> None:
    async def test() -> None:
        async with open_door(tmp_path, "http://127.0.0.1:9") as door:
            with pytest.raises(httpx2.ConnectError):
                await door.ask("hi")
            assert door.calls.ledger.balance().committed == 0

    run(test())


def test_a_refused_call_sends_nothing(tmp_path: Path, server: Server) -> None:
    async def test() -> None:
        async with open_door(tmp_path, server.url, limits=Limits(total=900), prices=FlatPrices(worst=700)) as door:
            server.script(Reply(input_tokens=100))
            await door.ask("one")
            with pytest.raises(CostLimitExceeded) as refusal:
                await door.ask("two")
            assert refusal.value.facts() == {
                "limit": "the cap of the run",
                "cap_usd": 0.0009,
                "spent_usd": 0.0003,
                "reserved_usd": 0.0,
                "needed_usd": 0.0007,
                "phase": "3",
            }
            for path, body, error in (
                ("/v1/chat/completions", b"{not json", WireError),
                ("/v1/embeddings", {"model": "x"}, FusionAuditError),
            ):
                with pytest.raises(error, match="nothing was sent"):
                    await door.post(path, body)

    run(test())
    assert len(server.requests) == 1


def test_an_sdk_client_sees_the_refusal_itself_or_as_the_cause(tmp_path: Path, server: Server) -> None:
    async def test() -> None:
        async with open_door(tmp_path, server.url, limits=Limits(total=1)) as door:
            settings: Any = {"api_key": "k", "max_retries": 0, "http_client": door.client}
            client = openai.AsyncOpenAI(base_url=f"{server.url}/v1", **settings)
            with pytest.raises(CostLimitExceeded):
                await client.chat.completions.create(**chat("hi"))
            other = anthropic.AsyncAnthropic(base_url=server.url, **settings)
            with pytest.raises(anthropic.APIConnectionError) as error:
                await other.messages.create(**chat("hi"), max_tokens=9)
            assert isinstance(error.value.__cause__, CostLimitExceeded)

    run(test())


def test_another_model_in_the_response_is_flagged_and_without_a_price_stops_the_run(
    tmp_path: Path, server: Server
) -> None:
    async def test() -> None:
        async with open_door(tmp_path, server.url, prices=FlatPrices(worst=700)) as door:
            server.script(Reply(model="gpt-4", input_tokens=29), Reply(model="unknown-1"))
            await door.ask("one")
            await door.ask("two")
            first, second = door.rows("settle")
            assert (first["flags"], first["charged"]) == (["other_model"], 229)
            assert (second["flags"], second["charged"]) == (["usage_unknown", "other_model"], 700)
            with pytest.raises(RunStoppedError, match=r"gpt-5\.5 was asked for and unknown-1 answered"):
                await door.ask("three")
        async with open_door(tmp_path, server.url, session="session") as door:
            with pytest.raises(RunStoppedError):
                await door.ask("three")
        async with open_door(tmp_path, server.url, session="the next one") as door:
            await door.ask("three")  # somebody looked at it and went on

    run(test())
    assert len(server.billed()) == 3


def test_a_call_that_spans_a_suspend_has_no_latency(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot = iter([100.0, 5_000.0])
    monkeypatch.setattr(settling, "_boot_time", lambda: next(boot))

    async def test() -> None:
        async with open_door(tmp_path, server.url) as door:
            await door.ask("hi")
            assert door.rows("settle")[0]["latency_s"] is None

    run(test())


def test_a_clock_that_goes_backwards_changes_nothing_but_the_time_of_rows(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter(range(2_000_000_000, 0, -1_000_000))
    monkeypatch.setattr("pytest_fusion_audit.metering.ledger.time.time", lambda: next(times))

    async def test() -> None:
        async with open_door(tmp_path, server.url) as door:
            for prompt in "abc":
                await door.ask(prompt)
            assert [row["latency_s"] >= 0 for row in door.rows("settle")] == [True] * 3
        calls = Calls.reading(tmp_path)
        assert calls.ledger.balance() == door.calls.balances.total()
        calls.close()

    run(test())


def test_names_that_are_no_text_do_not_lose_a_paid_answer(tmp_path: Path, server: Server) -> None:
    body = {"model": "gpt-5.5\ud800", "choices": [{"index": 0, "message": {"content": "x"}, "finish_reason": "\udfff"}]}

    async def test() -> None:
        async with open_door(tmp_path, server.url) as door:
            server.script(Reply(body=body))
            await door.post("/v1/chat/completions", json.dumps(chat("hi")).encode())
            [row] = door.rows("settle")
            assert row["model"] == "gpt-5.5\ud800"
            assert "answer" in row

    run(test())


def test_a_full_disk_is_noticed_before_a_call_is_sent(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with open_door(tmp_path, server.url) as door:
            monkeypatch.setattr("pytest_fusion_audit.metering.calls._LEAST_FREE_BYTES", 10**18)
            with pytest.raises(DiskFullError, match="nothing was sent"):
                await door.ask("hi")
            assert door.calls.ledger.balance().committed == 0

    run(test())
    assert server.requests == []


@pytest.mark.parametrize("what", ["body", "journal"])
def test_a_disk_that_fills_up_during_a_call_leaves_it_charged_and_says_so(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    write = os.write
    full = False

    def guarded(file: int, data: bytes) -> int:
        name = Path(f"/proc/self/fd/{file}").readlink().name
        if full and (name.endswith("journal.jsonl") if what == "journal" else name.endswith(".pack")):
            write(file, data[: len(data) // 2])  # a short write, as a full disk makes it
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data)

    async def test() -> None:
        nonlocal full
        async with open_door(tmp_path, server.url, prices=FlatPrices(worst=700)) as door:
            await door.ask("before")
            monkeypatch.setattr(os, "write", guarded)
            server.script(Reply(latency_s=0.1))
            task = asyncio.create_task(door.ask("during"))
            while len(server.rows) < 2:  # noqa: ASYNC110 - the server is in another thread
                await asyncio.sleep(0.005)
            full = True
            with pytest.raises(DiskFullError, match="stays charged at its reservation"):
                await task
            full = False
            if what == "journal":
                with pytest.raises(RunStoppedError):
                    await door.ask("after")
        async with open_door(tmp_path, server.url, prices=FlatPrices(worst=700)) as door:
            assert door.calls.ledger.balance().orphaned == 700
            assert "x-fusion-stored" in (await door.ask("before")).headers
            assert "x-fusion-stored" not in (await door.ask("during")).headers

    run(test())
