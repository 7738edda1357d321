"""Which hosts may be called, and whose key goes there (providers.md, "Where keys go").

OPENAI_API_KEY goes to api.openai.com and ANTHROPIC_API_KEY to api.anthropic.com, over https, and nowhere else. Loopback
is always allowed and gets a placeholder. Any other host must stand under ``endpoints.allow`` of fusion.yaml with a
variable, an authentication style, a model map and prices of its own: a panel file alone cannot add a host, so that a
pull request cannot collect keys.
"""

from __future__ import annotations

import ipaddress
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pytest_fusion_audit.configuration.fields import CREDENTIAL_PARAMETER
from pytest_fusion_audit.metering.endpoints import (
    OWN,
    Endpoint,
    ForeignModelError,
    UnlistedHostError,
    header_lines,
    maker_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_fusion_audit.configuration import AllowedEndpoint
    from pytest_fusion_audit.metering.endpoints import Provider

__all__ = [
    "BASE_URL_VARIABLES",
    "OWN",
    "Endpoint",
    "ForeignModelError",
    "UnlistedHostError",
    "credentials_in_url",
    "environment_endpoints",
    "header_lines",
    "host_of",
    "maker_of",
    "resolve_endpoint",
]

_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?\.?|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<rest>[/?#][!-~]*)?",
    re.IGNORECASE | re.ASCII,
)
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
#: Base URLs that the SDKs take from the environment, and whose dialect each speaks.
BASE_URL_VARIABLES: Final[Mapping[str, Provider]] = MappingProxyType(
    {"OPENAI_BASE_URL": "openai", "ANTHROPIC_BASE_URL": "anthropic"}
)


def resolve_endpoint(
    url: str,
    allow: Sequence[AllowedEndpoint] = (),
    *,
    source: str,
    api_key_env: str | None = None,
    further: Sequence[Endpoint] = (),
) -> Endpoint:
    """Find out what may be called under a URL.

    Args:
        url: a base URL or the URL of a request.
        allow: ``endpoints.allow`` of fusion.yaml.
        source: where the URL came from, for messages: ``"base_url of gpt in audits/panel.yaml"``.
        api_key_env: variable that the source asks for; it may only name the one that belongs to the host.
        further: endpoints that the user named in other words (the target of ``--fusion-target`` and fusion.yaml).

    Raises:
        UnlistedHostError: the host is not listed, the URL is odd or holds credentials, or another variable is named.
            The message repeats nothing of the URL but a well-formed host.

    >>> resolve_endpoint("https://api.openai.com/v1", source="the panel").api_key_env
    'OPENAI_API_KEY'
    """
    found = _resolved(url, (*further, *OWN), allow, source, api_key_env)
    del url  # it may hold a password, and a traceback with locals shows this frame
    if isinstance(found, UnlistedHostError):
        raise found
    return found


def _resolved(
    url: str, others: Sequence[Endpoint], allow: Sequence[AllowedEndpoint], source: str, api_key_env: str | None
) -> Endpoint | UnlistedHostError:
    parsed = _parsed(url, source)
    if isinstance(parsed, UnlistedHostError):
        return parsed
    scheme, host = parsed
    if _is_loopback(host):
        return Endpoint(host=host, scheme=scheme, kind="loopback")
    endpoint = next((endpoint for endpoint in (*_listed(allow), *others) if endpoint.host == host), None)
    if endpoint is None:
        return UnlistedHostError(
            f"{_shown(host)} is not a host that a key or a prompt may go to (from {source}); nothing was sent. List it "
            "under endpoints.allow in audits/fusion.yaml with url, provider, api_key_env, auth, model_map and pricing, "
            "or take the URL out"
        )
    if endpoint.scheme != scheme:
        return UnlistedHostError(
            f"{host} is to be called over {endpoint.scheme}, not {scheme} (from {source}); nothing was sent. "
            "Correct the URL"
        )
    if api_key_env not in {None, endpoint.api_key_env}:
        return UnlistedHostError(
            f"{host} gets the key of {endpoint.api_key_env} and no other ({source} names another variable); "
            "nothing was sent. Correct api_key_env, or list the host with that variable under endpoints.allow in "
            "audits/fusion.yaml"
        )
    return endpoint


def host_of(url: str) -> str:
    """How the host of a URL is called everywhere: ``name``, or ``name:port`` where the port is not the scheme's own.

    Raises:
        UnlistedHostError: the URL is odd or holds credentials.

    >>> host_of("https://API.openai.com:443/v1"), host_of("http://127.0.0.1:8091/v1")
    ('api.openai.com', '127.0.0.1:8091')
    """
    parsed = _parsed(url, "a request")
    del url
    if isinstance(parsed, UnlistedHostError):
        raise parsed
    return parsed[1]


def credentials_in_url(what: str) -> UnlistedHostError:
    """The error of a URL that carries a password or a key; ``what`` says which URL, without repeating it."""
    return UnlistedHostError(
        f"{what} holds credentials; nothing was sent. Take them out and name the key's variable in api_key_env"
    )


def environment_endpoints(environ: Mapping[str, str], allow: Sequence[AllowedEndpoint] = ()) -> dict[str, Endpoint]:
    """Endpoints of the base URLs that stand in the environment, by variable; empty values count as not set.

    Raises:
        UnlistedHostError: one of them leads to a host that is not listed.
    """
    urls = {name: environ[name].strip() for name in BASE_URL_VARIABLES if environ.get(name, "").strip()}
    del environ  # a traceback with locals shows this frame
    found: dict[str, Endpoint] = {}
    for name in tuple(urls):
        endpoint = _resolved(urls.pop(name), OWN, allow, f"{name} in the environment", None)
        if isinstance(endpoint, UnlistedHostError):
            urls.clear()
            raise endpoint
        found[name] = endpoint
    return found


def _listed(allow: Sequence[AllowedEndpoint]) -> Iterator[Endpoint]:
    for entry in allow:
        parsed = _parsed(entry.url, "endpoints.allow in audits/fusion.yaml")
        if isinstance(parsed, UnlistedHostError):
            raise parsed
        scheme, host = parsed
        if _is_loopback(host):
            raise UnlistedHostError(
                f"endpoints.allow in audits/fusion.yaml lists {host}: loopback is always allowed and gets placeholder "
                "keys only; take the entry out"
            )
        yield Endpoint(
            host=host,
            scheme=scheme,
            kind="own" if host in {own.host for own in OWN} else "listed",
            provider=entry.provider,
            api_key_env=entry.api_key_env,
            auth=entry.auth,
            model_map=entry.model_map,
            pricing=entry.pricing,
        )


def _parsed(url: str, source: str) -> tuple[str, str] | UnlistedHostError:
    """Scheme and host of a plain URL. What two parsers might read differently is refused."""
    found = _URL.fullmatch(url)
    if found is None:
        authority = re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0]
        if "@" in authority:
            return credentials_in_url(f"the URL from {source}")
        return UnlistedHostError(
            f"the URL from {source} is not a plain http or https URL; nothing was sent. Write https://host/path"
        )
    parameters = re.findall(r"[?&;]([^=&;#]*)", found["rest"] or "")
    if any(CREDENTIAL_PARAMETER.fullmatch(parameter) for parameter in parameters):
        return credentials_in_url(f"the URL from {source}")
    scheme, host = found["scheme"].lower(), found["host"].lower().removesuffix(".")
    port = int(found["port"]) if found["port"] else _DEFAULT_PORTS[scheme]
    return scheme, host if port == _DEFAULT_PORTS[scheme] else f"{host}:{port}"


def _shown(host: str) -> str:
    """A host as messages may repeat it: a key in the place of a host is not repeated."""
    return host if "." in host and not host.startswith("sk-") else "(a name that is not shown)"


def _is_loopback(host: str) -> bool:
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
