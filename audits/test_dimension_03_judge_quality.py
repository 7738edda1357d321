"""Dimension 3, judge quality: does the judge find the right candidate?"""

import pytest

from pytest_fusion_audit import load_rubric


@pytest.mark.parametrize("criterion", load_rubric().dimension(3), ids=str)
def test_criterion(criterion, evidence, score):
    score(criterion.measure(evidence))
