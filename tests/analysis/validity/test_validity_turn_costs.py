"""totals_disagree and unequal_compute: a turn is never cheaper than its parts."""

from __future__ import annotations

from dataclasses import replace

from pytest_fusion_audit.analysis.arms import ArmRef
from pytest_fusion_audit.analysis.validity.turn_costs import cost_per_task
from pytest_fusion_audit.evidence.records import Fused, Route
from tests.analysis.validity.validity_plants import IDS, LOCKED, SUITE, changed, clean, codes, evidence, the

COMPOUND = ArmRef(SUITE, "locked", "compound")


def _compound(*, control: bool = False, **changes) -> list:
    def change(record):
        if not isinstance(record, Fused):
            return record
        if record.arm == "compound":
            return replace(record, **changes)
        return record if control else None

    return changed(clean(), change)


def test_a_compound_cheaper_than_its_own_candidates_is_found_and_not_believed() -> None:
    found = evidence(_compound(cost_micro_usd=60_000))
    finding = the(found, "totals_disagree")
    assert finding.severity == "error"
    assert f"{SUITE}/locked/compound: 240 of 240 turns state a cost below that of their parts" in finding.message
    assert "(its candidates), 14.4000 USD against 31.2000 USD" in finding.message
    assert finding.evidence == (LOCKED,)
    assert {"1.1", "2.5", "5.1", "7.1"} <= set(finding.affects)
    # 60,000 would be less than a member's 65,000: no head start. The candidates cost 130,000.
    assert cost_per_task(found, COMPOUND) == 130_000
    assert "(0.1300 USD)" in the(found, "unequal_compute").message


def test_stages_are_parts_too() -> None:
    stages = {"panel": 50_000, "judge": 20_000, "synthesizer": None}
    found = evidence(_compound(cost_micro_usd=60_000, candidate_ids=None, stage_cost_micro_usd=stages))
    message = the(found, "totals_disagree").message
    # One answer of each member and the judge are more than the stages say: the larger reading counts.
    assert "one answer of each member, judge and synthesizer" in message
    assert cost_per_task(found, COMPOUND) == 150_000
    alone = {"panel": 150_000, "judge": 20_000}
    dear = evidence(_compound(cost_micro_usd=160_000, candidate_ids=None, stage_cost_micro_usd=alone))
    assert "(its stages judge, panel)" in the(dear, "totals_disagree").message
    assert cost_per_task(dear, COMPOUND) == 170_000


def test_rounding_of_each_part_is_no_contradiction() -> None:
    assert "totals_disagree" not in codes(evidence(_compound(control=True, cost_micro_usd=129_999)))
    assert "totals_disagree" not in codes(evidence(_compound(control=True, cost_micro_usd=129_998)))
    assert "totals_disagree" in codes(evidence(_compound(control=True, cost_micro_usd=129_997)))


def test_only_the_turns_that_contradict_themselves_are_raised() -> None:
    records = changed(
        clean(),
        lambda r: (
            replace(r, cost_micro_usd=1) if isinstance(r, Fused) and r.arm == "compound" and r.task == IDS[0] else r
        ),
    )
    found = evidence(records)
    assert "1 of 240 turns state a cost below that of their parts" in the(found, "totals_disagree").message
    assert IDS[0] in the(found, "totals_disagree").message
    assert cost_per_task(found, COMPOUND) == -(-(239 * 200_000 + 130_000) // 240)


def test_a_router_that_asks_one_member_is_no_contradiction() -> None:
    records = _compound(control=True, cost_micro_usd=60_000, candidate_ids=None, pick=None)
    assert "totals_disagree" in codes(evidence(records))
    route = Route(task=IDS[0], suite=SUITE, split="locked", router="by-length", decision="member:gpt")
    assert "totals_disagree" not in codes(evidence([*records, route]))


def test_a_cost_nobody_states_stays_unknown() -> None:
    found = evidence(_compound(cost_micro_usd=None))
    assert cost_per_task(found, COMPOUND) is None
    assert "totals_disagree" not in codes(found)
