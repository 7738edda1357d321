"""FusionKit shallow-vs-deep: verdicts of the earlier incumbent (one draw per member, rewriting) on the dev split."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.evidence.importers.base import Context, Peek, Reading, Source
from pytest_fusion_audit.evidence.importers.claims import Claims
from pytest_fusion_audit.evidence.importers.pass_map import PassMap
from pytest_fusion_audit.evidence.importers.rows import Row, Totals, unknown_fields
from pytest_fusion_audit.evidence.importers.text import load_json

if TYPE_CHECKING:
    from pytest_fusion_audit.evidence.records import Record

_FIELDS = {
    "n", "incumbent_shallow_rewrite", "candidate_deep_select_best", "deep_vs_shallow_mcnemar", "shallow_passes",
}  # fmt: skip
ARM = "compound:rewrite@shallow"
_DEEP = "compound:select_best"


class ShallowDeep:
    """Importer of ``fusionkit-shallow-vs-deep``."""

    format = "fusionkit-shallow-vs-deep"
    stage = 2

    def recognises(self, _source: Source, peek: Peek) -> bool:
        """An object with the pass map of the shallow incumbent."""
        return peek.container == "json" and "shallow_passes" in peek.keys

    def read(self, source: Source, context: Context) -> Reading:
        """Verdicts of the shallow incumbent, the comparison as claims; see `Importer.read`."""
        document = Row(source, "", load_json(source))
        passes = PassMap(document, "shallow_passes")
        suite = context.suite_name(source, list(passes.passed))
        split = context.naming(source).split or "dev"
        claims = Claims(suite, split, source.name)
        records: list[Record] = [*passes.outcomes(suite, split, ARM)]
        shallow = document.child("incumbent_shallow_rewrite")
        deep = document.child("candidate_deep_select_best")
        rate = shallow.number("fused_rate") if shallow is not None else None
        records += claims.of(ARM, {"n": document.count("n"), "pass_rate": rate})
        if deep is not None:
            records += claims.of(_DEEP, {"pass_rate": deep.number("fused_rate")})
        best = shallow.child("best_single") if shallow is not None else None
        if best is not None:
            records += claims.of(
                None, {"best_single": {"arm": f"member:{best.id('model')}", "rate": best.number("rate")}}
            )
        records += claims.paired(_DEEP, ARM, document.child("deep_vs_shallow_mcnemar"))
        totals = Totals()
        if not passes.repeats.spoiled:
            totals.expect("n", document.count("n"), len(passes.passed))
            totals.rate("fused_rate", rate, passes.count, len(passes.passed))
        notes = [*passes.notes(), *totals.notes(), *unknown_fields(document.others(_FIELDS))]
        unknown = ("verdicts of the deep configuration (the ablations file has them)", "cost and latency by task")
        return Reading(records, unknown, tuple(notes))
