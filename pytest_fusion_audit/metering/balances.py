"""What was spent, what is reserved, what is held: a pure function of the rows of the journal.

A call is reserved at its worst case before it is sent and settled at its price after it was answered. A call that was
sent and never settled stays charged as an orphan. A hold reserves the worst case of a whole turn; the calls of the turn
draw on it, and what they do not need goes back to it. Amounts are integer micro-dollars.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_fusion_audit.metering.journal import Row


@dataclass(slots=True)
class Account:
    """Money of one phase: settled by a response's usage, estimated where usage was unknown, orphaned, still open."""

    settled: int = 0
    estimated: int = 0
    orphaned: int = 0
    reserved: int = 0
    held: int = 0
    calls: int = 0

    @property
    def spent(self) -> int:
        """What counts as spent: settled + estimated + orphaned."""
        return self.settled + self.estimated + self.orphaned

    @property
    def committed(self) -> int:
        """Spent + reserved + held."""
        return self.spent + self.reserved + self.held


@dataclass(slots=True)
class Reservation:
    """A call between its reservation and its settlement."""

    id: str
    phase: str
    amount: int
    owner: str
    hold: str | None
    row: Row


@dataclass(slots=True)
class Hold:
    """Worst case of a turn, of which its calls draw."""

    id: str
    phase: str
    left: int
    owner: str


class Balances:
    """State of the money after a number of journal rows; rows come in file order from `Journal`."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = defaultdict(Account)
        self.open: dict[str, Reservation] = {}
        self.orphans: dict[str, Reservation] = {}
        self.holds: dict[str, Hold] = {}
        self.stopped: str | None = None

    def take(self, row: Row) -> None:
        """Account for one row."""
        event = row.get("e")
        if event == "reserve":
            self._reserve(row)
        elif event == "settle":
            self._settle(row)
        elif event == "orphan":
            reservation = self.open.pop(row["id"], None)
            if reservation is not None:
                account = self.accounts[reservation.phase]
                account.reserved -= reservation.amount
                account.orphaned += reservation.amount
                self.orphans[reservation.id] = reservation
        elif event == "hold":
            self.holds[row["id"]] = Hold(row["id"], row["phase"], row["amount"], row["owner"])
            self.accounts[row["phase"]].held += row["amount"]
        elif event == "release":
            hold = self.holds.pop(row["id"], None)
            if hold is not None:
                self.accounts[hold.phase].held -= hold.left
        elif event == "stop":
            self.stopped = row["reason"]
        elif event == "go":
            self.stopped = None

    def _reserve(self, row: Row) -> None:
        account = self.accounts[row["phase"]]
        amount = row["reserved"]
        hold = self.holds.get(row.get("hold") or "")
        if hold is not None:
            drawn = min(hold.left, amount)
            hold.left -= drawn
            account.held -= drawn
        account.reserved += amount
        account.calls += 1
        self.open[row["id"]] = Reservation(row["id"], row["phase"], amount, row["owner"], row.get("hold"), row)

    def _settle(self, row: Row) -> None:
        reservation = self.open.pop(row["id"], None)
        if reservation is not None:
            account = self.accounts[reservation.phase]
            account.reserved -= reservation.amount
            hold = self.holds.get(reservation.hold or "")
            if hold is not None:  # what the call did not need goes back to the turn that it belongs to
                back = max(0, reservation.amount - row["charged"])
                hold.left += back
                account.held += back
        else:
            orphan = self.orphans.pop(row["id"], None)
            if orphan is None:
                return  # a settlement read twice adds nothing
            account = self.accounts[orphan.phase]
            account.orphaned -= orphan.amount
        if row.get("estimated"):
            account.estimated += row["charged"]
        else:
            account.settled += row["charged"]

    def total(self, phases: Iterable[str] | None = None) -> Account:
        """Sum over phases; None sums all."""
        total = Account()
        for phase, account in self.accounts.items():
            if phases is None or phase in phases:
                total.settled += account.settled
                total.estimated += account.estimated
                total.orphaned += account.orphaned
                total.reserved += account.reserved
                total.held += account.held
                total.calls += account.calls
        return total
