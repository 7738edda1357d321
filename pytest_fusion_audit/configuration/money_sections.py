"""The sections of ``fusion.yaml`` that the metered door reads: where calls go, with what key, and for how much."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from pytest_fusion_audit.configuration.fields import (
    Count,
    Flag,
    Name,
    PlainUrl,
    Seconds,
    Section,
    Share,
    Usd,
    Variable,
    shown,
)

Provider: TypeAlias = Literal["openai", "anthropic"]
_OWN_VARIABLES = {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"}


class TokenPricing(Section):
    """Dollars per million tokens, in the words of a panel file."""

    input_per_1m_tokens: Usd
    output_per_1m_tokens: Usd
    cached_input_per_1m_tokens: Usd | None = None
    cache_write_5m_per_1m_tokens: Usd | None = None
    cache_write_1h_per_1m_tokens: Usd | None = None
    batch_multiplier: Share | None = None
    currency: Literal["USD"] = "USD"


class TargetPricing(Section):
    """Price of a served target: per million tokens, or one price per request."""

    input_per_1m_tokens: Usd | None = None
    output_per_1m_tokens: Usd | None = None
    usd_per_request: Usd | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        tokens = (self.input_per_1m_tokens, self.output_per_1m_tokens)
        if self.usd_per_request is not None:
            if tokens != (None, None):
                raise ValueError("usd_per_request: give prices per token or per request, not both")
        elif None in tokens:
            raise ValueError("give input_per_1m_tokens and output_per_1m_tokens, or usd_per_request")
        return self


class Target(Section):
    """The system under audit: one of the kinds this tool boots, or the URL of a served endpoint."""

    kind: Literal["reference", "fusionkit-0.8", "fusionkit-0.10"] | None = None
    url: PlainUrl | None = None
    model: Name | None = None
    dialect: Literal["chat", "responses", "messages"] = "chat"
    api_key_env: Variable | None = None
    headers: dict[Name, Variable] = Field(default_factory=dict)  # header -> name of the variable that holds its value
    timeout_s: Seconds = 600.0
    max_concurrency: Count | None = None
    requests_per_minute: Count | None = None
    max_output_tokens: Count | None = None
    pricing: TargetPricing | None = None
    tools: Flag = False
    web_search: Flag = False

    @model_validator(mode="after")
    def _kind_or_url(self) -> Self:
        if self.kind is not None and self.url is not None:
            raise ValueError("url: give kind or url, not both")
        return self


class AllowedEndpoint(Section):
    """A host besides the two makers' own that may get a key: a key of its own, never a maker's."""

    url: PlainUrl
    provider: Provider  # whose dialect it speaks
    api_key_env: Variable
    auth: Literal["bearer", "x-api-key", "api-key"]
    model_map: Annotated[dict[Name, Name], Field(min_length=1)]  # model as the panel names it -> as this host names it
    pricing: dict[Name, TokenPricing]  # by the panel's name of the model

    @model_validator(mode="after")
    def _own_key_and_priced(self) -> Self:
        if self.api_key_env in _OWN_VARIABLES:
            raise ValueError("api_key_env: this key goes to its maker's own host only; name another variable")
        unpriced = sorted(set(self.model_map) - set(self.pricing))
        if unpriced:
            raise ValueError(f"pricing: no entry for {shown(unpriced[0])} of model_map, so no cap could bind")
        return self


class Endpoints(Section):
    """Hosts besides api.openai.com, api.anthropic.com and loopback."""

    allow: tuple[AllowedEndpoint, ...] = ()


class Spend(Section):
    """Consent to spend (R10): without it no billed call is sent."""

    consent: Flag = False
    budget_usd: Usd | None = None  # of one run and its resumes
    total_usd: Usd | None = None  # of all runs of this repository together

    @model_validator(mode="after")
    def _consent_to_an_amount(self) -> Self:
        if self.consent and not self.budget_usd:
            raise ValueError("consent: needs budget_usd, an amount above 0, beside it")
        if self.budget_usd is not None and self.total_usd is not None and self.budget_usd > self.total_usd:
            raise ValueError("budget_usd: is above total_usd")
        return self


class CapsUsd(Section):
    """Caps that do not scale with the budget; what is left out scales (R2)."""

    total: Usd | None = None
    reserve: Usd | None = None
    smoke: Usd | None = None
    baseline: Usd | None = None
    composition: Usd | None = None
    ablations: Usd | None = None
    locked: Usd | None = None
    served: Usd | None = None

    @model_validator(mode="after")
    def _within_the_total(self) -> Self:
        total = self.total if self.total is not None else Decimal(500)
        if total == 0:
            raise ValueError("total: a cap of 0 pays for no call; leave the budget out instead")
        for name in ("reserve", "smoke", "baseline", "composition", "ablations", "locked", "served"):
            cap = getattr(self, name)
            if cap is not None and cap > total:
                raise ValueError(f"{name}: is above the total of {total:f} USD")
        if self.reserve is not None:
            if self.reserve == total:
                raise ValueError("reserve: leaves nothing for phases 0 to 5")
            final = (self.locked or 0) + (self.served or 0)
            if final > self.reserve:
                raise ValueError(f"reserve: locked and served together are above the reserve of {self.reserve:f} USD")
        return self
