"""The terminal block: what stands where, and what is never said."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pytest_fusion_audit.report.text import scorecard_lines
from tests.report.report_cards import FINDINGS, UPLIFT, card, published


def lines(document: dict[str, Any] | None = None, **options: Any) -> list[str]:
    return list(scorecard_lines(document if document is not None else card(), **options))


def text(document: dict[str, Any] | None = None) -> str:
    """The block without its line breaks."""
    return " ".join(" ".join(lines(document)).split())


def with_uplift(**changes: Any) -> dict[str, Any]:
    document = card()
    document["criteria"][0]["measured"] = {**UPLIFT, **changes}
    return document


def test_the_order_is_title_validity_gates_uplift_dimensions_total() -> None:
    found = lines()
    assert found[0].strip("─ ") == "fusion scorecard · demo · live, claim-eligible"
    labels = (" validity", " gates", " uplift", "  1 headline uplift", " 10 architecture", " total", " reading")
    at = [next(n for n, line in enumerate(found) if line.startswith(label)) for label in labels]
    assert at == sorted(at)


def test_the_headline_names_member_interval_counts_n_and_p() -> None:
    assert (
        "uplift +8.6 points over opus [+2.9, +14.6] (Tango), 31 won, 12 lost of 220, exact p .0054 (mid-p .0037): shown"
        in text()
    )


@pytest.mark.parametrize(
    ("figures", "says"),
    [
        (
            {"uplift": -10 / 220, "wins": 0, "losses": 10, "decision": "shown"},
            "no uplift over self:gpt*4 at equal dollars",
        ),
        (
            {"uplift": 2 / 220, "wins": 2, "losses": 0, "decision": "not shown"},
            "no uplift shown over self:gpt*4 at equal",
        ),
        ({"uplift": 9 / 220, "wins": 9, "losses": 0, "decision": "shown"}, None),
        ({"uplift": None, "wins": 0, "losses": 0, "decision": None}, None),
    ],
)
def test_the_headline_says_what_one_model_does_for_the_same_money(figures: dict[str, Any], says: str | None) -> None:
    control = {"over": "self:gpt*4", "of": "gpt", "of_best_single": True, "n": 220, "exact_p": 0.002, **figures}
    found = text(with_uplift(equal_dollars=control))
    assert ("at equal dollars" in found) is (says is not None)
    assert says is None or says in found
    other = text(with_uplift(equal_dollars={**control, "of_best_single": False}))
    assert ("(of gpt, not of the best single) at equal dollars" in other) is (says is not None)


def test_a_dimension_shows_its_points_and_a_digit_for_each_criterion() -> None:
    found = lines()
    assert any(re.fullmatch(r"  1 headline uplift +3\.3/20   2 0 0 0 0 0   5 not run", line) for line in found)
    assert any(line.startswith(" 10 architecture headroom") and line.endswith("0 0 0 0   4 not run") for line in found)


def test_gates_say_open_or_why_shut() -> None:
    found = text()
    assert "gates A open B shut: 7.2 at 1, p95 3.10 x single (total), bar 2.5 x" in found
    simulated = card(mode="offline", claim_eligible=False)
    simulated["gates"]["A"] = {
        "passed": False,
        "would_pass_simulated": True,
        "reasons": ["simulated: scripted models answered, a gate needs metered calls; next: a live run of this audit"],
    }
    assert "A shut (would pass): simulated" in text(simulated)


def test_nothing_found_is_said() -> None:
    assert "validity nothing found" in text()


def test_errors_stand_before_warnings_and_withhold_the_uplift() -> None:
    document = card(validity=[FINDINGS["error"], FINDINGS["warning"]], claim_eligible=False)
    found = text(document)
    assert "validity 1 error, 1 warning" in found
    assert found.index("error truncated_answers: 38 of 86") < found.index("warning estimates_only: no measured")
    assert found.index("estimates_only") < found.index(" gates ")
    assert "uplift withheld: truncated_answers; uplift not identified" in found
    assert "+8.6" not in found
    assert "31 won" not in found


def test_a_shut_gate_lists_the_codes_of_its_errors_once() -> None:
    document = card(validity=[FINDINGS["error"]])
    document["gates"]["A"] = {
        "passed": False,
        "would_pass_simulated": False,
        "reasons": [
            "validity truncated_answers: one",
            "validity truncated_answers: two",
            "validity split_reuse: three",
        ],
    }
    assert "A shut: errors: truncated_answers, split_reuse" in text(document)


def test_published_scores_are_one_line_here() -> None:
    found = text(card(validity=[published("1.1"), published("3.1"), published("10.1")]))
    assert "published higher than this evidence allows on 1.1, 3.1, 10.1" in found
    assert found.count("published_score_unsupported") == 1


def test_an_uplift_that_is_not_significant_reads_so() -> None:
    found = text(with_uplift(exact_p=0.0625, mid_p=0.031, decision="borderline: not shown"))
    assert "p .0625 (mid-p .0310): borderline: not shown" in found


def test_an_uplift_that_was_not_measured_says_what_is_lacking() -> None:
    document = card()
    document["criteria"][0] |= {"status": "not_run", "score": 0, "measured": {}, "reasons": ["needs locked rows: both"]}
    assert "uplift not measured: needs locked rows: both" in text(document)


def test_an_unknown_interval_is_not_a_zero() -> None:
    found = text(with_uplift(tango_low=None, tango_high=None, mid_p=None, exact_p=None, uplift=None))
    assert "n/a points over opus [n/a] (Tango), 31 won, 12 lost of 220, exact p n/a (mid-p n/a)" in found


@pytest.mark.parametrize(
    ("mode", "label"), [("imported", "imported, not claim-eligible"), ("offline", "simulated, not claim-eligible")]
)
def test_an_import_and_a_simulation_are_labelled(mode: str, label: str) -> None:
    assert label in lines(card(mode=mode, claim_eligible=False))[0]


def test_an_incomplete_run_is_headed_so() -> None:
    coverage = {"planned": 780, "scored": 771, "by_reason": {"context_length": 2, "provider_error": 7}}
    found = lines(card(complete=False, claim_eligible=False, coverage=coverage))
    assert "INCOMPLETE 771/780 rows: 2 context_length, 7 provider_error" in found[1]
    assert any("771/780 scored" in line for line in found)
    assert any(line.startswith(" uplift    INCOMPLETE 771/780, no claim: +8.6 points over") for line in found)


def test_total_prints_what_stands_apart() -> None:
    total = {
        "score": 40.0,
        "out_of": 104,
        "simulated": 1.5,
        "attested": 2.0,
        "by_tool": 3.5,
        "measured_criteria": 30,
        "reachable": 60.0,
    }
    found = text(card(total=total))
    assert (
        "total 40.0 of 104; this evidence could reach 60.0; 30 criteria measured; 1.5 simulated; 2.0 attested" in found
    )
    assert "3.5 done by the tool" in found


def test_money_that_was_not_measured_is_not_zero() -> None:
    spend = {"cap_usd": None, "spent_usd": None, "estimated_usd": 240.06, "by_phase": {}}
    assert "spend not measured (estimated $240.06)" in text(card(spend=spend))
    assert "spend $412.50 (estimated $430.00)" in text()


@pytest.mark.parametrize("width", [40, 60, 80, 132])
def test_lines_fit_the_terminal_unless_one_word_does_not(width: int) -> None:
    document = card(validity=[FINDINGS["error"], FINDINGS["warning"]])
    for line in lines(document, width=width):
        assert len(line) <= width or len(line.split()) == 1 or max(map(len, line.split())) > width - 12, line


def test_a_narrow_terminal_keeps_every_digit() -> None:
    found = "\n".join(lines(width=40))
    assert "2 0 0 0 0 0" in found
    assert found.count("not run") >= 10


def test_colour_only_when_asked() -> None:
    document = card(validity=[FINDINGS["error"]])
    assert "\x1b" not in "".join(lines(document))
    coloured = lines(document, colour=True)
    assert any(line.startswith("\x1b[31m") for line in coloured)
    assert all(line.endswith("\x1b[0m") for line in coloured if line.startswith("\x1b"))


def test_a_win_is_never_claimed_while_withheld() -> None:
    document = card(validity=[FINDINGS["error"]], claim_eligible=False)
    said = text(document).lower()
    assert not [word for word in ("beats", "achieved", "shown", "proven") if word in said.split("reading")[0]]


def test_a_p_that_is_not_the_exact_one_is_named() -> None:
    found = text(with_uplift(exact_p=0.0046, clustered_p=0.0095, decision_p=0.0095, mid_p=0.0029))
    assert "p .0095 (permutation over clusters; exact .0046, mid-p .0029)" in found
    found = text(with_uplift(exact_p=0.01, clustered_p=None, decision_p=0.04, mid_p=0.005))
    assert "(the largest over all members; exact " in found
