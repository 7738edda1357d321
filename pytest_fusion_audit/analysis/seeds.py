"""Does an uplift survive its seeds: seed by seed, and as an interval over seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pytest_fusion_audit.analysis.comparison import compare_seeds
from pytest_fusion_audit.analysis.memo import per_evidence

if TYPE_CHECKING:
    from pytest_fusion_audit.analysis.arms import ArmRef
    from pytest_fusion_audit.analysis.comparison import Comparison
    from pytest_fusion_audit.evidence.container import Evidence

SEEDS_METHOD: Final = "Student's t over seeds"


@dataclass(frozen=True, slots=True)
class SeedFigures:
    """One comparison repeated over seeds.

    Attributes:
        comparisons: one per seed of the first arm, in order of replicate.
        uplifts: their uplifts; None where a seed has no shared task.
        mean: mean of the known uplifts; None when there is none.
        low: lower end of the 95 % interval of the mean; None with fewer than two known uplifts.
        high: upper end.
        survives: whether every seed's uplift is above 0; None when any is unknown.
        method: how the interval was made.
    """

    comparisons: tuple[Comparison, ...]
    uplifts: tuple[float | None, ...]
    mean: float | None
    low: float | None
    high: float | None
    survives: bool | None
    method: str


@per_evidence
def seed_figures(evidence: Evidence, first: ArmRef, second: ArmRef) -> SeedFigures:
    """Repeat a comparison for each seed of the first arm.

    The interval is for the mean of hypothetical further seeds on the same tasks (Student's t, seeds - 1 degrees of
    freedom); it says nothing about other tasks, which `compare` does.
    """
    comparisons = compare_seeds(evidence, first, second)
    uplifts = tuple(comparison.uplift for comparison in comparisons)
    known = [uplift for uplift in uplifts if uplift is not None]
    mean = math.fsum(known) / len(known) if known else None
    half: float | None = None
    if mean is not None and len(known) > 1:
        from scipy.special import stdtrit  # noqa: PLC0415 - only where several seeds were run

        variance = math.fsum((uplift - mean) ** 2 for uplift in known) / (len(known) - 1)
        half = float(stdtrit(len(known) - 1, 0.975)) * math.sqrt(variance / len(known))
    return SeedFigures(
        comparisons=comparisons,
        uplifts=uplifts,
        mean=mean,
        low=mean - half if mean is not None and half is not None else None,
        high=mean + half if mean is not None and half is not None else None,
        survives=all(uplift > 0 for uplift in known) if known and len(known) == len(uplifts) else None,
        method=SEEDS_METHOD,
    )
