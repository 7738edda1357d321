"""From the paths a user gives to the files an import reads, with names that hold no path of the machine."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_fusion_audit.evidence.importers.base import FolderImporter, Naming, Source, printable, refusal
from pytest_fusion_audit.evidence.importers.rows import Row
from pytest_fusion_audit.evidence.importers.text import load_yaml, source_of, unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: A user's file beside imported ones that names their rows; see `namings_of`.
SIDECAR = "fusion-import.yaml"


@dataclass(frozen=True, slots=True)
class Found:
    """A file to import: ``named`` when the user named the file itself and not a folder above it."""

    source: Source
    named: bool


@dataclass(slots=True)
class Walked:
    """What was found under the paths of an import, in sorted order.

    Attributes:
        files: files for the importers of files.
        sidecars: a user's namings.
        folders: folders that are of a format themselves, with their importer and name.
    """

    files: list[Found] = field(default_factory=list)
    sidecars: list[Source] = field(default_factory=list)
    folders: list[tuple[FolderImporter, Path, str]] = field(default_factory=list)


def files_of(paths: Iterable[str | Path], folder_importers: Sequence[FolderImporter] = ()) -> Walked:
    """Files under the given paths. Hidden files and folders are skipped, a path given twice is read once.

    Raises:
        ImportRefusedError: a path does not exist or is neither file nor folder, or a folder holds no file.
    """
    walked = Walked()
    seen: set[Path] = set()
    roots: set[str] = set()
    for given in paths:
        path = Path(given)
        try:
            there = path.exists()
        except OSError as error:
            raise unreadable(str(given), error) from None
        if not there:
            raise refusal(str(given), "no such file or folder", then="check the path")
        real = path.resolve()
        if real in seen:
            continue
        seen.add(real)
        root = _unused(printable(real.name) or "import", roots)
        if path.is_file():
            walked.files.append(Found(source_of(path, root), named=True))
        elif path.is_dir():
            _walk_folder(path, root, walked, folder_importers)
        else:
            raise refusal(str(given), "neither a file nor a folder", then="check the path")
    walked.files.sort(key=lambda found: found.source.name)
    return walked


def _walk_folder(top: Path, root: str, walked: Walked, folder_importers: Sequence[FolderImporter]) -> None:
    empty = True
    entered: set[Path] = set()  # links are followed, but no folder is read twice

    def refuse(error: OSError) -> None:
        raise unreadable(root, error) from None

    for where, folders, files in os.walk(top, onerror=refuse, followlinks=True):
        folder = Path(where)
        real = folder.resolve()
        if real in entered:
            folders.clear()
            continue
        entered.add(real)
        relative = folder.relative_to(top)
        importer = next((one for one in folder_importers if one.recognises(folder)), None)
        if importer is not None:
            folders.clear()
            walked.folders.append((importer, folder, _name(root, relative)))
            empty = False
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = folder / name
            if name.startswith(".") or not path.is_file():
                continue
            empty = False
            source = source_of(path, _name(root, relative / name))
            if name == SIDECAR:
                walked.sidecars.append(source)
            else:
                walked.files.append(Found(source, named=False))
    if empty:
        raise refusal(root, "an empty folder", then="name a folder with recorded runs")


def _name(root: str, relative: Path) -> str:
    inside = relative.as_posix()
    return root if inside == "." else f"{root}/{printable(inside)}"


def _unused(name: str, taken: set[str]) -> str:
    """Two folders of one name get different names in records: ``results`` and ``results~2``."""
    count, free = 1, name
    while free in taken:
        count += 1
        free = f"{name}~{count}"
    taken.add(free)
    return free


def namings_of(sidecars: Sequence[Source], names: Iterable[str]) -> dict[str, Naming]:
    """What the sidecars say, by the name of the file spoken of.

    A sidecar is ``{files: {<path relative to its folder>: {suite:, split:, arm:, config:}}}``.

    Raises:
        ImportRefusedError: another key, a value that is no text, or a file that is not there.
    """
    there = set(names)
    namings: dict[str, Naming] = {}
    for sidecar in sidecars:
        top = Row(sidecar, "", load_yaml(sidecar))
        _only(top, {"files"})
        files = top.child("files")
        folder = sidecar.name.rpartition("/")[0]
        for relative in files.data if files is not None else ():
            name = f"{folder}/{relative}"
            if name not in there:
                raise refusal(
                    sidecar, f"names {relative!r}, which is not in its folder", "field files", then="correct it"
                )
            assert files is not None  # noqa: S101 - the loop runs over its keys
            row = Row(sidecar, f"files.{relative}", files.data[relative])
            _only(row, {"suite", "split", "arm", "config"})
            namings[name] = Naming(row.text("suite"), row.text("split"), row.text("arm"), row.text("config"))
    return namings


def _only(row: Row, allowed: set[str]) -> None:
    others = row.others(allowed)
    if others:
        where = f"field {row.where}.{others[0]}".replace("field .", "field ")
        raise refusal(row.source, "unknown key", where, then=f"allowed are {', '.join(sorted(allowed))}")
