"""Gates A to D: may the compound ship? Each rests on criteria of the rubric; a shut gate says why, a line a reason."""

import pytest

from pytest_fusion_audit import load_rubric, score_rubric

RUBRIC = load_rubric()


@pytest.mark.parametrize("gate", RUBRIC.gates.values(), ids=str)
def test_gate(gate, evidence, score):
    score(score_rubric(evidence, RUBRIC).gate(gate.id))
