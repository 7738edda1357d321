"""Banks: full and slim, samples, outcomes, planned tasks, several files of one signature (cases 13 and 48)."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from pytest_fusion_audit.analysis.validity import find
from pytest_fusion_audit.errors import FusionAuditError, ImportRefusedError
from pytest_fusion_audit.evidence.importers import import_run
from pytest_fusion_audit.evidence.importers.bank_stream import LONG_TEXT
from pytest_fusion_audit.evidence.records import Candidate, Config, ImportedFile, Split, Task
from tests.evidence.importers.import_plants import (
    TASKS,
    bank,
    candidate,
    codes,
    imported,
    note,
    slim,
    split_manifest,
    write,
)

if TYPE_CHECKING:
    from pathlib import Path


def of(evidence, task: str, member: str, sample: int = 0) -> Candidate:
    return next(c for c in evidence.of(Candidate) if (c.task, c.member, c.sample) == (task, member, sample))


def test_full_and_slim_give_the_same_verdicts_lengths_and_tasks(tmp_path: Path) -> None:
    full, _ = imported(tmp_path, "full/bank.json", bank())
    short, _ = imported(tmp_path, "slim/bank-slim.json", slim(bank()))
    for evidence in (full, short):
        assert evidence.splits == (("livecodebench", "baseline"),)
        assert evidence.arms("livecodebench", "baseline") == ("member:gpt", "member:opus")
    facts = ("task", "member", "sample", "verdict", "outcome", "answer_chars")
    rows = [[tuple(getattr(c, name) for name in facts) for c in e.of(Candidate)] for e in (full, short)]
    assert rows[0] == rows[1]
    tasks = [[(t.id, t.total_tests, t.prompt_sha256, t.difficulty) for t in e.of(Task)] for e in (full, short)]
    assert tasks[0] == tasks[1]


def test_texts_are_kept_as_hash_and_length_only(tmp_path: Path) -> None:
    evidence, _ = imported(tmp_path, "bank.json", bank())
    one = of(evidence, TASKS[0], "gpt")
    assert one.answer_sha256 == hashlib.sha256(b"print(1)\n").hexdigest()
    assert one.answer_chars == 9
    everything = repr(list(evidence))
    assert "print(1)" not in everything
    assert "Solve abc" not in everything


def test_full_and_slim_of_one_signature_are_one_bank(tmp_path: Path) -> None:
    write(tmp_path, "runs/bank.json", bank())
    write(tmp_path, "runs/bank-slim.json", slim(bank()))
    evidence = import_run(tmp_path / "runs")
    assert len(evidence.of(Candidate)) == 8
    assert of(evidence, TASKS[0], "gpt").source == "runs/bank-slim.json + runs/bank.json"
    assert of(evidence, TASKS[0], "gpt").answer_sha256 is not None


def test_a_repeated_member_is_one_more_sample_and_the_first_is_primary(tmp_path: Path) -> None:
    task = {
        "task_id": "t1",
        "candidates": [candidate("gpt", passed=False), candidate("opus"), candidate("gpt"), candidate("gpt")],
    }
    evidence, _ = imported(tmp_path, "b.json", bank(task))
    assert [(c.member, c.sample, c.verdict) for c in evidence.of(Candidate)] == [
        ("gpt", 0, "failed"),
        ("gpt", 1, "passed"),
        ("gpt", 2, "passed"),
        ("opus", 0, "passed"),
    ]
    assert evidence.arm("unnamed", "baseline", "member:gpt")["t1"].passed is False


def test_panel_order_is_the_banks_and_not_that_of_the_first_task(tmp_path: Path) -> None:
    task = {"task_id": "t1", "candidates": [candidate("opus"), candidate("gpt")]}
    evidence, _ = imported(tmp_path, "b.json", bank(task))
    assert evidence.members("unnamed", "baseline") == ("gpt", "opus")


@pytest.mark.parametrize(
    ("fields", "outcome", "passed"),
    [
        ({"content": "", "finish_reason": "length", "passed": False}, "truncated", False),
        ({"content": "", "finish_reason": "length", "passed": None}, "truncated", False),
        ({"content": "x", "finish_reason": "max_tokens", "passed": True}, "truncated", True),
        ({"content": " \n", "passed": False}, "empty", False),
        ({"content": "", "finish_reason": "stop", "passed": False}, "empty", False),
        ({"content": "x", "finish_reason": "stop"}, "answered", True),
        ({"content": "x", "finish_reason": "model_context_window_exceeded"}, "truncated", True),
        ({"content": "x", "finish_reason": "max_output_tokens"}, "truncated", True),
        ({"content": "x", "stop_reason": "MAX_TOKENS"}, "truncated", True),
        ({"content": "x", "finish_reason": "because"}, None, True),
        ({"content": "", "finish_reason": "because", "passed": False}, "empty", False),
        ({"content": "x"}, "answered", True),
        ({"content": "x", "finish_reason": "content_filter", "passed": False}, "refused", False),
        ({"content": "x", "stop_reason": "refusal", "passed": False}, "refused", False),
        ({"content": "", "status": "error", "passed": False}, "provider_error", None),
        ({"content": "", "status": "timeout", "passed": False}, "provider_error", None),
        ({"content": "", "status": "context_length", "passed": False}, "context_length", None),
        ({"content": "", "status": "truncated", "passed": False}, "truncated", False),
        ({"content": None, "passed": False}, None, False),
    ],
)
def test_how_an_answer_ended_is_its_own_fact(tmp_path: Path, fields, outcome, passed) -> None:
    task = {"task_id": "t1", "candidates": [candidate("gpt", **fields)]}
    evidence, _ = imported(tmp_path, "b.json", bank(task))
    assert evidence.of(Candidate)[0].outcome == outcome
    assert evidence.arm("unnamed", "baseline", "member:gpt")["t1"].passed is passed


def test_case_48_a_cut_off_answer_is_not_a_wrong_answer(tmp_path: Path) -> None:
    cut = {
        "model": "gpt",
        "content": "",
        "finish_reason": "length",
        "completion_tokens": 4096,
        "reasoning_tokens": 4096,
    }
    fine = {"sample": 0, "status": "ok", "content": "print(1)\n"}
    tasks = [
        {"task_id": "t1", "candidates": [cut, {"model": "opus", **fine, "passed": True}]},
        {"task_id": "t2", "candidates": [cut, {"model": "opus", **fine, "passed": False}]},
        {"task_id": "t3", "candidates": [{"model": name, **fine, "passed": True} for name in ("gpt", "opus")]},
        {"task_id": "t4", "candidates": [{"model": "gpt", **fine, "passed": True}]},
    ]
    evidence, file = imported(tmp_path, "bank.json", {"tasks": tasks})
    stored = of(evidence, "t1", "gpt")
    assert (stored.outcome, stored.finish_reason, stored.output_tokens, stored.reasoning_tokens) == (
        "truncated",
        "length",
        4096,
        4096,
    )
    rows = evidence.arm("unnamed", "baseline", "member:gpt").values()
    assert len(rows) == 4
    assert sum(row.outcome == "truncated" for row in rows) == 2
    assert sum(row.passed for row in rows) / 4 == 0.5
    intact = [row.passed for row in rows if row.cut is False]
    assert sum(intact) / len(intact) == 1.0
    assert "no_verdict" not in codes(file)


def case_13(status: str, tasks: int, members: tuple[str, ...] = ("gpt", "opus"), **changes) -> dict:
    held = [
        {
            "task_id": f"t{number + 1}",
            "candidates": [
                {
                    "model": name,
                    "sample": 0,
                    "status": "ok",
                    "passed": name == "gpt",
                    "content": "print(1)\n",
                    **changes,
                }
                for name in members
            ],
        }
        for number in range(tasks)
    ]
    return {
        "schema": 1,
        "signature": "s1",
        "status": status,
        "planned_tasks": ["t1", "t2", "t3"],
        "tasks": held,
    }


def test_case_13_an_empty_bank_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportRefusedError, match=r"bank-c\.json: bank claims complete but holds 0 of 3 tasks"):
        import_run(write(tmp_path, "bank-c.json", case_13("complete", 0)))


@pytest.mark.parametrize("content", [{"tasks": []}, {"signature": "s1", "tasks": []}])
def test_a_bank_without_tasks_is_refused_whatever_it_says(tmp_path: Path, content: dict) -> None:
    with pytest.raises(ImportRefusedError, match="holds 0 tasks"):
        import_run(write(tmp_path, "b.json", content))


def test_case_13_a_partial_bank_says_what_is_missing(tmp_path: Path) -> None:
    evidence, _ = imported(tmp_path, "bank-b.json", case_13("building", 1, ("gpt",)))
    (split,) = evidence.of(Split)
    assert (split.planned, split.complete, split.ids) == (3, False, ("t1", "t2", "t3"))
    assert [(c.task, c.member) for c in evidence.of(Candidate)] == [("t1", "gpt")]


def test_case_13_files_of_one_signature_merge_by_task_member_and_sample(tmp_path: Path) -> None:
    write(tmp_path, "runs/bank-a.json", case_13("complete", 3))
    write(tmp_path, "runs/bank-b.json", case_13("building", 1, ("gpt",)))
    evidence = import_run(tmp_path / "runs")
    (split,) = evidence.of(Split)
    assert (split.planned, split.complete) == (3, True)
    assert len(evidence.of(Candidate)) == 6


def test_case_13_an_empty_file_beside_a_whole_one_is_passed_over_and_visible(tmp_path: Path) -> None:
    write(tmp_path, "runs/bank-c.json", case_13("complete", 0))
    write(tmp_path, "runs/bank-d.json", case_13("complete", 3))
    evidence = import_run(tmp_path / "runs")
    assert len(evidence.of(Candidate)) == 6
    empty = next(file for file in evidence.of(ImportedFile) if file.source == "runs/bank-c.json")
    assert "0 of 3 tasks" in note(empty, "empty_bank").message


@pytest.mark.parametrize("change", [{"content": "print(2)\n"}, {"passed": None, "content": "print(3)\n"}])
def test_case_13_a_conflict_names_both_files(tmp_path: Path, change: dict) -> None:
    write(tmp_path, "runs/bank-a.json", case_13("complete", 3))
    write(tmp_path, "runs/bank-b.json", case_13("building", 1, **change))
    with pytest.raises(FusionAuditError, match=r"runs/bank-a\.json and runs/bank-b\.json disagree"):
        import_run(tmp_path / "runs")


def test_a_bank_that_claims_complete_and_is_not_says_so(tmp_path: Path) -> None:
    evidence, file = imported(tmp_path, "b.json", case_13("complete", 2))
    assert evidence.of(Split)[0].complete is False
    assert "1 of 3 planned tasks are missing" in note(file, "totals_disagree").message


def test_two_signatures_never_share_a_split(tmp_path: Path) -> None:
    write(tmp_path, "runs/a.json", bank())
    write(tmp_path, "runs/b.json", bank(signature="0123456789"))
    evidence = import_run(tmp_path / "runs")
    assert evidence.splits == (("livecodebench", "baseline"), ("livecodebench", "baseline-01234567"))


def test_a_bank_whose_ids_a_manifest_planned_is_of_that_split(tmp_path: Path) -> None:
    write(tmp_path, "runs/bank.json", bank())
    write(tmp_path, "runs/dev-manifest.json", split_manifest())
    assert import_run(tmp_path / "runs").splits == (("livecodebench", "dev"),)


def test_a_task_that_stands_twice_alike_is_one_row(tmp_path: Path) -> None:
    task = {"task_id": "t1", "candidates": [candidate("gpt")]}
    evidence, file = imported(tmp_path, "b.json", bank(task, task))
    assert len(evidence.of(Candidate)) == 1
    assert note(file, "duplicate_ids").items == ("t1",)
    assert evidence.arm("unnamed", "baseline", "member:gpt")["t1"].passed is True


def test_a_task_that_stands_twice_with_two_verdicts_is_on_no_side(tmp_path: Path) -> None:
    tasks = [{"task_id": "t1", "candidates": [candidate("gpt", passed=p), candidate("opus")]} for p in (True, False)]
    evidence, file = imported(tmp_path, "b.json", bank(*tasks, {"task_id": "t2", "candidates": [candidate("gpt")]}))
    assert "excluded on both sides" in note(file, "duplicate_ids").message
    for arm in ("member:gpt", "member:opus"):
        row = evidence.arm("unnamed", "baseline", arm)["t1"]
        assert (row.state, row.passed) == ("not_run", None)
    assert evidence.arm("unnamed", "baseline", "member:gpt")["t2"].passed is True


def test_a_candidate_without_verdict_is_kept_and_counted(tmp_path: Path) -> None:
    task = {"task_id": "t1", "candidates": [candidate("gpt", passed=None), {"model_id": "opus", "content": "x"}]}
    evidence, file = imported(tmp_path, "b.json", bank(task))
    assert [c.verdict for c in evidence.of(Candidate)] == [None, None]
    assert note(file, "no_verdict").count == 2
    assert evidence.arm("unnamed", "baseline", "member:gpt")["t1"].state == "not_run"


def test_unknown_fields_and_status_words_are_listed(tmp_path: Path) -> None:
    task = {"task_id": "t1", "colour": 1, "candidates": [candidate("gpt", mood="good", status="fabulous")]}
    _, file = imported(tmp_path, "b.json", bank(task, weather="rain"))
    assert note(file, "unknown_fields").items == ("candidates[].mood", "tasks[].colour", "weather")
    assert note(file, "unknown_status").items == ("fabulous",)


def test_hidden_tests_are_counted_and_never_kept(tmp_path: Path) -> None:
    hidden = [{"input": "secret-in", "output": "secret-out"}] * 5
    shapes = [
        {"tests": hidden},
        {"tests": {"inputs": ["secret-in"] * 5, "outputs": ["secret-out"] * 5}},
        {"public_tests": hidden[:2], "hidden_tests": hidden[:3]},
    ]
    tasks = [
        {"task_id": f"t{number}", "candidates": [candidate("gpt")], **shape} for number, shape in enumerate(shapes)
    ]
    tasks.append({"task_id": "t9", "candidates": [candidate("gpt")], "tests": "packed text"})
    evidence, _ = imported(tmp_path, "b.json", bank(*tasks))
    assert [(t.public_tests, t.total_tests) for t in evidence.of(Task)] == [(None, 5), (None, 5), (2, 5), (None, None)]
    assert "secret" not in repr(list(evidence))


def test_ids_with_slashes_and_other_scripts_stay_what_they_are(tmp_path: Path) -> None:
    ids = ["HumanEval/0", "../../etc/passwd", "ünï/日本", "a b\tc\n", "gpt:5.5|t1", "CON"]
    tasks = [{"task_id": task, "candidates": [candidate("gpt")]} for task in ids]
    evidence, _ = imported(tmp_path, "b.json", bank(*tasks))
    assert [t.id for t in evidence.of(Task)] == ids


def test_crlf_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    text = json.dumps(bank(), indent=1)
    plain, _ = imported(tmp_path, "bank.json", text)
    crlf, _ = imported(tmp_path, "bank.json", b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert list(plain.of(Candidate)) == list(crlf.of(Candidate))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (bank({"candidates": []}), r"b\.json: tasks\[0\], field task_id: missing \(an id is expected\)"),
        (bank({"task_id": "", "candidates": []}), r"tasks\[0\], field task_id: an id is expected, not ''"),
        (bank({"task_id": "t1"}), r"task t1, field candidates: missing"),
        (bank({"task_id": "t1", "candidates": 3}), r"task t1, field candidates: a list is expected, not 3"),
        (bank({"task_id": "t1", "candidates": [1]}), r"task t1\.candidates\[0\]: an object is expected"),
        (bank({"task_id": "t1", "candidates": [{"passed": True}]}), r"candidates\[0\], field model_id: missing"),
        (bank({"task_id": "t1", "candidates": [candidate("g", passed="yes")]}), r"field passed: true or false"),
        (bank({"task_id": "t1", "candidates": [candidate("g", content=5)]}), r"field content: a text"),
        (
            bank({"task_id": "t1", "candidates": [candidate("g", cost_usd=-1)]}),
            r"field cost_usd: a number of at least 0",
        ),
        (bank({"task_id": "t1", "candidates": [candidate("g", sample=0.5)]}), r"field sample: a whole number"),
        (
            bank({"task_id": "t1", "candidates": [candidate("g", latency_s=float("nan"))]}),
            r"latency_s: NaN is not a fig",
        ),
        (bank(planned_tasks="all"), r"field planned_tasks: a list of ids"),
        ('{"signature": "a", "signature": "b", "tasks": []}', r"field signature: stands twice with different values"),
        ('{"signature": "a", "tasks": {"candidates": []}}', r"known formats|list is expected"),
        (json.dumps(bank())[:-40], r"line 1, column \d+: cut off"),
        (json.dumps(bank()) + "}", r"not JSON \(extra data\)"),
    ],
)
def test_a_malformed_bank_is_one_line_with_place_and_field(tmp_path: Path, content, message: str) -> None:
    with pytest.raises(ImportRefusedError, match=message) as refused:
        import_run(write(tmp_path, "b.json", content))
    assert str(refused.value).startswith("b.json: ")
    assert "\n" not in str(refused.value)


def test_memory_does_not_grow_with_the_texts(tmp_path: Path) -> None:
    def peak(size: int) -> int:
        tasks = [
            {
                "task_id": f"t{number}",
                "prompt": "p" * size,
                "tests": [{"input": "x" * size, "output": "y"}] * 3,
                "candidates": [candidate("gpt", content="c" * size)],
            }
            for number in range(20)
        ]
        path = write(tmp_path, f"bank-{size}.json", bank(*tasks))
        tracemalloc.start()
        try:
            import_run(path)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    import_run(write(tmp_path, "warm.json", bank()))
    small, large = peak(LONG_TEXT), peak(100 * LONG_TEXT)
    written = (tmp_path / f"bank-{100 * LONG_TEXT}.json").stat().st_size
    assert large - small < written / 5


def test_a_damaged_large_bank_is_named_at_its_place(tmp_path: Path) -> None:
    tasks = [{"task_id": f"t{n}", "candidates": [candidate("gpt", content="c" * 100_000)]} for n in range(60)]
    text = json.dumps(bank(*tasks), indent=1)
    assert len(text) > 4 << 20
    evidence, _ = imported(tmp_path, "large.json", text)
    assert len(evidence.of(Candidate)) == 60
    with pytest.raises(ImportRefusedError, match=r"large\.json: line \d+, column \d+: cut off"):
        import_run(write(tmp_path, "large.json", text[:-50]))


def test_a_suite_nobody_knows_stays_without_facts(tmp_path: Path) -> None:
    evidence, file = imported(tmp_path, "b.json", bank({"task_id": "t1", "candidates": [candidate("gpt")]}))
    assert not evidence.of(Config)
    assert "suite" in file.unknown


def test_a_candidate_that_passed_at_a_score_of_0_is_believed_in_neither(tmp_path: Path) -> None:
    rows = [
        {
            "task_id": TASKS[0],
            "candidates": [
                candidate("gpt", passed=True, score=0.0),
                candidate("opus", passed=False, score=1.0),
                candidate("haiku", passed=True, score=0.8),
            ],
        }
    ]
    evidence, file = imported(tmp_path, "bank.json", bank(*rows))
    verdicts = {c.member: c.verdict for c in evidence.of(Candidate)}
    assert verdicts == {"gpt": "ungradeable", "opus": "ungradeable", "haiku": "passed"}
    assert note(file, "totals_disagree").items == (TASKS[0],)


def test_finish_reasons_that_nobody_can_read_are_counted_and_named(tmp_path: Path) -> None:
    words = ("because", "because", "stop", "FINISH_REASON_STOP", "pause_turn", None)
    rows = [
        {"task_id": f"abc101_{n}", "candidates": [candidate("gpt", finish_reason=word)]} for n, word in enumerate(words)
    ]
    evidence, file = imported(tmp_path, "bank.json", bank(*rows))
    told = note(file, "unknown_finish")
    assert (told.count, told.items) == (3, ("because", "pause_turn"))
    assert "3 answers ended for a reason of unknown meaning" in told.message
    assert "because (2), pause_turn (1)" in told.message
    (finding,) = (found for found in find(evidence) if found.code == "unknown_finish")
    assert (finding.severity, finding.affects) == ("warning", ())
    outcomes = [c.outcome for c in evidence.of(Candidate)]
    assert outcomes == [None, None, "answered", "answered", None, "answered"]
