"""Requests for batches: what is asked for, whether it can be batched, and how it is divided into batches."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

import httpx2

from pytest_fusion_audit.errors import FusionAuditError
from pytest_fusion_audit.metering import batch_anthropic, batch_openai
from pytest_fusion_audit.metering.batch_anthropic import AnthropicBatches
from pytest_fusion_audit.metering.batch_openai import OpenAIBatches
from pytest_fusion_audit.metering.batch_wire import BatchError, BatchHttp, Wire
from pytest_fusion_audit.metering.hosts import host_of
from pytest_fusion_audit.metering.passing import addressed
from pytest_fusion_audit.metering.store import Key, key_of
from pytest_fusion_audit.metering.wire.base import dialect_of, request_facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_fusion_audit.metering.scope import Scope
    from pytest_fusion_audit.metering.settling import Pricing
    from pytest_fusion_audit.metering.transport import MeteredTransport
    from pytest_fusion_audit.metering.wire.base import Dialect, RequestFacts

#: What stands after an OpenAI base URL, by dialect.
_ENDS = {"openai.chat": "/chat/completions", "openai.responses": "/responses"}
_SYNCHRONOUS_TIERS = frozenset({"flex", "priority", "fast"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRequest:
    """One call to be made in a batch.

    Attributes:
        url: where it would go by itself, ``https://api.openai.com/v1/chat/completions``.
        body: its JSON body, as it would be sent by itself.
        scope: what it is for. With url and body it makes the key of the answer, as for any call.
        custom_id: the caller's name for it, unique in one `Batches.run`. The provider never sees it: on the wire the
            id of the call in the journal stands in its place.
        version: of the API (``anthropic-version``), where whoever asks names one; it is part of the key.
    """

    url: str
    body: bytes
    scope: Scope
    custom_id: str
    version: str | None = None


@dataclass(slots=True)
class Wanted:
    """A request that was found fit for a batch, and how far it is.

    Attributes:
        request: what was asked for.
        key: key of its answer.
        facts: of the request.
        amount: worst case at the batch tariff, micro-dollars.
        host: where it goes, as the journal names it.
        sent: its body as it goes out, see `address`.
        call: id of the open call that is to answer it, None when it is to be sent.
        tries: batches it has been in.
    """

    request: BatchRequest
    key: Key
    facts: RequestFacts
    amount: int
    host: str
    sent: bytes
    call: str | None = None
    tries: int = 0


def wanted_calls(requests: Sequence[BatchRequest], pricing: Pricing) -> list[Wanted]:
    """Read requests; nothing is reserved yet.

    Raises:
        BatchError: a request that no batch takes, a name given twice, or requests of several phases.
        WireError, UnknownPriceError, UnboundedRequestError: as for any call.
    """
    if len({request.custom_id for request in requests}) < len(requests):
        raise BatchError("two requests of one batch have the same custom_id; nothing was sent")
    if len({request.scope.phase for request in requests}) > 1:
        raise BatchError("the requests of one batch are of several phases; nothing was sent, run one phase at a time")
    return [_wanted(request, pricing) for request in requests]


def _wanted(request: BatchRequest, pricing: Pricing) -> Wanted:
    parts = urlsplit(request.url)
    what = f"{request.custom_id}:"
    with saying(what):
        facts = request_facts("POST", parts.path, request.body)
    if not is_batchable(request.url):
        raise BatchError(f"{what} {parts.path} cannot be called in a batch; nothing was sent")
    if facts.stream:
        raise BatchError(f"{what} a stream cannot be asked for in a batch; nothing was sent, leave `stream` out")
    if facts.service_tier in _SYNCHRONOUS_TIERS:
        raise BatchError(f"{what} service_tier {facts.service_tier} and a batch exclude each other; nothing was sent")
    if not request.scope.reuse:
        raise BatchError(f"{what} a call that never takes a stored answer cannot be batched; nothing was sent")
    host = host_of(request.url)
    # A call by itself is to find the answer, so it has the header fields that the maker's SDK would send.
    key = key_of(request.url, request.body, request.scope, _headers(facts.dialect, request.version))
    with saying(what):
        amount = pricing.worst_case_of(host, facts, batch=True)
    return Wanted(request, key, facts, amount, host, request.body)


def _headers(dialect: Dialect, version: str | None) -> Mapping[str, str]:
    """Header fields of every request of a batch."""
    if dialect != "anthropic.messages":
        return {}
    return batch_anthropic.HEADERS | ({} if version is None else {"anthropic-version": version})


@contextmanager
def saying(what: str) -> Iterator[None]:
    """Let an error say which of many requests it is about."""
    try:
        yield
    except FusionAuditError as error:
        error.args = (f"{what} {error}",)
        raise


def address(wanted: Iterable[Wanted], transport: MeteredTransport) -> None:
    """Check where requests go, before anything is reserved, and name their models as their hosts know them.

    Raises:
        UnlistedHostError: a host that may not be called, or that knows no such model. KeyMissingError: no key for it.
    """
    http = BatchHttp(transport.inner, transport.credentials)
    checked: set[str] = set()
    for each in wanted:
        if each.request.url not in checked:
            http.check(each.request.url)
            checked.add(each.request.url)
        endpoint = transport.credentials.endpoint_of(httpx2.URL(each.request.url))
        each.facts, each.sent = addressed(endpoint, each.facts, each.request.body)


def is_batchable(url: str) -> bool:
    """Whether a call to this URL can be made in a batch."""
    parts = urlsplit(url)
    dialect = dialect_of("POST", parts.path)
    return not parts.query and (dialect == "anthropic.messages" or url.endswith(_ENDS.get(dialect, "\n")))


def wire_of(url: str, transport: MeteredTransport, version: str | None = None) -> Wire:
    """How to speak to the provider of the batches of calls to this URL (`is_batchable`), at this version of its API."""
    dialect = dialect_of("POST", urlsplit(url).path)
    if dialect == "anthropic.messages":
        http = BatchHttp(transport.inner, transport.credentials, _headers(dialect, version))
        return AnthropicBatches(http, url)
    return OpenAIBatches(BatchHttp(transport.inner, transport.credentials), url.removesuffix(_ENDS[dialect]))


def divided(wanted: Iterable[Wanted]) -> list[str]:
    """A new batch id for each request: one model at one URL and version, within the provider's limits."""
    batches: dict[tuple[str | None, ...], tuple[str, int, int]] = {}
    ids = []
    for each in wanted:
        group = (each.request.url, each.request.version, each.facts.model)
        of = batch_anthropic if each.facts.dialect == "anthropic.messages" else batch_openai
        size = (
            len(json.dumps(json.loads(each.request.body), ensure_ascii=False).encode()) + 256
        )  # and what goes round it
        name, rows, taken = batches.get(group, ("", 0, 0))
        if not name or rows >= of.MOST_ROWS or taken + size > of.MOST_BYTES:
            name, rows, taken = uuid4().hex, 0, 0
        batches[group] = (name, rows + 1, taken + size)
        ids.append(name)
    return ids
