"""Consent (R10): the command line or fusion.yaml says how much, or nothing is sent and the message says what to do."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fusion_audit.configuration import Configuration, parse_configuration
from pytest_fusion_audit.metering.consent import Decision, Granted, Refused, Skip, decide

USD = 1_000_000


def decided(yaml: str = "", *, budget: object = None, option: object = None, **more: object) -> Decision:
    file = parse_configuration(yaml)
    environ = more.pop("environ", {})
    return decide(
        budget_option=budget, spend_option=option, spend=file.spend, caps=file.caps_usd, environ=environ, **more
    )


def test_without_consent_a_usage_error_names_the_option_and_the_file() -> None:
    for yaml in ("", "spend: {budget_usd: 50}", "spend: {consent: no, budget_usd: 50}", "spend: {total_usd: 500}"):
        found = decided(yaml)
        assert isinstance(found, Refused)
        assert "--fusion-budget=USD" in found.message
        assert "spend: {consent: yes, budget_usd: USD}" in found.message
        assert "nothing was sent" in found.message


def test_the_ceiling_is_not_an_approval() -> None:
    assert isinstance(decided("caps_usd: {total: 500}"), Refused)


@pytest.mark.parametrize("budget", [5, 5.0, "5.00", Decimal(5)])
def test_a_budget_on_the_command_line_is_consent(budget: object) -> None:
    assert decided(budget=budget) == Granted(5 * USD, "--fusion-budget")


def test_fusion_yaml_is_consent() -> None:
    assert decided("spend: {consent: yes, budget_usd: 0.1}") == Granted(100_000, "spend in fusion.yaml")


def test_the_command_line_wins_over_the_file_both_ways() -> None:
    yaml = "spend: {consent: yes, budget_usd: 50}"
    assert decided(yaml, budget=5) == Granted(5 * USD, "--fusion-budget")
    assert decided(yaml, budget=80) == Granted(80 * USD, "--fusion-budget")


def test_a_budget_of_nothing_is_no_consent() -> None:
    found = decided("spend: {consent: yes, budget_usd: 50}", budget=0)
    assert isinstance(found, Refused)
    assert "--fusion-budget=0" in found.message


# --- never


@pytest.mark.parametrize("yaml", ["", "spend: {consent: yes, budget_usd: 50}"])
def test_never_skips_whatever_else_is_said(yaml: str) -> None:
    found = decided(yaml, budget=5, option="never", missing=["OPENAI_API_KEY", "ANTHROPIC_API_KEY"])
    assert found == Skip(
        "--fusion-spend=never: nothing is billed; OPENAI_API_KEY is not set; ANTHROPIC_API_KEY is not set"
    )


@pytest.mark.parametrize("value", ["true", "True", "TRUE", "1", "yes", " true\n"])
def test_ci_means_never_unless_said(value: str) -> None:
    yaml = "spend: {consent: yes, budget_usd: 50}"
    found = decided(yaml, budget=5, environ={"CI": value})
    assert isinstance(found, Skip)
    assert found.reason.startswith("CI=true means --fusion-spend=never")
    assert "--fusion-spend=auto" in found.reason
    assert decided(yaml, budget=5, option="auto", environ={"CI": value}) == Granted(5 * USD, "--fusion-budget")
    assert isinstance(decided(option="auto", environ={"CI": value}), Refused)


@pytest.mark.parametrize("value", ["", "false", "0", "no"])
def test_no_ci_is_no_ci(value: str) -> None:
    assert isinstance(decided(budget=5, environ={"CI": value}), Granted)


# --- ceilings


def test_a_budget_above_the_ceiling_is_cut_and_told() -> None:
    found = decided(budget=800)
    assert found == Granted(
        500 * USD,
        "--fusion-budget",
        "--fusion-budget of 800.00 USD is above the ceiling of a run, 500.00 USD (caps_usd.total)",
    )
    assert decided("caps_usd: {total: 1000}", budget=800) == Granted(800 * USD, "--fusion-budget")
    lower = decided("caps_usd: {total: 10.5}", budget=800)
    assert isinstance(lower, Granted)
    assert lower.cap == 10_500_000


def test_total_usd_caps_all_runs_together() -> None:
    yaml = "spend: {consent: yes, budget_usd: 100, total_usd: 150}"
    assert decided(yaml).cap == 100 * USD  # type: ignore[union-attr]
    second = decided(yaml, spent_by_other_runs=90 * USD)
    assert second == Granted(
        60 * USD, "spend in fusion.yaml", "spend.total_usd of 150.00 USD leaves 60.00 USD to this run"
    )
    assert decided(yaml, budget=500, spent_by_other_runs=149_500_000).cap == 500_000  # type: ignore[union-attr]


def test_a_total_that_is_used_up_is_refused_with_the_amounts() -> None:
    yaml = "spend: {consent: yes, budget_usd: 100, total_usd: 150}"
    for other, this in ((150 * USD, 0), (160 * USD, 0), (100 * USD, 50 * USD), (100 * USD, 51 * USD)):
        found = decided(yaml, spent_by_other_runs=other, spent_by_this_run=this)
        assert isinstance(found, Refused)
        assert "spend.total_usd of 150.00 USD is used up" in found.message
        assert f"other runs spent {other // USD}.00, this one {this // USD}.00" in found.message
    assert isinstance(decided(yaml, spent_by_other_runs=100 * USD, spent_by_this_run=49 * USD), Granted)


def test_a_budget_below_what_is_spent_is_still_a_cap() -> None:
    # The ledger then refuses every call; the run directory stays readable and says why.
    assert decided(budget=3, spent_by_this_run=5 * USD) == Granted(3 * USD, "--fusion-budget")


amounts = st.integers(0, 2_000 * USD)


@given(
    budget=st.none() | amounts.map(lambda micro: Decimal(micro) / USD),
    consent=st.booleans(),
    limit=st.none() | st.integers(1, 900),
    total=st.none() | st.integers(900, 2000),
    ceiling=st.none() | st.integers(901, 2000),
    other=amounts,
    this=amounts,
    option=st.sampled_from([None, "auto", "never"]),
    ci=st.sampled_from(["", "true"]),
)
def test_nothing_is_granted_that_nobody_agreed_to(  # noqa: PLR0917
    budget: Decimal | None,
    consent: bool,
    limit: int | None,
    total: int | None,
    ceiling: int | None,
    other: int,
    this: int,
    option: str | None,
    ci: str,
) -> None:
    file = Configuration.model_validate(
        {
            "spend": {"consent": consent and limit is not None, "budget_usd": limit, "total_usd": total},
            "caps_usd": {"total": ceiling},
        }
    )
    found = decide(
        budget_option=budget,
        spend_option=option,  # type: ignore[arg-type]
        spend=file.spend,
        caps=file.caps_usd,
        environ={"CI": ci},
        spent_by_other_runs=other,
        spent_by_this_run=this,
    )
    if isinstance(found, Granted):
        assert option == "auto" or (option is None and not ci)
        assert budget is not None or file.spend.consent
        assert 0 < found.cap <= (ceiling or 500) * USD
        assert found.cap <= (budget * USD if budget is not None else limit * USD)  # type: ignore[operator]
        assert total is None or found.cap + other <= total * USD
    else:
        text = found.reason if isinstance(found, Skip) else found.message
        assert "--fusion-" in text or "spend.total_usd" in text
        assert "\n" not in text
