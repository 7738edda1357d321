# ruff: noqa: FBT003 - a verdict reads best in its place
from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.analysis.samples import matched_samples, self_consistency
from tests.analysis.analysis_records import SPLIT, SUITE, candidate, evidence, fused, outcomes, primaries

unhurried = settings(deadline=None, max_examples=60)


def bank(**draws: list[str]):
    """Member -> one string per task, one mark per sample."""
    return evidence(
        [
            candidate(f"t{task}", member, mark == "+", sample=k)
            for member, tasks in draws.items()
            for task, marks in enumerate(tasks)
            for k, mark in enumerate(marks)
        ]
    )


def test_matched_samples_by_hand():
    found = matched_samples(bank(a=["+-", "--"], b=["--", "++"]), SUITE, SPLIT)
    (two,) = found
    # panel: one draw of each: t0 passes with 1/2, t1 surely; a alone: both draws of t0; b alone: t1
    assert (two.samples, two.members, two.n) == (2, 2, 2)
    assert two.panel_oracle == 0.75
    assert two.member_oracle == {"a": 0.5, "b": 0.5}
    assert (two.best, two.gap) == ("a", 0.25)


def test_every_even_split_that_was_drawn_often_enough_is_listed():
    found = matched_samples(bank(a=["+---", "--"], b=["---+", "--"]), SUITE, SPLIT)
    assert [(figures.samples, figures.n) for figures in found] == [(2, 2), (4, 1)]


def test_the_best_member_is_the_one_with_the_highest_oracle_of_its_own():
    (found,) = matched_samples(bank(a=["+-", "--"], b=["++", "-+"]), SUITE, SPLIT)
    assert (found.member_oracle, found.best) == ({"a": 0.5, "b": 1.0}, "b")
    assert (found.panel_oracle, found.gap) == (0.75, -0.25)


def test_a_task_counts_where_every_member_was_drawn_often_enough():
    found = matched_samples(bank(a=["+---", "--", "-+--"], b=["--", "----", "---+"]), SUITE, SPLIT)
    assert [(figures.samples, figures.n) for figures in found] == [(2, 3), (4, 1)]
    assert found[1].member_oracle == {"a": 1.0, "b": 1.0}


def test_single_samples_or_a_single_member_cannot_be_matched():
    assert matched_samples(bank(a=["+"], b=["-"]), SUITE, SPLIT) == ()
    assert matched_samples(bank(a=["+-", "--"]), SUITE, SPLIT) == ()
    assert matched_samples(evidence(outcomes("compound", "+")), SUITE, SPLIT) == ()


def test_a_sample_without_verdict_leaves_its_task_and_one_never_delivered_only_itself():
    records = [primaries("a", "+"), primaries("b", "-"), candidate("t0", "b", True, sample=1)]
    lost = candidate("t0", "a", None, sample=1, outcome="provider_error")
    spare = candidate("t0", "a", False, sample=2)
    assert matched_samples(evidence(records, spare, candidate("t0", "a", None, sample=1)), SUITE, SPLIT) == ()
    (found,) = matched_samples(evidence(records, spare, lost), SUITE, SPLIT)
    assert (found.samples, found.panel_oracle) == (2, 0.75)


@unhurried
@given(st.lists(st.booleans(), min_size=4, max_size=4), st.lists(st.booleans(), min_size=4, max_size=4))
def test_expectations_are_means_over_all_draws(a, b):
    mark = {True: "+", False: "-"}
    run = bank(a=["".join(mark[x] for x in a)], b=["".join(mark[x] for x in b)])
    for found in matched_samples(run, SUITE, SPLIT):
        k = found.samples
        alone = [any(draw) for draw in combinations(a, k)]
        together = [any(one + two) for one in combinations(a, k // 2) for two in combinations(b, k // 2)]
        assert found.member_oracle["a"] == pytest.approx(sum(alone) / len(alone))
        assert found.panel_oracle == pytest.approx(sum(together) / len(together))


def test_the_panel_meets_the_self_arm_of_its_policy():
    run = evidence(
        outcomes("compound:rewrite", "+++-"), outcomes("compound:select_best", "++--"),
        outcomes("self:gpt*6:rewrite", "+---"), outcomes("self:gpt*6", "++--"),
    )  # fmt: skip
    found = {(f.comparison.first.arm, f.comparison.second.arm): f for f in self_consistency(run, SUITE, SPLIT)}
    assert set(found) == {
        ("compound:rewrite", "self:gpt*6:rewrite"), ("compound:rewrite", "self:gpt*6"),
        ("compound:select_best", "self:gpt*6"),
    }  # fmt: skip
    same = found["compound:rewrite", "self:gpt*6:rewrite"]
    assert (same.member, same.samples, same.policy) == ("gpt", 6, "rewrite")
    assert (same.comparison.wins, same.comparison.losses) == (2, 0)
    assert (same.panel_samples, same.matched) == (None, None)
    assert found["compound:rewrite", "self:gpt*6"].policy is None


@pytest.mark.parametrize(("ids", "matched"), [(("a#0", "a#1", "b#0"), True), (("a#0", "b#0"), False)])
def test_matched_means_as_many_candidates_in_every_turn(ids, matched):
    run = evidence(fused("t0", True, candidate_ids=ids), outcomes("self:a*3:rewrite@deep", "-"))
    (found,) = self_consistency(run, SUITE, SPLIT)
    assert (found.member, found.samples, found.policy) == ("a", 3, "rewrite")
    assert (found.panel_samples, found.matched) == (len(ids), matched)


def test_turns_of_different_sizes_have_no_one_number():
    run = evidence(
        fused("t0", True, candidate_ids=("a#0",)), fused("t1", True, candidate_ids=("a#0", "b#0")),
        outcomes("self:a*2", "--"),
    )  # fmt: skip
    (found,) = self_consistency(run, SUITE, SPLIT)
    assert (found.panel_samples, found.matched) == (None, None)
