"""What every dialect's requests have in common: parameters as sent, tools run by the provider, inputs by reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from pytest_fusion_audit.metering.wire.facts import PARAMETERS, WireError
from pytest_fusion_audit.metering.wire.shapes import count, name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

#: Bound on the tokens of a provider's own instructions, added to a prompt that defines tools or a schema. Anthropic
#: documents up to about 800 for tools; nobody documents more than this.
HIDDEN_TOKENS = 1_500

# Tools that the caller runs itself: the provider only writes the call.
_CLIENT_TOOLS = frozenset(
    {"function", "custom", "namespace", "local_shell", "apply_patch", "bash", "text_editor", "memory", "computer"}
)
# Blocks whose tokens are not bounded by their bytes: references, and pictures, which compress.
_MEDIA = frozenset(
    {"image", "image_url", "input_image", "computer_screenshot", "document", "file", "input_file", "input_audio",
     "container_upload", "item_reference"}
)  # fmt: skip
_MEDIA_BYTES = tuple(f'"{kind}"'.encode() for kind in sorted(_MEDIA))


class CommonFacts(TypedDict):
    """Fields of ``RequestFacts`` that every dialect states under the same names."""

    model: str | None
    stream: bool
    prompt_bytes: int
    hidden_tokens: int


def common_facts(body: Mapping[str, Any], raw: bytes) -> CommonFacts:
    """What every dialect states under the same names."""
    return {
        "model": name(body.get("model")),
        "stream": body.get("stream") is True,
        "prompt_bytes": len(raw),
        "hidden_tokens": HIDDEN_TOKENS if any(body.get(key) for key in _UNSEEN) else 0,
    }


def parameters(body: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Sampling and limits as sent; never a prompt."""
    return {field: body[field] for field in PARAMETERS if field in body}


_UNSEEN = ("tools", "functions", "response_format", "output_config", "output_format", "mcp_servers")


def choices(body: Mapping[str, Any]) -> int:
    """How many answers are asked for.

    Raises:
        WireError: ``n`` is no number above 0, so nothing bounds the output.
    """
    stated = body.get("n")
    if stated is None:
        return 1
    several = count(stated)
    if not several:
        raise WireError(f"n: {stated!r:.40} is not a number of choices; nothing was sent")
    return several


def provider_tools(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Kinds of the tools that the provider runs itself, without their dates (``web_search_20250305``)."""
    listed = body.get("tools")
    kinds = []
    for tool in listed if isinstance(listed, list) else ():
        kind = tool.get("type") if isinstance(tool, dict) else None
        if isinstance(kind, str):
            bare = kind.rsplit("_", 1)[0] if kind[-8:].isdigit() else kind
            if bare not in _CLIENT_TOOLS:
                kinds.append(bare)
    if body.get("mcp_servers"):
        kinds.append("mcp")
    return tuple(kinds)


def opaque_in(body: Mapping[str, Any], raw: bytes, *fields: str) -> tuple[str, ...]:
    """Names of inputs that the bytes of the body do not bound: earlier turns kept by the provider, images, files.

    The walk over the messages happens only when the bytes hold one of the types; a quoted word inside a prompt is
    escaped there and does not match.
    """
    found = [field for field in fields if body.get(field)]
    if b'"type"' in raw and any(key in raw for key in _MEDIA_BYTES):
        found += sorted(_media(body))
    return tuple(found)


def _media(body: Mapping[str, Any]) -> set[str]:
    found: set[str] = set()
    waiting = [body.get("messages"), body.get("input"), body.get("system")]
    while waiting:
        here = waiting.pop()
        if isinstance(here, list):
            waiting.extend(here)
        elif isinstance(here, dict):
            kind = here.get("type")
            if kind in _MEDIA:
                found.add(kind)
            # What a model wrote for a tool is text, however it looks.
            waiting.extend(here.get(key) for key in ("content", "output") if isinstance(here.get(key), (list, dict)))
    return found
