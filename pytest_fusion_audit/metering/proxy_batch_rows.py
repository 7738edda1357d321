"""What a client of the proxy sends to have a batch made: an uploaded file, its lines, the requests of a message batch.

Everything is looked at before anything is reserved: a batch with one bad row is refused whole, and the row is named.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from email.parser import BytesParser
from email.policy import HTTP
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.errors import FusionAuditError
from pytest_fusion_audit.metering import batch_anthropic, batch_openai
from pytest_fusion_audit.metering.batch_requests import BatchRequest, saying
from pytest_fusion_audit.metering.forwarding import NotServedError, encoded, joined

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_fusion_audit.metering.attribution import Attribution
    from pytest_fusion_audit.metering.scrubbing import Scrubber
    from pytest_fusion_audit.metering.third_door import ThirdDoor
    from pytest_fusion_audit.metering.wire.base import Dialect

#: What an OpenAI batch may ask for here, and what that speaks.
ENDPOINTS: Mapping[str, Dialect] = {"/v1/chat/completions": "openai.chat", "/v1/responses": "openai.responses"}
_OPENAI_FIELDS = frozenset({"input_file_id", "endpoint", "completion_window", "metadata", "output_expires_after"})


class BatchInputError(FusionAuditError):
    """A client asked for something that its provider would refuse as well.

    Attributes:
        status: HTTP status of the answer.
        param: the field that is wrong, None where it is none.
    """

    def __init__(self, message: str, *, status: int = 400, param: str | None = None) -> None:
        self.status = status
        self.param = param
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class AskedRow:
    """One row of a client's batch: its name, its body, and where it stands."""

    custom_id: str
    document: Mapping[str, Any]
    where: str


@dataclass(frozen=True, slots=True)
class Upload:
    """An uploaded file."""

    name: str
    content: bytes


def uploaded(content_type: str, body: bytes) -> Upload:
    """Read an upload (multipart/form-data) whose purpose is ``batch``.

    Raises:
        BatchInputError: it is no such upload.
    """
    if content_type.partition(";")[0].strip().lower() != "multipart/form-data":
        raise BatchInputError("a file is uploaded as multipart/form-data with the fields purpose and file")
    header = f"content-type: {content_type}\r\n\r\n".encode("latin-1", "replace")
    message = BytesParser(policy=HTTP).parsebytes(header + body)
    purpose, upload = None, None
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        payload = part.get_payload(decode=True)
        content = payload if isinstance(payload, bytes) else b""
        if name == "purpose":
            purpose = content.decode("utf-8", "replace").strip()
        elif name == "file":
            upload = Upload(part.get_filename() or "upload.jsonl", content)
    if purpose != "batch":
        raise BatchInputError(
            f"purpose: {purpose or 'missing'}: this proxy takes files for batches only, because nothing else that "
            "files are used for can be metered; nothing was sent",
            param="purpose",
        )
    if upload is None:
        raise BatchInputError("file: missing", param="file")
    return upload


@dataclass(frozen=True, slots=True)
class OpenAIAsked:
    """What ``POST /v1/batches`` says beside the rows."""

    input_file: str
    endpoint: str
    metadata: Mapping[str, Any] | None


def openai_asked(document: Mapping[str, Any]) -> OpenAIAsked:
    """Read the request for an OpenAI batch.

    Raises:
        BatchInputError: a field is missing, unknown, or says what is not served.
    """
    if unknown := sorted(document.keys() - _OPENAI_FIELDS):
        raise BatchInputError(f"{unknown[0]}: not a field of a batch that this proxy knows", param=unknown[0])
    file, endpoint, metadata = (document.get(name) for name in ("input_file_id", "endpoint", "metadata"))
    if not isinstance(file, str):
        raise BatchInputError("input_file_id: missing; upload a file of purpose batch first", param="input_file_id")
    if not isinstance(endpoint, str) or endpoint not in ENDPOINTS:
        raise BatchInputError(f"endpoint: {endpoint} is none of {', '.join(ENDPOINTS)}", param="endpoint")
    if document.get("completion_window") != "24h":
        raise BatchInputError('completion_window: has to be "24h"', param="completion_window")
    if metadata is not None and not isinstance(metadata, dict):
        raise BatchInputError("metadata: not an object", param="metadata")
    return OpenAIAsked(file, endpoint, metadata)


def openai_rows(content: bytes, endpoint: str) -> list[AskedRow]:
    """Read the lines of an input file.

    Args:
        content: of the file.
        endpoint: of the batch; every line has to say the same.

    Raises:
        BatchInputError: a line is wrong; the message says which and why.
    """
    rows = []
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        where = f"line {number}"
        try:
            entry = json.loads(line.decode())
        except (ValueError, RecursionError):
            raise BatchInputError(f"{where}: not JSON in UTF-8", param="input_file_id") from None
        if not isinstance(entry, dict):
            raise BatchInputError(f"{where}: not a JSON object", param="input_file_id")
        method, url = entry.get("method"), entry.get("url")
        if method != "POST":
            raise BatchInputError(f"{where}: method: {method!r} is not POST", param="input_file_id")
        if url != endpoint:
            raise BatchInputError(
                f"{where}: url: {url!r} is not the batch's endpoint {endpoint}", param="input_file_id"
            )
        rows.append(_row(entry, "body", where))
    return _checked(rows, batch_openai.MOST_ROWS)


def anthropic_rows(document: Mapping[str, Any]) -> list[AskedRow]:
    """Read the requests of a message batch.

    Raises:
        BatchInputError: a request is wrong; the message says which and why.
    """
    if unknown := sorted(document.keys() - {"requests"}):
        raise BatchInputError(f"{unknown[0]}: not a field of a message batch that this proxy knows")
    entries = document.get("requests")
    if not isinstance(entries, list):
        raise BatchInputError("requests: not a list")
    rows = []
    for number, entry in enumerate(entries):
        where = f"requests.{number}"
        if not isinstance(entry, dict):
            raise BatchInputError(f"{where}: not an object")
        rows.append(_row(entry, "params", where))
    return _checked(rows, batch_anthropic.MOST_ROWS)


def _row(entry: Mapping[str, Any], body: str, where: str) -> AskedRow:
    custom_id, document = entry.get("custom_id"), entry.get(body)
    if not isinstance(custom_id, str) or not custom_id:
        raise BatchInputError(f"{where}: custom_id: missing")
    where = f"{where} ({custom_id})"
    if not isinstance(document, dict):
        raise BatchInputError(f"{where}: {body}: not an object")
    if not isinstance(document.get("model"), str):
        raise BatchInputError(f"{where}: {body}.model: missing")
    return AskedRow(custom_id, document, where)


def _checked(rows: list[AskedRow], most: int) -> list[AskedRow]:
    if not rows:
        raise BatchInputError("the batch holds no requests")
    if len(rows) > most:
        raise BatchInputError(f"the batch holds {len(rows)} requests, {most} are the most")
    seen: dict[str, str] = {}
    for row in rows:
        first = seen.setdefault(row.custom_id, row.where)
        if first != row.where:
            raise BatchInputError(f"{row.where}: custom_id: stands at {first} already")
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What holds for every row of a client's batch.

    Attributes:
        path: ``/v1/…`` that the rows are asked for at.
        dialect: what is spoken there.
        role: role in the URL of the batch.
        base: base URL of the role's upstream, None without one.
        version: of the API, where the client names one.
    """

    path: str
    dialect: Dialect
    role: str | None
    base: str | None
    version: str | None = None


def request_of(
    row: AskedRow, asking: Asking, attribution: Attribution, third_door: ThirdDoor, scrubber: Scrubber | None
) -> tuple[BatchRequest, Mapping[str, Any]]:
    """The call that a row stands for, as the proxy would send it by itself, and what of it the third door left out.

    Args:
        row: the row.
        asking: what holds for all rows.
        attribution: rules of the target.
        third_door: makers by ``provider/name`` ids.
        scrubber: knows the keys that no body may hold.

    Raises:
        NotServedError: no upstream, a model of the other maker, or a key in the body.
        TranslationError, ForeignDialectError: see `ThirdDoor.passage`.
    """
    model, stage = attribution.real_model(row.document["model"])
    document = {**row.document, "model": model}
    maker = model.partition("/")[0]
    if maker in third_door.bases and maker != asking.dialect.partition(".")[0]:
        raise NotServedError(
            f"{row.where}: model: {model} cannot be asked for in a batch of another maker; nothing was sent. "
            "Ask for it in its own maker's batch, or by itself"
        )
    with saying(f"{row.where}:"):
        passage = third_door.passage(asking.dialect, asking.path, document)
    base, path = asking.base, asking.path
    if passage is not None:
        base, path, document = passage.base, passage.path, dict(passage.document)
    if base is None:
        raise NotServedError(
            f"{row.where}: no upstream is known for this role and model: take a role of this run in the base URL, or a "
            "model id of the form openai/… or anthropic/…; nothing was sent"
        )
    body = encoded(document)
    if scrubber is not None and scrubber.content(body) != body:
        # What is kept of a batch is what is sent, so it cannot be kept without the key.
        raise NotServedError(f"{row.where}: a key stands in the body; nothing was sent or kept, leave it out")
    scope = attribution.scope_of(asking.role, stage, encoded(row.document))
    url = str(joined(base, path, ""))
    request = BatchRequest(url=url, body=body, scope=scope, custom_id=row.custom_id, version=asking.version)
    return request, {} if passage is None else passage.not_sent
