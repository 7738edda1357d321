"""Dimension 4 on planted policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_fusion_audit.rubric.default_policy import default_policy
from tests.rubric.conftest import error
from tests.rubric.rubric_plants import DEV, LOCKED, classed, evidence, rows, score, suite_facts

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("findings")

REWRITE = {"policy": "rewrite"}


def policies(rewrite: range, select: range, execute: range | None, split: str = LOCKED) -> list[object]:
    arms = {"compound:rewrite": rewrite, "compound:select_best": select, "compound:exec_select": execute}
    found = [row for arm, passes in arms.items() if passes is not None for row in rows(arm, passes, split=split)]
    return [suite_facts(), *rows("member:gpt", split=split), *rows("member:opus", split=split), *found]


def test_4_1_is_met_when_the_default_is_the_held_out_winner() -> None:
    found = score("4.1", policies(range(140), range(120), range(100)), settings=REWRITE)
    assert found.score == 2
    assert (found.measured["winner"], found.measured["default"]) == ("compound:rewrite", "rewrite")
    assert found.measured["against_best"]["compound:exec_select"]["holm_p"] < 0.05


@pytest.mark.parametrize(
    ("records", "settings", "reason"),
    [
        (lambda: policies(range(140), range(120), range(100), DEV), REWRITE, "not held out: tasks-of-ours/dev"),
        (lambda: policies(range(140), range(120), None), REWRITE, "policies not run on these candidates: exec_select"),
        (lambda: policies(range(140), range(120), range(100)), {}, "the default policy is not recorded"),
        (lambda: policies(range(100), range(140), range(90)), REWRITE, "winner is compound:select_best, default is"),
        (
            lambda: policies(range(140), range(120), range(60)),
            {"policy": "own"},
            "the default policy own was not run on",
        ),
    ],
    ids=["dev", "two-policies", "no-default", "loser", "foreign-default"],
)
def test_4_1_is_present_when_something_is_missing(
    records: Callable[[], list[object]], settings: dict[str, str], reason: str
) -> None:
    found = score("4.1", records(), settings=settings)
    assert found.score == 1
    assert any(text.startswith(reason) for text in found.reasons), found.reasons


def test_4_1_asks_for_the_winner_of_every_class() -> None:
    hard = set(range(200, 240))
    records = [
        suite_facts(),
        *rows("compound:rewrite", range(140)),
        *rows("compound:exec_select", range(100)),
        *rows("compound:select_best", [*range(100), *hard]),
        *rows("member:gpt"),
        *rows("member:opus"),
    ]
    tied = score("4.1", [*records, *classed({"hard": hard})], settings=REWRITE)
    assert tied.score == 1
    assert "class hard: winner is compound:select_best, default is compound:rewrite" in tied.reasons


def test_4_1_prints_a_tie_and_counts_an_exact_one_as_winning() -> None:
    found = score("4.1", policies(range(140), range(140), range(139)), settings={"policy": "select_best"})
    assert found.score == 2
    assert any(reason.startswith("not shown to be worse than compound:rewrite") for reason in found.reasons)


def test_4_1_prefers_the_cheaper_of_those_not_shown_to_be_worse() -> None:
    cheap = {"cost_micro_usd": 10}
    records = [
        suite_facts(),
        *rows("compound:rewrite", range(141), cost_micro_usd=90),
        *rows("member:gpt"),
        *rows("compound:select_best", range(140), **cheap),
        *rows("member:opus"),
        *rows("compound:exec_select", range(100), cost_micro_usd=20),
    ]
    assert score("4.1", records, settings=REWRITE).score == 1
    assert score("4.1", records, settings={"policy": "select_best"}).score == 2


def test_4_1_on_one_policy_is_not_run() -> None:
    assert score("4.1", rows("compound")).status == "not_run"


def picked(worse: int, n: int = 100, *, split: str = LOCKED, arm: str = "compound") -> list[object]:
    """The judge picks gpt, which passes everything; the written answer fails on the last ``worse`` of n tasks."""
    fields = {"candidate_ids": ("gpt#0", "opus#0"), "pick": "gpt#0", "pick_status": "named", "policy": "rewrite"}
    return [
        suite_facts(),
        *rows("member:gpt", range(n), split=split, tasks=range(n)),
        *rows("member:opus", range(n // 2), split=split, tasks=range(n)),
        *rows(arm, range(n - worse), split=split, tasks=range(n), **fields),
    ]


def test_4_2_is_met_below_five_percent() -> None:
    found = score("4.2", picked(4))
    assert found.score == 2
    assert (found.measured["regressions"], found.measured["n"], found.measured["rate"]) == (4, 100, 0.04)


def test_4_2_is_present_at_five_percent_on_few_and_on_the_bank() -> None:
    high = score("4.2", picked(5))
    assert (high.score, high.reasons[0]) == (1, "5 of 100 worse (5.0 %), below 5 % needed")
    assert score("4.2", picked(0, n=59)).reasons[0] == "too few: n = 59 < 60"
    assert score("4.2", picked(0, split=DEV)).reasons[0] == "not held out: tasks-of-ours/dev"


def test_4_2_forgives_a_high_rate_when_rewriting_is_off_the_default_path() -> None:
    found = score("4.2", picked(9, arm="compound:rewrite"), settings={"policy": "select_best"})
    assert found.score == 2
    assert "rewriting is off the default path" in found.reasons


def test_4_2_takes_verbatim_selection_for_the_pick_where_picks_are_not_recorded() -> None:
    found = score("4.2", policies(range(4, 140), range(120), None))
    assert found.score == 2
    assert (found.measured["regressions"], found.measured["improvements"]) == (4, 20)
    assert "picks not recorded: compound:select_best stands for the judge's pick" in found.reasons


def test_4_2_does_not_judge_a_writer_that_never_wrote() -> None:
    fields = {"candidate_ids": ("gpt#0", "opus#0"), "pick": "gpt#0", "pick_status": "named", "policy": "select_best"}
    records = [*rows("member:gpt"), *rows("member:opus"), *rows("compound", range(9), **fields)]
    assert score("4.2", records).status == "not_run"


@pytest.mark.parametrize("criterion", ["4.1", "4.2"])
def test_what_is_met_but_invalid_is_withheld(criterion: str, findings: Callable[..., None]) -> None:
    records = [*policies(range(140), range(120), range(100))]
    assert score(criterion, records, settings=REWRITE).score == 2
    findings(error("selector_outside_pool", criterion))
    found = score(criterion, records, settings=REWRITE)
    assert (found.score, found.reasons[0]) == (1, "withheld: selector_outside_pool")


def test_the_default_policy_is_configured_recorded_or_shown_by_the_turns() -> None:
    assert default_policy(evidence(rows("compound", policy="rewrite"))) == "rewrite"
    assert (
        default_policy(evidence(rows("compound", policy="rewrite"), settings={"policy": "exec_select"}))
        == "exec_select"
    )
    picks = {"pick_member": "gpt", "pick_status": "named"}
    costs = {"panel": 10, "judge": 10}
    written = rows("compound", tasks=range(9, 12), cost_micro_usd=30, stage_cost_micro_usd={**costs, "synthesizer": 10})
    picked = rows("compound", tasks=range(9), cost_micro_usd=20, stage_cost_micro_usd=costs, **picks)
    assert default_policy(evidence([*written, *picked])) == "select_best"
    rewritten = rows("compound", tasks=range(9), cost_micro_usd=30, stage_cost_micro_usd=costs, **picks)
    assert default_policy(evidence([*written, *rewritten])) is None
    assert default_policy(evidence(rows("compound"))) is None


@pytest.mark.parametrize("criterion", ["4.3", "4.4", "4.5", "4.6"])
def test_what_needs_other_evidence_says_which(criterion: str) -> None:
    found = score(criterion, rows("compound"))
    assert found.status == "not_run"
    assert found.reasons[0].startswith(("needs a drill: ", "needs a billed measurement: "))
