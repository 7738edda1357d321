"""duplicate_ids: one task that counts twice, under one id or under two that only look different."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.arms import ArmRef, seeds_of
from pytest_fusion_audit.analysis.names import plain
from pytest_fusion_audit.analysis.validity.facts import source_files, where
from pytest_fusion_audit.analysis.validity.finding import OF_ROWS, Finding, files, listed
from pytest_fusion_audit.analysis.validity.split_roles import arms_beside
from pytest_fusion_audit.evidence.records import Split

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_fusion_audit.evidence.container import Evidence

#: Sources record 16 to 64 hex digits of one hash; 16 are enough to tell prompts apart.
HASH_DIGITS = 16

_COPY = re.compile(r"(?P<base>.+?)[\s_.-]*\(?(?:copy|dup|duplicate)[\s_.-]*\d*\)?")


def duplicate_ids(evidence: Evidence) -> list[Finding]:
    """Tasks that count twice: listed twice in a plan, or answered under two ids that are one task.

    Two ids are one task when their prompts are equal (by hash, where recorded) or when they differ in nothing but case,
    blanks and characters nobody sees. An id that calls itself a copy of another (``x-copy``) is one unless the two
    prompts are known to differ.
    """
    return [*_listed_twice(evidence), *_answered_twice(evidence)]


def _listed_twice(evidence: Evidence) -> list[Finding]:
    findings = []
    for split in evidence.of(Split):
        twice = [task for task, count in Counter(split.ids or ()).items() if count > 1]
        if twice:
            message = (
                f"{where(split.suite, split.split)}: {len(twice)} of {len(set(split.ids or ()))} ids are listed more "
                f"than once in {split.source or 'its record'}: {listed(twice)}"
            )
            findings.append(Finding("duplicate_ids", "error", message, files([split.source]), OF_ROWS))
    return findings


def _answered_twice(evidence: Evidence) -> list[Finding]:
    findings = []
    for suite, split in evidence.splits:
        arms = evidence.arms(suite, split)
        ids = {task for arm in arms for rows in seeds_of(evidence, ArmRef(suite, split, arm)) for task in rows}
        groups = _one_task(ids, prompts_of(evidence, suite, split, ids))
        if groups:
            extra = sum(len(group) - 1 for group, _ in groups)
            told = [f"{' = '.join(repr(name) for name in group)} ({why})" for group, why in groups]
            message = (
                f"{where(suite, split)}: {len(groups)} of {len(ids) - extra} tasks stand under more than one id and "
                f"count more than once: {listed(told)}"
            )
            sources = files(source_files(evidence, suite, split, arms))
            if all((suite, split, arm) in arms_beside(evidence) for arm in arms):
                findings.append(Finding("duplicate_ids", "warning", f"beside the audit: {message}", sources))
            else:
                findings.append(Finding("duplicate_ids", "error", message, sources, OF_ROWS))
    return findings


def prompts_of(evidence: Evidence, suite: str, split: str, ids: Iterable[str]) -> dict[str, str]:
    """The first 16 digits of each task's prompt hash, where it is recorded in this split or another of the suite."""
    found: dict[str, str] = {}
    for name in sorted(ids):
        task = evidence.task_facts(suite, split, name)
        if task is not None and task.prompt_sha256:
            found[name] = task.prompt_sha256.lower()[:HASH_DIGITS]
    return found


def _one_task(ids: set[str], prompts: dict[str, str]) -> list[tuple[list[str], str]]:
    """Groups of ids that are one task, each with the reason; an id stands in the first group that it belongs to."""
    by_prompt: dict[str, list[str]] = {}
    by_name: dict[str, list[str]] = {}
    for name in sorted(ids):
        if name in prompts:
            by_prompt.setdefault(prompts[name], []).append(name)
        by_name.setdefault(plain(name), []).append(name)
    for name in sorted(ids):
        copy = _COPY.fullmatch(plain(name))
        base = by_name.get(copy["base"]) if copy else None
        known = {prompts[one] for one in (name, *(base or ())) if one in prompts}
        if base is not None and len(known) < 2:
            base.append(name)
    groups = [(names, "the same prompt") for names in by_prompt.values() if len(names) > 1]
    told = {name for names, _ in groups for name in names}
    why = "the same id but for case, blanks, unseen characters or a word for copy"
    groups += [(names, why) for names in by_name.values() if len(names) > 1 and not told.issuperset(names)]
    return sorted(groups)
