"""The package: a wheel with audits/ inside that replays from an empty directory, and public names that load lazily."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import pytest_fusion_audit
from tests.plugin.conftest import bank

REPO = Path(__file__).parents[1]


@pytest.mark.parametrize("name", pytest_fusion_audit.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(pytest_fusion_audit, name)
    assert value.__doc__


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = pytest_fusion_audit.nothing


def test_importing_the_root_imports_nothing_else() -> None:
    heavy = ("numpy", "pydantic", "pytest", "yaml")
    program = f"import sys, pytest_fusion_audit; print([m for m in {heavy} if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--sdist", "--no-isolation", "--outdir", str(out), str(REPO)]
    subprocess.run(command, check=True, capture_output=True)
    assert list(out.glob("*.tar.gz"))
    (built,) = out.glob("*.whl")
    return built


def test_the_wheel_holds_audits_rubric_and_types(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {f"pytest_fusion_audit/audits/{path.name}" for path in (REPO / "audits").glob("*.py")}
    assert len(modules) == 12
    assert modules | {"pytest_fusion_audit/rubric/rubric.yaml", "pytest_fusion_audit/py.typed"} <= names
    assert not [name for name in names if name.startswith(("tests/", "fixtures/", "bench/"))]


def test_the_wheel_replays_from_an_empty_directory(wheel: Path, tmp_path: Path) -> None:
    # A virtual environment that sees this one's packages and takes ours from the wheel only.
    home = tmp_path / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    (site,) = (home / "lib").glob("python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    others = [path for path in sys.path if path.endswith("site-packages")]
    (site / "others.pth").write_text("\n".join(others))
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "bank.json").write_text(json.dumps(bank()))
    command = [str(home / "bin" / "python"), "-m", "pytest", "--pyargs", "pytest_fusion_audit.audits", "-m", "replay"]
    command += ["--fusion-run-id=w", "--fusion-import=bank.json", "-p", "no:cacheprovider"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    said = subprocess.run(command, cwd=empty, capture_output=True, text=True, env=environment, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
    assert "57 passed" in said.stdout
    scorecard = json.loads((empty / "audit" / "w" / "scorecard.json").read_text())
    assert scorecard["run_id"] == "w"
    assert sorted(path.name for path in empty.iterdir()) == ["audit", "bank.json"]
