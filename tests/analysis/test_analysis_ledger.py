from __future__ import annotations

import pytest

from pytest_fusion_audit.analysis.ledger import ledger_figures, phase_number, published_totals, reserve_of, running_gaps
from pytest_fusion_audit.evidence.container import RunFacts
from pytest_fusion_audit.evidence.records import Claim, Phase
from tests.analysis.analysis_records import evidence


def line(number: int, phase: str, est=None, cum=None, *, measured=None, source="ledger.jsonl") -> Phase:
    return Phase(
        phase=phase, est_micro_usd=est, cum_micro_usd=cum, measured_micro_usd=measured, line=number, source=source
    )


def test_a_ledger_of_estimates_by_hand():
    lines = [line(1, "1-smoke", 10, 10), line(2, "3-baseline", 20, 31), line(3, "6a-served", 100_000_000, 100_000_025)]
    found = ledger_figures(evidence(lines[::-1]))
    assert (found.lines, found.sum_est, found.sum_measured, found.last_cum) == (3, 100_000_030, None, 100_000_025)
    assert (found.cum_minus_sum, found.largest_gap) == (-5, 5)
    assert (found.phase6, found.reserve, found.phase6_over_reserve) == (100_000_000, 90_000_000, 10_000_000)
    assert running_gaps(lines) == [0, 1, -5]


def test_measured_amounts_are_what_a_ledger_that_has_them_runs_on():
    found = ledger_figures(evidence(line(1, "3", 10, 4, measured=4), line(2, "6", 10, 9, measured=5)))
    assert (found.sum_est, found.sum_measured, found.cum_minus_sum, found.largest_gap) == (20, 9, 0, 0)
    assert found.phase6 == 5


def test_a_ledger_that_measured_once_runs_on_measured_amounts():
    found = ledger_figures(evidence(line(1, "3", 10, 4, measured=4), line(2, "6", 10, 14)))
    assert (found.sum_est, found.sum_measured, found.cum_minus_sum, found.largest_gap) == (20, None, None, 0)
    assert found.phase6 is None


def test_an_unknown_amount_makes_the_sums_unknown():
    lines = [line(1, "3", 10, 10), line(2, "6", None, 12), line(3, "7", 1, 13)]
    found = ledger_figures(evidence(lines))
    assert (found.sum_est, found.cum_minus_sum, found.phase6, found.phase6_over_reserve) == (None, None, None, None)
    assert (found.last_cum, found.largest_gap) == (13, 0)
    assert ledger_figures(evidence(line(1, "3", 10))).last_cum is None


def test_each_file_runs_its_own_sum():
    found = ledger_figures(
        evidence(line(1, "3", 10, 10), line(2, "6", 5, 15), line(1, "6", 7, 7, source="other.jsonl"))
    )
    assert (found.lines, found.sum_est, found.last_cum, found.cum_minus_sum, found.phase6) == (3, 22, 22, 0, 12)


def test_no_ledger_has_no_figures():
    assert ledger_figures(evidence()) is None


@pytest.mark.parametrize(
    ("run", "reserve"),
    [
        (RunFacts(), 90_000_000),
        (RunFacts(cap_micro_usd=250_000_000), 45_000_000),
        (RunFacts(settings={"caps_usd": {"reserve": 12.5}}, cap_micro_usd=250_000_000), 12_500_000),
        (RunFacts(settings={"caps_usd": {"total": 100}}), 90_000_000),
    ],
)
def test_the_reserve_is_the_settings_or_scales_with_the_cap(run, reserve):
    assert reserve_of(evidence(run=run)) == reserve


@pytest.mark.parametrize(
    ("name", "number"),
    [("6-locked", 6), ("60", 60), ("phase 5-x", 5), ("locked 6", 6), ("climb", 5), ("P6.2", 6), ("tier2-x", None)],
)
def test_phase_numbers(name, number):
    assert phase_number(name) == number


def scorecard(source: str, scores: dict[str, int], weights: dict[str, float]) -> list[Claim]:
    return [Claim(quantity="score", criterion=c, value=v, source=source) for c, v in scores.items()] + [
        Claim(quantity="weight", criterion=d, value=v, source=source) for d, v in weights.items()
    ]


def test_a_published_total_by_hand():
    claims = scorecard("s.json", {"1.1": 2, "1.2": 1, "2.1": 0, "10.1": 2}, {"1": 20, "2": 10, "10": 4})
    other = [
        Claim(quantity="score", criterion=None, value=2, source="x"),
        Claim(quantity="score", criterion="1.3", value=True, source="s.json"),
        Claim(quantity="pass_rate", criterion="1.1", value=0.5, source="s.json"),
    ]
    (found,) = published_totals(evidence(claims, other))
    assert (found.source, found.total, found.out_of, found.criteria) == ("s.json", 20 * 3 / 4 + 0 + 4, 34, 4)


def test_two_published_scorecards_are_totalled_apart():
    run = evidence(scorecard("b", {"1.1": 2}, {"1": 20}), scorecard("a", {"1.1": 1, "9.1": 2}, {"1": 20}))
    assert [(total.source, total.total) for total in published_totals(run)] == [("a", 10.0), ("b", 20.0)]
    assert published_totals(evidence()) == ()
