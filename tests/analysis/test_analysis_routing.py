# ruff: noqa: FBT003 - a verdict reads best in its place
from __future__ import annotations

import pytest

from pytest_fusion_audit.analysis.routing import depth_tiers, routers
from pytest_fusion_audit.evidence.records import Route
from pytest_fusion_audit.stats import paired_test
from tests.analysis.analysis_records import SPLIT, SUITE, candidate, evidence, fused, outcomes, primaries, ref


def route(task: str, decision: str, router: str = "length", **facts) -> Route:
    return Route(task=task, suite=SUITE, split=SPLIT, router=router, decision=decision, **facts)


def arm(name: str, marks: str, cost: int | None = None, seconds: float | None = None):
    return outcomes(name, marks, cost_micro_usd=cost, latency_s=seconds)


def test_a_router_by_hand():
    run = evidence(
        arm("compound", "+++-+", 100, 8.0), arm("member:a", "+--++", 10, 2.0), arm("member:b", "+----", 20, 1.0),
        [route(f"t{n}", d) for n, d in enumerate(["member:b", "compound", "member:a", "compound", "member:a"])],
    )  # fmt: skip
    (found,) = routers(run, SUITE, SPLIT)
    assert (found.name, found.learned, found.always, found.never) == ("length", False, "compound", "member:a")
    assert (found.n, found.fused, found.fused_share, found.at_run_time) == (5, 2, 0.4, True)
    # b+ compound+ a- compound- a+
    assert found.mixture == (0.6, 0.000048, 2.0, 8.0)
    assert found.always_fuse == (0.8, 0.0001, 8.0, 8.0)
    assert found.never_fuse == (0.6, 0.00001, 2.0, 2.0)
    assert found.cost_share == 0.48
    assert found.against_always[:3] == (0, 1, -0.2)
    assert found.against_never[:3] == (1, 1, 0.0)
    test = paired_test(0, 1, 5)
    assert found.against_always[3:] == (test.exact_p, test.mid_p, "not shown")


def test_routers_are_told_apart_and_learned_ones_named():
    run = evidence(
        arm("compound", "++"), arm("member:a", "--"),
        [route("t0", "compound", "z"), route("t0", "member:a", "b", learned=True)],
        route("t1", "member:a", "b", learned=True),
    )  # fmt: skip
    first, second = routers(run, SUITE, SPLIT)
    assert (first.name, first.learned, first.n, first.fused) == ("b", True, 2, 0)
    assert (second.name, second.learned, second.n, second.fused) == ("z", False, 1, 1)


def test_a_router_is_learned_when_all_its_decisions_are():
    routes = [route("t0", "compound", learned=True), route("t1", "compound")]
    (found,) = routers(evidence(arm("compound", "++"), arm("member:a", "--"), routes), SUITE, SPLIT)
    assert not found.learned


def test_a_decision_for_an_arm_that_did_not_answer_leaves_the_mixture():
    run = evidence(
        arm("compound", "+?"),
        arm("member:a", "++"),
        [route("t0", "served"), route("t1", "compound"), route("t2", "member:a")],
    )
    (found,) = routers(run, SUITE, SPLIT)
    assert (found.n, found.fused_share, found.mixture, found.cost_share) == (0, None, (None, None, None, None), None)
    assert (found.against_never.exact_p, found.against_never.uplift, found.against_never.decision) == (None, None, None)


def test_one_unknown_cost_makes_the_cost_of_a_policy_unknown():
    run = evidence(
        arm("compound", "++", 100), arm("member:a", "+", 10), outcomes("member:a", " +"),
        [route("t0", "member:a"), route("t1", "compound")],
    )  # fmt: skip
    (found,) = routers(run, SUITE, SPLIT)
    assert (found.mixture.cost_per_task_usd, found.never_fuse.cost_per_task_usd) == (0.000055, None)
    assert found.mixture.latency_p50_s is None
    unpriced = evidence(arm("compound", "+"), arm("member:a", "+", 10), route("t0", "member:a"))
    (found,) = routers(unpriced, SUITE, SPLIT)
    assert (found.mixture.cost_per_task_usd, found.cost_share) == (0.00001, None)


def test_without_decisions_or_without_both_policies_there_is_nothing_to_route():
    assert routers(evidence(arm("compound", "+"), arm("member:a", "+")), SUITE, SPLIT) == ()
    assert routers(evidence(arm("compound", "+"), route("t0", "compound")), SUITE, SPLIT) == ()
    assert routers(evidence(arm("member:a", "+"), route("t0", "member:a")), SUITE, SPLIT) == ()
    policies = [arm("compound:x", "+"), arm("compound:y", "+")]
    assert routers(evidence(policies, arm("member:a", "+"), route("t0", "compound:x")), SUITE, SPLIT) == ()


def test_depth_by_verdicts_by_hand():
    run = evidence(
        primaries("a", "++--", cost_micro_usd=10, latency_s=2.0),
        primaries("b", "+-+-", cost_micro_usd=30, latency_s=5.0),
        [fused(f"t{n}", mark == "+", cost_micro_usd=200, latency_s=9.0) for n, mark in enumerate("+-++")],
    )  # fmt: skip
    (found,) = depth_tiers(run, ref())
    assert (found.name, found.at_run_time, found.always, found.never) == ("verdicts", False, "compound", "member:a")
    assert (found.n, found.fused, found.fused_share) == (4, 2, 0.5)
    # t0 shallow +, t1 deep -, t2 deep +, t3 shallow -
    assert found.mixture == (0.5, 0.00012, 7.0, 9.0)
    assert found.always_fuse.pass_rate == 0.75
    assert found.never_fuse == (0.5, 0.00001, 2.0, 2.0)
    assert found.cost_share == pytest.approx(0.6)
    assert (found.against_always.wins, found.against_always.losses) == (0, 1)


def test_every_recorded_signal_is_a_rule_and_hidden_verdicts_are_marked():
    def draw(task, member, passed, answer, public):
        return candidate(task, member, passed, answer_sha256=answer, public_passed=public, public_total=2)

    run = evidence(
        draw("t0", "a", True, "x", 2), draw("t0", "b", True, "x", 2),
        draw("t1", "a", False, "x", 2), draw("t1", "b", False, "y", 2),
        draw("t2", "a", False, "z", 1), draw("t2", "b", False, "z", 2),
        outcomes("compound", "-++"),
    )  # fmt: skip
    found = {tier.name: tier for tier in depth_tiers(run, ref())}
    assert list(found) == ["public_tests", "answers", "verdicts"]
    assert {name: (tier.fused, tier.mixture.pass_rate, tier.at_run_time) for name, tier in found.items()} == {
        "public_tests": (1, pytest.approx(2 / 3), True),
        "answers": (1, pytest.approx(2 / 3), True),
        "verdicts": (0, pytest.approx(1 / 3), False),
    }


def test_a_signal_that_one_candidate_lacks_is_no_rule():
    told = {"answer_sha256": "x", "public_passed": 1, "public_total": 1}
    run = evidence(candidate("t0", "a", True, **told), candidate("t0", "b", True), outcomes("compound", "+"))
    assert [tier.name for tier in depth_tiers(run, ref())] == ["verdicts"]
    by_verdict = evidence(candidate("t0", "a", True, **told), outcomes("member:b", "+"), outcomes("compound", "+"))
    assert [tier.name for tier in depth_tiers(by_verdict, ref())] == ["verdicts"]


def test_only_primary_samples_of_the_panel_signal():
    told = {"public_passed": 1, "public_total": 1}
    more = [candidate("t0", "a", True, sample=1), candidate("t0", "a", True, config="other")]
    run = evidence(
        candidate("t0", "a", True, **told), candidate("t0", "b", True, **told), more, outcomes("compound", "+")
    )
    assert [tier.name for tier in depth_tiers(run, ref())] == ["public_tests", "verdicts"]


def test_a_signal_needs_every_candidate_to_tell():
    run = evidence(candidate("t0", "a", True), candidate("t0", "b", True), outcomes("compound", "+"))
    assert [tier.name for tier in depth_tiers(run, ref())] == ["verdicts"]


def test_a_task_whose_deep_answer_is_missing_leaves_the_mixture():
    run = evidence(primaries("a", "+--"), primaries("b", "+++"), outcomes("compound", "+?"))
    (found,) = depth_tiers(run, ref())
    assert (found.n, found.fused) == (1, 0)


def test_a_panel_of_one_never_disagrees():
    assert depth_tiers(evidence(primaries("a", "+-"), outcomes("compound", "++")), ref()) == ()
    assert depth_tiers(evidence(outcomes("compound", "++")), ref()) == ()
