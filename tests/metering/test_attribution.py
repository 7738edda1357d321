"""Whose call is it: by URL, by alias, by marker; for which task: by canary, by text; else unknown, and counted."""

from __future__ import annotations

import json

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.metering.attribution import Attribution, Route, TaskTexts, route_of
from pytest_fusion_audit.metering.scope import Scope
from tests.metering.proxy_run import ask, metered
from tests.metering.servers import running_server

TOKEN = "abcdefghijklmnop"
BASE = Scope(phase="6.2", arm="served")


@pytest.mark.parametrize(
    ("path", "role", "rest"),
    [
        ("/judge/v1/messages", "judge", "/v1/messages"),
        ("/panel-gpt/v1/chat/completions", "panel-gpt", "/v1/chat/completions"),
        ("/v1/messages", None, "/v1/messages"),
        ("/v1beta/models", None, "/v1beta/models"),
        ("/chat/completions", None, "/v1/chat/completions"),
        ("/judge/chat/completions", "judge", "/v1/chat/completions"),
        ("/responses", None, "/v1/responses"),
        ("/models/openai%2Fgpt", None, "/v1/models/openai%2Fgpt"),
        ("/v1", None, "/v1"),
        ("", None, "/v1"),
    ],
)
def test_paths(path, role, rest) -> None:
    assert route_of(f"/s/{TOKEN}{path}") == Route(TOKEN, role, rest)


@pytest.mark.parametrize(
    "path", ["/v1/messages", "/s/short/v1/messages", "/s/", "", "/s/abc def ghi jkl mno/v1", "/x/s/" + TOKEN]
)
def test_paths_of_nobody(path) -> None:
    assert route_of(path) is None


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("openai/gpt-5.5--judge", ("openai/gpt-5.5", "judge")),
        ("gpt-5.5--panel-gpt", ("gpt-5.5", "panel-gpt")),
        ("gpt-5.5", ("gpt-5.5", None)),
        ("gpt-5.5--", ("gpt-5.5--", None)),
        ("gpt-5.5--Judge", ("gpt-5.5--Judge", None)),
        ("fast", ("openai/gpt-5.5", "synthesizer")),
    ],
)
def test_aliases(asked, expected) -> None:
    rules = Attribution(base=BASE, aliases={"fast": ("openai/gpt-5.5", "synthesizer")})
    assert rules.real_model(asked) == expected


def test_the_url_wins_over_the_alias_and_the_alias_over_the_marker() -> None:
    rules = Attribution(base=BASE, markers={"You are the judge": "judge"})
    body = json.dumps(ask("You are the judge")).encode()
    assert rules.scope_of("panel-gpt", "synthesizer", body).stage == "panel"
    assert rules.scope_of("panel-gpt", "synthesizer", body).detail == "gpt"
    assert rules.scope_of(None, "synthesizer", body).stage == "synthesizer"
    assert rules.scope_of(None, None, body).stage == "judge"
    assert rules.scope_of(None, None, b"{}").stage == "unknown"


def test_a_marker_is_found_behind_the_escapes_of_json() -> None:
    rules = Attribution(base=BASE, markers={'Say "pick" –\nthen stop': "judge"})
    body = json.dumps(ask('Say "pick" –\nthen stop')).encode()
    assert b"\\u2013" in body
    assert rules.scope_of(None, None, body).stage == "judge"


def test_the_task_by_canary_then_by_text_then_by_the_base() -> None:
    texts = TaskTexts({"a": "Sum the odd numbers of a list.\nReturn an int.", "b": "Find the longest word of a line."})
    canaries = {"0123456789abcdef": "c"}
    rules = Attribution(base=Scope(phase="5", task="d"), canaries=canaries, texts=texts)

    def task(prompt: str):
        return rules.scope_of("judge", None, json.dumps(ask(prompt)).encode()).task

    assert task("x fusion-canary-0123456789abcdef y\nSum the odd numbers of a list.") == "c"
    assert task("fusion-canary-ffffffffffffffff\n  Sum the odd numbers of a list.  \nmore") == "a"
    assert task("Compare.\n\nFind the longest word of a line.\n\nCandidate 1: …") == "b"
    assert task("Sum the odd numbers of a list.\nFind the longest word of a line.") == "d"
    assert task("nothing known") == "d"


def test_lines_of_several_tasks_tell_nothing() -> None:
    texts = TaskTexts(
        {"a": "Read the input from stdin.\nAdd all the numbers.", "b": "Read the input from stdin.\nSort all."}
    )
    assert texts.find(["Read the input from stdin."]) is None
    assert texts.find(["Read the input from stdin.\nAdd all the numbers."]) == "a"
    assert not TaskTexts()
    assert TaskTexts().find(["x"]) is None


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.text("ab", min_size=1), st.text("xyz \n", min_size=21, max_size=60), max_size=4), st.text())
def test_a_task_is_found_only_if_one_of_its_lines_is_there(texts, prompt) -> None:
    found = TaskTexts(texts).find([prompt])
    if found is not None:
        lines = {line.strip() for line in texts[found].splitlines()}
        assert lines & {line.strip() for line in prompt.splitlines()}


def test_the_turn_of_a_task_pays_and_may_change_while_the_proxy_serves() -> None:
    turns: dict[str, str] = {}
    rules = Attribution(base=BASE, canaries={"0123456789abcdef": "t"}, turns=turns)
    body = json.dumps(ask("fusion-canary-0123456789abcdef")).encode()
    assert rules.scope_of("judge", None, body).turn is None
    turns["t"] = "hold-1"
    assert rules.scope_of("judge", None, body).turn == "hold-1"
    assert rules.scope_of("judge", None, b"{}").turn is None


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=60))
def test_any_body_is_attributed_to_somebody(body) -> None:
    rules = Attribution(base=BASE, markers={"x": "judge"}, canaries={"0": "t"}, texts=TaskTexts({"a": "x" * 30}))
    assert rules.scope_of(None, None, body).phase == "6.2"


def test_attribution_through_the_proxy(tmp_path) -> None:
    canary = "fusion-canary-0123456789abcdef"
    with (
        running_server() as server,
        metered(
            tmp_path,
            server,
            aliases={"fast": ("gpt-5.5", "router")},
            markers={"You compare": "judge"},
            canaries={"0123456789abcdef": "HumanEval/0"},
        ) as door,
    ):
        calls = [
            ("panel-gpt/v1", ask(f"one {canary}")),
            ("v1", ask("two", model="gpt-5.5--synthesizer")),
            ("v1", ask("three", model="fast")),
            ("v1", ask("You compare four")),
            ("v1", ask("five")),
            ("", ask("six", model="gpt-5.5--judge")),
        ]
        for prefix, body in calls:
            url = f"{door.url}/{prefix}/chat/completions".replace("//chat", "/chat")
            assert httpx2.post(url, json=body).status_code == 200
        scopes = [row["scope"] for row in door.reserved()]
    assert [scope.get("stage", "unknown") for scope in scopes] == [
        "panel", "synthesizer", "router", "judge", "unknown", "judge"
    ]  # fmt: skip
    assert scopes[0]["task"] == "HumanEval/0"
    assert scopes[0]["detail"] == "gpt"
    assert "task" not in scopes[1]
    assert {scope["arm"] for scope in scopes} == {"served"}
    assert door.proxy.unattributed == 1
    # An alias is mapped back before look-up, price and sending; nothing else of the body changes.
    assert [json.loads(request.body)["model"] for request in server.requests] == ["gpt-5.5"] * 6
    assert json.loads(server.requests[4].body) == ask("five")
