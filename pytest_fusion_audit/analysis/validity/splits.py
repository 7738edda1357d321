"""suite_undeclared and window_before_cutoff: what was said before the tasks were read, and how old the tasks are."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_fusion_audit.analysis.ledger import phase_number
from pytest_fusion_audit.analysis.names import place, plain
from pytest_fusion_audit.analysis.validity.facts import (
    compounds,
    panel_members,
    setting,
    source_files,
    split_name,
    where,
)
from pytest_fusion_audit.analysis.validity.finding import Finding, criteria, files, listed, of
from pytest_fusion_audit.analysis.validity.split_roles import (
    headline_splits,
    is_called_held_out,
    named_locked,
    plans_of,
)
from pytest_fusion_audit.evidence.container import Evidence, is_member
from pytest_fusion_audit.evidence.records import (
    ComparisonPlan,
    Config,
    Phase,
    Split,
)

UNDECLARED = criteria("1.1", "1.2", "1.3", "1.4", "9.6")
OLD_WINDOW = criteria("1.1", "1.2", "1.3", "9.1")


def suite_undeclared(evidence: Evidence) -> list[Finding]:
    """Suites that were opened and are not shown, and headline suites that no registration names in time."""
    return [*_opened_not_shown(evidence), *_not_registered(evidence)]


def _opened_not_shown(evidence: Evidence) -> list[Finding]:
    if not evidence.splits:
        return []  # a ledger by itself shows no suite at all
    places = {place(*split) for split in evidence.splits}
    shown = {suite for suite, _ in places}
    shown_locked = {plain(suite) for suite, _ in headline_splits(evidence)}
    suites = _known_suites(evidence)
    opened: dict[str, list[tuple[str, str]]] = {}
    for plan in evidence.of(ComparisonPlan):
        if place(plan.suite, plan.split) not in places:
            opened.setdefault(plan.suite, []).append((f"registered for {where(plan.suite, plan.split)}", plan.source))
    for split in evidence.of(Split):
        if named_locked(split.split) and place(split.suite, split.split) not in places:
            opened.setdefault(split.suite, []).append((f"{where(split.suite, split.split)} is planned", split.source))
    for run in evidence.of(Config):
        suite = run.facts.get("suite") if run.what == "history" else None
        if isinstance(suite, str) and plain(suite) in suites - shown and run.facts.get("resolved_tasks"):
            opened.setdefault(suite, []).append((f"{run.facts['resolved_tasks']} tasks in a history", run.source))
    for line in evidence.of(Phase):
        named = _suite_in(line.suite, suites)
        if named is not None and named not in shown_locked and phase_number(line.phase) == 6:
            opened.setdefault(named, []).append((f"phase {line.phase} billed for {line.suite!r}", line.source))
    return [
        Finding(
            "suite_undeclared",
            "error",
            f"{suite}: its locked split was opened and no row of it is shown ({listed(text for text, _ in found)})",
            files(source for _, source in found),
            UNDECLARED,
        )
        for suite, found in sorted(opened.items())
    ]


#: Benchmarks whose names ledgers write in free text. Suites with facts of their own are known besides these.
_BENCHMARKS = ("livecodebench", "polyglot", "swebench", "swe-bench", "humaneval", "mbpp", "gsm8k", "terminal-bench")


def _known_suites(evidence: Evidence) -> frozenset[str]:
    facts = {config.suite for config in evidence.of(Config) if config.what == "suite" and config.suite}
    return frozenset(map(plain, facts)) | frozenset(_BENCHMARKS)


def _suite_in(text: str | None, suites: frozenset[str]) -> str | None:
    """The suite that a ledger's free text names; the longest name wins."""
    words = plain(text or "")
    return max((suite for suite in sorted(suites) if suite in words), key=len, default=None)


def _not_registered(evidence: Evidence) -> list[Finding]:
    """Where suites were registered or named in the settings, every locked split that was evaluated is among them."""
    plans = evidence.of(ComparisonPlan)
    suites = setting(evidence.run.settings, "suites")
    named = {str(name) for name in suites.values() if name} if isinstance(suites, Mapping) else set()
    findings = []
    for suite, split in headline_splits(evidence):
        if not is_called_held_out(evidence, suite, split):
            continue
        arms = compounds(evidence, suite, split)
        sources = source_files(evidence, suite, split, arms)
        if plans and not plans_of(evidence, suite, split):
            reason = "no registration names it"
        elif named and plain(suite) not in map(plain, named):
            reason = f"the settings name {listed(named)} only"
        else:
            reason, sources = _registered_late(evidence, suite, split)
        if reason:
            message = f"{where(suite, split)}: {listed(arms)} evaluated on a locked split, {reason}"
            findings.append(Finding("suite_undeclared", "error", message, files(sources), UNDECLARED))
    return findings


def _registered_late(evidence: Evidence, suite: str, split: str) -> tuple[str, tuple[str, ...]]:
    """The reason when every registration of a split is younger than its rows; an empty reason otherwise."""
    plans = plans_of(evidence, suite, split)
    registered = [plan.registered_utc for plan in plans if plan.registered_utc is not None]
    here = place(suite, split)
    runs = [run for run in evidence.of(Config) if run.what == "run" and place(run.suite or "", run.split or "") == here]
    made = [str(run.facts["generated_at"]) for run in runs if run.facts.get("generated_at")]
    if not registered or not made or min(registered) <= max(made):
        return "", ()
    reason = f"registered {min(registered)}, after its rows were made ({max(made)})"
    return reason, (*(plan.source for plan in plans), *(run.source for run in runs))


def window_before_cutoff(evidence: Evidence) -> list[Finding]:
    """Tasks published before a member's training data ends, counted per member."""
    cutoffs = {
        str(member.get("id")): str(member["cutoff"]) for member in panel_members(evidence) if member.get("cutoff")
    }
    sources = files(config.source for config in evidence.of(Config) if config.what == "panel")
    findings = []
    for suite, split in evidence.splits:
        if not compounds(evidence, suite, split) or not cutoffs:
            continue
        ids = sorted(evidence.task_ids(suite, split))
        facts = {task: evidence.task_facts(suite, split, task) for task in ids}
        dates = {task: found.date for task, found in facts.items() if found is not None and found.date is not None}
        present = {split_name(arm)[0] for arm in evidence.arms(suite, split) if is_member(arm)} or set(cutoffs)
        old = {
            member: [task for task, date in dates.items() if _older(date, cutoff)]
            for member, cutoff in sorted(cutoffs.items())
            if member in present
        }
        told = [
            f"{of(len(tasks), len(dates))} are older than the cutoff of {member} ({cutoffs[member]}): {listed(tasks)}"
            for member, tasks in old.items()
            if tasks
        ]
        if told:
            undated = f"; {len(ids) - len(dates)} without a date" if len(dates) < len(ids) else ""
            message = f"{where(suite, split)}: {'; '.join(told)}{undated}"
            of_tasks = [found.source for found in facts.values() if found is not None]
            findings.append(
                Finding("window_before_cutoff", "warning", message, files([*sources, *of_tasks]), OLD_WINDOW)
            )
    return findings


def _older(date: str, cutoff: str) -> bool:
    """Whether a task was published before a cutoff; a cutoff that names a month or a year counts to its end.

    >>> _older("2025-01-15", "2025-01-31"), _older("2025-01-15", "2025-01"), _older("2025-02-01", "2025-01")
    (True, True, False)
    """
    day = 10
    return date[:day] < cutoff[:day] if len(cutoff) >= day else date[: len(cutoff)] <= cutoff
