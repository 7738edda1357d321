"""Quantiles are numpy's, to the last bit, and the convention has a name."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.stats import QUANTILE_METHOD, quantile


def test_the_convention_is_named():
    assert QUANTILE_METHOD == "linear interpolation (numpy)"


def test_nothing_has_no_quantile():
    assert quantile([], 0.5) is None


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.floats(0, 1))
@settings(deadline=None, max_examples=50)
def test_equals_numpy(values, q):
    ours = quantile(values, q)
    assert type(ours) is float
    assert ours == pytest.approx(float(np.quantile(values, q)), rel=1e-12, abs=1e-9)
    assert min(values) <= ours <= max(values)


def test_unknown_values_and_wrong_shares_are_refused():
    with pytest.raises(ValueError, match=r"^values\[1\] must be a finite number, not None$"):
        quantile([1.0, None], 0.5)
    with pytest.raises(ValueError, match=r"^values\[0\] must be a finite number, not nan$"):
        quantile([math.nan], 0.5)
    with pytest.raises(ValueError, match=r"^q must lie between 0 and 1, not 95$"):
        quantile([1.0], 95)
