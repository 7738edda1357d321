"""The door of a session: preflight, clients, SDKs, batches and proxy over one journal."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fusion_audit.configuration import Configuration
from pytest_fusion_audit.configuration.panel import Panel
from pytest_fusion_audit.metering.attribution import Attribution
from pytest_fusion_audit.metering.caps import caps_for
from pytest_fusion_audit.metering.clients import Prompt
from pytest_fusion_audit.metering.door import Door, open_door
from pytest_fusion_audit.metering.keys import PLACEHOLDER
from pytest_fusion_audit.metering.preflight import preflight
from pytest_fusion_audit.metering.prices import UnknownPriceError
from pytest_fusion_audit.metering.questions import Question, ask_all
from pytest_fusion_audit.metering.retry import ConfigError
from pytest_fusion_audit.metering.scope import HEADER
from pytest_fusion_audit.metering.store import ReplayMissError
from tests.metering.batch_runs import ManualClock
from tests.metering.servers import BatchScript, Reply, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_fusion_audit.metering.door import OpenDoor
    from tests.metering.servers import Server

USD = 1_000_000
ENVIRON = {"OPENAI_API_KEY": "sk-proj-REALKEYofOPENAI0123456789", "ANTHROPIC_API_KEY": "sk-ant-REALKEY0123456789"}


@pytest.fixture
def server() -> Iterator[Server]:
    with running_server() as running:
        yield running


def panel_at(url: str, **more: Any) -> Panel:
    return Panel.model_validate(
        {
            "endpoints": [
                {"id": "gpt", "provider": "openai", "model": "gpt-5.5", "base_url": url, **more},
                {"id": "opus", "provider": "anthropic", "model": "claude-opus-4-8", "base_url": url},
            ],
            "panel_models": ["gpt", "opus"],
            "judge_model": "gpt",
            "synthesizer_model": "opus",
        }
    )


def opened(folder: Path, panel: Panel, *, cap: int = 5 * USD, replay: bool = False, session: str = "s") -> Door:
    configuration = Configuration()
    checked = preflight(configuration, panel, ENVIRON)
    door = open_door(
        folder,
        checked,
        caps_for(cap),
        session=session,
        configuration=configuration,
        panel=panel,
        replay=replay,
    )
    door.clock = ManualClock()  # batches of the test server are ready at once
    return door


@pytest.fixture
def door(tmp_path: Path, server: Server) -> Iterator[Door]:
    made = opened(tmp_path, panel_at(server.url))
    yield made
    made.close()


def questions(door: Door, *, count: int = 3) -> list[Question]:
    phase = door.budget.phase("3")
    return [
        Question(
            endpoint=endpoint,
            prompt=Prompt(text=f"task {number}"),
            scope=phase.scope(arm=f"member:{endpoint}", stage="panel", task=f"t{number}"),
            asked={"max_output_tokens": 50},
        )
        for number in range(count)
        for endpoint in ("gpt", "opus")
    ]


@pytest.mark.parametrize("prefer", ["standard", "flex", "batch"])
def test_questions_go_as_preferred_and_are_paid_once(tmp_path: Path, server: Server, door: Door, prefer: Any) -> None:
    server.batches.script = BatchScript(polls=0, reverse=True)

    async def work(open_door: OpenDoor) -> list[Any]:
        return await ask_all(open_door, questions(door), prefer=prefer)

    answers = door.run(work)
    assert [(answer.status, answer.completion.facts.outcome) for answer in answers] == [("answered", "answered")] * 6
    assert [answer.completion.facts.model for answer in answers] == ["gpt-5.5", "claude-opus-4-8"] * 3
    spent = door.budget.spent
    assert spent > 0
    assert door.budget.reserved == 0
    paid = len(server.billed())
    assert paid == 6
    door.close()
    # A resume with another wish finds every answer; a replay too, and writes nothing.
    again = opened(tmp_path, panel_at(server.url), session="later")

    async def other(open_door: OpenDoor) -> list[Any]:
        return await ask_all(open_door, questions(again), prefer="standard")

    assert all(answer.completion.stored for answer in again.run(other))
    assert (again.budget.spent, len(server.billed())) == (spent, paid)
    again.close()
    replayed = opened(tmp_path, panel_at(server.url), replay=True)

    async def from_store(open_door: OpenDoor) -> list[Any]:
        return await ask_all(open_door, questions(replayed), prefer=prefer)

    texts = [answer.completion.facts.text for answer in replayed.run(from_store)]
    assert texts == [answer.completion.facts.text for answer in answers]


def test_a_batch_costs_half(tmp_path: Path, server: Server) -> None:
    spent = {}
    for prefer in ("standard", "batch"):
        door = opened(tmp_path / prefer, panel_at(server.url))

        async def work(open_door: OpenDoor, door: Door = door, prefer: Any = prefer) -> list[Any]:
            return await ask_all(open_door, questions(door, count=4), prefer=prefer)

        door.run(work)
        usage = [row["usage"] for row in _rows(door) if row.get("e") == "settle"]
        spent[prefer] = (door.budget.spent, sum(each["input"] for each in usage), len(usage))
        door.close()
    assert spent["standard"][1:] == spent["batch"][1:]
    assert 0 <= spent["batch"][0] - spent["standard"][0] / 2 <= 8  # one rounding up per call


def _rows(door: Door) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (door.calls.folder / "journal.jsonl").read_text().splitlines()]


def test_without_room_at_the_flex_tier_the_standard_one_answers(server: Server, door: Door) -> None:
    server.script(Reply(kind="rate_limit"))

    async def work(open_door: OpenDoor) -> list[Any]:
        return await ask_all(open_door, questions(door, count=1)[:1], prefer="flex")

    [answer] = door.run(work)
    assert (answer.completion.facts.outcome, len(answer.completion.calls)) == ("answered", 2)
    tiers = [json.loads(request.body).get("service_tier") for request in server.requests]
    assert tiers == ["flex", None]
    assert next(row["charged"] for row in _rows(door) if row.get("e") == "settle") == 0


@pytest.mark.parametrize(("prefer", "cap"), [("standard", 20_000), ("batch", 10_000)])
def test_what_does_not_fit_is_censored_and_not_sent(tmp_path: Path, server: Server, prefer: Any, cap: int) -> None:
    server.batches.script = BatchScript(polls=0)
    door = opened(tmp_path, panel_at(server.url), cap=cap)

    async def work(open_door: OpenDoor) -> list[Any]:
        return await ask_all(open_door, questions(door, count=6), prefer=prefer)

    answers = door.run(work)
    statuses = [answer.status for answer in answers]
    assert 0 < statuses.count("answered") == len(server.billed()) < 12
    assert statuses.count("censored_budget") == 12 - statuses.count("answered")
    assert door.budget.spent <= cap * 150 // 500  # the share of phase 3
    door.close()


def test_sdk_clients_hold_no_key(server: Server, door: Door) -> None:
    phase = door.budget.phase("1")
    headers = {HEADER: phase.scope(task="t").header()}

    async def work(open_door: OpenDoor) -> tuple[str, str]:
        gpt, opus = open_door.openai("gpt"), open_door.anthropic("opus")
        assert "REALKEY" not in repr(vars(gpt)) + repr(vars(opus))
        ask: Any = [{"role": "user", "content": "hi"}]
        one = await gpt.chat.completions.create(
            model="gpt-5.5", messages=ask, max_completion_tokens=9, extra_headers=headers
        )
        two = await opus.messages.create(model="claude-opus-4-8", messages=ask, max_tokens=9, extra_headers=headers)
        return str(one.choices[0].message.content), str(two.content[0].text)  # type: ignore[union-attr]

    assert all(text.startswith("answer") for text in door.run(work))
    assert len(server.billed()) == 2
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {PLACEHOLDER}"}
    assert all(HEADER not in request.headers for request in server.requests)


def test_a_gateway_is_metered_by_its_base_urls(server: Server, door: Door) -> None:
    phase = door.budget.phase("6.2")
    with door.serving(Attribution(base=phase.scope(arm="served"))) as (url, proxy):
        for role, model in (("panel-gpt", "gpt-5.5"), ("judge", "gpt-5.5"), ("panel-opus", "claude-opus-4-8")):
            path = "messages" if role == "panel-opus" else "chat/completions"
            limit = "max_tokens" if role == "panel-opus" else "max_completion_tokens"
            body = {"model": model, "messages": [{"role": "user", "content": role}], limit: 9}
            request = urllib.request.Request(f"{url}/{role}/v1/{path}", json.dumps(body).encode(), method="POST")
            with urllib.request.urlopen(request, timeout=10) as response:
                assert response.status == 200
    assert proxy.unattributed == 0
    stages = [(row["scope"]["stage"], row["scope"].get("detail")) for row in _rows(door) if row.get("e") == "reserve"]
    assert stages == [("panel", "gpt"), ("judge", None), ("panel", "opus")]
    assert phase.spent == door.budget.spent > 0
    assert len(server.billed()) == 3


def test_a_replay_misses_by_name(tmp_path: Path, server: Server, door: Door) -> None:
    async def work(open_door: OpenDoor) -> list[Any]:
        return await ask_all(open_door, questions(door, count=1))

    door.run(work)
    door.close()
    replayed = opened(tmp_path, panel_at(server.url), replay=True)

    async def more(open_door: OpenDoor) -> list[Any]:
        return await ask_all(open_door, questions(replayed, count=2))

    with pytest.raises(ReplayMissError, match="task 't1', phase 3, stage panel"):
        replayed.run(more)
    assert len(server.billed()) == 2


# -- preflight


def test_an_unknown_model_is_refused_before_the_first_call() -> None:
    with pytest.raises(UnknownPriceError, match=r"gpt-5\.5-omega"):
        preflight(
            Configuration(),
            Panel.model_validate({"endpoints": [{"id": "gpt", "provider": "openai", "model": "gpt-5.5-omega"}]}),
            ENVIRON,
        )


def test_what_the_header_says(server: Server) -> None:
    dearer = panel_at(server.url, pricing={"input_per_1m_tokens": 6, "output_per_1m_tokens": 30})
    lines = preflight(Configuration(), dearer, ENVIRON).lines()
    assert lines[-1].startswith("run local")
    assert any(line.startswith("prices_differ gpt-5.5: input 6 in the panel file") for line in lines)
    assert not any("REALKEY" in line for line in lines)
    plain = preflight(Configuration(), None, ENVIRON).lines()
    assert plain == [
        "endpoint api.anthropic.com · anthropic · key from ANTHROPIC_API_KEY",
        "endpoint api.openai.com · openai · key from OPENAI_API_KEY",
    ]


def test_a_request_without_scope_is_refused_with_the_way_to_give_one(server: Server, door: Door) -> None:
    door.budget.phase("3")

    async def work(open_door: OpenDoor) -> None:
        ask: Any = [{"role": "user", "content": "hi"}]
        await open_door.openai("gpt").chat.completions.create(model="gpt-5.5", messages=ask, max_completion_tokens=9)

    with pytest.raises(Exception) as caught:
        door.run(work)
    said = f"{caught.value} {caught.value.__cause__}"
    assert "extra_headers={HEADER: phase.scope" in said
    assert server.requests == []


def test_a_wish_that_does_not_exist_is_named(server: Server, door: Door) -> None:
    async def work(open_door: OpenDoor) -> None:
        await ask_all(open_door, questions(door, count=1), prefer="bacth")  # type: ignore[arg-type]

    with pytest.raises(ConfigError, match="bacth"):
        door.run(work)
    assert server.requests == []


def test_what_a_turn_has_to_hold(door: Door) -> None:
    async def work(open_door: OpenDoor) -> int:
        return open_door.worst_case("gpt", Prompt(text="hi"), asked={"max_output_tokens": 100})

    assert 100 * 30 < door.run(work) < 100 * 30 + 200 * 5 * 2
