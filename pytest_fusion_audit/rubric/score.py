"""One finding: what a criterion scored, from which figures and which files, and why not more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from pytest_fusion_audit.errors import EvidenceError

if TYPE_CHECKING:
    from pydantic import JsonValue

Status: TypeAlias = Literal["met", "present", "absent", "not_run"]
Points: TypeAlias = Literal[0, 1, 2]
EvidenceClass: TypeAlias = Literal["measured", "drill", "simulated", "attested", "imported"]
By: TypeAlias = Literal["target", "tool"]

_POINTS: dict[Status, Points] = {"met": 2, "present": 1, "absent": 0, "not_run": 0}
_KEYS = ("id", "status", "score", "class", "by", "measured", "threshold", "evidence", "reasons")


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Score of one criterion.

    Attributes:
        criterion: id in the rubric, ``"1.1"``.
        status: ``met`` = 2, ``present`` = 1, ``absent`` = measured and 0, ``not_run`` = nothing to measure from (0).
        evidence_class: what kind of evidence it rests on; ``class`` in JSON.
        by: who does what is scored: the target, or our tool on its behalf.
        measured: the figures, with their n and interval wherever there is a rate or a difference; a figure that is
            not known is None.
        threshold: what a 2 needs, in the rubric's words.
        evidence: files the figures were computed from.
        reasons: why the score is what it is; for a score below 2 it says what is missing.
        ceiling: the most this evidence could have earned, whatever its figures had been; not part of the JSON.
    """

    criterion: str
    status: Status
    evidence_class: EvidenceClass
    by: By = "target"
    measured: Mapping[str, JsonValue] = field(default_factory=dict)
    threshold: str = ""
    evidence: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    ceiling: Points = 0

    @property
    def score(self) -> Points:
        """Points: 2, 1 or 0.

        >>> Score(criterion="1.1", status="present", evidence_class="imported").score
        1
        """
        return _POINTS[self.status]

    @property
    def was_measured(self) -> bool:
        """Whether there was anything to measure from, whatever came out."""
        return self.status != "not_run"

    def to_json(self) -> dict[str, Any]:
        """The score as builtins in the order of the scorecard schema; safe for ``user_properties`` and pipes."""
        return {
            "id": self.criterion,
            "status": self.status,
            "score": int(self.score),
            "class": self.evidence_class,
            "by": self.by,
            "measured": {name: _builtin(self.measured[name]) for name in sorted(self.measured)},
            "threshold": self.threshold,
            "evidence": list(self.evidence),
            "reasons": list(self.reasons),
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Score:
        """Read back what `to_json` wrote; further keys (a title) are passed over.

        Raises:
            EvidenceError: a key is missing, or status and score contradict each other.
        """
        missing = [key for key in _KEYS if key not in row]
        if missing:
            raise EvidenceError(f"a stored score lacks {', '.join(missing)}; it was not written by this version")
        status = row["status"]
        if status not in get_args(Status) or _POINTS[cast("Status", status)] != row["score"]:
            raise EvidenceError(f"stored score of {row['id']}: status {status!r} and score {row['score']!r} contradict")
        return cls(
            criterion=row["id"],
            status=status,
            evidence_class=row["class"],
            by=row["by"],
            measured=dict(row["measured"]),
            threshold=row["threshold"],
            evidence=tuple(row["evidence"]),
            reasons=tuple(row["reasons"]),
        )


def _builtin(value: Any) -> Any:
    """A JSON value free of numpy scalars, enums and tuples: those kill a pytest-xdist worker on the way out."""
    if value is None or type(value) in {bool, int, float, str}:
        return value
    if isinstance(value, Mapping):
        return {str(key): _builtin(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, (list, tuple)):
        return [_builtin(item) for item in value]
    if hasattr(value, "item"):  # numpy scalar
        return _builtin(value.item())
    if isinstance(value, (str, int, float)):  # an enum or another subclass
        base = next(kind for kind in (str, bool, int, float) if isinstance(value, kind))
        return base(value)
    raise TypeError(f"{value!r} is not a JSON value")
