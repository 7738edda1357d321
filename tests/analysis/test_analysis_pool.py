# ruff: noqa: FBT003 - a verdict reads best in its place
from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.analysis.arms import ArmRef
from pytest_fusion_audit.analysis.pool import PLANNED, POST_HOC, pool_of
from pytest_fusion_audit.evidence.records import ComparisonPlan, Split
from tests.analysis.analysis_records import SPLIT, SUITE, candidate, evidence, fused, outcomes, primaries

unhurried = settings(deadline=None, max_examples=60)


def pool(*records, **options):
    return pool_of(evidence(*records), SUITE, SPLIT, **options)


def samples(member: str, *draws: str) -> list:
    return [primaries(member, marks, sample=k) for k, marks in enumerate(draws)]


def test_a_pool_of_primaries_by_hand():
    found = pool(primaries("gpt", "++--"), primaries("opus", "+-+-"))
    assert (found.panel, found.n) == (("gpt", "opus"), 4)
    assert (found.oracle(), found.headroom(), found.random_pick()) == (0.75, 0.25, 0.5)
    assert found.best_single() == ("member:gpt", 0.5, POST_HOC)
    assert found.best_single_ref() == ArmRef(SUITE, SPLIT, "member:gpt")
    assert found.decision_tasks() == ("t1", "t2")
    assert (found.all_pass, found.all_fail) == (1, 1)


def test_more_samples_enlarge_the_oracle_and_leave_the_single_alone():
    found = pool(samples("gpt", "+---", "-+--", "----"), samples("opus", "----", "--+-"))
    assert (found.oracle(), found.best_single()) == (0.75, ("member:gpt", 0.25, POST_HOC))
    assert found.headroom() == 0.5
    assert [c.id for c in found.tasks["t0"]] == ["gpt#0", "opus#0", "gpt#1", "gpt#2", "opus#1"]
    assert (found.right("t0"), found.right("t3")) == (1, 0)
    assert found.random_pick() == pytest.approx(3 / 5 / 4)
    assert found.decision_tasks() == ("t0", "t1", "t2")
    assert found.coverage.leave_one_out() == {"gpt": 0.5, "opus": 0.25}
    assert found.coverage.shapley() == {"gpt": 0.5, "opus": 0.25}
    assert found.matrix.oracle() == 0.25


def test_a_task_without_a_members_verdict_leaves_on_all_sides():
    found = pool(primaries("gpt", "++ ?"), primaries("opus", "+-++"))
    assert (found.n, len(found.verdicts)) == (2, 4)
    assert (found.oracle(), found.best_single().arm) == (1.0, "member:gpt")
    assert found.verdicts["t2"] == {"gpt#0": None, "opus#0": True}
    assert found.primaries.paired("gpt", "opus").n == 2


def test_a_further_sample_without_verdict_leaves_its_task_undecided():
    found = pool(samples("gpt", "+-", "?-"), samples("opus", "--"))
    assert tuple(found.tasks) == ("t1",)


def test_a_further_sample_that_was_never_delivered_is_no_candidate():
    found = pool(primaries("gpt", "-"), candidate("t0", "gpt", None, sample=1, outcome="provider_error"))
    assert (found.n, [c.id for c in found.tasks["t0"]], found.oracle()) == (1, ["gpt#0"], 0.0)


def test_an_empty_further_sample_is_a_failed_candidate():
    found = pool(primaries("gpt", "+"), candidate("t0", "gpt", None, sample=1, outcome="empty"))
    assert (found.right("t0"), len(found.tasks["t0"]), found.decision_tasks()) == (1, 2, ("t0",))


def test_other_seeds_and_turns_are_not_in_the_pool():
    found = pool(
        primaries("gpt", "-"), candidate("t0", "gpt", True, replicate=1), candidate("t0", "gpt", True, turn=1),
        candidate("t0", "gpt", True, sample=1, replicate=1), candidate("t0", "gpt", True, sample=1, turn=1),
    )  # fmt: skip
    assert found.oracle() == 0.0
    second = pool(primaries("gpt", "-"), candidate("t0", "gpt", True, replicate=1), replicate=1)
    assert second.oracle() == 1.0


def test_members_known_by_verdicts_alone_are_a_pool_of_primaries():
    found = pool(outcomes("member:gpt", "+-"), outcomes("member:opus", "--"))
    assert (found.oracle(), found.whole) == (0.5, None)


def test_the_oracle_never_looks_at_the_fused_answer():
    assert pool(primaries("gpt", "-"), outcomes("compound", "+"), fused("t0", True, "compound:x")).oracle() == 0.0


def test_a_pool_without_tasks_or_members_is_unknown():
    for found in (pool(outcomes("compound", "+")), pool(primaries("gpt", "?"))):
        assert found.n == 0
        assert (found.oracle(), found.best_single(), found.headroom(), found.random_pick()) == (None,) * 4
        assert found.best_single_ref() is None
        assert found.decision_tasks() == ()


def test_a_panel_of_one_has_its_own_samples_as_headroom():
    assert pool(samples("gpt", "+--", "-+-")).headroom() == pytest.approx(1 / 3)


def test_the_best_single_a_plan_named_stands_although_it_is_not_the_best():
    plan = ComparisonPlan(
        suite=SUITE, split=SPLIT, arms=("compound",), n=2, baseline_settings={"best_single": "member:opus"}
    )
    found = pool(plan, primaries("gpt", "++"), primaries("opus", "+-"))
    assert found.best_single() == ("member:opus", 0.5, PLANNED)
    assert found.headroom() == 0.5


@pytest.mark.parametrize("settings", [{"best_single": "nobody"}, {"best_single": 3}, {"gpt": {"max_tokens": 4}}])
def test_a_plan_that_names_no_member_leaves_the_choice_post_hoc(settings):
    plan = ComparisonPlan(suite=SUITE, split=SPLIT, arms=("compound",), n=2, baseline_settings=settings)
    assert pool(plan, primaries("gpt", "+")).best_single().how == POST_HOC


def test_configurations_are_pools_of_their_own():
    run = evidence(
        primaries("gpt", "-+", config="a"), primaries("opus", "--", config="a"), primaries("gpt", "++", config="b")
    )
    assert pool_of(run, SUITE, SPLIT).panel == ("gpt@a", "opus@a", "gpt@b")
    assert pool_of(run, SUITE, SPLIT).oracle() == 1.0
    assert pool_of(run, SUITE, SPLIT, config="a").oracle() == 0.5
    assert pool_of(run, SUITE, SPLIT, config="b").panel == ("gpt@b",)


def test_samples_of_a_configuration_belong_to_it():
    found = pool(primaries("gpt", "-", config="a"), primaries("gpt", "+", config="a", sample=1), config="a")
    assert [c.id for c in found.tasks["t0"]] == ["gpt@a#0", "gpt@a#1"]
    assert found.oracle() == 1.0


def test_a_pool_can_be_restricted_to_tasks():
    found = pool(primaries("gpt", "+-+"), tasks=frozenset({"t0", "t1"}))
    assert (found.n, found.oracle()) == (2, 0.5)


def shown(*ids: str, task: str = "t0", arm: str = "compound"):
    return fused(task, True, arm, candidate_ids=ids)


def test_a_bank_is_whole_and_an_unfinished_one_is_not_known_to_be():
    bank = primaries("gpt", "+")
    assert pool(bank, outcomes("compound:rewrite", "+")).whole is True
    assert pool(bank, Split(suite=SUITE, split=SPLIT, complete=True)).whole is True
    assert pool(bank, Split(suite=SUITE, split=SPLIT, complete=False)).whole is None


def test_turns_that_do_not_name_their_candidates_leave_wholeness_unknown():
    assert pool(primaries("gpt", "+"), fused("t0", True)).whole is None
    assert pool(primaries("gpt", "++"), shown("gpt#0"), fused("t1", True)).whole is None


def test_turns_that_name_their_candidates_decide_wholeness():
    assert pool(primaries("gpt", "+"), shown("gpt#0")).whole is True
    assert pool(primaries("gpt", "+"), shown("gpt#0", "gpt#1")).whole is False


def test_one_turn_with_a_candidate_that_is_not_recorded_is_enough():
    bank = primaries("gpt", "++")
    assert pool(bank, shown("gpt#0"), shown("gpt#1", task="t1")).whole is False
    assert pool(bank, shown("gpt#0"), shown("gpt#1", task="elsewhere")).whole is True


def test_samples_of_a_self_arm_do_not_enlarge_the_compounds_pool():
    records = [
        samples("gpt", "-", "-", "+"), samples("opus", "-"), shown("gpt#0", "gpt#1", "opus#0"),
        shown("gpt#0", "gpt#1", "gpt#2", arm="self:gpt*3:rewrite"),
    ]  # fmt: skip
    found = pool(records)
    assert [c.id for c in found.tasks["t0"]] == ["gpt#0", "opus#0", "gpt#1"]
    assert (found.oracle(), found.whole) == (0.0, True)


MARKS = st.text("+-?", min_size=1, max_size=8)


@unhurried
@given(st.lists(MARKS, min_size=1, max_size=3), st.lists(MARKS, min_size=1, max_size=3))
def test_the_oracle_bounds_everything_in_the_pool(first, second):
    found = pool(samples("a", *first), samples("b", *second))
    if found.n == 0:
        return
    assert found.headroom() >= 0
    assert found.oracle() >= found.random_pick() - 1e-12
    assert len(found.decision_tasks()) + found.all_pass + found.all_fail == found.n
    assert found.oracle() == pytest.approx(1 - found.all_fail / found.n)
    assert sum(found.coverage.shapley().values()) == pytest.approx(found.oracle())
