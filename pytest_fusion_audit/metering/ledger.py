"""The ledger: whether the next call fits, under the caps of the run.

    spent + reserved never exceeds the cap of the run, the cap of a phase or, outside phase 6, the cap minus the
    reserve.

What the words mean stands in `metering.balances`. Amounts are integer micro-dollars.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pytest_fusion_audit.metering.balances import Account, Balances
from pytest_fusion_audit.metering.limits import CostLimitExceeded, Limits, RunStoppedError, bounds
from pytest_fusion_audit.metering.waiting import Line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_fusion_audit.metering.journal import Journal, Row

__all__ = ["Account", "Balances", "CostLimitExceeded", "Ledger", "Limits", "RunStoppedError", "now_utc"]
_BURY_S = 1.0  # how often a waiting caller asks whether the owners of what it waits for are alive
_PATIENCE_S = 60.0  # how long a call outside of turns waits when only turns, and no call in flight, could make room


class Ledger:
    """Admission under the caps, over one journal that all workers of a run share.

    Args:
        journal: the run's journal; its rows must reach ``balances.take``.
        balances: the state that the journal feeds.
        limits: caps of the run.
        owner: name of this process, for finding reservations of dead ones.
        dead: whether the process of that name has ended.
        unattended: micro-dollars reserved for batches that no living process looks after, of one phase or (None) of
            all: nobody waits for those.
    """

    def __init__(
        self,
        journal: Journal,
        balances: Balances,
        limits: Limits,
        owner: str,
        *,
        dead: Callable[[str], bool] = lambda _: False,
        unattended: Callable[[str | None], int] = lambda _: 0,
    ) -> None:
        self.journal = journal
        self.balances = balances
        self.limits = limits
        self.owner = owner
        self._dead = dead
        self._unattended = unattended
        #: Turns (by their hold) in which this process refused a call for want of money: their results are censored.
        self.refused: dict[str, CostLimitExceeded] = {}
        self._failed: str | None = None
        self._buried = time.monotonic()
        # Three lines: a call of a turn must never wait behind a new turn that waits for that turn to end.
        self._turn_calls, self._calls, self._turns = Line(), Line(), Line()

    def bury(self) -> None:
        """Take over from processes that ended: their open calls become orphans, their holds are released."""
        with self.journal.exclusively():
            open_, holds = self.balances.open.values(), self.balances.holds.values()
            owners = {call.owner for call in open_} | {hold.owner for hold in holds}
            dead = {owner for owner in owners if self._dead(owner)}
            rows: list[Row] = [
                {"e": "orphan", "id": call.id, "reason": "its process ended", "t": now_utc()}
                for call in open_
                if call.owner in dead
            ]
            rows += [{"e": "release", "id": hold.id} for hold in holds if hold.owner in dead]
            if rows:
                self.journal.append(rows)
        self._buried = time.monotonic()

    def try_reserve(self, phase: str, amount: int, facts: Mapping[str, Any], hold: str | None = None) -> Row | None:
        """Reserve ``amount`` if it fits now; None when it may fit after open reservations have settled.

        Raises:
            CostLimitExceeded: it does not fit and nothing is open that could make room.
            RunStoppedError: the run was stopped.
            OSError: the row could not be written; nothing is reserved.
        """
        with self.journal.exclusively():
            self._check_stopped()
            held = self.balances.holds.get(hold or "")
            needed = max(0, amount - held.left) if held is not None else amount
            if not self._fits(phase, needed, within_turn=held is not None):
                return None
            row = {"e": "reserve", "id": uuid4().hex, "phase": phase, "reserved": amount, "owner": self.owner}
            if held is not None:
                row["hold"] = held.id
            row |= facts
            row["end"] = self.journal.append([row])
            return row

    async def reserve(self, phase: str, amount: int, facts: Mapping[str, Any], hold: str | None = None) -> Row:
        """Reserve ``amount``, waiting while open reservations may still make room; durable when it returns.

        Raises:
            CostLimitExceeded: it can never fit. RunStoppedError: the run was stopped. Nothing was sent.
        """
        patience = _Patience()

        def attempt() -> Row | None:
            row = self.try_reserve(phase, amount, facts, hold)
            if row is None:
                self._look_around()
                if hold not in self.balances.holds:
                    self._lose_patience(phase, amount, patience)
            return row

        try:
            row = await (self._calls if hold is None else self._turn_calls).served(attempt)
        except CostLimitExceeded as refusal:
            if hold is not None:
                self.refused[hold] = refusal
            raise
        try:
            await self.journal.durable(row["end"])
        except BaseException:
            # Cancelled, or the disk failed, before anything was sent: nothing of it may stay reserved.
            with suppress(OSError):
                self.cancel(row)
            raise
        return row

    def reserve_together(
        self,
        phase: str,
        wanted: Sequence[tuple[int, Row]],
        before: Callable[[Sequence[Row]], Sequence[Row]],
    ) -> list[Row]:
        """Reserve the first calls of a list, as many as fit now, in one piece of the journal.

        Args:
            phase: whose money it is.
            wanted: amount and facts of each call, its ``owner`` among them.
            before: rows to write before those of the calls it is given.

        Returns:
            The rows of the calls, not durable yet (`Journal.durable` with their ``end``); none when the first may fit
            after open reservations have settled.

        Raises:
            CostLimitExceeded, RunStoppedError, OSError: as `try_reserve`; nothing is reserved.
        """
        with self.journal.exclusively():
            self._check_stopped()
            if not wanted or not self._fits(phase, wanted[0][0], within_turn=False):
                return []
            room = min(cap - account.committed for _, cap, account in bounds(self.limits, self.balances, phase))
            rows: list[Row] = []
            for amount, facts in wanted:
                room -= amount
                if room < 0:
                    break
                rows.append({"e": "reserve", "id": uuid4().hex, "phase": phase, "reserved": amount} | facts)
            end = self.journal.append([*before(rows), *rows])
            for row in rows:
                row["end"] = end
            return rows

    def close_together(self, rows: Sequence[Row]) -> int:
        """Write settle and orphan rows of calls that are still open, in one piece; the others add nothing.

        Returns the offset to make durable before anyone reads an answer.
        """
        with self.journal.exclusively():
            end = self.journal.append([row for row in rows if row["id"] in self.balances.open])
        self._wake()
        return end

    async def hold(self, phase: str, amount: int) -> str:
        """Reserve the worst case of a turn; `release` gives back what its calls did not draw.

        Raises:
            CostLimitExceeded: the turn can never fit. RunStoppedError: the run was stopped.
        """

        def attempt() -> str | None:
            hold = self.try_hold(phase, amount)
            if hold is None:
                self._look_around()
            return hold

        return await self._turns.served(attempt)

    def try_hold(self, phase: str, amount: int) -> str | None:
        """Hold ``amount`` if it fits now; None when it may fit later. Raises as `hold`."""
        with self.journal.exclusively():
            self._check_stopped()
            if not self._fits(phase, amount, within_turn=False):
                return None
            hold = uuid4().hex
            self.journal.append([{"e": "hold", "id": hold, "phase": phase, "amount": amount, "owner": self.owner}])
            return hold

    def cancel(self, reservation: Row) -> None:
        """Give back the reservation of a call that was not sent."""
        self.settle(reservation, 0, estimated=False, facts={"unsent": True})

    def release(self, hold: str) -> None:
        """End a turn's hold."""
        with self.journal.exclusively():
            if hold in self.balances.holds:
                self.journal.append([{"e": "release", "id": hold}])
        self._wake()

    def settle(self, reservation: Row, charged: int, *, estimated: bool, facts: Mapping[str, Any]) -> int:
        """Charge a call. Returns the journal offset to make durable before anyone reads the answer.

        Args:
            reservation: the row that `reserve` returned.
            charged: micro-dollars that count from now on.
            estimated: True when the usage is unknown and the reservation stays charged.
            facts: what the journal keeps of the answer.
        """
        row = {
            "e": "settle",
            "id": reservation["id"],
            "phase": reservation["phase"],
            "charged": charged,
            "estimated": estimated,
            **facts,
        }
        with self.journal.exclusively():
            end = self.journal.append([row])
        self._wake()
        return end

    def orphan(self, call: str, reason: str) -> int:
        """Keep a call charged that was sent and will not be settled; returns the offset to make durable."""
        with self.journal.exclusively():
            end = self.journal.append([{"e": "orphan", "id": call, "reason": reason}])
        self._wake()
        return end

    def stop(self, reason: str) -> None:
        """Refuse every further call of this run, in all processes."""
        with self.journal.exclusively():
            if self.balances.stopped is None:
                self.journal.append([{"e": "stop", "reason": reason}])
        self._wake()

    def fail(self, reason: str) -> None:
        """Refuse every further call of this process, when the journal itself cannot be written any more."""
        self._failed = reason
        self._wake()

    def go_on(self) -> None:
        """Take back a `stop`: somebody looked at it and started a new session."""
        with self.journal.exclusively():
            if self.balances.stopped is not None:
                self.journal.append([{"e": "go"}])

    def balance(self) -> Account:
        """Money of the whole run, other processes' rows included."""
        self.journal.refresh()
        return self.balances.total()

    def left(self, phase: str) -> int:
        """Micro-dollars that a call of this phase could still take; below 0 when a cap was lowered.

        Raises:
            PhaseNotOpenError: see `bounds`.
        """
        self.journal.refresh()
        return min(cap - account.committed for _, cap, account in bounds(self.limits, self.balances, phase))

    def _fits(self, phase: str, needed: int, *, within_turn: bool) -> bool:
        """Whether it fits now; False when waiting may help.

        A call of a turn that is going on waits for calls in flight only, never for the holds of other turns: two turns
        that outgrew their holds would otherwise wait for each other.
        """
        for name, cap, account in bounds(self.limits, self.balances, phase):
            if account.committed + needed <= cap:
                continue
            pending = account.reserved if within_turn else account.reserved + account.held
            if pending:
                pending -= self._unattended(phase if name == f"the cap of phase {phase}" else None)
            if not pending:
                raise CostLimitExceeded.at(name, cap, account, needed, phase)
            return False
        return True

    def _check_stopped(self) -> None:
        reason = self._failed or self.balances.stopped
        if reason is not None:
            raise RunStoppedError(f"the run was stopped: {reason}; nothing was sent")

    def _lose_patience(self, phase: str, amount: int, patience: _Patience) -> None:
        """Refuse a call outside of turns that waits for turns only, in which nothing has been in flight for long.

        It may belong to one of them unknown to us (a gateway's call that could not be attributed): then that turn waits
        for the call, and the call for the turn.
        """
        for name, cap, account in bounds(self.limits, self.balances, phase):
            if account.committed + amount > cap:
                if account.reserved or not account.held:
                    patience.since = None
                elif patience.over():
                    raise CostLimitExceeded.at(name, cap, account, amount, phase)
                return

    def _look_around(self) -> None:
        if time.monotonic() - self._buried > _BURY_S:
            self.bury()

    def _wake(self) -> None:
        for line in (self._turn_calls, self._calls, self._turns):
            line.wake()


@dataclass(slots=True)
class _Patience:
    """How long a caller has waited without anything in flight."""

    since: float | None = None

    def over(self) -> bool:
        now = time.monotonic()
        if self.since is None:
            self.since = now
        return now - self.since > _PATIENCE_S


def now_utc() -> str:
    """UTC time for journal rows, to the millisecond. Order is the order of rows: a clock may go backwards."""
    seconds = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"
