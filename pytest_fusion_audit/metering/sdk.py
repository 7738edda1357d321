"""Both makers' SDKs behind the door, and what their responses and exceptions say.

The SDKs hold no key, take no address from the environment and never retry: `metering.retry` is the only policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2

from pytest_fusion_audit.errors import FusionAuditError
from pytest_fusion_audit.metering.retry import Reply
from pytest_fusion_audit.metering.transport import (
    CALL_EXTENSION,
    CALL_HEADER,
    LATENCY_EXTENSION,
    STORED_HEADER,
    UNSENT,
)
from pytest_fusion_audit.metering.wire.base import (
    ANTHROPIC_VERSION,
    ResponseFacts,
    StreamReader,
    is_event_stream,
    response_facts,
)

if TYPE_CHECKING:
    import anthropic
    import openai

    from pytest_fusion_audit.metering.models import Api
    from pytest_fusion_audit.metering.transport import MeteredTransport

OPENAI_URL = "https://api.openai.com/v1"
ANTHROPIC_URL = "https://api.anthropic.com"
#: A reasoning model may think for long; what is given up stays charged at its worst case.
TIMEOUT_S = 1_800.0
_PLACEHOLDER = "set-by-the-metered-door"


class _Shared(httpx2.AsyncBaseTransport):
    """The run's transport as one client sees it: a client that is closed does not close it for the others."""

    def __init__(self, transport: MeteredTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await self._transport.handle_async_request(request)


def _http_client(transport: MeteredTransport, timeout_s: float) -> httpx2.AsyncClient:
    timeout = httpx2.Timeout(timeout_s, connect=30.0)
    return httpx2.AsyncClient(transport=_Shared(transport), timeout=timeout, follow_redirects=False)


def openai_client(
    transport: MeteredTransport, *, base_url: str = OPENAI_URL, timeout_s: float = TIMEOUT_S
) -> openai.AsyncOpenAI:
    """The OpenAI SDK behind the door; it holds no key and takes no address from the environment.

    Args:
        transport: the run's transport; it stays open when the client is closed.
        base_url: ends in ``/v1``.
        timeout_s: longest silence of the other side.
    """
    import openai  # noqa: PLC0415 - 0.4 s

    return openai.AsyncOpenAI(
        base_url=base_url,
        api_key=_PLACEHOLDER,
        organization=None,
        max_retries=0,
        timeout=timeout_s,
        http_client=_http_client(transport, timeout_s),
    )


def anthropic_client(
    transport: MeteredTransport, *, base_url: str = ANTHROPIC_URL, timeout_s: float = TIMEOUT_S
) -> anthropic.AsyncAnthropic:
    """The Anthropic SDK behind the door; as `openai_client`, but ``base_url`` has no ``/v1``.

    It asks in the version `ANTHROPIC_VERSION` of the API, like batches.
    """
    import anthropic  # noqa: PLC0415 - 0.8 s

    return anthropic.AsyncAnthropic(
        base_url=base_url,
        api_key=_PLACEHOLDER,
        max_retries=0,
        timeout=timeout_s,
        default_headers={"anthropic-version": ANTHROPIC_VERSION},
        http_client=_http_client(transport, timeout_s),
    )


def read_failure(api: Api, error: Exception) -> Reply | None:
    """What an exception of an SDK, or of the HTTP client below it, says; None when it is no failed call.

    Raises:
        FusionAuditError: the door refused, and the SDK wrapped it.
    """
    cause = error.__cause__
    if isinstance(cause, FusionAuditError):
        raise cause from None
    response = getattr(error, "response", None)
    if isinstance(response, httpx2.Response):
        return read_reply(api, response)
    broken = error if isinstance(error, httpx2.TransportError) else cause
    if not isinstance(broken, httpx2.TransportError):
        return None
    name = type(broken).__name__
    facts = ResponseFacts(outcome="provider_error", error_code=name, error_message=f"no answer ({name})")
    request = getattr(error, "request", None)
    return Reply(
        facts=facts,
        status=None,
        call=request.extensions.get(CALL_EXTENSION) if isinstance(request, httpx2.Request) else None,
        sent=not isinstance(broken, UNSENT),
    )


def read_reply(api: Api, response: httpx2.Response) -> Reply:
    """What a response says, whole or streamed."""
    kind = response.headers.get("content-type")
    if is_event_stream(kind) and response.status_code < 400:
        reader = StreamReader(api, status=response.status_code)
        reader.feed(response.content)
        facts = reader.facts()
    else:
        facts = response_facts(api, response.status_code, kind, response.content)
    return Reply(
        facts=facts,
        status=response.status_code,
        headers=dict(response.headers),
        call=response.headers.get(CALL_HEADER),
        stored=STORED_HEADER in response.headers,
        latency_s=response.extensions.get(LATENCY_EXTENSION),
    )
