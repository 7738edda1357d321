"""Consent to spend (procedure R10): who said how much, or why nothing is sent.

500 dollars is the ceiling of an approved run, not an approval. A budget is that of a run and all its resumes;
``spend.total_usd`` caps all runs of a repository together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pytest_fusion_audit.errors import FusionAuditError
from pytest_fusion_audit.evidence.money import MICRO, dollars, micro_usd

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from decimal import Decimal

    from pytest_fusion_audit.configuration import CapsUsd, Spend

#: Ceiling of a run unless ``caps_usd.total`` sets another (R2).
CEILING_MICRO_USD: Final = 500 * MICRO
SpendOption: TypeAlias = Literal["auto", "never"]


class NoConsentError(FusionAuditError):
    """Something would be billed and nobody has agreed to it; nothing was sent."""


@dataclass(frozen=True, slots=True)
class Granted:
    """Billed calls may be sent, up to ``cap`` micro-dollars over this run and its resumes."""

    cap: int
    by: str
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Skip:
    """Billed items skip; the reason names the option and any missing variable."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A usage error (exit status 4); nothing was sent."""

    message: str


Decision: TypeAlias = Granted | Skip | Refused


def decide(
    *,
    budget_option: float | Decimal | str | None,
    spend_option: SpendOption | None,
    spend: Spend | None = None,
    caps: CapsUsd | None = None,
    environ: Mapping[str, str],
    spent_by_other_runs: int = 0,
    spent_by_this_run: int = 0,
    missing: Sequence[str] = (),
) -> Decision:
    """Decide whether this session may send billed calls, and for how much.

    Args:
        budget_option: ``--fusion-budget``, in dollars; consent for this command line, wins over the file.
        spend_option: ``--fusion-spend``; None is ``never`` under ``CI=true``, else ``auto``.
        spend: ``spend`` of fusion.yaml.
        caps: ``caps_usd`` of fusion.yaml; its total is the ceiling of a run.
        environ: for ``CI``.
        spent_by_other_runs: micro-dollars that count as spent in the other runs of this repository.
        spent_by_this_run: the same of the run that is resumed.
        missing: variables that have to hold a key and do not, for the reason of a skip.

    >>> decide(budget_option=5, spend_option=None, environ={})
    Granted(cap=5000000, by='--fusion-budget', note=None)
    """
    never = _never(spend_option, environ)
    if never is not None:
        return Skip("; ".join([never, *(f"{name} is not set" for name in missing)]))
    asked = _asked(budget_option, spend)
    if isinstance(asked, Refused):
        return asked
    amount, by = asked
    notes = []
    ceiling = CEILING_MICRO_USD if caps is None or caps.total is None else micro_usd(caps.total)
    if amount > ceiling:
        notes.append(
            f"{by} of {dollars(amount)} USD is above the ceiling of a run, {dollars(ceiling)} USD (caps_usd.total)"
        )
        amount = ceiling
    total = None if spend is None or spend.total_usd is None else micro_usd(spend.total_usd)
    if total is not None and amount > total - spent_by_other_runs:
        left = total - spent_by_other_runs
        if left <= spent_by_this_run:
            return Refused(
                f"spend.total_usd of {dollars(total)} USD is used up: other runs spent {dollars(spent_by_other_runs)}, "
                f"this one {dollars(spent_by_this_run)}; nothing was sent. Raise spend.total_usd in audits/fusion.yaml"
            )
        notes.append(f"spend.total_usd of {dollars(total)} USD leaves {dollars(left)} USD to this run")
        amount = left
    return Granted(amount, by, "; ".join(notes) or None)


def _never(spend_option: SpendOption | None, environ: Mapping[str, str]) -> str | None:
    if spend_option == "never":
        return "--fusion-spend=never: nothing is billed"
    if spend_option is None and environ.get("CI", "").strip().lower() in {"true", "1", "yes"}:
        return "CI=true means --fusion-spend=never: nothing is billed unless --fusion-spend=auto is given"
    return None


def _asked(budget_option: float | Decimal | str | None, spend: Spend | None) -> tuple[int, str] | Refused:
    if budget_option is not None:
        amount = micro_usd(budget_option)
        if amount <= 0:
            return Refused("--fusion-budget=0 pays for no call; give an amount of dollars, or --fusion-spend=never")
        return amount, "--fusion-budget"
    if spend is not None and spend.consent and spend.budget_usd:
        return micro_usd(spend.budget_usd), "spend in fusion.yaml"
    return Refused(
        "this would be billed and nobody has agreed to it; nothing was sent. Add --fusion-budget=USD to this command, "
        "or write spend: {consent: yes, budget_usd: USD} into audits/fusion.yaml; --fusion-spend=never skips what "
        "is billed"
    )
