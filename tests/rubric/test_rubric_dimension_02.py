"""Dimension 2 on planted pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_fusion_audit.evidence.records import Config
from pytest_fusion_audit.rubric.criteria.dimension_02 import maker_of
from tests.rubric.conftest import error
from tests.rubric.rubric_plants import (
    DEV,
    LOCKED,
    SUITE,
    choice,
    clean,
    dev_bank,
    panel,
    rows,
    score,
    suite_facts,
)

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("findings")


def pool(gpt: range, opus: range, *, split: str = LOCKED, tasks: range = range(200)) -> list[object]:
    """Two members and a compound over 200 tasks."""
    arms = {"member:gpt": gpt, "member:opus": opus, "compound": range(100)}
    return [row for arm, passes in arms.items() for row in rows(arm, passes, split=split, tasks=tasks)]


def test_2_1_is_met_by_five_points_of_headroom_on_a_held_out_split() -> None:
    found = score("2.1", pool(range(100), range(10, 110)))
    assert found.score == 2
    assert found.measured["headroom"] == pytest.approx(0.05)
    assert found.measured["benchmarks"][f"{SUITE}/{LOCKED}"]["oracle"] == pytest.approx(0.55)


def test_2_1_is_present_below_the_bar_on_few_tasks_or_on_the_bank() -> None:
    low = score("2.1", pool(range(100), range(109)))
    assert (low.score, low.reasons[0]) == (1, "tasks-of-ours/locked: +0.0 points, +5 needed")
    few = score("2.1", pool(range(50), range(10, 60), tasks=range(99)))
    assert (few.score, few.reasons[0]) == (1, "too few: n = 99 < 100")
    bank = score("2.1", pool(range(100), range(10, 110), split=DEV))
    assert (bank.score, bank.reasons[0]) == (1, "not held out: tasks-of-ours/dev")


def test_2_1_asks_every_held_out_benchmark() -> None:
    second = [
        row
        for arm, p in (("member:gpt", range(50)), ("member:opus", range(50)), ("compound", range(50)))
        for row in rows(arm, p, suite="other", tasks=range(120))
    ]
    found = score("2.1", [*pool(range(100), range(10, 110)), *second])
    assert (found.score, found.reasons[0]) == (1, "other/locked: +0.0 points, +5 needed")


def test_2_1_needs_a_pool_of_a_compound_not_of_anybody() -> None:
    assert score("2.1", []).status == "not_run"
    assert score("2.1", [*rows("member:gpt@4096", range(5)), *rows("member:gpt@16384", range(9))]).status == "not_run"
    alone = [*rows("member:gpt", split=DEV), *rows("member:opus", range(100, 200), split=DEV)]
    assert score("2.1", alone).score == 1


def test_2_2_is_met_by_decorrelated_members_chosen_for_it() -> None:
    found = score("2.2", [*pool(range(100), range(50, 150)), choice()])
    assert found.score == 2
    assert found.measured["largest"] == pytest.approx(0.0)
    assert found.measured["pairs"][f"{SUITE}/{LOCKED}/gpt~opus"]["n"] == 200


def test_2_2_is_present_above_the_bar_or_without_a_choice() -> None:
    high = score("2.2", [*pool(range(100), range(101)), choice()])
    assert high.score == 1
    assert high.reasons[0] == "tasks-of-ours/locked/gpt~opus: r = 0.99, bar 0.7"
    unused = score("2.2", pool(range(100), range(50, 150)))
    assert (unused.score, unused.reasons[0]) == (1, "not shown: used to choose the panel (no panel_choice record)")
    other = score("2.2", [*pool(range(100), range(50, 150)), choice("gpt", "sonnet")])
    assert other.score == 1


def test_2_2_is_not_run_when_no_correlation_exists() -> None:
    found = score("2.2", pool(range(0), range(100)))
    assert found.status == "not_run"
    assert "one side always or never fails" in found.reasons[0]


def without(gpt: int, opus: int) -> list[object]:
    return [
        *rows("compound@without-gpt", range(gpt), tasks=range(200)),
        *rows("compound@without-opus", range(opus), tasks=range(200)),
    ]


def test_2_3_is_met_when_every_member_adds_a_point() -> None:
    found = score("2.3", [*pool(range(90), range(80, 120)), *without(90, 98)])
    assert found.score == 2
    assert found.measured["refused_without"] == {
        f"{SUITE}/{LOCKED}/gpt": pytest.approx(0.05),
        f"{SUITE}/{LOCKED}/opus": pytest.approx(0.01),
    }


def test_2_3_documents_a_failover_member() -> None:
    records = [*pool(range(90), range(80, 120)), *without(90, 100)]
    assert score("2.3", records).reasons[0] == "tasks-of-ours/locked/opus: +0.0 points, +1 needed"
    failover = panel({"id": "gpt", "model": "gpt-5.5"}, {"id": "opus", "model": "claude", "failover": True})
    assert score("2.3", [*records, failover]).score == 2


def test_2_3_gives_the_oracles_leave_one_out_a_1() -> None:
    found = score("2.3", pool(range(90), range(80, 120)))
    assert found.score == 1
    assert found.reasons[0].startswith("needs billed: the compound re-fused without each member")
    assert found.measured["oracle_leave_one_out"][f"{SUITE}/{LOCKED}"] == {"gpt": 0.4, "opus": 0.15}
    assert score("2.3", rows("compound")).status == "not_run"


def test_2_4_is_met_by_both_makers_a_panel_file_and_a_justified_choice() -> None:
    found = score("2.4", [*clean(), panel(), choice()])
    assert found.score == 2
    assert found.measured["makers"] == ["anthropic", "openai"]
    assert "panel.yaml" in found.evidence


def test_2_4_gives_a_panel_of_one_maker_at_most_1() -> None:
    one = panel({"id": "gpt", "provider": "openai", "model": "gpt-5.5"}, {"id": "mini", "model": "gpt-5.5-mini"})
    found = score("2.4", [*clean(), one, choice()])
    assert found.score == 1
    assert "a panel of one maker earns at most 1: openai" in found.reasons


def test_2_4_reads_makers_from_the_rows_when_there_is_no_panel_file() -> None:
    gpt, opus = (rows(f"member:{m}", requested_model=model) for m, model in (("gpt", "gpt-5.5"), ("opus", "claude-x")))
    found = score("2.4", [*gpt, *opus, *rows("compound"), choice()])
    assert found.score == 1
    assert found.reasons == ("no panel file: members swapped by configuration is not shown",)
    assert score("2.4", clean()).status == "not_run"


@pytest.mark.parametrize(
    ("model", "provider", "maker"),
    [
        ("gpt-5.5", None, "openai"),
        ("claude-opus-4-8", None, "anthropic"),
        ("x", "openai", "openai"),
        ("openai/gpt-5.5-2026-04-01", None, "openai"),
        ("qwen3-coder", "openrouter", "qwen3"),
        (None, None, None),
    ],
)
def test_makers(model: str | None, provider: str | None, maker: str | None) -> None:
    assert maker_of(model, provider) == maker


def self_arm(passes: range, split: str = LOCKED, k: int = 2) -> list[object]:
    return rows(f"self:gpt*{k}:rewrite", passes, split=split)


def fused(passes: range, split: str = LOCKED) -> list[object]:
    return rows("compound:rewrite", passes, split=split, candidate_ids=("gpt#0", "opus#0"))


def test_2_5_is_met_by_a_significant_win_over_as_many_samples_of_one_model() -> None:
    found = score("2.5", [suite_facts(), *fused(range(100)), *self_arm(range(90))])
    assert found.score == 2
    assert (found.measured["samples"], found.measured["panel_samples"]) == (2, 2)


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        (lambda: [suite_facts(), *fused(range(100)), *self_arm(range(90), k=6)], "samples differ: 6 of gpt, 2 of the"),
        (lambda: [*fused(range(100)), *self_arm(range(90))], "tasks-of-ours is not known to be about code"),
        (
            lambda: [suite_facts(), *fused(range(100), DEV), *self_arm(range(90), DEV)],
            "not held out: tasks-of-ours/dev",
        ),
    ],
    ids=["unmatched", "not-code", "dev"],
)
def test_2_5_is_present_when_significant_but_not_all_that_a_2_needs(
    records: Callable[[], list[object]], reason: str
) -> None:
    found = score("2.5", records())
    assert found.score == 1
    assert any(text.startswith(reason) for text in found.reasons), found.reasons


def test_2_5_without_significance_is_absent_and_without_a_self_arm_not_run() -> None:
    found = score("2.5", [suite_facts(), *fused(range(100)), *self_arm(range(97))])
    assert (found.status, found.reasons[0]) == ("absent", "measured, no evidence (p = .2500)")
    assert score("2.5", [suite_facts(), *fused(range(100))]).status == "not_run"


def test_2_5_lets_the_default_policy_decide_and_else_the_weakest() -> None:
    records = [
        suite_facts(),
        *fused(range(100)),
        *self_arm(range(90)),
        *rows("compound:select_best", range(92)),
        *rows("self:gpt*2:select_best", range(90)),
    ]
    assert score("2.5", records).measured["arm"].endswith("compound:select_best")
    assert score("2.5", records, settings={"policy": "rewrite"}).measured["arm"].endswith("compound:rewrite")


@pytest.mark.parametrize(("criterion", "expected"), [("2.1", 1), ("2.2", 1), ("2.3", 1), ("2.4", 1), ("2.5", 0)])
def test_what_is_met_but_invalid_is_withheld(criterion: str, expected: int, findings: Callable[..., None]) -> None:
    records = [
        suite_facts(),
        *pool(range(80), range(60, 110)),
        *without(80, 90),
        panel(),
        choice(),
        *fused(range(100)),
        *self_arm(range(90)),
    ]
    assert score(criterion, records).score == 2
    findings(error("split_reuse", criterion))
    found = score(criterion, records)
    assert found.score == expected
    assert "withheld: split_reuse" in found.reasons


def test_the_bank_that_chose_earns_at_most_1() -> None:
    records = [*dev_bank(), panel(), choice(), Config(what="suite", suite=SUITE, facts={"coding": True})]
    for criterion in ("2.1", "2.2", "2.3", "2.4"):
        found = score(criterion, records)
        assert found.score == 1, criterion
        assert "not held out: tasks-of-ours/dev" in found.reasons
