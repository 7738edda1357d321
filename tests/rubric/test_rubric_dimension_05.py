"""Dimension 5 on planted routes, tiers and presets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_fusion_audit.evidence.records import Config, Route
from tests.rubric.conftest import error
from tests.rubric.rubric_plants import DEV, LOCKED, SUITE, changed, classed, ids, rows, score

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("findings")

#: The compound costs ten times a member and solves tasks 0..139; gpt solves 0..119.
FIELDS = {"latency_s": 2.0}


def workload(split: str = LOCKED) -> list[object]:
    return [
        *rows("member:gpt", range(120), split=split, cost_micro_usd=100, **FIELDS),
        *rows("member:opus", range(60), split=split, cost_micro_usd=100, **FIELDS),
        *rows("compound", range(140), split=split, cost_micro_usd=1000, **FIELDS),
        *classed({"easy": range(120), "hard": range(120, 240)}, split=split),
    ]


def routes(fuse: range, *, router: str = "heuristic", learned: bool = False, split: str = LOCKED) -> list[Route]:
    """Decisions of a router that fuses some tasks and asks gpt on the others."""
    chosen = set(fuse)
    return [
        Route(
            task=task,
            suite=SUITE,
            split=split,
            router=router,
            learned=learned,
            source="routes.json",
            decision="compound" if number in chosen else "member:gpt",
        )
        for number, task in enumerate(ids())
    ]


def test_5_1_is_met_by_a_router_that_keeps_the_quality_at_sixty_percent_of_the_cost() -> None:
    found = score("5.1", [*workload(), *routes(range(110, 220))])
    assert found.score == 2
    assert found.measured["against_never"]["wins"] == 20
    assert found.measured["cost_share"] == pytest.approx((110 * 1000 + 130 * 100) / 240_000)
    assert "evidence/route.jsonl" in found.evidence


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        (lambda: [*workload(), *routes(range(20, 240))], "92 % of always-fuse's cost, 60 % allowed"),
        (lambda: [*workload(), *routes(range(110, 130))], "quality -4.2 points against always-fuse, -1 allowed"),
        (lambda: [*workload()[:-240], *routes(range(110, 220))], "one class of tasks: no mixed workload"),
        (lambda: [*workload(DEV), *routes(range(110, 220), split=DEV)], "not held out: tasks-of-ours/dev"),
        (
            lambda: [
                *changed(workload(), lambda r: hasattr(r, "cost_micro_usd"), cost_micro_usd=None),
                *routes(range(110, 220)),
            ],
            "cost of a routed or a fused turn unknown",
        ),
    ],
    ids=["dear", "worse", "one-class", "dev", "unpriced"],
)
def test_5_1_is_present_when_better_than_never_but_not_all_of_the_bar(
    records: Callable[[], list[object]], reason: str
) -> None:
    found = score("5.1", records())
    assert found.score == 1
    assert reason in found.reasons


def test_5_1_that_does_not_beat_the_single_is_absent_and_without_routes_not_run() -> None:
    found = score("5.1", [*workload(), *routes(range(118, 123))])
    assert (found.status, found.reasons[0]) == ("absent", "measured, no evidence (p = .2500)")
    assert score("5.1", workload()).status == "not_run"


def test_5_1_adjusts_for_several_routers() -> None:
    several = [*routes(range(118, 126)), *routes(range(118, 126), router="twin")]
    found = score("5.1", [*workload(), *several])
    assert found.measured["holm_p"] == pytest.approx(2 * found.measured["against_never"]["exact_p"])


def flag(**facts: object) -> Config:
    return Config(what="router", facts={"name": "learned", "flag": "--router", **facts})


def learned(fuse: range = range(110, 160)) -> list[object]:
    return [*workload(), *routes(range(110, 220)), *routes(fuse, router="learned", learned=True)]


def test_5_2_is_met_by_a_deployed_learned_router_that_is_better_and_no_dearer() -> None:
    assert score("5.2", [*learned(), flag()]).score == 2


def test_5_2_is_present_without_a_flag_when_it_is_not_better_or_when_the_tool_trained_it() -> None:
    assert score("5.2", learned()).reasons == ("not shown: deployed behind a flag",)
    worse = score("5.2", [*learned(range(120, 239)), flag()])
    assert worse.reasons[0] == "does not beat the heuristic router in quality and cost"
    tool = score("5.2", [*learned(), flag(by="tool")])
    assert (tool.score, tool.by) == (1, "tool")
    assert score("5.2", [*workload(), *routes(range(110, 220))]).status == "not_run"


def tiered(split: str = LOCKED, **fields: object) -> list[object]:
    priced = {"cost_micro_usd": 100, **fields}
    return [
        *rows("member:gpt", range(120), split=split, answer_sha256="a", **priced),
        *rows("member:opus", range(60, 140), split=split, answer_sha256="b", **priced),
        *rows("compound", range(140), split=split, **{"cost_micro_usd": 1000, **fields}),
    ]


def test_5_4_is_met_by_tiers_driven_by_a_signal_with_their_costs() -> None:
    found = score("5.4", tiered())
    assert found.score == 2
    assert found.measured["fused"] == 240
    assert found.measured["mixture"]["cost_per_task_usd"] == pytest.approx(0.001)


def test_5_4_is_present_without_costs_or_on_the_bank() -> None:
    unpriced = score("5.4", tiered(cost_micro_usd=None))
    assert (unpriced.score, unpriced.reasons[0]) == (1, "cost of a tier unknown: no cost-quality frontier")
    assert score("5.4", tiered(DEV)).reasons[0] == "not held out: tasks-of-ours/dev"


def test_5_4_takes_hidden_verdicts_for_no_signal() -> None:
    found = score("5.4", changed(tiered(), lambda r: hasattr(r, "answer_sha256"), answer_sha256=None))
    assert found.status == "not_run"
    assert "upper bound on hidden verdicts, tasks-of-ours/locked: " in found.reasons[0]


def preset(name: str, arm: str) -> Config:
    return Config(what="preset", facts={"name": name, "arm": arm})


def presets(**fields: object) -> list[object]:
    priced = {"cost_micro_usd": 1000, **fields}
    return [
        *workload(),
        *rows("compound@cost-preserving", range(125), **priced),
        preset("beyond-frontier", "compound"),
        preset("cost-preserving", "compound@cost-preserving"),
    ]


def test_5_6_is_met_by_both_presets_with_quality_and_cost() -> None:
    found = score("5.6", presets())
    assert found.score == 2
    assert found.measured["cost-preserving"]["pass_rate"] == pytest.approx(125 / 240)


def test_5_6_is_present_with_one_preset_or_without_costs() -> None:
    assert score("5.6", presets()[:-1]).reasons[0] == "no rows of a preset named cost-preserving"
    assert score("5.6", presets(cost_micro_usd=None)).reasons[0] == "cost of preset cost-preserving unknown"
    assert score("5.6", workload()).status == "not_run"


@pytest.mark.parametrize(("criterion", "expected"), [("5.1", 0), ("5.2", 1), ("5.4", 1), ("5.6", 1)])
def test_what_is_met_but_invalid_is_withheld(criterion: str, expected: int, findings: Callable[..., None]) -> None:
    records = {
        "5.1": [*workload(), *routes(range(110, 220))],
        "5.2": [*learned(), flag()],
        "5.4": tiered(),
        "5.6": presets(),
    }[criterion]
    assert score(criterion, records).score == 2
    findings(error("truncated_answers", criterion))
    found = score(criterion, records)
    assert (found.score, found.reasons[0]) == (expected, "withheld: truncated_answers")


@pytest.mark.parametrize("criterion", ["5.3", "5.5"])
def test_what_needs_a_drill_says_so(criterion: str) -> None:
    found = score(criterion, workload())
    assert found.status == "not_run"
    assert found.reasons[0].startswith("needs a drill: ")
