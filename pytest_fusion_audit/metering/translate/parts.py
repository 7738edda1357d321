"""Parts of a message's content: text and pictures, both ways."""

from __future__ import annotations

import re
from typing import Any

from pytest_fusion_audit.metering.translate.fields import Fields, Json, items, refuse

_DATA_URL = re.compile(r"data:(?P<type>image/(?:jpeg|png|gif|webp));base64,(?P<data>[A-Za-z0-9+/]+=*)\Z")
_WEB_URL = re.compile(r"https?://\S+\Z")


def text_blocks(content: Any, where: str) -> str | list[Json]:
    """Content that may only be text: a text stays one, parts become text blocks; empty parts say nothing.

    Both dialects write a text part the same way, so this serves both directions.

    Raises:
        TranslationError: something else than text.
    """
    if isinstance(content, str):
        return content
    blocks = []
    for at, part in items(content, where):
        fields = Fields(part, at)
        fields.kind("text")
        blocks += _text(fields)
    return blocks


def blocks_of(content: Any, where: str) -> str | list[Json]:
    """A user's content in chat as content of a message: text and pictures.

    Raises:
        TranslationError: another kind of part, a picture of another format or detail.
    """
    if isinstance(content, str):
        return content
    blocks = []
    for at, part in items(content, where):
        fields = Fields(part, at)
        if fields.kind("text", "image_url") == "text":
            blocks += _text(fields)
        else:
            blocks.append(_picture(fields))
    return blocks


def parts_of(content: Any, where: str) -> str | list[Json]:
    """A user's content in messages as content in chat.

    Raises:
        TranslationError: another kind of block, or a picture that the provider keeps.
    """
    if isinstance(content, str):
        return content
    parts: list[Json] = []
    for at, block in items(content, where):
        fields = Fields(block, at)
        fields.skip("cache_control")
        if fields.kind("text", "image") == "text":
            parts += _text(fields)
        else:
            parts.append({"type": "image_url", "image_url": {"url": _url(fields)}})
            fields.end()
    return parts


def _text(fields: Fields) -> list[Json]:
    """One text block, or none for an empty text. A mark for the cache (an extension of routers) goes along."""
    block: Json = {"type": "text", "text": fields.text("text")}
    if (mark := fields.take("cache_control")) is not None:
        block["cache_control"] = mark
    fields.neutral({"citations": ([],)})
    fields.end()
    return [block] if block["text"] else []


def _picture(fields: Fields) -> Json:
    inner = Fields(fields.take("image_url"), fields.at("image_url"))
    url = inner.text("url")
    inner.neutral({"detail": ("auto",)})
    inner.end()
    found = _DATA_URL.match(url)
    if found is not None:
        source: Json = {"type": "base64", "media_type": found["type"], "data": found["data"]}
    elif _WEB_URL.match(url):
        source = {"type": "url", "url": url}
    else:
        refuse(inner.at("url"), "is neither an http URL nor base64 of a jpeg, png, gif or webp picture")
    block: Json = {"type": "image", "source": source}
    if (mark := fields.take("cache_control")) is not None:
        block["cache_control"] = mark
    fields.end()
    return block


def _url(fields: Fields) -> str:
    source = Fields(fields.take("source"), fields.at("source"))
    if source.kind("url", "base64") == "url":
        url = source.text("url")
    else:
        url = f"data:{source.text('media_type')};base64,{source.text('data')}"
    source.end()
    return url
