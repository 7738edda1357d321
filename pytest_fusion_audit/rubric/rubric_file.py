"""The rubric file as it is written: its fields, and everything that can be wrong with them, named by file and field."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_fusion_audit.errors import RubricError

Source: TypeAlias = Literal["bank", "locked", "billed", "drill", "self", "attest"]

_CriterionId = Annotated[str, Field(pattern=r"^[1-9][0-9]*\.[1-9][0-9]*$", strict=True)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DimensionRow(_Strict):
    """One entry of ``dimensions``."""

    id: Annotated[int, Field(ge=1, strict=True)]
    title: Annotated[str, Field(min_length=1)]
    weight: Annotated[int, Field(ge=0, strict=True)]


class CriterionRow(_Strict):
    """One entry of ``criteria``."""

    id: _CriterionId
    title: Annotated[str, Field(min_length=1)]
    source: Annotated[list[Source], Field(min_length=1)]
    gates: list[str] = []
    least_n: Annotated[int, Field(ge=1, strict=True)] | None = None
    by: Literal["target", "tool"] = "target"
    met: Annotated[str, Field(min_length=1)]

    @property
    def dimension(self) -> int:
        """Number of the dimension the id belongs to."""
        return int(self.id.split(".", maxsplit=1)[0])


class GateRow(_Strict):
    """One entry of ``gates``; the rule is parsed by `gate_rules`."""

    title: Annotated[str, Field(min_length=1)]
    rule: Annotated[str, Field(min_length=1)]


class RubricFile(_Strict):
    """A whole rubric file."""

    dimensions: Annotated[list[DimensionRow], Field(min_length=1)]
    criteria: Annotated[list[CriterionRow], Field(min_length=1)]
    gates: dict[str, GateRow] = {}


def read_rubric_file(text: str, name: str) -> RubricFile:
    """Parse and check a rubric file.

    Args:
        text: its content.
        name: how messages call it.

    Raises:
        RubricError: not YAML, an unknown or malformed field, an id that stands twice or belongs nowhere.
    """
    try:
        document = yaml.load(text, Loader=_LOADER)  # noqa: S506 - both loaders are the safe ones
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise RubricError(f"{name}: not YAML{where}: {getattr(error, 'problem', None) or 'cannot be parsed'}") from None
    try:
        rows = RubricFile.model_validate(document)
    except ValidationError as error:
        raise RubricError(f"{name}: {_first_fault(error)}") from None
    fault = _dimension_fault(rows) or _criterion_fault(rows)
    if fault is not None:
        raise RubricError(f"{name}: {fault}")
    return rows


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _first_fault(error: ValidationError) -> str:
    faults = error.errors()
    fault = faults[0]
    where = ""
    for step in fault["loc"]:
        where += f"[{step}]" if isinstance(step, int) else f".{step}" if where else str(step)
    hint = ' (write the id in quotes, "1.10")' if where.endswith(".id") and fault["type"] == "string_type" else ""
    more = f"; and {len(faults) - 1} more" if len(faults) > 1 else ""
    return f"{where or 'the document'}: {fault['msg']}{hint}{more}"


def _dimension_fault(rows: RubricFile) -> str | None:
    seen: set[int] = set()
    for at, row in enumerate(rows.dimensions):
        if row.id in seen:
            return f"dimensions[{at}].id: dimension {row.id} stands there twice"
        seen.add(row.id)
    return None


def _criterion_fault(rows: RubricFile) -> str | None:
    dimensions = {row.id for row in rows.dimensions}
    seen: set[str] = set()
    for at, row in enumerate(rows.criteria):
        field = f"criteria[{at}] ({row.id})"
        if row.id in seen:
            return f"{field}.id: stands there twice"
        seen.add(row.id)
        if row.dimension not in dimensions:
            return f"{field}.id: there is no dimension {row.dimension}"
        if len(set(row.source)) != len(row.source):
            return f"{field}.source: a source stands there twice"
        unknown = [gate for gate in row.gates if gate not in rows.gates]
        if unknown:
            return f"{field}.gates: there is no gate {unknown[0]}"
    return None
