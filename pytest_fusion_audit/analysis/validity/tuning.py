"""tuning_asymmetry and settings_not_sent: what the compound was given by hand, and what no model was given at all."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.analysis.arms import ArmRef
from pytest_fusion_audit.analysis.ledger import phase_number
from pytest_fusion_audit.analysis.validity.facts import (
    CAP_PARAMETERS,
    amount,
    cap_of,
    compounds,
    member_arms,
    panel_members,
    same_model,
    source_files,
    split_name,
)
from pytest_fusion_audit.analysis.validity.finding import Finding, Severity, criteria, dollars, files, listed, of, spans
from pytest_fusion_audit.analysis.validity.pairs import pair, with_p
from pytest_fusion_audit.analysis.validity.split_roles import headline_splits
from pytest_fusion_audit.evidence.container import Evidence, is_member
from pytest_fusion_audit.evidence.records import Candidate, Change, ComparisonPlan, Phase

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Parameters on which the variety of several draws rests.
VARIETY = frozenset({"temperature", "seed"})
ASYMMETRY = criteria("1.1", "1.2", "1.3")
NOT_SENT = criteria("1.5", "2.4", "2.5")
#: Draws that do not vary: the pool is smaller than it looks.
NO_VARIETY = criteria("1.1", "1.2", "1.3", "1.5", "2.1", "2.5", "3.1", "3.2", "5.4")


def tuning_asymmetry(evidence: Evidence) -> list[Finding]:
    """A compound that was tuned, against members that never were."""
    members = _audited_members(evidence)
    tuned, sources = _tuning(evidence)
    if not tuned or not members:
        return []
    own = {change.target.removeprefix("member:") for change in evidence.of(Change) if is_member(change.target)}
    own |= {member for plan in evidence.of(ComparisonPlan) for member in plan.baseline_settings}
    untuned = [member for member in members if member not in own]
    if not untuned:
        return []
    matters: list[str] = []
    for suite, split in headline_splits(evidence):
        for arm in member_arms(evidence, suite, split):
            at_caps, further = _more_room(evidence, ArmRef(suite, split, arm))
            matters.extend(at_caps)
            sources.extend(further)
    message = (
        f"the compound was tuned ({'; '.join(tuned)}), {listed(untuned)} never: no setting of a member's own (output "
        f"cap, effort, system prompt) was chosen on dev{''.join(matters)}"
    )
    return [Finding("tuning_asymmetry", "error", message, files(sources), ASYMMETRY)]


def _audited_members(evidence: Evidence) -> list[str]:
    """Members the compound is made of: those of its panel file, else those whose rows stand beside its own."""
    beside = [split for split in evidence.splits if compounds(evidence, *split)]
    names = {split_name(arm)[0] for split in beside for arm in member_arms(evidence, *split)}
    panel = {str(member.get("id")) for member in panel_members(evidence)} if beside else set()
    return sorted(names & panel or names or panel)


def _tuning(evidence: Evidence) -> tuple[list[str], list[str]]:
    """What shows that the compound was tuned, and the files that show it."""
    changes = [change for change in evidence.of(Change) if not is_member(change.target)]
    accepted = [change for change in changes if change.accepted]
    if accepted:
        names = listed(change.change for change in accepted)
        return [f"{len(accepted)} of {len(changes)} changes accepted: {names}"], [change.source for change in accepted]
    if evidence.of(Change):
        return [], []
    climbs: dict[str, list[Phase]] = {}
    for line in evidence.of(Phase):
        if phase_number(line.phase) == 5 and (amount(line) or 0) > 0:
            climbs.setdefault(line.source, []).append(line)
    return [
        f"phase 5 billed {dollars(sum(amount(line) or 0 for line in lines))}, {source} "
        f"lines {spans([line.line for line in lines])}"
        for source, lines in sorted(climbs.items())
    ], list(climbs)


def _more_room(evidence: Evidence, ref: ArmRef) -> tuple[list[str], list[str]]:
    """What one setting a member never got tuned would have done: the same model at another cap, where recorded."""
    cap = cap_of(evidence, *ref)
    parts: list[str] = []
    sources: list[str] = []
    others = same_model(evidence, *ref)
    for other in others:
        if cap is None or other.cap is None or other.cap <= cap:
            continue
        large = ArmRef(other.suite, other.split, other.arm)
        at_own = [ArmRef(small.suite, small.split, small.arm) for small in others if small.cap == cap]
        compared = [(pair(evidence, large, small), small) for small in [ref, *at_own]]
        # The most shared tasks count, and among equals the rows made in the same run as those of the larger cap.
        found, small = max(compared, key=lambda item: (item[0].n, item[1].split == large.split))
        if found.n:
            parts.append(f"; {other.model or ref.arm} at cap {other.cap} against cap {cap}: {with_p(found)}")
            for side in (large, small):
                sources.extend(source_files(evidence, side.suite, side.split, [side.arm]))
    return parts, sources


def settings_not_sent(evidence: Evidence) -> list[Finding]:
    """Parameters that were asked for and did not go over the wire as asked."""
    asked: Counter[tuple[str, str]] = Counter()
    dropped: Counter[tuple[str, str]] = Counter()
    draws: dict[str, Counter[tuple[object, ...]]] = {}
    sources: dict[tuple[str, str], set[str]] = {}
    for candidate in evidence.of(Candidate):
        if candidate.parameters_asked is None or candidate.parameters_sent is None:
            continue
        place = tuple(getattr(candidate, name) for name in ("suite", "split", "task", "config", "replicate", "turn"))
        draws.setdefault(candidate.member, Counter())[place] += 1
        for name, value in candidate.parameters_asked.items():
            if value is None:
                continue
            key = (candidate.member, name)
            asked[key] += 1
            if not _was_sent(name, value, candidate.parameters_sent):
                dropped[key] += 1
                sources.setdefault(key, set()).add(candidate.source)
    by_severity: dict[Severity, list[tuple[str, str]]] = {"error": [], "warning": []}
    for key in sorted(dropped):
        member, name = key
        several = max(draws[member].values()) > 1
        by_severity["error" if name in VARIETY and several else "warning"].append(key)
    reasons = {
        "error": "the variety of several samples rests on it",
        "warning": "the answers were made with the provider's default",
    }
    told = {
        (member, name): f"{name} to {member} on {of(dropped[member, name], asked[member, name])} calls"
        for member, name in dropped
    }
    return [
        Finding(
            "settings_not_sent",
            severity,
            f"asked for but not sent: {'; '.join(told[key] for key in keys)}; {reasons[severity]}",
            files(source for key in keys for source in sources[key]),
            NO_VARIETY if severity == "error" else NOT_SENT,
        )
        for severity, keys in by_severity.items()
        if keys
    ]


def _was_sent(name: str, value: Any, sent: Mapping[str, Any]) -> bool:
    """Whether a parameter went over the wire with the value asked for; an output cap may go by another name."""
    names: Iterable[str] = CAP_PARAMETERS if name in CAP_PARAMETERS else (name,)
    return any(sent.get(alias) == value for alias in names)
