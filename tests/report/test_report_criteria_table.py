"""docs/criteria.md is what the code says."""

from __future__ import annotations

from pathlib import Path

from pytest_fusion_audit import load_rubric
from pytest_fusion_audit.report.criteria_table import rubric_table_md

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "criteria.md"


def test_the_committed_table_is_the_generated_one() -> None:
    assert DOCUMENT.read_text("utf-8") == rubric_table_md(load_rubric()), (
        "docs/criteria.md is stale: python -m pytest_fusion_audit.report.criteria_table > docs/criteria.md"
    )


def test_every_criterion_stands_in_it_with_how_it_is_measured() -> None:
    lines = rubric_table_md(load_rubric()).splitlines()
    for criterion in load_rubric().criteria:
        (row,) = [line for line in lines if line.startswith(f"| {criterion.id} {criterion.title} |")]
        cells = row.replace("\\|", "").split("|")[1:-1]
        assert len(cells) == 8
        assert all(cell.strip() for cell in cells)
        measurable = {"bank", "locked"} & set(criterion.source)
        assert cells[5].strip().startswith("Not in this version") is not bool(measurable)
