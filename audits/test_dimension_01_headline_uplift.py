"""Dimension 1, headline uplift: does the compound beat every member of its own panel on held-out tasks?"""

import pytest

from pytest_fusion_audit import load_rubric


@pytest.mark.parametrize("criterion", load_rubric().dimension(1), ids=str)
def test_criterion(criterion, evidence, score):
    score(criterion.measure(evidence))
