"""Files and batches of both makers, as the proxy serves them: it plays the provider towards whoever is pointed here.

A client's file never leaves this machine: its rows become calls of `batches.Batches`, metered like any other, and its
polls are answered from what is known here. Batches and files of a client live as long as the proxy; answers live in the
store, so that a batch that is submitted again after a restart buys only what is missing.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from starlette.responses import JSONResponse, Response

from pytest_fusion_audit.metering.batch_requests import wanted_calls
from pytest_fusion_audit.metering.forwarding import NotServedError
from pytest_fusion_audit.metering.limits import CostLimitExceeded
from pytest_fusion_audit.metering.proxy_batch_rows import (
    ENDPOINTS,
    Asking,
    BatchInputError,
    anthropic_rows,
    openai_asked,
    openai_rows,
    request_of,
    uploaded,
)
from pytest_fusion_audit.metering.proxy_batch_runs import Run, Runs, WakingClock
from pytest_fusion_audit.metering.proxy_batch_shapes import ClientBatch, ClientFile, kind_of, line_of, page, problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from starlette.requests import Request

    from pytest_fusion_audit.metering.attribution import Route
    from pytest_fusion_audit.metering.batch_requests import Wanted
    from pytest_fusion_audit.metering.proxy import Proxy
    from pytest_fusion_audit.metering.proxy_batch_rows import AskedRow
    from pytest_fusion_audit.metering.third_door import Maker
    from pytest_fusion_audit.metering.wire.base import Dialect

_TOGETHER = 100  # rows that are read before other requests get their turn
_BETAS = frozenset({"message-batches-2024-09-24"})  # says no more than the path does
_AGAIN = "submit the batch again: what is answered is stored and is not billed again"


class ProxyBatches:
    """Files and batches of one proxy.

    Args:
        proxy: whose upstreams, rules and transport hold here too.
        clock: time, and how waits are ended.
    """

    def __init__(self, proxy: Proxy, clock: WakingClock | None = None) -> None:
        self._proxy = proxy
        self._clock = clock or WakingClock()
        self._runs = Runs(proxy.transport, self._clock, proxy.faults)
        self._files: dict[str, ClientFile] = {}
        self._batches: dict[str, ClientBatch] = {}
        self._going: dict[str, Run] = {}
        self._writing: set[asyncio.Task[None]] = set()
        one, batch = r"/(?P<id>[^/]+)", "messages/batches"
        routes: tuple[tuple[str, str, Maker, Callable[..., Awaitable[Response]]], ...] = (
            ("POST", "files", "openai", self._upload),
            ("GET", "files", "openai", self._list_files),
            ("GET", f"files{one}", "openai", self._show_file),
            ("GET", f"files{one}/content", "openai", self._read_file),
            ("DELETE", f"files{one}", "openai", self._delete_file),
            ("POST", "batches", "openai", self._create_openai),
            ("GET", "batches", "openai", self._list_batches),
            ("GET", f"batches{one}", "openai", self._show_batch),
            ("POST", f"batches{one}/cancel", "openai", self._cancel),
            ("POST", batch, "anthropic", self._create_anthropic),
            ("GET", batch, "anthropic", self._list_batches),
            ("GET", f"{batch}{one}", "anthropic", self._show_batch),
            ("GET", f"{batch}{one}/results", "anthropic", self._read_results),
            ("POST", f"{batch}{one}/cancel", "anthropic", self._cancel),
            ("DELETE", f"{batch}{one}", "anthropic", self._delete_batch),
        )
        self._routes = [
            (re.compile(rf"{method} /v\d+(?:beta)?/{path}"), maker, handler) for method, path, maker, handler in routes
        ]

    async def answer(self, request: Request, route: Route) -> Response | None:
        """Answer a request for files or batches; None for any other.

        Raises:
            FusionAuditError: a refusal of the door; nothing was sent.
        """
        for pattern, maker, handler in self._routes:
            match = pattern.fullmatch(f"{request.method} {route.path}")
            if match is not None:
                try:
                    return await handler(request, route, maker, **match.groupdict())
                except BatchInputError as error:
                    message = self._scrubbed(str(error).encode()).decode("utf-8", "replace")
                    shown = problem(maker, error.status, message, error.param)
                    return JSONResponse(shown, error.status, {"x-should-retry": "false"})
        return None

    async def aclose(self) -> None:
        """Leave what is on its way to the next session."""
        await self._runs.aclose()
        await asyncio.gather(*self._writing, return_exceptions=True)

    async def _upload(self, request: Request, route: Route, maker: Maker) -> Response:  # noqa: ARG002 - as all handlers
        body = await request.body()
        upload = await asyncio.to_thread(uploaded, request.headers.get("content-type", ""), body)
        return JSONResponse(self._keep(upload.name, "batch", upload.content).shown())

    async def _list_files(self, request: Request, route: Route, maker: Maker) -> Response:  # noqa: ARG002
        purpose = request.query_params.get("purpose")
        return _listed(request, [file.shown() for file in self._files.values() if purpose in {None, file.purpose}])

    async def _show_file(self, request: Request, route: Route, maker: Maker, id: str) -> Response:  # noqa: A002, ARG002
        return JSONResponse(self._file(id).shown())

    async def _read_file(self, request: Request, route: Route, maker: Maker, id: str) -> Response:  # noqa: A002, ARG002
        return Response(self._file(id).content, media_type="application/octet-stream")

    async def _delete_file(self, request: Request, route: Route, maker: Maker, id: str) -> Response:  # noqa: A002, ARG002
        del self._files[self._file(id).id]
        return JSONResponse({"id": id, "object": "file", "deleted": True})

    def _file(self, name: str) -> ClientFile:
        file = self._files.get(name)
        if file is None:
            raise BatchInputError(f"no file {name} in this session of the proxy; upload it again", status=404)
        return file

    def _keep(self, name: str, purpose: str, content: bytes) -> ClientFile:
        file = ClientFile(f"file-{uuid4().hex}", name, purpose, content, self._now())
        self._files[file.id] = file
        return file

    async def _create_openai(self, request: Request, route: Route, maker: Maker) -> Response:
        asked = openai_asked(await _document(request))
        if "openai-beta" in request.headers:
            raise NotServedError("openai-beta: a batch cannot be asked for with trial features; nothing was sent")
        rows = openai_rows(self._file(asked.input_file).content, asked.endpoint)
        batch = ClientBatch(
            id=f"batch_{uuid4().hex}",
            maker=maker,
            created=self._now(),
            size=len(rows),
            endpoint=asked.endpoint,
            input_file=asked.input_file,
            metadata=asked.metadata,
        )
        return await self._created(batch, rows, self._asking(route, asked.endpoint, ENDPOINTS[asked.endpoint]))

    async def _create_anthropic(self, request: Request, route: Route, maker: Maker) -> Response:
        rows = anthropic_rows(await _document(request))
        betas = {beta.strip() for beta in request.headers.get("anthropic-beta", "").split(",")} - _BETAS - {""}
        if betas:
            raise NotServedError(f"anthropic-beta: {min(betas)} is not served in batches; nothing was sent")
        version = request.headers.get("anthropic-version")
        home = str(request.url).partition("/messages/batches")[0] + "/messages/batches"
        batch = ClientBatch(id=f"msgbatch_{uuid4().hex}", maker=maker, created=self._now(), size=len(rows), home=home)
        asking = self._asking(route, "/v1/messages", "anthropic.messages", version)
        return await self._created(batch, rows, asking)

    def _asking(self, route: Route, path: str, dialect: Dialect, version: str | None = None) -> Asking:
        upstreams = self._proxy.upstreams
        base = upstreams.get(route.role or "*") or upstreams.get("*")
        return Asking(path=path, dialect=dialect, role=route.role, base=base, version=version)

    async def _created(self, batch: ClientBatch, rows: Sequence[AskedRow], asking: Asking) -> Response:
        wanted = await self._wanted(rows, asking)
        try:
            run = await self._runs.begin(wanted, lambda run: self._ended(batch, run))
        except CostLimitExceeded as refusal:
            self._refused(wanted, refusal)
            raise
        self._batches[batch.id] = batch
        if run.over:
            await asyncio.gather(*self._writing)
        else:
            self._going[batch.id] = run
        return JSONResponse(batch.shown())

    async def _wanted(self, rows: Sequence[AskedRow], asking: Asking) -> list[Wanted]:
        """The calls of the rows, each priced at its worst; nothing is reserved yet."""
        proxy, wanted, unattributed = self._proxy, [], 0
        for number, row in enumerate(rows):
            if number % _TOGETHER == 0:
                await asyncio.sleep(0)
            request, not_sent = request_of(row, asking, proxy.attribution, proxy.third_door, proxy.scrubber)
            wanted += wanted_calls([request], proxy.transport.pricing)
            unattributed += request.scope.stage == "unknown"
            proxy.not_sent.update((row.document["model"], name) for name in not_sent)
        proxy.unattributed += unattributed
        return wanted

    def _ended(self, batch: ClientBatch, run: Run) -> None:
        task = asyncio.get_running_loop().create_task(self._write(batch, run))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _write(self, batch: ClientBatch, run: Run) -> None:
        """Put a batch's results into its maker's files; from then on it has ended."""
        if run.refusal is not None:
            self._refused(run.wanted, run.refusal)
        good: list[bytes] = []
        bad: list[bytes] = []
        try:
            results = await self._runs.results(run)
            for number, result in enumerate(results):
                if number % _TOGETHER == 0:
                    await asyncio.sleep(0)
                kind = kind_of(result)
                batch.counts[kind] = batch.counts.get(kind, 0) + 1
                (good if kind == "succeeded" else bad).append(self._scrubbed(line_of(batch.maker, result)))
        except Exception as error:  # noqa: BLE001 - a traceback could show a key; the run looks at `faults`
            self._proxy.faults.append(error)
            run.failure = f"a fault in the metering proxy ({type(error).__name__})"
        if run.failure is not None:
            batch.failure = self._scrubbed(run.failure.encode()).decode("utf-8", "replace")
        if batch.maker == "anthropic":
            batch.results = b"".join((*good, *bad))
        else:
            for name, lines in (("output", good), ("error", bad)):
                if lines:
                    batch.files[name] = self._keep(f"{batch.id}_{name}.jsonl", "batch_output", b"".join(lines)).id
        batch.ended = self._now()
        self._going.pop(batch.id, None)

    async def _list_batches(self, request: Request, route: Route, maker: Maker) -> Response:  # noqa: ARG002
        return _listed(request, [batch.shown() for batch in self._batches.values() if batch.maker == maker])

    async def _show_batch(self, request: Request, route: Route, maker: Maker, id: str) -> Response:  # noqa: A002, ARG002
        return JSONResponse(self._batch(maker, id).shown())

    async def _read_results(self, request: Request, route: Route, maker: Maker, id: str) -> Response:  # noqa: A002, ARG002
        return Response(self._ended_batch(maker, id).results, media_type="application/x-jsonl")

    async def _cancel(self, request: Request, route: Route, maker: Maker, id: str) -> Response:  # noqa: A002, ARG002
        batch = self._batch(maker, id)
        run = self._going.get(id)
        if run is not None and batch.cancelling is None:
            batch.cancelling = self._now()
            self._runs.cancel(run)
        return JSONResponse(batch.shown())

    async def _delete_batch(self, request: Request, route: Route, maker: Maker, id: str) -> Response:  # noqa: A002, ARG002
        del self._batches[self._ended_batch(maker, id).id]
        return JSONResponse({"id": id, "type": "message_batch_deleted"})

    def _batch(self, maker: Maker, name: str) -> ClientBatch:
        batch = self._batches.get(name)
        if batch is None or batch.maker != maker:
            raise BatchInputError(f"no batch {name} in this session of the proxy; {_AGAIN}", status=404)
        return batch

    def _ended_batch(self, maker: Maker, name: str) -> ClientBatch:
        batch = self._batch(maker, name)
        if batch.ended is None:
            raise BatchInputError(f"batch {name} has not ended yet; cancel it, or wait for it")
        return batch

    def _refused(self, wanted: Sequence[Wanted], refusal: CostLimitExceeded) -> None:
        """Note for whom a cap refused: those turns are censored, whatever the gateway makes of it."""
        scopes = {each.request.scope: None for each in wanted if each.request.scope.task is not None}
        self._proxy.refusals.extend((scope, refusal) for scope in scopes)
        for turn in {scope.turn for scope in scopes} - {None}:
            self._proxy.transport.calls.ledger.refused[str(turn)] = refusal

    def _scrubbed(self, text: bytes) -> bytes:
        return text if self._proxy.scrubber is None else self._proxy.scrubber.content(text)

    def _now(self) -> int:
        return int(self._clock.now())


async def _document(request: Request) -> Mapping[str, Any]:
    try:
        document = json.loads((await request.body()).decode())
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise BatchInputError("the body is not a JSON object in UTF-8")
    return document


def _listed(request: Request, entries: list[dict[str, Any]]) -> Response:
    asked = request.query_params
    newest_first = entries[::-1]
    after, before = asked.get("after") or asked.get("after_id"), asked.get("before_id")
    return JSONResponse(page(newest_first, after=after, before=before, limit=asked.get("limit")))
