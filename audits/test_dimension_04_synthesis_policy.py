"""Dimension 4, synthesis policy: is the answer that is written the best that the candidates allow?"""

import pytest

from pytest_fusion_audit import load_rubric


@pytest.mark.parametrize("criterion", load_rubric().dimension(4), ids=str)
def test_criterion(criterion, evidence, score):
    score(criterion.measure(evidence))
