"""Dimension 2, ensemble headroom: is there anything to fuse?"""

import pytest

from pytest_fusion_audit import load_rubric


@pytest.mark.parametrize("criterion", load_rubric().dimension(2), ids=str)
def test_criterion(criterion, evidence, score):
    score(criterion.measure(evidence))
