"""Gates: a shut gate fails with one line a reason and exit 1; a replay selects none."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import run

RUN = ("--fusion-run-id=r", "--fusion-import=recorded")


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_shut_gate_fails_with_its_reasons(project: pytest.Pytester, workers: str) -> None:
    result = run(project, "audits", "-m", "gate_b", *RUN, workers)
    assert result.ret == 1
    result.assert_outcomes(passed=3, failed=1, deselected=0 if workers == "-n2" else 57)
    result.stdout.fnmatch_lines(["*gate B*", "*3.2*", "*4.1*"])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*pytest.fail*")
    assert (project.path / "audit" / "r" / "scorecard.json").is_file()


def test_a_gate_selects_the_criteria_it_rests_on(project: pytest.Pytester) -> None:
    result = run(project, "audits", "-m", "gate_b", "--collect-only", "-q")
    ids = sorted(line.split("[")[1].split("-")[0] for line in result.outlines if "::" in line)
    assert ids == ["2.1", "3.2", "4.1", "B"]


@pytest.mark.parametrize("gate", ["gate_a", "gate_c", "gate_d"])
def test_no_gate_opens_on_an_import(project: pytest.Pytester, gate: str) -> None:
    assert run(project, "audits", "-m", gate, *RUN).ret == 1


def test_a_replay_selects_no_gate(project: pytest.Pytester) -> None:
    result = run(project, "audits", "-m", "replay", *RUN, "--collect-only", "-q")
    assert not [line for line in result.outlines if "test_gates" in line]
