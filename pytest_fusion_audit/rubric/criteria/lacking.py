"""Criteria this version has no evidence for: what each would be measured from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.rubric.capping import NEEDS, not_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.rubric.loading import Criterion, Source
    from pytest_fusion_audit.rubric.score import Score


def needs(source: Source, what: str) -> Callable[[Criterion, Evidence], Score]:
    """A measure that finds nothing to measure from and says what it would take."""

    def measure(criterion: Criterion, evidence: Evidence) -> Score:
        return not_run(criterion, evidence, f"{NEEDS[source]}: {what}")

    measure.__doc__ = f"Not in this version; {NEEDS[source]}: {what}."
    return measure
