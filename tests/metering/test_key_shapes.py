"""Keys whose value nobody knows go by their shape; what merely resembles one stays."""

from __future__ import annotations

import json

import pytest

from pytest_fusion_audit.metering.scrubbing import Scrubber
from pytest_fusion_audit.metering.secret import MARK
from tests.metering.planted_keys import KEYS

SCRUBBER = Scrubber()
KEY = "sk-unk0wn-9184abcDEF9184"
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI3In0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        (f"Incorrect API key provided: {KEY}.", "Incorrect API key provided: [key]."),
        ("sk-ant-api03-Zx9_-Zx9_-Zx9_-AA", "[key]"),
        ("sk-proj-abcdEFGH1234_-xyz", "[key]"),
        ("sk-proj-********************ab12", "[key]"),
        ("sk-0123456789abcdef0123", "[key]"),
        (f'"{KEY}"', '"[key]"'),
        (f"line\\n{KEY}\\n", "line\\n[key]\\n"),
        (f"key%3D%20{KEY}%20", "key%3D%20[key]%20"),
        (f"key\\u003d{KEY}", "key\\u003d[key]"),
        (f"Authorization: Bearer {TOKEN}", "Authorization: Bearer [key]"),
        (f"authorization: bearer {TOKEN}", "authorization: bearer [key]"),
        ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "Authorization: Basic [key]"),
        (f"'Authorization': 'Bearer {TOKEN}'", "'Authorization': 'Bearer [key]'"),
        (f"(b'Authorization', b'Bearer {TOKEN}')", "(b'Authorization', b'Bearer [key]')"),
        ("x-api-key: 0a1b2c3d4e5f", "x-api-key: [key]"),
        ("X-Api-Key: 0a1b2c3d4e5f", "X-Api-Key: [key]"),
        ("(b'x-api-key', b'0a1b2c3d4e5f')", "(b'x-api-key', b'[key]')"),
        ('{"api-key": "0a1b2c3d4e5f"}', '{"api-key": "[key]"}'),
        ('{\\"x-api-key\\": \\"0a1b2c3d4e5f\\"}', '{\\"x-api-key\\": \\"[key]\\"}'),
        ("https://user:pass@gw.example/v1", "https://[key]@gw.example/v1"),
        ("https://:pass@gw.example", "https://[key]@gw.example"),
        ("postgres://u:p%40ss@db:5432/x", "postgres://[key]@db:5432/x"),
        ("https:\\/\\/user:pass@gw.example", "https:\\/\\/[key]@gw.example"),
        ("?next=https%3A%2F%2Fuser%3Apass%40gw.example", "?next=https%3A%2F%2F[key]%40gw.example"),
        ("https://gw.example/v1?api_key=abc", "https://gw.example/v1?api_key=[key]"),
        ("https://gw.example/v1?a=1&key=abc&b=2", "https://gw.example/v1?a=1&key=[key]&b=2"),
        ("GET /v1?access_token=abc HTTP/1.1", "GET /v1?access_token=[key] HTTP/1.1"),
        ("?u=%3Fapikey%3Dabc%26b", "?u=%3Fapikey%3D[key]%26b"),
        ("/x?a=1\\u0026api_key=abc", "/x?a=1\\u0026api_key=[key]"),
        ("?x-amz-security-token=abc", "?x-amz-security-token=abc"),  # two words before it: not one of ours
    ],
)
def test_a_shape_goes(text: str, scrubbed: str) -> None:
    assert SCRUBBER.text(text) == scrubbed
    assert SCRUBBER.text(scrubbed) == scrubbed
    assert SCRUBBER.bytes(text.encode()) == scrubbed.encode()


@pytest.mark.parametrize(
    "text",
    [
        "from sklearn import svm  # sk-learn, sk-learn-compatible-estimators",
        "task-0123456789abcdef0123, disk-0123456789abcdef0123, risk-based-0000-scoring",
        '<div class="sk-container-id-12 sk-parallel-item sk-toggleable__label-arrow">',
        "locale sk-SK, sk_test, SK-0123456789ABCDEF",
        "the bearer of this letter, a Bearer authentication_scheme, Bearer realm='x'",
        "basic arithmetic, Basic understanding-of-things, BASIC programs",
        'headers = {"Authorization": f"Bearer {token}", "x-api-key": key}',
        "x-api-key: set ANTHROPIC_API_KEY; authorization: OPENAI_API_KEY",
        "Headers({'authorization': '[secure]', 'x-api-key': '[key]'})",
        "client = OpenAI(api_key=os.environ['OPENAI_API_KEY'])",
        "def f(key=None, token='x'): return key == token",
        "if (a && key == b) { d[key] = 1; }",
        "https://example.com/a?b=1&page=2#frag, git@github.com:o/r.git, ssh://git@host/x, a://b@c",
        "mail me at user@example.com or ratio 3:4@5",
        "401 from api.openai.com: check OPENAI_API_KEY",
        "for i in range(10): print(f'{i:>5}%d' % i, '%20s|%2d' % ('a', 3))",
        json.dumps('tabs\t"quotes" <tags> & \\ slashes / \u00e9 \u4e2d'),
        "",
    ],
)
def test_what_merely_resembles_a_key_stays(text: str) -> None:
    for scrubber in (SCRUBBER, Scrubber(KEYS)):
        assert scrubber.text(text) == text
        assert scrubber.bytes(text.encode()) == text.encode()
        assert scrubber.content(text.encode()) == text.encode()


def test_what_helps_to_correct_it_stays_visible() -> None:
    text = (
        f"401 from api.openai.com for OPENAI_API_KEY: Incorrect API key provided: {KEY} (request req_0123456789abcdef)"
    )
    found = SCRUBBER.text(text)
    assert found == text.replace(KEY, MARK)
