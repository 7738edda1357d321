# ruff: noqa: FBT003 - a verdict reads best in its place
from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.analysis.picks import picks_of
from pytest_fusion_audit.analysis.regret import against_pool, regret_of
from tests.analysis.analysis_records import candidate, evidence, fused, outcomes, primaries, ref

unhurried = settings(deadline=None, max_examples=60)

# Ten tasks, two members. Picks: a member, - none named.
GPT = "+++++-----"
OPUS = "+++---++--"
PICKS = ["gpt", "opus", None, "opus", "gpt", "opus", "gpt", None, "gpt", None]
FUSED = "++--+-++-+"


def turns(picks=PICKS, marks=FUSED, **facts):
    return [
        fused(
            f"t{number}", mark == "+", pick_member=pick, pick_status="named" if pick else "none", **facts
        )
        for number, (pick, mark) in enumerate(zip(picks, marks, strict=True))
    ]  # fmt: skip


def test_a_regret_by_hand():
    run = evidence(primaries("gpt", GPT), primaries("opus", OPUS), turns())
    found = regret_of(run, ref())
    # candidate right on t0..t4, t6, t7; picks worth + + (t2 none: fused -) - + - - (t7 none: fused +) - (t9: fused +)
    assert (found.n, found.oracle, found.fused_rate, found.pick_rate) == (10, 0.7, 0.6, 0.5)
    assert found.judge == pytest.approx(0.2)
    assert found.synthesis == pytest.approx(-0.1)
    assert found.total == pytest.approx(0.1)
    assert (found.picks_named, found.picks_unknown, found.over) == (7, 0, "recorded primaries")


def test_a_pick_names_a_candidate_where_the_source_does():
    run = evidence(
        primaries("gpt", "-"), candidate("t0", "gpt", True, sample=1),
        fused("t0", False, pick="gpt#1", candidate_ids=("gpt#0", "gpt#1"), pick_status="named"),
    )  # fmt: skip
    found = regret_of(run, ref())
    assert (found.judge, found.synthesis, found.total, found.over) == (0.0, 1.0, 1.0, "all candidates")


def test_without_recorded_picks_only_the_total_is_known():
    run = evidence(primaries("gpt", "+-"), outcomes("compound:rewrite", "-+"))
    found = regret_of(run, ref("compound:rewrite"))
    assert (found.total, found.judge, found.synthesis, found.pick_rate, found.picks_named) == (
        0.0,
        None,
        None,
        None,
        None,
    )


def test_a_turn_without_recorded_pick_among_others_counts_as_none_named():
    run = evidence(
        primaries("gpt", "++"), fused("t0", True, pick_member="gpt"), fused("t1", True, outcome="pipeline_error")
    )
    found = regret_of(run, ref())
    assert (found.n, found.judge, found.synthesis, found.total, found.picks_named) == (2, 0.5, 0.0, 0.5, 1)


def test_a_picked_candidate_without_verdict_leaves_the_split():
    run = evidence(
        primaries("gpt", "++"), fused("t0", True, pick="gpt#7"), fused("t1", False, pick="gpt#0"),
    )  # fmt: skip
    found = regret_of(run, ref())
    assert (found.n, found.picks_unknown, found.total, found.synthesis) == (1, 1, 1.0, 1.0)


def test_a_parse_failure_named_nobody():
    run = evidence(primaries("gpt", "+"), fused("t0", False, pick_status="parse_failure"))
    found = regret_of(run, ref())
    assert (found.picks_named, found.judge, found.synthesis) == (0, 1.0, 0.0)


def test_only_tasks_scored_by_every_member_and_by_the_arm_count():
    run = evidence(primaries("gpt", "++?+"), primaries("opus", "--+ "), turns(["gpt"] * 4, "++++"))
    assert [pick.task for pick in picks_of(run, ref())] == ["t0", "t1"]
    gone = evidence(primaries("gpt", "++"), fused("t0", True), fused("t1", None, outcome="provider_error"))
    assert regret_of(gone, ref()).n == 1


def test_nothing_to_compare_is_unknown():
    found = regret_of(evidence(outcomes("compound", "+")), ref())
    assert (found.n, found.oracle, found.fused_rate, found.total, found.judge) == (0, None, None, None, None)
    against = against_pool(evidence(outcomes("compound", "+")), ref())
    assert (against.n, against.rescues, against.losses_to_pool) == (0, None, 0)


def test_rescues_and_losses_stand_apart():
    run = evidence(primaries("gpt", "+--+"), primaries("opus", "---+"), outcomes("compound:rewrite", "-+-+"))
    found = against_pool(run, ref("compound:rewrite"))
    assert (found.n, found.rescues, found.passes_outside_recorded, found.losses_to_pool) == (4, 1, 1, 1)
    assert found.over == "all candidates"


def test_rescues_are_undecided_over_recorded_primaries():
    run = evidence(primaries("gpt", "+-"), turns(["gpt", None], "-+"))
    found = against_pool(run, ref())
    assert (found.rescues, found.passes_outside_recorded, found.losses_to_pool) == (None, 1, 1)
    assert found.over == "recorded primaries"


def test_a_class_has_its_own_regret():
    run = evidence(primaries("gpt", GPT), primaries("opus", OPUS), turns())
    found = regret_of(run, ref(), tasks=frozenset({"t0", "t3"}))
    assert (found.n, found.judge, found.synthesis, found.total) == (2, 0.5, 0.0, 0.5)


MARKS = st.lists(st.booleans(), min_size=1, max_size=10)


@unhurried
@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans(), st.sampled_from(["gpt", "opus", None])), min_size=1)
)
def test_the_split_adds_up_and_agrees_with_the_oracle(rows):
    mark = {True: "+", False: "-"}
    run = evidence(
        primaries("gpt", "".join(mark[row[0]] for row in rows)),
        primaries("opus", "".join(mark[row[1]] for row in rows)),
        turns([row[3] for row in rows], [mark[row[2]] for row in rows]),
    )
    found = regret_of(run, ref())
    assert found.judge + found.synthesis == pytest.approx(found.total, abs=1e-12)
    assert found.oracle - found.fused_rate == pytest.approx(found.total, abs=1e-12)
    assert found.oracle - found.pick_rate == pytest.approx(found.judge, abs=1e-12)
    against = against_pool(run, ref())
    assert against.losses_to_pool - against.passes_outside_recorded == round(found.total * found.n)
