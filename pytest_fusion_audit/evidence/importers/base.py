"""What every importer is and what it is given: the source file, a glance at it, and what its neighbours taught.

An importer recognises a file by its content, reads it into evidence records, and says what stayed unknown. It never
decides what a number means: criteria do, from the records.
"""

from __future__ import annotations

import reprlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from pytest_fusion_audit.errors import ImportRefusedError
from pytest_fusion_audit.evidence.importers import known_suites
from pytest_fusion_audit.evidence.records import ArmOutcome, Candidate, Fused, Note, Phase, Record, Split, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

T = TypeVar("T")
Container: TypeAlias = Literal["json", "jsonl", "csv", "yaml", "zip", "text"]

#: Suite of rows whose file names none and whose ids fit no known benchmark.
UNNAMED_SUITE = "unnamed"


@dataclass(frozen=True, slots=True)
class Source:
    """One file of an import.

    Attributes:
        path: where it lies; never written into a record.
        name: path relative to what was imported, with the name of the folder in front and forward slashes.
        sha256: hex digest of its bytes.
    """

    path: Path
    name: str
    sha256: str

    @property
    def stem(self) -> str:
        """File name without folder and without its last suffix: splits, arms and configurations may be named by it."""
        return self.name.rsplit("/", 1)[-1].rsplit(".", 1)[0]


@dataclass(frozen=True, slots=True)
class Peek:
    """What recognition may look at: the container, and the keys near the top. Big files are never read whole for it.

    Attributes:
        container: by content. A JSON file of one line is ``json`` although it may be JSONL of one row: importers of
            JSONL accept both. ``text`` is everything else, binaries included.
        keys: keys of the top object, of the first JSONL row, of the CSV header or of the YAML mapping.
        first: the first JSONL row, or the whole small document; None when the file is too large or has no such thing.
        members: names inside a zip archive.
        paths: key paths of at most three steps near the start of a document or row, ``[]`` for an element of a list.
        damage: why the content cannot be what it begins as (cut-off JSON, not UTF-8); None when nothing is wrong.
        place: where the damage is, as messages name it; may be empty.
    """

    container: Container
    keys: frozenset[str] = frozenset()
    first: Any = None
    members: tuple[str, ...] = ()
    paths: frozenset[tuple[str, ...]] = frozenset()
    damage: str | None = None
    place: str = ""

    def has(self, *path: str) -> bool:
        """Whether a key path was seen, as in ``peek.has("tasks", "[]", "candidates")``."""
        return path in self.paths


@dataclass(frozen=True, slots=True)
class Naming:
    """Names that a user's ``fusion-import.yaml`` gives to the rows of one file; None leaves what the importer says."""

    suite: str | None = None
    split: str | None = None
    arm: str | None = None
    config: str | None = None


@dataclass(slots=True)
class BankFacts:
    """What the files of one bank signature state together: where its rows went, and what was planned."""

    suite: str
    split: str
    sources: list[str] = field(default_factory=list)
    planned: dict[str, None] = field(default_factory=dict)  # ordered set of ids
    planned_count: int | None = None
    panel: dict[str, None] = field(default_factory=dict)
    held: dict[str, set[str]] = field(default_factory=dict)  # task id -> members with a candidate
    statuses: set[str] = field(default_factory=set)


class Context:
    """What the other files of the same import taught. Files of a lower stage are read first."""

    def __init__(self, namings: Mapping[str, Naming] | None = None) -> None:
        self._namings = dict(namings or {})
        self._suite_of_id: dict[str, str] = {}
        self._manifests: dict[tuple[str, str], frozenset[str]] = {}
        self._verdicts: dict[tuple[str, str, str], dict[str, bool | None]] = {}
        self.phases: list[Phase] = []
        self.banks: dict[str, BankFacts] = {}
        #: Files of this import by the format they were recognised as, in the order of their names.
        self.sources: dict[str, list[Source]] = {}
        self._once: dict[str, Any] = {}

    def once(self, key: str, make: Callable[[], T]) -> T:
        """What ``make`` returns, made once per import: what all files of one tool state together."""
        if key not in self._once:
            self._once[key] = make()
        made: T = self._once[key]
        return made

    def naming(self, source: Source) -> Naming:
        """What ``fusion-import.yaml`` says about a file; all None when it says nothing."""
        return self._namings.get(source.name, Naming())

    def learn(self, records: Iterable[Record]) -> None:
        """Remember what the records of one file teach others: suites of ids, planned splits, verdicts of turns."""
        for record in records:
            if isinstance(record, Phase):
                self.phases.append(record)
            elif isinstance(record, Split):
                if record.ids is not None:
                    self._name_ids(record.suite, record.ids)
                    if record.how == "manifest":
                        self._manifests[record.suite, record.split] = frozenset(record.ids)
            elif isinstance(record, Task):
                self._name_ids(record.suite, (record.id,))
            elif isinstance(record, Fused):
                self._name_ids(record.suite, (record.task,))
                passed = None if record.verdict is None else record.verdict == "passed"
                self._verdicts.setdefault((record.suite, record.split, record.arm), {})[record.task] = passed
            elif isinstance(record, (ArmOutcome, Candidate)):
                self._name_ids(record.suite, (record.task,))

    def _name_ids(self, suite: str, ids: Iterable[str]) -> None:
        if suite != UNNAMED_SUITE:
            for task in ids:
                self._suite_of_id.setdefault(task, suite)

    def suite_of(self, ids: Collection[str]) -> str | None:
        """Suite of a set of task ids: by their shape, else as a file that names its suite has them, else None."""
        by_shape = known_suites.suite_by_ids(ids)
        if by_shape is not None:
            return by_shape
        taught = Counter(self._suite_of_id[task] for task in ids if task in self._suite_of_id)
        if 2 * sum(taught.values()) <= len(ids):
            return None
        return min(taught, key=lambda suite: (-taught[suite], suite))

    def suite_name(self, source: Source, ids: Collection[str], stated: str | None = None) -> str:
        """Suite under which rows are filed: the user's word, the file's own, that of the ids, else ``unnamed``."""
        return self.naming(source).suite or stated or self.suite_of(ids) or UNNAMED_SUITE

    def planned_split(self, suite: str, ids: Collection[str]) -> str | None:
        """The split whose manifest holds all these ids; None when no manifest does."""
        wanted = frozenset(ids)
        fitting = [split for (of, split), held in self._manifests.items() if of == suite and wanted and wanted <= held]
        return min(fitting) if fitting else None

    def split_of_bank(self, signature: str) -> tuple[str, str] | None:
        """(suite, split) of the imported bank with this signature; None when no such bank was imported."""
        bank = self.banks.get(signature)
        return None if bank is None else (bank.suite, bank.split)

    def verdicts(self, suite: str, split: str, arm: str) -> Mapping[str, bool | None]:
        """Verdicts of the recorded turns of an arm by task id, as read so far."""
        return self._verdicts.get((suite, split, arm), {})


@dataclass(frozen=True, slots=True)
class Reading:
    """What one importer took from one file.

    Attributes:
        records: evidence, in recorded order (members in panel order).
        unknown: what the format does not tell, in the words of the evidence records; it stays None everywhere.
        notes: counted exclusions and oddities.
    """

    records: Sequence[Record]
    unknown: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()


class Importer(Protocol):
    """One file format. Implementations have no state; register them in ``importers/__init__.py``."""

    @property
    def format(self) -> str:
        """Short name of the format, as users see it."""

    @property
    def stage(self) -> int:
        """0 names its own rows, 1 banks, 2 leans on names or rows of the stages before, 3 teaches nobody."""

    def recognises(self, source: Source, peek: Peek, /) -> bool:
        """Whether the file is of this format, judged by content."""

    def read(self, source: Source, context: Context, /) -> Reading:
        """Read the file.

        Raises:
            ImportRefusedError: the file is damaged or contradicts itself; one line that names file, place and field.
        """


class FolderImporter(Protocol):
    """A format that is a whole folder."""

    @property
    def format(self) -> str:
        """Short name of the format, as users see it."""

    def recognises(self, folder: Path) -> bool:
        """Whether the folder is of this format."""

    def read(self, folder: Path, name: str) -> Reading:
        """Read the folder; its records bring their own `ImportedFile`. ``name`` stands for it in records."""


class PlacedRefusalError(ImportRefusedError):
    """A refusal that still knows its parts.

    Attributes:
        what: what is wrong.
        where: line, column or field; may be empty.
    """

    def __init__(self, line: str, what: str, where: str) -> None:
        super().__init__(line)
        self.what = what
        self.where = where


def refusal(
    source: Source | str, what: str, where: str = "", *, then: str = "repair the file or leave it out"
) -> PlacedRefusalError:
    """The one form of a refusal: ``<file>: <where>: <what>; <what to do next>`` on one line."""
    name = source if isinstance(source, str) else source.name
    line = f"{name}: {where}: {what}; {then}" if where else f"{name}: {what}; {then}"
    return PlacedRefusalError(printable(line), what, where)


def printable(text: str) -> str:
    """The text on one line: control characters and lone surrogates are written as question marks."""
    return "".join(c if c.isprintable() else "?" for c in text)


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80


def shown(value: object) -> str:
    """A value as a message shows it: its repr, at most 60 characters."""
    text = _SHORT.repr(value)  # never the whole of it: aliases of YAML can make a few bytes a terabyte
    return text if len(text) <= 60 else f"{text[:57]}..."
