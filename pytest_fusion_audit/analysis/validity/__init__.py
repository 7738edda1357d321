"""Validity comes before significance: coded reasons why a number is not what it looks like.

Every check is a pure function of evidence that returns its findings; docs/validity.md has a row for each code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.analysis.validity.answers import truncated_answers
from pytest_fusion_audit.analysis.validity.bank import (
    best_single_post_hoc,
    oracle_contains_fused,
    selector_outside_pool,
)
from pytest_fusion_audit.analysis.validity.compute import unequal_compute
from pytest_fusion_audit.analysis.validity.duplicates import duplicate_ids
from pytest_fusion_audit.analysis.validity.finding import Finding, Severity
from pytest_fusion_audit.analysis.validity.money import (
    cap_exceeded,
    estimates_only,
    ledger_mismatch,
    prices_differ,
    reserve_touched,
)
from pytest_fusion_audit.analysis.validity.power import never_worse_unproven, underpowered
from pytest_fusion_audit.analysis.validity.provenance import provenance_missing, stale_subject
from pytest_fusion_audit.analysis.validity.reuse import split_reuse
from pytest_fusion_audit.analysis.validity.rows import (
    notes_of_imports,
    totals_disagree,
    unequal_denominators,
    verdict_unstable,
)
from pytest_fusion_audit.analysis.validity.splits import suite_undeclared, window_before_cutoff
from pytest_fusion_audit.analysis.validity.tuning import settings_not_sent, tuning_asymmetry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_fusion_audit.evidence.container import Evidence

__all__ = ["CHECKS", "Finding", "Severity", "find"]

#: Every check, in the order of the table.
CHECKS: Final[Sequence[Callable[[Evidence], list[Finding]]]] = (
    truncated_answers,
    unequal_compute,
    tuning_asymmetry,
    settings_not_sent,
    split_reuse,
    suite_undeclared,
    unequal_denominators,
    duplicate_ids,
    totals_disagree,
    notes_of_imports,
    selector_outside_pool,
    oracle_contains_fused,
    best_single_post_hoc,
    verdict_unstable,
    window_before_cutoff,
    provenance_missing,
    ledger_mismatch,
    cap_exceeded,
    reserve_touched,
    estimates_only,
    prices_differ,
    underpowered,
    stale_subject,
    never_worse_unproven,
)


@per_evidence
def find(evidence: Evidence) -> tuple[Finding, ...]:
    """All findings about a run: errors first, then by code and message."""
    found = {finding for check in CHECKS for finding in check(evidence)}
    return tuple(sorted(found, key=lambda finding: (finding.severity, finding.code, finding.message)))
