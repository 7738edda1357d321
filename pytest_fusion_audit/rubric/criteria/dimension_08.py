"""Dimension 8, reliability: what the compound does when something fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.rubric.criteria.lacking import needs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.rubric.loading import Criterion
    from pytest_fusion_audit.rubric.score import Score

MEASURES: Mapping[str, Callable[[Criterion, Evidence], Score]] = {
    "8.1": needs("drill", "a soak with member failures injected"),
    "8.2": needs("drill", "every member failing, then the judge"),
    "8.3": needs("drill", "a failed task replayed offline from the target's own records"),
    "8.4": needs("drill", "a member renamed upstream"),
    "8.5": needs("drill", "parallel sessions and turns with canaries"),
}
