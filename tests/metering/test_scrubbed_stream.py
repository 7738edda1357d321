"""A body in pieces: what is passed on is what would have been passed on in one piece, and never the begin of a key."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pytest_fusion_audit.metering.scrubbed_stream import ScrubbedStream
from pytest_fusion_audit.metering.scrubbing import Scrubber
from tests.metering.planted_keys import ANTHROPIC, KEYS, OPENAI

SCRUBBER = Scrubber([*KEYS, OPENAI + "-longer-0001"])
UNKNOWN = "sk-proj-3377unknownUNKNOWN3377"
pieces = st.lists(
    st.sampled_from([*KEYS, UNKNOWN, OPENAI + "-longer-0001", "s", "sk", "sk-", "task-1 ", "\n\ndata: ", "é"])
    | st.text(max_size=8),
    max_size=8,
)


@given(parts=pieces, cuts=st.lists(st.integers(0, 300), max_size=12))
def test_any_chunking_gives_what_one_piece_gives(parts: list[str], cuts: list[int]) -> None:
    body = "".join(parts).encode()
    places = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})
    stream = ScrubbedStream(SCRUBBER)
    passed = [stream.feed(body[begin:end]) for begin, end in pairwise(places)]
    assert b"".join([*passed, stream.finish()]) == SCRUBBER.content(body)


@given(parts=pieces)
def test_byte_by_byte_too(parts: list[str]) -> None:
    body = "".join(parts).encode()
    stream = ScrubbedStream(SCRUBBER)
    passed = [stream.feed(body[at : at + 1]) for at in range(len(body))]
    assert b"".join([*passed, stream.finish()]) == SCRUBBER.content(body)


@given(key=st.sampled_from([*KEYS, UNKNOWN]), cut=st.integers(1, 30))
def test_nothing_of_a_key_that_was_cut_is_passed_on(key: str, cut: int) -> None:
    stream = ScrubbedStream(SCRUBBER)
    first = stream.feed(b"data: " + key[:cut].encode())
    if cut < len(key):
        assert first == b"data: "
    assert key[:8].encode() not in first + stream.feed(key[cut:].encode() + b"\n\n") + stream.finish()


def test_an_event_is_passed_on_at_once() -> None:
    stream = ScrubbedStream(SCRUBBER)
    event = b'data: {"choices": [{"delta": {"content": "tasks"}}]}\n\n'
    assert [stream.feed(event) for _ in range(3)] == [event] * 3
    assert stream.finish() == b""


def test_a_stream_that_ends_in_half_a_key_is_not_lost() -> None:
    stream = ScrubbedStream(SCRUBBER)
    assert stream.feed(b"x" + ANTHROPIC[:7].encode()) == b"x"
    assert stream.finish() == ANTHROPIC[:7].encode()
