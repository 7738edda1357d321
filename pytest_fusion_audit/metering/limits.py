"""The limits of a run, and what a call that does not fit is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.errors import FusionAuditError
from pytest_fusion_audit.evidence.money import dollars, usd

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_fusion_audit.metering.balances import Account, Balances

FINAL_PHASE = "6"


class CostLimitExceeded(FusionAuditError):  # noqa: N818 - named as the field names it (inspect_ai: LimitExceededError)
    """A call that can never fit below a limit; nothing was sent. All amounts in micro-dollars."""

    def __init__(self, limit: str, *, cap: int, spent: int, reserved: int, needed: int, phase: str) -> None:
        self.limit, self.cap, self.spent, self.reserved, self.needed, self.phase = (
            limit,
            cap,
            spent,
            reserved,
            needed,
            phase,
        )
        super().__init__(
            f"{limit} of {dollars(cap)} USD: {usd(spent):.6f} spent, {usd(reserved):.6f} reserved, the next call of "
            f"phase {phase} needs up to {usd(needed):.6f}; nothing was sent. "
            "Raise the cap and go on with --fusion-resume"
        )

    @classmethod
    def at(cls, limit: str, cap: int, account: Account, needed: int, phase: str) -> CostLimitExceeded:
        """The error of a call that does not fit below ``cap`` as the account stands."""
        reserved = account.reserved + account.held
        return cls(limit, cap=cap, spent=account.spent, reserved=reserved, needed=needed, phase=phase)

    def facts(self) -> dict[str, Any]:
        """The same as builtins, for the proxy's 402."""
        return {
            "limit": self.limit,
            "cap_usd": usd(self.cap),
            "spent_usd": usd(self.spent),
            "reserved_usd": usd(self.reserved),
            "needed_usd": usd(self.needed),
            "phase": self.phase,
        }


class RunStoppedError(FusionAuditError):
    """The run was stopped (key refused, unknown price, another model answered); nothing was sent."""


class PhaseNotOpenError(FusionAuditError):
    """A call of a phase whose money nobody has opened; nothing was sent."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps of a run in micro-dollars; ``reserve`` may be touched by phase 6 only.

    ``phases`` holds the cap of each phase, ``shared`` the phases that one cap pays for together. ``opened_only`` lets
    no call through of a phase that has no cap in ``phases``: `metering.budget` opens them.
    """

    total: int
    reserve: int = 0
    phases: Mapping[str, int] = field(default_factory=dict)
    shared: Mapping[str, frozenset[str]] = field(default_factory=dict)
    opened_only: bool = False


def bounds(limits: Limits, balances: Balances, phase: str) -> list[tuple[str, int, Account]]:
    """What bounds a call of a phase: name and amount of each cap, and the account that it bounds.

    Raises:
        PhaseNotOpenError: only opened phases may spend, and this one was not.
    """
    if limits.opened_only and phase not in limits.phases:
        raise PhaseNotOpenError(
            f"a call of phase {phase}, whose money was not opened; nothing was sent: call budget.phase({phase!r}) first"
        )
    everything = balances.total()
    found = [("the cap of the run", limits.total, everything)]
    if phase.partition(".")[0] != FINAL_PHASE:
        found.append(("the cap minus the reserve for phase 6", limits.total - limits.reserve, everything))
    if phase in limits.phases:
        together = limits.shared.get(phase, frozenset({phase}))
        found.append((f"the cap of phase {phase}", limits.phases[phase], balances.total(together)))
    return found
