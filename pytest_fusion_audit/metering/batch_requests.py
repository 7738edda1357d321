"""Requests for batches: what is asked for, whether it can be batched, and how it is divided into batches."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

from pytest_fusion_audit.metering import batch_anthropic, batch_openai
from pytest_fusion_audit.metering.batch_anthropic import AnthropicBatches
from pytest_fusion_audit.metering.batch_openai import OpenAIBatches
from pytest_fusion_audit.metering.batch_wire import BatchError, BatchHttp, Wire
from pytest_fusion_audit.metering.store import Key, key_of
from pytest_fusion_audit.metering.wire.base import dialect_of, request_facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_fusion_audit.metering.scope import Scope
    from pytest_fusion_audit.metering.settling import Pricing
    from pytest_fusion_audit.metering.transport import MeteredTransport
    from pytest_fusion_audit.metering.wire.base import RequestFacts

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
    """

    url: str
    body: bytes
    scope: Scope
    custom_id: str


@dataclass(slots=True)
class Wanted:
    """A request that was found fit for a batch, and how far it is.

    Attributes:
        request: what was asked for.
        key: key of its answer.
        facts: of the request.
        amount: worst case at the batch tariff, micro-dollars.
        call: id of the open call that is to answer it, None when it is to be sent.
        tries: batches it has been in.
    """

    request: BatchRequest
    key: Key
    facts: RequestFacts
    amount: int
    call: str | None = None
    tries: int = 0

    @property
    def host(self) -> str:
        """Host it goes to, as the journal names it."""
        return urlsplit(self.request.url).hostname or ""


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
    facts = request_facts("POST", parts.path, request.body)
    what = f"{request.custom_id}:"
    if not is_batchable(request.url):
        raise BatchError(f"{what} {parts.path} cannot be called in a batch; nothing was sent")
    if facts.stream:
        raise BatchError(f"{what} a stream cannot be asked for in a batch; nothing was sent, leave `stream` out")
    if facts.service_tier in _SYNCHRONOUS_TIERS:
        raise BatchError(f"{what} service_tier {facts.service_tier} and a batch exclude each other; nothing was sent")
    if not request.scope.reuse:
        raise BatchError(f"{what} a call that never takes a stored answer cannot be batched; nothing was sent")
    key = key_of(request.url, request.body, request.scope)
    amount = pricing.worst_case_of(parts.hostname or "", facts, batch=True)
    return Wanted(request, key, facts, amount)


def is_batchable(url: str) -> bool:
    """Whether a call to this URL can be made in a batch."""
    parts = urlsplit(url)
    dialect = dialect_of("POST", parts.path)
    return not parts.query and (dialect == "anthropic.messages" or url.endswith(_ENDS.get(dialect, "\n")))


def wire_of(url: str, transport: MeteredTransport) -> Wire:
    """How to speak to the provider of the batches of calls to this URL (`is_batchable`)."""
    dialect = dialect_of("POST", urlsplit(url).path)
    if dialect == "anthropic.messages":
        http = BatchHttp(transport.inner, transport.credentials, batch_anthropic.HEADERS)
        return AnthropicBatches(http, url)
    return OpenAIBatches(BatchHttp(transport.inner, transport.credentials), url.removesuffix(_ENDS[dialect]))


def divided(wanted: Iterable[Wanted]) -> list[str]:
    """A new batch id for each request: one batch holds one model at one URL, within the provider's limits."""
    batches: dict[tuple[str, str | None], tuple[str, int, int]] = {}
    ids = []
    for each in wanted:
        group = (each.request.url, each.facts.model)
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
