"""Dimension 5, routing and adaptivity: is fusion spent where it pays?"""

import pytest

from pytest_fusion_audit import load_rubric


@pytest.mark.parametrize("criterion", load_rubric().dimension(5), ids=str)
def test_criterion(criterion, evidence, score):
    score(criterion.measure(evidence))
