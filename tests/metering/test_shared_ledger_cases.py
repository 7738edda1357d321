"""Cases 7, 8, 12, 15 and 17 of ``../shared/cases`` through the whole door, on the cases' own values."""

from __future__ import annotations

import asyncio
import hashlib
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fusion_audit.errors import EvidenceError
from pytest_fusion_audit.metering.balances import Balances
from pytest_fusion_audit.metering.calls import Calls
from pytest_fusion_audit.metering.ledger import CostLimitExceeded, Limits
from pytest_fusion_audit.metering.scope import Scope
from pytest_fusion_audit.metering.store import ReplayMissError, key_of
from tests.metering.doors import FlatPrices, journal_rows, open_door
from tests.metering.servers import Reply, Server, running_server
from tests.metering.workers import ask_in_threads, together
from tests.shared_data import shared

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def server():
    with running_server() as running:
        yield running


def case(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shared(f"cases/{name}.json").read_text(encoding="utf-8"))
    return found


def micro(usd: str) -> int:
    return int(Decimal(usd) * 1_000_000)


def most_committed(folder: Path) -> int:
    """The most that was ever spent, reserved and held together."""
    balances, most = Balances(), 0
    for row in journal_rows(folder):
        balances.take(row)
        most = max(most, balances.total().committed)
    return most


@pytest.mark.parametrize("how", ["8 tasks of one loop", "4 processes x 2 threads"])
def test_case_7(tmp_path: Path, server: Server, how: str) -> None:
    given, expected = (found := case("07-concurrent-calls-pass-one-check"))["input"], found["expected"]
    limits = Limits(total=micro(given["cap_usd"]))
    spent = Calls(tmp_path, limits, "before")
    row = spent.ledger.try_reserve("3", micro(given["spent_usd"]), {})
    spent.ledger.settle(row, micro(given["spent_usd"]), estimated=False, facts={})
    spent.close()

    if how.startswith("4"):
        outcomes = [each for process in together(4, ask_in_threads, tmp_path, server.url, limits) for each in process]
    else:
        prices = FlatPrices(micro(given["reserve_usd_each"]), micro(given["actual_usd_each"]))

        async def test() -> list[str]:
            async with open_door(tmp_path, server.url, limits=limits, prices=prices) as door:

                async def caller(number: int) -> str:
                    try:
                        await door.ask(str(number))
                    except CostLimitExceeded:
                        return "not_run_budget"
                    return "answered"

                return await asyncio.gather(*(caller(n) for n in range(given["callers_at_barrier"])))

        outcomes = asyncio.run(test())

    assert len(server.requests) == expected["http_requests_sent"]
    assert outcomes.count(expected["refused_tasks_status"]) == expected["refused_before_send"]
    reader = Calls.reading(tmp_path)
    assert reader.ledger.balance().committed == micro(expected["final_spent_usd"])
    assert most_committed(tmp_path) == micro(expected["max_committed_usd_ever"])


def case_8_lines() -> list[bytes]:
    """The case's ledger in our words; its torn last line as it is, with half a character at its end."""
    *whole, torn = shared("cases/08-torn-last-line-mid-utf8.txt").read_bytes().split(b"\n")
    lines = [b'{"schema":"fusion-calls/1"}\n']
    for line in whole:
        row = json.loads(line)
        made = {"e": row["event"], "id": row["call_id"], "phase": row["phase"], "owner": "gone"}
        amount = micro(row["usd"])
        made |= {"reserved": amount} if row["event"] == "reserve" else {"charged": amount, "estimated": False}
        lines.append(json.dumps(made).encode() + b"\n")
    return [*lines, torn.replace(b'"v":1,"event":"settle","call_id"', b'"e":"settle","id"')]


def test_case_8(tmp_path: Path) -> None:
    expected = json.loads(shared("cases/08-torn-last-line-mid-utf8.expected.json").read_text())["expected"]
    lines = case_8_lines()
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(b"".join(lines))
    assert len(journal_rows(tmp_path)) == expected["good_rows"]
    calls = Calls(tmp_path, Limits(total=10**9), "after the kill")
    assert (tmp_path / "torn.bin").read_bytes() == lines[-1] + b"\n"
    account = calls.ledger.balance()
    assert account.settled == micro(expected["settled_usd"]["c-001"])
    assert account.orphaned == micro(expected["open_reservations_usd"]["c-002"])
    assert account.committed == micro(expected["committed_usd"])
    before = len(journal_rows(tmp_path))
    calls.ledger.try_reserve("3", 7, {})
    assert calls.ledger.balance().committed == micro(expected["committed_usd"]) + 7
    assert len(journal_rows(tmp_path)) == before + 1
    calls.close()

    for folder, content, trouble in (
        ("middle", b"".join([*lines[:2], b'{"v":1,"event":\n', *lines[2:]]), "line 3: damaged"),
        ("blank", b"".join([*lines[:-1], b"\n\n"]), None),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "journal.jsonl").write_bytes(content)
        if trouble is not None:
            with pytest.raises(EvidenceError, match=f"{trouble}.*nothing was sent"):
                Calls(tmp_path / folder, Limits(total=10**9), "s")
        else:
            blank = Calls(tmp_path / folder, Limits(total=10**9), "s")
            assert blank.ledger.balance().committed == micro(expected["committed_usd"])
            blank.close()


def case_12_key(variant: dict[str, Any]) -> str:
    """The key of a call as our phases state it: what stands in the request there, the rest in the scope."""
    in_request = ("model", "messages", "temperature", "reasoning_effort", "max_completion_tokens", "seed")
    body = {name: variant[name] for name in variant if name in in_request and variant[name] is not None}
    others = ("candidate_chars_kept", "candidate_hashes", "judge_prompt_sha")
    detail = json.dumps({name: variant[name] for name in others}, sort_keys=True)
    scope = Scope(
        phase="4",
        arm=f"compound:{variant['policy']}",
        stage=variant["phase"],
        task="t",
        sample=variant["sample_index"],
        detail=detail,
    )
    return key_of(f"{variant['base_url']}/chat/completions", json.dumps(body).encode(), scope).digest


def test_case_12_keys() -> None:
    given, expected = (found := case("12-cache-key-must-see-every-cause"))["input"], found["expected"]
    base = case_12_key(given["base"])
    keys = {base} | {case_12_key(variant) for variant in given["must_change_key"].values()}
    assert len(keys) == expected["distinct_keys"]
    # Concurrency, key, cap and time-out are nowhere in a request or a scope; the order of fields does not count.
    assert case_12_key(dict(reversed(given["base"].items()))) == base


def test_case_12_samples_replay_in_order(tmp_path: Path, server: Server) -> None:
    async def test(mode: str, order: list[int]) -> list[str]:
        async with open_door(tmp_path, server.url, mode=mode) as door:
            scopes = [Scope(phase="3", task="t", sample=sample) for sample in order]
            return [(await door.ask("hi", scope)).json()["choices"][0]["message"]["content"] for scope in scopes]

    server.script(*(Reply(text=text) for text in "ABC"))
    assert asyncio.run(test("live", [0, 1, 2])) == ["A", "B", "C"]
    assert asyncio.run(test("replay", [0, 1, 2])) == ["A", "B", "C"]
    assert asyncio.run(test("replay", [2, 0, 1])) == ["C", "A", "B"]


def test_case_15(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = case("15-replay-must-not-reach-the-network")["input"]["stored"]
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    calls = [(stage, *name.partition("|")[::2]) for stage, names in stored.items() for name in names]

    async def ask(mode: str, wanted: list[tuple[str, str, str]]) -> None:
        async with open_door(tmp_path, server.url, mode=mode) as door:
            for stage, task, member in wanted:
                scope = Scope(phase="3", stage=stage, task=task, arm=f"member:{member}" if member else "compound")
                await door.ask(f"{stage} {task}", scope)

    asyncio.run(ask("live", calls))
    journal = tmp_path / "journal.jsonl"
    before = hashlib.sha256(journal.read_bytes()).hexdigest()
    sent = len(server.requests)
    with pytest.raises(ReplayMissError) as miss:
        asyncio.run(ask("replay", [*calls, ("judge", "t2", "")]))
    assert all(word in str(miss.value) for word in ("'t2'", "judge", "phase 3", "gpt-5.5"))
    assert hashlib.sha256(journal.read_bytes()).hexdigest() == before
    assert len(server.requests) == sent

    asyncio.run(ask("live", [("judge", "t2", "")]))  # the entry restored
    before = hashlib.sha256(journal.read_bytes()).hexdigest()
    asyncio.run(ask("replay", [*calls, ("judge", "t2", "")]))
    assert hashlib.sha256(journal.read_bytes()).hexdigest() == before


def test_case_17_is_paid_for_before_it_is_read(tmp_path: Path, server: Server) -> None:
    given, expected = (found := case("17-first-content-block-is-not-the-text"))["input"], found["expected"]
    outcomes = {"ok": "answered"}

    async def test() -> None:
        async with open_door(tmp_path, server.url) as door:
            for name, message in given["messages"].items():
                body = {"model": "claude-opus-4-8", "max_tokens": 40, "messages": [{"role": "user", "content": name}]}
                server.script(
                    Reply(body={**message, "type": "message", "model": "claude-opus-4-8", "usage": given["usage_each"]})
                )
                await door.post("/v1/messages", body)
            rows = dict(zip(given["messages"], door.rows("settle"), strict=True))
            assert {name: row["charged"] for name, row in rows.items()} == dict.fromkeys(rows, 10 + 20 * 10)
            assert {name: row["outcome"] for name, row in rows.items()} == {
                name: outcomes.get(status, status) for name, status in expected["status"].items()
            }

    asyncio.run(test())
