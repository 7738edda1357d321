"""Batches through the proxy, by the makers' own SDKs and by bare HTTP, against a real loopback server behind it."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import asynccontextmanager, contextmanager

import anthropic
import httpx2
import openai
import pytest

from pytest_fusion_audit.metering.proxy_batch_runs import WakingClock
from pytest_fusion_audit.metering.proxy_batches import ProxyBatches
from pytest_fusion_audit.metering.proxy_server import serving_in_thread
from pytest_fusion_audit.metering.scope import Scope
from tests.metering.proxy_run import ANTHROPIC_KEY, OPENAI_KEY, Metered, ask, ask_anthropic, made_proxy
from tests.metering.servers import BatchScript, running_server

CHAT = "/v1/chat/completions"
STUCK = -1_000_000  # looks that a batch of the server is behind


class QuickClock(WakingClock):
    """Hours pass in a moment, but other work gets its turn."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0

    def now(self) -> float:
        return super().now() + self.passed

    async def sleep(self, seconds: float) -> None:
        self.passed += seconds
        await super().sleep(0.005)


@contextmanager
def batched(folder, server, **settings):
    with made_proxy(folder, server, **settings) as (proxy, calls):
        proxy.batches = ProxyBatches(proxy, QuickClock())
        with serving_in_thread(proxy) as url:
            yield Metered(url, proxy, calls)
        assert not proxy.faults


@pytest.fixture
def server():
    with running_server(keys=(OPENAI_KEY, ANTHROPIC_KEY)) as running:
        yield running


@pytest.fixture
def door(tmp_path, server):
    with batched(tmp_path, server) as running:
        yield running


@asynccontextmanager
async def _openai(door, role="judge"):
    async with openai.AsyncOpenAI(base_url=f"{door.url}/{role}/v1", api_key="x", max_retries=0) as client:
        yield client


@asynccontextmanager
async def _anthropic(door):
    async with anthropic.AsyncAnthropic(base_url=f"{door.url}/panel-opus", api_key="x", max_retries=0) as client:
        yield client


def line(name, body=None, url=CHAT, **more):
    return {
        "custom_id": name,
        "method": "POST",
        "url": url,
        "body": ask(f"task {name}") if body is None else body,
    } | more


def jsonl(*rows) -> bytes:
    return b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows)


async def submit(client, *rows, endpoint=CHAT):
    file = await client.files.create(file=("asked.jsonl", jsonl(*rows)), purpose="batch")
    return await client.batches.create(input_file_id=file.id, endpoint=endpoint, completion_window="24h")


async def ended(client, batch):
    until = time.monotonic() + 60
    openai_s = isinstance(client, openai.AsyncOpenAI)
    resource = client.batches if openai_s else client.messages.batches
    while time.monotonic() < until:
        batch = await resource.retrieve(batch.id)
        if batch.ended_at if not openai_s else batch.finalizing_at:
            return batch
        await asyncio.sleep(0.01)
    raise AssertionError("the batch never ended")


async def rows_of(client, file):
    if file is None:
        return {}
    content = (await client.files.content(file)).text
    return {row["custom_id"]: row for row in map(json.loads, content.splitlines())}


def said(row):
    return row["response"]["body"]["choices"][0]["message"]["content"]


async def asked_of_openai(door, *rows, **options):
    """Submit, wait, and read everything."""
    async with _openai(door) as client:
        batch = await ended(client, await submit(client, *rows, **options))
        return batch, await rows_of(client, batch.output_file_id), await rows_of(client, batch.error_file_id)


async def asked_of_anthropic(door, *requests):
    async with _anthropic(door) as client:
        batch = await ended(client, await client.messages.batches.create(requests=list(requests)))
        return batch, {row.custom_id: row.result async for row in await client.messages.batches.results(batch.id)}


def request(name, **params):
    return {"custom_id": name, "params": ask_anthropic(f"task {name}") | params}


def test_an_openai_batch_is_metered_by_its_base_url_alone(door, server) -> None:
    async def main():
        async with _openai(door) as client:
            file = await client.files.create(file=("ä.jsonl", jsonl(line("a"), line("b|1"))), purpose="batch")
            assert (file.filename, file.bytes, file.purpose) == ("ä.jsonl", len(jsonl(line("a"), line("b|1"))), "batch")
            assert (await client.files.content(file.id)).content == jsonl(line("a"), line("b|1"))
            batch = await client.batches.create(
                input_file_id=file.id, endpoint=CHAT, completion_window="24h", metadata={"of": "mine"}
            )
            assert batch.status in {"in_progress", "completed"}
            assert len(door.reserved()) == 2, "durable before the client knows of its batch"
            batch = await ended(client, batch)
            assert (batch.status, batch.metadata, batch.error_file_id) == ("completed", {"of": "mine"}, None)
            assert batch.request_counts.model_dump() == {"total": 2, "completed": 2, "failed": 0}
            output = await rows_of(client, batch.output_file_id)
            assert [each.id async for each in client.batches.list()] == [batch.id]
            assert [each.id async for each in client.files.list(purpose="batch")] == [file.id]
            assert (await client.files.retrieve(batch.output_file_id)).purpose == "batch_output"
            assert (await client.files.delete(file.id)).deleted
            with pytest.raises(openai.NotFoundError):
                await client.files.retrieve(file.id)
            return output

    output = asyncio.run(main())
    prompts = {row["prompt"]: f"answer {row['n']}" for row in server.billed()}
    assert {name: said(row) for name, row in output.items()} == {name: prompts[f"task {name}"] for name in ("a", "b|1")}
    assert all(row["response"]["status_code"] == 200 and row["error"] is None for row in output.values())
    assert all(row["batch"] for row in server.billed())
    assert [row["scope"]["stage"] for row in door.reserved()] == ["judge", "judge"]
    assert all(row["charged"] > 0 and not row["estimated"] for row in door.settled())
    assert server.batches.files == {}, "nothing is left with the provider"
    assert not any(b'"custom_id": "b|1"' in asked.body for asked in server.requests)


def test_responses_are_batched_too(door) -> None:
    body = {"model": "gpt-5.5", "input": "hi", "max_output_tokens": 50}
    _, output, _ = asyncio.run(asked_of_openai(door, line("a", body, "/v1/responses"), endpoint="/v1/responses"))
    assert output["a"]["response"]["body"]["output"][0]["content"][0]["text"] == "answer 1"


def test_a_message_batch_is_metered_by_its_base_url_alone(door, server) -> None:
    async def main():
        async with _anthropic(door) as client:
            batch = await client.messages.batches.create(requests=[request("a"), request("b")])
            batch = await ended(client, batch)
            assert batch.processing_status == "ended"
            assert batch.request_counts.succeeded == 2
            found = {row.custom_id: row.result async for row in await client.messages.batches.results(batch.id)}
            assert [each.id async for each in client.messages.batches.list()] == [batch.id]
            assert (await client.messages.batches.delete(batch.id)).id == batch.id
            with pytest.raises(anthropic.NotFoundError):
                await client.messages.batches.retrieve(batch.id)
            return found

    found = asyncio.run(main())
    prompts = {row["prompt"]: f"answer {row['n']}" for row in server.billed()}
    assert {name: result.message.content[0].text for name, result in found.items()} == {
        name: prompts[f"task {name}"] for name in "ab"
    }
    assert [(row["scope"]["stage"], row["scope"]["detail"]) for row in door.reserved()] == [("panel", "opus")] * 2
    assert server.batches.batches == {}


@pytest.mark.parametrize("maker", ["openai", "anthropic"])
def test_a_batch_costs_half(door, maker) -> None:
    async def alone():
        if maker == "openai":
            async with _openai(door) as client:
                await client.chat.completions.create(**ask("task a"))
        else:
            async with _anthropic(door) as client:
                await client.messages.create(**ask_anthropic("task a"))

    asyncio.run(alone())
    # one stored answer of this key is taken; the next has to be bought
    asyncio.run(asked_of_openai(door, line("a")) if maker == "openai" else asked_of_anthropic(door, request("a")))
    one, other = [row["charged"] for row in door.settled()]
    assert other == (one + 1) // 2


def test_rows_that_no_batch_answered_are_no_answers(door, server) -> None:
    rows = [
        line("good"),
        line("late", ask("[[script:batch_expired]]")),
        line("bad", ask("[[script:unsupported_parameter]]")),
        line("long", ask("[[script:context_length]]")),
        line("down", ask("[[script:batch_error]]")),
    ]
    batch, output, errors = asyncio.run(asked_of_openai(door, *rows))
    assert list(output) == ["good"]
    assert batch.status == "expired"
    assert batch.request_counts.model_dump() == {"total": 5, "completed": 1, "failed": 4}
    assert errors["late"]["response"] is None
    assert errors["late"]["error"]["code"] == "batch_expired"
    statuses = {name: errors[name]["response"]["status_code"] for name in ("bad", "long", "down")}
    assert statuses == {"bad": 400, "long": 400, "down": 500}
    assert errors["bad"]["response"]["body"]["error"]["message"]
    assert len(server.billed()) == 1


def test_rows_of_a_message_batch_that_were_not_answered(door, server) -> None:
    requests = [
        request("good"),
        request("late", messages=[{"role": "user", "content": "[[script:batch_expired]]"}]),
        request("bad", messages=[{"role": "user", "content": "[[script:unsupported_parameter]]"}]),
    ]
    batch, found = asyncio.run(asked_of_anthropic(door, *requests))
    assert {name: result.type for name, result in found.items()} == {
        "good": "succeeded",
        "late": "expired",
        "bad": "errored",
    }
    assert found["bad"].error.error.type == "invalid_request_error"
    counts = batch.request_counts
    assert (counts.succeeded, counts.errored, counts.expired, counts.canceled, counts.processing) == (1, 1, 1, 0, 0)
    assert len(server.billed()) == 1


def test_a_batch_that_the_provider_fails_whole_is_failed_rows(door, server) -> None:
    server.batches.script = BatchScript(outcome="failed")
    batch, output, errors = asyncio.run(asked_of_openai(door, line("a")))
    assert (batch.status, output) == ("completed", {})
    assert errors["a"]["error"]["code"] == "invalid_json_line"
    assert [row["charged"] for row in door.settled()] == [0]


def test_a_refused_key_fails_the_batch_and_costs_nothing(tmp_path) -> None:
    with running_server(keys=("another",)) as server, batched(tmp_path, server) as door:
        batch, output, errors = asyncio.run(asked_of_openai(door, line("a")))
        assert batch.status == "failed"
        assert "401" in batch.errors.data[0].message
        assert OPENAI_KEY not in batch.model_dump_json()
        assert (output, list(errors)) == ({}, ["a"])
        account = door.calls.ledger.balance()
        assert (account.spent, account.reserved) == (0, 0)


def test_a_batch_that_does_not_fit_whole_is_refused_with_the_facts(tmp_path, server) -> None:
    one_row = 1_000  # micro-dollars: more than one row's worst case, less than two rows'

    async def main(door):
        async with _openai(door) as client:
            with pytest.raises(openai.APIStatusError) as caught:
                await submit(client, line("a"), line("b"))
            assert [each async for each in client.batches.list()] == []
        async with _anthropic(door) as client:
            with pytest.raises(anthropic.APIStatusError) as other:
                await client.messages.batches.create(requests=[request("a", max_tokens=5_000)])
        return caught.value, other.value

    with batched(tmp_path, server, cap=one_row) as door:
        error, other = asyncio.run(main(door))
        refusals = door.proxy.refusals
        assert door.reserved() == []
        assert door.calls.ledger.left("6.2") == one_row
        asyncio.run(asked_of_openai(door, line("a")))
    assert error.status_code == other.status_code == 402
    assert (error.code, error.type) == ("cost_limit_exceeded", "fusion_audit")
    assert {name: error.body[name] for name in refusals[0][1].facts()} == refusals[0][1].facts()
    assert [scope.stage for scope, _ in refusals] == ["judge", "panel"]
    assert len(server.billed()) == 1


def test_a_refusal_censors_the_turns_of_its_rows(tmp_path, server) -> None:
    canary = "fusion-canary-0123456789abcdef"
    attribution = {"canaries": {canary.rpartition("-")[2]: "HumanEval/0"}, "turns": {"HumanEval/0": "turn 1"}}
    with batched(tmp_path, server, cap=10, **attribution) as door:
        with pytest.raises(openai.APIStatusError):
            asyncio.run(asked_of_openai(door, line("a", ask(f"solve {canary}")), line("b")))
        assert [scope.task for scope, _ in door.proxy.refusals] == ["HumanEval/0", None]
        assert list(door.calls.ledger.refused) == ["turn 1"]


def test_a_stopped_run_refuses_batches(door, server) -> None:
    door.calls.ledger.stop("the key was refused")
    with pytest.raises(openai.APIStatusError, match="the key was refused") as caught:
        asyncio.run(asked_of_openai(door, line("a")))
    assert caught.value.status_code == 402
    assert server.requests == []


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "no requests"),
        ([b"", b"  "], "no requests"),
        ([line("a"), b"{not json"], "line 2: not JSON"),
        ([b'{"custom_id": "\xff"}'], "line 1: not JSON in UTF-8"),
        ([b"[]"], "line 1: not a JSON object"),
        ([line("a"), b"", line("a")], r"line 3 \(a\): custom_id: stands at line 1 \(a\)"),
        ([line("a"), line("b", url="/v1/responses")], "line 2: url: '/v1/responses'"),
        ([line("a", method="GET")], "line 1: method: 'GET'"),
        ([line("")], "line 1: custom_id: missing"),
        ([line("a", [])], r"line 1 \(a\): body: not an object"),
        ([line("a", {"messages": []})], r"line 1 \(a\): body.model: missing"),
        ([line("a"), line("b", ask(stream=True))], "b: a stream cannot"),
        ([line("b", ask(service_tier="flex"))], "b: service_tier flex"),
        ([line("b", ask(service_tier="priority"))], "b: service_tier priority"),
        ([line("b", ask(model="gpt-unheard-of"))], "b: .*gpt-unheard-of"),
        ([line("b", ask(max_completion_tokens="many"))], "b: "),
        ([line("b", ask(f"my key is {OPENAI_KEY}"))], r"line 1 \(b\): a key stands"),
    ],
)
def test_one_bad_line_refuses_the_batch_and_is_named(door, server, rows, words) -> None:
    with pytest.raises(openai.BadRequestError, match=words) as caught:
        asyncio.run(asked_of_openai(door, *rows))
    assert OPENAI_KEY not in str(caught.value)
    assert server.requests == []
    assert door.reserved() == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"requests": []}, "no requests"),
        ({"requests": {}}, "not a list"),
        ({"requests": [], "priority": "high"}, "priority"),
        ({"requests": [request("a"), request("a")]}, r"requests.1 \(a\): custom_id"),
        ({"requests": [[]]}, "requests.0: not an object"),
        ({"requests": [request("a", stream=True)]}, "a: a stream cannot"),
        ({"requests": [request("a", speed="fast")]}, "a: service_tier fast"),
        ([], "not a JSON object"),
    ],
)
def test_one_bad_request_refuses_the_message_batch(door, server, body, words) -> None:
    answer = httpx2.post(f"{door.url}/panel-opus/v1/messages/batches", json=body)
    assert answer.status_code == 400
    error = answer.json()
    assert error["type"] == "error"
    assert error["error"]["type"] in {"invalid_request_error", "fusion_audit"}
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(error["error"]["message"])
    assert server.requests == []


def test_betas_that_change_answers_are_refused_in_batches(door, server) -> None:
    async def main():
        async with _anthropic(door) as client:
            trial = client.beta.messages.batches
            with pytest.raises(anthropic.BadRequestError, match="context-1m-2025-08-07"):
                await trial.create(requests=[request("a")], betas=["context-1m-2025-08-07"])
            assert server.requests == []
            batch = await trial.create(requests=[request("a")])
            await ended(client, batch)
            return [row.result.type async for row in await trial.results(batch.id)]

    assert asyncio.run(main()) == ["succeeded"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"endpoint": "/v1/embeddings"}, "endpoint: /v1/embeddings"),
        ({"completion_window": "1h"}, "completion_window"),
        ({"input_file_id": None}, "input_file_id"),
        ({"metadata": "x"}, "metadata"),
        ({"urgent": True}, "urgent"),
    ],
)
def test_a_batch_is_asked_for_as_its_maker_says(door, server, change, words) -> None:
    asked = {"input_file_id": "file-x", "endpoint": CHAT, "completion_window": "24h"} | change
    answer = httpx2.post(f"{door.url}/judge/v1/batches", json=asked)
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert server.requests == []


def test_files_for_other_purposes_are_refused_by_name(door, server) -> None:
    async def main():
        async with _openai(door) as client:
            with pytest.raises(openai.BadRequestError, match="purpose: assistants"):
                await client.files.create(file=("a.txt", b"text"), purpose="assistants")

    asyncio.run(main())
    url = f"{door.url}/judge/v1/files"
    for sent in ({"data": {"purpose": "batch"}}, {"json": {"purpose": "batch"}}, {"files": {"file": b"x"}}):
        assert httpx2.post(url, **sent).status_code == 400
    assert server.requests == []


def test_a_file_arrives_byte_for_byte(door) -> None:
    content = 'ä\r\n{"a": "\u2028\x85"}\n\n\r--b\n\x00'.encode() + b"\xff\xfe\n"

    async def main():
        async with _openai(door) as client:
            file = await client.files.create(file=content, purpose="batch")
            assert (await client.files.content(file.id)).content == content

    asyncio.run(main())


def test_what_is_not_known_is_not_found_and_the_way_on_is_said(door, server) -> None:
    async def main():
        async with _openai(door) as client:
            with pytest.raises(openai.NotFoundError, match="file-x"):
                await client.batches.create(input_file_id="file-x", endpoint=CHAT, completion_window="24h")
            for asked in (client.batches.retrieve("batch_x"), client.batches.cancel("batch_x")):
                with pytest.raises(openai.NotFoundError, match=r"submit the batch again.*not billed again"):
                    await asked
        async with _anthropic(door) as client:
            with pytest.raises(anthropic.NotFoundError, match="submit the batch again"):
                await client.messages.batches.retrieve("msgbatch_x")

    asyncio.run(main())
    assert server.requests == []


def test_aliases_and_ids_with_a_maker_work_row_by_row(tmp_path, server) -> None:
    rows = [
        line("a", ask(model="openai/gpt-5.5--judge")),
        line("b", ask(model="openai/gpt-5.4")),
        line("c", ask(model="openai/gpt-5.5", temperature=0.5)),
    ]
    with batched(tmp_path, server, third_door=True) as door:

        async def main():
            async with openai.AsyncOpenAI(base_url=f"{door.url}/v1", api_key="x", max_retries=0) as client:
                batch = await ended(client, await submit(client, *rows))
                with pytest.raises(openai.BadRequestError, match=r"line 2 \(d\): model: anthropic/claude-opus-4-8"):
                    await submit(client, rows[0], line("d", ask(model="anthropic/claude-opus-4-8")))
                with pytest.raises(openai.BadRequestError, match="no upstream"):
                    await submit(client, line("x"))
                return await rows_of(client, batch.output_file_id)

        output = asyncio.run(main())
        stages = {row["custom_id"]: (row["model"], row["scope"].get("stage")) for row in door.reserved()}
        assert door.proxy.unattributed == 2
        assert door.proxy.not_sent == {("openai/gpt-5.5", "temperature"): 1}
    assert stages == {"a": ("gpt-5.5", "judge"), "b": ("gpt-5.4", None), "c": ("gpt-5.5", None)}
    assert sorted(output) == ["a", "b", "c"]
    assert sorted(row["model"] for row in server.billed()) == ["gpt-5.4", "gpt-5.5", "gpt-5.5"]


def test_a_message_batch_takes_ids_of_its_own_maker_only(tmp_path, server) -> None:
    with batched(tmp_path, server, third_door=True) as door:
        url = f"{door.url}/judge/v1/messages/batches"
        wrong = httpx2.post(url, json={"requests": [request("a", model="openai/gpt-5.5")]})
        assert (wrong.status_code, server.requests) == (400, [])
        assert "requests.0 (a): model: openai/gpt-5.5" in wrong.json()["error"]["message"]
        right = httpx2.post(url, json={"requests": [request("a", model="anthropic/claude-opus-4-8")]}).json()
        asyncio.run(seen(lambda: httpx2.get(f"{url}/{right['id']}").json()["ended_at"]))
        assert [row["model"] for row in door.reserved()] == ["claude-opus-4-8"]
        assert right["request_counts"]["processing"] == 1


@pytest.mark.parametrize("maker", ["openai", "anthropic"])
def test_a_call_by_itself_finds_the_answer_of_a_batch_in_a_later_session(tmp_path, server, maker) -> None:
    async def alone(door):
        if maker == "openai":
            async with _openai(door) as client:
                return (await client.chat.completions.create(**ask("task a"))).choices[0].message.content
        async with _anthropic(door) as client:
            return (await client.messages.create(**ask_anthropic("task a"))).content[0].text

    with batched(tmp_path, server) as door:
        asyncio.run(asked_of_openai(door, line("a")) if maker == "openai" else asked_of_anthropic(door, request("a")))
    versions = {asked.headers.get("anthropic-version") for asked in server.requests}
    assert len(versions) == 1, "the version that the client named is asked for at every step"
    with batched(tmp_path, server, session="later") as door:
        assert asyncio.run(alone(door)) == "answer 1"
    assert len(server.billed()) == 1


def test_one_batch_does_not_wait_for_another(door, server) -> None:
    async def main():
        async with _openai(door) as client:
            server.batches.script = BatchScript(polls=1_000_000)
            slow = await submit(client, line("slow"))
            await seen(lambda: "batch_1" in server.batches.batches)
            server.batches.batches["batch_1"]["looks"] = STUCK
            server.batches.script = BatchScript()
            quick = await asyncio.gather(*(submit(client, line(name)) for name in ("q1", "q2", "q3")))
            for batch in quick:
                assert (await ended(client, batch)).status == "completed"
            assert (await client.batches.retrieve(slow.id)).status == "in_progress"
            server.batches.batches["batch_1"]["looks"] = 1
            assert (await ended(client, slow)).status == "completed"

    asyncio.run(main())
    assert len(server.billed()) == 4


async def seen(what):
    until = time.monotonic() + 60
    while not what():
        assert time.monotonic() < until, "never seen"
        await asyncio.sleep(0.005)


def test_two_batches_at_once_never_pass_the_cap_together(tmp_path, server) -> None:
    async def main(door):
        async with _openai(door) as client:
            server.batches.script = BatchScript(polls=1_000_000)
            both = await asyncio.gather(submit(client, line("a")), submit(client, line("b")), return_exceptions=True)
            return [each.status_code if isinstance(each, openai.APIStatusError) else each.status for each in both]

    with batched(tmp_path, server, cap=1_000) as door:
        assert sorted(asyncio.run(main(door)), key=str) == [402, "in_progress"]


def test_equal_rows_are_draws_of_their_own(door, server) -> None:
    rows = [line(name, ask("the same")) for name in "abc"]
    _, output, _ = asyncio.run(asked_of_openai(door, *rows))
    assert sorted(said(row) for row in output.values()) == ["answer 1", "answer 2", "answer 3"]


def test_a_call_by_itself_does_not_get_the_answer_of_a_row_under_way(door, server) -> None:
    async def main():
        async with _openai(door) as client:
            server.batches.script = BatchScript(polls=1_000_000)
            batch = await submit(client, line("a", ask("the same")))
            await seen(lambda: "batch_1" in server.batches.batches)
            alone = await client.chat.completions.create(**ask("the same"))
            server.batches.script = BatchScript()
            batch = await ended(client, batch)
            more = await client.chat.completions.create(**ask("the same"))
            output = await rows_of(client, batch.output_file_id)
            return [alone.choices[0].message.content, said(output["a"]), more.choices[0].message.content]

    assert asyncio.run(main()) == ["answer 1", "answer 2", "answer 3"]


def test_after_a_restart_a_batch_is_submitted_again_and_buys_only_what_is_missing(tmp_path, server) -> None:
    with batched(tmp_path, server) as door:
        batch, first, _ = asyncio.run(asked_of_openai(door, line("a"), line("b")))
    with batched(tmp_path, server, session="later") as door:

        async def main():
            async with _openai(door) as client:
                with pytest.raises(openai.NotFoundError, match="submit the batch again"):
                    await client.batches.retrieve(batch.id)
                again = await submit(client, line("a"), line("b"))
                assert again.status == "completed", "everything is stored, so it is done at once"
                return await rows_of(client, again.output_file_id)

        assert {name: said(row) for name, row in asyncio.run(main()).items()} == {
            name: said(row) for name, row in first.items()
        }
        assert len(server.billed()) == 2
        _, more, _ = asyncio.run(asked_of_openai(door, line("c")))
        assert said(more["c"]) == "answer 3"
    assert len(server.billed()) == 3


@pytest.mark.parametrize("same", [True, False], ids=["asked again", "another batch"])
def test_a_batch_under_way_is_left_to_the_next_session_and_paid_once(tmp_path, server, same) -> None:
    async def begin(door):
        async with _openai(door) as client:
            await submit(client, line("a"), line("b"))
            await seen(lambda: server.batches.batches)

    server.batches.script = BatchScript(polls=1_000_000)
    with batched(tmp_path, server) as door:
        asyncio.run(begin(door))
    assert [row for row in door.rows("batch") if row.get("owner") == ""], "let go of"
    server.batches.script = BatchScript()
    with batched(tmp_path, server, session="later") as door:
        rows = [line("a"), line("b")] if same else [line("other")]
        _, output, _ = asyncio.run(asked_of_openai(door, *rows))
        assert sorted(output) == sorted(row["custom_id"] for row in rows)
        asyncio.run(seen(lambda: not list(door.calls.batches.unfinished())))
        account = door.calls.ledger.balance()
        assert (account.reserved, account.orphaned) == (0, 0)
    assert len(server.billed()) == (2 if same else 3)


@pytest.mark.parametrize("maker", ["openai", "anthropic"])
def test_a_replay_completes_at_once_and_sends_nothing(tmp_path, server, maker) -> None:
    def asked(door, *names):
        if maker == "openai":
            return asyncio.run(asked_of_openai(door, *map(line, names)))
        return asyncio.run(asked_of_anthropic(door, *map(request, names)))

    with batched(tmp_path, server) as door:
        live = asked(door, "a", "b")
    sent = len(server.requests)
    with batched(tmp_path, server, mode="replay", session="later") as door:
        before = door.rows()
        error = openai.APIStatusError if maker == "openai" else anthropic.APIStatusError
        with pytest.raises(error, match="no stored answer") as caught:
            asked(door, "a", "c")
        assert caught.value.status_code == 424
        assert len(door.proxy.refusals) == 1
        replayed = asked(door, "a", "b")  # the miss has taken nothing
        assert door.rows() == before
    texts = [
        {name: said(row) if maker == "openai" else row.message.content[0].text for name, row in found[1].items()}
        for found in (live, replayed)
    ]
    assert texts[0] == texts[1]
    assert len(server.requests) == sent


def test_a_cancelled_batch_is_called_off_at_the_provider(door, server) -> None:
    server.batches.script = BatchScript(polls=1_000_000)

    async def main():
        async with _openai(door) as client:
            batch = await submit(client, line("a"))
            await seen(lambda: server.batches.batches)
            assert (await client.batches.cancel(batch.id)).status == "cancelling"
            batch = await ended(client, batch)
            assert batch.status == "cancelled"
            errors = await rows_of(client, batch.error_file_id)
            assert errors["a"]["error"]["code"] == "batch_cancelled"
        async with _anthropic(door) as client:
            batch = await client.messages.batches.create(requests=[request("a")])
            await seen(lambda: any(name.startswith("msgbatch") for name in server.batches.batches))
            with pytest.raises(anthropic.AnthropicError):
                await client.messages.batches.results(batch.id)
            with pytest.raises(anthropic.BadRequestError, match="not ended"):
                await client.messages.batches.delete(batch.id)
            assert (await client.messages.batches.cancel(batch.id)).processing_status == "canceling"
            batch = await ended(client, batch)
            assert [row.result.type async for row in await client.messages.batches.results(batch.id)] == ["canceled"]

    asyncio.run(main())
    assert server.billed() == []
    account = door.calls.ledger.balance()
    assert (account.spent, account.reserved) == (0, 0)
    assert len(door.reserved()) == 2, "what was called off is not sent again"
    server.batches.script = BatchScript()
    _, output, _ = asyncio.run(asked_of_openai(door, line("a")))
    assert said(output["a"]) == "answer 1"


def test_a_drill_cannot_be_batched(tmp_path, server) -> None:
    with (
        batched(tmp_path, server, base=Scope(phase="5", reuse=False)) as door,
        pytest.raises(openai.BadRequestError, match="a: a call that never takes a stored answer"),
    ):
        asyncio.run(asked_of_openai(door, line("a")))
    assert server.requests == []


def test_lists_come_in_pages(door) -> None:
    async def main():
        async with _openai(door) as client:
            files = [(await client.files.create(file=b"x", purpose="batch")).id for _ in range(5)]
            newest_first = files[::-1]
            assert [each.id async for each in client.files.list(limit=2)] == newest_first
            first = await client.files.list(limit=2)
            assert ([each.id for each in first.data], first.has_more) == (newest_first[:2], True)

    asyncio.run(main())
    for query, more in (("limit=2", True), ("limit=0", False), ("limit=x", False)):
        page = httpx2.get(f"{door.url}/judge/v1/files?{query}").json()
        assert page["has_more"] is more


def test_keys_stay_where_they_belong(door, server) -> None:
    asyncio.run(asked_of_openai(door, line("a")))
    asyncio.run(asked_of_anthropic(door, request("a")))
    keys = {asked.key for asked in server.requests if "messages" not in asked.path}
    assert keys == {OPENAI_KEY}
    assert {asked.key for asked in server.requests if "messages" in asked.path} == {ANTHROPIC_KEY}
