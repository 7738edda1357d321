"""Keys: read from their variables, put on requests at the door and nowhere before, known to the scrubber.

SDK clients and served gateways get `PLACEHOLDER`. The transport replaces it on the way out, for the host that the
request really goes to, so that no client object, no gateway process and no traceback of theirs ever holds a key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from pytest_fusion_audit.configuration.fields import CREDENTIAL_PARAMETER
from pytest_fusion_audit.errors import FusionAuditError
from pytest_fusion_audit.metering.hosts import OWN, Endpoint, credentials_in_url, resolve_endpoint
from pytest_fusion_audit.metering.key_forms import SHORTEST
from pytest_fusion_audit.metering.scan import Hit, KeysFoundError, check_no_keys, scan
from pytest_fusion_audit.metering.scrubbing import Scrubber
from pytest_fusion_audit.metering.secret import MARK, Secret

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import httpx2

    from pytest_fusion_audit.configuration import AllowedEndpoint

__all__ = [
    "MARK",
    "PLACEHOLDER",
    "Hit",
    "KeyFormatError",
    "KeyMissingError",
    "KeyRing",
    "KeysFoundError",
    "ReadKey",
    "Scrubber",
    "Secret",
    "check_no_keys",
    "read_key",
    "scan",
    "secrets_in_url",
]

#: What clients, gateways and loopback servers get instead of a key.
PLACEHOLDER: Final = "placeholder"
#: Headers by which any client might send a key; all are taken off before the right one is put on.
_CREDENTIAL_HEADERS: Final = ("authorization", "x-api-key", "api-key", "proxy-authorization", "cookie")
#: Headers that name an account; they go to the host of the maker whose SDK wrote them, and nowhere else.
_ACCOUNT_HEADERS: Final = ("openai-organization", "openai-project")
#: Variables whose values are keys, declared or not; of the others only what looks like one is taken for one.
_MAKERS_VARIABLES: Final = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
_KEY_VARIABLE: Final = re.compile(
    r"[A-Z0-9_]*(?:API_KEY|ADMIN_KEY|ACCESS_KEY|AUTH_TOKEN|ACCESS_TOKEN|SESSION_TOKEN|CLIENT_SECRET)"
    r"|(?:HF|GH|GITHUB|GITLAB)_TOKEN"
)
_LIKE_A_KEY: Final = re.compile(r"(?=[^0-9]*[0-9])[!-~]{12,}")
_URL_VARIABLE: Final = re.compile(r"[A-Z0-9_]*BASE_URL|(?:HTTPS?|ALL)_PROXY", re.IGNORECASE)
_LONGEST: Final = 4096


class KeyMissingError(FusionAuditError):
    """A variable that has to hold a key is not set."""


class KeyFormatError(FusionAuditError):
    """A variable holds something that cannot be a key, or another maker's; the message never repeats it."""


@dataclass(frozen=True, slots=True)
class ReadKey:
    """A key and what has to be said about how it was written."""

    secret: Secret
    warning: str | None = None


def read_key(name: str, environ: Mapping[str, str]) -> ReadKey:
    """Read a key from its variable.

    Blanks and line breaks around it are stripped, with a warning; they are never sent.

    Raises:
        KeyMissingError: not set, or empty.
        KeyFormatError: blanks, quotes or other characters inside that no header may carry, or too short to be a key.

    >>> read_key("OPENAI_API_KEY", {"OPENAI_API_KEY": "sk-test-0123456789"})
    ReadKey(secret=<key of OPENAI_API_KEY>, warning=None)
    """
    outcome = _examined(name, environ.get(name, ""))
    del environ  # a traceback with locals shows this frame
    if isinstance(outcome, FusionAuditError):
        raise outcome
    return outcome


def _examined(name: str, given: str) -> ReadKey | KeyMissingError | KeyFormatError:
    value = given.strip()
    if not value:
        state = "is not set" if not given else "holds nothing but blanks"
        return KeyMissingError(f"{name} {state}; set it to the key and run again")
    fault = next((what for pattern, what in _FAULTS if pattern.fullmatch(value)), None)
    if fault is not None:
        return KeyFormatError(f"{name} {fault}; its value is not shown and was not sent. Set it to the bare key")
    warning = None
    if value != given:
        warning = (
            f"{name} has blanks or a line break around the key: they were stripped, not sent; correct the variable"
        )
    return ReadKey(Secret(value, name), warning)


#: What a value can be instead of a key, by what gives it away.
_FAULTS: Final = (
    (re.compile(r"[\"'].*|.*[\"']", re.DOTALL), "stands in quotes"),
    (
        re.compile(r"(?:bearer|basic)\s.*", re.DOTALL | re.IGNORECASE),
        "begins with the name of an authentication scheme",
    ),
    (re.compile(r".*[^!-~].*", re.DOTALL), "has blanks, control characters or letters beyond ASCII inside"),
    (re.compile(r"https?://.*", re.IGNORECASE), "is a URL"),
    (re.compile(rf".{{0,{SHORTEST - 1}}}"), f"is shorter than {SHORTEST} characters"),
    (re.compile(rf".{{{_LONGEST + 1},}}"), f"is longer than {_LONGEST} characters"),
)


def secrets_in_url(url: str) -> tuple[str, ...]:
    """Credentials that a URL carries: the password or token before the @, and values of parameters such as ``api_key``.

    As written and percent-decoded; nothing for text that is not a URL.

    >>> secrets_in_url("https://user:pw%2BEXAMPLE@gw.example/v1?api_key=abc&page=2")
    ('pw%2BEXAMPLE', 'pw+EXAMPLE', 'abc')
    """
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return ()
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    found = [password or user]
    for pair in re.split(r"[&;]", parts.query):
        parameter, _, value = pair.partition("=")
        if CREDENTIAL_PARAMETER.fullmatch(parameter):
            found.append(value)
    return tuple(dict.fromkeys(form for value in found for form in (value, unquote(value)) if form))


class KeyRing:
    """The keys of a session: which host gets which, and what must appear nowhere.

    Args:
        environ: the environment; read once per key, when the key is first needed.
        allow: ``endpoints.allow`` of fusion.yaml.
        variables: further variables that hold secrets (the target's ``api_key_env`` and headers), for the scrubber.
        urls: further URLs that may carry credentials (those of a panel file), for the scrubber.
        further: endpoints that the user named in other words (the target).

    Attributes:
        scrubber: knows every key of the environment, used or not.
        warnings: what was found odd about the keys read so far; for the header, each once.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        allow: Sequence[AllowedEndpoint] = (),
        *,
        variables: Sequence[str] = (),
        urls: Sequence[str] = (),
        further: Sequence[Endpoint] = (),
    ) -> None:
        self._environ = environ
        self._allow = tuple(allow)
        self._further = tuple(further)
        self._read: dict[str, Secret] = {}
        self._endpoints: dict[str, Endpoint] = {}
        self.warnings: list[str] = []
        self.scrubber = Scrubber(_values(environ, [*variables, *(entry.api_key_env for entry in allow)], urls))

    def missing(self, names: Sequence[str] = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")) -> tuple[str, ...]:
        """Those of the variables that hold nothing."""
        return tuple(name for name in names if not self._environ.get(name, "").strip())

    def endpoint(self, url: str, *, source: str = "a request") -> Endpoint:
        """What may be called under a URL; see `resolve_endpoint`."""
        return resolve_endpoint(url, self._allow, source=source, further=self._further)

    def key_of(self, endpoint: Endpoint) -> Secret:
        """The key that goes to an endpoint; the placeholder for loopback.

        Raises:
            KeyMissingError, KeyFormatError: see `read_key`.
            KeyFormatError: the variable of one maker holds a key of the other.
        """
        name = endpoint.api_key_env
        if endpoint.loopback or name is None:
            return Secret(PLACEHOLDER, "no variable")
        if name not in self._read:
            read = read_key(name, self._environ)
            if endpoint.kind == "own":
                _check_maker(name, read.secret, endpoint)
            self._read[name] = read.secret
            if read.warning is not None:
                self.warnings.append(read.warning)
        return self._read[name]

    def endpoint_of(self, url: httpx2.URL) -> Endpoint:
        """The endpoint that a request goes to.

        Raises:
            UnlistedHostError: the host gets no key and no request.
        """
        origin = f"{url.scheme}://{url.netloc.decode('ascii')}"
        if origin not in self._endpoints:
            self._endpoints[origin] = self.endpoint(origin)
        return self._endpoints[origin]

    def authorise(self, request: httpx2.Request) -> None:
        """Take every credential off a request and put the one on that belongs to the host it goes to.

        Raises:
            UnlistedHostError: the host gets no key and no request. KeyMissingError, KeyFormatError: see `key_of`.
        """
        url = request.url
        endpoint = self.endpoint_of(url)
        if url.userinfo or (url.query and secrets_in_url(str(url))):
            raise credentials_in_url(f"the URL of a request to {endpoint.host}")
        key = self.key_of(endpoint)
        headers = request.headers
        as_sent = "x-api-key" if "x-api-key" in headers else "bearer"
        for name in _CREDENTIAL_HEADERS:
            headers.pop(name, None)
        if endpoint.kind != "own" or endpoint.provider != "openai":
            for name in _ACCOUNT_HEADERS:
                headers.pop(name, None)
        auth = endpoint.auth or as_sent
        if auth == "bearer":
            headers["authorization"] = f"Bearer {key.reveal()}"
        else:
            headers[auth] = key.reveal()


def _check_maker(name: str, key: Secret, endpoint: Endpoint) -> None:
    others = ("sk-ant-",) if endpoint.provider == "openai" else ("sk-proj-", "sk-svcacct-")
    if key.reveal().startswith(others):
        other = next(own.api_key_env for own in OWN if own.provider != endpoint.provider)
        raise KeyFormatError(
            f"{name} holds a key of the other maker; it is not shown and was not sent to {endpoint.host}. "
            f"It belongs into {other}"
        )


def _values(environ: Mapping[str, str], names: Sequence[str], urls: Sequence[str]) -> dict[str, str]:
    """Everything that must appear nowhere, by where it comes from."""
    found: dict[str, str] = {}
    for name, value in environ.items():
        declared = name in names or name in _MAKERS_VARIABLES
        if declared or (_KEY_VARIABLE.fullmatch(name) and _LIKE_A_KEY.fullmatch(value.strip())):
            found[name] = value
        if _URL_VARIABLE.fullmatch(name):
            found |= {f"{name} ({index})": part for index, part in enumerate(secrets_in_url(value))}
    for at, url in enumerate(urls):
        found |= {f"URL {at} ({index})": part for index, part in enumerate(secrets_in_url(url))}
    return {name: value for name, value in found.items() if value.strip() not in {"", PLACEHOLDER}}
