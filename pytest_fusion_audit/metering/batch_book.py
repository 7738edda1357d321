"""What the journal says about batches: which there are, how far each has come, which of its calls are open.

A ``batch`` row opens a batch and is updated by later rows of the same id. Its calls are ordinary ``reserve`` rows whose
owner is the batch. As long as a batch is not done, they are nobody's orphans: their answers lie with the provider, and
whatever process takes the batch over can fetch them. States, in order:

    reserved   its calls are reserved; no batch was asked for yet, so nothing can have been billed
    sending    the provider was asked for a batch; whether it made one is unknown until its id is
    submitted  the provider's id is known
    read       all its calls are settled; what the provider keeps of it is still to be deleted
    done
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_fusion_audit.metering.journal import Row

State = Literal["reserved", "sending", "submitted", "read", "done"]
#: Owner of a batch that nobody looks after.
NOBODY = ""
#: With the batch's id: the owner of its calls.
BATCH_OWNER = "batch:"


@dataclass(slots=True)
class Batch:
    """One batch.

    Attributes:
        id: our id; also the tag by which a batch of unknown id is found at the provider.
        url: where each of its requests would go by itself.
        rows: number of its requests. Fewer reservations mean a kill while they were written: it was never sent.
        version: of the API that it is asked for at, where whoever asked named one.
        owner: process that looks after it; `NOBODY` when it was let go.
        file: id of the uploaded input file, where the provider wants one.
        provider: the provider's id of the batch.
        files: what is to be deleted once it is read.
        at: when the state was reached, in seconds since the epoch by the clock of whoever wrote it.
        reserved: number of its calls that the journal holds.
        open: its calls that are not settled, by id.
    """

    id: str
    url: str
    rows: int
    owner: str
    version: str | None = None
    state: State = "reserved"
    file: str | None = None
    provider: str | None = None
    files: tuple[str, ...] = ()
    at: float = 0.0
    reserved: int = 0
    open: dict[str, Row] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether the journal holds the reservation of every request."""
        return self.reserved == self.rows

    def reserved_in(self, phase: str | None) -> int:
        """Micro-dollars reserved for its open calls of a phase; None = of all."""
        return sum(row["reserved"] for row in self.open.values() if phase in {None, row["phase"]})


class BatchBook:
    """All batches of a run; fed with journal rows in file order."""

    def __init__(self) -> None:
        self.batches: dict[str, Batch] = {}
        self.endings: dict[str, Row] = {}  # how each call of a batch ended: its settle or orphan row
        self._batch_of: dict[str, Batch] = {}

    def take_row(self, row: Row) -> None:
        """Learn one journal row."""
        event = row.get("e")
        if event == "batch":
            self._batch(row)
        elif event == "reserve":
            batch = self.batches.get(str(row.get("owner")).removeprefix(BATCH_OWNER))
            if batch is not None:
                batch.open[row["id"]] = row
                batch.reserved += 1
                self._batch_of[row["id"]] = batch
        elif event in {"settle", "orphan"} and row["id"] in self._batch_of:
            self._batch_of[row["id"]].open.pop(row["id"], None)
            self.endings[row["id"]] = row

    def _batch(self, row: Row) -> None:
        batch = self.batches.get(row["id"])
        if batch is None:
            batch = self.batches[row["id"]] = Batch(
                row["id"], row["url"], row["rows"], row["owner"], row.get("version")
            )
        changes: dict[str, Any] = {
            name: row[name] for name in ("state", "owner", "file", "provider", "at") if name in row
        }
        for name, value in changes.items():
            setattr(batch, name, value)
        if "files" in row:
            batch.files = tuple(row["files"])

    def unfinished(self) -> Iterator[Batch]:
        """Batches that are not done, oldest first."""
        return (batch for batch in list(self.batches.values()) if batch.state != "done")

    def lives(self, name: str) -> bool:
        """Whether the batch of that id can still be fetched: then its calls are no orphans."""
        batch = self.batches.get(name)
        return batch is not None and batch.state != "done"

    def in_flight(self) -> dict[str, list[str]]:
        """Open calls of all batches by key."""
        found: dict[str, list[str]] = {}
        for batch in self.unfinished():
            for call, row in list(batch.open.items()):  # another thread may be settling some
                found.setdefault(row["key"], []).append(call)
        return found

    def ending(self, call: str | None) -> Row | None:
        """How a call ended: its settle or orphan row, once that is on the disk and anybody may read it."""
        batch = self._batch_of.get(call or "")
        return None if batch is None or batch.state not in {"read", "done"} else self.endings.get(call or "")

    def provider_ids(self) -> set[str]:
        """Every id that a provider gave to one of our batches."""
        return {batch.provider for batch in self.batches.values() if batch.provider is not None}
