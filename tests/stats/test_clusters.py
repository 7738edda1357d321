"""Clusters: tasks that succeed and fail together count for less."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.stats import (
    cluster_sums,
    clustered_paired_test,
    effective_n,
    intracluster_correlation,
    paired_test,
)

unhurried = settings(deadline=None, max_examples=40)
tasks = st.lists(st.tuples(st.sampled_from([-1, 0, 0, 1, 1]), st.integers(0, 8)), min_size=1, max_size=80)


@given(st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=60))
@unhurried
def test_with_one_task_a_cluster_it_is_mcnemars_exact_test(differences):
    test = clustered_paired_test(differences, range(len(differences)))
    assert test.p == pytest.approx(test.mcnemar.exact_p, rel=1e-12)
    assert test.mean_cluster_size == 1.0
    assert test.correlation is None


@given(tasks)
@unhurried
def test_the_decision_takes_the_larger_p(rows):
    differences, clusters = zip(*rows, strict=True)
    test = clustered_paired_test(differences, clusters)
    assert test.p == max(test.mcnemar.exact_p, test.permutation_p)
    assert test.mcnemar == paired_test(test.wins, test.losses, test.n)
    assert (test.wins, test.losses) == (differences.count(1), differences.count(-1))
    assert test.uplift == (test.wins - test.losses) / len(rows)
    assert test.clusters == len(set(clusters))
    assert (test.decision() == "shown") == (test.p < 0.05)


def test_three_lucky_contests_show_nothing_however_many_tasks_they_hold():
    test = clustered_paired_test([1] * 30, ["may"] * 10 + ["june"] * 10 + ["july"] * 10)
    assert test.mcnemar.decision() == "shown"
    assert test.permutation_p == 0.25
    assert test.permutation_method == "exact"
    assert test.decision() == "not shown"


def test_borderline_needs_a_mid_p_and_clusters_below_alpha():
    five = clustered_paired_test([1] * 5 + [0] * 20, range(25))
    assert five.decision() == "not shown"  # its permutation p is .0625 too
    ten = clustered_paired_test([1] * 11 + [-1] * 3, [0] * 2 + [1] * 2 + [2] * 2 + [3] * 2 + [4] * 2 + [5, 6, 7, 8])
    assert ten.mcnemar.decision() == "borderline: not shown"
    assert ten.decision() == ("borderline: not shown" if ten.permutation_p < 0.05 else "not shown")


def test_no_task_no_test():
    test = clustered_paired_test([], [])
    assert (test.n, test.clusters, test.wins, test.losses) == (0, 0, 0, 0)
    assert test.p is test.uplift is test.permutation_p is test.mean_cluster_size is test.correlation is None
    assert test.decision() is None


def test_agreement_everywhere_is_p_1():
    test = clustered_paired_test([0, 0, 0, 0], "aabb")
    assert test.p == 1.0
    assert test.uplift == 0.0
    assert test.correlation is None
    assert test.decision() == "not shown"


def test_graded_differences_are_sent_to_the_graded_test():
    with pytest.raises(ValueError, match=r"^differences\[1\] must be 1, 0 or -1, not 0.5; graded scores go to"):
        clustered_paired_test([1, 0.5], "ab")


def test_every_task_needs_its_cluster():
    for function in (clustered_paired_test, cluster_sums, intracluster_correlation):
        with pytest.raises(ValueError, match=r"^clusters must name one cluster per difference"):
            function([1, 0], ["a"])


def test_sums_come_in_order_of_first_appearance():
    assert cluster_sums([1, 1, -1, 0, 1], ["b", "a", "b", "c", "b"]) == [1.0, 1.0, 0.0]


def test_correlation_of_identical_and_of_opposite_cluster_mates():
    assert intracluster_correlation([1, 1, 0, 0, -1, -1], "aabbcc") == 1.0
    assert intracluster_correlation([1, -1, 1, -1, 1, -1], "aabbcc") == pytest.approx(-1.0)


def test_correlation_by_the_analysis_of_variance_by_hand():
    # Clusters (1, 0), (1, 1), (0, -1, 0): MSB = 1.0238.., MSW = 7/24, m0 = 16/7
    values, names = [1, 0, 1, 1, 0, -1, 0], "aabbccc"
    mean = 2 / 7
    between = (2 * (0.5 - mean) ** 2 + 2 * (1 - mean) ** 2 + 3 * (-1 / 3 - mean) ** 2) / 2
    within = (0.5 + 0.0 + 2 / 3) / 4
    size = (7 - (4 + 4 + 9) / 7) / 2
    expected = (between - within) / (between + (size - 1) * within)
    assert intracluster_correlation(values, names) == pytest.approx(expected)


def test_correlation_recovers_what_was_simulated():
    draw = np.random.default_rng(4)
    values, names = [], []
    for cluster in range(1500):
        shared = draw.normal()
        for _ in range(3):
            values.append(math.sqrt(0.3) * shared + math.sqrt(0.7) * draw.normal())
            names.append(cluster)
    assert intracluster_correlation(values, names) == pytest.approx(0.3, abs=0.05)


@pytest.mark.parametrize(("values", "names"), [([], []), ([1, 0], "aa"), ([1, 0], "ab"), ([1, 1, 1], "aab")])
def test_correlation_that_cannot_be_told_is_unknown(values, names):
    assert intracluster_correlation(values, names) is None


def test_effective_n():
    assert effective_n(220, 3, 0.1) == pytest.approx(220 / 1.2)
    assert effective_n(220, 1, 0.9) == 220.0
    assert effective_n(220, 4.5, 0.0) == 220.0
    assert effective_n(0, 2, 0.5) == 0.0
    assert effective_n(100, 5, 1.0) == 20.0


def test_a_negative_correlation_does_not_buy_tasks():
    assert effective_n(220, 3, -0.2) == 220.0


def test_bad_cluster_sizes_and_correlations_are_refused():
    with pytest.raises(ValueError, match=r"^m must be at least 1"):
        effective_n(10, 0.5, 0.1)
    with pytest.raises(ValueError, match=r"^rho must lie between -1 and 1"):
        effective_n(10, 2, 1.5)
