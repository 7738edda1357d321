"""Reading JSON that somebody else wrote: counts, text blocks, error objects, and bodies that are no answer at all."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.metering.wire.facts import ERROR_EXTRACT, ResponseFacts, WireError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_fusion_audit.evidence.records import Outcome
    from pytest_fusion_audit.metering.usage import Usage

_TOO_LONG = re.compile(
    r"prompt is too long|exceeds? (the )?(model's )?(maximum )?context|context (window|length|limit)|"
    r"maximum context length|input is too long",
    re.IGNORECASE,
)
_CONTEXT_CODES = frozenset({"context_length_exceeded", "request_too_large", "string_above_max_length"})
_REFUSED_CODES = frozenset({"content_filter", "content_policy_violation", "invalid_prompt"})
_CODE_CHARACTERS = 80


def count(value: object) -> int | None:
    """The value when it is a count (an int >= 0, and no bool), else None."""
    return value if type(value) is int and value >= 0 else None


def name(value: object) -> str | None:
    """The value when it is a non-empty text, else None."""
    return value if isinstance(value, str) and value else None


def limit(body: Mapping[str, Any], *fields: str) -> int | None:
    """The largest of the limits a request states under these fields, None when it states none.

    Raises:
        WireError: a limit that is not a count bounds nothing, so the request must not be sent.
    """
    largest: int | None = None
    for field in fields:
        value = body.get(field)
        if value is None:
            continue
        stated = count(value)
        if stated is None:
            raise WireError(f"{field}: {value!r:.40} is not a number of tokens; nothing was sent")
        largest = stated if largest is None else max(largest, stated)
    return largest


def joined(blocks: object, texts: tuple[str, ...] = ("text", "output_text")) -> tuple[str | None, Counter[str]]:
    """Text of a content value: a string, or text blocks joined with nothing between; other blocks are counted.

    Returns:
        The text (None without any text block) and how many blocks of which type were left out.
    """
    if isinstance(blocks, str):
        return blocks, Counter()
    parts: list[str] = []
    ignored: Counter[str] = Counter()
    for block in blocks if isinstance(blocks, list) else ():
        kind = block.get("type") if isinstance(block, dict) else None
        if kind in texts and isinstance(block.get("text"), str):
            parts.append(block["text"])
        else:
            ignored[kind if isinstance(kind, str) else "unknown"] += 1
    return ("".join(parts) if parts else None), ignored


def outcome_of(text: str | None, *, cut: bool, refused: bool, tool_calls: int) -> Outcome:
    """Outcome of a response that has the shape of an answer."""
    if refused:
        return "refused"
    if cut:
        return "truncated"
    if text and not text.isspace():
        return "answered"
    return "no_text" if tool_calls else "empty"


def believable(usage: Usage | None, text: str | None) -> Usage | None:
    """The usage, unless it claims no tokens at all for an answer that is there: then nobody knows the cost."""
    if usage is not None and text and (usage.output_tokens == 0 or usage.input_tokens == 0):
        return None
    return usage


def error_facts(body: Mapping[str, Any], status: int) -> ResponseFacts | None:
    """Facts of a body that carries an error object; None when it carries none.

    With a status of 400 and above, and in a stream, an error object is the provider's way of saying no:
    ``provider_error``, ``context_length`` or ``refused``. Under a 200 it is not an answer: ``pipeline_error``.
    """
    error = body.get("error")
    if not error and body.get("type") != "error":
        return None
    if not isinstance(error, dict):
        # ``{"type": "error", "code": …, "message": …}`` is how a Responses stream puts it.
        error = {"message": error} if isinstance(error, str) else body
    code = next((str(error[key])[:_CODE_CHARACTERS] for key in ("code", "type") if error.get(key) is not None), None)
    message = str(error.get("message") or "")[:ERROR_EXTRACT]
    outcome: Outcome = "pipeline_error"
    if status >= 400:
        outcome = _refusal(code, error.get("type"), message)
    return ResponseFacts(
        model=name(body.get("model")),
        request_id=name(body.get("request_id")) or name(body.get("id")),
        outcome=outcome,
        error_code=code or "error",
        error_message=message or None,
    )


def _refusal(code: str | None, kind: object, message: str) -> Outcome:
    if code in _CONTEXT_CODES or str(kind) in _CONTEXT_CODES or _TOO_LONG.search(message):
        return "context_length"
    return "refused" if code in _REFUSED_CODES else "provider_error"


def unreadable(status: int, content_type: str | None, body: bytes) -> ResponseFacts:
    """Facts of a body that is not a JSON object. Nothing of it is quoted: it may hold anything, keys included."""
    head = body[:200].lstrip().lower()
    outcome: Outcome = "provider_error" if status >= 400 else "pipeline_error"
    if not body.strip():
        code = "empty_body"
        message = f"an empty body with status {status}"
    elif "html" in (content_type or "").lower() or head.startswith((b"<!doctype", b"<html")):
        code = "html"
        message = f"an HTML page with status {status} instead of JSON; is /v1 missing at the end of the base URL?"
    else:
        code = "not_json"
        kind = (content_type or "no content type")[:60]
        message = f"{len(body)} bytes of {kind} with status {status} are no JSON object"
    return ResponseFacts(outcome=outcome, error_code=code, error_message=message)
