# ruff: noqa: FBT003 - a verdict reads best in its place
from __future__ import annotations

from pytest_fusion_audit.analysis.stages import stage_figures
from tests.analysis.analysis_records import evidence, fused, outcomes, ref


def turn(name: str, cost: dict, latency: dict, whole: int | None = None, **facts):
    return fused(name, True, stage_cost_micro_usd=cost, stage_latency_s=latency, cost_micro_usd=whole, **facts)


def by_name(*records):
    return {figures.stage: figures for figures in stage_figures(evidence(*records), ref())}


def test_stages_by_hand():
    found = by_name(
        turn(
            "t1", {"panel": 100, "judge": 10, "synthesizer": 30}, {"panel": 5.0, "judge": 1.0, "synthesizer": 3.0}, 140
        ),
        turn("t2", {"panel": 200, "judge": 20}, {"panel": 7.0, "judge": 3.0}, 220),
        turn("t3", {"panel": 300, "judge": 30, "synthesizer": None}, {"panel": 9.0, "synthesizer": 0.0}, 330),
    )
    assert list(found) == ["judge", "panel", "synthesizer"]
    panel, judge, synthesizer = found["panel"], found["judge"], found["synthesizer"]
    assert (panel.turns, panel.n, panel.skipped, panel.cost_usd) == (3, 3, 0, 0.0006)
    assert (panel.latency_p50_s, panel.latency_p95_s, panel.latency_n) == (7.0, 8.8, 3)
    assert (judge.cost_usd, judge.latency_n, judge.latency_p50_s) == (0.00006, 2, 2.0)
    # skipped twice: once absent, once written as 0 s without a cost
    assert (synthesizer.n, synthesizer.skipped, synthesizer.cost_usd) == (1, 2, 0.00003)
    assert (synthesizer.latency_n, synthesizer.latency_p50_s) == (1, 3.0)


def test_a_stage_whose_cost_is_unknown_was_not_skipped():
    found = by_name(turn("t1", {"panel": 100, "judge": 10}, {}, 110), turn("t2", {"panel": 100}, {"judge": 2.0}, None))
    assert (found["judge"].n, found["judge"].skipped, found["judge"].cost_usd) == (2, 0, None)
    dearer = by_name(turn("t1", {"panel": 100, "judge": 10}, {}, 110), turn("t2", {"panel": 100}, {}, 150))
    assert (dearer["judge"].skipped, dearer["judge"].cost_usd) == (0, None)


def test_a_stage_that_took_time_was_not_skipped_although_the_costs_add_up():
    found = by_name(turn("t1", {"panel": 100, "judge": 10}, {}, 110), turn("t2", {"panel": 100}, {"judge": 2.0}, 100))
    assert (found["judge"].n, found["judge"].skipped, found["judge"].cost_usd) == (2, 0, None)


def test_without_the_cost_of_the_turn_nothing_is_known_to_be_skipped():
    found = by_name(turn("t1", {"panel": 100, "judge": 10}, {}, 110), turn("t2", {"panel": 100}, {}, None))
    assert (found["judge"].skipped, found["judge"].cost_usd) == (0, None)
    free = by_name(turn("t1", {"judge": 10}, {}, 10), turn("t2", {"judge": None}, {"panel": 1.0}, 0))
    assert (free["judge"].skipped, free["judge"].cost_usd) == (0, None)


def test_rounding_up_stage_by_stage_hides_no_skipped_one():
    found = by_name(turn("t1", {"panel": 101, "judge": 11}, {}, 110), turn("t2", {"panel": 101}, {}, 100))
    assert (found["judge"].skipped, found["judge"].cost_usd) == (1, 0.000011)
    two = by_name(turn("t1", {"a": 10, "b": 10, "judge": 1}, {}, 21), turn("t2", {"a": 10, "b": 10}, {}, 18))
    assert two["judge"].skipped == 1
    beyond = by_name(turn("t1", {"panel": 100, "judge": 1}, {}, 101), turn("t2", {"panel": 100}, {}, 98))
    assert beyond["judge"].skipped == 0


def test_a_free_stage_that_took_no_time_ran():
    found = by_name(turn("t1", {"judge": 0}, {"judge": 0.0}, 0))
    assert (found["judge"].n, found["judge"].latency_p50_s, found["judge"].cost_usd) == (1, 0.0, 0.0)


def test_only_turns_that_count_and_record_stages_are_summarised():
    assert stage_figures(evidence(outcomes("compound", "+"), fused("t9", True)), ref()) == ()
    found = by_name(
        turn("t1", {"judge": 5}, {}), fused("t2", True),
        turn("t3", {"judge": 7}, {}, verdict=None, outcome="provider_error"), turn("t4", {"judge": 9}, {}, replicate=1),
    )  # fmt: skip
    assert (found["judge"].turns, found["judge"].cost_usd) == (2, 0.000014)
