"""truncated_answers: a cut answer is not a wrong answer (case 48 of the collection, as a kind)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_fusion_audit.analysis.validity import find
from pytest_fusion_audit.analysis.validity.answers import truncated_answers
from pytest_fusion_audit.evidence.records import ArmOutcome, Candidate, Config, Fused
from tests.analysis.validity.validity_plants import (
    IDS,
    LOCKED,
    SUITE,
    candidate,
    changed,
    clean,
    codes,
    evidence,
    fused,
    only,
    the,
)


def small(gpt: dict[str, dict], opus: dict[str, bool], compound: dict[str, bool]):
    """A bank of two members and the verdicts of a compound on the same tasks."""
    records = [
        candidate(task, "gpt", **{"split": "baseline", "resolved_model": None, "verdict": None, **facts})
        for task, facts in gpt.items()
    ]
    records += [
        candidate(task, "opus", split="baseline", verdict="passed" if passed else "failed")
        for task, passed in opus.items()
    ]
    records += [
        ArmOutcome(task=task, suite=SUITE, split="baseline", arm="compound", passed=passed, source="fused.json")
        for task, passed in compound.items()
    ]
    return records


CUT = {"outcome": "truncated", "finish_reason": "length", "output_tokens": 4096}
EMPTY = {"outcome": "empty", "finish_reason": None}
RIGHT = {"verdict": "passed"}
WRONG = {"verdict": "failed"}


def test_half_the_answers_cut_is_not_comparable_and_shows_both_rates() -> None:
    found = evidence(
        small(
            {"t1": CUT, "t2": CUT, "t3": RIGHT, "t4": RIGHT},
            {"t1": True, "t2": False, "t3": True, "t4": False},
            {"t1": True, "t2": False, "t3": True, "t4": True},
        )
    )
    finding = the(found, "truncated_answers")
    assert finding.severity == "error"
    assert "member:gpt is not comparable, 2 of 4 (50.0 %) answers truncated" in finding.message
    assert "it passes 2 of 4 (50.0 %), where its answer is intact 2 of 2 (100.0 %)" in finding.message
    assert "compound against it 1 won, 0 lost of 4 (+25.0 points)" in finding.message
    assert "on intact pairs 0 won, 0 lost of 2 (+0.0 points)" in finding.message
    assert "had every cut answer passed -25.0 points: uplift not identified" in finding.message
    assert {"1.1", "1.2", "1.3", "1.4", "1.5", "2.1", "2.5"} <= set(finding.affects)
    assert finding.evidence == ("fused.json", LOCKED)
    assert "opus" not in finding.message


def test_a_positive_bound_leaves_the_uplift_identified() -> None:
    tasks = [f"t{n}" for n in range(10)]
    found = evidence(
        small(
            {task: CUT if n == 0 else WRONG for n, task in enumerate(tasks)},
            dict.fromkeys(tasks, False),
            {task: n < 5 for n, task in enumerate(tasks)},
        )
    )
    message = the(found, "truncated_answers").message
    assert "had every cut answer passed +40.0 points" in message
    assert "not identified" not in message


def test_one_empty_answer_of_unknown_cause_is_enough() -> None:
    records = clean()
    records = changed(
        records,
        lambda r: (
            replace(r, outcome="empty", finish_reason=None, verdict="failed")
            if isinstance(r, Candidate) and (r.task, r.member) == (IDS[200], "opus")
            else r
        ),
    )
    finding = the(evidence(records), "truncated_answers")
    assert "member:opus" in finding.message
    assert "1 of 240 (0.4 %) answers empty, finish reasons not recorded" in finding.message


def test_a_few_answers_cut_for_a_known_reason_are_tolerated() -> None:
    few = set(IDS[200:212])  # 12 of 240: 5 %, not above it
    records = changed(
        clean(),
        lambda r: (
            replace(r, outcome="empty", finish_reason="length", verdict="failed")
            if isinstance(r, Candidate) and r.member == "gpt" and r.task in few
            else r
        ),
    )
    assert "truncated_answers" not in codes(evidence(records))
    strict = evidence(records, settings={"statistics": {"truncation_limit": 0.02}})
    assert "12 of 240 (5.0 %) answers empty, limit 2 %" in the(strict, "truncated_answers").message


def test_answers_without_any_recorded_outcome_are_not_guessed_at() -> None:
    records = changed(clean(), only(Candidate, outcome=None, finish_reason=None))
    assert "truncated_answers" not in codes(evidence(records))


def test_a_compound_that_was_cut_itself_is_told_apart() -> None:
    cut = set(IDS[200:230])
    records = changed(
        clean(),
        lambda r: (
            replace(r, outcome="truncated", verdict=None)
            if isinstance(r, Fused) and r.arm == "compound" and r.task in cut
            else r
        ),
    )
    finding = the(evidence(records), "truncated_answers")
    assert "compound is not comparable, 30 of 240 (12.5 %) answers truncated" in finding.message
    assert "counted as failed it passes 148 of 240 (61.7 %), where its answer is intact 148 of 210" in finding.message
    assert "1.1" in finding.affects
    assert "2.1" not in finding.affects


def test_one_empty_turn_of_a_compound_only_hurts_itself() -> None:
    records = changed(
        clean(), lambda r: replace(r, outcome="empty", verdict=None) if isinstance(r, Fused) and r.task == IDS[9] else r
    )
    assert "truncated_answers" not in codes(evidence(records))
    member = ArmOutcome(task="t", suite=SUITE, split="run", arm="member:gpt", passed=False, outcome="empty")
    assert "finish reasons not recorded" in the(evidence([member]), "truncated_answers").message


def test_a_bank_without_its_compound_yet_touches_the_headline() -> None:
    bank = [candidate(task, "gpt", split="baseline", outcome="truncated") for task in IDS[:20]]
    assert {"1.1", "1.2", "1.3", "2.1"} <= set(the(evidence(bank), "truncated_answers").affects)


def test_a_cut_control_touches_the_uplift_and_self_consistency() -> None:
    records = changed(
        clean(),
        lambda r: replace(r, outcome="no_text") if isinstance(r, Fused) and r.arm.startswith("self:") else r,
    )
    finding = the(evidence(records), "truncated_answers")
    assert set(finding.affects) == {"1.1", "1.2", "1.3", "2.5"}


def _locked_without_outcomes() -> list:
    """Locked rows that record verdicts only, over the tasks of a bank that records emptiness."""
    silent = {"outcome": None, "finish_reason": None, "parameters_sent": None, "parameters_asked": None}
    return changed(clean(), only(Candidate, requested_model=None, **silent))


def _bank(cut: int) -> list[Candidate]:
    return [
        candidate(
            task,
            "gpt",
            split="baseline",
            source="bank.json",
            **({"outcome": "empty", "finish_reason": None, "verdict": "failed"} if n < cut else {}),
        )
        for n, task in enumerate(IDS[:200])
    ]


def test_the_same_member_on_the_same_tasks_tells_what_locked_rows_do_not() -> None:
    found = evidence([*_locked_without_outcomes(), *_bank(cut=50)])
    joined = [f for f in find(found) if f.code == "truncated_answers" and "/locked" in f.message.partition(":")[0]]
    assert len(joined) == 1
    message = joined[0].message
    assert f"joined by task id with {SUITE}/baseline/member:gpt" in message
    assert "50 of 200 (25.0 %) answers were cut, finish reasons not recorded there" in message
    # All of these 50 passed on the locked draw: another draw was cut, and the finding says so.
    assert (
        f"(that is the draw of {SUITE}/baseline, not this one: of the 50 tasks cut there, 50 passed in {SUITE}/locked)"
        in (message)
    )
    assert "compound against it 32 won, 4 lost of 240" in message
    # The 50 cut tasks are the first of the 120 that gpt passes here: 4 losses go with them, the wins stay.
    assert "on intact pairs 32 won, 0 lost of 150" in message
    assert set(joined[0].evidence) >= {"bank.json", LOCKED}


def test_a_bank_of_other_tasks_tells_nothing_about_locked_ones() -> None:
    elsewhere = [replace(c, task=f"other-{c.task}") for c in _bank(cut=50)]
    findings = [f for f in find(evidence([*_locked_without_outcomes(), *elsewhere])) if f.code == "truncated_answers"]
    assert len(findings) == 1
    assert findings[0].message.startswith(f"{SUITE}/baseline:")


def _at_cap(cap: int, passed: frozenset[str], cut: frozenset[str]) -> list[Candidate]:
    return [
        candidate(
            task,
            "gpt55",
            split="caps",
            config=str(cap),
            requested_model="openai/gpt-5.5",
            parameters_asked=None,
            parameters_sent=None,
            outcome="truncated" if task in cut else "answered",
            finish_reason=None,
            verdict="passed" if task in passed else "failed",
            source=f"caps-{cap}.csv",
        )
        for task in IDS[100:200]
    ]


@pytest.mark.parametrize("cap_known_from", ["panel file", "run record"])
def test_the_same_model_at_a_larger_cap_stands_beside_the_compound(cap_known_from: str) -> None:
    facts = {"output_cap": 4096} if cap_known_from == "run record" else {"output_cap": None}

    def stated(record):
        if isinstance(record, Config) and record.what == "run":
            return replace(record, facts={**record.facts, **facts})
        if isinstance(record, Config) and record.what == "panel":
            return replace(record, facts={**record.facts, "sampling": {"max_tokens": 4096}})
        return record

    records = changed(_locked_without_outcomes(), stated)
    records += _at_cap(4096, frozenset(IDS[100:120]), frozenset(IDS[130:160]))
    records += _at_cap(16384, frozenset(IDS[100:180]), frozenset())
    findings = truncated_answers(evidence(records))
    locked = [f for f in findings if f.message.startswith(f"{SUITE}/locked:")]
    assert len(locked) == 1
    message = locked[0].message
    # the same model at the same cap tells which answers were cut ...
    assert f"joined by task id with {SUITE}/caps/member:gpt55@4096, openai/gpt-5.5, 30 of 100 (30.0 %)" in message
    assert f"of the 30 tasks cut there, 0 passed in {SUITE}/locked" in message
    # ... and at a larger one what they could have been: 100..151 against 100..179
    assert f"({SUITE}/caps/member:gpt55@16384, openai/gpt-5.5, 16384 tokens, not 4096, 0 of 100 cut)" in message
    assert "compound 0 won, 28 lost of 100 shared tasks (-28.0 points), exact p 7.5e-09" in message
    assert {"caps-4096.csv", "caps-16384.csv"} <= set(locked[0].evidence)


def test_members_of_a_split_without_a_compound_are_told_together_by_configuration() -> None:
    records = [
        candidate(task, member, split="caps", config=cap, outcome="truncated" if number < cut else "answered")
        for cap, cut, members in (("4096", 60, ("gpt", "opus")), ("16384", 20, ("gpt",)))
        for number, task in enumerate(IDS[:100])
        for member in members
    ]
    findings = truncated_answers(evidence(records))
    assert [f.message.partition(":")[0] for f in findings] == [f"{SUITE}/caps@16384", f"{SUITE}/caps@4096"]
    assert "2 members are not comparable" in findings[1].message
    assert "member:gpt@4096 60 of 100 (60.0 %) answers truncated, passes 100 of 100" in findings[1].message
    assert set(findings[1].affects) == {"2.1", "2.2", "2.3", "2.4"}


def test_every_sample_counts_not_only_the_first() -> None:
    further = [candidate(task, "gpt", sample=1, outcome="truncated", verdict=None) for task in IDS]
    finding = the(evidence([*clean(), *further]), "truncated_answers")
    assert "240 of 480 (50.0 %) answers truncated" in finding.message


def test_a_refusal_and_a_provider_error_are_not_cut_answers() -> None:
    records = changed(
        clean(),
        lambda r: (
            replace(r, outcome="refused" if r.task < "t120" else "provider_error", verdict=None)
            if isinstance(r, Candidate) and r.member == "opus"
            else r
        ),
    )
    assert "truncated_answers" not in codes(evidence(records))


def test_a_turn_of_a_compound_without_outcome_is_unknown() -> None:
    records = [fused(task, outcome=None) for task in IDS]
    assert truncated_answers(evidence(records)) == []


@pytest.mark.parametrize("word", ["because", "pause_turn", None])
def test_an_empty_answer_that_ended_for_a_reason_of_unknown_meaning_is_one_of_unknown_cause(word: str | None) -> None:
    records = changed(
        clean(),
        lambda r: (
            replace(r, outcome="empty", finish_reason=word, verdict="failed")
            if isinstance(r, Candidate) and (r.task, r.member) == (IDS[200], "opus")
            else r
        ),
    )
    assert "finish reasons not recorded" in the(evidence(records), "truncated_answers").message
