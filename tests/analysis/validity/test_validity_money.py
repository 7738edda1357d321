"""ledger_mismatch, cap_exceeded, reserve_touched, estimates_only, prices_differ."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_fusion_audit.analysis.validity.money import caps_of
from pytest_fusion_audit.evidence.money import micro_usd
from pytest_fusion_audit.evidence.records import Candidate, Config, Phase
from tests.analysis.validity.validity_plants import changed, clean, codes, evidence, only, the


def ledger(*lines: tuple[str, float, float | None], measured: bool = True, source: str = "ledger.jsonl") -> list[Phase]:
    """Lines of (phase, dollars, cum_usd)."""
    return [
        Phase(
            phase=phase,
            est_micro_usd=micro_usd(cost),
            measured_micro_usd=micro_usd(cost) if measured else None,
            cum_micro_usd=None if cum is None else micro_usd(cum),
            line=number,
            source=source,
        )
        for number, (phase, cost, cum) in enumerate(lines, 1)
    ]


def test_a_sum_that_is_not_the_running_sum_names_lines_and_sums() -> None:
    lines = [("0", 0.01, 0.01), ("1", 0.85, 0.86), ("3", 11.2, 12.1), ("4", 6.0, 18.1), ("5", 2.0, 20.0)]
    finding = the(evidence(ledger(*lines)), "ledger_mismatch")
    assert finding.severity == "error"
    assert finding.message == (
        "ledger.jsonl: cum_usd is not the running sum on lines 3-5 of 5, most on line 5 (-0.06 USD); the last says "
        "20.00 USD, the lines add up to 20.06 USD"
    )
    assert finding.evidence == ("ledger.jsonl",)


def test_a_sum_of_measured_amounts_counts_where_both_stand() -> None:
    lines = [replace(line, est_micro_usd=1) for line in ledger(("1", 1.0, 1.0), ("3", 2.0, 3.0))]
    assert "ledger_mismatch" not in codes(evidence(lines))


def test_a_sum_that_is_right_or_absent() -> None:
    assert "ledger_mismatch" not in codes(evidence(ledger(("1", 0.1, 0.1), ("1", 0.2, 0.3), ("3", 1.005, None))))


def test_two_ledgers_are_two_sums() -> None:
    first = ledger(("1", 1.0, 1.0))
    second = ledger(("1", 2.0, 2.0), ("3", 2.0, 5.0), source="other.jsonl")
    assert the(evidence([*first, *second]), "ledger_mismatch").evidence == ("other.jsonl",)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([("1-smoke", 16.0, None)], "phases 0 and 1 (smoke): 16.00 USD over its cap of 15.00 USD by 1.00 USD (lines 1"),
        ([("3-baseline", 151.0, None)], "phase 3 (baseline): 151.00 USD over its cap of 150.00 USD"),
        ([("3-composition", 61.0, None)], "phase 3 (composition): 61.00 USD over its cap of 60.00 USD"),
        ([("4-ablations", 41.0, None)], "phase 4 (ablations): 41.00 USD over its cap of 40.00 USD"),
        ([("6-locked-test", 51.0, None)], "phase 6, locked test: 51.00 USD over its cap of 50.00 USD"),
        ([("6a-shipped-path", 41.0, None)], "phase 6, served path: 41.00 USD over its cap of 40.00 USD"),
        (
            [("6-locked", 50.0, None), ("6-served", 40.0, None), ("6-more", 17.0, None)],
            "phase 6, the reserve: 107.00 USD over its cap of 90.00 USD by 17.00 USD (lines 1-3); caps: procedure, R2",
        ),
        ([("5-climb", 400.0, None), ("other", 101.0, None)], "the whole run: 501.00 USD over its cap of 500.00 USD"),
    ],
)
def test_a_phase_over_its_cap(lines: list, told: str) -> None:
    finding = the(evidence(ledger(*lines)), "cap_exceeded")
    assert finding.severity == "error"
    assert told in finding.message


def test_phases_at_their_caps() -> None:
    lines = ledger(
        ("0", 1.0, None), ("1", 14.0, None), ("3", 150.0, None), ("3-composition", 60.0, None), ("4", 40.0, None),
        ("5", 145.0, None), ("6-locked", 50.0, None), ("6-served", 40.0, None),
    )  # fmt: skip
    assert not codes(evidence(lines)) & {"cap_exceeded", "reserve_touched"}


def test_caps_scale_with_another_total_and_give_way_to_the_settings() -> None:
    half = caps_of(evidence([], settings={"cap": 250}))
    assert (half["reserve"], half["smoke"], half["total"]) == (45_000_000, 7_500_000, 250_000_000)
    own = caps_of(evidence([], settings={"caps_usd": {"total": 250, "smoke": 20}}))
    assert (own["smoke"], own["reserve"], own.how) == (20_000_000, 45_000_000, "settings")
    unset = caps_of(evidence([], settings={"caps_usd": {"total": None, "smoke": None}}))
    assert (unset["smoke"], unset["total"]) == (15_000_000, 500_000_000)
    live = caps_of(evidence([], mode="live", cap_micro_usd=100_000_000))
    assert live["reserve"] == 18_000_000
    # The budget of the session that looks is not the budget of the run it looks at.
    assert caps_of(evidence([], mode="imported", cap_micro_usd=1))["total"] == 500_000_000


def test_a_run_of_ours_may_spend_in_phase_6_what_earlier_phases_left() -> None:
    lines = ledger(("3", 100.0, None), ("6-locked", 80.0, None), ("6-served", 27.0, None))
    assert "cap_exceeded" in codes(evidence(lines))
    assert "cap_exceeded" not in codes(evidence(lines, mode="live"))


def test_the_reserve_touched_before_phase_6() -> None:
    spent = ledger(("3", 150.0, None), ("4", 40.0, None), ("5", 200.0, None), ("5", 30.0, None), ("6", 10.0, None))
    finding = the(evidence(spent), "reserve_touched")
    assert finding.severity == "error"
    assert "line 4 (phase 5) brings what was spent before phase 6 to 420.00 USD, 10.00 USD out of the reserve" in (
        finding.message
    )
    # What phase 6 spent in between counts as its own.
    mixed = ledger(("5", 200.0, None), ("6", 80.0, None), ("5", 200.0, None))
    assert "reserve_touched" not in codes(evidence(mixed))


def test_a_ledger_of_estimates() -> None:
    finding = the(evidence(ledger(("1", 1.0, 1.0), ("3", 2.5, 3.5), measured=False)), "estimates_only")
    assert finding.severity == "warning"
    assert finding.message == "ledger.jsonl: no measured amount on 2 of 2 lines (1-2), 3.50 USD are estimates"
    some = [*ledger(("1", 1.0, 1.0)), replace(ledger(("3", 2.5, 3.5), measured=False)[0], line=2)]
    assert "no measured amount on 1 of 2 lines (2), 2.50 USD" in the(evidence(some), "estimates_only").message


def _priced(**pricing: float) -> list:
    def told(record):
        if isinstance(record, Config) and record.what == "panel":
            first, *others = record.facts["members"]
            members = [{**first, "pricing": pricing}, *others]
            return replace(record, facts={**record.facts, "members": members})
        return record

    return changed(clean(), told)


def test_prices_that_differ_from_the_table_show_both_costs() -> None:
    finding = the(evidence(_priced(input=1.25, output=10.0)), "prices_differ")
    assert finding.severity == "warning"
    # 240 answers of 1,000 tokens in and 2,000 out
    assert finding.message == (
        "panel.yaml: USD per million tokens differ from the price table: gpt (gpt-5.5): input 1.25 against 5 "
        "(4 times), output 10 against 30 (3 times); 240 recorded answers cost 5.10 USD at the panel's prices, 15.60 at "
        "the table's"
    )
    assert {"7.1"} <= set(finding.affects)


def test_without_tokens_the_ratio_bounds_the_true_cost() -> None:
    records = changed(_priced(input=1.25, output=10.0), only(Candidate, input_tokens=None))
    message = the(evidence(records), "prices_differ").message
    assert "no tokens recorded, its true cost is 3 to 4 times what is recorded" in message


def test_a_model_the_table_does_not_know_or_a_panel_without_prices() -> None:
    assert "prices_differ" not in codes(evidence(_priced()))

    def unknown(record):
        if isinstance(record, Config) and record.what == "panel":
            members = [{**member, "table_pricing": None} for member in record.facts["members"]]
            return replace(record, facts={**record.facts, "members": members})
        return record

    assert "prices_differ" not in codes(evidence(changed(_priced(input=1.0, output=1.0), unknown)))


def test_a_price_of_nothing_is_a_difference_too() -> None:
    assert "input 0 against 5" in the(evidence(_priced(input=0, output=30.0)), "prices_differ").message
