"""Hosts: two makers, loopback and what the user listed; every trick of a URL ends in a refusal that repeats nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fusion_audit.configuration import parse_configuration
from pytest_fusion_audit.metering.hosts import (
    ForeignModelError,
    UnlistedHostError,
    environment_endpoints,
    header_lines,
    host_of,
    maker_of,
    resolve_endpoint,
)
from tests.metering.planted_keys import ENVIRONMENT, OPENAI, PASSWORD, shown_with_locals


def allow(url: str = "https://router.example/api/v1", **fields: str) -> tuple[object, ...]:
    entry = {
        "url": url,
        "provider": "openai",
        "api_key_env": "ROUTER_KEY",
        "auth": "bearer",
        "model_map": "{gpt-5.5: vendor/gpt}",
        "pricing": "{gpt-5.5: {input_per_1m_tokens: 5, output_per_1m_tokens: 30}}",
    } | fields
    lines = "\n".join(f"      {name}: {value}" for name, value in entry.items())
    return parse_configuration(f"endpoints:\n  allow:\n    -\n{lines}").endpoints.allow


@pytest.mark.parametrize(
    ("url", "variable"),
    [
        ("https://api.openai.com", "OPENAI_API_KEY"),
        ("https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("HTTPS://API.OpenAI.com.:443/v1/", "OPENAI_API_KEY"),
        ("https://api.openai.com/v1/files?limit=20", "OPENAI_API_KEY"),
        ("https://api.anthropic.com/v1/messages?beta=true", "ANTHROPIC_API_KEY"),
        ("https://router.example", "ROUTER_KEY"),
        ("https://router.example:443/other/path", "ROUTER_KEY"),
    ],
)
def test_known_hosts_and_their_variables(url: str, variable: str) -> None:
    assert resolve_endpoint(url, allow(), source="a test").api_key_env == variable


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:8091/v1", "http://127.9.9.9", "http://localhost:1", "http://LOCALHOST/v1", "https://[::1]:9/v1"],
)
def test_loopback_is_always_allowed_and_has_no_key(url: str) -> None:
    endpoint = resolve_endpoint(url, source="a test", api_key_env="OPENAI_API_KEY")
    assert endpoint.loopback
    assert endpoint.api_key_env is None


@pytest.mark.parametrize(
    "url",
    [
        "https://gw.example/v1",
        "http://api.openai.com/v1",
        "https://api.openai.com:8443/v1",
        "https://api.openai.com.gw.example",
        "https://openai.com",
        "https://eu.api.openai.com/v1",
        "https://api-openai.com",
        "https://api.openai.com@gw.example/v1",
        "https://api.openai.com:443@gw.example/v1",
        "https://api.openai.com\\@gw.example/v1",
        "https://gw.example\\.api.openai.com",
        "https://gw.example#@api.openai.com",
        "https://gw.example?x=@api.openai.com",
        "https://gw.example/@api.openai.com",
        "https://\u0430pi.openai.com/v1",
        "https://api\u3002openai.com/v1",
        "https://api.openai.com%2egw.example/v1",
        "https://api.openai.com\n.gw.example/v1",
        " https://api.openai.com/v1",
        "https://api.openai.com/v1\n",
        "https:/api.openai.com/v1",
        "//api.openai.com/v1",
        "api.openai.com",
        "ftp://api.openai.com",
        "file:///etc/passwd",
        "https://",
        "",
        "http://127.0.0.1.gw.example",
        "http://0.0.0.0:8091",
        "http://2130706433/",
        "http://127.1/",
        "http://[::ffff:10.0.0.1]/",
        "http://[::1/",
        "http://router.example/api/v1",
        "https://router.example:8443/api/v1",
        "https://api.openai.com:99999999/",
    ],
)
def test_every_other_url_is_refused_with_its_source(url: str) -> None:
    with pytest.raises(UnlistedHostError, match="nothing was sent") as caught:
        resolve_endpoint(url, allow(), source="base_url of gpt in audits/panel.yaml")
    assert "base_url of gpt in audits/panel.yaml" in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        f"https://user:{PASSWORD}@gw.example/v1?api_key={OPENAI}",
        f"https://user:{PASSWORD}@api.openai.com/v1",
        f"https://{OPENAI}@api.openai.com/v1",
        f"https://api.openai.com/v1?api_key={OPENAI}",
        f"https://router.example/?token={PASSWORD}",
        f"https://{OPENAI}/",
        f"https://gw.example/{OPENAI}",
        f"{OPENAI}",
        f"https://gw.example:{PASSWORD}/",
    ],
)
def test_a_refusal_repeats_no_credentials_not_even_in_locals(url: str) -> None:
    with pytest.raises(UnlistedHostError) as caught:
        resolve_endpoint(url, allow(), source="the panel")
    shown = shown_with_locals(caught.value)
    assert PASSWORD not in shown
    assert OPENAI.lower() not in shown.lower()


def test_a_panel_cannot_send_another_variable_to_a_host() -> None:
    with pytest.raises(
        UnlistedHostError, match=r"gets the key of OPENAI_API_KEY and no other \(the panel names another"
    ):
        resolve_endpoint("https://api.openai.com", source="the panel", api_key_env="AWS_SECRET_ACCESS_KEY")
    assert resolve_endpoint("https://api.openai.com", source="p", api_key_env="OPENAI_API_KEY").kind == "own"


def test_a_makers_own_host_may_be_listed_with_another_variable() -> None:
    listed = allow("https://api.openai.com/v1", api_key_env="TEAM_KEY")
    endpoint = resolve_endpoint("https://api.openai.com/v1", listed, source="a test")
    assert (endpoint.kind, endpoint.api_key_env) == ("own", "TEAM_KEY")


@pytest.mark.parametrize("url", ["http://127.0.0.1:4000/v1", "http://localhost:4000"])
def test_loopback_cannot_be_listed_to_get_a_key(url: str) -> None:
    with pytest.raises(UnlistedHostError, match="placeholder keys only; take the entry out"):
        resolve_endpoint("https://api.openai.com", allow(url), source="a test")


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://API.openai.com.:443/v1", "api.openai.com"),
        ("https://router.example:8443/api?x=1", "router.example:8443"),
        ("http://router.example:80", "router.example"),
        ("https://router.example:80", "router.example:80"),
        ("http://[::1]:9/v1", "[::1]:9"),
    ],
)
def test_a_host_is_called_the_same_everywhere(url: str, host: str) -> None:
    assert host_of(url) == host
    if "router.example:8443" in url:
        assert resolve_endpoint(url, allow(url), source="a test").host == host


def test_a_url_with_credentials_is_no_name_of_a_host() -> None:
    with pytest.raises(UnlistedHostError, match="holds credentials") as caught:
        host_of(f"https://user:{PASSWORD}@router.example")
    assert PASSWORD not in shown_with_locals(caught.value)


# --- the environment


@pytest.mark.parametrize("name", ["OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"])
def test_a_base_url_in_the_environment_must_be_listed(name: str) -> None:
    environ = ENVIRONMENT | {name: f"https://user:{PASSWORD}@gw.example/v1"}
    with pytest.raises(UnlistedHostError, match=f"{name} in the environment") as caught:
        environment_endpoints(environ)
    shown = shown_with_locals(caught.value)
    assert PASSWORD not in shown
    assert OPENAI not in shown
    with pytest.raises(UnlistedHostError, match=f"gw.example .*{name} in the environment"):
        environment_endpoints({name: "https://gw.example/v1"})
    assert environment_endpoints({name: "https://router.example/v1"}, allow())[name].host == "router.example"
    assert environment_endpoints({name: "http://127.0.0.1:9/v1"})[name].loopback
    assert environment_endpoints({name: "https://api.openai.com/v1\n"})[name].kind == "own"
    assert environment_endpoints({name: " ", "OTHER_BASE_URL": "https://x.example"}) == {}


# --- what is said and kept


def test_header_lines_name_host_variable_and_what_is_odd() -> None:
    urls = ["https://api.openai.com", "https://router.example", "http://127.0.0.1:9", "https://api.openai.com/v1"]
    lines = header_lines(resolve_endpoint(url, allow(), source="a test") for url in urls)
    assert lines == [
        "endpoint 127.0.0.1:9 · loopback · placeholder key",
        "endpoint api.openai.com · openai · key from OPENAI_API_KEY",
        "endpoint router.example · openai · key from ROUTER_KEY · listed in fusion.yaml",
    ]
    plain = resolve_endpoint("http://lan.example", allow("http://lan.example"), source="a test")
    assert plain.header_line().endswith("NOT ENCRYPTED")


def test_what_the_run_keeps_is_names() -> None:
    kept = resolve_endpoint("https://router.example", allow(), source="a test").to_json()
    assert kept == {
        "host": "router.example",
        "scheme": "https",
        "kind": "listed",
        "provider": "openai",
        "api_key_env": "ROUTER_KEY",
        "auth": "bearer",
        "model_map": {"gpt-5.5": "vendor/gpt"},
    }


# --- models behind a router


def test_a_listed_host_is_asked_for_mapped_models_only() -> None:
    endpoint = resolve_endpoint("https://router.example", allow(), source="a test")
    assert endpoint.model("gpt-5.5") == "vendor/gpt"
    with pytest.raises(UnlistedHostError, match="no entry for the model claude-opus-4-8; nothing was sent"):
        endpoint.model("claude-opus-4-8")
    assert resolve_endpoint("https://api.openai.com", source="a test").model("anything") == "anything"


@pytest.mark.parametrize("answered", [None, "", "mistral-large", "qwen/gpt4all", "llama-4", "deepseek-r1"])
def test_a_foreign_or_unreported_model_behind_a_router_stops_the_run(answered: str | None) -> None:
    endpoint = resolve_endpoint("https://router.example", allow(), source="a test")
    with pytest.raises(ForeignModelError, match="The run stops"):
        endpoint.check_answered("gpt-5.5", answered)
    endpoint.check_answered("gpt-5.5", "openai/gpt-5.5-2026-04-23")
    resolve_endpoint("https://api.openai.com", source="a test").check_answered("gpt-5.5", None)
    resolve_endpoint("http://127.0.0.1:9", source="a test").check_answered("gpt-5.5", "llama-4")


@pytest.mark.parametrize(
    ("model", "maker"),
    [
        ("gpt-5.5", "openai"),
        ("openai/gpt-5.5-2026-04-23", "openai"),
        ("o3", "openai"),
        ("o4-mini", "openai"),
        ("chatgpt-5-latest", "openai"),
        ("codex-mini-latest", "openai"),
        ("claude-opus-4-8", "anthropic"),
        ("anthropic/claude-sonnet-4-6", "anthropic"),
        ("us.anthropic.claude-opus-4-8-v1:0", "anthropic"),
        ("claude-opus-4-8@20260101", "anthropic"),
        ("gemini-3-pro", None),
        ("gpt4all-13b", None),
        ("notclaude-1", None),
        ("olmo-2", None),
        ("", None),
    ],
)
def test_makers_of_models(model: str, maker: str | None) -> None:
    assert maker_of(model) == maker


@given(st.text() | st.from_regex(r"https?://[a-z.@:\\/#?-]{0,40}", fullmatch=True))
def test_no_text_resolves_to_a_makers_key_but_its_own_host(url: str) -> None:
    try:
        endpoint = resolve_endpoint(url, source="a test")
    except UnlistedHostError:
        return
    if not endpoint.loopback:
        assert url.lower().startswith(f"https://{endpoint.host}")
        assert endpoint.host in {"api.openai.com", "api.anthropic.com"}
