"""The one place where figures become scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pytest_fusion_audit import load_rubric
from pytest_fusion_audit.errors import EvidenceError
from pytest_fusion_audit.evidence.container import Evidence, RunFacts
from pytest_fusion_audit.rubric.capping import Figure, capped, not_run
from pytest_fusion_audit.rubric.score import Score
from tests.rubric.conftest import error

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("findings")

NOTHING = Evidence(RunFacts(mode="live", journal=True), [])


def cap(criterion: str = "2.1", run: Evidence = NOTHING, **changes: Any) -> Score:
    facts: dict[str, Any] = {
        "met": True,
        "measured": {"n": 240},
        "sources": frozenset({"bank", "locked", "billed"}),
        "evidence": ("b.json + a.json", "evidence/task.jsonl", "a.json"),
        "holding": "held out",
        "where": "s/locked",
        "n": 240,
    }
    return capped(load_rubric().criterion(criterion), run, Figure(**{**facts, **changes}))


def test_a_2_has_everything() -> None:
    found = cap()
    assert (found.score, found.reasons, found.ceiling) == (2, (), 2)
    assert found.evidence == ("a.json", "b.json", "evidence/task.jsonl")
    assert found.measured == {"n": 240, "held_out": True}


@pytest.mark.parametrize(
    ("changes", "reason", "ceiling"),
    [
        ({"met": False, "shortfalls": ("+4.9 points, +5 needed",)}, "+4.9 points, +5 needed", 2),
        ({"n": 99}, "too few: n = 99 < 100", 2),
        ({"n": None}, "too few: n unknown, 100 needed", 2),
        ({"holding": "not held out", "where": "s/dev"}, "not held out: s/dev", 1),
        ({"holding": "unknown", "where": "s/n30"}, "held-out status unknown: s/n30 names no split", 1),
        ({"sources": frozenset({"locked"}), "lacking": {"bank": "frozen ones"}}, "needs bank: frozen ones", 1),
        ({"sources": frozenset({"bank"})}, "needs locked", 1),
        ({"evidence": ()}, "no artifact: the figures name no file", 1),
        ({"evidence": ("",)}, "no artifact: the figures name no file", 1),
        ({"caps": ("a panel of one maker",)}, "a panel of one maker", 1),
    ],
)
def test_whatever_a_2_lacks_leaves_a_1_and_its_reason(changes: dict[str, Any], reason: str, ceiling: int) -> None:
    found = cap(**changes)
    assert (found.score, found.status, found.ceiling) == (1, "present", ceiling)
    assert reason in found.reasons


def test_enough_may_be_shown_in_another_way() -> None:
    assert cap(n=12, enough=True).score == 2


def test_an_error_counts_only_where_it_affects(findings: Callable[..., None]) -> None:
    findings(error("split_reuse", "2.2"), error("truncated_answers", "2.1", message="uplift not identified"))
    found = cap()
    assert (found.score, found.reasons) == (1, ("withheld: truncated_answers",))


@pytest.mark.parametrize("criterion", ["1.1", "1.2", "1.3", "2.5", "5.1", "9.3"])
def test_no_partial_credit_without_significance(criterion: str, findings: Callable[..., None]) -> None:
    assert cap(criterion, shown=True, p=0.01).score == 2
    absent = cap(criterion, shown=False, p=0.0625)
    assert (absent.score, absent.status, absent.reasons[0]) == (0, "absent", "measured, no evidence (p = .0625)")
    assert cap(criterion, shown=None, p=None).reasons[0] == "measured, no evidence (p = n/a)"
    assert cap(criterion, shown=True, p=0.01, holding="not held out").score == 1
    findings(error("unequal_compute", criterion))
    assert (cap(criterion, shown=True, p=0.01).score, cap(criterion, shown=True).status) == (0, "absent")


@pytest.mark.parametrize("criterion", ["5.2", "8.3", "9.4", "9.7"])
def test_what_the_tool_does_for_the_target_earns_at_most_1(criterion: str) -> None:
    every = frozenset({"bank", "locked", "billed", "drill", "self"})
    assert cap(criterion, sources=every).score == 2
    found = cap(criterion, sources=every, by="tool")
    assert (found.score, found.by, found.ceiling) == (1, "tool", 1)


@pytest.mark.parametrize(("mode", "kind"), [("live", "measured"), ("offline", "simulated"), ("imported", "imported")])
def test_the_class_is_the_runs(mode: Any, kind: str) -> None:
    run = Evidence(RunFacts(mode=mode), [])
    assert cap(run=run).evidence_class == kind
    assert not_run(load_rubric().criterion("2.1"), run, "needs a bank: …").evidence_class == kind


def test_a_score_survives_its_json_and_holds_builtins_only() -> None:
    flag = np.array([True])[0]
    found = cap(measured={"n": np.int64(240), "rate": np.float64(0.5), "by": {"b": (1, 2), "a": None}, "ok": flag})
    row = found.to_json()
    assert row["measured"] == {"by": {"a": None, "b": [1, 2]}, "held_out": True, "n": 240, "ok": True, "rate": 0.5}
    assert type(row["measured"]["n"]) is int
    assert type(row["measured"]["ok"]) is bool
    assert list(row) == ["id", "status", "score", "class", "by", "measured", "threshold", "evidence", "reasons"]
    back = Score.from_json({**row, "title": "Oracle gap"})
    assert back.to_json() == row


def test_a_damaged_score_is_refused() -> None:
    row = cap().to_json()
    with pytest.raises(EvidenceError, match="lacks threshold"):
        Score.from_json({key: value for key, value in row.items() if key != "threshold"})
    with pytest.raises(EvidenceError, match="status 'met' and score 1 contradict"):
        Score.from_json({**row, "score": 1})
    with pytest.raises(TypeError, match="is not a JSON value"):
        cap(measured={"x": object()}).to_json()
