"""The scrubber: a known key goes in every form, a text without keys stays, scrubbing twice is scrubbing once."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_fusion_audit.metering.scrubbing import Scrubber
from pytest_fusion_audit.metering.secret import MARK, Secret
from tests.metering.planted_keys import ANTHROPIC, KEYS, OPENAI, ROUTER, base64_core

# Keys as makers make them, and anything else that a header can carry.
makers = st.from_regex(r"sk-(?:proj-|ant-)?[A-Za-z0-9_-]{12,60}", fullmatch=True)
anything = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=40)
passwords = st.text(st.characters(min_codepoint=33, max_codepoint=0xD7FF, exclude_categories=["Z", "C"]), min_size=8)
keys = makers | anything
around = st.text(max_size=30).map(lambda text: f"{text} ")


def everywhere(key: str) -> str:
    return "".join(f"%{byte:02X}" for byte in key.encode())


ENCODERS = {
    "as it is": str,
    "quoted": lambda key: quote(key, safe=""),
    "quoted, lower case": lambda key: quote(key, safe="").replace("%2B", "%2b").replace("%2F", "%2f"),
    "quoted as a form": quote_plus,
    "quoted twice": lambda key: quote(quote(key, safe=""), safe=""),
    "every byte quoted": everywhere,
    "JSON": lambda key: json.dumps(key)[1:-1],
    "JSON with its slashes escaped": lambda key: json.dumps(key)[1:-1].replace("/", "\\/"),
    "JSON within JSON": lambda key: json.dumps(json.dumps(key))[1:-1],
    "every character as JSON": lambda key: "".join(f"\\u{ord(character):04x}" for character in key),
    "every character as JSON, twice": lambda key: "".join(f"\\\\u{ord(character):04X}" for character in key),
    "HTML": html.escape,
    "every character as HTML": lambda key: "".join(f"&#x{ord(character):x};" for character in key),
    "JSON within a URL": lambda key: quote(json.dumps(key)[1:-1], safe=""),
    "repr": lambda key: repr(key)[1:-1],
}


@pytest.mark.parametrize("how", sorted(ENCODERS))
@given(key=keys, before=around, after=around)
def test_a_key_goes_whatever_its_writer_escaped(how: str, key: str, before: str, after: str) -> None:
    written = ENCODERS[how](key)
    found = Scrubber([key]).text(f"{before}{written} {after}")
    assert written not in found
    assert key not in found
    assert MARK in found


@given(key=passwords, before=around)
def test_a_password_in_any_alphabet_goes(key: str, before: str) -> None:
    scrubber = Scrubber([key])
    for written in (key, json.dumps(key)[1:-1], quote(key, safe="")):
        assert written not in scrubber.text(f"{before}{written} end")
        assert written.encode() not in scrubber.bytes(f"{before}{written} end".encode())


@given(
    key=keys,
    before=st.binary(max_size=8),
    after=st.binary(max_size=8),
    alphabet=st.sampled_from([base64.b64encode, base64.urlsafe_b64encode]),
    quoted=st.booleans(),
)
def test_a_key_goes_from_base64_at_every_alignment(
    key: str, before: bytes, after: bytes, alphabet: object, quoted: bool
) -> None:
    written = alphabet(before + key.encode() + after).decode()  # type: ignore[operator]
    begin, end = -(-len(before) * 8 // 6), (len(before) + len(key)) * 8 // 6
    legible = written[begin:end]
    scrubber = Scrubber([key])
    text = quote(written, safe="") if quoted else written
    found = scrubber.text(f"Basic {text}, next")
    assert legible not in found
    assert quote(legible, safe="") not in found
    assert legible.encode() not in scrubber.content(b'{"data": "%s"}' % text.encode())


@given(key=keys, before=st.binary(max_size=40), after=st.binary(max_size=40))
def test_a_key_goes_from_bytes_of_no_encoding(key: str, before: bytes, after: bytes) -> None:
    data = before + key.encode() + after
    for found in (Scrubber([key]).bytes(data), Scrubber([key]).content(data)):
        assert key.encode() not in found
        assert MARK.encode() in found


@given(key=keys, text=st.text())
def test_a_text_without_keys_comes_back_as_it_is(key: str, text: str) -> None:
    assume(key not in text)
    scrubber = Scrubber([key])
    assert scrubber.text(text) == text
    data = text.encode()
    assert scrubber.bytes(data) is data
    assert scrubber.content(data) is data


@given(keys=st.lists(keys, max_size=4), parts=st.lists(st.text(max_size=20), max_size=6), data=st.data())
def test_scrubbing_twice_is_scrubbing_once(keys: list[str], parts: list[str], data: st.DataObject) -> None:
    text = "".join(part + (data.draw(st.sampled_from(keys)) if keys else "") for part in parts)
    scrubber = Scrubber(keys)
    once = scrubber.text(text)
    assert scrubber.text(once) == once
    content = scrubber.content(text.encode())
    assert scrubber.content(content) == content
    assert scrubber.spans(content.decode("latin-1")) == []


def test_a_mark_that_completes_a_key_is_scrubbed_too() -> None:
    key = "abcdefg["
    found = Scrubber([key]).text("abcdefg" + key)
    assert key not in found


def test_a_key_that_holds_another_goes_as_a_whole() -> None:
    short, long = "sk-test-0123456789", "sk-test-0123456789-and-more-7777"
    assert Scrubber([short, long]).text(f"<{long}> <{short}>") == f"<{MARK}> <{MARK}>"


def test_json_stays_json() -> None:
    body = {"error": {"message": f"wrong key: {ROUTER}", ROUTER: [1, None, True, {"k": OPENAI}]}}
    scrubber = Scrubber(KEYS)
    found = json.loads(scrubber.text(json.dumps(body)))
    assert found == {"error": {"message": f"wrong key: {MARK}", MARK: [1, None, True, {"k": MARK}]}}
    assert scrubber.deep(body) == found
    assert scrubber.deep((ANTHROPIC.encode(), 1.5)) == (MARK.encode(), 1.5)


def test_what_is_no_text_comes_back_as_it_is() -> None:
    thing = object()
    assert Scrubber(KEYS).deep(thing) is thing


def test_values_may_be_named_wrapped_or_surrounded_by_blanks() -> None:
    for values in ({"OPENAI_API_KEY": f" {OPENAI}\n"}, [Secret(OPENAI)], [f"{OPENAI}\r\n"]):
        assert Scrubber(values).text(f"a{OPENAI}b") == f"a{MARK}b"


@pytest.mark.parametrize("value", ["", "  ", "x", "short", "\n\n\n\n\n\n\n\n"])
def test_short_values_are_not_scrubbed(value: str) -> None:
    text = f"x short {value} text"
    assert Scrubber([value]).text(text) == text


@pytest.mark.parametrize("offset", [0, 1, 2])
def test_spans_name_the_variable_and_the_place(offset: int) -> None:
    core = base64_core(OPENAI, offset)
    scrubber = Scrubber({"OPENAI_API_KEY": OPENAI})
    text = f"one {core} two {OPENAI} three sk-proj-4711abcdefgh %73k-test-7391PLANTEDopen7391"
    spans = [(kind, name, text[begin:end]) for begin, end, kind, name in scrubber.spans(text)]
    assert ("value", "OPENAI_API_KEY", core) in spans
    assert ("value", "OPENAI_API_KEY", OPENAI) in spans
    assert ("shape", "", "sk-proj-4711abcdefgh") in spans
    assert ("value", "OPENAI_API_KEY", "%73k-test-7391PLANTEDopen7391") in spans


def test_content_of_models_keeps_what_only_looks_dangerous() -> None:
    answer = (
        b"urlparse('https://user:hunter2-hunter2@host.example/?api_key=abcdefghijkl').password  # Bearer abc0123456789"
    )
    scrubber = Scrubber(KEYS)
    assert scrubber.content(answer) == answer
    assert scrubber.content(b"print('%s')" % OPENAI.encode()) == b"print('[key]')"
    assert b"hunter2" not in scrubber.bytes(answer)


def test_one_pass_over_a_body_without_keys_builds_nothing() -> None:
    body = b'{"choices": [{"message": {"content": "def f(x):\\n    return x %% 7\\n"}}]}' * 200
    assert Scrubber(KEYS).content(body) is body
