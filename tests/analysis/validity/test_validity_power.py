"""underpowered and never_worse_unproven."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_fusion_audit.analysis.validity.power import never_worse_unproven, underpowered
from pytest_fusion_audit.evidence.records import ArmOutcome, Claim, ComparisonPlan
from tests.analysis.validity.validity_plants import SUITE, changed, clean, codes, evidence, only, the


def rows(wins: int, losses: int, both: int, neither: int, *, split: str = "locked", arm: str = "compound") -> list:
    """A compound and one member with these counts."""
    verdicts = [(True, False)] * wins + [(False, True)] * losses + [(True, True)] * both + [(False, False)] * neither
    return [
        ArmOutcome(task=f"t{number}", suite=SUITE, split=split, arm=name, passed=passed, source=f"{split}.json")
        for number, pair in enumerate(verdicts)
        for name, passed in zip((arm, "member:solo"), pair, strict=True)
    ]


def test_a_registration_that_could_not_show_its_effect() -> None:
    finding = the(evidence(changed(clean(), only(ComparisonPlan, n=86))), "underpowered")
    assert finding.severity == "error"
    # 80 % at discordance .12/.04 needs 210 tasks (exact test, grid of 5).
    assert "the registered 86 tasks have 37 % power for +8.0 points at discordance 0.160" in finding.message
    assert "exact test" in finding.message
    assert finding.evidence == ("plan.json",)
    assert set(finding.affects) == {"1.1", "1.3"}


@pytest.mark.parametrize(("n", "enough"), [(150, False), (215, True), (0, False)])
def test_power_at_the_registered_effect_decides(n: int, enough: bool) -> None:
    records = changed(clean(), only(ComparisonPlan, n=n, expected_uplift=None, expected_discordance=None))
    errors = [f for f in underpowered(evidence(records)) if f.severity == "error"]
    assert (not errors) is enough


@pytest.mark.parametrize(
    ("role", "affects"), [("replication", {"1.2", "1.3"}), ("non_coding", {"1.6"}), (None, {"1.1", "1.2", "1.3"})]
)
def test_a_registration_affects_the_criteria_of_its_role(role: str | None, affects: set[str]) -> None:
    plan = replace(next(r for r in clean() if isinstance(r, ComparisonPlan)), n=20, role=role)
    (finding,) = underpowered(evidence([plan]))
    assert set(finding.affects) == affects


def test_a_null_result_on_too_few_tasks_for_three_points() -> None:
    finding = the(evidence(rows(7, 6, 73, 17)), "underpowered")
    assert finding.severity == "warning"
    assert "103 tasks, 1,099 needed at discordance 0.126" in finding.message
    assert set(finding.affects) == {"1.3"}


def test_a_shown_uplift_needs_no_further_tasks() -> None:
    assert "underpowered" not in codes(evidence(rows(16, 0, 41, 29)))


def test_working_splits_claim_nothing() -> None:
    found = evidence(rows(7, 6, 73, 17, split="dev"))
    assert underpowered(found) == []
    assert never_worse_unproven(found) == []


def test_counts_a_file_states_stand_in_where_it_keeps_no_rows_of_the_member() -> None:
    records = [row for row in rows(7, 6, 73, 17) if row.arm == "compound"]
    records += [
        Claim(quantity=name, value=value, suite=SUITE, split="locked", arm="compound~member:solo", source="locked.json")
        for name, value in (("wins", 7), ("losses", 6), ("significant", False))
    ]
    found = evidence(records)
    assert "locked/compound against member:solo: 103 tasks, 1,099 needed" in the(found, "underpowered").message
    worse = the(found, "never_worse_unproven").message
    assert "compound against member:solo 7 won, 6 lost of 103, as the file states" in worse


def test_a_loss_of_more_than_five_points_that_is_not_excluded() -> None:
    finding = the(evidence(rows(2, 5, 14, 9)), "never_worse_unproven")
    assert finding.severity == "warning"
    assert f"{SUITE}: worse by up to 25.5 points not excluded (one-sided 95 % Tango bound)" in finding.message
    assert "compound against member:solo 2 won, 5 lost of 30 (bound -25.5 points)" in finding.message
    assert finding.affects == ("1.4",)


def test_a_loss_within_five_points_is_excluded() -> None:
    assert never_worse_unproven(evidence(rows(20, 12, 100, 200))) == []


def test_the_incumbent_speaks_for_the_compound() -> None:
    tried = [row for row in rows(0, 40, 100, 100, arm="compound@tried") if row.arm == "compound@tried"]
    assert never_worse_unproven(evidence([*rows(30, 10, 100, 100), *tried])) == []


def test_one_finding_per_suite_names_the_worst_member() -> None:
    second = [replace(row, arm="member:other") for row in rows(3, 3, 18, 6) if row.arm == "member:solo"]
    finding = the(evidence([*rows(2, 5, 14, 9), *second]), "never_worse_unproven")
    assert "worse by up to" in finding.message
    assert finding.message.count("compound against") == 2
