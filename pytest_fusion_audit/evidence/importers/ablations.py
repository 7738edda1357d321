"""FusionKit ablations: several synthesis policies over the same frozen candidates, each with a map of verdicts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_fusion_audit.evidence.importers.base import Context, Peek, Reading, Source, refusal
from pytest_fusion_audit.evidence.importers.claims import Claims
from pytest_fusion_audit.evidence.importers.pass_map import PassMap
from pytest_fusion_audit.evidence.importers.rows import Row, Totals, unknown_fields
from pytest_fusion_audit.evidence.importers.text import load_json

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pytest_fusion_audit.evidence.records import Claim, Note, Record

#: FusionKit's words for a synthesis policy -> ours.
POLICIES = {"llm_rewrite": "rewrite", "judge_pick_verbatim": "select_best", "exec_select_public_private": "exec_select"}

_FIELDS = {
    "bank_signature", "n_tasks", "best_single", "policies", "synthesis_regressions_4_2", "leave_one_out_2_3",
    "router_5_1",
}  # fmt: skip
_POLICY_FIELDS = {
    "policy", "n", "pass_rate", "ci", "vs_best_single", "regret_split", "passes", "selected_model_counts",
    "skipped_fallback_private",
}  # fmt: skip
_STEM = re.compile(r"(?:(?P<split>dev|val|locked|monitor)-|self-)?ablations(?:-(?P<config>.+))?")
_SELF_DEPTH = 6  # three draws of each of two members: FusionKit's depth when nothing tells another


@dataclass(frozen=True, slots=True)
class _Names:
    """Split of the file, and what stands before and after the policy in its arms' names."""

    split: str
    kind: str
    suffix: str
    guessed: str | None = None

    def arm(self, policy: str) -> str:
        return f"{self.kind}:{POLICIES.get(policy, policy)}{self.suffix}"


class Ablations:
    """Importer of ``fusionkit-ablations``."""

    format = "fusionkit-ablations"
    stage = 2

    def recognises(self, _source: Source, peek: Peek) -> bool:
        """An object with the signature of a bank and a list of policies."""
        return peek.container == "json" and {"bank_signature", "policies"} <= peek.keys

    def read(self, source: Source, context: Context) -> Reading:
        """Verdicts of each policy; everything else the file says becomes claims. See `Importer.read`."""
        document = Row(source, "", load_json(source))
        policies = document.rows("policies")
        if not policies:
            raise refusal(source, "no policy in it", "field policies")
        maps = [(row.id("policy"), row, PassMap(row, "passes")) for row in policies]
        ids = list(dict.fromkeys(task for _, _, passes in maps for task in passes.passed))
        suite = context.suite_name(source, ids)
        names = _names(source, document, context, suite)
        claims = Claims(suite, names.split, source.name)
        best = document.child("best_single")
        best_arm = f"member:{best.id('model')}" if best is not None else None
        records: list[Record] = []
        notes: list[Note] = []
        unread = set(document.others(_FIELDS))
        totals = Totals()
        for policy, row, passes in maps:
            arm = names.arm(policy)
            records += passes.outcomes(suite, names.split, arm)
            notes += passes.notes()
            unread.update(f"policies[].{name}" for name in row.others(_POLICY_FIELDS))
            if not passes.repeats.spoiled:
                totals.expect(f"n of {policy}", row.count("n"), len(passes.passed))
                totals.rate(f"pass_rate of {policy}", row.number("pass_rate"), passes.count, len(passes.passed))
            records += _policy_claims(claims, arm, row, best_arm)
        totals.expect("n_tasks", document.count("n_tasks"), len(ids))
        records += _file_claims(claims, document, best, names)
        unknown = ["candidates behind each verdict", "judge picks by task", "cost and latency by task"]
        if names.guessed:
            unknown.append(names.guessed)
        if document.child("router_5_1") is not None:
            unknown.append("costs of the router table (they are typed-in constants: kept as claims only)")
        notes += [*totals.notes(), *unknown_fields(unread)]
        return Reading(records, tuple(unknown), tuple(dict.fromkeys(notes)))


def _names(source: Source, document: Row, context: Context, suite: str) -> _Names:
    stem = _STEM.fullmatch(source.stem)
    config = stem["config"] if stem is not None else None
    suffix = f"@{config}" if config and config != "deep" else ""
    naming = context.naming(source)
    leave_one_out = document.child("leave_one_out_2_3")
    members = leave_one_out.child("members") if leave_one_out is not None else None
    alone = members is not None and len(members.data) == 1
    if alone or source.stem.startswith("self-"):
        model = next(iter(members.data)) if alone and members is not None else _best_model(document)
        depth = _depth(context)
        guessed = None if depth else f"samples of {model} per task (taken as {_SELF_DEPTH}: no ledger beside it tells)"
        return _Names(naming.split or "dev", f"self:{model}*{depth or _SELF_DEPTH}", suffix, guessed)
    bank = context.split_of_bank(document.id("bank_signature"))
    if naming.split:
        split = naming.split
    elif bank is not None and bank[0] == suite:
        split = bank[1]
    elif stem is not None and stem["split"]:
        split = stem["split"]
    else:
        split = "baseline" if source.stem == "ablations" else "dev"
    return _Names(split, "compound", suffix)


def _best_model(document: Row) -> str:
    best = document.child("best_single")
    return best.id("model") if best is not None else "unnamed"


def _depth(context: Context) -> int | None:
    """Samples per task of a self-ensemble, from a ledger line such as "self-mode gpt x6"."""
    for phase in context.phases:
        text = f"{phase.phase} {phase.suite or ''} {phase.note or ''}"
        found = re.search(r"\bx(\d+)\b", text)
        if found is not None and re.search(r"\bself\b", text):
            return int(found[1])
    return None


def _policy_claims(claims: Claims, arm: str, row: Row, best_arm: str | None) -> list[Claim]:
    made = claims.of(arm, {"n": row.count("n"), "pass_rate": row.number("pass_rate")})
    made += claims.interval(arm, row, "ci")
    versus = row.child("vs_best_single")
    if versus is not None and best_arm is not None:
        made += claims.paired(arm, best_arm, versus, "mcnemar_", versus.number("uplift"))
    selected = row.child("selected_model_counts")
    if selected is not None:
        made += claims.of(arm, {f"selected/{model}": selected.count(model) for model in selected.data})
    made += claims.of(arm, {"skipped_fallback_private": row.count("skipped_fallback_private")})
    return made + claims.regret_split(arm, row.child("regret_split"))


def _file_claims(claims: Claims, document: Row, best: Row | None, names: _Names) -> list[Claim]:
    made: list[Claim] = []
    if best is not None:
        value: JsonValue = {"arm": f"member:{best.id('model')}", "rate": best.number("pass_rate")}
        made += claims.of(None, {"best_single": value})
        made += claims.of(f"member:{best.id('model')}", {"pass_rate": best.number("pass_rate")})
    regressions = document.child("synthesis_regressions_4_2")
    if regressions is not None:
        rewrite = names.arm("llm_rewrite")
        rate = regressions.number("rate_over_picked_pass")
        listed = regressions.ids("picked_pass_rewrite_fail")
        rescued = regressions.ids("rewrite_pass_where_all_candidates_failed")
        figures: dict[str, JsonValue] = {
            "synthesis_regression_rate": rate,
            "synthesis_regressions": None if listed is None else len(listed),
            "rescues": None if rescued is None else len(rescued),
        }
        made += claims.of(rewrite, figures, "4.2")
    left = document.child("leave_one_out_2_3")
    members = left.child("members") if left is not None else None
    if left is not None and members is not None:
        made += claims.of(None, {"oracle": left.number("full_oracle")}, "2.3")
        for member in members.data:
            row = members.child(member)
            if row is not None:
                made += claims.of(None, {f"leave_one_out/{member}": row.number("marginal_oracle_value")}, "2.3")
                made += claims.of(f"member:{member}", {"pass_rate_any_sample": row.number("solo_rate")}, "2.3")
    router = document.child("router_5_1")
    for policy in router.data if router is not None else ():
        row = router.child(policy) if router is not None else None
        if row is not None:
            figures = {
                f"router/{policy}/{name}": row.number(name) for name in ("pass_rate", "cost_per_task", "fused_fraction")
            }
            made += claims.of(None, figures, "5.1")
    return made
