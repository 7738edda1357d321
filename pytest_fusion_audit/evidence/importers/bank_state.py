"""What the files of one bank signature state together: where its rows go, what was planned, whether it is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.evidence.importers.base import BankFacts, Context, Source, refusal
from pytest_fusion_audit.evidence.importers.rows import Row, Totals
from pytest_fusion_audit.evidence.records import Note, Split

if TYPE_CHECKING:
    from collections.abc import Collection


def home_of(source: Source, top: Row, ids: Collection[str], context: Context) -> BankFacts:
    """Suite and split of a file's rows: one signature has one home, two signatures never share one.

    Args:
        source: the file.
        top: its top object.
        ids: tasks in it.
        context: the import; the facts of the signature are kept there.
    """
    signed = top.text("signature")
    signature = signed or f"file {source.name}"
    facts = context.banks.get(signature)
    if facts is None or not facts.held:  # an empty file of the same signature knew no ids to be named by
        named_by = ids or _planned(top)[0]
        suite = context.suite_name(source, named_by, top.text("suite"))
        split = context.naming(source).split or context.planned_split(suite, named_by) or "baseline"
        others = [other for name, other in context.banks.items() if name != signature]
        if any((other.suite, other.split) == (suite, split) for other in others):
            split = f"{split}-{signed[:8] if signed else source.stem}"
        if facts is None:
            facts = context.banks[signature] = BankFacts(suite, split)
        facts.suite, facts.split = suite, split
    facts.sources.append(source.name)
    return facts


def _planned(top: Row) -> tuple[list[str], int | None]:
    value = top.data.get("planned_tasks")
    if isinstance(value, int) and not isinstance(value, bool):
        return [], top.count("planned_tasks")
    ids = list(top.ids("planned_tasks") or ())
    return ids, len(set(ids)) if value is not None else None


def note_state(top: Row, held: dict[str, set[str]], facts: BankFacts) -> list[Note]:
    """Add what one file holds to what its signature knows; returns what is odd about the file.

    Args:
        top: the top object of the file.
        held: members with a candidate, by task, in the order of the file.
        facts: what the signature knows so far.
    """
    ids, planned = _planned(top)
    facts.planned.update(dict.fromkeys(ids))
    if planned is not None:
        facts.planned_count = max(planned, facts.planned_count or 0)
    facts.panel.update(dict.fromkeys(top.ids("panel_models") or ()))
    for task, members in held.items():
        facts.held.setdefault(task, set()).update(members)
    status = (top.text("status") or "").lower()
    facts.statuses.add(status)
    if not held:
        return [
            Note(code="empty_bank", message=f"bank {_emptiness({status}, planned)}: nothing was taken from this file")
        ]
    totals = Totals()
    missing = [task for task in ids if task not in held]
    if status == "complete" and missing:
        totals.say(f"claims complete, {len(missing)} of {len(set(ids))} planned tasks are missing")
    elif status == "complete" and not ids and planned is not None and len(held) < planned:
        totals.say(f"claims complete, holds {len(held)} of {planned} planned tasks")
    unplanned = [task for task in held if task not in set(ids)] if ids else []
    if unplanned:
        totals.say(f"{len(unplanned)} tasks were not planned")
    return totals.notes()


def _emptiness(statuses: set[str], planned: int | None) -> str:
    of = f" of {planned}" if planned is not None else ""
    return f"claims complete but holds 0{of} tasks" if "complete" in statuses else f"holds 0{of} tasks"


def settle(context: Context) -> list[Split]:
    """Splits of all banks, once every file of every signature is read.

    A bank is complete when each planned task has a candidate of every member, whichever file it came from.

    Raises:
        ImportRefusedError: the files of a signature hold no task at all.
    """
    splits = []
    for facts in context.banks.values():
        name = " + ".join(facts.sources)
        if not facts.held:
            what = f"bank {_emptiness(facts.statuses, facts.planned_count)}"
            raise refusal(name, what, then="build it again or leave it out")
        splits.append(
            Split(
                suite=facts.suite,
                split=facts.split,
                how="recorded",
                ids=tuple(facts.planned) or tuple(facts.held),
                planned=facts.planned_count,
                complete=_complete(facts),
                source=name,
            )
        )
    return splits


def _complete(facts: BankFacts) -> bool | None:
    if facts.planned_count is not None:
        panel = set(facts.panel)
        whole = {task for task, members in facts.held.items() if members >= panel}
        return whole.issuperset(facts.planned) and len(whole) >= facts.planned_count
    if facts.statuses & {"complete", "building"}:
        return "complete" in facts.statuses
    return None
