"""What a run spent by phase, model and stage, and the spend ledger: both read from the journal alone."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.errors import EvidenceError
from pytest_fusion_audit.evidence.files import write_durably
from pytest_fusion_audit.evidence.money import micro_usd, usd
from pytest_fusion_audit.evidence.records import Phase
from pytest_fusion_audit.metering.balances import Account, Balances
from pytest_fusion_audit.metering.calls import Calls
from pytest_fusion_audit.metering.journal import Journal, Row
from pytest_fusion_audit.metering.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LEDGER = "spend-ledger.jsonl"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseFacts:
    """What a phase was opened for, as `metering.budget` writes it into the journal; unknown is None.

    Attributes:
        suite: suite it runs on.
        tasks: number of tasks planned.
        est: the plan's figure, micro-dollars.
        note: anything else.
        git_sha: commit at which it was opened.
        cap: its cap at that moment, micro-dollars.
    """

    suite: str | None = None
    tasks: int | None = None
    est: int | None = None
    note: str | None = None
    git_sha: str | None = None
    cap: int | None = None

    def row(self) -> Row:
        """The facts that are known, for the journal."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name)) is not None}

    def then(self, row: Row) -> PhaseFacts:
        """These facts after a further row of the journal; what it does not say stays."""
        return replace(self, **{name: row[name] for name in self.__slots__ if name in row})


@dataclass(slots=True)
class Spend:
    """Money of one run in micro-dollars; ``groups`` holds an account per (phase, model, stage)."""

    total: Account
    groups: dict[tuple[str, str, str], Account]
    open: list[Open]
    stopped: str | None = None
    phases: dict[str, PhaseFacts] = field(default_factory=dict)


class _Groups:
    """One `Balances` per (phase, model, stage), fed with the rows of its calls."""

    def __init__(self) -> None:
        self.all = Balances()
        self.by_group: dict[tuple[str, str, str], Balances] = defaultdict(Balances)
        self.phases: dict[str, PhaseFacts] = {}
        self._of_call: dict[str, tuple[str, str, str]] = {}

    def take(self, row: Row) -> None:
        self.all.take(row)
        event, call = row.get("e"), row.get("id")
        if event == "phase":
            self.phases[row["phase"]] = self.phases.get(row["phase"], PhaseFacts()).then(row)
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
    if not run.exists():
        raise EvidenceError(f"there is no run audit/{run.name} below this folder; go to the one that holds audit/")
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
        phases=groups.phases,
    )


def phase_records(spend: Spend) -> list[Phase]:
    """Evidence of what each phase cost: a line of the spend ledger each, in the order of the phases."""
    records: list[Phase] = []
    running = 0
    for line, phase in enumerate(sorted({group[0] for group in spend.groups}), 1):
        measured = sum(account.spent for group, account in spend.groups.items() if group[0] == phase)
        running += measured
        facts = spend.phases.get(phase, PhaseFacts())
        records.append(
            Phase(
                phase=phase,
                suite=facts.suite,
                tasks=facts.tasks,
                est_micro_usd=facts.est,
                measured_micro_usd=measured,
                cum_micro_usd=running,
                git_sha=facts.git_sha,
                note=facts.note,
                line=line,
                source=LEDGER,
            )
        )
    return records


def ledger_rows(spend: Spend) -> list[dict[str, Any]]:
    """Lines of ``spend-ledger.jsonl`` (R2), one per phase that billed.

    ``measured_usd`` = settled + unknown usage + orphans; ``cum_usd`` is its running sum; unknown is null.
    """
    return [
        {
            "phase": phase.phase,
            "suite": phase.suite,
            "tasks": phase.tasks,
            "est_usd": None if phase.est_micro_usd is None else usd(phase.est_micro_usd),
            "measured_usd": usd(phase.measured_micro_usd or 0),
            "cum_usd": usd(phase.cum_micro_usd or 0),
            "git_sha": phase.git_sha,
            "note": phase.note,
        }
        for phase in phase_records(spend)
    ]


def write_ledger(run: Path) -> Spend:
    """Derive ``spend-ledger.jsonl`` of a run anew from its journal; returns what the journal says."""
    spend = spend_of(run)
    text = "".join(json.dumps(row, sort_keys=True) + "\n" for row in ledger_rows(spend))
    write_durably(run / LEDGER, text.encode())
    return spend


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
    calls = Calls(run / "calls", Limits(total=0), session, goes_on=False)
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
    write_ledger(run)
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
