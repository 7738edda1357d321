"""unequal_compute: more samples, tokens or dollars than the arm that was beaten, and no arm at equal dollars."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pytest_fusion_audit.analysis.arms import ArmRef, arm_summary, turns_of
from pytest_fusion_audit.analysis.ledger import phase_number
from pytest_fusion_audit.analysis.validity.control import EQUAL_DOLLARS, controls_of
from pytest_fusion_audit.analysis.validity.facts import (
    Elsewhere,
    cap_of,
    compounds,
    is_system,
    kind,
    member_arms,
    panel_members,
    phase_of_file,
    same_model,
    setting,
    source_files,
    where,
)
from pytest_fusion_audit.analysis.validity.finding import Finding, criteria, dollars, files
from pytest_fusion_audit.analysis.validity.pairs import pair, score_of
from pytest_fusion_audit.analysis.validity.split_roles import headline_splits
from pytest_fusion_audit.analysis.validity.turn_costs import cost_per_task
from pytest_fusion_audit.evidence.container import Evidence, is_member
from pytest_fusion_audit.evidence.records import Phase

UNEQUAL = criteria("1.1", "1.2", "1.3", "2.5")

_DEPTH = re.compile(r"\bdepth\s*(?:x\s*)?(\d+)\s*x?\b|\b(\d+)\s*x\s+(?:panel\s+)?depth\b", re.IGNORECASE)
_SELF = re.compile(r"^self:[^*@]+\*(\d+)")


@dataclass(frozen=True, slots=True)
class Samples:
    """How many answers of members stand behind one answer of an arm, and how that is known."""

    count: float
    how: str
    sources: tuple[str, ...] = ()


def samples_of(evidence: Evidence, ref: ArmRef) -> Samples | None:
    """Samples behind one answer of an arm; None when nothing tells."""
    if is_member(ref.arm):
        return Samples(1, "one answer")
    named = _SELF.match(ref.arm)
    return Samples(int(named[1]), "by the arm's name") if named else _samples_of_turns(evidence, ref)


def _samples_of_turns(evidence: Evidence, ref: ArmRef) -> Samples | None:
    turns = [turn for turn in turns_of(evidence, ref.suite, ref.split) if turn.arm == ref.arm]
    shown = [len(turn.candidate_ids) for turn in turns if turn.candidate_ids]
    if shown:
        return Samples(sum(shown) / len(shown), "fused.candidate_ids")
    members = [arm for arm in member_arms(evidence, ref.suite, ref.split) if "@" not in arm]
    panel = len(members) or len(panel_members(evidence))
    per_member = setting(evidence.run.settings, "samples", "per_member")
    if panel and isinstance(per_member, int):
        return Samples(panel * per_member, f"samples.per_member {per_member} x {panel} members")
    depth = _depth_in_ledger(evidence, ref)
    if panel and depth is not None:
        note, factor = depth
        return Samples(panel * factor, f"panel depth {factor}x in {note.source} line {note.line}", files([note.source]))
    bank = evidence.candidates(ref.suite, ref.split)
    pools = [{candidate.id for candidate in bank[task]} for task in evidence.arm(*ref) if task in bank]
    if pools:
        return Samples(sum(len(pool) for pool in pools) / len(pools), "at least, by the candidates recorded")
    return Samples(panel, f"{panel} members in the panel file") if panel > 1 else None


def _depth_in_ledger(evidence: Evidence, ref: ArmRef) -> tuple[Phase, int] | None:
    """The last depth a ledger's note adopted in or before the phase of this arm's rows."""
    phases = [phase_of_file(name) for name in files(source_files(evidence, *ref[:2], [ref.arm]))]
    own = max((phase for phase in phases if phase is not None), default=None)
    if own is None:
        return None
    found: tuple[Phase, int] | None = None
    for line in evidence.of(Phase):
        number, match = phase_number(line.phase), _DEPTH.search(line.note or "")
        if match and number is not None and number <= own:
            found = line, int(match[1] or match[2])
    return found


def unequal_compute(evidence: Evidence) -> list[Finding]:
    """Compounds that beat an arm on more samples or dollars, with no arm of equal dollars beside them.

    Told for headline splits; where a suite has none, for the splits it has.
    """
    headline = headline_splits(evidence)
    suites = {suite for suite, _ in headline}
    findings = []
    for suite, split in evidence.splits:
        arms = compounds(evidence, suite, split)
        if not arms or ((suite, split) not in headline and suite in suites):
            continue
        # One arm stands for the split, its best: the others had the same candidates.
        refs = [ArmRef(suite, split, arm) for arm in arms]
        best = max(refs, key=lambda ref: arm_summary(evidence, ref).pass_rate or 0)
        findings.extend([found] if (found := _unequal(evidence, best)) is not None else [])
    return findings


def _unequal(evidence: Evidence, ref: ArmRef) -> Finding | None:
    samples = samples_of(evidence, ref)
    cost = cost_per_task(evidence, ref)
    beaten: list[str] = []
    sources = list(source_files(evidence, ref.suite, ref.split, [ref.arm]))
    for arm in evidence.arms(ref.suite, ref.split):
        other = ArmRef(ref.suite, ref.split, arm)
        if is_system(arm):
            continue
        found = pair(evidence, ref, other)
        theirs, cheaper = samples_of(evidence, other), cost_per_task(evidence, other)
        if found.uplift is not None and found.uplift > 0 and _more(evidence, ref, other):
            count = "" if theirs is None else f", {theirs.count:g} sample{'s' * (theirs.count != 1)}"
            spent = "" if cheaper is None else f", {dollars(cheaper, 4)} a task"
            beaten.append(f"{arm} ({score_of(found)}{count}{spent})")
            sources.extend(source_files(evidence, ref.suite, ref.split, [arm]))
    if not beaten or any(control.controls for control in controls_of(evidence, ref)):
        return None
    of_samples = "an unknown number of samples" if samples is None else f"{samples.count:g} samples ({samples.how})"
    spent = _panel_alone(evidence, ref) if cost is None else dollars(cost, 4)
    elsewhere, further = _dollars_elsewhere(evidence, ref)
    message = (
        f"{where(*ref)} spends {of_samples} plus judge and synthesizer a task ({spent}) and beats {'; '.join(beaten)}; "
        f"{_no_control(evidence, ref)}{_self_elsewhere(evidence, ref)}{elsewhere}"
    )
    return Finding(
        "unequal_compute", "error", message, files([*sources, *further, *(samples.sources if samples else ())]), UNEQUAL
    )


def _panel_alone(evidence: Evidence, ref: ArmRef) -> str:
    """What is known of the dollars of a turn whose whole cost is not."""
    turns = [turn for turn in turns_of(evidence, ref.suite, ref.split) if turn.arm == ref.arm]
    known = [cost for turn in turns if (cost := turn.stage_cost_micro_usd.get("panel")) is not None]
    return f"the panel alone {dollars(sum(known) // len(known), 4)}" if known else "dollars not recorded"


def _more(evidence: Evidence, ref: ArmRef, other: ArmRef) -> bool:
    """Whether an arm had more than another: in dollars where both are known, else in output tokens, else in samples."""
    for ours, theirs in (
        (cost_per_task(evidence, ref), cost_per_task(evidence, other)),
        (_tokens_per_task(evidence, ref), _tokens_per_task(evidence, other)),
    ):
        if ours is not None and theirs is not None:
            return ours > theirs * (1 + EQUAL_DOLLARS)
    mine, others = samples_of(evidence, ref), samples_of(evidence, other)
    return mine is not None and others is not None and mine.count > others.count


def _tokens_per_task(evidence: Evidence, ref: ArmRef) -> float | None:
    tokens = [row.output_tokens for row in evidence.arm(*ref).values()]
    known = [count for count in tokens if count is not None]
    return sum(known) / len(known) if known and len(known) == len(tokens) else None


def _no_control(evidence: Evidence, ref: ArmRef) -> str:
    """That nothing controls the dollars of a compound, and why what looks like a control does not."""
    told = [
        f"{control.comparison.second.arm}, {why}"
        for control in controls_of(evidence, ref)
        # A member is in the panel to be beaten; only what was sampled for the money claims to be more.
        if control.equal_dollars and kind(control.comparison.second.arm) != "member" and (why := control.shortcomings())
    ]
    if not told:
        return "no arm at equal dollars stands on these tasks"
    return f"no arm of the best single at equal dollars stands on these tasks (beside them {'; '.join(told)})"


def _self_elsewhere(evidence: Evidence, ref: ArmRef) -> str:
    """Self-consistency arms of other splits: as many samples perhaps, but neither these tasks nor known dollars."""
    found = []
    for suite, split in evidence.splits:
        arms = [arm for arm in evidence.arms(suite, split) if kind(arm) == "self" and suite == ref.suite]
        counts = sorted({arm.rpartition(":")[0] for arm in arms})
        if split != ref.split and counts:
            known = all(cost_per_task(evidence, ArmRef(suite, split, arm)) is not None for arm in arms)
            found.append(f"{', '.join(counts)} on {where(suite, split)}{'' if known else ', dollars not recorded'}")
    return f" (elsewhere: {'; '.join(found)})" if found else ""


def _dollars_elsewhere(evidence: Evidence, ref: ArmRef) -> tuple[str, list[str]]:
    """What the same models cost on the same tasks at the same cap in another split, against the compound there."""
    parts: list[str] = []
    sources: list[str] = []
    compound = evidence.arm(*ref)
    for arm in member_arms(evidence, ref.suite, ref.split):
        own = ArmRef(ref.suite, ref.split, arm)
        cap = cap_of(evidence, *own)
        for other in same_model(evidence, *own):
            if cap is None or other.cap != cap or other.split == ref.split:
                continue
            single = evidence.arm(other.suite, other.split, other.arm)
            costs = [
                (compound[task].cost_micro_usd, single[task].cost_micro_usd)
                for task in sorted(compound.keys() & single.keys())
            ]
            known = [(ours, theirs) for ours, theirs in costs if ours is not None and theirs is not None]
            ours, theirs = sum(pair[0] for pair in known), sum(pair[1] for pair in known)
            if theirs:
                parts.append(
                    f"; on {len(known)} of them {_called(other)} cost {dollars(theirs // len(known), 4)} a task, "
                    f"the compound {dollars(ours // len(known), 4)}, {ours / theirs:.1f} times as much"
                )
                sources.extend(source_files(evidence, other.suite, other.split, [other.arm]))
    return "".join(parts), sources


def _called(other: Elsewhere) -> str:
    place = where(other.suite, other.split, other.arm)
    return f"one sample of {other.model or other.arm} at cap {other.cap} ({place})"
