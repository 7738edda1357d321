"""Load a rubric: ours, shipped as package data, or a user's own file."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_fusion_audit.errors import RubricError
from pytest_fusion_audit.rubric.gate_rules import GateRule, parse_rule
from pytest_fusion_audit.rubric.rubric_file import Source, read_rubric_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.rubric.score import By, Score

__all__ = ["Criterion", "Dimension", "Gate", "Rubric", "Source", "id_order", "load_rubric", "measures"]


@dataclass(frozen=True, slots=True)
class Dimension:
    """One of the ten dimensions; ``weight`` is what all its criteria at 2 are worth together."""

    id: int
    title: str
    weight: int


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate: a conjunction over scores."""

    id: str
    title: str
    text: str
    rule: GateRule

    def __str__(self) -> str:
        return f"{self.id}-{_slug(self.title)}"


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion of the rubric.

    Attributes:
        id: ``"1.1"``.
        source: kinds of evidence it needs; all for a 2, the first for a 1.
        gates: gates it is a clause of.
        least_n: trials a 2 needs, None where the rubric names no number.
        by: whose doing is scored by default.
        met: what a 2 needs, in the rubric's words.
    """

    id: str
    title: str
    dimension: int
    source: tuple[Source, ...]
    gates: tuple[str, ...]
    least_n: int | None
    by: By
    met: str

    def __str__(self) -> str:
        return f"{self.id}-{_slug(self.title)}"

    def measure(self, evidence: Evidence) -> Score:
        """Score this criterion from the evidence. Pure: same evidence, same score.

        A criterion of a user's own that this package has no measure for comes back as ``not_run``.
        """
        from pytest_fusion_audit.rubric.capping import not_run  # noqa: PLC0415 - loading a rubric must stay cheap

        found = measures(self.dimension).get(self.id)
        if found is None:
            return not_run(self, evidence, f"needs a measure: this version has none for criterion {self.id}")
        return found(self, evidence)


def _slug(title: str) -> str:
    """ASCII words of a title, for ids of test items that every terminal and shell can take."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain.replace("'", "")).strip("-")


def measures(dimension: int) -> Mapping[str, Callable[[Criterion, Evidence], Score]]:
    """The measures of one dimension by criterion id; empty for a dimension this package does not know."""
    if not 1 <= dimension <= 10:
        return {}
    module = import_module(f"pytest_fusion_audit.rubric.criteria.dimension_{dimension:02d}")
    table: Mapping[str, Callable[[Criterion, Evidence], Score]] = module.MEASURES
    return table


@dataclass(frozen=True, eq=False)
class Rubric:
    """A rubric: dimensions, criteria in order of their ids, gates. Two loaded rubrics are two: identity is equality."""

    dimensions: tuple[Dimension, ...]
    criteria: tuple[Criterion, ...]
    gates: Mapping[str, Gate]
    source: str = "rubric.yaml"

    def dimension(self, number: int) -> tuple[Criterion, ...]:
        """Criteria of one dimension in order of their ids; empty when the rubric has no such dimension."""
        return tuple(criterion for criterion in self.criteria if criterion.dimension == number)

    def criterion(self, identifier: str) -> Criterion:
        """The criterion of an id.

        Raises:
            KeyError: no such criterion.
        """
        return self._by_id[identifier]

    @cached_property
    def _by_id(self) -> dict[str, Criterion]:
        return {criterion.id: criterion for criterion in self.criteria}

    @property
    def out_of(self) -> int:
        """Sum of the weights."""
        return sum(dimension.weight for dimension in self.dimensions)


def load_rubric(path: str | Path | None = None) -> Rubric:
    """Load a rubric.

    Args:
        path: a rubric file of the user's own; None loads the session's (``--fusion-rubric``), else the one of this
            package.

    Raises:
        RubricError: the file is missing, not YAML, or not a rubric; the message names file, field and what is wrong.

    >>> rubric = load_rubric()
    >>> len(rubric.criteria), rubric.out_of, str(rubric.dimension(2)[0])
    (57, 104, '2.1-oracle-gap')
    """
    if path is None and _of_session is None:
        return _shipped()
    file = Path(path if path is not None else _of_session or "")
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise RubricError(f"{file}: cannot be read ({error.strerror}); give the path of a rubric file") from None
    except UnicodeDecodeError as error:
        raise RubricError(f"{file}: not UTF-8 at byte {error.start}; save it as UTF-8") from None
    return _rubric(text, str(file))


_of_session: Path | None = None


def use_rubric(path: Path | None) -> None:
    """Make a file the rubric that ``load_rubric()`` loads in this process; None gives the shipped one back."""
    global _of_session  # noqa: PLW0603 - audit modules load their rubric while they are imported, with no session at hand
    _of_session = path


@cache
def _shipped() -> Rubric:
    return _rubric(files("pytest_fusion_audit.rubric").joinpath("rubric.yaml").read_text("utf-8"), "rubric.yaml")


def _rubric(text: str, name: str) -> Rubric:
    rows = read_rubric_file(text, name)
    ids = {row.id for row in rows.criteria}
    gates: dict[str, Gate] = {}
    for gate, row in sorted(rows.gates.items()):
        try:
            gates[gate] = Gate(gate, row.title, row.rule, parse_rule(row.rule, ids))
        except ValueError as error:
            raise RubricError(f"{name}: gates.{gate}.rule: {error}") from None
    criteria = [
        Criterion(
            id=row.id,
            title=row.title,
            dimension=row.dimension,
            source=tuple(row.source),
            gates=tuple(row.gates),
            least_n=row.least_n,
            by=row.by,
            met=row.met,
        )
        for row in rows.criteria
    ]
    return Rubric(
        dimensions=tuple(
            Dimension(row.id, row.title, row.weight) for row in sorted(rows.dimensions, key=lambda row: row.id)
        ),
        criteria=tuple(sorted(criteria, key=lambda criterion: id_order(criterion.id))),
        gates=gates,
        source=name,
    )


def id_order(identifier: str) -> tuple[int, ...]:
    """Sort key of criterion ids.

    >>> sorted(["10.1", "9.7", "1.10", "1.2"], key=id_order)
    ['1.2', '1.10', '9.7', '10.1']
    """
    return tuple(int(part) for part in identifier.split("."))
