"""The calls of one run: journal, ledger, bodies and stored answers behind one object, shared by all doors."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.errors import FusionAuditError
from pytest_fusion_audit.metering.batch_book import BATCH_OWNER, BatchBook
from pytest_fusion_audit.metering.bodies import Bodies
from pytest_fusion_audit.metering.journal import Journal, Row
from pytest_fusion_audit.metering.ledger import Balances, Ledger, Limits, now_utc
from pytest_fusion_audit.metering.owners import Owner, Reader
from pytest_fusion_audit.metering.store import Answers, Key
from pytest_fusion_audit.metering.streams import Spool, clean_parts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_fusion_audit.metering.scope import Scope
    from pytest_fusion_audit.metering.scrubbing import Scrubber
    from pytest_fusion_audit.metering.wire.base import RequestFacts

#: A call is not sent when less is free: an answer that was paid for must fit on the disk.
_LEAST_FREE_BYTES = 64 * 1024 * 1024
_DISK_LOOK_S = 0.5


class DiskFullError(FusionAuditError):
    """Too little room to keep an answer that would be paid for; nothing was sent."""


class Calls:
    """Calls of the run in ``folder`` (``audit/<run-id>/calls``).

    Opening takes over what dead processes left: their open reservations become orphans (they may have been sent), their
    holds are released (holds are never sent), their spooled streams are kept (see `clean_streams`). Calls of a batch
    stay open: their answers lie with the provider until ``batches.Batches`` takes the batch over. A new session also
    takes back the stop of the one before.

    Args:
        folder: created when missing.
        limits: caps of the run.
        session: name shared by all workers of one session.
        goes_on: a new session takes back the stop of the one before; False for who only settles.
        read_only: for replays: no byte of the folder changes, and another session may be at work.

    Raises:
        EvidenceError: the journal is damaged. RunBusyError: another session works on this run.
    """

    def __init__(
        self, folder: Path, limits: Limits, session: str, *, read_only: bool = False, goes_on: bool = True
    ) -> None:
        self.folder = folder
        self.read_only = read_only
        self.answers = Answers()
        self.balances = Balances()
        self.batches = BatchBook()
        self._disk_good_until = 0.0
        if not read_only:
            folder.mkdir(parents=True, exist_ok=True)
        self.owner: Owner | Reader = Reader() if read_only else Owner(folder, session)
        try:
            self.journal = Journal(folder, self._take, read_only=read_only)
            self.bodies = Bodies(folder, self.owner.name)
            self.ledger = Ledger(
                self.journal, self.balances, limits, self.owner.name, dead=self._dead, unattended=self._unattended
            )
            if not read_only:
                self.ledger.bury()
            if self.owner.new_session and goes_on:
                self.ledger.go_on()
        except BaseException:
            self.owner.close()
            raise

    @classmethod
    def reading(cls, folder: Path) -> Calls:
        """The stored calls of a run, for reading only."""
        return cls(folder, Limits(total=0), "", read_only=True)

    def _take(self, row: Row) -> None:
        self.balances.take(row)
        self.answers.take_row(row)
        self.batches.take_row(row)

    def _unattended(self, phase: str | None) -> int:
        """What the batches have reserved that no living process looks after."""
        return sum(batch.reserved_in(phase) for batch in self.batches.unfinished() if self.owner.dead(batch.owner))

    def _dead(self, owner: str) -> bool:
        """Whether nobody will settle what this owner has reserved. A batch lives until it is done."""
        if owner.startswith(BATCH_OWNER):
            return not self.batches.lives(owner.removeprefix(BATCH_OWNER))
        return self.owner.dead(owner)

    async def begin(self, scope: Scope, key: Key, facts: RequestFacts, amount: int, *, host: str, body: bytes) -> Row:
        """Reserve a call and keep its request; the reservation is durable when it returns, so that it may be sent.

        The request becomes durable with the answer at the latest: both lie in one pack.

        Raises:
            CostLimitExceeded, RunStoppedError, DiskFullError: nothing was sent.
        """
        self.check_disk()
        request_sha, _ = self.bodies.put(body)
        row = call_row(scope, key, facts, host, request_sha) | {"attempt": self.answers.attempt(key)}
        return await self.ledger.reserve(scope.phase, amount, row, hold=scope.turn)

    def check_disk(self) -> None:
        """Check that an answer can be kept.

        Raises:
            DiskFullError: too little room; nothing was sent.
        """
        now = time.monotonic()
        if now < self._disk_good_until:
            return
        free = shutil.disk_usage(self.folder).free
        if free < _LEAST_FREE_BYTES:
            raise DiskFullError(
                f"{free // 2**20} MiB are free, {_LEAST_FREE_BYTES // 2**20} MiB are needed to keep the answer; "
                "nothing was sent, make room and go on with --fusion-resume"
            )
        self._disk_good_until = now + _DISK_LOOK_S

    async def end(self, call: Row, charged: int, *, estimated: bool, facts: Mapping[str, Any]) -> None:
        """Settle a call, durably."""
        answered = "answer" in facts
        if answered:
            self.answers.buys(call["key"])
        try:
            offset = self.ledger.settle(call, charged, estimated=estimated, facts=facts)
        except BaseException:
            if answered:
                self.answers.buys(call["key"], -1)
            raise
        await self.journal.durable(offset)

    async def lose(self, call: Row, reason: str) -> None:
        """Keep a call charged that was sent and not answered, durably."""
        await self.journal.durable(self.ledger.orphan(call["id"], reason))

    def spool(self, call: str) -> Spool:
        """A file for the chunks of one streamed response."""
        return Spool(self.folder / "streams", call, self.owner.name)

    def clean_streams(self, scrubber: Scrubber) -> int:
        """Take keys out of the streams that dead processes left unfinished; returns in how many there were any.

        A reader finds nobody dead, so it changes nothing.

        Raises:
            DiskFullError: no room to write one anew; nothing was sent.
        """
        try:
            return clean_parts(self.folder / "streams", self.owner.dead, scrubber)
        except OSError as error:
            raise DiskFullError(
                f"{self.folder / 'streams'}: what a killed process left cannot be written without keys "
                f"({error.strerror}); nothing was sent, make room and go on with --fusion-resume"
            ) from error

    def close(self) -> None:
        """Make everything durable and let go of the run; a second time does nothing."""
        self.bodies.close()
        self.journal.close()
        self.owner.close()


def call_row(scope: Scope, key: Key, facts: RequestFacts, host: str, request_sha: str) -> Row:
    """What the journal keeps of a call from the moment it is reserved."""
    row: Row = {
        "t": now_utc(),
        "scope": scope.stated(),
        "host": host,
        "dialect": facts.dialect,
        "model": facts.model,
        "parameters": dict(facts.parameters),
        "request": request_sha,
        "key": key.digest,
        "parts": dict(key.parts),
    }
    if facts.sent_model is not None:
        row["sent_model"] = facts.sent_model
    return row
