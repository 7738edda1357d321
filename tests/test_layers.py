"""The house: arrows never point up, and nothing below the plugin imports pytest."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "pytest_fusion_audit"
NAME = "pytest_fusion_audit"

#: From the ground up. A module may import its own layer and those before it.
LAYERS = ["errors", "configuration", "stats", "evidence", "analysis", "rubric", "metering", "report", "cli", "plugin"]
#: stats and evidence stand side by side: neither knows the other.
FORBIDDEN_PAIRS = {("evidence", "stats"), ("stats", "evidence"), ("metering", "rubric"), ("metering", "analysis")}
PLUGIN = {"plugin", "options", "items", "fixtures", "reporting", "billing", "terms", "key_guard"}


def modules() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if "audits" not in path.relative_to(PACKAGE).parts]


def layer_of(dotted: str) -> str | None:
    parts = dotted.split(".")
    if parts[0] != NAME or len(parts) == 1:
        return None
    return "plugin" if parts[1] in PLUGIN else parts[1]


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{name.name}" for name in node.names)
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_arrows_never_point_up(path: Path) -> None:
    own = layer_of(f"{NAME}.{path.relative_to(PACKAGE).with_suffix('').as_posix().replace('/', '.')}")
    if own == "__init__":
        return  # the root re-exports lazily
    assert own in LAYERS, f"{path.name} belongs to no layer"
    for name in imports(path):
        other = layer_of(name)
        if other is None or other not in LAYERS:
            continue
        assert LAYERS.index(other) <= LAYERS.index(own), f"{own} imports {name}"
        assert (own, other) not in FORBIDDEN_PAIRS, f"{own} imports {name}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_only_the_plugin_imports_pytest(path: Path) -> None:
    if path.stem in PLUGIN and path.parent == PACKAGE:
        return
    assert not {name for name in imports(path) if name.split(".")[0] in {"pytest", "_pytest", "xdist"}}


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_can_be_read_in_one_sitting(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400, "split it by subject"


def test_the_words_that_hide_a_subject_name_no_module() -> None:
    assert not [path for path in modules() if path.stem in {"utils", "util", "helpers", "misc", "common"}]
