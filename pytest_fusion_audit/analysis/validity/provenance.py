"""provenance_missing, stale_subject: whether it is known what was measured, and whether it is what is being gated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.analysis.validity.facts import (
    CAP_PARAMETERS,
    compounds,
    run_facts,
    setting,
    source_files,
    where,
)
from pytest_fusion_audit.analysis.validity.finding import Finding, Severity, criteria, files, listed
from pytest_fusion_audit.evidence.records import Candidate, ComparisonPlan, Config

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_fusion_audit.evidence.container import Evidence

#: Field of a run's own record -> its name for people.
ERROR_FIELDS = {
    "output_cap": "output cap",
    "panel_hash": "panel hash",
    "models": "resolved models",
    "config_hash": "config hash",
}
SEED = {"seed": "seed"}

_SEED_SETTINGS = (("seed",), ("splits", "seed"))

#: Without these nobody can repeat the headline, its costs or compare it with another run.
UNREPEATABLE = criteria("1.1", "1.2", "1.3", "1.4", "2.5", "7.1", "9.2", "9.3", "9.6")
UNSEEDED = criteria("1.5", "9.2")
#: Everything the gates rest on.
OF_GATES = criteria("1.1", "1.2", "1.3", "1.4", "2.1", "3.2", "4.1", "7.1", "7.2", "7.3", "7.4", "9.1", "9.2", "9.6")


def provenance_missing(evidence: Evidence) -> list[Finding]:
    """What the runs behind compounds did not record of themselves. A panel file beside them is not their record."""
    missing: dict[str, dict[str, tuple[str, ...]]] = {}
    for suite, split in evidence.splits:
        arms = compounds(evidence, suite, split)
        if not arms:
            continue
        facts = _recorded(evidence, suite, split)
        sources = files(source_files(evidence, suite, split, arms))
        for name in (*ERROR_FIELDS, *SEED):
            if facts.get(name) is None:
                missing.setdefault(name, {})[where(suite, split)] = sources
    unsent = _seeds_not_taken(evidence)
    findings = []
    by_severity: tuple[tuple[Severity, dict[str, str], tuple[str, ...]], ...] = (
        ("error", ERROR_FIELDS, UNREPEATABLE),
        ("warning", SEED, UNSEEDED),
    )
    for severity, names, affects in by_severity:
        told = [f"no {names[name]} recorded for {listed(places)}" for name, places in missing.items() if name in names]
        silent = [places for name, places in missing.items() if name in names]
        sources_of = [source for places in silent for sources in places.values() for source in sources]
        if severity == "warning":
            told += [f"seed asked for and not taken by {listed(unsent)}"] if unsent else []
            sources_of += [source for sources in unsent.values() for source in sources]
        if told:
            message = f"missing in the runs' own records: {'; '.join(told)}"
            findings.append(Finding("provenance_missing", severity, message, files(sources_of), affects))
    return findings


def _recorded(evidence: Evidence, suite: str, split: str) -> Mapping[str, Any]:
    """What is recorded of the runs behind one split: run records, its candidates, settings of a run of ours."""
    facts: dict[str, Any] = {}
    for run in run_facts(evidence, suite, split):
        for name in (*ERROR_FIELDS, *SEED):
            if facts.get(name) is None and run.facts.get(name) not in (None, "", {}, []):
                facts[name] = run.facts[name]
    if evidence.run.mode != "imported":
        settings = evidence.run.settings
        own = {
            "output_cap": setting(settings, "max_output_tokens") or setting(settings, "target", "max_output_tokens"),
            "panel_hash": setting(settings, "panel_hash"),
            "config_hash": setting(settings, "config_hash") or evidence.run.subject_hash,
            "seed": next((s for path in _SEED_SETTINGS if (s := setting(settings, *path)) is not None), None),
        }
        facts = {**{name: value for name, value in own.items() if value is not None}, **facts}
    candidates = [c for of_task in evidence.candidates(suite, split).values() for c in of_task]
    if candidates:
        if all(candidate.resolved_model for candidate in candidates):
            facts.setdefault("models", True)
        if all(_parameter(candidate, *CAP_PARAMETERS) is not None for candidate in candidates):
            facts.setdefault("output_cap", True)
        if all(_parameter(candidate, "seed") is not None for candidate in candidates):
            facts.setdefault("seed", True)
    return facts


def _parameter(candidate: Candidate, *names: str) -> Any:
    sent = candidate.parameters_sent or candidate.parameters_asked or {}
    return next((sent[name] for name in names if sent.get(name) is not None), None)


def _seeds_not_taken(evidence: Evidence) -> dict[str, set[str]]:
    """Members whose seed was asked for and did not go over the wire, with the files."""
    found: dict[str, set[str]] = {}
    for candidate in evidence.of(Candidate):
        asked, sent = candidate.parameters_asked, candidate.parameters_sent
        if asked is not None and sent is not None and asked.get("seed") is not None and sent.get("seed") is None:
            found.setdefault(candidate.member, set()).add(candidate.source)
    return found


def stale_subject(evidence: Evidence) -> list[Finding]:
    """Evidence that was made for another subject than the run's: other prompts, panel, policy, caps or version."""
    own = evidence.run.subject_hash
    if own is None:
        return []
    stale: dict[str, list[tuple[str, str]]] = {}
    for config in evidence.of(Config):
        # A history is of earlier runs by what it is, and a suite's facts are nobody's subject.
        if config.what not in {"history", "suite"} and config.subject_hash not in {None, own}:
            name = f"{config.what} {where(config.suite or '', config.split or '')}".strip()
            stale.setdefault(str(config.subject_hash), []).append((name, config.source))
    for plan in evidence.of(ComparisonPlan):
        if plan.subject_hash not in {None, own}:
            name = f"registration of {where(plan.suite, plan.split)}"
            stale.setdefault(str(plan.subject_hash), []).append((name, plan.source))
    return [
        Finding(
            "stale_subject",
            "error",
            f"made for subject {subject[:12]}, while {own[:12]} is being gated: {listed(name for name, _ in found)}; "
            "run it again for this subject",
            files(source for _, source in found),
            OF_GATES,
        )
        for subject, found in sorted(stale.items())
    ]
