"""What is changed on a message that passes the door: the model's name on the way out, some headers on both ways."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import httpx2

from pytest_fusion_audit.metering.wire.base import with_model

if TYPE_CHECKING:
    from pytest_fusion_audit.metering.endpoints import Endpoint
    from pytest_fusion_audit.metering.wire.base import RequestFacts

#: They describe the encoding of a body that is decoded at the door.
_ENCODING = frozenset({b"content-encoding", b"content-length", b"transfer-encoding"})


def addressed(endpoint: Endpoint, facts: RequestFacts, body: bytes) -> tuple[RequestFacts, bytes]:
    """A request as its host is to get it: with the name by which this host knows the model.

    Key, price and journal keep the panel's name, ``facts.model``; what is sent instead is ``facts.sent_model``.

    Raises:
        UnlistedHostError: a listed host whose model map does not hold the model.
    """
    name = facts.model if facts.model is None else endpoint.model(facts.model)
    if name is None or name == facts.model:
        return facts, body
    return replace(facts, sent_model=name), with_model(body, name)


def forwarded(request: httpx2.Request, body: bytes, *, plain: bool) -> httpx2.Request:
    """The request as it leaves: a copy, so that the real key is not seen by whoever asked.

    ``plain`` asks for an uncompressed body: the chunks of a stream have to be read as they come.
    """
    gone = {b"content-length", b"host", b"accept-encoding"} if plain else {b"content-length", b"host"}
    headers = [(name, value) for name, value in request.headers.raw if name.lower() not in gone]
    if plain:
        headers.append((b"accept-encoding", b"identity"))
    return httpx2.Request(request.method, request.url, headers=headers, content=body, extensions=request.extensions)


def kept_headers(response: httpx2.Response, header: str, call: str) -> list[tuple[bytes, bytes]]:
    """Headers of a response as they are handed on, with one that names the call."""
    kept = [(name, value) for name, value in response.headers.raw if name.lower() not in _ENCODING]
    return [*kept, (header.encode(), call.encode())]
