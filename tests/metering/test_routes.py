"""Where each model is asked: the panel's URL, the environment's, the maker's own; and which are refused."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_fusion_audit.configuration import AllowedEndpoint
from pytest_fusion_audit.configuration.panel import Panel
from pytest_fusion_audit.metering.endpoints import UnlistedHostError
from pytest_fusion_audit.metering.routes import routes_of

ROUTER = AllowedEndpoint.model_validate(
    {
        "url": "https://router.example/api",
        "provider": "openai",
        "api_key_env": "ROUTER_KEY",
        "auth": "bearer",
        "model_map": {"gpt-5.5": "openai/gpt-5.5"},
        "pricing": {"gpt-5.5": {"input_per_1m_tokens": 6, "output_per_1m_tokens": 36}},
    }
)


def panel(*endpoints: dict[str, Any]) -> Panel:
    return Panel.model_validate({"endpoints": [{"id": f"m{at}", **each} for at, each in enumerate(endpoints)]})


GPT, OPUS = {"provider": "openai", "model": "gpt-5.5"}, {"provider": "anthropic", "model": "claude-opus-4-8"}


def test_the_makers_own_hosts_are_the_default() -> None:
    routes = routes_of(panel(GPT, OPUS), (), {})
    assert [(route.id, route.provider, route.url) for route in routes.all()] == [
        ("m0", "openai", "https://api.openai.com/v1"),
        ("m1", "anthropic", "https://api.anthropic.com"),
    ]
    assert [routes.provider_of(host) for host in ("api.openai.com", "api.anthropic.com", "127.0.0.1:1")] == [
        "openai",
        "anthropic",
        "local",
    ]
    assert routes_of(None, (), {}).of("anthropic").model is None
    for other in ("nobody", "anthropic"):  # with a panel nothing but its endpoints is asked
        with pytest.raises(UnlistedHostError, match="Known: m0, m1"):
            routes.of(other)


def test_a_gateway_that_tells_makers_apart_gets_the_panels_places() -> None:
    one = {**GPT, "base_url": "http://127.0.0.1:7"}
    assert routes_of(panel(one, one, OPUS), (), {}).of_makers() == {
        "openai": "http://127.0.0.1:7/v1",
        "anthropic": "https://api.anthropic.com",
    }
    with pytest.raises(UnlistedHostError, match="openai at 2 places"):
        routes_of(panel(one, GPT), (), {}).of_makers()


def test_the_panels_url_wins_over_the_environments() -> None:
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:7/v1", "ANTHROPIC_BASE_URL": "http://127.0.0.1:8"}
    routes = routes_of(panel({**GPT, "base_url": "https://api.openai.com"}, OPUS), (), environ)
    assert [route.url for route in routes.all()] == ["https://api.openai.com/v1", "http://127.0.0.1:8"]
    assert routes_of(None, (), environ).of("openai").url == "http://127.0.0.1:7/v1"
    assert routes.provider_of("127.0.0.1:8") == "anthropic"


def test_a_listed_host_has_to_know_the_model() -> None:
    routed = {**GPT, "base_url": "https://router.example/api/v1", "api_key_env": "ROUTER_KEY"}
    route = routes_of(panel(routed), (ROUTER,), {}).of("m0")
    assert (route.endpoint.api_key_env, route.endpoint.model("gpt-5.5")) == ("ROUTER_KEY", "openai/gpt-5.5")
    with pytest.raises(UnlistedHostError, match="no entry for the model gpt-5-mini"):
        routes_of(panel({**routed, "model": "gpt-5-mini"}), (ROUTER,), {})


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({**GPT, "model": "mistral-large"}, "model: is not a model of openai"),
        ({**GPT, "model": "claude-opus-4-8"}, "model: is not a model of openai"),
        ({**GPT, "base_url": "https://collector.example"}, "base_url of m0 in the panel file"),
        ({**GPT, "base_url": "http://api.openai.com"}, "over https"),
        ({**GPT, "base_url": "https://api.openai.com", "api_key_env": "AWS_SECRET"}, "names another variable"),
        ({**GPT, "provider": "openai-compatible", "base_url": "https://api.openai.com"}, "for servers on this machine"),
    ],
)
def test_what_is_refused(entry: dict[str, Any], said: str) -> None:
    with pytest.raises(UnlistedHostError, match=said):
        routes_of(panel(entry), (), {})


def test_a_server_here_may_be_called_anything() -> None:
    local = {"provider": "openai-compatible", "model": "smollm2", "base_url": "http://127.0.0.1:9"}
    route = routes_of(panel(local), (), {}).of("m0")
    assert (route.provider, route.url, route.endpoint.loopback) == ("local", "http://127.0.0.1:9/v1", True)


def test_a_host_of_both_makers_is_told_by_the_model() -> None:
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:7/v1", "ANTHROPIC_BASE_URL": "http://127.0.0.1:7"}
    assert routes_of(None, (), environ).of_both_makers() == ["127.0.0.1:7"]
    assert routes_of(None, (), {}).of_both_makers() == []
