"""What a run spent: derived from the journal, always equal to it; orphans are settled by the provider's figure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.cli import main
from pytest_fusion_audit.errors import EvidenceError
from pytest_fusion_audit.metering.calls import Calls
from pytest_fusion_audit.metering.limits import Limits
from pytest_fusion_audit.metering.spend import PhaseFacts, ledger_rows, settle_orphan, spend_of, write_ledger

if TYPE_CHECKING:
    from pathlib import Path


def bought(run: Path, *calls: tuple[str, str, str, int, int | None]) -> list[str]:
    """Reserve and settle calls (phase, model, stage, reserved, charged); charged None leaves an orphan."""
    opened = Calls(run / "calls", Limits(total=10**9), "s")
    ids = []
    for phase, model, stage, reserved, charged in calls:
        row = opened.ledger.try_reserve(phase, reserved, {"model": model, "scope": {"stage": stage}, "t": "now"})
        assert row is not None
        ids.append(str(row["id"]))
        if charged is None:
            opened.ledger.orphan(str(row["id"]), "reset")
        else:
            opened.ledger.settle(row, charged, estimated=charged == reserved, facts={})
    opened.close()
    return ids


CALLS = (
    ("1", "gpt-5.5", "panel", 100, 40),
    ("3", "gpt-5.5", "panel", 100, 100),
    ("3", "claude-opus-4-8", "judge", 70, None),
    ("3", "gpt-5.5", "judge", 50, 0),
)


def test_groups_and_totals(tmp_path: Path) -> None:
    bought(tmp_path, *CALLS)
    spend = spend_of(tmp_path)
    assert (spend.total.settled, spend.total.estimated, spend.total.orphaned) == (40, 100, 70)
    assert {group: account.spent for group, account in spend.groups.items()} == {
        ("1", "gpt-5.5", "panel"): 40,
        ("3", "claude-opus-4-8", "judge"): 70,
        ("3", "gpt-5.5", "judge"): 0,
        ("3", "gpt-5.5", "panel"): 100,
    }


def test_the_ledger_is_derived_and_its_sums_run(tmp_path: Path) -> None:
    bought(tmp_path, *CALLS)
    calls = Calls(tmp_path / "calls", Limits(total=0), "s")
    facts = PhaseFacts(suite="s", tasks=2, est=500_000)
    calls.journal.durably(calls.journal.append([{"e": "phase", "phase": "3", **facts.row()}]))
    calls.close()
    write_ledger(tmp_path)
    first, second = [json.loads(line) for line in (tmp_path / "spend-ledger.jsonl").read_text().splitlines()]
    assert (first["phase"], first["measured_usd"], first["cum_usd"], first["est_usd"]) == ("1", 0.00004, 0.00004, None)
    assert (second["measured_usd"], second["cum_usd"], second["est_usd"]) == (0.00017, 0.00021, 0.5)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    calls=st.lists(
        st.tuples(
            st.sampled_from("0123456"),
            st.sampled_from(["gpt-5.5", "claude-opus-4-8"]),
            st.sampled_from(["panel", "judge"]),
            st.integers(0, 1000),
            st.none() | st.integers(0, 1000),
        ),
        max_size=12,
    )
)
def test_the_ledger_always_equals_the_journal(
    tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[str, str, str, int, int | None]]
) -> None:
    run = tmp_path_factory.mktemp("run")
    bought(run, *calls)
    spend = spend_of(run)
    expected = sum(reserved if charged is None else charged for *_, reserved, charged in calls)
    assert spend.total.spent == expected
    assert sum(account.spent for account in spend.groups.values()) == expected
    rows = ledger_rows(spend)
    assert round(sum(row["measured_usd"] for row in rows) * 1e6) == expected
    assert not rows or round(rows[-1]["cum_usd"] * 1e6) == expected


def test_an_orphan_is_settled_by_the_providers_figure(tmp_path: Path) -> None:
    ids = bought(tmp_path, *CALLS)
    assert settle_orphan(tmp_path, ids[2][:8], "0.000012", "u") == 12
    spend = spend_of(tmp_path)
    assert (spend.total.orphaned, spend.total.settled) == (0, 52)
    with pytest.raises(EvidenceError, match="no orphan begins with"):
        settle_orphan(tmp_path, ids[2][:8], "0", "u")


@pytest.mark.parametrize("dollars", ["much", "-1", "nan"])
def test_what_is_no_amount_changes_nothing(tmp_path: Path, dollars: str) -> None:
    ids = bought(tmp_path, *CALLS)
    with pytest.raises(EvidenceError, match=r"USD|dollars|below zero"):
        settle_orphan(tmp_path, ids[2], dollars, "u")
    assert spend_of(tmp_path).total.orphaned == 70


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    ids = bought(tmp_path / "audit" / "r", *CALLS)
    before = (tmp_path / "audit" / "r" / "calls" / "journal.jsonl").read_bytes()
    assert main(["spend", "audit/r", "--invoice", "0.000200"]) == 0
    said = capsys.readouterr().out
    assert "0.000210 USD spent" in said
    assert f"orphan {ids[2][:12]} phase 3 claude-opus-4-8 judge" in said
    assert "difference -0.000010 USD" in said
    assert (tmp_path / "audit" / "r" / "calls" / "journal.jsonl").read_bytes() == before
    assert main(["settle", "r", ids[2], "0"]) == 0
    assert main(["spend", "r"]) == 0
    assert "0.000140 USD spent" in capsys.readouterr().out


def test_a_run_without_journal_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["spend", "nothing"]) == 4
    assert main(["settle", "nothing", "x", "0"]) == 4
    assert capsys.readouterr().err.count("there is no run audit/nothing") == 2
    assert not (tmp_path / "audit").exists()
