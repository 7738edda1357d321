from __future__ import annotations

import pytest

from pytest_fusion_audit.analysis.policies import is_compound, policy_configs, policy_table
from pytest_fusion_audit.stats import holm
from tests.analysis.analysis_records import SPLIT, SUITE, evidence, outcomes, primaries

BEST, NEAR, FAR = "compound:exec_select", "compound:rewrite", "compound:select_best"


def table(**options):
    run = evidence(
        outcomes(BEST, "+" * 12 + "--", cost_micro_usd=9), outcomes(NEAR, "+" * 10 + "----", cost_micro_usd=5),
        outcomes(FAR, "+" * 3 + "-" * 11, cost_micro_usd=1), outcomes("self:gpt*6:rewrite", "+" * 14),
        primaries("gpt", "+" * 14), outcomes("compound:rewrite@trunc8000", "+" * 14),
    )  # fmt: skip
    return policy_table(run, SUITE, SPLIT, **options)


def test_policies_by_hand():
    found = table()
    assert found.arms == (BEST, NEAR, FAR)
    assert (found.n, found.rates[BEST], found.rates[NEAR], found.rates[FAR]) == (14, 12 / 14, 10 / 14, 3 / 14)
    assert found.best == BEST
    assert [(c.wins, c.losses) for c in found.against_best] == [(2, 0), (9, 0)]
    assert list(found.adjusted_p) == holm([0.5, 0.00390625])
    assert found.tied == (BEST, NEAR)
    assert found.chosen == NEAR  # not shown to be worse, and cheaper


def test_only_tasks_that_count_for_every_policy_are_compared():
    run = evidence(outcomes(BEST, "+?+"), outcomes(NEAR, "++ "))
    found = policy_table(run, SUITE, SPLIT)
    assert (found.n, found.rates) == (1, {BEST: 1.0, NEAR: 1.0})
    assert (found.best, found.tied, found.chosen) == (BEST, (BEST, NEAR), BEST)


def test_an_unknown_cost_leaves_the_choice_with_the_best_estimate():
    run = evidence(outcomes(BEST, "+-", cost_micro_usd=1), outcomes(NEAR, "++"))
    found = policy_table(run, SUITE, SPLIT)
    assert (found.best, found.chosen) == (NEAR, NEAR)


def test_a_class_may_have_another_winner():
    run = evidence(outcomes(BEST, "++-"), outcomes(NEAR, "--+"))
    assert policy_table(run, SUITE, SPLIT).best == BEST
    assert policy_table(run, SUITE, SPLIT, tasks=frozenset({"t2"})).best == NEAR


def test_no_policy_and_no_common_task():
    nothing = policy_table(evidence(primaries("gpt", "+")), SUITE, SPLIT)
    assert (nothing.arms, nothing.n, nothing.best, nothing.chosen, nothing.tied) == ((), 0, None, None, ())
    apart = policy_table(evidence(outcomes(BEST, "+"), outcomes(NEAR, " +")), SUITE, SPLIT)
    assert (apart.n, apart.best, apart.rates) == (0, None, {BEST: None, NEAR: None})


def test_configurations_with_several_policies_are_listed_incumbent_first():
    run = evidence(
        outcomes("compound", "+"), outcomes(NEAR, "+"), outcomes(f"{NEAR}@b", "+"), outcomes("compound@b", "+"),
        outcomes(f"{NEAR}@a", "+"), outcomes("served", "+"),
    )  # fmt: skip
    assert policy_configs(run, SUITE, SPLIT) == (None, "b")
    assert policy_table(run, SUITE, SPLIT, config="b").arms == ("compound:rewrite@b", "compound@b")


@pytest.mark.parametrize(
    ("arm", "yes"),
    [("compound", True), ("compound@x", True), ("compound:rewrite@x", True), ("served", False), ("self:a*2", False),
     ("member:compound", False), ("compounds", False)],
)  # fmt: skip
def test_what_is_a_compound(arm, yes):
    assert is_compound(arm) is yes
