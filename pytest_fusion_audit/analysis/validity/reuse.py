"""split_reuse: locked tasks that were read before, elsewhere, more than once, or under another name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.names import plain
from pytest_fusion_audit.analysis.validity.duplicates import HASH_DIGITS, prompts_of
from pytest_fusion_audit.analysis.validity.facts import (
    compounds,
    phase_of_file,
    source_files,
    where,
)
from pytest_fusion_audit.analysis.validity.finding import Finding, criteria, files, listed, of
from pytest_fusion_audit.analysis.validity.split_roles import is_called_held_out, plans_of
from pytest_fusion_audit.evidence.records import (
    ArmOutcome,
    Candidate,
    ComparisonPlan,
    Config,
    Fused,
    Split,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_fusion_audit.evidence.container import Evidence

#: Everything whose 2 rests on held-out values, and the criterion that the split was kept locked.
HELD_OUT = criteria(
    *("1.1", "1.2", "1.3", "1.4", "1.5", "2.1", "2.2", "2.3", "2.4", "2.5", "3.1", "3.2", "3.4", "4.1", "4.2"),
    *("5.1", "5.2", "5.4", "5.6", "6.5", "7.1", "7.2", "9.1", "9.3"),
)


@dataclass(slots=True)
class Reading:
    """Ids of a locked split that one other split holds, by the file that shows it."""

    ids: set[str] = field(default_factory=set)
    by_file: dict[str, set[str]] = field(default_factory=dict)

    def add(self, source: str, ids: set[str] | frozenset[str]) -> None:
        """Note that one file shows these ids."""
        if ids:
            self.ids |= ids
            for name in files([source]) or ("no file named",):
                self.by_file.setdefault(name, set()).update(ids)

    def words(self) -> str:
        """The files with their counts."""
        return ", ".join(f"{len(ids)} in {name}" for name, ids in sorted(self.by_file.items()))


def split_reuse(evidence: Evidence) -> list[Finding]:
    """Ids of locked splits that were read elsewhere, read again, or stand in another split under another name.

    Splits that are called held out by another word (final, test, holdout) are looked at like locked ones, and suites,
    splits and ids are compared by their plain names: a trailing blank does not make another task of a task.
    """
    findings = []
    for suite, split in evidence.all_splits:
        if is_called_held_out(evidence, suite, split) and _rows_read(evidence, suite, split):
            findings.extend(_reuse(evidence, suite, split))
    return findings


def _rows_read(evidence: Evidence, suite: str, split: str) -> bool:
    return bool(evidence.arms(suite, split))


def _reuse(evidence: Evidence, suite: str, split: str) -> list[Finding]:
    locked = evidence.task_ids(suite, split)
    parts: list[str] = []
    sources: list[str] = []
    for other, reading in _readings(evidence, suite, split, locked).items():
        parts.append(f"{of(len(reading.ids), len(locked))} in {where(*other)}: {reading.words()}")
        sources.extend(reading.by_file)
    again, more = _again(evidence, suite, split)
    twins, further = _near_duplicates(evidence, suite, split, locked)
    parts.extend([*again, *twins])
    sources.extend([*more, *further])
    if not parts:
        return []
    phases = [phase_of_file(name) for name in _own_files(evidence, suite, split)]
    own = max((phase for phase in phases if phase is not None), default=None)
    opened = "" if own is None else f" (opened in phase {own})"
    crashed, ledgers = _crashed(evidence, suite)
    message = (
        f"{where(suite, split)}{opened}: ids of the locked split were read before, or more than once: "
        f"{'; '.join([*parts, *crashed])}"
    )
    return [Finding("split_reuse", "error", message, files([*sources, *ledgers]), HELD_OUT)]


def _own_files(evidence: Evidence, suite: str, split: str) -> tuple[str, ...]:
    return files(
        row.source
        for arm in evidence.arms(suite, split)
        if arm != "served"
        for row in evidence.arm(suite, split, arm).values()
    )


def _readings(evidence: Evidence, suite: str, split: str, locked: frozenset[str]) -> Mapping[tuple[str, str], Reading]:
    """Other splits of the suite in which an arm answered a locked id, or whose plan holds one."""
    own_names = {plain(task): task for task in locked}
    found: dict[tuple[str, str], Reading] = {}
    per_file: dict[tuple[tuple[str, str], str], set[str]] = {}
    rows: list[Candidate | Fused | ArmOutcome] = [
        *evidence.of(Candidate),
        *evidence.of(Fused),
        *evidence.of(ArmOutcome),
    ]
    for row in rows:
        here = (row.suite, row.split)
        if here != (suite, split) and plain(row.suite) == plain(suite) and (task := own_names.get(plain(row.task))):
            per_file.setdefault((here, row.source), set()).add(task)
    for plan in evidence.of(Split):
        elsewhere = plain(plan.suite) == plain(suite) and plain(plan.split) != plain(split)
        if elsewhere and not is_called_held_out(evidence, suite, plan.split):
            planned = {own_names[name] for task in plan.ids or () if (name := plain(task)) in own_names}
            per_file.setdefault(((plan.suite, plan.split), plan.source), set()).update(planned)
    for (other, source), ids in sorted(per_file.items()):
        if ids:
            found.setdefault(other, Reading()).add(source, ids)
    # Earlier phases first, as they happened; then by name.
    return dict(sorted(found.items(), key=lambda item: (_first_phase(item[1]), item[0])))


def _first_phase(reading: Reading) -> int:
    phases = [phase for name in reading.by_file if (phase := phase_of_file(name)) is not None]
    return min(phases, default=99)


def _again(evidence: Evidence, suite: str, split: str) -> tuple[list[str], list[str]]:
    """Further looks at the same split: registrations after the first, and a served check nobody registered."""
    parts: list[str] = []
    sources: list[str] = []
    plans = plans_of(evidence, suite, split)
    for plan in plans:
        if plan.look > 1:
            declared = f", reuse {plan.reuse}" if plan.reuse else ""
            parts.append(f"look {plan.look} of these tasks is registered{declared}")
            sources.append(plan.source)
    registrations = {(plan.arms, plan.ids_sha256, plan.registered_utc) for plan in plans if plan.look == 1}
    if len(registrations) > 1:
        parts.append(f"{len(registrations)} first looks are registered")
        sources.extend(plan.source for plan in plans)
    hashes = {plan.ids_sha256 for plan in plans if plan.ids_sha256}
    for other in evidence.of(ComparisonPlan):
        if other.ids_sha256 in hashes and other not in plans:
            parts.append(f"the same ids are registered as {where(other.suite, other.split)}")
            sources.append(other.source)
    registered = {arm for plan in plans for arm in plan.arms}
    arms = [arm for arm in compounds(evidence, suite, split) if arm != "served"]
    if len(arms) > 1 and not registered.issuperset(arms):
        parts.append(f"{len(arms)} compounds answered them ({', '.join(arms)}), no registration lists them all")
        sources.extend(source_files(evidence, suite, split, arms))
    served = evidence.arm(suite, split, "served")
    others = [arm for arm in evidence.arms(suite, split) if arm != "served"]
    repeated = served.keys() & {task for arm in others for task in evidence.arm(suite, split, arm)}
    if repeated and "served" not in registered:
        names = files(row.source for row in served.values())
        parts.append(f"{len(repeated)} again through the gateway: {', '.join(names)}")
        sources.extend(names)
    return parts, sources


def _near_duplicates(evidence: Evidence, suite: str, split: str, locked: frozenset[str]) -> tuple[list[str], list[str]]:
    """Tasks of other splits with the prompt of a locked task under another id."""
    prompts = {digest: name for name, digest in prompts_of(evidence, suite, split, locked).items()}
    twins: dict[str, str] = {}
    sources: list[str] = []
    for other_suite, other_split in evidence.all_splits:
        if (other_suite, other_split) == (suite, split):
            continue
        for name, task in evidence.tasks(other_suite, other_split).items():
            own = prompts.get(task.prompt_sha256.lower()[:HASH_DIGITS]) if task.prompt_sha256 else None
            if own is not None and (plain(own) != plain(name) or plain(other_suite) != plain(suite)):
                twins[own] = f"{own} as {where(other_suite, other_split, name)}"
                sources.append(task.source)
    parts = [f"{len(twins)} prompts of locked tasks under other names: {listed(twins.values())}"] if twins else []
    return parts, sources


def _names(run: Config, suite: str) -> bool:
    named = run.facts.get("suite")
    return isinstance(named, str) and plain(named) == plain(suite)


def _crashed(evidence: Evidence, suite: str) -> tuple[list[str], list[str]]:
    """Runs of the suite in a history ledger that scored nothing: what they read before they crashed is not recorded."""
    crashed: dict[str, str] = {}
    for run in evidence.of(Config):
        if run.what == "history" and _names(run, suite) and run.facts.get("resolved_tasks") == 0:
            crashed.setdefault(str(run.facts.get("recorded_at")), run.source)
    if not crashed:
        return [], []
    times = ", ".join(sorted(crashed))
    plural = "run" if len(crashed) == 1 else "runs"
    text = f"{len(crashed)} crashed {plural} of {suite} in the history ledger ({times}), ids read not recorded"
    return [text], list(crashed.values())
