"""A loopback reverse proxy in front of the metered transport: any software whose base URLs point here is metered.

One code path for both doors: a request becomes an httpx2 request with a scope and goes through the same transport as
our own clients' requests. What the transport refuses is answered with the refusal's facts and nothing is sent. The
proxy never retries, and it forwards nothing that cannot be metered.
"""

from __future__ import annotations

import json
import re
import secrets
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from pytest_fusion_audit.errors import FusionAuditError
from pytest_fusion_audit.metering.attribution import route_of
from pytest_fusion_audit.metering.forwarding import HOP, Asked, Forwarding, NotServedError, forwarding, listing
from pytest_fusion_audit.metering.ledger import CostLimitExceeded, RunStoppedError
from pytest_fusion_audit.metering.proxy_batches import ProxyBatches
from pytest_fusion_audit.metering.store import ReplayMissError
from pytest_fusion_audit.metering.third_door import ThirdDoor, models_listed
from pytest_fusion_audit.metering.wire.base import dialect_of, is_event_stream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from starlette.types import Receive, Send
    from starlette.types import Scope as AsgiScope

    from pytest_fusion_audit.metering.attribution import Attribution
    from pytest_fusion_audit.metering.handing_on import HandingOn
    from pytest_fusion_audit.metering.scope import Scope
    from pytest_fusion_audit.metering.scrubbing import Scrubber
    from pytest_fusion_audit.metering.transport import MeteredTransport

_SERVED = re.compile(
    r"(?:POST /v\d+(?:beta)?/(?:chat/completions|responses|messages)|GET /v\d+(?:beta)?/models(?:/.+)?)"
)
_NOT_HANDED_ON = HOP | {"set-cookie", "content-encoding"}


@dataclass(slots=True)
class Proxy:
    """The application. It belongs to the event loop that serves it; its transport has to belong to the same.

    A client that hangs up ends nothing: the transport finishes the call, and its ``aclose`` waits for it.

    Attributes:
        transport: the one metered transport.
        upstreams: role -> base URL of the provider behind it (``https://api.openai.com``); ``*`` is the fallback.
        attribution: rules of the target that is pointed here.
        third_door: makers by ``provider/name`` ids.
        scrubber: takes keys out of what an upstream says before a client sees it.
        token: what every path has to carry; other callers get 404 and spend nothing.
        unattributed: calls of stage ``unknown``.
        refusals: what was refused, and for whom; a turn with a refusal of the cap is ``censored_budget``.
        not_sent: (model, parameter) -> how often the third door left it out, because the model refuses it.
        faults: what went wrong inside the proxy itself; empty unless there is a fault in this tool or a full disk.
        batches: files and batches of both makers.
    """

    transport: MeteredTransport
    upstreams: Mapping[str, str]
    attribution: Attribution
    third_door: ThirdDoor = field(default_factory=ThirdDoor)
    scrubber: Scrubber | None = None
    token: str = field(default_factory=lambda: secrets.token_urlsafe(18))
    unattributed: int = 0
    refusals: list[tuple[Scope, FusionAuditError]] = field(default_factory=list)
    not_sent: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: list[Exception] = field(default_factory=list)
    batches: ProxyBatches = field(init=False)

    def __post_init__(self) -> None:
        self.batches = ProxyBatches(self)

    def application(self) -> Starlette:
        """The ASGI application."""
        return Starlette(routes=[Route("/{path:path}", self._handle, methods=["GET", "POST", "DELETE"])])

    async def _handle(self, request: Request) -> Response:
        raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
        route = route_of(raw.decode("ascii", "replace"))
        if route is None or not secrets.compare_digest(route.token, self.token):
            return _problem(404, "unknown_route", "this proxy serves one run; its base URLs carry the run's token")
        scope = self.attribution.scope_of(route.role, None, b"")
        try:
            answer = await self.batches.answer(request, route)
            if answer is None:
                asked, alias_stage = await self._asked(request, route.path)
                scope = self.attribution.scope_of(route.role, alias_stage, asked.body)
                answer = await self._served(asked, route.role, scope)
        except FusionAuditError as error:
            return self._refusal(scope, error)
        except httpx2.TransportError as error:
            return _problem(502, "upstream_unreachable", f"no answer from the upstream ({type(error).__name__})")
        except ClientDisconnect:
            return Response(status_code=499)  # gone before it had asked; nobody reads this
        except Exception as error:  # noqa: BLE001 - a traceback could show a key; the run looks at `faults`
            self.faults.append(error)
            return _problem(500, "proxy_fault", f"a fault in the metering proxy ({type(error).__name__})")
        return answer

    async def _asked(self, request: Request, path: str) -> tuple[Asked, str | None]:
        """What was asked, and the stage that an alias names."""
        body = await request.body()
        document, alias_stage, renamed = self._read(body)
        asked = Asked(
            method=request.method,
            path=path,
            query=request.url.query,
            headers=request.headers.items(),
            body=body,
            dialect=dialect_of(request.method, path),
            document=document,
            renamed=renamed,
        )
        return asked, alias_stage

    def _read(self, body: bytes) -> tuple[Mapping[str, Any] | None, str | None, bool]:
        """The request as JSON with the real model id, the stage that an alias names, and whether it was an alias."""
        try:
            document = json.loads(body.decode()) if body else None
        except (ValueError, RecursionError):
            return None, None, False  # the transport says what is wrong with it
        if not isinstance(document, dict) or not isinstance(document.get("model"), str):
            return None, None, False
        model, stage = self.attribution.real_model(document["model"])
        return {**document, "model": model}, stage, model != document["model"]

    async def _served(self, asked: Asked, role: str | None, scope: Scope) -> Response:
        if not _SERVED.fullmatch(f"{asked.method} {asked.path}"):
            raise NotServedError(
                f"{asked.method} {asked.path} cannot be metered, so it was not forwarded; this proxy serves chat "
                "completions, responses, messages, models, and files and batches of these"
            )
        base = self.upstreams.get(role or "*") or self.upstreams.get("*")
        if asked.dialect == "openai.models":
            if base is None and self.third_door.bases:
                return await self._models(scope)
        elif scope.stage == "unknown":
            self.unattributed += 1
        going = forwarding(asked, scope, base, self.third_door, self.scrubber)
        self.not_sent.update((str((asked.document or {})["model"]), name) for name in going.not_sent)
        return await self._answer(going)

    async def _answer(self, going: Forwarding) -> Response:
        answer = await self.transport.handle_async_request(going.request)
        headers = {name: value for name, value in answer.headers.items() if name.lower() not in _NOT_HANDED_ON}
        if self.scrubber is not None:
            headers = {name: self.scrubber.text(value) for name, value in headers.items()}
        if "request-id" in headers:
            headers.setdefault("x-request-id", headers["request-id"])
        if is_event_stream(headers.get("content-type")) and answer.status_code < 400:
            return _Streamed(answer, self._handed_on(answer, going.handing_on), headers)
        body = going.handing_on.whole(answer.status_code, await answer.aread())
        return Response(body, answer.status_code, headers)

    async def _handed_on(self, answer: httpx2.Response, handing_on: HandingOn) -> AsyncIterator[bytes]:
        """Chunks as they come. An upstream's stream that breaks off breaks off here too."""
        steps = handing_on.stream()
        try:
            async for chunk in answer.aiter_bytes():
                if out := steps.feed(chunk):
                    yield out
        except httpx2.TransportError:
            raise
        except Exception as error:
            self.faults.append(error)
            raise
        if out := steps.finish():
            yield out

    async def _models(self, scope: Scope) -> Response:
        """The models of all makers in one list; an error of one of them is handed on as it is."""
        listed = []
        for maker, base in self.third_door.bases.items():
            answer = await self._answer(listing(maker, base, scope, self.scrubber))
            if answer.status_code >= 400:
                return answer
            listed += models_listed(maker, json.loads(bytes(answer.body)))
        return JSONResponse({"object": "list", "data": listed})

    def _refusal(self, scope: Scope, error: FusionAuditError) -> Response:
        self.refusals.append((scope, error))
        message = str(error) if self.scrubber is None else self.scrubber.text(str(error))
        if isinstance(error, CostLimitExceeded):
            return _problem(402, "cost_limit_exceeded", message, **error.facts())
        if isinstance(error, RunStoppedError):
            return _problem(402, "run_stopped", message)
        if isinstance(error, ReplayMissError):
            return _problem(424, "replay_miss", message)  # not 409, which SDKs retry
        return _problem(400, "refused", message)


class _Streamed(StreamingResponse):
    """A stream on its way to the client; however that ends, the transport is told and reads on by itself."""

    def __init__(self, answer: httpx2.Response, chunks: AsyncIterator[bytes], headers: Mapping[str, str]) -> None:
        super().__init__(chunks, answer.status_code, headers)
        self._answer = answer

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._answer.aclose()


def _problem(status: int, code: str, message: str, **facts: Any) -> JSONResponse:
    """An error in the shape both SDKs read, marked as the door's own; SDKs are told not to try a refusal again."""
    error = {"type": "fusion_audit", "code": code, "message": message, **facts}
    headers = {} if status >= 500 else {"x-should-retry": "false"}
    return JSONResponse({"type": "error", "error": error}, status, headers)
