# ruff: noqa: FBT003 - a verdict reads best in its place
from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.analysis.comparison import MCNEMAR, SIGN_FLIP, against_panel, compare, compare_seeds
from pytest_fusion_audit.stats import clustered_paired_test, graded_paired_test, paired_interval, paired_test
from tests.analysis.analysis_records import evidence, fused, outcome, outcomes, primaries, ref, task

unhurried = settings(deadline=None, max_examples=60)


def pair(first: str, second: str, *more, **options):
    run = evidence(outcomes("compound", first), outcomes("served", second), *more)
    return compare(run, ref(), ref("served"), **options)


def test_a_comparison_by_hand():
    found = pair("+++++++--", "+-----+-+")
    assert (found.wins, found.losses, found.both, found.neither, found.n) == (5, 1, 2, 1, 9)
    assert (found.first_rate, found.second_rate, found.uplift) == (7 / 9, 3 / 9, 4 / 9)
    test = paired_test(5, 1, 9)
    assert (found.test, found.exact_p, found.mid_p) == (MCNEMAR, test.exact_p, test.mid_p)
    assert (found.chi2, found.chi2_p, found.chi2_cc, found.chi2_cc_p) == (
        test.chi2, test.chi2_p, test.chi2_cc, test.chi2_cc_p,
    )  # fmt: skip
    assert (found.tango_low, found.tango_high) == paired_interval(5, 1, 9)
    assert (found.newcombe_low, found.newcombe_high) == paired_interval(5, 1, 9, 2, method="newcombe")
    assert (found.decision_p, found.decision, found.clusters, found.clustered_p) == (0.21875, "not shown", None, None)


@pytest.mark.parametrize(
    ("wins", "losses", "decision", "better", "worse"),
    [
        (6, 0, "shown", True, False),
        (5, 0, "borderline: not shown", False, False),
        (0, 6, "shown", False, True),
        (0, 5, "borderline: not shown", False, True),
        (0, 4, "not shown", False, False),
        (0, 0, "not shown", False, False),
    ],
)
def test_gains_are_shown_by_the_exact_p_and_losses_by_mid_p(wins, losses, decision, better, worse):
    found = pair("+" * wins + "-" * losses + "++", "-" * wins + "+" * losses + "++")
    assert (found.decision, found.shows_uplift, found.shows_loss) == (decision, better, worse)


def test_nothing_in_common_is_not_computed():
    run = evidence(outcomes("compound", "+"), outcome("t9", "served", True))
    found = compare(run, ref(), ref("served"))
    assert (found.n, found.unshared, found.not_run) == (0, 2, 0)
    for unknown in (
        found.uplift, found.first_rate, found.exact_p, found.mid_p, found.chi2_cc, found.tango_low, found.newcombe_low,
        found.decision, found.decision_p,
    ):  # fmt: skip
        assert unknown is None
    assert not found.shows_uplift
    assert not found.shows_loss


def test_tasks_are_joined_by_id_and_what_is_missing_is_counted():
    found = pair("+?+ +", "+++-?")
    assert (found.n, found.both, found.not_run, found.unshared) == (2, 2, 2, 1)


def test_a_pipeline_error_is_a_loss_unless_the_check_takes_it_out():
    run = evidence(fused("t1", True, outcome="pipeline_error"), fused("t2", True), outcomes("served", " ++"))
    assert compare(run, ref("served"), ref()).wins == 1
    left = compare(run, ref("served"), ref(), pipeline_errors="leave")
    assert (left.n, left.wins, left.not_run) == (1, 0, 1)


def test_a_comparison_can_be_restricted_to_tasks():
    found = pair("++--", "+-+-", tasks=frozenset({"t1", "t2", "t9"}))
    assert (found.n, found.wins, found.losses, found.unshared) == (2, 1, 1, 0)


def test_arms_of_two_splits_are_paired_on_shared_ids():
    run = evidence(outcomes("compound", "+++"), outcomes("compound", " --", split="dev"))
    found = compare(run, ref(), ref(split="dev"))
    assert (found.n, found.wins, found.unshared) == (2, 2, 1)


def test_seeds_are_averaged_within_a_task_before_the_test():
    run = evidence(
        [outcomes("compound", marks, replicate=seed) for seed, marks in enumerate(["+++-", "+-+-", "+++-"])],
        outcomes("served", "--+-"),
    )
    found = compare(run, ref(), ref("served"))
    assert found.seeds == (3, 1)
    assert (found.n, found.wins, found.losses, found.both, found.neither) == (4, 2, 0, 1, 1)
    assert found.uplift == pytest.approx((1 + 2 / 3) / 4)
    assert found.test == SIGN_FLIP
    assert found.exact_p == graded_paired_test([1, 2 / 3, 0, 0]).p
    for unknown in (found.mid_p, found.chi2, found.chi2_cc_p, found.tango_low, found.newcombe_high):
        assert unknown is None


def test_one_seed_is_compared_with_the_same_seed_or_the_only_one():
    run = evidence(
        outcomes("compound", "+-"), outcomes("compound", "++", replicate=1), outcomes("served", "--"),
        outcomes("member:a", "-+"), outcomes("member:a", "--", replicate=1),
    )  # fmt: skip
    assert [c.wins for c in compare_seeds(run, ref(), ref("served"))] == [1, 2]
    first, second = compare_seeds(run, ref(), ref("member:a"))
    assert (first.wins, first.losses, first.test) == (1, 1, MCNEMAR)
    assert (second.wins, second.losses) == (2, 0)


def test_one_seed_alone_is_tested_as_one_run():
    found = compare(
        evidence(outcomes("compound", "+"), outcomes("compound", "-", replicate=1), outcomes("served", "-")),
        ref(), ref("served"), replicate=1,
    )  # fmt: skip
    assert (found.wins, found.n, found.seeds) == (0, 1, (1, 1))


def test_known_clusters_decide_when_they_are_less_certain():
    clusters = ["a", "a", "a", "b", "b", "b", "c"]
    facts = [task(f"t{number}", cluster=name) for number, name in enumerate(clusters)]
    found = pair("++++++-", "-------", facts)
    expected = clustered_paired_test([1] * 6 + [0], clusters)
    assert (found.exact_p, found.clusters) == (0.03125, 3)
    assert found.clustered_p == expected.permutation_p == 0.5
    assert (found.decision_p, found.decision) == (0.5, "not shown") == (expected.p, expected.decision())


def test_clusters_are_unknown_when_one_task_has_none():
    found = pair("++++++", "------", [task(f"t{number}", cluster="a") for number in range(5)])
    assert (found.clusters, found.clustered_p, found.decision) == (None, None, "shown")


def test_a_cluster_may_be_known_from_another_split():
    found = pair("++++++", "------", [task(f"t{number}", cluster=str(number), split="dev") for number in range(6)])
    assert (found.clusters, found.clustered_p, found.decision) == (6, 0.03125, "shown")


def test_the_panel_is_beaten_when_every_member_is():
    run = evidence(outcomes("compound", "+" * 9), primaries("a", "-" * 9), primaries("b", "+++------"))
    found = against_panel(run, ref())
    assert [c.second.arm for c in found.comparisons] == ["member:a", "member:b"]
    assert (found.uplift, found.member, found.p, found.shown) == (6 / 9, "member:b", 0.03125, True)
    few = against_panel(run, ref(), tasks=frozenset({f"t{number}" for number in range(6)}))
    assert (few.uplift, few.member, few.shown) == (0.5, "member:b", False)


def test_the_largest_p_and_the_smallest_uplift_may_come_from_different_members():
    run = evidence(outcomes("compound", "+" * 10), primaries("a", "-----     "), primaries("b", "--------++"))
    found = against_panel(run, ref())
    assert (found.uplift, found.member) == (0.8, "member:b")
    assert found.p == 0.0625
    assert found.shown is False


def test_a_panel_that_cannot_be_compared_leaves_the_headline_unknown():
    nobody = against_panel(evidence(outcomes("compound", "+")), ref())
    assert (nobody.comparisons, nobody.uplift, nobody.shown) == ((), None, None)
    apart = against_panel(evidence(outcomes("compound", "+"), primaries("a", " +")), ref())
    assert (len(apart.comparisons), apart.uplift, apart.member, apart.p, apart.shown) == (1, None, None, None, None)


MARKS = st.text("+-?", min_size=1, max_size=12)


@unhurried
@given(MARKS, MARKS)
def test_swapping_the_arms_mirrors_the_comparison(first, second):
    run = evidence(outcomes("compound", first), outcomes("served", second))
    there, back = compare(run, ref(), ref("served")), compare(run, ref("served"), ref())
    assert (there.wins, there.losses, there.n, there.both) == (back.losses, back.wins, back.n, back.both)
    assert there.n + there.not_run + there.unshared == max(len(first), len(second))
    assert (there.exact_p, there.mid_p, there.decision) == (back.exact_p, back.mid_p, back.decision)
    if there.n:
        assert there.uplift == -back.uplift
        assert there.tango_low == -back.tango_high
        assert there.tango_low <= there.uplift <= there.tango_high
