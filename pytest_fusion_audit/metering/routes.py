"""Where each model of a run is asked: base URL, maker, host; checked before anything is sent.

A URL comes from the panel file, else from ``OPENAI_BASE_URL`` or ``ANTHROPIC_BASE_URL``, else it is the maker's own.
Whatever says it, the host has to be allowed (`metering.hosts`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_fusion_audit.metering.endpoints import UnlistedHostError, maker_of
from pytest_fusion_audit.metering.hosts import BASE_URL_VARIABLES, Endpoint, environment_endpoints, resolve_endpoint
from pytest_fusion_audit.metering.pricing import LOCAL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_fusion_audit.configuration import AllowedEndpoint
    from pytest_fusion_audit.configuration.panel import Panel, PanelEndpoint
    from pytest_fusion_audit.metering.endpoints import Provider

OWN_URLS: Mapping[Provider, str] = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
_VERSION = re.compile(r"/v\d+(?:beta)?\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """How one model is asked.

    Attributes:
        id: name of the endpoint in the panel file; the maker's for the default routes.
        provider: maker whose SDK, prices and capabilities apply; ``local`` for an openai-compatible server here.
        model: id as the panel names it; None for the default routes, which take any.
        url: base URL as the maker's SDK wants it.
        endpoint: host, key and what is known of it.
        timeout_s: longest silence of the other side, None where nothing is said.
    """

    id: str
    provider: str
    model: str | None
    url: str
    endpoint: Endpoint
    timeout_s: float | None = None

    @property
    def host(self) -> str:
        """Host, with the port where it is not the scheme's own: how the journal names it."""
        return self.endpoint.host


@dataclass(frozen=True, slots=True)
class Routes:
    """All routes of a run."""

    by_id: Mapping[str, Route]
    default: Mapping[Provider, Route]
    _providers: dict[str, str] = field(default_factory=dict)

    def of(self, id_: str) -> Route:
        """The route of an endpoint of the panel; without a panel, of a maker.

        Raises:
            UnlistedHostError: no such endpoint. With a panel nothing else is asked.
        """
        found = next((route for route in self.all() if route.id == id_), None)
        if found is None:
            raise UnlistedHostError(
                f"{id_!r} is no endpoint of this run; nothing was sent. Known: {', '.join(r.id for r in self.all())}"
            )
        return found

    def of_makers(self) -> dict[Provider, str]:
        """Base URL of each maker that the run asks, for a gateway that tells makers apart by ``provider/name`` ids.

        Raises:
            UnlistedHostError: the panel asks one maker at two places.
        """
        found: dict[Provider, str] = {}
        for maker in OWN_URLS:
            urls = {route.url for route in self.all() if route.provider == maker}
            if len(urls) > 1:
                raise UnlistedHostError(
                    f"the panel asks models of {maker} at {len(urls)} places: give them one base_url"
                )
            if urls:
                found[maker] = urls.pop()
        return found

    def all(self) -> list[Route]:
        """Routes of the panel; without a panel the makers' own."""
        return list(self.by_id.values()) or list(self.default.values())

    def provider_of(self, host: str) -> str:
        """Whose prices hold at a host; ``local`` for a loopback server that nobody named."""
        if not self._providers:
            for route in self.all():
                self._providers[route.host] = route.provider
        return self._providers.get(host, LOCAL)

    def of_both_makers(self) -> list[str]:
        """Hosts at which models of both makers are asked: there the model's own name says whose it is."""
        found: dict[str, set[str]] = {}
        for route in self.all():
            found.setdefault(route.host, set()).add(route.provider)
        return [host for host, providers in found.items() if len(providers) > 1]

    def endpoints(self) -> list[Endpoint]:
        """Every endpoint that may be called, each once."""
        return list({route.endpoint.host: route.endpoint for route in self.all()}.values())

    def variables(self) -> list[str]:
        """Names of the variables whose keys the run needs, sorted."""
        return sorted({name for route in self.all() if (name := route.endpoint.api_key_env) is not None})


def routes_of(
    panel: Panel | None,
    allow: Sequence[AllowedEndpoint],
    environ: Mapping[str, str],
    *,
    panel_name: str = "the panel file",
    further: Sequence[Endpoint] = (),
) -> Routes:
    """Find out where every model of a run is asked.

    Args:
        panel: the panel file, None without one.
        allow: ``endpoints.allow`` of fusion.yaml.
        environ: for the base URLs that the makers' SDKs would take.
        panel_name: how messages call the panel file.
        further: endpoints that the user named in other words.

    Raises:
        UnlistedHostError: a URL leads to a host that is not allowed; the message says where it came from. Also a model
            of another maker than OpenAI and Anthropic, and an openai-compatible endpoint that is not on this machine.
    """
    found = environment_endpoints(environ, allow)
    default: dict[Provider, Route] = {}
    for variable, maker in BASE_URL_VARIABLES.items():
        url = environ[variable].strip() if variable in found else OWN_URLS[maker]
        endpoint = found.get(variable) or resolve_endpoint(url, allow, source="the maker's own")
        default[maker] = Route(id=maker, provider=maker, model=None, url=_for_sdk(maker, url), endpoint=endpoint)
    models = () if panel is None else panel.models
    return Routes({entry.id: _route(entry, default, allow, panel_name, further) for entry in models}, default)


def _route(
    entry: PanelEndpoint,
    default: Mapping[Provider, Route],
    allow: Sequence[AllowedEndpoint],
    panel_name: str,
    further: Sequence[Endpoint],
) -> Route:
    where = f"{panel_name}, endpoint {entry.id}"
    if entry.provider != "openai-compatible" and maker_of(entry.model) != entry.provider:
        raise UnlistedHostError(
            f"{where}: model: is not a model of {entry.provider}; only models of OpenAI and Anthropic are audited live"
        )
    if entry.base_url is None:
        route = default["anthropic" if entry.provider == "anthropic" else "openai"]
        url, endpoint = route.url, route.endpoint
    else:
        source = f"base_url of {entry.id} in {panel_name}"
        endpoint = resolve_endpoint(
            entry.base_url, allow, source=source, api_key_env=entry.api_key_env, further=further
        )
        url = _for_sdk(entry.provider, entry.base_url)
    if entry.provider == "openai-compatible" and not endpoint.loopback:
        raise UnlistedHostError(
            f"{where}: provider: openai-compatible is for servers on this machine; {endpoint.host} is not"
        )
    endpoint.model(entry.model)  # a listed host has to know it
    provider = LOCAL if entry.provider == "openai-compatible" else entry.provider
    return Route(
        id=entry.id,
        provider=provider,
        model=entry.model,
        url=url,
        endpoint=endpoint,
        timeout_s=entry.timeout_s,
    )


def _for_sdk(provider: str, url: str) -> str:
    """A base URL as the SDK of its maker wants it: OpenAI's ends in a version, Anthropic's does not.

    >>> _for_sdk("openai", "https://api.openai.com"), _for_sdk("anthropic", "http://127.0.0.1:1/v1/")
    ('https://api.openai.com/v1', 'http://127.0.0.1:1')
    """
    trimmed = url.rstrip("/")
    if provider == "anthropic":
        return _VERSION.sub("", trimmed)
    return trimmed if _VERSION.search(trimmed) else f"{trimmed}/v1"
