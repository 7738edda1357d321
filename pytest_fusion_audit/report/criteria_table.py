"""docs/criteria.md: for every criterion how it is measured, from which evidence, and what 1 and 2 need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.rubric.capping import NEEDS_SIGNIFICANCE, TARGET_ONLY
from pytest_fusion_audit.rubric.loading import Criterion, Rubric, measures

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD = """\
# The criteria

Generated from the rubric and the measures by `pytest_fusion_audit.report.criteria_table`; a test compares this file
with its output. How a scorecard is read stands in [scorecard.md](scorecard.md).

Evidence is `bank` (frozen candidates and recorded verdicts, no cost), `locked` (the locked run and its held-out
diagnosis), `billed` (one more billed measurement), `drill` (a scripted drill against the served target, no cost),
`self` (the run directory itself) or `attest` (a statement that names an artifact and its sha256). Every kind that is
listed is needed for a 2, the first for a 1. A 2 further needs the least n, held-out figures where the value comes from
a bank or a split, an artifact, and no validity error that affects the criterion. `-` under "least n" means that the
rubric names no number.

Some measures look for records under names of ours: the arm `compound@without-<member>` (2.3, the compound re-fused
without that member), `compound@untuned` (9.3, unless an accepted `change` names the arms), `compound@cost-preserving`
(7.1), `self:<member>*<k>:<policy>` (2.5); a `config` record `preset` with name and arm (5.6), `router` with name and
flag (5.2); `failover: true` of a panel member (2.3), `official_tasks` of a suite (1.1, the size of the whole suite);
the stage `first_token` (7.2).
"""


def rubric_table_md(rubric: Rubric) -> str:
    """Markdown of the table of a rubric's criteria, with a trailing newline."""
    lines = [_HEAD]
    for dimension in rubric.dimensions:
        lines += [f"## {dimension.id} {dimension.title} (weight {dimension.weight})", ""]
        lines += _table(rubric.dimension(dimension.id))
    lines += ["## Gates", "", "| gate | rule |", "|---|---|"]
    lines += [f"| {gate.id} {gate.title} | {gate.text} |" for gate in rubric.gates.values()]
    return "\n".join(lines) + "\n"


def _table(criteria: tuple[Criterion, ...]) -> Iterator[str]:
    yield "| criterion | evidence | by | least n | gates | how it is measured | a 1 needs | a 2 needs |"
    yield "|---|---|---|---|---|---|---|---|"
    for criterion in criteria:
        yield "| " + " | ".join(text.replace("|", "\\|") for text in _row(criterion)) + " |"
    yield ""


def _row(criterion: Criterion) -> tuple[str, ...]:
    return (
        f"{criterion.id} {criterion.title}",
        ", ".join(criterion.source),
        criterion.by,
        str(criterion.least_n or "-"),
        ", ".join(criterion.gates) or "-",
        _how(criterion),
        _one(criterion),
        criterion.met,
    )


def _how(criterion: Criterion) -> str:
    """The measure's docstring."""
    measure = measures(criterion.dimension).get(criterion.id)
    return " ".join((measure.__doc__ or "").split()) if measure else "no measure in this version"


def _one(criterion: Criterion) -> str:
    first = criterion.source[0]
    if criterion.id in NEEDS_SIGNIFICANCE:
        return f"shown (p < .05, no validity error), from {first}; something else that a 2 needs is missing"
    text = f"measured once, from {first}"
    if criterion.id in TARGET_ONLY:
        text += "; also the most when the tool does it"
    return text


if __name__ == "__main__":
    import sys

    from pytest_fusion_audit.rubric.loading import load_rubric

    sys.stdout.write(rubric_table_md(load_rubric()))
