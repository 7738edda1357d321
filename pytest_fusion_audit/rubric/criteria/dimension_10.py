"""Dimension 10, architecture headroom: can the design take the next step?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.rubric.criteria.lacking import needs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.rubric.loading import Criterion
    from pytest_fusion_audit.rubric.score import Score

MEASURES: Mapping[str, Callable[[Criterion, Evidence], Score]] = {
    "10.1": needs("drill", "the same tasks through engine and gateway"),
    "10.2": needs("billed", "multi-layer and select-then-repair through the same benchmark"),
    "10.3": needs("attest", "an adaptive scheduler shipped through the seam"),
    "10.4": needs("attest", "a written design for learned orchestration"),
}
