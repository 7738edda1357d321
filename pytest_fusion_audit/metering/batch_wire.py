"""What both makers' batches have in common: rows, looks, and the sending of everything that is not a model call.

Files and batches are asked for by plain requests through the inner transport of the metered door, under the same rules
for hosts and keys. The model calls inside a batch are metered by ``metering.batches`` before anything is sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import httpx2

from pytest_fusion_audit.errors import FusionAuditError

if TYPE_CHECKING:
    from pytest_fusion_audit.metering.batch_book import Batch
    from pytest_fusion_audit.metering.transport import Credentials

_TIMEOUT = httpx2.Timeout(120.0, connect=20.0)
_STOPS = frozenset({401, 402, 403})
_CODE = re.compile(r"[a-z][a-z0-9_]{0,59}")
_QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_error"})


class BatchError(FusionAuditError):
    """Requests that cannot be sent as a batch; nothing was sent."""


class BatchAccessError(FusionAuditError):
    """The provider refuses the key, or there is no money left on the account: nothing that waits would change that."""


class NotNowError(FusionAuditError):
    """The provider did not answer, or is busy: nothing is known, try again later."""


class BusyError(NotNowError):
    """The provider refused for now and did nothing (429)."""


class RefusedError(FusionAuditError):
    """The provider refused, and would again. ``status`` and ``code`` as answered; 404 = there is no such thing."""

    def __init__(self, what: str, status: int, code: str | None) -> None:
        self.status = status
        self.code = code or f"status_{status}"
        super().__init__(f"{what}: answered {status} ({self.code})")


@dataclass(frozen=True, slots=True)
class Line:
    """One request as it goes into a batch; ``custom_id`` is the id of its call in the journal."""

    custom_id: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """One row of results. ``status`` 0 = the request was never run (expired, cancelled)."""

    custom_id: str
    status: int
    body: Mapping[str, Any] | None = None
    code: str | None = None
    request_id: str | None = None

    @property
    def answered(self) -> bool:
        """Whether it holds an answer, and so may have been billed."""
        return 200 <= self.status < 400 and self.body is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a provider says about a batch.

    Attributes:
        ended: no row will be added any more.
        answered: number of requests it says it has answered, None when it does not say.
        failure: code of what kept the whole batch from running.
        results: what to ask `Wire.results` for.
        files: what to delete once everything is read.
    """

    ended: bool
    answered: int | None = None
    failure: str | None = None
    results: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Results:
    """Rows in any order, and how many lines could not be read (a file that was cut on its way)."""

    rows: Sequence[Result]
    unreadable: int


#: An id, ``absent`` (no such batch can be seen), or ``unclear`` (one that may be ours has not ended yet).
Found = tuple[Literal["found", "absent", "unclear"], str | None]


class Wire(Protocol):
    """One maker's batches. Every method raises the errors of `BatchHttp.send`."""

    async def prepare(self, batch: Batch, lines: Sequence[Line], *, again: bool) -> str | None:
        """Upload the input; its file's id. ``again`` = an earlier attempt may have left a file: remove it first."""

    async def create(self, batch: Batch, lines: Sequence[Line]) -> str:
        """Ask for the batch; the provider's id."""

    async def find(self, batch: Batch, known: set[str]) -> Found:
        """Look for a batch that was asked for and whose id is not known. ``known`` = ids of our other batches."""

    async def look(self, batch: Batch) -> Look:
        """How far it is."""

    async def cancel(self, batch: Batch) -> None:
        """Ask the provider to run no further row of it."""

    async def results(self, look: Look) -> Results:
        """Rows of a batch that has ended."""

    async def delete(self, what: str) -> None:
        """Delete something of `Look.files`; gone already is well."""


class BatchHttp:
    """Sends requests that are not model calls.

    Args:
        inner: transport that really sends.
        credentials: hosts and keys.
        headers: of every request.
    """

    def __init__(
        self, inner: httpx2.AsyncBaseTransport, credentials: Credentials, headers: Mapping[str, str] | None = None
    ) -> None:
        self._inner = inner
        self._credentials = credentials
        self._headers = dict(headers or {})

    def check(self, url: str) -> None:
        """Check that this host may be called and that there is a key for it.

        Raises:
            UnlistedHostError, KeyMissingError: see the door's credentials.
        """
        self._credentials.authorise(httpx2.Request("GET", url, headers=self._headers))

    async def send(self, method: str, url: str, **content: Any) -> bytes:
        """Send a request and return the body of a good answer.

        Args:
            method: HTTP method.
            url: whole URL.
            content: ``params``, ``json``, ``data`` and ``files`` as httpx2 takes them.

        Raises:
            UnlistedHostError, KeyMissingError: nothing was sent.
            BatchAccessError, BusyError, NotNowError, RefusedError: by what came back.
        """
        request = httpx2.Request(
            method, url, headers=self._headers, extensions={"timeout": _TIMEOUT.as_dict()}, **content
        )
        await request.aread()
        self._credentials.authorise(request)
        what = f"{method} {request.url.path} at {request.url.host}"
        try:
            response = await self._inner.handle_async_request(request)
            body = await response.aread()
        except httpx2.ConnectError as error:
            raise BusyError(f"{what}: {type(error).__name__}") from None
        except httpx2.TransportError as error:
            raise NotNowError(f"{what}: {type(error).__name__}") from None
        if 200 <= response.status_code < 300:
            return body
        code = _code(body)
        if response.status_code in _STOPS or code in _QUOTA_CODES:
            raise BatchAccessError(
                f"{what}: answered {response.status_code} ({code}): the key of this host is refused or its account "
                "has no money left; correct that and go on with --fusion-resume"
            )
        if response.status_code == 429:
            raise BusyError(f"{what}: answered 429 ({code})")
        if response.status_code >= 500 or response.status_code in {408, 409}:
            raise NotNowError(f"{what}: answered {response.status_code} ({code})")
        raise RefusedError(what, response.status_code, code)

    async def ask(self, method: str, url: str, **content: Any) -> dict[str, Any]:
        """Like `send`, for answers that are a JSON object; anything else is no answer (`NotNowError`)."""
        body = await self.send(method, url, **content)
        try:
            value = json.loads(body)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise NotNowError(f"{method} {httpx2.URL(url).path}: the answer is not a JSON object")
        return value


def objects(data: bytes) -> Iterator[dict[str, Any] | None]:
    """The objects of a JSONL file; None for every line that is none."""
    for line in data.split(b"\n"):
        if line.strip():
            try:
                value = json.loads(line)
            except ValueError:
                value = None
            yield value if isinstance(value, dict) else None


def listed(page: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The objects on one page of a list."""
    data = page.get("data")
    return [each for each in data if isinstance(each, dict)] if isinstance(data, list) else []


def field_of(value: Any, *path: str) -> Any:
    """What stands under nested names, None where anything on the way is missing."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def text_of(value: Any, *path: str) -> str | None:
    """A string under nested names, at most 80 characters of it; None where there is none."""
    found = field_of(value, *path)
    return found[:80] if isinstance(found, str) and found else None


def code_of(value: Any, *path: str) -> str | None:
    """An error's code under nested names: one word of lower-case letters, never somebody's free text (or a key)."""
    found = field_of(value, *path)
    return found if isinstance(found, str) and _CODE.fullmatch(found) else None


def _code(body: bytes) -> str | None:
    found = next(objects(body.replace(b"\n", b" ")), None)
    return code_of(found, "error", "code") or code_of(found, "error", "type")
