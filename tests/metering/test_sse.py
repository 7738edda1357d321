"""Server-sent events do not depend on how the network cut the bytes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.metering.wire.sse import Event, SseReader

texts = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\r\n"), max_size=12)
endings = st.sampled_from(["\n", "\r\n", "\r"])


@st.composite
def streams(draw):
    """(bytes, events) with every line ending, comments, unknown fields and several data lines."""
    written, expected = [], []
    for _ in range(draw(st.integers(0, 5))):
        end = draw(endings)
        name = draw(st.none() | st.sampled_from(["message_start", "error"]))
        data = draw(st.lists(texts, max_size=3))
        lines = [f"event: {name}"] if name else []
        lines += [": a comment", "id: 7"] if draw(st.booleans()) else []
        lines += [f"data: {text}" for text in data]
        written.append("".join(line + end for line in [*lines, ""]))
        if data:
            expected.append(Event(name, "\n".join(data).encode()))
    return "".join(written).encode(), expected


@st.composite
def cut(draw, content):
    places = sorted(draw(st.lists(st.integers(0, len(content)), max_size=12)))
    edges = [0, *places, len(content)]
    return [content[start:end] for start, end in pairwise(edges)]


@settings(deadline=None)
@given(st.data(), streams())
def test_events_are_the_same_in_any_chunking(data, stream):
    content, expected = stream
    reader = SseReader()
    events = [event for chunk in data.draw(cut(content)) for event in reader.feed(chunk)]
    assert events == expected


@settings(deadline=None)
@given(streams())
def test_one_byte_at_a_time(stream):
    content, expected = stream
    reader = SseReader()
    assert [event for byte in content for event in reader.feed(bytes([byte]))] == expected


@settings(deadline=None)
@given(st.lists(st.binary(max_size=20), max_size=8))
@example([b"\r", b"", b"\n", b"data: x\r", b"\n\r", b"\n"])
def test_any_bytes_give_what_the_whole_gives(chunks):
    whole, pieces = SseReader(), SseReader()
    expected = whole.feed(b"".join(chunks))
    assert [event for chunk in chunks for event in pieces.feed(chunk)] == expected
    assert whole.pending() == pieces.pending()


@pytest.mark.parametrize("tail", ["", "\n", "\r"])
def test_a_last_event_without_its_blank_line_is_pending(tail):
    reader = SseReader()
    assert reader.feed(f"event: x\ndata: [DONE]{tail}".encode()) == []
    assert reader.pending() == Event("x", b"[DONE]")
    assert reader.pending() == Event("x", b"[DONE]")  # looking changes nothing
    reader.drop_pending()
    assert reader.pending() is None


def test_byte_order_mark_and_missing_space():
    assert SseReader().feed(b"\xef\xbb\xbfdata:{}\n\n") == [Event(None, b"{}")]
    assert SseReader().feed(b"data:  {}\n\n") == [Event(None, b" {}")]
