"""The package: every public name is reachable and documented, and a replay imports neither numpy nor scipy."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from pytest_fusion_audit import stats

REPLAY = """
import sys
from pytest_fusion_audit.stats import (
    holm, ladder_losses, loss_detected, paired_interval, paired_test, quantile, sequential_evidence, wilson_interval
)
paired_test(31, 12, 220), loss_detected(1, 7), holm([0.01, 0.04]), ladder_losses([0.4], 0.02)
paired_interval(31, 12, 220), paired_interval(6, 16, 161, both=59, method="newcombe")
wilson_interval(57, 86), quantile([1.0, 2.0], 0.95), sequential_evidence(12, 2)
print(sorted({name.partition(".")[0] for name in sys.modules} & {"numpy", "scipy", "pytest"}))
"""
PLANNING = """
import sys
from pytest_fusion_audit.stats import (
    clustered_paired_test, graded_paired_test, judge_calibration, paired_power, pick_test, required_tasks,
    sequential_uplift_interval,
)
paired_power(0.2, 0.1, 100), required_tasks(0.12, 0.04), sequential_uplift_interval(12, 2, 60)
clustered_paired_test([1, 0], "ab"), graded_paired_test([0.5, 0.1])
judge_calibration([0.1, 0.9], [False, True]), pick_test([(1, 2, True)])
print("scipy.stats" in sys.modules)
"""


def test_every_public_name_is_listed_and_loads():
    assert len(set(stats.__all__)) == len(stats.__all__)
    assert set(stats.__all__) == set(stats._HOME)
    assert set(stats.__all__) <= set(dir(stats))
    for name in stats.__all__:
        assert getattr(stats, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'wald_interval'"):
        stats.wald_interval  # noqa: B018


def test_no_public_name_hides_a_module_of_the_package():
    assert set(stats._HOMES).isdisjoint(stats.__all__)


@pytest.mark.parametrize("name", [n for n in stats.__all__ if inspect.isfunction(getattr(stats, n))])
def test_every_function_is_documented_with_an_example(name):
    text = inspect.getdoc(getattr(stats, name))
    assert ">>> " in text
    if inspect.signature(getattr(stats, name)).parameters:
        assert "Raises:" in text


@pytest.mark.parametrize(("session", "printed"), [(REPLAY, "[]"), (PLANNING, "False")], ids=["replay", "planning"])
def test_a_session_imports_no_more_than_it_uses(session, printed):
    done = subprocess.run([sys.executable, "-c", session], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == printed
