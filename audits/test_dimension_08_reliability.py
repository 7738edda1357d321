"""Dimension 8, reliability: what happens when members, judge or synthesizer fail?"""

import pytest

from pytest_fusion_audit import load_rubric


@pytest.mark.parametrize("criterion", load_rubric().dimension(8), ids=str)
def test_criterion(criterion, evidence, score):
    score(criterion.measure(evidence))
