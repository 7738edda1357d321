"""Dimension 10, architecture headroom: can the next idea be tried through the same runtime?"""

import pytest

from pytest_fusion_audit import load_rubric


@pytest.mark.parametrize("criterion", load_rubric().dimension(10), ids=str)
def test_criterion(criterion, evidence, score):
    score(criterion.measure(evidence))
