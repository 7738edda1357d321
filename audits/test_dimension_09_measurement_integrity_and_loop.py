"""Dimension 9, measurement integrity and loop: can the figures be trusted, and do they improve the system?"""

import pytest

from pytest_fusion_audit import load_rubric


@pytest.mark.parametrize("criterion", load_rubric().dimension(9), ids=str)
def test_criterion(criterion, evidence, score):
    score(criterion.measure(evidence))
