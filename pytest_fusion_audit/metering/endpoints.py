"""Endpoints: a host that may be called, with the variable of its key, its models and its prices."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from pytest_fusion_audit.errors import FusionAuditError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_fusion_audit.configuration import TokenPricing

Provider = Literal["openai", "anthropic"]
Auth = Literal["bearer", "x-api-key", "api-key"]
Kind = Literal["own", "listed", "loopback"]

_MAKERS: Final = (
    (re.compile(r"(?:.*[/.])?(?:gpt|chatgpt|o[1-9]|codex|text-embedding|davinci)(?:[-.:@]|\Z).*", re.ASCII), "openai"),
    (re.compile(r"(?:.*[/.])?claude(?:[-.:@]|\Z).*", re.ASCII), "anthropic"),
)


class UnlistedHostError(FusionAuditError):
    """A URL leads to a host that no key may go to; nothing was sent."""


class ForeignModelError(FusionAuditError):
    """A host other than the makers' own did not say which model answered, or it was none of the two makers'."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A host that may be called.

    Attributes:
        host: ``name`` or ``name:port``, lower case; the port only where it is not the scheme's own.
        scheme: ``https`` or ``http``.
        kind: a maker's own host, one listed in fusion.yaml, or loopback.
        provider: whose dialect it speaks; None for loopback, where the caller knows.
        api_key_env: variable that holds its key; None for loopback.
        auth: how the key is sent; None for a maker's own host, which takes what its SDK sends.
        model_map: model as the panel names it -> as this host names it; a model that is not there cannot be called.
        pricing: prices by the panel's name of the model; empty where the table's prices hold.
    """

    host: str
    scheme: str
    kind: Kind
    provider: Provider | None = None
    api_key_env: str | None = None
    auth: Auth | None = None
    model_map: Mapping[str, str] = field(default_factory=dict)
    pricing: Mapping[str, TokenPricing] = field(default_factory=dict)

    @property
    def loopback(self) -> bool:
        """Whether it is on this machine: no key goes there, and a run that calls it is labelled ``local``."""
        return self.kind == "loopback"

    def model(self, name: str) -> str:
        """The name by which this host knows a model of the panel.

        Raises:
            UnlistedHostError: a listed host whose model map does not hold it.
        """
        if self.kind != "listed":
            return name
        if name not in self.model_map:
            raise UnlistedHostError(
                f"{self.host} has no entry for the model {name}; nothing was sent. "
                "Add it to model_map and pricing of this host under endpoints.allow in audits/fusion.yaml"
            )
        return self.model_map[name]

    def check_answered(self, asked: str | None, answered: str | None) -> None:
        """Check who answered behind a host that is not a maker's own.

        Raises:
            ForeignModelError: the model is not reported, or is of neither maker; the run must stop.
        """
        if self.kind == "listed" and (answered is None or maker_of(answered) is None):
            said = "did not say which model answered" if answered is None else f"answered with {answered}"
            raise ForeignModelError(
                f"{self.host} {said} where {asked} was asked for: only models of OpenAI and Anthropic are audited, "
                "and they must be reported. The run stops; call the maker's own host, or correct model_map"
            )

    def header_line(self) -> str:
        """What the session's header says about it."""
        if self.loopback:
            return f"endpoint {self.host} · loopback · placeholder key"
        open_ = " · NOT ENCRYPTED" if self.scheme == "http" else ""
        listed = " · listed in fusion.yaml" if self.kind == "listed" else ""
        return f"endpoint {self.host} · {self.provider} · key from {self.api_key_env}{listed}{open_}"

    def to_json(self) -> dict[str, object]:
        """What the run's settings keep of it: names, never values."""
        return {
            "host": self.host,
            "scheme": self.scheme,
            "kind": self.kind,
            "provider": self.provider,
            "api_key_env": self.api_key_env,
            "auth": self.auth,
            "model_map": dict(sorted(self.model_map.items())),
        }


OWN: Final[tuple[Endpoint, ...]] = (
    Endpoint(
        host="api.openai.com",
        scheme="https",
        kind="own",
        provider="openai",
        api_key_env="OPENAI_API_KEY",
        auth="bearer",
    ),
    Endpoint(
        host="api.anthropic.com",
        scheme="https",
        kind="own",
        provider="anthropic",
        api_key_env="ANTHROPIC_API_KEY",
    ),
)


def header_lines(endpoints: Iterable[Endpoint]) -> list[str]:
    """One line for each endpoint of a session, sorted, each once."""
    return sorted({endpoint.header_line() for endpoint in endpoints})


def maker_of(model: str) -> Provider | None:
    """Whose model an id names, also with the prefixes of routers and clouds; None for any other maker's.

    >>> maker_of("openai/gpt-5.5-2026-04-23"), maker_of("us.anthropic.claude-opus-4-8-v1:0"), maker_of("mistral-large")
    ('openai', 'anthropic', None)
    """
    for pattern, maker in _MAKERS:
        if pattern.fullmatch(model.lower()):
            return "openai" if maker == "openai" else "anthropic"
    return None
