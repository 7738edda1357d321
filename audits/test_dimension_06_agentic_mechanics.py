"""Dimension 6, agentic mechanics: does fusion survive tools, turns and state?"""

import pytest

from pytest_fusion_audit import load_rubric


@pytest.mark.parametrize("criterion", load_rubric().dimension(6), ids=str)
def test_criterion(criterion, evidence, score):
    score(criterion.measure(evidence))
