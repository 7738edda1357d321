"""Dimension 3 on planted picks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_fusion_audit.evidence.records import Fused
from tests.rubric.conftest import error
from tests.rubric.rubric_plants import DEV, LOCKED, SUITE, classed, clean, ids, rows, score

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

pytestmark = pytest.mark.usefixtures("findings")


def judged(
    right: int,
    decided: int = 30,
    n: int = 120,
    *,
    split: str = LOCKED,
    fused: Iterable[int] | None = None,
    confidence: Callable[[int], float] | None = None,
) -> list[object]:
    """Tasks 0..decided-1 are solved by gpt alone and the judge picks gpt on the first ``right`` of them.

    The rest up to half of all is solved by both, the other half by nobody.
    """
    half = n // 2
    records = [
        *rows("member:gpt", range(half), split=split, tasks=range(n)),
        *rows("member:opus", range(decided, half), split=split, tasks=range(n)),
    ]
    passed = set([*range(right), *range(decided, half)] if fused is None else fused)
    for number, task in enumerate(ids(range(n))):
        pick = "gpt#0" if number < right or number >= decided else "opus#0"
        records.append(
            Fused(
                task=task,
                suite=SUITE,
                split=split,
                policy="rewrite",
                candidate_ids=("gpt#0", "opus#0"),
                pick=pick,
                pick_status="named",
                judge_confidence=None if confidence is None else confidence(number),
                verdict="passed" if number in passed else "failed",
                source=f"{split}.json",
            )
        )
    return records


def test_3_1_is_met_at_seventy_percent_where_exactly_one_is_right() -> None:
    found = score("3.1", judged(21))
    assert found.score == 2
    assert (found.measured["right"], found.measured["n"], found.measured["accuracy"]) == (21, 30, 0.7)
    assert found.measured["chance"] == 0.5


def test_3_1_is_present_below_the_bar_on_few_or_on_the_bank() -> None:
    assert score("3.1", judged(20)).reasons[0] == "20 of 30 right (66.7 %), 70 % needed"
    assert score("3.1", judged(19, decided=19)).reasons[0] == "too few: n = 19 < 20"
    bank = score("3.1", judged(30, split=DEV))
    assert (bank.score, bank.reasons[0]) == (1, "not held out: tasks-of-ours/dev")


def test_3_1_asks_every_class_with_enough_picks() -> None:
    tasks = classed({"easy": range(60), "hard": range(60, 120)})
    records = judged(50, decided=60)
    assert score("3.1", [*records, *tasks]).score == 2
    split = classed({"easy": range(40), "hard": range(40, 60)})
    found = score("3.1", [*records, *split])
    assert (found.score, found.reasons[0]) == (1, "class hard: 10 of 20 right, 70 % needed")


def test_3_1_without_picks_is_not_run() -> None:
    found = score("3.1", clean())
    assert (found.status, found.reasons[0][:18]) == ("not_run", "needs locked rows:")
    agreed = judged(0, decided=0)
    assert score("3.1", agreed).reasons == (
        "needs locked rows: a named pick on a task that exactly one candidate solves",
    )


def test_3_2_is_met_by_small_regrets() -> None:
    found = score("3.2", judged(26))
    assert found.score == 2
    assert found.measured["judge"] == pytest.approx(4 / 120)
    assert found.measured["synthesis"] == pytest.approx(0.0)
    assert found.measured["total"] == pytest.approx(found.measured["judge"] + found.measured["synthesis"])


def test_3_2_names_which_regret_is_large() -> None:
    judge = score("3.2", judged(20))
    assert (judge.score, judge.reasons[0]) == (1, "judge regret 8.3 points, below 5 needed")
    writer = score("3.2", judged(30, fused=range(40)))
    assert (writer.score, writer.reasons[0]) == (1, "synthesis regret 16.7 points, below 5 needed")
    assert score("3.2", judged(26, n=98, decided=30)).reasons[0] == "too few: n = 98 < 100"


def test_3_2_without_picks_names_the_total_it_knows() -> None:
    found = score("3.2", clean())
    assert found.status == "not_run"
    assert "only the total is known: tasks-of-ours/locked/compound" in found.reasons[0]


def test_3_4_is_met_when_confidence_rises_with_being_right() -> None:
    found = score("3.4", judged(20, confidence=lambda n: 0.9 if n < 20 or (n >= 30 and n < 60) else 0.2))
    assert found.score == 2
    assert found.measured["somers_d"] == pytest.approx(1.0)
    assert found.measured["curve"] == [[0.2, 0.0, 70], [0.9, 1.0, 50]]


def test_3_4_is_present_when_it_does_not() -> None:
    found = score("3.4", judged(20, confidence=lambda n: 0.2 if n < 20 else 0.9))
    assert found.score == 1
    assert found.reasons[0].startswith("confidence does not rise with being right")
    assert score("3.4", judged(20)).status == "not_run"


@pytest.mark.parametrize("criterion", ["3.1", "3.2", "3.4"])
def test_what_is_met_but_invalid_is_withheld(criterion: str, findings: Callable[..., None]) -> None:
    records = judged(28, confidence=lambda n: 0.9 if n < 28 or 30 <= n < 60 else 0.2)
    assert score(criterion, records).score == 2
    findings(error("truncated_answers", criterion))
    found = score(criterion, records)
    assert (found.score, found.reasons[0]) == (1, "withheld: truncated_answers")


@pytest.mark.parametrize("criterion", ["3.3", "3.5", "3.6"])
def test_what_needs_other_evidence_says_which(criterion: str) -> None:
    found = score(criterion, judged(28))
    assert found.status == "not_run"
    assert found.reasons[0].startswith(("needs a drill: ", "needs a billed measurement: "))
