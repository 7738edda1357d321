"""Statistics of an audit: paired tests, intervals, power, sequential evidence, calibration.

Names are loaded when they are first used: McNemar, Tango, Wilson, Holm, the Ladder and quantiles need the standard
library only, power and calibration bring numpy and scipy, and scipy.stats is imported inside the few functions that
use it. A session that only replays evidence pays for none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pytest_fusion_audit.stats.bootstrap import paired_bootstrap_interval
    from pytest_fusion_audit.stats.calibration import Calibration, ReliabilityPoint, judge_calibration
    from pytest_fusion_audit.stats.clusters import (
        ClusteredPairedTest,
        cluster_sums,
        clustered_paired_test,
        effective_n,
        intracluster_correlation,
    )
    from pytest_fusion_audit.stats.graded import GradedPairedTest, average_seeds, graded_paired_test
    from pytest_fusion_audit.stats.interval import Interval, two_sided_z
    from pytest_fusion_audit.stats.judge import OrderBias, PickTest, order_bias, pick_test, poisson_binomial_tail
    from pytest_fusion_audit.stats.ladder import ladder_losses, ladder_step
    from pytest_fusion_audit.stats.multiplicity import alpha_of_look, benjamini_hochberg, holm, intersection_union
    from pytest_fusion_audit.stats.paired import (
        Decision,
        PairedTest,
        decision,
        loss_detected,
        paired_interval,
        paired_lower_bound,
        paired_test,
    )
    from pytest_fusion_audit.stats.power import paired_power
    from pytest_fusion_audit.stats.quantiles import QUANTILE_METHOD, quantile
    from pytest_fusion_audit.stats.rates import wilson_interval
    from pytest_fusion_audit.stats.sample_size import minimum_detectable_uplift, required_tasks
    from pytest_fusion_audit.stats.sequential import (
        EVIDENCE_THRESHOLD,
        log_sequential_evidence,
        sequential_evidence,
    )
    from pytest_fusion_audit.stats.sequential_intervals import sequential_interval, sequential_uplift_interval
    from pytest_fusion_audit.stats.sign_flip import PERMUTATION_DRAWS, SignFlipTest, sign_flip_test
    from pytest_fusion_audit.stats.trend import Trend, monotone_trend

_HOMES: Final = {
    "bootstrap": ("paired_bootstrap_interval",),
    "calibration": ("Calibration", "ReliabilityPoint", "judge_calibration"),
    "clusters": (
        "ClusteredPairedTest",
        "cluster_sums",
        "clustered_paired_test",
        "effective_n",
        "intracluster_correlation",
    ),
    "graded": ("GradedPairedTest", "average_seeds", "graded_paired_test"),
    "interval": ("Interval", "two_sided_z"),
    "judge": ("OrderBias", "PickTest", "order_bias", "pick_test", "poisson_binomial_tail"),
    "ladder": ("ladder_losses", "ladder_step"),
    "multiplicity": ("alpha_of_look", "benjamini_hochberg", "holm", "intersection_union"),
    "paired": (
        "Decision",
        "PairedTest",
        "decision",
        "loss_detected",
        "paired_interval",
        "paired_lower_bound",
        "paired_test",
    ),
    "power": ("paired_power",),
    "quantiles": ("QUANTILE_METHOD", "quantile"),
    "rates": ("wilson_interval",),
    "sample_size": ("minimum_detectable_uplift", "required_tasks"),
    "sequential": ("EVIDENCE_THRESHOLD", "log_sequential_evidence", "sequential_evidence"),
    "sequential_intervals": ("sequential_interval", "sequential_uplift_interval"),
    "sign_flip": ("PERMUTATION_DRAWS", "SignFlipTest", "sign_flip_test"),
    "trend": ("Trend", "monotone_trend"),
}
_HOME: Final = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "EVIDENCE_THRESHOLD",
    "PERMUTATION_DRAWS",
    "QUANTILE_METHOD",
    "Calibration",
    "ClusteredPairedTest",
    "Decision",
    "GradedPairedTest",
    "Interval",
    "OrderBias",
    "PairedTest",
    "PickTest",
    "ReliabilityPoint",
    "SignFlipTest",
    "Trend",
    "alpha_of_look",
    "average_seeds",
    "benjamini_hochberg",
    "cluster_sums",
    "clustered_paired_test",
    "decision",
    "effective_n",
    "graded_paired_test",
    "holm",
    "intersection_union",
    "intracluster_correlation",
    "judge_calibration",
    "ladder_losses",
    "ladder_step",
    "log_sequential_evidence",
    "loss_detected",
    "minimum_detectable_uplift",
    "monotone_trend",
    "order_bias",
    "paired_bootstrap_interval",
    "paired_interval",
    "paired_lower_bound",
    "paired_power",
    "paired_test",
    "pick_test",
    "poisson_binomial_tail",
    "quantile",
    "required_tasks",
    "sequential_evidence",
    "sequential_interval",
    "sequential_uplift_interval",
    "sign_flip_test",
    "two_sided_z",
    "wilson_interval",
]


def __getattr__(name: str) -> object:
    """Import the module that a public name lives in, on first use."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *_HOME})
