"""FusionKit polyglot evaluation: one compound's verdicts by task, with its own totals."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_fusion_audit.evidence.importers.base import Context, Peek, Reading, Source
from pytest_fusion_audit.evidence.importers.claims import Claims
from pytest_fusion_audit.evidence.importers.pass_map import PassMap
from pytest_fusion_audit.evidence.importers.rows import Row, Totals, unknown_fields
from pytest_fusion_audit.evidence.importers.text import load_json
from pytest_fusion_audit.evidence.records import Task

if TYPE_CHECKING:
    from pytest_fusion_audit.evidence.records import Claim, Note, Record

_FIELDS = {
    "n", "fused_rate", "fused_ci", "best_single", "uplift", "mcnemar", "regret_split", "per_language", "passes",
}  # fmt: skip
_STEM = "poly-full-eval-"


class PolyglotEval:
    """Importer of ``fusionkit-polyglot-eval``."""

    format = "fusionkit-polyglot-eval"
    stage = 2

    def recognises(self, _source: Source, peek: Peek) -> bool:
        """An object with a fused rate and a map of passes."""
        return peek.container == "json" and {"n", "fused_rate", "passes"} <= peek.keys

    def read(self, source: Source, context: Context) -> Reading:
        """Verdicts of the compound, languages as classes, totals as claims; see `Importer.read`."""
        document = Row(source, "", load_json(source))
        passes = PassMap(document, "passes")
        naming = context.naming(source)
        suite = context.suite_name(source, list(passes.passed))
        split = naming.split or "locked"
        config = source.stem.removeprefix(_STEM) if source.stem.startswith(_STEM) else ""
        arm = f"compound@{config}" if config and config != "deep" else "compound"
        records: list[Record] = [
            Task(id=task, suite=suite, split=split, task_class=task.partition("/")[0], source=source.name)
            for task in passes.passed
            if "/" in task
        ]
        records += passes.outcomes(suite, split, arm)
        records += _claims(Claims(suite, split, source.name), document, arm)
        notes = [*passes.notes(), *_totals(document, passes), *unknown_fields(document.others(_FIELDS))]
        unknown = (
            "verdicts of the members by task (only the rate of the best single is stated)",
            "candidates, judge picks, cost and latency by task",
        )
        return Reading(records, unknown, tuple(notes))


def _totals(document: Row, passes: PassMap) -> list[Note]:
    if passes.repeats.spoiled:
        return []
    totals = Totals()
    totals.expect("n", document.count("n"), len(passes.passed))
    totals.rate("fused_rate", document.number("fused_rate"), passes.count, len(passes.passed))
    tasks = Counter(task.partition("/")[0] for task in passes.passed)
    passed = Counter(task.partition("/")[0] for task, verdict in passes.passed.items() if verdict)
    languages = document.child("per_language")
    for language in languages.data if languages is not None else ():
        row = languages.child(language) if languages is not None else None
        if row is not None:
            totals.expect(f"n of {language}", row.count("n"), tasks[language])
            totals.expect(f"fused of {language}", row.count("fused"), passed[language])
    return totals.notes()


def _claims(claims: Claims, document: Row, arm: str) -> list[Claim]:
    made = claims.of(arm, {"n": document.count("n"), "pass_rate": document.number("fused_rate")})
    made += claims.interval(arm, document, "fused_ci")
    best = document.child("best_single")
    if best is not None:
        member = f"member:{best.id('model')}"
        rate = best.number("rate")
        made += claims.of(None, {"best_single": {"arm": member, "rate": rate}})
        made += claims.of(member, {"pass_rate": rate})
        made += claims.paired(arm, member, document.child("mcnemar"), uplift=document.number("uplift"))
    made += claims.regret_split(arm, document.child("regret_split"))
    languages = document.child("per_language")
    for language in languages.data if languages is not None else ():
        row = languages.child(language) if languages is not None else None
        if row is not None:
            made += claims.of(arm, {f"class/{language}/{name}": row.count(name) for name in ("n", "fused", "best")})
    return made
