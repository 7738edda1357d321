"""pytest-fusion-audit: does a compound of models beat the best single member of its own panel?

The public functions are loaded on first use, so that the autoloaded plugin costs an unrelated project nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_fusion_audit.analysis.matrix import PassMatrix
    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.evidence.importers import import_run
    from pytest_fusion_audit.rubric.loading import load_rubric
    from pytest_fusion_audit.rubric.scorecard import Scorecard, score_rubric
    from pytest_fusion_audit.rubric.validity import check_validity
    from pytest_fusion_audit.stats import (
        PairedTest,
        holm,
        paired_interval,
        paired_power,
        paired_test,
        required_tasks,
        sequential_evidence,
        wilson_interval,
    )

__version__ = "0.1.0"

_HOMES = {
    "Evidence": "evidence.container",
    "PairedTest": "stats",
    "PassMatrix": "analysis.matrix",
    "Scorecard": "rubric.scorecard",
    "check_validity": "rubric.validity",
    "holm": "stats",
    "import_run": "evidence.importers",
    "load_rubric": "rubric.loading",
    "paired_interval": "stats",
    "paired_power": "stats",
    "paired_test": "stats",
    "required_tasks": "stats",
    "score_rubric": "rubric.scorecard",
    "sequential_evidence": "stats",
    "wilson_interval": "stats",
}

__all__ = [
    "Evidence",
    "PairedTest",
    "PassMatrix",
    "Scorecard",
    "check_validity",
    "holm",
    "import_run",
    "load_rubric",
    "paired_interval",
    "paired_power",
    "paired_test",
    "required_tasks",
    "score_rubric",
    "sequential_evidence",
    "wilson_interval",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
