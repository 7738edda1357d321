"""Published scorecard: the scores that the authors of an audit gave themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.evidence.importers.base import Context, Peek, Reading, Source
from pytest_fusion_audit.evidence.importers.rows import Row, unknown_fields
from pytest_fusion_audit.evidence.importers.text import load_json
from pytest_fusion_audit.evidence.records import Claim

if TYPE_CHECKING:
    from pytest_fusion_audit.evidence.records import Record

_FIELDS = {"schema", "origin", "weights", "scores"}


class PublishedScorecard:
    """Importer of ``published-scorecard``."""

    format = "published-scorecard"
    stage = 0

    def recognises(self, _source: Source, peek: Peek) -> bool:
        """An object with weights of dimensions and scores of criteria."""
        return peek.container == "json" and {"weights", "scores"} <= peek.keys

    def read(self, source: Source, _context: Context) -> Reading:
        """Claims ``score`` (criterion: its id) and ``weight`` (criterion: the dimension's id); see `Importer.read`."""
        document = Row(source, "", load_json(source))
        scores, weights = document.child("scores"), document.child("weights")
        if scores is None or weights is None:
            raise document.refuse("scores" if scores is None else "weights", "an object")
        records: list[Record] = []
        for dimension in weights.data:
            weight = weights.number(dimension, 0)
            if weight is not None:
                records.append(Claim(quantity="weight", value=weight, criterion=dimension, source=source.name))
        for criterion in scores.data:
            score = scores.count(criterion)
            if score is not None and score > 2:
                raise scores.refuse(criterion, "0, 1 or 2")
            if score is not None:
                records.append(Claim(quantity="score", value=score, criterion=criterion, source=source.name))
        unknown = ("the evidence behind each score",)
        return Reading(records, unknown, tuple(unknown_fields(document.others(_FIELDS))))
