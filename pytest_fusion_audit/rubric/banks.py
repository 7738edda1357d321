"""Where candidates were recorded: the splits that criteria about the pool, the judge and the policy are read from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.arms import ArmRef
from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.analysis.pool import Pool, pool_of
from pytest_fusion_audit.analysis.validity.facts import compounds
from pytest_fusion_audit.evidence.container import Evidence, member_arm
from pytest_fusion_audit.rubric.evaluations import evidence_files, headline_arm, holding_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_fusion_audit.rubric.capping import Holding
    from pytest_fusion_audit.rubric.loading import Source

#: How the two sources of a bank criterion are called where they are lacking.
LACKING: dict[Source, str] = {
    "bank": "frozen candidates with their verdicts",
    "locked": "the same figure on a locked split",
}


@dataclass(frozen=True, slots=True)
class Bank:
    """One split with the verdicts of at least two members.

    Attributes:
        pool: its candidates.
        holding: whether the split is held out.
        compound: the arm that stands for the compound there, None where none was run.
        frozen: whether candidates are recorded, not verdicts alone.
    """

    pool: Pool
    holding: Holding
    compound: ArmRef | None
    frozen: bool

    @property
    def place(self) -> str:
        """Suite and split as measurement names write them."""
        return f"{self.pool.suite}/{self.pool.split}"

    @property
    def n(self) -> int:
        """Tasks of the pool."""
        return self.pool.n

    @property
    def members(self) -> list[ArmRef]:
        """Arms of the panel."""
        return [ArmRef(self.pool.suite, self.pool.split, member_arm(member)) for member in self.pool.panel]


@per_evidence
def banks(evidence: Evidence) -> tuple[Bank, ...]:
    """Banks of the system under audit, held-out ones first, then by size.

    Where a compound was recorded on some bank, banks without one are other people's pools and left out. Where none was
    recorded anywhere, a bank is candidates of members in their incumbent configuration: verdicts of models that nobody
    fuses, and one member at several settings, are no panel.
    """
    found = [_bank(evidence, suite, split) for suite, split in evidence.splits]
    usable = [bank for bank in found if bank.n and len(bank.pool.panel) > 1]
    own = [bank for bank in usable if bank.compound is not None] or [bank for bank in usable if _is_panel(bank)]
    order = {"held out": 0, "not held out": 1, "unknown": 2}
    return tuple(sorted(own, key=lambda bank: (order[bank.holding], -bank.n, bank.place)))


def deciding(evidence: Evidence) -> tuple[Bank, ...]:
    """The banks whose figures decide: all held-out ones, else the largest of the others."""
    every = banks(evidence)
    held_out = tuple(bank for bank in every if bank.holding == "held out")
    return held_out or every[:1]


def sources_of(evidence: Evidence, used: Sequence[Bank]) -> frozenset[Source]:
    """Which of a bank criterion's sources the evidence holds."""
    found: set[Source] = set()
    if any(bank.frozen or bank.holding != "held out" for bank in banks(evidence)):
        found.add("bank")
    if any(bank.holding == "held out" for bank in used):
        found.add("locked")
    return frozenset(found)


def sources_at(evidence: Evidence, suite: str, split: str) -> frozenset[Source]:
    """The same for figures of one split, whether or not its members' verdicts make it a bank."""
    found: set[Source] = set()
    held_out = holding_of(evidence, suite, split) == "held out"
    other = any(bank.frozen or bank.holding != "held out" for bank in banks(evidence))
    if evidence.candidates(suite, split) or not held_out or other:
        found.add("bank")
    if held_out:
        found.add("locked")
    return frozenset(found)


def holding_together(used: Sequence[Bank]) -> Holding:
    """Holding of several banks together: as good as the worst of them."""
    holdings = {bank.holding for bank in used}
    if holdings == {"held out"}:
        return "held out"
    return "not held out" if "not held out" in holdings else "unknown"


def bank_files(evidence: Evidence, used: Sequence[Bank], *, fused: bool = False) -> tuple[str, ...]:
    """Files behind the candidates of some banks, and behind the compound's rows there."""
    refs = [ref for bank in used for ref in bank.members]
    if fused:
        refs += [bank.compound for bank in used if bank.compound is not None]
    return evidence_files(evidence, refs)


def remark(used: Sequence[Bank]) -> tuple[str, ...]:
    """What the figures are over, where the recorded candidates are not known to be all."""
    partial = [bank.place for bank in used if not bank.pool.whole]
    return (f"over the recorded primary samples only: {', '.join(partial)}",) if partial else ()


def _is_panel(bank: Bank) -> bool:
    return bank.frozen and not any("@" in member for member in bank.pool.panel)


def _bank(evidence: Evidence, suite: str, split: str) -> Bank:
    arms = compounds(evidence, suite, split)
    return Bank(
        pool=pool_of(evidence, suite, split),
        holding=holding_of(evidence, suite, split),
        compound=ArmRef(suite, split, headline_arm(evidence, suite, split)) if arms else None,
        frozen=bool(evidence.candidates(suite, split)),
    )
