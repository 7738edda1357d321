"""What a run spent by phase, model and stage, and the spend ledger: both read from the journal alone."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.errors import EvidenceError
from pytest_fusion_audit.evidence.files import write_durably
from pytest_fusion_audit.evidence.money import micro_usd, usd
from pytest_fusion_audit.metering.balances import Account, Balances
from pytest_fusion_audit.metering.calls import Calls
from pytest_fusion_audit.metering.journal import Journal, Row
from pytest_fusion_audit.metering.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Open:
    """A call whose reservation is charged or held back: an orphan, or one that is still in flight."""

    call: str
    phase: str
    stage: str
    model: str | None
    amount: int
    since: str
    orphan: bool


@dataclass(slots=True)
class Spend:
    """Money of one run in micro-dollars; ``groups`` holds an account per (phase, model, stage)."""

    total: Account
    groups: dict[tuple[str, str, str], Account]
    open: list[Open]
    stopped: str | None = None
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)  # phase -> suite, tasks, estimate, note


class _Groups:
    """One `Balances` per (phase, model, stage), fed with the rows of its calls."""

    def __init__(self) -> None:
        self.all = Balances()
        self.by_group: dict[tuple[str, str, str], Balances] = defaultdict(Balances)
        self._of_call: dict[str, tuple[str, str, str]] = {}

    def take(self, row: Row) -> None:
        self.all.take(row)
        event, call = row.get("e"), row.get("id")
        if event == "reserve":
            scope = row.get("scope") or {}
            self._of_call[str(call)] = (row["phase"], row.get("model") or "unknown", scope.get("stage", "unknown"))
        group = self._of_call.get(str(call))
        if group is not None and event in {"reserve", "settle", "orphan"}:
            # Holds are of turns and have no model; a call's own row must not draw on one here.
            self.by_group[group].take({name: value for name, value in row.items() if name != "hold"})


def spend_of(run: Path) -> Spend:
    """Read the spend of a run directory without changing a byte of it.

    Raises:
        EvidenceError: the run has no journal, or it is damaged.
    """
    folder = run / "calls"
    if not (folder / "journal.jsonl").exists():
        raise EvidenceError(f"audit/{run.name} has no call journal: nothing was billed through this tool's door")
    groups = _Groups()
    Journal(folder, groups.take, read_only=True).close()
    waiting = [(call, True) for call in groups.all.orphans.values()] + [
        (call, False) for call in groups.all.open.values()
    ]
    return Spend(
        total=groups.all.total(),
        groups={group: balances.total() for group, balances in sorted(groups.by_group.items())},
        open=[
            Open(
                call=call.id,
                phase=call.phase,
                stage=(call.row.get("scope") or {}).get("stage", "unknown"),
                model=call.row.get("model"),
                amount=call.amount,
                since=str(call.row.get("t", "unknown")),
                orphan=orphan,
            )
            for call, orphan in waiting
        ],
        stopped=groups.all.stopped,
    )


def ledger_rows(spend: Spend, facts: Mapping[str, Mapping[str, Any]], git_sha: str | None) -> list[dict[str, Any]]:
    """Lines of ``spend-ledger.jsonl`` (R2), one per phase that billed; ``cum_usd`` sums ``measured_usd`` up.

    Args:
        spend: what the journal says; measured = settled + unknown usage + orphans.
        facts: phase -> ``suite``, ``tasks``, ``est_usd`` and ``note`` as planned; what is not known is null.
        git_sha: commit the phases ran at, None when unknown.
    """
    rows: list[dict[str, Any]] = []
    running = 0
    for phase in sorted({group[0] for group in spend.groups}):
        measured = sum(account.spent for group, account in spend.groups.items() if group[0] == phase)
        running += measured
        known = facts.get(phase, {})
        rows.append(
            {
                "phase": phase,
                "suite": known.get("suite"),
                "tasks": known.get("tasks"),
                "est_usd": known.get("est_usd"),
                "measured_usd": usd(measured),
                "cum_usd": usd(running),
                "git_sha": git_sha,
                "note": known.get("note"),
            }
        )
    return rows


def write_ledger(run: Path, facts: Mapping[str, Mapping[str, Any]], git_sha: str | None) -> list[dict[str, Any]]:
    """Derive ``spend-ledger.jsonl`` of a run anew from its journal; returns its rows."""
    rows = ledger_rows(spend_of(run), facts, git_sha)
    write_durably(run / "spend-ledger.jsonl", "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows).encode())
    return rows


def settle_orphan(run: Path, call: str, dollars: str, session: str) -> int:
    """Settle an orphan at the provider's figure; returns the micro-dollars it is charged with from now on.

    Args:
        run: run directory.
        call: id of the call, or the beginning of it if only one orphan begins so.
        dollars: what the provider charged, ``0`` when it charged nothing.
        session: name of the session that holds the run meanwhile.

    Raises:
        EvidenceError: no such orphan, or no such amount. RunBusyError: a session works on this run.
    """
    try:
        charged = micro_usd(dollars)
    except ValueError as error:
        raise EvidenceError(f"{error}; give a number such as 0.0123") from None
    if charged < 0:
        raise EvidenceError(f"{dollars} is below zero; give what the provider charged")
    spend_of(run)  # a run without a journal is refused before anything is created
    calls = Calls(run / "calls", Limits(total=0), session)
    try:
        found = [orphan for orphan in calls.balances.orphans.values() if orphan.id.startswith(call)]
        if len(found) != 1:
            known = ", ".join(sorted(orphan[:12] for orphan in calls.balances.orphans)) or "none"
            what = "no orphan begins with" if not found else f"{len(found)} orphans begin with"
            raise EvidenceError(f"{what} {call!r}; orphans of this run: {known}")
        row = {"id": found[0].id, "phase": found[0].phase}
        calls.journal.durably(calls.ledger.settle(row, charged, estimated=False, facts={"by": "user"}))
    finally:
        calls.close()
    return charged


def spend_lines(run_id: str, spend: Spend, invoice: str | None = None) -> Iterator[str]:
    """The report of ``fusion-audit spend``, line by line.

    Raises:
        EvidenceError: ``invoice`` is no amount of dollars.
    """
    yield f"{'phase':<8}{'model':<28}{'stage':<14}{'calls':>7}{'measured':>13}{'estimated':>13}{'orphans':>13}"
    for (phase, model, stage), account in spend.groups.items():
        amounts = "".join(f"{usd(m):>13.6f}" for m in (account.settled, account.estimated, account.orphaned))
        yield f"{phase:<8}{model:<28}{stage:<14}{account.calls:>7}{amounts}"
    total = spend.total
    yield (
        f"audit/{run_id}: {usd(total.spent):.6f} USD spent ({usd(total.settled):.6f} by usage, "
        f"{usd(total.estimated):.6f} usage unknown, {usd(total.orphaned):.6f} orphans), "
        f"{usd(total.reserved):.6f} reserved, {usd(total.held):.6f} held"
    )
    for call in spend.open:
        what = f"{'orphan' if call.orphan else 'open'} {call.call[:12]} phase {call.phase} {call.model} {call.stage}"
        yield f"  {what}: {usd(call.amount):.6f} since {call.since}"
    if any(call.orphan for call in spend.open):
        yield f"  settle an orphan with the provider's figure: fusion-audit settle {run_id} CALL USD"
    if spend.stopped is not None:
        yield f"  stopped: {spend.stopped}"
    if invoice is not None:
        try:
            billed = micro_usd(invoice)
        except ValueError as error:
            raise EvidenceError(f"{error}; give the invoice's total such as 12.34") from None
        ours = f"ours {usd(total.spent):.6f} USD: difference {usd(billed - total.spent):+.6f} USD"
        yield f"invoice {usd(billed):.6f} USD, {ours}"
