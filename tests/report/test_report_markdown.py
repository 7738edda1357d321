"""rubric-scorecard.md: everything the JSON says, for people, in tables that other people's names cannot break."""

from __future__ import annotations

from pytest_fusion_audit import load_rubric
from pytest_fusion_audit.report.markdown import rubric_scorecard_md
from tests.report.report_cards import FINDINGS, card, published

IMPORT = {
    "source": "phase3/bank.json",
    "sha256": "ab" * 32,
    "format": "fusionkit-bank",
    "unknown": ["cost", "finish reason"],
    "notes": [{"code": "no_verdict", "message": "2 candidates", "count": 2, "items": ["t|1"]}],
}


def rows(text: str, first: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(f"| {first} |")]


def test_the_document_begins_with_what_can_be_claimed() -> None:
    text = rubric_scorecard_md(card())
    head = text.split("## ")[0]
    assert head.startswith("# Fusion scorecard: demo (live, claim-eligible)\n")
    assert "- **Uplift:** +8.6 points over opus [+2.9, +14.6] (Tango), 31 won, 12 lost of 220, exact p .0054" in head
    assert "- **Gates:** A open, B shut, C shut, D shut" in head
    assert "- **Total:** 3.3 of 104" in head
    assert "gpt = gpt-5.5, opus = claude-opus-4-8; hash 5b" in head
    assert text.endswith("|\n")
    assert not text.endswith("\n\n")


def test_every_criterion_has_a_row_with_everything_about_it() -> None:
    text = rubric_scorecard_md(card())
    for criterion in load_rubric().criteria:
        (row,) = [line for line in rows(text, criterion.id) if f"| {criterion.title} |" in line]
        assert row.count(" | ") == 9
        assert criterion.met.replace("|", "\\|") in row
    first = rows(text, "1.1")[0]
    for part in ("| met | 2 | measured | target |", "n = 220", "tango_low = 0.0292", "over = opus", "`locked.json`"):
        assert part in first
    assert "| not run | 0 |" in rows(text, "1.2")[0]
    assert "needs a drill: planted" in rows(text, "1.2")[0]


def test_findings_come_with_evidence_and_affects_and_the_uplift_is_withheld() -> None:
    text = rubric_scorecard_md(card(validity=[FINDINGS["error"], published("3.1")], claim_eligible=False))
    assert "| error | `truncated_answers` | 38 of 86 answers of gpt are empty" in text
    assert "| 1.1, 1.3 | `phase3/bank-slim.json` |" in text
    assert "| warning | `published_score_unsupported` | 3.1 was published as 2" in text
    assert "- **Uplift:** withheld: truncated_answers; uplift not identified" in text
    assert "Nothing found." in rubric_scorecard_md(card())


def test_gates_list_every_reason() -> None:
    text = rubric_scorecard_md(card())
    assert "- **A open** (the rules hold)" in text
    assert "- **B shut** (the rules do not hold)\n  - 7.2 Latency overhead: scored 1" in text


def test_published_scores_and_sources_have_tables_of_their_own() -> None:
    rows_ = [
        {"criterion": "1.1", "published": 2, "ours": 1, "why": "too few"},
        {"criterion": "1.2", "published": None, "ours": 0, "why": "not run"},
    ]
    text = rubric_scorecard_md(card(published=rows_, imports=[IMPORT]))
    assert "## Published against ours" in text
    assert "| 1.1 | 2 | 1 | too few |" in text
    assert "| 1.2 | - | 0 | not run |" in text
    assert "## Sources and what stayed unknown" in text
    assert (
        "| `phase3/bank.json` | fusionkit-bank | `abababababab` | cost; finish reason | no_verdict: 2 candidates |"
        in text
    )
    assert "## Published" not in rubric_scorecard_md(card())


def test_names_of_others_cannot_break_a_table() -> None:
    hostile = {**FINDINGS["error"], "message": "task a|b\nand `c`\r\n| d |", "evidence": ["a|b.json"]}
    text = rubric_scorecard_md(card(validity=[hostile]))
    (row,) = [line for line in text.splitlines() if line.startswith("| error |")]
    assert "task a\\|b and `c` \\| d \\|" in row
    assert row.replace("\\|", "").count("|") == 6


def test_an_incomplete_import_says_both_in_its_head() -> None:
    coverage = {"planned": 10, "scored": 9, "by_reason": {"provider_error": 1}}
    text = rubric_scorecard_md(card(mode="imported", claim_eligible=False, complete=False, coverage=coverage))
    assert text.startswith("# Fusion scorecard: demo (imported, not claim-eligible)")
    assert "**INCOMPLETE 9/10 rows: 1 provider_error**" in text
    assert "- **Rows:** 9/10 scored" in text


def test_unknown_money_and_hash_are_not_zero() -> None:
    spend = {"cap_usd": None, "spent_usd": None, "estimated_usd": None, "by_phase": {}}
    text = rubric_scorecard_md(card(spend=spend, subject={"hash": None, "doors": [], "panel": []}))
    assert "- **Spend:** measured n/a, estimated n/a" in text
    assert "- **Subject:** panel not recorded; hash unknown" in text
