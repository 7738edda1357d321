"""Figures for people."""

from __future__ import annotations

import pytest

from pytest_fusion_audit.report import numbers


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.5, "50.0 %"),
        (1e-9, "<0.1 %"),
        (1 - 1e-9, ">99.9 %"),
        (0.9995, ">99.9 %"),
        (0.999, "99.9 %"),
        (0.001, "0.1 %"),
        (-0.02, "-2.0 %"),
        (None, "n/a"),
    ],
)
def test_only_certainty_reads_as_certainty(share: float | None, text: str) -> None:
    assert numbers.percent(share) == text


def test_a_rate_of_nothing_is_not_a_rate() -> None:
    assert numbers.ratio(0, 0) == "n/a (0 of 0)"
    assert numbers.ratio(2, 3) == "2/3 (66.7 %)"
    assert numbers.ratio(None, 3) == "n/a"


def test_a_p_value_is_never_nought() -> None:
    assert numbers.p_text(3.0517578125e-05) == "3.1e-05"
    assert numbers.p_text(0.05) == ".0500"
    assert numbers.p_text(1.0) == "1"


def test_figures_of_every_kind() -> None:
    assert numbers.figure({"gpt": None, "opus": [1, 0.25, True]}) == "gpt n/a, opus 1, 0.25, yes"
    assert numbers.figure({"gpt": {"n": 2, "r": 0.5}, "opus": {}}) == "gpt (n 2, r 0.5), opus none"
    assert numbers.figure([]) == "none"
    assert numbers.figure({}) == "none"
    assert numbers.money(0.0) == "$0.00"
    assert numbers.money(1234.5) == "$1,234.50"
    assert numbers.interval(-0.02, 0.0) == "[-2.0, +0.0]"
