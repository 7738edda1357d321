"""Gates: the little language, and every gate open and shut."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_fusion_audit import load_rubric
from pytest_fusion_audit.analysis.validity import Finding
from pytest_fusion_audit.evidence.container import RunFacts
from pytest_fusion_audit.rubric.gate_rules import parse_rule
from pytest_fusion_audit.rubric.gates import GateResult, evaluate_gates
from pytest_fusion_audit.rubric.rows import RowCount
from pytest_fusion_audit.rubric.score import Score

LIVE = RunFacts(run_id="r", mode="live", journal=True)
WHOLE = RowCount(100, 100, {})
STATUS = {0: "absent", 1: "present", 2: "met"}


def scores(**changes: Any) -> dict[str, Score]:
    """All criteria at 2 and held out, apart from the changes (``c1_1=0``; None = not run)."""
    found = {}
    for criterion in load_rubric().criteria:
        points = changes.get("c" + criterion.id.replace(".", "_"), 2)
        status = "not_run" if points is None else STATUS[points]
        found[criterion.id] = Score(
            criterion=criterion.id,
            status=status,
            evidence_class="measured",
            measured={"n": 240, "held_out": True},
            evidence=("locked.json",),
            reasons=() if points == 2 else ("too few: n = 86 < 200",),
        )
    return found


def gates(
    findings: tuple[Finding, ...] = (), run: RunFacts = LIVE, rows: RowCount = WHOLE, **changes: Any
) -> dict[str, GateResult]:
    found = evaluate_gates(load_rubric(), scores(**changes), findings, run, rows)
    return {gate.gate: gate for gate in found}


def test_every_gate_opens_on_a_metered_live_run_that_meets_its_rule() -> None:
    for gate in gates().values():
        assert (gate.passed, gate.would_pass_simulated, gate.reasons) == (True, True, ())


@pytest.mark.parametrize(
    ("gate", "changes", "said"),
    [
        ("A", {"c1_1": 1}, "1.1 Held-out uplift on the primary coding benchmark: scored 1 (too few: n = 86 < 200)"),
        ("A", {"c1_2": 0}, "1.2 Replication"),
        ("A", {"c1_4": 1}, "1.4 Never worse"),
        ("B", {"c4_1": 1}, "4.1 Rewrite against selection"),
        ("B", {"c3_2": None}, "3.2 Regret split: scored 0"),
        ("B", {"c2_1": None}, "2.1 Oracle gap: scored 0"),
        ("C", {"c7_1": 1}, "7.1 Cost per solved task"),
        ("C", {"c7_2": 1}, "7.2 Latency overhead"),
        ("C", {"c7_3": 0, "c7_4": 0}, "7.3 Straggler policy"),
        ("D", {"c9_1": 1}, "9.1 Locked holdout"),
        ("D", {"c9_2": 0}, "9.2 Continuous benchmark"),
        ("D", {"c9_6": 1}, "9.6 Honest claims"),
    ],
)
def test_a_gate_shuts_on_its_own_criteria_and_leaves_the_others_open(
    gate: str, changes: dict[str, Any], said: str
) -> None:
    found = gates(**changes)
    assert [name for name, result in found.items() if not result.passed] == [gate]
    assert not found[gate].would_pass_simulated
    assert found[gate].reasons[0].startswith(said)
    assert all("\n" not in reason for reason in found[gate].reasons)


def test_a_reason_names_criterion_measured_bar_n_evidence_and_next_command() -> None:
    (reason,) = gates(c1_1=1)["A"].reasons
    assert reason == (
        "1.1 Held-out uplift on the primary coding benchmark: scored 1 (too few: n = 86 < 200); bar: 1.1 = 2; "
        "n = 240 of 200 needed; evidence: locked.json; next: pytest audits/ -m replay -k 1.1 --fusion-run-id=r"
    )


def test_one_of_two_is_enough_where_the_rule_says_so() -> None:
    assert gates(c7_3=0, c7_4=1)["C"].passed
    assert gates(c7_3=1, c7_4=None)["C"].passed


def test_measured_is_enough_for_b_but_only_held_out() -> None:
    low = gates(c3_2=1, c2_1=1)
    assert low["B"].passed
    found = scores()
    for name in ("3.2", "2.1", "4.1"):
        bank = {**found, name: replace(found[name], measured={"n": 240, "held_out": False})}
        gate = evaluate_gates(load_rubric(), bank, (), LIVE, WHOLE)[1]
        assert not gate.passed
        assert "held out; n = 240" in gate.reasons[0]


def test_an_error_shuts_a_and_c_and_what_it_affects() -> None:
    error = Finding("ledger_mismatch", "error", "off by 0.06", ("ledger.jsonl",), ("9.2",))
    found = gates((error,))
    assert {name: gate.passed for name, gate in found.items()} == {"A": False, "B": True, "C": False, "D": False}
    assert found["A"].reasons == ("validity ledger_mismatch: off by 0.06; evidence: ledger.jsonl",)
    assert not found["A"].would_pass_simulated
    warning = replace(error, severity="warning")
    assert all(gate.passed for gate in gates((warning,)).values())


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (RunFacts(mode="imported"), "imported without a call journal: a gate needs metered calls"),
        (RunFacts(mode="offline", journal=True), "simulated: scripted models answered, a gate needs metered calls"),
        (RunFacts(mode="live", journal=False), "no call journal in this run: a gate needs metered calls"),
    ],
)
def test_only_metered_live_calls_open_a_gate(run: RunFacts, said: str) -> None:
    for gate in gates(run=run).values():
        assert not gate.passed
        assert gate.would_pass_simulated
        assert gate.reasons[0].startswith(said)
    assert not gates(run=run, c1_1=1)["A"].would_pass_simulated


def test_an_incomplete_run_opens_no_gate() -> None:
    for gate in gates(rows=RowCount(100, 93, {"provider_error": 7})).values():
        assert gate.reasons == ("INCOMPLETE 93/100: an incomplete run opens no gate",)
        assert not gate.would_pass_simulated


def test_the_language() -> None:
    known = {"1.1", "1.2", "7.3", "7.4"}
    rule = parse_rule("1.1 = 2 (as led) and 1.2 measured and at least one of 7.3,7.4 shipped (by default)", known)
    assert [(c.kind, c.criteria, c.points) for c in rule.clauses] == [
        ("equals", ("1.1",), 2),
        ("measured", ("1.2",), 0),
        ("shipped", ("7.3", "7.4"), 1),
    ]
    assert not rule.held_out
    assert parse_rule("1.1=0, all held out", known).held_out
    assert [str(c) for c in rule.clauses] == ["1.1 = 2", "1.2 measured", "at least one of 7.3, 7.4 shipped"]


@pytest.mark.parametrize("text", ["", "1.1", "1.1 = 2 or 1.2 = 2", "1.1 == 2", "at least one of shipped", "1.1 >= 1"])
def test_what_the_language_does_not_know_is_quoted(text: str) -> None:
    with pytest.raises(ValueError, match="is not understood"):
        parse_rule(text, {"1.1", "1.2"})
