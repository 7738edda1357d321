"""Caps of the phases (procedure R2): shares of the run's total, unless fusion.yaml sets them.

Of 500 dollars 90 are a reserve that only phase 6 may touch. Phases 0 to 5 share the rest: each has a cap, the hill
climb has what the others left. Before phase 6 whatever phases 0 to 5 left unspent is added to the caps of phase 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pytest_fusion_audit.errors import FusionAuditError
from pytest_fusion_audit.evidence.money import micro_usd, usd
from pytest_fusion_audit.metering.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_fusion_audit.configuration import CapsUsd

_TOTAL: Final = 500
_SHARES: Final[Mapping[str, int]] = MappingProxyType(
    {"reserve": 90, "smoke": 15, "baseline": 150, "composition": 60, "ablations": 40, "locked": 50, "served": 40}
)
#: Which cap pays for which phase. Phases 0 to 2 share one; 3.composition is the ablation of panels when lopsided.
CAP_OF_PHASE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "0": "smoke",
        "1": "smoke",
        "2": "smoke",
        "3": "baseline",
        "3.composition": "composition",
        "4": "ablations",
        "5": "climb",
        "6.1": "locked",
        "6.2": "served",
    }
)


def paid_together(phase: str) -> frozenset[str]:
    """The phases that share a phase's cap, itself among them.

    >>> sorted(paid_together("1")), sorted(paid_together("3"))
    (['0', '1', '2'], ['3'])
    """
    return frozenset(other for other, cap in CAP_OF_PHASE.items() if cap == CAP_OF_PHASE[phase])


class CapsError(FusionAuditError):
    """Caps of fusion.yaml that this budget cannot hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """Caps of a run, all in micro-dollars; ``total`` is what was granted."""

    total: int
    reserve: int
    smoke: int
    baseline: int
    composition: int
    ablations: int
    locked: int
    served: int

    @property
    def tuning(self) -> int:
        """What phases 0 to 5 may spend together: the total less the reserve."""
        return self.total - self.reserve

    def phase(self, phase: str, committed: Mapping[str, int]) -> int:
        """The cap of a phase as things stand.

        The cap of phases 0 to 2 is that of all three together (`paid_together`).

        Args:
            phase: ``"0"`` … ``"6.2"``, see `CAP_OF_PHASE`.
            committed: micro-dollars spent and reserved so far, by phase.

        Raises:
            KeyError: no such phase.
        """
        name = CAP_OF_PHASE[phase]
        if name == "climb":
            return max(0, self.tuning - sum(amount for other, amount in committed.items() if _before(other, "5")))
        if name in {"locked", "served"}:
            return self._final(name, committed)
        cap: int = getattr(self, name)
        return cap

    def _final(self, name: str, committed: Mapping[str, int]) -> int:
        """Phase 6: what phases 0 to 5 left, and what of the reserve is nobody's, goes to the locked test first.

        The locked test never touches the share of the served-path check.
        """
        unspent = self.tuning - sum(amount for other, amount in committed.items() if _before(other, "6"))
        left = max(0, unspent + self.reserve - self.locked - self.served)
        if name == "locked":
            return self.locked + left
        return self.served + max(0, left - max(0, committed.get("6.1", 0) - self.locked))

    def limits(self, committed: Mapping[str, int]) -> Limits:
        """Limits for the ledger, to be set when a phase begins."""
        return Limits(
            total=self.total,
            reserve=self.reserve,
            phases={phase: self.phase(phase, committed) for phase in CAP_OF_PHASE},
        )

    def to_json(self) -> dict[str, float]:
        """Every cap in dollars."""
        names = ("total", "reserve", "smoke", "baseline", "composition", "ablations", "locked", "served")
        return {name: usd(getattr(self, name)) for name in names}


def caps_for(total: int, settings: CapsUsd | None = None) -> Caps:
    """Caps of a run.

    Args:
        total: what was granted, micro-dollars above 0; ``caps_usd.total`` has already bounded it (`consent.decide`).
        settings: ``caps_usd`` of fusion.yaml. What it sets stays as it is set; the rest scales with the total.

    Raises:
        CapsError: the reserve it sets leaves nothing to phases 0 to 5, or cannot hold the caps of phase 6.

    >>> caps = caps_for(100_000_000)
    >>> caps.tuning, caps.baseline, caps.locked
    (82000000, 30000000, 10000000)
    """
    given = {
        name: micro_usd(amount)
        for name in _SHARES
        if settings is not None and (amount := getattr(settings, name)) is not None
    }
    caps = {name: given.get(name, total * share // _TOTAL) for name, share in _SHARES.items()}
    if caps["reserve"] >= total:
        raise CapsError(
            f"caps_usd.reserve of {usd(caps['reserve']):.2f} USD leaves nothing of {usd(total):.2f} USD to phases 0 "
            "to 5; nothing was sent. Lower it in audits/fusion.yaml, or leave it out so that it scales"
        )
    _fit_final(caps, given)
    for name in ("smoke", "baseline", "composition", "ablations"):
        caps[name] = min(caps[name], total - caps["reserve"])
    return Caps(total=total, **caps)


def _fit_final(caps: dict[str, int], given: Mapping[str, int]) -> None:
    """Bring the caps of phase 6 into the reserve: those that are not set give way."""
    over = caps["locked"] + caps["served"] - caps["reserve"]
    if over <= 0:
        return
    free = [name for name in ("locked", "served") if name not in given]
    room = sum(caps[name] for name in free)
    if over > room:
        raise CapsError(
            f"caps_usd: locked {usd(caps['locked']):.2f} and served {usd(caps['served']):.2f} do not fit into the "
            f"reserve of {usd(caps['reserve']):.2f} USD; nothing was sent. Raise caps_usd.reserve in "
            "audits/fusion.yaml, or lower them"
        )
    for name in free:
        caps[name] = caps[name] * (room - over) // room


def _before(phase: str, limit: str) -> bool:
    return phase.split(".", maxsplit=1)[0] < limit
