"""Made-up keys that tests plant, and a search for them in everything a run leaves behind."""

from __future__ import annotations

import base64
import traceback
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from pathlib import Path

OPENAI = "sk-test-7391PLANTEDopen7391"
ANTHROPIC = "sk-ant-test-8264PLANTEDanth8264"
PASSWORD = "pw-5518PLANTEDpass"
ROUTER = 'r0uter/5127+PLANTED="rkey'  # no shape, and characters that JSON, URLs and HTML escape
ENVIRONMENT = {
    "OPENAI_API_KEY": OPENAI,
    "ANTHROPIC_API_KEY": f" {ANTHROPIC}\n",
    "ROUTER_API_KEY": ROUTER,
    "HTTPS_PROXY": f"http://proxy:{PASSWORD}@proxy.example:3128",
}
KEYS = (OPENAI, ANTHROPIC, PASSWORD, ROUTER)


def base64_core(key: str, offset: int) -> str:
    """What of a key is legible in base64 when ``offset`` bytes stand before it."""
    text = base64.b64encode(b"\0" * offset + key.encode()).decode()
    return text[-(-offset * 8 // 6) : (offset + len(key.encode())) * 8 // 6]


TRACES = tuple(
    trace.encode() for key in KEYS for trace in (key, quote(key, safe=""), *(base64_core(key, at) for at in range(3)))
)


def shown_with_locals(error: BaseException) -> str:
    """A traceback with the locals of every frame but the first, which is the test's own."""
    trace = traceback.TracebackException.from_exception(error, capture_locals=True)
    trace.stack.pop(0)
    return "".join(trace.format())


def leaks(where: Path, *, outputs: tuple[str | bytes, ...] = ()) -> list[str]:
    """Places below a folder and among outputs in which a planted key can be read."""
    found = [
        f"{file.relative_to(where)}: {trace.decode()}"
        for file in sorted(where.rglob("*"))
        if file.is_file()
        for trace in TRACES
        if trace in file.read_bytes()
    ]
    for number, output in enumerate(outputs):
        data = output if isinstance(output, bytes) else output.encode()
        found += [f"output {number}: {trace.decode()}" for trace in TRACES if trace in data]
    return found
