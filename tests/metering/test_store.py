"""The key sees every cause of an answer and nothing else; the n-th ask gets the n-th stored answer."""

from __future__ import annotations

import json
from dataclasses import replace

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fusion_audit.metering.scope import Scope, ScopeError
from pytest_fusion_audit.metering.store import KEYED_HEADERS, Answers, key_of

SCOPE = Scope(phase="3", arm="compound", stage="synthesizer", task="t")
BODY = {"model": "gpt-5.5", "messages": [{"role": "user", "content": "hi"}], "max_completion_tokens": 10}
URL = "https://api.openai.com/v1/chat/completions"


def key(body: object = BODY, scope: Scope = SCOPE, url: str = URL) -> str:
    return key_of(url, json.dumps(body).encode(), scope).digest


@pytest.mark.parametrize(
    "change",
    [
        {"model": "gpt-5.5-mini"},
        {"temperature": 0},
        {"temperature": None},
        {"temperature": 0.7},
        {"reasoning_effort": "high"},
        {"max_completion_tokens": 11},
        {"seed": 1},
        {"stream": True},
        {"messages": [{"role": "user", "content": "hi "}]},
        {"messages": [{"role": "system", "content": "hi"}]},
        {"tools": []},
    ],
)
def test_a_change_of_the_request_is_another_key(change: dict[str, object]) -> None:
    assert key({**BODY, **change}) != key()


@pytest.mark.parametrize(
    "change",
    [
        {"phase": "4"},
        {"arm": "compound:select_best"},
        {"stage": "judge"},
        {"task": "u"},
        {"task": None},
        {"replicate": 1},
        {"sample": 1},
        {"occurrence": 0},
        {"detail": "kept 1200"},
    ],
)
def test_a_change_of_the_scope_is_another_key(change: dict[str, object]) -> None:
    assert key(scope=replace(SCOPE, **change)) != key()


def test_another_endpoint_is_another_key() -> None:
    assert key(url="http://127.0.0.1:8091/v1/chat/completions") != key()


@pytest.mark.parametrize("change", [{"turn": "another"}, {"reuse": False}])
def test_who_pays_and_whether_it_may_be_reused_do_not_count(change: dict[str, object]) -> None:
    assert key(scope=replace(SCOPE, **change)) == key()


def test_the_order_of_fields_and_the_service_tier_do_not_count() -> None:
    assert key(dict(reversed(BODY.items()))) == key()
    assert key({**BODY, "service_tier": "flex"}) == key({**BODY, "service_tier": "default"}) == key()


def test_a_body_that_is_no_json_object_counts_byte_by_byte() -> None:
    keys = {key_of(URL, body, SCOPE).digest for body in (b"", b" ", b"[]", b"[] ", b"\xff", b"null")}
    assert len(keys) == 6


def headed(*fields: tuple[str, str]) -> str:
    return key_of(URL, json.dumps(BODY).encode(), SCOPE, httpx2.Headers(fields)).digest


@pytest.mark.parametrize("name", KEYED_HEADERS)
def test_a_header_field_that_can_change_the_answer_is_another_key(name: str) -> None:
    values = [(), ((name, ""),), ((name, "2023-06-01"),), ((name, "a"), (name, "b")), ((name, "b"), (name, "a"))]
    assert len({headed(*fields) for fields in values}) == len(values)
    assert headed((name, "2023-06-01")) == headed((name.title(), "2023-06-01"))
    assert headed() == key()


@pytest.mark.parametrize("name", ["anthropic-beta", "openai-beta"])
def test_two_fields_do_not_stand_for_each_other(name: str) -> None:
    assert headed(("anthropic-version", "x"), (name, "y")) != headed(("anthropic-version", "y"), (name, "x"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("authorization", "Bearer another"),
        ("x-api-key", "another"),
        ("openai-organization", "org-2"),
        ("user-agent", "another/2"),
        ("x-stainless-timeout", "600"),
        ("x-stainless-retry-count", "1"),
        ("accept-encoding", "gzip"),
    ],
)
def test_credentials_timeouts_and_versions_of_the_client_do_not_count(name: str, value: str) -> None:
    assert headed((name, value), ("anthropic-version", "2023-06-01")) == headed(("anthropic-version", "2023-06-01"))


def test_a_query_is_part_of_the_endpoint() -> None:
    assert len({key(url=URL), key(url=f"{URL}?api-version=1"), key(url=f"{URL}?api-version=2")}) == 3


TEXT = st.text(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXT, JSON, max_size=4), st.dictionaries(TEXT, JSON, max_size=4))
def test_keys_are_equal_exactly_for_equal_requests(one: dict[str, object], two: dict[str, object]) -> None:
    def same(body: dict[str, object]) -> str:
        return json.dumps({name: value for name, value in body.items() if name != "service_tier"}, sort_keys=True)

    assert (key(one) == key(two)) == (same(one) == same(two))


@given(
    st.builds(
        Scope,
        phase=TEXT,
        arm=TEXT,
        stage=TEXT,
        task=st.none() | TEXT,
        turn=st.none() | TEXT,
        replicate=st.integers(),
        sample=st.integers(),
        occurrence=st.none() | st.integers(),
        detail=TEXT,
        reuse=st.booleans(),
    )
)
def test_a_scope_survives_its_header(scope: Scope) -> None:
    header = scope.header()
    assert Scope.from_header(header) == scope
    assert header.isascii()
    assert not set(header) & set(" \r\n")
    assert Scope(**scope.stated()) == scope


@pytest.mark.parametrize("value", ["", "x", "bm8=", "W10=", "e30=", "eyJ4IjogMX0=", "\xff"])
def test_a_header_of_somebody_else_is_refused(value: str) -> None:
    with pytest.raises(ScopeError, match="x-fusion-scope"):
        Scope.from_header(value)


class TestAnswers:
    """The n-th ask of a session."""

    def bought(self, answers: Answers, name: str, *, fails: bool = False) -> None:
        """Rows of a call that this session bought, as the ledger writes them."""
        if not fails:
            answers.buys("k")
        self.stored(answers, name, fails=fails)

    @staticmethod
    def stored(answers: Answers, name: str, *, fails: bool = False) -> None:
        answers.take_row({"e": "reserve", "id": name, "key": "k", "parts": {}})
        row = {"e": "settle", "id": name, "status": 503 if fails else 200, "body": f"body {name}"}
        answers.take_row(row if fails else {**row, "answer": f"body {name}"})

    @staticmethod
    def asked(answers: Answers) -> str | None:
        found = answers.take(replace_digest("k"))
        return found and found.body_sha256

    def test_k_samples_are_given_again_in_order_and_once_each(self) -> None:
        answers = Answers()
        for name in "ABC":
            self.stored(answers, name)
        assert [self.asked(answers) for _ in range(4)] == ["body A", "body B", "body C", None]

    def test_what_a_session_bought_it_does_not_get_again(self) -> None:
        answers = Answers()
        self.stored(answers, "A")
        assert self.asked(answers) == "body A"
        assert self.asked(answers) is None
        self.bought(answers, "B")
        assert self.asked(answers) is None
        self.stored(answers, "C")  # by another process
        assert self.asked(answers) == "body C"

    def test_a_failure_is_never_an_answer(self) -> None:
        answers = Answers()
        self.bought(answers, "A", fails=True)
        assert self.asked(answers) is None
        assert answers.failure(replace_digest("k")).body_sha256 == "body A"
        self.bought(answers, "B")
        assert answers.failure(replace_digest("k")) is None

    def test_a_settlement_read_twice_or_without_its_reservation_adds_nothing(self) -> None:
        answers = Answers()
        self.stored(answers, "A")
        answers.take_row({"e": "settle", "id": "A", "status": 200, "answer": "x"})
        answers.take_row({"e": "settle", "id": "never", "status": 200, "answer": "x"})
        assert [self.asked(answers), self.asked(answers)] == ["body A", None]

    def test_a_settled_orphan_is_no_answer(self) -> None:
        answers = Answers()
        answers.take_row({"e": "reserve", "id": "A", "key": "k", "parts": {}})
        answers.take_row({"e": "orphan", "id": "A"})
        answers.take_row({"e": "settle", "id": "A", "charged": 3, "phase": "3"})
        assert self.asked(answers) is None


def replace_digest(digest: str):
    return replace(key_of(URL, b"{}", SCOPE), digest=digest)
