"""Keys: read without an echo, shown nowhere, put on a request for the host they belong to and for no other."""

from __future__ import annotations

import copy
import json
import pickle
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fusion_audit.configuration import parse_configuration
from pytest_fusion_audit.metering.hosts import Endpoint, UnlistedHostError
from pytest_fusion_audit.metering.keys import (
    PLACEHOLDER,
    KeyFormatError,
    KeyMissingError,
    KeyRing,
    Secret,
    read_key,
    secrets_in_url,
)
from tests.metering.planted_keys import ANTHROPIC, ENVIRONMENT, KEYS, OPENAI, PASSWORD, ROUTER, shown_with_locals

httpx2 = pytest.importorskip("httpx2")

if TYPE_CHECKING:
    from collections.abc import Mapping

ALLOW = parse_configuration(
    """
endpoints:
  allow:
    - url: https://router.example/api/v1
      provider: openai
      api_key_env: ROUTER_API_KEY
      auth: api-key
      model_map: {gpt-5.5: openai/gpt-5.5}
      pricing: {gpt-5.5: {input_per_1m_tokens: 5.25, output_per_1m_tokens: 31.5}}
    - url: https://team.example:8443
      provider: anthropic
      api_key_env: TEAM_KEY
      auth: x-api-key
      model_map: {claude-opus-4-8: opus}
      pricing: {claude-opus-4-8: {input_per_1m_tokens: 5, output_per_1m_tokens: 25}}
"""
).endpoints.allow


def headers_after(
    url: str, headers: Mapping[str, str], environ: Mapping[str, str] = ENVIRONMENT, **more: object
) -> dict[str, str]:
    request = httpx2.Request("POST", url, headers=headers, json={})
    KeyRing(environ, ALLOW, **more).authorise(request)
    return {
        name: request.headers[name]
        for name in request.headers
        if name not in {"host", "content-length", "content-type"}
    }


# --- reading


def test_a_clean_key_is_read_without_a_word() -> None:
    read = read_key("OPENAI_API_KEY", ENVIRONMENT)
    assert (read.secret.reveal(), read.warning) == (OPENAI, None)


@pytest.mark.parametrize("around", [("", "\n"), (" ", ""), ("\t", "\r\n"), ("\n\n", "  ")])
def test_blanks_around_a_key_are_stripped_with_a_warning(around: tuple[str, str]) -> None:
    read = read_key("K", {"K": around[0] + OPENAI + around[1]})
    assert read.secret.reveal() == OPENAI
    assert read.warning is not None
    assert read.warning.startswith("K has blanks or a line break")
    assert OPENAI not in read.warning


@pytest.mark.parametrize("environ", [{}, {"K": ""}, {"K": " \n"}])
def test_a_missing_key_names_its_variable(environ: dict[str, str]) -> None:
    with pytest.raises(KeyMissingError, match=r"^K (is not set|holds nothing but blanks); set it"):
        read_key("K", environ)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (f'"{OPENAI}"', "quotes"),
        (f"'{OPENAI}'", "quotes"),
        (f"Bearer {OPENAI}", "authentication scheme"),
        (f"{OPENAI[:9]} {OPENAI[9:]}", "blanks"),
        (f"{OPENAI[:9]}\n{OPENAI[9:]}", "blanks"),
        (f"{OPENAI}\0", "control characters"),
        (f"{OPENAI}é", "beyond ASCII"),
        (f"\ufeff{OPENAI}", "beyond ASCII"),
        (f"https://{OPENAI}", "is a URL"),
        ("sk-7391", "shorter than 8"),
        ("sk-7391" * 700, "longer than 4096"),
    ],
)
def test_what_cannot_be_a_key_is_refused_and_never_echoed(value: str, said: str) -> None:
    with pytest.raises(KeyFormatError, match=r"^K .*its value is not shown and was not sent") as caught:
        read_key("K", {"K": value})
    assert said in str(caught.value)
    shown = shown_with_locals(caught.value)
    assert "7391" not in shown


@given(st.text())
def test_any_value_is_read_or_refused(value: str) -> None:
    try:
        read = read_key("K", {"K": value})
    except (KeyMissingError, KeyFormatError) as error:
        if len(value.strip()) > 4:
            assert value.strip() not in str(error)  # noqa: PT017
    else:
        key = read.secret.reveal()
        assert key == value.strip()
        assert all("!" <= character <= "~" for character in key)


# --- in memory


def test_a_secret_shows_nowhere() -> None:
    secret = Secret(OPENAI, "OPENAI_API_KEY")
    holder = {"headers": [secret], "nested": (secret,)}
    shown = [
        repr(secret),
        str(secret),
        f"{secret:>40}",
        f"{secret!r}",
        f"{secret}",
        repr(holder),
        str(vars(type(secret))),
    ]
    assert OPENAI not in " ".join(shown)
    assert repr(secret) == "<key of OPENAI_API_KEY>"
    assert not hasattr(secret, "__dict__")
    with pytest.raises(TypeError):
        json.dumps(secret)
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(secret)


def test_a_secret_is_a_value() -> None:
    secret = Secret(OPENAI)
    assert secret == Secret(OPENAI, "other name")
    assert secret != Secret(ANTHROPIC)
    assert secret != OPENAI
    assert len({secret, Secret(OPENAI)}) == 1
    assert copy.deepcopy(secret) is copy.copy(secret) is secret
    assert secret
    assert not Secret("")


# --- what must appear nowhere


def test_secrets_in_urls() -> None:
    assert secrets_in_url(f"https://user:{PASSWORD}@gw.example/v1?api_key={OPENAI}&page=2") == (PASSWORD, OPENAI)
    assert secrets_in_url("https://token0123@github.com/o/r") == ("token0123",)
    assert secrets_in_url("https://gw.example/v1?max_tokens=20&author=me&keyword=x&design=y") == ()
    assert secrets_in_url("no url") == secrets_in_url("") == secrets_in_url("http://[") == ()


def test_every_key_of_the_environment_is_scrubbed_used_or_not() -> None:
    ring = KeyRing(
        ENVIRONMENT
        | {"TARGET_HEADER": "value-of-a-header-1", "HF_TOKEN": "hf_0123456789ab", "FOO_API_KEY": "changeme"},
        ALLOW,
        variables=["TARGET_HEADER"],
        urls=["https://u:panelpassword@panel.example/v1"],
    )
    text = " ".join([*KEYS, "value-of-a-header-1", "hf_0123456789ab", "panelpassword"])
    assert ring.scrubber.text(text) == " ".join(["[key]"] * (len(KEYS) + 3))
    assert ring.scrubber.text("changeme and placeholder stay") == "changeme and placeholder stay"


def test_missing_names_variables() -> None:
    assert KeyRing({"OPENAI_API_KEY": OPENAI, "ANTHROPIC_API_KEY": " "}).missing() == ("ANTHROPIC_API_KEY",)


# --- on requests


def test_each_maker_gets_its_own_key_in_the_form_that_its_client_sends() -> None:
    openai = "https://api.openai.com/v1/chat/completions"
    anthropic = "https://api.anthropic.com/v1/messages"
    assert headers_after(openai, {"authorization": f"Bearer {PLACEHOLDER}"}) == {"authorization": f"Bearer {OPENAI}"}
    assert headers_after(openai, {"x-api-key": PLACEHOLDER}) == {"authorization": f"Bearer {OPENAI}"}
    assert headers_after(anthropic, {"authorization": f"Bearer {PLACEHOLDER}"}) == {
        "authorization": f"Bearer {ANTHROPIC}"
    }
    assert headers_after(anthropic, {"X-Api-Key": PLACEHOLDER}) == {"x-api-key": ANTHROPIC}


def test_a_listed_host_gets_its_own_key_in_its_own_form() -> None:
    sent = {"authorization": f"Bearer {OPENAI}", "cookie": "session=1", "OpenAI-Organization": "org-1", "x-other": "1"}
    assert headers_after("https://router.example/api/v1/x", sent) == {"api-key": ROUTER, "x-other": "1"}
    environ = {"TEAM_KEY": "team-key-0123456789"}
    assert headers_after("https://team.example:8443/v1", {}, environ) == {"x-api-key": "team-key-0123456789"}


@pytest.mark.parametrize("url", ["http://127.0.0.1:8091/v1", "http://localhost/v1", "https://[::1]:9/x"])
def test_loopback_gets_the_placeholder_whatever_the_client_sent(url: str) -> None:
    sent = {"authorization": f"Bearer {OPENAI}", "x-api-key": ANTHROPIC, "openai-project": "p"}
    assert headers_after(url, sent) == {"x-api-key": PLACEHOLDER}
    assert headers_after(url, {}, {}) == {"authorization": f"Bearer {PLACEHOLDER}"}


def test_account_headers_reach_their_own_maker_only() -> None:
    sent = {"openai-organization": "org-1", "openai-project": "p-1"}
    assert headers_after("https://api.openai.com/v1", sent) | sent == headers_after("https://api.openai.com/v1", sent)
    assert "openai-organization" not in headers_after("https://api.anthropic.com/v1", sent)


def test_the_target_of_the_user_is_an_endpoint_too() -> None:
    target = Endpoint(
        host="fused.example", scheme="https", kind="listed", provider="openai", api_key_env="FUSED_KEY", auth="bearer"
    )
    environ = {"FUSED_KEY": "fused-key-0123456789"}
    found = headers_after("https://fused.example/v1/chat/completions", {}, environ, further=[target])
    assert found == {"authorization": "Bearer fused-key-0123456789"}


@pytest.mark.parametrize(
    "url",
    [
        "https://gw.example/v1",
        "http://api.openai.com/v1",
        "https://api.openai.com:8443/v1",
        "https://api.openai.com.gw.example/v1",
        "https://xn--pi-6kc.openai.com/v1",
        f"https://user:{PASSWORD}@api.openai.com/v1",
        "https://api.openai.com@gw.example/v1",
        f"https://api.openai.com/v1?api_key={PASSWORD}",
    ],
)
def test_any_other_host_gets_no_key_and_the_request_is_not_sent(url: str) -> None:
    request = httpx2.Request("POST", url, headers={"authorization": f"Bearer {PLACEHOLDER}"})
    with pytest.raises(UnlistedHostError, match="nothing was sent") as caught:
        KeyRing(ENVIRONMENT, ALLOW).authorise(request)
    assert request.headers["authorization"] == f"Bearer {PLACEHOLDER}"
    assert not any(key in str(caught.value) for key in KEYS)


@pytest.mark.parametrize(
    ("url", "environ"),
    [
        ("https://api.openai.com/v1", {"OPENAI_API_KEY": ANTHROPIC}),
        ("https://api.anthropic.com/v1", {"ANTHROPIC_API_KEY": "sk-proj-7391abcdefgh"}),
    ],
)
def test_a_key_in_the_other_makers_variable_is_not_sent(url: str, environ: dict[str, str]) -> None:
    request = httpx2.Request("POST", url)
    with pytest.raises(KeyFormatError, match="key of the other maker; it is not shown and was not sent") as caught:
        KeyRing(environ).authorise(request)
    assert not {"authorization", "x-api-key"} & set(request.headers)
    shown = shown_with_locals(caught.value)
    assert not any(value in shown for value in environ.values())


def test_the_endpoint_of_a_request_is_called_as_its_host_is_listed() -> None:
    ring = KeyRing(ENVIRONMENT, ALLOW)
    endpoint = ring.endpoint_of(httpx2.URL("https://TEAM.example:8443/v1/messages?beta=true"))
    assert (endpoint.host, endpoint.model("claude-opus-4-8")) == ("team.example:8443", "opus")
    assert ring.endpoint_of(httpx2.URL("https://team.example:8443/")) is endpoint
    assert ring.endpoint_of(httpx2.URL("http://127.0.0.1:8091/v1")).host == "127.0.0.1:8091"
    with pytest.raises(UnlistedHostError, match="nothing was sent"):
        ring.endpoint_of(httpx2.URL("https://team.example/v1"))


def test_an_ordinary_query_is_sent() -> None:
    found = headers_after("https://api.openai.com/v1/batches?limit=20&after=batch_1&max_tokens=5", {})
    assert found == {"authorization": f"Bearer {OPENAI}"}


def test_a_missing_key_is_told_before_anything_is_sent() -> None:
    with pytest.raises(KeyMissingError, match="ROUTER_API_KEY is not set"):
        headers_after("https://router.example/api/v1", {}, {})


def test_a_warning_is_given_once_however_often_the_key_is_used() -> None:
    ring = KeyRing(ENVIRONMENT)
    for _ in range(3):
        ring.authorise(httpx2.Request("POST", "https://api.anthropic.com/v1/messages"))
    assert len(ring.warnings) == 1
    assert "ANTHROPIC_API_KEY" in ring.warnings[0]
    assert ANTHROPIC not in ring.warnings[0]
