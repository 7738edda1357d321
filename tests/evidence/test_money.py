"""Dollars and micro-dollars."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fusion_audit.evidence.money import micro_usd, usd

if TYPE_CHECKING:
    from decimal import Decimal


@given(st.integers(min_value=0, max_value=10**12))
def test_micro_dollars_survive_json(micro: int) -> None:
    assert micro_usd(json.loads(json.dumps(usd(micro)))) == micro


@given(st.decimals(min_value=0, max_value=1000, places=9))
def test_one_rounding_and_it_is_up(amount: Decimal) -> None:
    assert 0 <= micro_usd(amount) - amount * 1_000_000 < 1


@pytest.mark.parametrize("amount", [float("nan"), float("inf"), "", "ten", "1,5"])
def test_what_is_no_amount_is_refused(amount: float | str) -> None:
    with pytest.raises(ValueError, match="amount of dollars"):
        micro_usd(amount)
