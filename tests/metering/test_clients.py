"""Our clients against a loopback server of both makers: one question, its attempts, its outcome."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fusion_audit.metering import batch_anthropic
from pytest_fusion_audit.metering.clients import Models, Prompt, anthropic_client, openai_client
from pytest_fusion_audit.metering.concurrency import Concurrency
from pytest_fusion_audit.metering.ledger import CostLimitExceeded, Limits, RunStoppedError
from pytest_fusion_audit.metering.models import Capabilities
from pytest_fusion_audit.metering.retry import ConfigError, KeyRefusedError, QuotaExhaustedError, RetryPolicy
from pytest_fusion_audit.metering.scope import Scope
from pytest_fusion_audit.metering.store import KEYED_HEADERS, ReplayMissError
from tests.metering.doors import FlatPrices, open_door
from tests.metering.servers import Reply, Server, running_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SCOPE = Scope(phase="3", arm="member:x", stage="panel", task="t")
MODELS = {"openai": "gpt-5.5", "anthropic": "claude-sonnet-4-6"}
QUICK = RetryPolicy(initial_s=0.0, longest_s=0.0, jitter_s=0.0)


@pytest.fixture
def server():
    with running_server() as running:
        yield running


@asynccontextmanager
async def models(folder: Path, server: Server, **settings: Any) -> AsyncIterator[Models]:
    """Our clients behind a door over ``folder``."""
    ours = {name: settings.pop(name) for name in ("concurrency", "overrides") if name in settings}
    async with open_door(folder, server.url, **settings) as door:
        urls = {"openai": f"{server.url}/v1", "anthropic": server.url, "local": f"{server.url}/v1"}
        asking = Models(door.transport, urls=urls, policy=QUICK, **ours)
        yield asking
        await asking.aclose()
        await door.transport.aclose()


def bodies(server: Server) -> list[dict[str, Any]]:
    return [json.loads(request.body) for request in server.requests]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("provider", "api"), [("openai", None), ("openai", "openai.responses"), ("anthropic", None), ("local", None)]
)
def test_one_question_to_every_api(tmp_path: Path, server: Server, provider: str, api: Any, stream: bool) -> None:
    async def test() -> None:
        async with models(tmp_path, server) as asking:
            server.script(Reply(text="zwölf", reasoning_tokens=3, input_tokens=50))
            model = MODELS.get(provider, "gpt-5.5")
            completion = await asking.complete(
                provider, model, Prompt(text="hi"), SCOPE, asked={"max_output_tokens": 64}, api=api, stream=stream
            )
            assert (completion.facts.text, completion.facts.outcome) == ("zwölf", "answered")
            assert completion.facts.usage.output_tokens == 20
            assert not completion.stored
            assert completion.latency_s > 0
            [row] = [row for row in asking.transport.calls.balances.accounts.values() if row.calls]
            assert row.settled == 250
            [call] = completion.calls
            again = await _again(tmp_path, server, provider, model, api=api, stream=stream)
            assert (again.facts.text, again.calls, again.stored) == ("zwölf", (call,), True)
            assert again.latency_s == completion.latency_s

    asyncio.run(test())
    [body] = bodies(server)
    assert ("store" in body) == (provider == "openai")
    assert body.get("store", False) is False


async def _again(folder: Path, server: Server, provider: str, model: str, *, api: Any, stream: bool) -> Any:
    async with models(folder, server, mode="replay") as asking:
        return await asking.complete(
            provider, model, Prompt(text="hi"), SCOPE, asked={"max_output_tokens": 64}, api=api, stream=stream
        )


def test_what_repeats_stands_first_and_unchanged() -> None:
    prompt = Prompt(text="Which is best?", system="You judge.", stable=("The task", "Candidate A", "Candidate B"))
    assert prompt.fields("openai.chat") == {
        "messages": [
            {"role": "system", "content": "You judge."},
            {"role": "user", "content": "The task\n\nCandidate A\n\nCandidate B\n\nWhich is best?"},
        ]
    }
    assert prompt.fields("openai.responses") == {
        "instructions": "You judge.",
        "input": [{"role": "user", "content": "The task\n\nCandidate A\n\nCandidate B\n\nWhich is best?"}],
    }
    fields = prompt.fields("anthropic.messages")
    blocks = fields["messages"][0]["content"]
    assert fields["system"] == "You judge."
    assert [block["text"] for block in blocks] == ["The task", "Candidate A", "Candidate B", "Which is best?"]
    assert [block.get("cache_control") for block in blocks] == [None, None, {"type": "ephemeral"}, None]
    uncached = Prompt(text="x", stable=("y",), cache=False).fields("anthropic.messages")
    assert "cache_control" not in json.dumps([uncached, Prompt(text="x").fields("anthropic.messages")])


def test_parameters_that_a_model_refuses_are_not_sent_and_listed(tmp_path: Path, server: Server) -> None:
    async def test() -> None:
        async with models(tmp_path, server) as asking:
            wanted = {"temperature": 0.7, "max_output_tokens": 64, "effort": "high"}
            one = await asking.complete("openai", "gpt-5.5", Prompt(text="hi"), SCOPE, asked=wanted)
            two = await asking.complete("anthropic", "claude-sonnet-4-6", Prompt(text="hi"), SCOPE, asked=wanted)
            assert one.sent == {"max_completion_tokens": 64, "reasoning_effort": "high"}
            assert one.not_sent == {"temperature": 0.7}
            assert two.sent["temperature"] == 0.7
            assert two.not_sent == {}

    asyncio.run(test())
    assert "temperature" not in bodies(server)[0]


def test_messages_without_an_output_limit_take_the_models_own(tmp_path: Path, server: Server) -> None:
    async def test() -> None:
        overrides = {"claude-mine": Capabilities(max_output_tokens=77)}
        async with models(tmp_path, server, overrides=overrides) as asking:
            await asking.complete("anthropic", "claude-mine", Prompt(text="hi"), SCOPE)
            with pytest.raises(ConfigError, match=r"claude-unknown: messages need an output limit .* nothing was sent"):
                await asking.complete("anthropic", "claude-unknown", Prompt(text="hi"), SCOPE)
            with pytest.raises(ConfigError, match="no base URL is known for elsewhere"):
                await asking.complete("elsewhere", "x", Prompt(text="hi"), SCOPE)

    asyncio.run(test())
    assert [body["max_tokens"] for body in bodies(server)] == [77]


@pytest.mark.parametrize(("provider", "keyed"), [("openai", {}), ("anthropic", {"anthropic-version": "2023-06-01"})])
def test_the_sdks_send_the_header_fields_with_which_answers_of_batches_are_stored(
    tmp_path: Path, server: Server, provider: str, keyed: dict[str, str]
) -> None:
    """Else a batch would be paid for and its answers never be found."""

    async def test() -> None:
        async with models(tmp_path, server) as asking:
            await asking.complete(provider, MODELS[provider], Prompt(text="hi"), SCOPE, asked={"max_output_tokens": 9})

    asyncio.run(test())
    sent = server.requests[0].headers
    assert {name: sent[name] for name in KEYED_HEADERS if name in sent} == keyed
    assert {name: batch_anthropic.HEADERS[name] for name in KEYED_HEADERS if name in batch_anthropic.HEADERS} == {
        "anthropic-version": "2023-06-01"
    }


def test_a_busy_provider_is_waited_out_at_no_cost_and_with_fewer_calls_at_once(tmp_path: Path, server: Server) -> None:
    async def test() -> None:
        async with models(tmp_path, server, concurrency=Concurrency(most=10)) as asking:
            server.script(Reply(kind="rate_limit", headers={"retry-after-ms": "1"}), "overloaded", "unavailable")
            completion = await asking.complete("openai", "gpt-5.5", Prompt(text="hi"), SCOPE)
            assert completion.facts.outcome == "answered"
            assert len(set(completion.calls)) == 4
            account = asking.transport.calls.ledger.balance()
            assert (account.calls, account.reserved, account.orphaned, account.estimated) == (4, 0, 0, 0)
            assert 7.0 < asking.concurrency.of("gpt-5.5").limit < 7.2

    asyncio.run(test())
    assert len(server.billed()) == 1


def test_a_waiting_call_holds_no_money(tmp_path: Path, server: Server) -> None:
    """Two calls under a cap for one: while the first waits for its provider, the second goes."""

    async def test() -> None:
        prices = FlatPrices(worst=700, actual=100)
        async with models(tmp_path, server, limits=Limits(total=900), prices=prices) as asking:
            first = asyncio.create_task(
                asking.complete("openai", "gpt-5.5", Prompt(text="one [[script:rate_limit*1]]"), SCOPE)
            )
            second = asyncio.create_task(asking.complete("openai", "gpt-5.5", Prompt(text="two"), SCOPE))
            assert [(await task).facts.outcome for task in (first, second)] == ["answered"] * 2

    asyncio.run(test())


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("kind", "error"), [("insufficient_quota", QuotaExhaustedError), ("key_refused", KeyRefusedError)]
)
def test_quota_and_keys_stop_the_run_at_once_and_name_the_variable(
    tmp_path: Path, server: Server, provider: str, kind: str, error: type[Exception]
) -> None:
    async def test() -> None:
        async with models(tmp_path, server) as asking:
            server.script(kind)
            with pytest.raises(error, match=f"{provider.upper()}_API_KEY"):
                await asking.complete(provider, MODELS[provider], Prompt(text="hi"), SCOPE)
            for other, model in MODELS.items():
                with pytest.raises(RunStoppedError, match="a server here"):  # loopback: no variable's key went there
                    await asking.complete(other, model, Prompt(text="hi"), SCOPE)
            assert asking.transport.calls.ledger.balance().committed == 0

    asyncio.run(test())
    assert len(server.requests) == 1


@pytest.mark.parametrize("kind", ["model_not_found", "unsupported_parameter"])
def test_a_refused_request_is_a_matter_of_configuration_and_not_asked_again(
    tmp_path: Path, server: Server, kind: str
) -> None:
    async def test() -> None:
        async with models(tmp_path, server) as asking:
            server.script(kind)
            with pytest.raises(ConfigError, match="correct the model's id or its capabilities"):
                await asking.complete("openai", "gpt-5.5", Prompt(text="hi"), SCOPE)

    asyncio.run(test())
    assert len(server.requests) == 1


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("kind", "outcome"),
    [("html", "pipeline_error"), ("choices_null", "pipeline_error"), ("context_length", "context_length")],
)
def test_what_is_no_answer_is_an_outcome(
    tmp_path: Path, server: Server, provider: str, kind: str, outcome: str
) -> None:
    async def test() -> None:
        async with models(tmp_path, server) as asking:
            server.script(*[kind] * 9)
            completion = await asking.complete(provider, MODELS[provider], Prompt(text="hi"), SCOPE)
            assert (completion.facts.outcome, len(completion.calls)) == (outcome, 1)

    asyncio.run(test())


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize(("kind", "stream"), [("reset", False), ("cut", False), ("cut", True), ("error_event", True)])
def test_calls_that_are_lost_are_asked_again_twice_and_stay_charged(
    tmp_path: Path, server: Server, provider: str, kind: str, stream: bool
) -> None:
    async def test() -> None:
        async with models(tmp_path, server, prices=FlatPrices(worst=700)) as asking:
            server.script(*[kind] * 3)
            completion = await asking.complete(provider, MODELS[provider], Prompt(text="hi"), SCOPE, stream=stream)
            assert (completion.facts.outcome, len(set(completion.calls))) == ("provider_error", 3)
            account = asking.transport.calls.ledger.balance()
            assert account.orphaned + account.estimated == 2100
            server.script(kind, Reply())
            other = await asking.complete(provider, MODELS[provider], Prompt(text="other"), SCOPE, stream=stream)
            assert (other.facts.outcome, len(other.calls)) == ("answered", 2)

    asyncio.run(test())


def test_a_server_that_is_not_there_costs_nothing(tmp_path: Path, server: Server) -> None:
    async def test() -> None:
        async with models(tmp_path, server) as asking:
            asking.urls = {"openai": "http://127.0.0.1:9/v1"}
            completion = await asking.complete("openai", "gpt-5.5", Prompt(text="hi"), SCOPE)
            assert (completion.facts.outcome, completion.facts.error_code) == ("provider_error", "ConnectError")
            assert (len(completion.calls), asking.transport.calls.ledger.balance().committed) == (5, 0)

    asyncio.run(test())


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_refusals_of_the_door_come_through_unwrapped(tmp_path: Path, server: Server, provider: str) -> None:
    async def test() -> None:
        async with models(tmp_path, server, limits=Limits(total=1)) as asking:
            with pytest.raises(CostLimitExceeded):
                await asking.complete(provider, MODELS[provider], Prompt(text="hi"), SCOPE)
        async with models(tmp_path, server, mode="replay") as asking:
            with pytest.raises(ReplayMissError):
                await asking.complete(provider, MODELS[provider], Prompt(text="hi"), SCOPE)

    asyncio.run(test())
    assert server.requests == []


def test_a_replay_of_a_failure_waits_for_nobody(tmp_path: Path, server: Server) -> None:
    async def test(mode: str) -> tuple[str, int]:
        async with models(tmp_path, server, mode=mode) as asking:
            completion = await asking.complete("openai", "gpt-5.5", Prompt(text="[[script:overloaded]]"), SCOPE)
            return completion.facts.outcome, len(completion.calls)

    assert asyncio.run(test("live")) == ("provider_error", 13)
    assert asyncio.run(test("replay")) == ("provider_error", 1)


def test_clients_hold_no_key_and_take_nothing_from_the_environment(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/elsewhere")
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(name, "sk-from-the-environment")

    async def test() -> None:
        async with open_door(tmp_path, server.url) as door:
            one, two = openai_client(door.transport), anthropic_client(door.transport)
            assert (str(one.base_url), str(two.base_url)) == (
                "https://api.openai.com/v1/",
                "https://api.anthropic.com",
            )
            assert "sk-from" not in repr([one.auth_headers, two.auth_headers])
            assert (one.max_retries, two.max_retries) == (0, 0)
            await one.close()
            await two.close()
            await door.ask("the transport is still open")
        async with models(tmp_path, server) as asking:
            for provider, model in MODELS.items():
                await asking.complete(provider, model, Prompt(text="hi"), SCOPE)

    asyncio.run(test())
    assert {request.key for request in server.requests} == {"real-key"}
    assert "sk-from-the-environment" not in repr(server.requests)
