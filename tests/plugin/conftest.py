"""A project of its own for each test: a copy of ``audits/`` and a small recorded run."""

from __future__ import annotations

import json
import shutil
from importlib import import_module
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]

# Sessions in this process give back the modules they imported; numpy cannot be imported twice, so everything an audit
# needs is imported before the first of them.
for dimension in range(1, 11):
    import_module(f"pytest_fusion_audit.rubric.criteria.dimension_{dimension:02d}")
for name in ("report.artifacts", "report.text", "rubric.scorecard", "evidence.importers", "evidence.rundir"):
    import_module(f"pytest_fusion_audit.{name}")
for name in ("metering.door", "metering.scan", "configuration.panel"):
    import_module(f"pytest_fusion_audit.{name}")
for name in ("scipy.special", "scipy.optimize", "scipy.stats", "openai", "anthropic"):
    import_module(name)


def bank(tasks: int = 12) -> dict[str, object]:
    """A bank of two members: gpt right on even tasks, opus on every third."""
    return {
        "signature": "b1",
        "panel_models": ["gpt", "opus"],
        "tasks": [
            {
                "task_id": f"abc9{number:02d}_a",
                "difficulty": "hard",
                "prompt_sha256": f"{number:016x}",
                "n_tests": 3,
                "candidates": [
                    {"model_id": "gpt", "passed": number % 2 == 0, "content_chars": 90, "content_empty": False},
                    {"model_id": "opus", "passed": number % 3 == 0, "content_chars": 70, "content_empty": False},
                ],
            }
            for number in range(tasks)
        ],
    }


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with ``audits/`` and ``recorded/bank.json``, and nothing else."""
    audits = pytester.path / "audits"
    audits.mkdir()
    for module in (REPO / "audits").glob("*.py"):
        shutil.copy(module, audits)
    recorded = pytester.path / "recorded"
    recorded.mkdir()
    (recorded / "bank.json").write_text(json.dumps(bank()))
    return pytester


def run(project: pytest.Pytester, *arguments: str, apart: bool = False) -> pytest.RunResult:
    """Run pytest in the project: in this process, which is quick, or apart where workers or limits need it.

    Without the plugin of hypothesis, which imports the whole of hypothesis at the end of every session.
    """
    arguments = (*arguments, "-p", "no:hypothesispytest")
    if apart or any(argument.startswith("-n") and argument != "-n0" for argument in arguments):
        return project.runpytest_subprocess(*arguments)
    return project.runpytest_inprocess(*arguments)


def files_of(path: Path) -> set[str]:
    """Relative names of all files below a folder, without caches and pytester's own."""
    return {
        file.relative_to(path).as_posix()
        for file in path.rglob("*")
        if file.is_file() and not {"__pycache__", ".pytest_cache", "stdout", "stderr"} & set(file.parts)
    }
