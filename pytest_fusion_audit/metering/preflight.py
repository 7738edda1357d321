"""What is known, and checked, of a session's calls before anything is sent: hosts, keys' variables, prices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_fusion_audit.metering.keys import KeyRing
from pytest_fusion_audit.metering.models import Capabilities
from pytest_fusion_audit.metering.prices import PanelPrice, PriceBook
from pytest_fusion_audit.metering.pricing import DoorPricing, listed_books
from pytest_fusion_audit.metering.routes import Routes, routes_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_fusion_audit.configuration import Configuration
    from pytest_fusion_audit.configuration.panel import Panel


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """Where the calls of a session would go and what they would cost: known, and checked, before anything is opened.

    Attributes:
        routes: every model's base URL and host.
        keys: which host gets which key.
        pricing: what a call costs, and what its model can do.
    """

    routes: Routes
    keys: KeyRing
    pricing: DoorPricing

    @property
    def overrides(self) -> Mapping[str, Capabilities]:
        """``capabilities`` of the panel file by model id."""
        return self.pricing.overrides

    def check_keys(self) -> None:
        """Read the keys of every endpoint of the panel, so that none is found missing after another has been paid.

        Without a panel nobody knows yet which maker is asked: a missing key is told by the first call that needs it.

        Raises:
            KeyMissingError, KeyFormatError: a variable holds no key.
        """
        for endpoint in self.routes.endpoints():
            if self.routes.by_id or not self.keys.missing([endpoint.api_key_env or ""]):
                self.keys.key_of(endpoint)

    def missing(self) -> list[str]:
        """Variables that have to hold a key and do not, sorted."""
        return sorted(self.keys.missing(self.routes.variables()))

    def lines(self) -> list[str]:
        """What a session's header says: every endpoint, each once."""
        lines = [endpoint.header_line() for endpoint in self.routes.endpoints()]
        local = any(endpoint.loopback for endpoint in self.routes.endpoints())
        lines += [
            f"prices_differ {each.model}: {each.field} {each.panel:g} in the panel file or fusion.yaml, {each.table:g} "
            "USD per million in the table; the dearer is charged"
            for each in self.pricing.differences
        ]
        lines += [f"note {text}" for text in self.keys.warnings]
        return [*sorted(lines), *(["run local · models on this machine: not claim-eligible"] if local else [])]


def preflight(
    configuration: Configuration, panel: Panel | None, environ: Mapping[str, str], *, panel_name: str = "the panel file"
) -> Preflight:
    """Put together where calls go and what they cost; sends nothing and creates nothing.

    Args:
        configuration: ``fusion.yaml`` after defaults.
        panel: the panel file, None without one.
        environ: the environment: keys and base URLs.
        panel_name: how messages call the panel file.

    Raises:
        UnlistedHostError: a URL leads to a host that is not allowed, or a model is of another maker.
        UnknownPriceError: a model of the panel has no known price.
        CapabilityError, PricingError: a block of the panel file cannot be read.
    """
    allow = configuration.endpoints.allow
    routes = routes_of(panel, allow, environ, panel_name=panel_name)
    variables = [name for name in (configuration.target.api_key_env, *configuration.target.headers.values()) if name]
    urls = [entry.base_url for entry in (panel.models if panel else ()) if entry.base_url]
    keys = KeyRing(environ, allow, variables=variables, urls=urls)
    stated = {entry.model: entry.pricing for entry in (panel.models if panel else ()) if entry.pricing}
    book = PriceBook(
        {
            model: PanelPrice.from_mapping(pricing.model_dump(exclude_none=True), f"{panel_name}: pricing of {model}")
            for model, pricing in stated.items()
        }
    )
    listed = dict.fromkeys(routes.of_both_makers(), book) | listed_books(book, routes.endpoints())
    pricing = DoorPricing(book, routes.provider_of, overrides=_overrides(panel, panel_name), listed=listed)
    for route in routes.by_id.values():
        if route.model is not None:
            pricing.price(route.host, route.model)  # unknown is refused here, before the first call
    return Preflight(routes=routes, keys=keys, pricing=pricing)


def _overrides(panel: Panel | None, panel_name: str) -> dict[str, Capabilities]:
    return {
        entry.model: Capabilities.from_mapping(entry.capabilities, f"{panel_name}: capabilities of {entry.id}")
        for entry in (panel.models if panel else ())
        if entry.capabilities
    }
