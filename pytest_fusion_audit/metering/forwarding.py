"""From what a client asked the proxy to what is sent: the upstream, the URL, the headers, the body, the way back."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2

from pytest_fusion_audit.errors import FusionAuditError
from pytest_fusion_audit.metering.handing_on import HandingOn
from pytest_fusion_audit.metering.keys import PLACEHOLDER
from pytest_fusion_audit.metering.scope import HEADER, Scope
from pytest_fusion_audit.metering.wire.base import ANTHROPIC_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_fusion_audit.metering.scrubbing import Scrubber
    from pytest_fusion_audit.metering.third_door import ThirdDoor
    from pytest_fusion_audit.metering.wire.base import Dialect

#: Headers that describe one hop, not the message.
HOP = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "content-length"}
)
#: Headers of the caller that never go on: the hop, placeholders for the real key, and what would compress an answer.
_NOT_FORWARDED = HOP | {"host", "expect", "authorization", "x-api-key", "api-key", "cookie", "accept-encoding", HEADER}
_ANTHROPIC_STYLE = [("anthropic-version", ANTHROPIC_VERSION), ("x-api-key", PLACEHOLDER)]


class NotServedError(FusionAuditError):
    """A path or a model that the proxy does not forward, because no call there can be metered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request of a client, without the prefix of its path.

    Attributes:
        method: HTTP method.
        path: ``/v1/…``.
        query: without the question mark.
        headers: as they came.
        body: as it came.
        dialect: dialect of method and path.
        document: the body as JSON with the real model id; None when it is not a request to a model.
        renamed: whether the model stood there under an alias.
    """

    method: str
    path: str
    query: str
    headers: Sequence[tuple[str, str]]
    body: bytes
    dialect: Dialect
    document: Mapping[str, Any] | None = None
    renamed: bool = False


@dataclass(frozen=True, slots=True)
class Forwarding:
    """A request on its way, and how its answer is handed on.

    Attributes:
        request: what the transport gets.
        handing_on: what is done to the answer.
        not_sent: parameters that the third door left out, because the model refuses them.
    """

    request: httpx2.Request
    handing_on: HandingOn
    not_sent: Mapping[str, Any] = field(default_factory=dict)


def forwarding(
    asked: Asked, scope: Scope, base: str | None, third_door: ThirdDoor, scrubber: Scrubber | None
) -> Forwarding:
    """Decide how a request goes on.

    Args:
        asked: what came.
        scope: what the call is for.
        base: base URL of the role's upstream, None without one.
        third_door: makers by ``provider/name`` ids; such an id goes there whatever the role's upstream is.
        scrubber: see `HandingOn`.

    Raises:
        NotServedError: no upstream. TranslationError, ForeignDialectError: see `ThirdDoor.passage`.
    """
    document = asked.document
    include_usage = _asks_for_usage(document)
    streamed_chat = asked.dialect == "openai.chat" and document is not None and document.get("stream") is True
    passage = None if document is None else third_door.passage(asked.dialect, asked.path, document)
    headers, query = _headers(asked), asked.query
    if passage is not None:
        base, path, content = passage.base, passage.path, encoded(passage.document)
    else:
        path = asked.path
        content = encoded(document) if document is not None and asked.renamed else asked.body
    translated = passage is not None and passage.translated
    if translated:
        gone = ("openai-", "x-stainless-")
        headers = [*(header for header in headers if not header[0].lower().startswith(gone)), *_ANTHROPIC_STYLE]
        query = ""
    if base is None:
        raise NotServedError(
            "no upstream is known for this role and model: take a role of this run in the base URL, or a model id of "
            "the form openai/… or anthropic/…; nothing was sent"
        )
    handing_on = HandingOn(
        scrubber,
        translated=translated,
        strip_usage=streamed_chat and not include_usage,
        include_usage=include_usage,
        created=int(time.time()),
    )
    request = httpx2.Request(
        asked.method, joined(base, path, query), headers=[*headers, (HEADER, scope.header())], content=content
    )
    return Forwarding(request, handing_on, passage.not_sent if passage is not None else {})


def listing(maker: str, base: str, scope: Scope, scrubber: Scrubber | None) -> Forwarding:
    """The request for a maker's list of models."""
    style = _ANTHROPIC_STYLE if maker == "anthropic" else []
    request = httpx2.Request("GET", joined(base, "/v1/models", ""), headers=[*style, (HEADER, scope.header())])
    plain = HandingOn(scrubber, translated=False, strip_usage=False, include_usage=False, created=0)
    return Forwarding(request, plain)


def joined(base: str, path: str, query: str) -> httpx2.URL:
    """URL of an upstream; a base that carries its version does not get a second one.

    >>> str(joined("https://gw.example/api/v1", "/v1/models", ""))
    'https://gw.example/api/v1/models'
    """
    trimmed = base.rstrip("/")
    version = path.split("/")[1]
    if trimmed.endswith(f"/{version}"):
        trimmed = trimmed[: -len(version) - 1]
    return httpx2.URL(f"{trimmed}{path}" + (f"?{query}" if query else ""))


def _headers(asked: Asked) -> list[tuple[str, str]]:
    headers = [(name, value) for name, value in asked.headers if name.lower() not in _NOT_FORWARDED]
    # The style stays the client's; the key is put in its place at the door.
    own_style = any(name.lower() == "x-api-key" for name, _ in asked.headers)
    return [*headers, ("x-api-key", PLACEHOLDER)] if own_style else headers


def encoded(document: Mapping[str, Any]) -> bytes:
    """A body with its characters as they are, as SDKs send it."""
    try:
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half a character, which only its escape can say
        return json.dumps(document, separators=(",", ":")).encode()


def _asks_for_usage(document: Mapping[str, Any] | None) -> bool:
    options = document.get("stream_options") if document is not None else None
    return isinstance(options, dict) and options.get("include_usage") is True
