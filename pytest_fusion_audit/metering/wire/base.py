"""The door to the wire formats: which dialect a request speaks, its facts, its response's facts, its stream.

Everybody outside this package imports from here. Types live in ``wire.facts``, one module per dialect beside it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from pytest_fusion_audit.metering.wire import anthropic_messages, openai_chat, openai_responses
from pytest_fusion_audit.metering.wire.facts import (
    ANTHROPIC_VERSION,
    CacheWrite,
    Dialect,
    RequestFacts,
    ResponseFacts,
    WireError,
)
from pytest_fusion_audit.metering.wire.shapes import unreadable
from pytest_fusion_audit.metering.wire.sse import Event, SseReader

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ANTHROPIC_VERSION",
    "CacheWrite",
    "Dialect",
    "RequestFacts",
    "ResponseFacts",
    "StreamReader",
    "WireError",
    "dialect_of",
    "is_event_stream",
    "read_response",
    "request_facts",
    "response_facts",
    "with_model",
    "with_usage",
]


class _Stream(Protocol):
    ended: bool

    def take(self, event: str | None, data: Mapping[str, Any], /) -> None: ...
    def done(self) -> None: ...
    def facts(self) -> ResponseFacts: ...


class _DialectModule(Protocol):
    def request(self, body: Mapping[str, Any], raw: bytes) -> RequestFacts: ...
    def response(self, body: Mapping[str, Any], status: int) -> ResponseFacts: ...
    def Stream(self, status: int) -> _Stream: ...  # noqa: N802 - a class of the module


_DIALECTS: dict[str, _DialectModule] = {
    "openai.chat": openai_chat,
    "openai.responses": openai_responses,
    "anthropic.messages": anthropic_messages,
}
#: A body that is no stream although it was announced as one is kept up to here, to say what it was.
_KEPT_BYTES = 65_536


def dialect_of(method: str, path: str) -> Dialect:
    """Dialect by method and the end of the path, whatever stands before it (``/v1``, ``/s/<token>/<role>``).

    >>> dialect_of("POST", "/s/tok/judge/v1/chat/completions"), dialect_of("POST", "/v1/messages/count_tokens")
    ('openai.chat', 'other')
    """
    parts = path.partition("?")[0].rstrip("/").split("/")
    last, before = parts[-1], parts[-2] if len(parts) > 1 else ""
    if method.upper() == "POST":
        if last == "completions" and before == "chat":
            return "openai.chat"
        if last == "responses":
            return "openai.responses"
        if last == "messages" and "threads" not in parts:
            return "anthropic.messages"
    elif "models" in {last, before}:
        return "openai.models"
    return "other"


def request_facts(method: str, path: str, body: bytes) -> RequestFacts:
    """Facts of a request; ``dialect`` is ``other`` for a path no dialect knows (its body is not read).

    Raises:
        WireError: the body of a known path is not a JSON object in UTF-8, or a limit in it is not a number.
    """
    dialect = dialect_of(method, path)
    module = _DIALECTS.get(dialect)
    if module is None:
        return RequestFacts(dialect=dialect, model=None, max_output_tokens=None, stream=False, prompt_bytes=len(body))
    return module.request(_object(body, path), body)


def _object(body: bytes, path: str) -> dict[str, Any]:
    try:
        # Text first: json.loads of bytes would also take UTF-16 and lone surrogates.
        value = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise WireError(f"the body of a request to {path} is not JSON in UTF-8 ({error}); nothing was sent") from None
    if not isinstance(value, dict):
        raise WireError(f"the body of a request to {path} is not a JSON object; nothing was sent")
    return value


def response_facts(
    dialect: Dialect, status: int, content_type: str | None, body: bytes, *, gateway: bool = False
) -> ResponseFacts:
    """Facts of a whole (not streamed) response; never raises.

    An error of the provider (status >= 400) is ``provider_error``, or ``context_length`` when it says so. A 200 that
    is not an answer (HTML, an error object, no choices) is ``pipeline_error``. ``gateway`` = the other side is the
    system under audit: then every non-answer is its ``pipeline_error`` (``error_code`` still says what kind).
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return _blamed(unreadable(status, content_type, body), gateway=gateway)
    return read_response(dialect, status, value, gateway=gateway)


def read_response(dialect: Dialect, status: int, body: Mapping[str, Any], *, gateway: bool = False) -> ResponseFacts:
    """Facts of a response body that is parsed already, such as a row of a batch's output file; never raises."""
    module = _DIALECTS.get(dialect)
    if module is None:
        return ResponseFacts(outcome="pipeline_error" if status >= 400 else "answered")
    facts = module.response(body, status)
    if status >= 400 and facts.outcome not in {"provider_error", "context_length", "refused"}:
        # An error status is no answer, whatever the body looks like.
        facts = replace(facts, outcome="provider_error", error_code=facts.error_code or f"status_{status}")
    return _blamed(facts, gateway=gateway)


def _blamed(facts: ResponseFacts, *, gateway: bool) -> ResponseFacts:
    if gateway and facts.outcome in {"provider_error", "context_length"}:
        return replace(facts, outcome="pipeline_error")
    return facts


def is_event_stream(content_type: str | None) -> bool:
    """Whether a response is a stream of server-sent events, by its content type."""
    return content_type is not None and content_type.partition(";")[0].strip().lower() == "text/event-stream"


class StreamReader:
    """Reads a stream of server-sent events in any chunking, and tells the same facts as a whole response would.

    ``complete`` becomes True when the dialect's last event has arrived (``[DONE]``, ``response.completed`` and its
    kin, ``message_stop``). A stream that is cut before its finish reason is ``provider_error`` (code ``stream_cut``),
    and so is one that carries an error event, whatever its status was; ``gateway`` turns both into ``pipeline_error``.
    """

    def __init__(self, dialect: Dialect, *, status: int = 200, gateway: bool = False) -> None:
        self._dialect = dialect
        self._status = status
        self._gateway = gateway
        self._sse = SseReader()
        module = _DIALECTS.get(dialect)
        self._stream: _Stream | None = None if module is None else module.Stream(status)
        self._raw: list[bytes] | None = []  # until the first event
        self._raw_size = 0

    @property
    def complete(self) -> bool:
        """Whether the last event has arrived."""
        return self._stream is not None and self._stream.ended

    def feed(self, chunk: bytes) -> bool:
        """Take bytes; True when this chunk holds the last event (settle before handing it on)."""
        before = self.complete
        if self._raw is not None and self._raw_size < _KEPT_BYTES:
            self._raw.append(chunk[:_KEPT_BYTES])
            self._raw_size += len(chunk)
        for event in self._sse.feed(chunk):
            self._take(event)
        return self.complete and not before

    def facts(self) -> ResponseFacts:
        """Facts of what has arrived so far; ``usage`` is None until the stream has stated it for a finished answer."""
        pending = self._sse.pending()
        if pending is not None and self._take(pending):
            self._sse.drop_pending()  # a last event without its blank line
        if self._stream is None:
            return ResponseFacts(outcome="pipeline_error" if self._status >= 400 else "answered")
        if self._raw is not None:
            return response_facts(self._dialect, self._status, None, b"".join(self._raw), gateway=self._gateway)
        return _blamed(self._stream.facts(), gateway=self._gateway)

    def _take(self, event: Event) -> bool:
        """Take one event; False when it holds nothing that can be read."""
        if self._stream is None:
            return False
        if event.data.strip() == b"[DONE]":
            self._stream.done()
            self._raw = None
            return True
        values = [value for value in _values(event.data) if isinstance(value, dict)]
        for value in values:
            self._raw = None
            self._stream.take(event.name, value)
        return bool(values)


def _values(data: bytes) -> list[Any]:
    """The JSON of an event; of each of its lines when a server forgot the blank lines between events."""
    try:
        return [json.loads(data)]
    except (ValueError, RecursionError):
        lines = data.split(b"\n")
        return [] if len(lines) == 1 else [value for line in lines for value in _values(line)]


def with_usage(dialect: Dialect, body: bytes) -> bytes:
    """The body with ``stream_options.include_usage`` where an OpenAI chat stream does not ask for it, else unchanged.

    Raises:
        WireError: the body is not a JSON object.
    """
    if dialect != "openai.chat":
        return body
    try:
        return openai_chat.with_usage(body)
    except (ValueError, RecursionError) as error:
        raise WireError(f"the body of a streamed chat completion is not JSON ({error}); nothing was sent") from None


def with_model(body: bytes, model: str) -> bytes:
    """The body asking for its model by another name; every other field stays.

    Args:
        body: a JSON object, as `request_facts` has read it.
        model: the other name.

    >>> with_model(b'{"model": "gpt-5.5", "n": 1}', "vendor/gpt")
    b'{"model":"vendor/gpt","n":1}'
    """
    return json.dumps({**json.loads(body), "model": model}, separators=(",", ":")).encode("ascii")
