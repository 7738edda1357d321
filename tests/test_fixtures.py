"""The recorded audit of this project: reproducible, clean or faulty as it says, and its true figures known."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest

from pytest_fusion_audit import check_validity, import_run, load_rubric, score_rubric, wilson_interval
from pytest_fusion_audit.evidence.records import Candidate, ImportedFile, Outcome, Phase, Split, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_fusion_audit import Evidence

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
RECORDED, FAULTY = FIXTURES / "recorded", FIXTURES / "faulty"
TRUTH: Mapping[str, Any] = json.loads((FIXTURES / "truth.json").read_text(encoding="utf-8"))
PLANTED: Mapping[str, list[str]] = TRUTH["planted"]
LCB, POLYGLOT = "livecodebench", "polyglot"


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    return import_run(RECORDED)


@pytest.fixture(scope="module")
def measured(evidence: Evidence) -> Mapping[str, Any]:
    from pytest_fusion_audit.analysis.measurements import measure  # noqa: PLC0415 - a module of its own, and a slow one

    return measure(evidence)


def document(name: str) -> Any:
    return json.loads((RECORDED / name).read_text(encoding="utf-8"))


def run_of(name: str) -> dict[str, Any]:
    return json.loads((RECORDED / name).read_text(encoding="utf-8"))


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class TestGenerator:
    def test_writes_the_same_bytes_again(self, tmp_path: Path) -> None:
        shutil.copy(FIXTURES / "README.md", tmp_path)
        command = [sys.executable, "-I", str(FIXTURES / "make_recorded.py"), str(tmp_path)]
        subprocess.run(command, check=True, env={"PYTHONHASHSEED": "77"})
        assert tree(tmp_path / "recorded") == tree(RECORDED)
        assert tree(tmp_path / "faulty") == tree(FAULTY)
        for name in ("truth.json", "README.md"):
            assert (tmp_path / name).read_bytes() == (FIXTURES / name).read_bytes()

    def test_is_small_and_readable(self) -> None:
        files = tree(RECORDED) | tree(FAULTY)
        assert sum(map(len, files.values())) < 1_500_000
        for name, content in files.items():
            assert content.endswith(b"\n"), name
            assert b"\r" not in content, name
            if name.endswith(".json"):
                assert max(map(len, content.split(b"\n"))) < 400, name

    def test_says_that_no_model_was_called_wherever_a_note_can_stand(self) -> None:
        noted = [
            RECORDED / name for name in ("phase3/bank.json", "phase3/dev-bank-slim.json", "phase3/dev-manifest.json")
        ]
        noted += [RECORDED / name for name in ("phase6/locked-bank-slim.json", "matrix/harbour-puzzles.json")]
        noted += [RECORDED / name for name in ("published-scorecard.json", "panel.yaml", "phase6/locked-test.jsonl")]
        for path in noted:
            assert "o model was called" in path.read_text(encoding="utf-8"), path
        for path in (RECORDED / "spend-ledger.jsonl", RECORDED / "phase6/bench-history-ledger.jsonl"):
            assert all("no model was called" in line for line in path.read_text(encoding="utf-8").splitlines())

    def test_names_no_task_of_a_real_contest(self, evidence: Evidence) -> None:
        ids = {task for suite, split in evidence.all_splits if suite == LCB for task in evidence.task_ids(suite, split)}
        assert {name.partition("_")[0] for name in ids} == {f"abc{contest}" for contest in range(901, 981)}


class TestRecorded:
    def test_every_file_is_read_without_a_remark(self, evidence: Evidence) -> None:
        files = {file.source.partition("/")[2]: file for file in evidence.of(ImportedFile)}
        assert files.keys() == tree(RECORDED).keys()
        assert not [file.source for file in files.values() if file.format == "unrecognised" or file.notes]

    def test_holds_two_suites_three_members_and_enough_tasks(self, evidence: Evidence) -> None:
        for suite, split, n in ((LCB, "baseline", 120), (LCB, "locked", 220), (POLYGLOT, "locked", 150)):
            assert evidence.members(suite, split) == ("gpt", "opus", "sonnet")
            assert all(len(evidence.arm(suite, split, f"member:{name}")) == n for name in ("gpt", "opus", "sonnet"))
        samples = {candidate.sample for of_task in evidence.candidates(LCB, "dev").values() for candidate in of_task}
        assert samples == {0, 1, 2}

    def test_every_outcome_and_every_verdict_stands_in_some_row(self, evidence: Evidence) -> None:
        candidates = evidence.of(Candidate)
        assert {one.outcome for one in candidates} - {None} == set(get_args(Outcome))
        assert {one.verdict for one in candidates} - {None} == set(get_args(Verdict))

    def test_arms_stand_where_the_readme_says(self, evidence: Evidence) -> None:
        three = {"rewrite", "select_best", "exec_select"}
        assert {f"compound:{policy}" for policy in three} <= set(evidence.arms(LCB, "baseline"))
        dev = {f"compound:{policy}{config}" for policy in three for config in ("", "@deep3", "@terse")}
        dev |= {f"self:opus*3:{policy}" for policy in three} | {"served"}
        assert dev <= set(evidence.arms(LCB, "dev"))
        for suite in (LCB, POLYGLOT):
            assert [arm for arm in evidence.arms(suite, "locked") if not arm.startswith("member:")] == [
                "compound",
                "self:opus*3:rewrite",
            ]
        caps = {f"member:{name}@{cap}" for name in ("gpt", "opus", "sonnet") for cap in (4096, 16384)}
        assert set(evidence.arms(LCB, "caps")) == caps
        assert len(evidence.arms("Harbour puzzles", "all")) == 12
        assert len(evidence.task_ids("Harbour puzzles", "all")) == 40

    def test_locked_ids_stand_in_no_other_split(self, evidence: Evidence) -> None:
        locked = evidence.task_ids(LCB, "locked")
        planned = {split.split for split in evidence.of(Split) if split.suite == LCB and locked & set(split.ids or ())}
        assert planned == {"locked"}
        for suite, split in evidence.splits:
            assert split == "locked" or not evidence.task_ids(suite, split) & locked
        assert not evidence.task_ids(LCB, "baseline") & evidence.task_ids(LCB, "dev")

    def test_no_arm_is_cut_too_often(self, measured: Mapping[str, Any]) -> None:
        shares = []
        for name, n in measured.items():
            arm, _, quantity = name.rpartition("/")
            if quantity == "n" and "/member:" in name and "~" not in name and n:
                cut = [measured.get(f"{arm}/{what}") for what in ("truncated", "empty")]
                shares.append(sum(count or 0 for count in cut) / n)
        assert shares
        assert max(shares) <= 0.05
        assert max(shares) > 0


class TestTruth:
    def test_every_realised_figure_is_measured_to_the_last_digit(self, measured: Mapping[str, Any]) -> None:
        assert len(TRUTH["realised"]) > 100
        for name, value in TRUTH["realised"].items():
            assert measured[name] == pytest.approx(value, rel=0, abs=1e-12), name

    @pytest.mark.parametrize(("suite", "split"), [(LCB, "baseline"), (LCB, "locked"), (POLYGLOT, "locked")])
    def test_true_rates_lie_in_their_intervals(self, measured: Mapping[str, Any], suite: str, split: str) -> None:
        arms = ["compound", "member:gpt", "member:opus", "member:sonnet"]
        for arm in [*arms, "self:opus*3:rewrite"] if split == "locked" else arms:
            low, high = wilson_interval(measured[f"{suite}/{split}/{arm}/passed"], measured[f"{suite}/{split}/{arm}/n"])
            assert low <= TRUTH["expected"][f"{suite}/{arm}/pass_rate"] <= high, arm

    def test_true_uplifts_lie_in_their_intervals(self, measured: Mapping[str, Any]) -> None:
        for suite in (LCB, POLYGLOT):
            for member in ("gpt", "opus", "sonnet"):
                pair = f"{suite}/locked/compound~member:{member}"
                true = TRUTH["expected"][f"{suite}/compound~member:{member}/uplift"]
                assert measured[f"{pair}/tango_low"] <= true <= measured[f"{pair}/tango_high"]

    def test_regret_is_additive_in_expectation_too(self) -> None:
        for suite in (LCB, POLYGLOT):
            regret = {part: TRUTH["expected"][f"{suite}/regret/{part}"] for part in ("total", "judge", "synthesis")}
            assert regret["judge"] + regret["synthesis"] == pytest.approx(regret["total"], abs=1e-12)

    def test_files_state_the_figures_of_their_own_rows(self, measured: Mapping[str, Any]) -> None:
        ablations = document("phase4/ablations.json")
        split = {policy["policy"]: policy["regret_split"] for policy in ablations["policies"]}["llm_rewrite"]
        assert split["oracle_rate"] == measured[f"{LCB}/baseline/oracle"]
        assert split["fused_rate"] == measured[f"{LCB}/baseline/compound:rewrite/pass_rate"]
        evaluation = document("phase6/poly-full-eval.json")
        for theirs, ours in (("total_regret", "regret/total"), ("judge_regret", "regret/judge")):
            assert evaluation["regret_split"][theirs] == pytest.approx(measured[f"{POLYGLOT}/locked/{ours}"])
        for name in ("judge_pick_accuracy", "judge_pick_accuracy_strict", "picks_named"):
            assert evaluation["regret_split"][name] == pytest.approx(measured[f"{POLYGLOT}/locked/{name}"])

    def test_the_programs_of_the_bank_earn_their_verdicts(self) -> None:
        seen = set()
        for task in document("phase3/bank.json")["tasks"]:
            tests = [*task["public_tests"], *task["hidden_tests"]]
            for candidate in task["candidates"]:
                verdict = candidate.get("verdict") or ("passed" if candidate["passed"] else "failed")
                seen.add(verdict)
                if verdict == "timeout":
                    assert candidate["content"].startswith("n = 1\nwhile n:")
                    continue
                outputs = [printed(candidate["content"], test["input"]) for test in tests]
                right = [output == test["output"] for output, test in zip(outputs, tests, strict=True)]
                assert all(right) == (verdict == "passed"), task["task_id"]
                if verdict == "crashed":
                    assert outputs[0] is None
        assert seen == {"passed", "failed", "timeout", "crashed"}


def printed(program: str, text: str) -> str | None:
    """What a program of the bank prints; None when it raises or is none."""
    lines = iter(text.splitlines())
    out = io.StringIO()
    try:
        with redirect_stdout(out):
            exec(compile(program, "program", "exec"), {"input": lambda: next(lines)})
    except Exception:  # noqa: BLE001 - whatever a wrong program does
        return None
    return out.getvalue()


class TestMoney:
    def test_the_ledger_runs_and_agrees_with_the_rows(self, evidence: Evidence) -> None:
        lines = evidence.of(Phase)
        running = 0
        for line in lines:
            assert line.measured_micro_usd is not None
            running += line.measured_micro_usd
            assert line.cum_micro_usd == running
        billed = {(line.phase, line.suite): line.measured_micro_usd for line in lines}
        runs = {
            ("1-smoke", "livecodebench smoke"): "phase1/smoke.jsonl",
            ("6-locked-test", "livecodebench locked"): "phase6/locked-test.jsonl",
            ("6-locked-test", "polyglot locked"): "phase6/locked-polyglot.jsonl",
            ("6-locked-control", "livecodebench locked"): "phase6/locked-self.jsonl",
            ("6-locked-control", "polyglot locked"): "phase6/locked-polyglot-self.jsonl",
        }
        for key, name in runs.items():
            assert round(run_of(name)["cost_total_usd"] * 1_000_000) == billed[key]
        for suite, name in (("baseline", "phase3/bank.json"), ("dev", "phase3/dev-bank-slim.json")):
            drawn = [one["cost_usd"] for task in document(name)["tasks"] for one in task["candidates"]]
            assert round(sum(drawn) * 1_000_000) == billed["3-baseline", f"livecodebench {suite} bank"]

    def test_costs_are_tokens_at_list_price(self) -> None:
        prices = {"gpt": (5, 30), "opus": (5, 25), "sonnet": (3, 15)}
        for task in document("phase6/locked-bank-slim.json")["tasks"]:
            for one in task["candidates"]:
                into, out = prices[one["model_id"]]
                assert (
                    round(one["cost_usd"] * 1_000_000) == into * one["prompt_tokens"] + out * one["completion_tokens"]
                )

    def test_the_control_cost_as_much_as_the_compound(self) -> None:
        for compound, control in (("locked-test", "locked-self"), ("locked-polyglot", "locked-polyglot-self")):
            spent = [run_of(f"phase6/{name}.jsonl")["cost_total_usd"] for name in (compound, control)]
            assert spent[1] == pytest.approx(spent[0], rel=0.05)

    def test_unknown_prices_stay_unknown(self, evidence: Evidence) -> None:
        for cap in (4096, 16384):
            text = (RECORDED / f"phase4/outcomes-{cap}.csv").read_text(encoding="utf-8")
            blank = [row["task_id"] for row in csv.DictReader(io.StringIO(text)) if not row["charged_cost_usd"]]
            assert len(blank) == 1
            assert evidence.arm(LCB, "caps", f"member:gpt@{cap}")[blank[0]].cost_micro_usd is None


class TestValidity:
    def test_the_clean_audit_is_clean(self, evidence: Evidence) -> None:
        assert not [
            (finding.code, finding.message) for finding in check_validity(evidence) if finding.severity == "error"
        ]

    def test_it_publishes_no_more_than_it_shows(self, evidence: Evidence) -> None:
        published = document("published-scorecard.json")["scores"]
        ours = {row["id"]: row["score"] for row in score_rubric(evidence, load_rubric()).to_json()["criteria"]}
        assert published.keys() == ours.keys()
        assert {name: score for name, score in published.items() if score > ours[name]} == {}
        assert sum(published.values()) > 10

    def test_nothing_is_left_out_of_the_clean_audit(self, evidence: Evidence) -> None:
        scorecard = score_rubric(evidence, load_rubric()).to_json()
        assert scorecard["complete"]
        assert scorecard["coverage"]["planned"] == scorecard["coverage"]["scored"] > 4000

    @pytest.mark.parametrize("folder", PLANTED)
    def test_planted_faults_are_found(self, folder: str) -> None:
        assert set(PLANTED[folder]) <= {finding.code for finding in check_validity(import_run(FAULTY / folder))}

    def test_all_of_them_together(self) -> None:
        found = {finding.code for finding in check_validity(import_run(FAULTY))}
        assert {code for codes in PLANTED.values() for code in codes} <= found

    def test_a_code_is_missing_only_where_no_format_carries_it(self) -> None:
        from pytest_fusion_audit.analysis.validity import CHECKS  # noqa: PLC0415 - beside its only use

        codes = {code for codes in PLANTED.values() for code in codes}
        named = {check.__name__ for check in CHECKS} - {"notes_of_imports"}
        assert named - codes == {"settings_not_sent", "verdict_unstable", "stale_subject"}

    def test_tasks_without_a_score_are_counted_by_reason(self) -> None:
        scorecard = score_rubric(import_run(FAULTY / "incomplete"), load_rubric()).to_json()
        assert not scorecard["complete"]
        reasons = scorecard["coverage"]["by_reason"]
        assert reasons == {"context_length": 1, "excluded": 1, "provider_error": 2}
        assert scorecard["coverage"]["planned"] - scorecard["coverage"]["scored"] == 4


def without_texts(candidate: dict[str, Any]) -> dict[str, Any]:
    """The candidate as FusionKit's slim bank has it: no reason why it ended, no reason why it failed."""
    blank = not candidate["content"].strip()
    length = {"content_chars": len(candidate["content"]), "content_empty": blank}
    return {"model_id": candidate["model_id"], "passed": candidate["passed"], **length}


def as_it_is(candidate: dict[str, Any]) -> dict[str, Any]:
    return candidate


@pytest.mark.parametrize("order", [("a-full", "b-slim"), ("b-full", "a-slim")], ids=["full first", "slim first"])
def test_a_bank_and_its_slim_copy_are_one_bank(tmp_path: Path, order: tuple[str, str]) -> None:
    full = document("phase3/bank.json")
    forms: tuple[Callable[[dict[str, Any]], dict[str, Any]], ...] = (as_it_is, without_texts)
    for name, form in zip(order, forms, strict=True):
        tasks = [{**task, "candidates": [form(one) for one in task["candidates"]]} for task in full["tasks"]]
        (tmp_path / f"{name}.json").write_text(json.dumps(full | {"tasks": tasks}), encoding="utf-8")
    alone = import_run(RECORDED / "phase3" / "bank.json").of(Candidate)
    together = import_run(tmp_path).of(Candidate)
    assert len(together) == len(alone) == 360
    kept = {(one.task, one.id): (one.outcome, one.verdict, one.finish_reason) for one in together}
    assert kept == {(one.task, one.id): (one.outcome, one.verdict, one.finish_reason) for one in alone}
