"""Comparisons in the words of a finding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.arms import ArmRef, task_rates
from pytest_fusion_audit.analysis.comparison import Comparison, compare
from pytest_fusion_audit.analysis.validity.finding import p_value, points

if TYPE_CHECKING:
    from collections.abc import Collection

    from pytest_fusion_audit.evidence.container import Evidence


def pair(evidence: Evidence, first: ArmRef, second: ArmRef, keep: Collection[str] | None = None) -> Comparison:
    """Compare two arms over the tasks that count for both, optionally over some of those only."""
    return compare(evidence, first, second, tasks=None if keep is None else frozenset(keep))


def score_of(found: Comparison, tasks: str = "") -> str:
    """Counts, n and uplift of a comparison: "8 won, 0 lost of 86 (+9.3 points)"."""
    shown = "nothing compared" if found.uplift is None else points(found.uplift)
    return f"{found.wins} won, {found.losses} lost of {found.n}{tasks} ({shown})"


def with_p(found: Comparison, tasks: str = "") -> str:
    """The same with the exact p; ``tasks`` says which they are."""
    return f"{score_of(found, tasks)}, exact p {p_value(found.exact_p)}"


def bound_if_passed(evidence: Evidence, first: ArmRef, second: ArmRef, cut: Collection[str]) -> float | None:
    """Uplift of ``first`` had ``second`` passed every task in ``cut``; None when nothing was compared."""
    one, two = task_rates(evidence, first), task_rates(evidence, second)
    shared = one.keys() & two.keys()
    if not shared:
        return None
    return sum(one[task] - (1.0 if task in cut else two[task]) for task in sorted(shared)) / len(shared)


def passes(evidence: Evidence, ref: ArmRef, keep: Collection[str] | None = None) -> str:
    """Passes of one arm over the tasks that count, optionally over some of those only: "41 of 86 (47.7 %)"."""
    rates = [rate for task, rate in task_rates(evidence, ref).items() if keep is None or task in keep]
    passed = sum(rates)
    share = f" ({100 * passed / len(rates):.1f} %)" if rates else ""
    return f"{passed:g} of {len(rates)}{share}"
