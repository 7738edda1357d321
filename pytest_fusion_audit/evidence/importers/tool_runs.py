"""Runs of other tools in one import: which of them are the same run, a retry, a repetition, or of another setting.

Two logs of one task and one model are common in a folder of logs. Their rows would meet under one name, so each run
gets a place of its own:

* the same run in two files (a log and its conversion): one place, the rows merge and must agree;
* a retry of a run, or a run that never ended beside one that did: superseded, its rows are not read;
* another run of the same arm under the same settings: one more replicate, whatever its seed;
* the same arm under other settings: another ``@config``, named by a digest of the settings, none of them the incumbent.

Nothing is chosen by its results: finished runs come before unfinished ones, then the order of their start counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_fusion_audit.evidence.importers.answers import Place
from pytest_fusion_audit.evidence.records import Note

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRun:
    """One arm of one run in one file.

    Attributes:
        file: name of the source.
        key: what tells the arms of one file apart.
        config: configuration that the user or the file names; then settings are not compared.
        identity: id of the run; files of one identity hold the same run.
        lineage: id that a run shares with its retries.
        settings: digest of everything asked that can change an answer, the seed excepted; empty when not recorded.
        started: when, as sortable text; empty when not recorded.
        repeats: answers per task.
    """

    file: str
    key: str = ""
    suite: str
    split: str
    arm: str
    config: str | None = None
    identity: str
    lineage: str
    settings: str = ""
    finished: bool = True
    started: str = ""
    repeats: int = 1

    @property
    def order(self) -> tuple[bool, str, str, str]:
        """Finished runs first, then by their start."""
        return (not self.finished, self.started, self.identity, self.file)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where the rows of one arm of one file go, or which file holds the run that replaces it."""

    place: Place
    superseded_by: str | None = None
    notes: tuple[Note, ...] = ()


def standings(runs: Iterable[ToolRun]) -> dict[tuple[str, str], Standing]:
    """Standing of each run by (file, key)."""
    arms: dict[tuple[str, str, str, str | None], list[ToolRun]] = defaultdict(list)
    for run in runs:
        arms[run.suite, run.split, run.arm, run.config].append(run)
    found: dict[tuple[str, str], Standing] = {}
    for (_, _, _, config), held in arms.items():
        by_settings: dict[str, list[ToolRun]] = defaultdict(list)
        for run in held:
            by_settings[run.settings if config is None else ""].append(run)
        if len(by_settings) == 2 and "" in by_settings:  # settings that are not recorded contradict nobody
            by_settings = {"": held}
        for settings, alike in by_settings.items():
            name = (settings[:8] or "unrecorded") if config is None and len(by_settings) > 1 else config
            notes = _settings_note(held, len(by_settings)) if name != config else ()
            found |= _replicates(alike, name, notes)
    return found


def _settings_note(runs: Sequence[ToolRun], count: int) -> tuple[Note, ...]:
    files = tuple(sorted({run.file for run in runs}))
    text = (
        f"{runs[0].arm} ran under {count} settings in this import: none is taken for the incumbent, each is named by a "
        "digest of its settings; name them with config: in fusion-import.yaml"
    )
    return (Note(code="settings_differ", message=text, count=count, items=files[:10]),)


def _replicates(
    runs: Sequence[ToolRun], config: str | None, notes: tuple[Note, ...]
) -> dict[tuple[str, str], Standing]:
    whole = _newest_of_lineage(runs)
    some_finished = any(run.finished for run in whole.values())
    kept: dict[str, int] = {}  # identity -> replicate
    before: dict[str, int] = {}
    repeats = 0
    for run in sorted(whole.values(), key=lambda run: run.order):
        if run.finished or not some_finished:
            kept[run.identity] = len(kept)
            before[run.identity] = repeats
            repeats += max(other.repeats for other in runs if other.identity == run.identity)
    first = min((run for run in whole.values() if run.identity in kept), key=lambda run: run.order)
    found = {}
    for run in runs:
        place = Place(
            suite=run.suite,
            split=run.split,
            arm=run.arm,
            config=config,
            replicate=kept.get(run.identity, 0),
            repeats_before=before.get(run.identity, 0),
        )
        better = whole[run.lineage] if whole[run.lineage].identity in kept else first
        instead = None if run.identity in kept else better.file
        found[run.file, run.key] = Standing(place=place, superseded_by=instead, notes=notes)
    return found


def _newest_of_lineage(runs: Iterable[ToolRun]) -> dict[str, ToolRun]:
    """Of a run and its retries the finished one, of several the last started: a retry holds what went well before."""
    newest: dict[str, ToolRun] = {}
    for run in runs:
        held = newest.get(run.lineage)
        if held is None or (run.finished, run.started, run.identity) > (held.finished, held.started, held.identity):
            newest[run.lineage] = run
    return newest


def superseded_note(instead: str, samples: int | None) -> Note:
    """Note on a file whose rows are left out because another file of the import holds the run that ended."""
    text = f"a run that was retried or never ended: its rows are not read, {instead} is"
    return Note(code="superseded_run", message=text, count=samples or 1, items=(instead,))


def short_names(names: Mapping[str, str]) -> dict[str, str]:
    """Short names, the full one where two would collide: ``{full: short}`` in, ``{full: the name to use}`` out.

    >>> short_names({"a/gpt": "gpt", "b/gpt": "gpt", "a/opus": "opus"})
    {'a/gpt': 'a/gpt', 'b/gpt': 'b/gpt', 'a/opus': 'opus'}
    """
    counts = Counter(names.values())
    return {full: short if counts[short] == 1 else full for full, short in names.items()}
