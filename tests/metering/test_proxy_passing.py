"""What passes through the proxy and what does not: keys, headers, odd answers."""

from __future__ import annotations

import json

import httpx2
import pytest

from pytest_fusion_audit.metering.keys import KeyRing, scan
from pytest_fusion_audit.metering.scope import Scope
from tests.metering.proxy_run import ANTHROPIC_KEY, OPENAI_KEY, ask, ask_anthropic, metered
from tests.metering.server_replies import Reply
from tests.metering.servers import running_server

GPT_IN = 5  # dollars per million tokens = micro-dollars per token


@pytest.fixture
def server():
    with running_server(keys=(OPENAI_KEY, ANTHROPIC_KEY)) as running:
        yield running


@pytest.fixture
def door(tmp_path, server):
    with metered(tmp_path, server) as running:
        yield running


def test_only_the_upstream_sees_the_key(tmp_path, server) -> None:
    leak = {"error": {"message": f"Incorrect API key provided: {OPENAI_KEY}", "type": "x", "code": "invalid_api_key"}}
    page = f"<html>{ANTHROPIC_KEY} and sk-test-0000EXAMPLE0000</html>"
    server.script(
        Reply(),
        Reply(),
        Reply(body=leak, status=401),
        Reply(body=page),
        Reply(text=f"my key is {OPENAI_KEY}, yours?", split=5),
    )
    seen = []
    drill = Scope(phase="6.2", arm="drill:key", reuse=False)  # elsewhere a refused key would stop the run
    with metered(tmp_path, server, base=drill) as door:
        url = f"{door.url}/judge/v1/chat/completions"
        with httpx2.Client(
            headers={"authorization": "Bearer theirs", "cookie": "a=b", "x-fusion-scope": "x"}
        ) as client:
            seen.append(client.post(url, json=ask()))
            seen.append(
                client.post(f"{door.url}/panel-opus/v1/messages", json=ask_anthropic(), headers={"x-api-key": "theirs"})
            )
            seen.append(client.post(url, json=ask()))
            seen.append(client.post(url, json=ask()))
            seen.append(client.post(url, json=ask(stream=True)))
    assert [request.key for request in server.requests] == [
        OPENAI_KEY,
        ANTHROPIC_KEY,
        OPENAI_KEY,
        OPENAI_KEY,
        OPENAI_KEY,
    ]
    for request in server.requests:
        sent = {name: value for name, value in request.headers.items() if name not in {"authorization", "x-api-key"}}
        assert "theirs" not in str(request.headers)
        assert "cookie" not in sent
        assert "x-fusion-scope" not in sent
    assert [answer.status_code for answer in seen] == [200, 200, 401, 200, 200]
    handed_on = "".join(answer.text + str(answer.headers) for answer in seen)
    for secret in (OPENAI_KEY, ANTHROPIC_KEY, "sk-test-0000EXAMPLE0000"):
        assert secret not in handed_on
    assert "Incorrect API key provided: [key]" in seen[2].text
    scrubber = KeyRing({"OPENAI_API_KEY": OPENAI_KEY, "ANTHROPIC_API_KEY": ANTHROPIC_KEY}).scrubber
    assert scan(tmp_path, scrubber) == []


def test_headers_of_the_hop_are_not_handed_on(door, server) -> None:
    headers = {"set-cookie": "session=1", "x-ratelimit-remaining-requests": "9", "keep-alive": "5"}
    server.script(Reply(headers=headers))
    answer = httpx2.post(f"{door.url}/judge/v1/chat/completions", json=ask())
    assert answer.headers["x-ratelimit-remaining-requests"] == "9"
    assert answer.headers["x-request-id"] == "req_1"
    assert "set-cookie" not in answer.headers
    assert "keep-alive" not in answer.headers
    assert len(answer.headers.get_list("content-type")) == 1


def test_shapes_that_are_no_answer_pass_through_and_are_recorded(door, server, case_20) -> None:
    replies = case_20["input"]["responses"]
    server.script(
        *(
            Reply(status=r["status"], content_type=r["content_type"], body=r["body"], billed=True)
            for r in replies.values()
        )
    )
    for reply in replies.values():
        answer = httpx2.post(f"{door.url}/judge/v1/chat/completions", json=ask())
        assert answer.status_code == reply["status"]
        assert answer.headers["content-type"] == reply["content_type"]
        if isinstance(reply["body"], dict):
            assert answer.json() == reply["body"]
        assert case_20["expected"]["must_not_contain_anywhere_in_artifacts"] not in answer.text
    rows = door.settled()
    assert [row["outcome"] for row in rows] == ["pipeline_error"] * 3 + ["provider_error", "answered"]
    reserved = door.reserved()[0]["reserved"]
    assert [row["charged"] for row in rows] == [reserved, reserved, 5 * GPT_IN, reserved, reserved]
    assert [row["estimated"] for row in rows] == [True, True, False, True, True]
    assert ["answer" in row for row in rows] == [False, False, False, False, True]


@pytest.fixture
def case_20():
    """The shapes of case 20, written down again so that the test needs no other folder."""
    page = "<!doctype html><html><body>Use key sk-test-0000EXAMPLE0000</body></html>"
    parts = [{"type": "text", "text": "print("}, {"type": "text", "text": "7)"}]
    message = {"role": "assistant", "content": parts}
    usage = {"prompt_tokens": 5, "completion_tokens": 0, "total_tokens": 5}
    busy = {"code": 429, "message": "upstream busy"}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    bodies = {
        "g1": (200, "text/html; charset=utf-8", page),
        "g2": (200, "application/json", {"id": None, "choices": None, "usage": None, "error": busy}),
        "g3": (200, "application/json", {"id": "r3", "choices": [], "usage": usage}),
        "g4": (502, "text/html", "<html>Bad gateway</html>"),
        "g5": (200, "application/json", {"id": "r5", "model": "gpt-5.5", "choices": [choice], "usage": None}),
    }
    return {
        "input": {
            "responses": {name: {"status": s, "content_type": c, "body": b} for name, (s, c, b) in bodies.items()}
        },
        "expected": {"must_not_contain_anywhere_in_artifacts": "sk-test-0000EXAMPLE0000"},
    }


def test_the_query_and_the_headers_of_a_client_go_on(door, server) -> None:
    httpx2.post(
        f"{door.url}/panel-opus/v1/messages?beta=true&beta=false",
        json=ask_anthropic(),
        headers={"anthropic-beta": "fine-grained-tool-streaming-2025-05-14"},
    )
    request = server.requests[0]
    assert request.path == "/v1/messages?beta=true&beta=false"
    assert request.headers["anthropic-beta"] == "fine-grained-tool-streaming-2025-05-14"
    assert json.loads(request.body) == ask_anthropic()


def test_a_key_in_the_upstreams_own_words_reaches_neither_journal_nor_client(tmp_path, server) -> None:
    server.script(
        Reply(headers={"x-echo": OPENAI_KEY, "x-request-id": f"req-{OPENAI_KEY}"}, tier=OPENAI_KEY),
        Reply(model=OPENAI_KEY),
    )
    with metered(tmp_path, server) as door, httpx2.Client() as client:
        url = f"{door.url}/judge/v1/chat/completions"
        answers = [client.post(url, json=ask(prompt)) for prompt in ("one", "two", "three")]
    assert [answer.status_code for answer in answers] == [200, 200, 402]  # another model answered: the run has stopped
    assert OPENAI_KEY not in "".join(str(answer.headers) + answer.text for answer in answers)
    assert OPENAI_KEY not in (tmp_path / "calls" / "journal.jsonl").read_text()
