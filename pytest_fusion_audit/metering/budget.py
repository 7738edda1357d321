"""The budget of a run: its cap, what is spent, and the only door to the money of a phase.

A phase has to be opened (`Budget.phase`) before a call of it is let through: that is the moment at which its cap is
fixed from what the other phases left (procedure R2), and it is written into the journal. All amounts are integer
micro-dollars.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_fusion_audit.errors import FusionAuditError
from pytest_fusion_audit.metering.caps import CAP_OF_PHASE, paid_together
from pytest_fusion_audit.metering.ledger import now_utc
from pytest_fusion_audit.metering.limits import FINAL_PHASE
from pytest_fusion_audit.metering.scope import Scope
from pytest_fusion_audit.metering.spend import PhaseFacts, ledger_rows, spend_of
from pytest_fusion_audit.metering.turns import Turn, TurnResult, random_order, run_turns, turn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from contextlib import AbstractAsyncContextManager

    from pytest_fusion_audit.metering.balances import Account
    from pytest_fusion_audit.metering.calls import Calls
    from pytest_fusion_audit.metering.caps import Caps

T = TypeVar("T")


class UnknownPhaseError(FusionAuditError):
    """A phase that no audit has."""


class Budget:
    """Money of one run, shared by all processes that work on it.

    Args:
        calls: the calls of the run. Read-only ones (a replay) open every phase and write nothing.
        caps: what was granted, and its shares.
        seed: seed of the order of tasks.
        git_sha: commit that the session runs at, None when unknown.
    """

    def __init__(self, calls: Calls, caps: Caps, *, seed: int = 0, git_sha: str | None = None) -> None:
        self._calls = calls
        self._caps = caps
        self._git_sha = git_sha
        self.seed = seed
        calls.ledger.limits = replace(calls.ledger.limits, total=caps.total, reserve=caps.reserve, opened_only=True)

    @property
    def cap(self) -> int:
        """The cap of the run, over all its resumes."""
        return self._caps.total

    @property
    def spent(self) -> int:
        """What counts as spent: settled + usage unknown + orphans, of the whole run."""
        return self._calls.ledger.balance().spent

    @property
    def reserved(self) -> int:
        """Reserved for calls in flight and held for turns that are going on."""
        account = self._calls.ledger.balance()
        return account.reserved + account.held

    def left(self, phase: str | None = None) -> int:
        """What a call of the phase could still take; of the whole run without one. Never below 0.

        Raises:
            UnknownPhaseError: no such phase.
        """
        account = self._calls.ledger.balance()
        if phase is None:
            return max(0, self.cap - account.committed)
        cap, of_phase = self._cap_of(phase), self._calls.balances.total(paid_together(phase))
        most = self.cap if phase.startswith(FINAL_PHASE) else self._caps.tuning
        return max(0, min(most - account.committed, cap - of_phase.committed))

    def phase(
        self,
        name: str,
        *,
        suite: str | None = None,
        tasks: int | None = None,
        est: int | None = None,
        note: str | None = None,
    ) -> PhaseBudget:
        """Open a phase: fix its cap, write it into the journal, let its calls through. Repeating it is harmless.

        Args:
            name: ``"0"`` … ``"6.2"``, see `caps.CAP_OF_PHASE`.
            suite: suite it runs on, for the spend ledger.
            tasks: number of tasks planned.
            est: the plan's figure, micro-dollars.
            note: anything else the spend ledger should say.

        Raises:
            UnknownPhaseError: no such phase.
        """
        cap = self._cap_of(name)
        ledger = self._calls.ledger
        if not self._calls.read_only:
            facts = PhaseFacts(suite=suite, tasks=tasks, est=est, note=note, git_sha=self._git_sha, cap=cap)
            with self._calls.journal.exclusively():
                end = self._calls.journal.append([{"e": "phase", "phase": name, "t": now_utc(), **facts.row()}])
            self._calls.journal.durably(end)
        limits = ledger.limits
        shared = {**limits.shared, name: paid_together(name)}
        ledger.limits = replace(limits, phases={**limits.phases, name: cap}, shared=shared)
        return PhaseBudget(name, cap, self.seed, self._calls)

    def ledger(self) -> list[dict[str, Any]]:
        """Lines of ``spend-ledger.jsonl`` as the journal has them now (R2)."""
        return ledger_rows(spend_of(self._calls.folder.parent))

    def _cap_of(self, phase: str) -> int:
        if phase not in CAP_OF_PHASE:
            raise UnknownPhaseError(f"phase {phase!r}: no such phase; known: {', '.join(CAP_OF_PHASE)}")
        self._calls.journal.refresh()
        committed = {name: account.committed for name, account in list(self._calls.balances.accounts.items())}
        return self._caps.phase(phase, committed)


@dataclass(frozen=True, slots=True)
class PhaseBudget:
    """Money of one phase that has been opened.

    Attributes:
        name: of the phase.
        cap: what it may spend, fixed when it was opened.
        seed: seed of the order of tasks.
        calls: the calls of the run.
    """

    name: str
    cap: int
    seed: int
    calls: Calls

    @property
    def spent(self) -> int:
        """What counts as spent."""
        return self._account().spent

    @property
    def reserved(self) -> int:
        """Reserved for calls in flight and held for turns that are going on."""
        account = self._account()
        return account.reserved + account.held

    @property
    def left(self) -> int:
        """What a call could still take, under the caps of phase and run; never below 0."""
        return max(0, self.calls.ledger.left(self.name))

    def _account(self) -> Account:
        self.calls.journal.refresh()
        return self.calls.balances.total({self.name})

    def scope(self, **facts: Any) -> Scope:
        """Scope of a call of this phase; fields as in `Scope`."""
        return Scope(phase=self.name, **facts)

    def order(self, tasks: Iterable[str], arm: str) -> list[str]:
        """Task ids in the order in which this phase answers them for this arm; see `turns.random_order`."""
        return random_order(tasks, self.seed, f"{self.name}/{arm}")

    def turn(self, task: str, arm: str, worst_case: int) -> AbstractAsyncContextManager[Turn]:
        """Hold the worst case of one task's calls; see `turns.turn`."""
        return turn(self.calls.ledger, task, worst_case, phase=self.name, arm=arm)

    async def run_turns(
        self,
        tasks: Iterable[str],
        arm: str,
        worst_case: Callable[[str], int],
        work: Callable[[Turn], Awaitable[T]],
        *,
        at_once: int = 8,
    ) -> list[TurnResult[T]]:
        """Answer tasks in their registered order until one does not fit; see `turns.run_turns`."""
        ordered = self.order(tasks, arm)
        ledger = self.calls.ledger
        return await run_turns(ledger, ordered, worst_case, work, phase=self.name, arm=arm, at_once=at_once)
