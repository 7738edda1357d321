"""truncated_answers: a cut answer is not a wrong answer, and a baseline full of them flatters the compound.

A model that thinks up to its output cap returns nothing, and nothing is graded as failed. What the compound then wins
on those tasks is the cap's doing. Two figures stand beside the uplift: over the tasks on which the stored answer is
intact (it conditions on difficulty, so it is a sensitivity figure and no estimate), and the bound in which every cut
answer had passed. A bound of 0 or less means that the data cannot tell whether there is any uplift.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.arms import ArmRef, task_rates
from pytest_fusion_audit.analysis.validity.cut_counts import Answers, answers, truncation_limit
from pytest_fusion_audit.analysis.validity.facts import (
    Elsewhere,
    cap_of,
    compounds,
    is_system,
    member_arms,
    same_model,
    source_files,
    split_name,
    where,
)
from pytest_fusion_audit.analysis.validity.finding import Finding, criteria, files, of, points
from pytest_fusion_audit.analysis.validity.pairs import bound_if_passed, pair, passes, score_of, with_p
from pytest_fusion_audit.analysis.validity.split_roles import arms_beside, headline_splits
from pytest_fusion_audit.evidence.container import Evidence, is_member

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: A cut member falsifies every figure that compares with it, and every figure of the pool it stands in: headroom,
#: correlation, marginal value, picks between an answer and nothing, what a router saves.
CUT_MEMBER = criteria(
    *("1.1", "1.2", "1.3", "1.4", "1.5", "2.1", "2.2", "2.3", "2.5", "3.1", "3.2", "4.1", "5.1", "5.2", "5.4", "5.6"),
    *("7.1", "9.3"),
)
#: A cut compound falsifies what is measured of the compound; the pool of its candidates stays what it was.
CUT_COMPOUND = criteria("1.1", "1.2", "1.3", "1.4", "1.5", "2.5", "3.2", "4.1", "4.2", "5.1", "5.6", "7.1", "9.3")
#: Where members were only tried in several configurations, the figures of that pool are at stake.
CUT_POOL = criteria("2.1", "2.2", "2.3", "2.4")
#: A cut control: more samples of one model, or the same dollars spent on it.
CUT_CONTROL = criteria("1.1", "1.2", "1.3", "2.5")


def truncated_answers(evidence: Evidence) -> list[Finding]:
    """Arms whose answers were cut too often, and members whose cut answers are recorded in another split."""
    faulty = {
        ref: found
        for ref, found in sorted(answers(evidence).items())
        if found.share > truncation_limit(evidence) or found.finish_unknown > 0
    }
    return [
        *_members(evidence, faulty),
        *_joined(evidence),
        *_others(evidence, faulty),
        *_pools(evidence, faulty),
    ]


def _limit(evidence: Evidence) -> str:
    return f"limit {100 * truncation_limit(evidence):g} %"


def _members(evidence: Evidence, faulty: Mapping[ArmRef, Answers]) -> list[Finding]:
    findings = []
    for ref, found in faulty.items():
        if not is_member(ref.arm) or not compounds(evidence, ref.suite, ref.split):
            continue
        intact = found.known_tasks - found.cut_tasks
        head = (
            f"{where(ref.suite, ref.split)}: {ref.arm} is not comparable, {found.words()}, {_limit(evidence)}; it "
            f"passes {passes(evidence, ref)}, where its answer is intact {passes(evidence, ref, intact)}"
        )
        text, sources = _against(evidence, ref, found.cut_tasks, intact)
        findings.append(_finding(f"{head}. {text}", files([*found.sources, *sources]), CUT_MEMBER))
    return findings


def _joined(evidence: Evidence) -> list[Finding]:
    """Members of a headline split whose rows do not record emptiness, while the same tasks elsewhere do."""
    findings = []
    for suite, split in headline_splits(evidence):
        for arm in member_arms(evidence, suite, split):
            ref = ArmRef(suite, split, arm)
            donor = None if ref in answers(evidence) else _donor(evidence, ref)
            if donor is None:
                continue
            other, found = donor
            shared = found.known_tasks & evidence.arm(*ref).keys()
            cut = found.cut_tasks & shared
            unknown = ", finish reasons not recorded there" if found.finish_unknown else ""
            head = (
                f"{where(suite, split)}: {arm} is not comparable, its rows do not record cut answers; joined by task "
                f"id with {other}, {of(len(cut), len(shared))} answers were cut{unknown}, {_limit(evidence)}"
                f"{_another_draw(evidence, ref, other, cut)}"
            )
            text, sources = _against(evidence, ref, cut, shared - cut)
            own = source_files(evidence, suite, split, [arm])
            findings.append(_finding(f"{head}. {text}", files([*found.sources, *own, *sources]), CUT_MEMBER))
    return findings


def _another_draw(evidence: Evidence, ref: ArmRef, other: Elsewhere, cut: set[str]) -> str:
    """Whose emptiness it is that was joined: that of another draw, which does not say that this one was cut as well."""
    passed = sum(rate > 0 for task, rate in task_rates(evidence, ref).items() if task in cut)
    return (
        f" (that is the draw of {where(other.suite, other.split)}, not this one: of the {len(cut)} tasks cut there, "
        f"{passed} passed in {where(ref.suite, ref.split)})"
    )


def _donor(evidence: Evidence, ref: ArmRef) -> tuple[Elsewhere, Answers] | None:
    """The record of the same member, or of the same model at the same cap, that knows most about these tasks."""
    own_cap = cap_of(evidence, *ref)
    tasks = evidence.arm(*ref).keys()
    best: tuple[Elsewhere, Answers] | None = None
    best_rank: tuple[bool, int] = (False, 0)
    for other in same_model(evidence, *ref):
        found = answers(evidence).get(ArmRef(other.suite, other.split, other.arm))
        same_member = other.arm == ref.arm
        same_cap = own_cap is not None and own_cap == other.cap
        if found is None or other.split == ref.split or not (same_member or same_cap):
            continue
        shared = found.known_tasks & tasks
        cut = found.cut_tasks & shared
        too_many = bool(shared) and len(cut) / len(shared) > truncation_limit(evidence)
        rank = (same_member, len(shared))
        if (too_many or (cut and found.finish_unknown)) and rank > best_rank:
            best, best_rank = (other, found), rank
    return best


def _against(evidence: Evidence, ref: ArmRef, cut: set[str], intact: set[str]) -> tuple[str, list[str]]:
    """Every compound arm against a cut member: as stored, where intact, as a bound, and at a larger cap elsewhere."""
    parts: list[str] = []
    arms = compounds(evidence, ref.suite, ref.split)
    for name in arms:
        compound = ArmRef(ref.suite, ref.split, name)
        stored = pair(evidence, compound, ref)
        bound = bound_if_passed(evidence, compound, ref, cut)
        if bound is None:
            continue
        verdict = ": uplift not identified" if bound <= 0 else ""
        parts.append(
            f"{name} against it {score_of(stored)}, on intact pairs {score_of(pair(evidence, compound, ref, intact))}, "
            f"had every cut answer passed {points(bound)}{verdict}"
        )
    larger, sources = _at_larger_cap(evidence, ref, arms)
    caution = ["Intact pairs condition on difficulty: a sensitivity figure, no estimate"] if parts else []
    text = ". ".join(["; ".join(parts), *caution, *larger])
    return text, [*source_files(evidence, ref.suite, ref.split, arms), *sources]


def _at_larger_cap(evidence: Evidence, ref: ArmRef, arms: Sequence[str]) -> tuple[list[str], list[str]]:
    """The same model with more room for its answer, on the tasks it shares with the compound."""
    cap = cap_of(evidence, *ref)
    parts: list[str] = []
    sources: list[str] = []
    others = [other for other in same_model(evidence, *ref) if other.cap is not None]
    largest = max((other.cap or 0 for other in others), default=0)
    for other in others:
        # Where the own cap is not recorded, only the largest one is safe to be larger.
        if (other.cap or 0) <= (largest - 1 if cap is None else cap):
            continue
        there = ArmRef(other.suite, other.split, other.arm)
        compared = [(name, pair(evidence, ArmRef(ref.suite, ref.split, name), there)) for name in arms]
        shown = [f"{name} {with_p(found, ' shared tasks')}" for name, found in compared if found.n]
        if shown:
            known = answers(evidence).get(there)
            cuts = f", {known.cut} of {known.known} cut" if known else ""
            own = "a cap not recorded" if cap is None else cap
            larger = f"The same model at a larger cap ({other}, {other.cap} tokens, not {own}{cuts})"
            parts.append(f"{larger}: {'; '.join(shown)}")
            sources.extend(source_files(evidence, other.suite, other.split, [other.arm]))
    return parts, sources


def _others(evidence: Evidence, faulty: Mapping[ArmRef, Answers]) -> list[Finding]:
    """Compounds and controls that were cut themselves."""
    findings = []
    for ref, found in faulty.items():
        if is_member(ref.arm):
            continue
        intact = found.known_tasks - found.cut_tasks
        message = (
            f"{where(ref.suite, ref.split)}: {ref.arm} is not comparable, {found.words()}, {_limit(evidence)}; counted "
            f"as failed it passes {passes(evidence, ref)}, where its answer is intact {passes(evidence, ref, intact)}"
        )
        affects = CUT_COMPOUND if is_system(ref.arm) else CUT_CONTROL
        findings.append(_finding(message, files(found.sources), affects))
    return findings


def _pools(evidence: Evidence, faulty: Mapping[ArmRef, Answers]) -> list[Finding]:
    """Members of splits without a compound, one finding per configuration: there are many of them and no uplift."""
    groups: dict[tuple[str, str, str | None, bool], list[ArmRef]] = {}
    for ref in faulty:
        if is_member(ref.arm) and not compounds(evidence, ref.suite, ref.split):
            key = (ref.suite, ref.split, split_name(ref.arm)[1], tuple(ref) in arms_beside(evidence))
            groups.setdefault(key, []).append(ref)
    findings = []
    for (suite, split, config, beside), refs in groups.items():
        parts = []
        for ref in sorted(refs, key=lambda ref: (-faulty[ref].share, ref)):
            found = faulty[ref]
            intact = found.known_tasks - found.cut_tasks
            passed = f"passes {passes(evidence, ref)}, where intact {passes(evidence, ref, intact)}"
            parts.append(f"{ref.arm} {found.words()}, {passed}")
        at = "" if config is None else f"@{config}"
        joined = "; ".join(parts)
        noun = "member is" if len(refs) == 1 else "members are"
        message = f"{where(suite, split)}{at}: {len(refs)} {noun} not comparable, {_limit(evidence)}: {joined}"
        sources = files(source for ref in refs for source in faulty[ref].sources)
        if beside:
            # Nothing is computed from these rows: they are told, and they hold nothing against the audit's figures.
            findings.append(Finding("truncated_answers", "warning", f"beside the audit: {message}", sources))
            continue
        # Members in their incumbent configuration are a panel's bank; configurations side by side are nobody's panel.
        affects = CUT_MEMBER if config is None else CUT_POOL
        findings.append(_finding(message, sources, affects))
    return findings


def _finding(message: str, evidence: tuple[str, ...], affects: tuple[str, ...]) -> Finding:
    return Finding("truncated_answers", "error", message, evidence, affects)
