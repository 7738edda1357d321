# ruff: noqa: FBT003 - a verdict reads best in its place
"""docs/measurements.md lists the names that the code writes, and only those."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_fusion_audit.analysis.measurements import measure
from pytest_fusion_audit.evidence.records import Claim
from tests.analysis.analysis_records import evidence, fused, outcomes, primaries
from tests.analysis.test_analysis_measurements import everything

PAGE = Path(__file__).resolve().parents[2] / "docs" / "measurements.md"
#: On the level of the split for `compound`, on the arm's own for others.
OF_A_COMPOUND = "a compound against its pool"


def documented() -> list[str]:
    """Every documented name with its prefix, placeholders kept."""
    names: list[str] = []
    prefixes: list[str] = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            prefixes = re.findall(r"`([^`]+)`", line)
            if line.endswith(OF_A_COMPOUND):
                prefixes = [*prefixes, "<suite>/<split>/<arm>/"]
            if prefixes == ["scorecard/"]:
                prefixes.append("scorecard/<source>/")
        elif line.startswith("| `") and " and the other names of " not in line:
            names += [prefix + name for prefix in prefixes for name in re.findall(r"`([^`]+)`", line.split("|")[1])]
    return names


def pattern(name: str) -> re.Pattern[str]:
    parts = re.split(r"(<\w+>)", name)
    # No name of the evidence measured here holds a slash or a tilde, so that a placeholder cannot swallow a part.
    holes = {"<k>": r"\d+"}
    return re.compile("".join(holes.get(p, "[^/~]+") if p.startswith("<") else re.escape(p) for p in parts))


@pytest.fixture(scope="module")
def measured() -> set[str]:
    policies = [outcomes(f"compound:{name}@deep", "+-") for name in ("rewrite", "select_best")]
    configs = [primaries("gpt", "+-", config=config) for config in ("4096", "16384")]
    cards = [Claim(quantity="score", criterion="1.1", value=1, source=name) for name in ("a", "b")]
    judged = fused("t0", True, "compound:rewrite", pick_member="gpt", judge_confidence=0.7)
    across = [
        primaries("gpt", "+", cost_micro_usd=1),
        outcomes("compound", "+", split="dev", cost_micro_usd=2),
    ]
    runs = (everything(), evidence(policies, configs, cards), evidence(primaries("gpt", "+"), judged), evidence(across))
    return {name for run in runs for name in measure(run)}


def test_every_measured_name_is_documented(measured):
    known = [pattern(name) for name in documented()]
    assert [name for name in sorted(measured) if not any(p.fullmatch(name) for p in known)] == []


def test_every_documented_name_is_measured(measured):
    names = sorted(set(documented()))
    assert len(names) > 250
    assert [name for name in names if not any(map(pattern(name).fullmatch, measured))] == []
