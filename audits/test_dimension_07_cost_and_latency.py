"""Dimension 7, cost and latency: what does a solved task cost, and how long does it take?"""

import pytest

from pytest_fusion_audit import load_rubric


@pytest.mark.parametrize("criterion", load_rubric().dimension(7), ids=str)
def test_criterion(criterion, evidence, score):
    score(criterion.measure(evidence))
