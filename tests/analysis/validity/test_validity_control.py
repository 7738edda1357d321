"""unequal_compute: what serves as the control at equal dollars, and what only has its name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_fusion_audit.analysis.arms import ArmRef
from pytest_fusion_audit.analysis.validity.control import best_singles, controls_of
from pytest_fusion_audit.evidence.records import ArmOutcome, Candidate, ComparisonPlan, Config, Fused
from tests.analysis.validity.validity_plants import IDS, PASSES, SUITE, candidate, changed, clean, codes, evidence, the

COMPOUND = ArmRef(SUITE, "locked", "compound")
CONTROL = "self:gpt*4:rewrite"


def _control(**changes) -> list:
    """A clean audit whose control is another one."""

    def change(record):
        if isinstance(record, Fused) and record.arm == CONTROL:
            return replace(record, **changes)
        if isinstance(record, ComparisonPlan) and "arm" in changes:
            return replace(record, equal_dollar_arm=changes["arm"])
        return record

    return changed(clean(), change)


def test_the_best_single_sampled_for_the_same_dollars_is_the_control() -> None:
    found = evidence(clean())
    control = next(one for one in controls_of(found, COMPOUND) if one.comparison.second.arm == CONTROL)
    assert (control.member, control.best, control.cost_per_task) == ("gpt", ("gpt",), 199_000)
    assert control.controls
    assert control.shortcomings() == ""
    assert "unequal_compute" not in codes(found)


def test_an_arm_that_nobody_scored_controls_nothing() -> None:
    message = the(evidence(_control(verdict=None)), "unequal_compute").message
    assert f"no arm of the best single at equal dollars stands on these tasks (beside them {CONTROL}, not scored" in (
        message
    )
    assert "not scored on 240 of these tasks" in message


def test_a_few_tasks_a_provider_failed_on_leave_the_control_standing() -> None:
    def failed(upto: int) -> list:
        lost = set(IDS[:upto])
        return changed(
            clean(),
            lambda r: (
                replace(r, outcome="provider_error", verdict=None)
                if isinstance(r, Fused) and r.arm == CONTROL and r.task in lost
                else r
            ),
        )

    assert "unequal_compute" not in codes(evidence(failed(12)))
    assert "not scored on 13 of these tasks" in the(evidence(failed(13)), "unequal_compute").message


def test_samples_of_another_member_than_the_best_say_so_and_control_nothing() -> None:
    found = evidence(_control(arm="self:opus*4:rewrite"))
    message = the(found, "unequal_compute").message
    assert "self:opus*4:rewrite, of opus and not of the best single (member:gpt)" in message


def test_a_model_outside_the_panel_is_not_its_best_single() -> None:
    message = the(evidence(_control(arm="self:tiny*9:rewrite")), "unequal_compute").message
    assert "self:tiny*9:rewrite, of tiny and not of the best single (member:gpt)" in message


def test_a_control_called_by_its_model_is_the_member_with_that_model() -> None:
    assert "unequal_compute" not in codes(evidence(_control(arm="self:openai/gpt-5.5*4:rewrite")))


@pytest.mark.parametrize(("model", "serves"), [("gpt-5.5-2026-04-01", True), ("claude-opus-4-8", False), (None, False)])
def test_a_registered_control_of_any_name_is_what_its_rows_say(model: str | None, serves: bool) -> None:
    def change(record):
        if isinstance(record, Fused) and record.arm == CONTROL:
            return ArmOutcome(
                task=record.task,
                suite=SUITE,
                split="locked",
                arm="budget",
                passed=record.task in PASSES[CONTROL],
                cost_micro_usd=199_000,
                model=model,
                source="control.json",
            )
        return replace(record, equal_dollar_arm="budget") if isinstance(record, ComparisonPlan) else record

    found = evidence(changed(clean(), change))
    assert ("unequal_compute" in codes(found)) is not serves
    if not serves:
        named = "claude-opus-4-8" if model else "a model nobody states"
        assert f"budget, of {named} and not of the best single" in the(found, "unequal_compute").message


def test_a_run_behind_the_door_of_one_model_lists_it() -> None:
    record = Config(what="run", suite=SUITE, split="locked", facts={"models": {"gpt": "gpt-5.5"}}, source="self.jsonl")
    assert "unequal_compute" not in codes(
        evidence([*_control(arm="self", candidate_ids=None, source="self.jsonl"), record])
    )


def test_the_best_single_is_the_one_named_the_best_of_dev_and_the_best_here() -> None:
    assert best_singles(evidence(clean()), SUITE, "locked") == ("gpt",)
    dev = [
        candidate(f"d{n}", name, split="Dev ", verdict="passed" if name == "opus" else "failed")
        for n in range(4)
        for name in ("gpt", "opus")
    ]
    assert best_singles(evidence([*clean(), *dev]), SUITE, "locked") == ("gpt", "opus")
    named = changed(
        clean(),
        lambda r: (
            replace(r, suite=SUITE.upper(), baseline_settings={**r.baseline_settings, "best_single": "member:opus"})
            if isinstance(r, ComparisonPlan)
            else r
        ),
    )
    assert best_singles(evidence(named), SUITE, "locked") == ("gpt", "opus")
    tied = changed(
        clean(), lambda r: replace(r, verdict="passed") if isinstance(r, Candidate) and r.task in IDS[:120] else r
    )
    assert best_singles(evidence(tied), SUITE, "locked") == ("gpt", "opus")
