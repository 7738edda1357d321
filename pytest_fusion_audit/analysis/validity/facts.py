"""What several validity checks need to know about arms: which split plays which part, which model a member is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.analysis.names import place
from pytest_fusion_audit.evidence.container import Evidence, is_member
from pytest_fusion_audit.evidence.records import Candidate, Config, Phase

#: Names under which clients ask for an output cap.
CAP_PARAMETERS = ("max_tokens", "max_completion_tokens", "max_output_tokens")

_PHASE_FOLDER = re.compile(r"(?:^|/)phase-?(\d+)/")
_SNAPSHOT = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8})$")


def kind(arm: str) -> str:
    """Kind of an arm.

    >>> kind("compound:rewrite@shallow"), kind("served"), kind("compound@trunc8000")
    ('compound', 'served', 'compound')
    """
    return arm.partition(":")[0].partition("@")[0]


def is_system(arm: str) -> bool:
    """Whether the arm is the system under audit: a compound, or the same served through its gateway.

    >>> is_system("compound@trunc8000"), is_system("served"), is_system("self:gpt*6:rewrite")
    (True, True, False)
    """
    return kind(arm) in {"compound", "served"}


def compounds(evidence: Evidence, suite: str, split: str) -> tuple[str, ...]:
    """Arms of the system under audit: compounds, the incumbent first; the served arm where no other is recorded."""
    arms = [arm for arm in evidence.arms(suite, split) if is_system(arm)]
    own = [arm for arm in arms if kind(arm) == "compound"] or arms
    return tuple(sorted(own, key=lambda arm: ("@" in arm, arm)))


def member_arms(evidence: Evidence, suite: str, split: str) -> tuple[str, ...]:
    """Member arms of a split, in panel order."""
    return tuple(arm for arm in evidence.arms(suite, split) if is_member(arm))


def family(model: str) -> str:
    """A model id without provider prefix and dated snapshot: what two records of one model have in common.

    >>> family("openai/gpt-5.5-2026-04-01"), family("claude-opus-4-8")
    ('gpt-5.5', 'claude-opus-4-8')
    """
    return _SNAPSHOT.sub("", model.rpartition("/")[2].lower())


@per_evidence
def _requested(evidence: Evidence) -> Mapping[tuple[str, str, str, str | None], Candidate]:
    first: dict[tuple[str, str, str, str | None], Candidate] = {}
    for candidate in evidence.of(Candidate):
        first.setdefault((candidate.suite, candidate.split, candidate.member, candidate.config), candidate)
    return MappingProxyType(first)


@per_evidence
def panel_members(evidence: Evidence) -> tuple[Mapping[str, Any], ...]:
    """Facts of every member that a panel file states, in the order of the files; the first word on an id counts."""
    members: dict[str, Mapping[str, Any]] = {}
    for config in evidence.of(Config):
        if config.what != "panel":
            continue
        for member in rows(config.facts.get("members")):
            members.setdefault(str(member.get("id")), member)
    return tuple(members.values())


def rows(value: Any) -> Sequence[Mapping[str, Any]]:
    """The mappings of a JSON list; an empty list for anything else."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, (list, tuple)) else []


def run_facts(evidence: Evidence, suite: str, split: str) -> tuple[Config, ...]:
    """What benchmark runs recorded of themselves, for one split: its own records, else those of the whole import."""
    return tuple(
        config
        for config in evidence.of(Config)
        if config.what == "run" and place(config.suite or suite, config.split or split) == place(suite, split)
    )


def split_name(arm: str) -> tuple[str, str | None]:
    """Member and configuration behind the name of a member arm.

    >>> split_name("member:gpt55@4096"), split_name("member:gpt")
    (('gpt55', '4096'), ('gpt', None))
    """
    member, _, config = arm.removeprefix("member:").partition("@")
    return member, config or None


def model_of(evidence: Evidence, suite: str, split: str, arm: str) -> str | None:
    """Model id behind a member arm: as requested, else as the run recorded it, else as a panel file has it."""
    member, config = split_name(arm)
    candidate = _requested(evidence).get((suite, split, member, config))
    if candidate is not None and candidate.requested_model is not None:
        return candidate.requested_model
    for run in run_facts(evidence, suite, split):
        models = run.facts.get("models")
        if isinstance(models, Mapping) and isinstance(models.get(member), str):
            return str(models[member])
    for facts in panel_members(evidence):
        if facts.get("id") == member and isinstance(facts.get("model"), str):
            return str(facts["model"])
    return None


def cap_of(evidence: Evidence, suite: str, split: str, arm: str) -> int | None:
    """Output cap of a member arm in tokens: as sent or asked, as its name says, as its run or its panel file states."""
    member, config = split_name(arm)
    candidate = _requested(evidence).get((suite, split, member, config))
    if candidate is not None:
        for parameters in (candidate.parameters_sent, candidate.parameters_asked):
            for name in CAP_PARAMETERS:
                value = (parameters or {}).get(name)
                if isinstance(value, int):
                    return value
    if config is not None and config.isdecimal():
        return int(config)
    for run in run_facts(evidence, suite, split):
        value = run.facts.get("output_cap")
        if isinstance(value, int):
            return value
    for panel in evidence.of(Config):
        sampling = panel.facts.get("sampling") if panel.what == "panel" else None
        known = {str(facts.get("id")) for facts in rows(panel.facts.get("members"))}
        value = sampling.get("max_tokens") if isinstance(sampling, Mapping) and member in known else None
        if isinstance(value, int):
            return value
    return None


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Another member arm of the suite that is the same member, or the same model, as a given one."""

    suite: str
    split: str
    arm: str
    model: str | None
    cap: int | None

    def __str__(self) -> str:
        name = where(self.suite, self.split, self.arm)
        return name if self.model is None else f"{name}, {self.model}"


@per_evidence
def same_model(evidence: Evidence, suite: str, split: str, arm: str) -> tuple[Elsewhere, ...]:
    """Other arms of the suite that are the same member, by id, or the same model; sorted by split, in panel order."""
    own = model_of(evidence, suite, split, arm)
    found: list[Elsewhere] = []
    for other_suite, other_split in evidence.splits:
        if other_suite != suite:
            continue
        for other in member_arms(evidence, suite, other_split):
            if (other_split, other) == (split, arm):
                continue
            model = model_of(evidence, suite, other_split, other)
            agree = own is not None and model is not None and family(own) == family(model)
            same_name = other == arm and (own is None or model is None)
            if agree or same_name:
                found.append(Elsewhere(suite, other_split, other, model, cap_of(evidence, suite, other_split, other)))
    return tuple(found)


def phase_of_file(source: str) -> int | None:
    """Phase a file belongs to, by the folder it lay in.

    >>> phase_of_file("audit/phase6/locked.json"), phase_of_file("locked.json")
    (6, None)
    """
    found = _PHASE_FOLDER.findall(source)
    return int(found[-1]) if found else None


def amount(phase: Phase) -> int | None:
    """What a ledger line cost: measured, else estimated, in micro-dollars."""
    return phase.measured_micro_usd if phase.measured_micro_usd is not None else phase.est_micro_usd


def setting(settings: Mapping[str, Any], *path: str) -> Any:
    """A value of nested settings, None when any step is missing."""
    value: Any = settings
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def where(suite: str, split: str, arm: str | None = None) -> str:
    """Place of a figure as measurement names write it."""
    return "/".join(part for part in (suite, split, arm) if part)


def source_files(evidence: Evidence, suite: str, split: str, arms: Iterable[str]) -> tuple[str, ...]:
    """Sources of all rows of some arms of a split, once each, in the order met."""
    seen: dict[str, None] = {}
    for arm in arms:
        for replicate in evidence.replicates(suite, split, arm):
            for row in evidence.arm(suite, split, arm, replicate).values():
                seen.setdefault(row.source, None)
    return tuple(seen)
