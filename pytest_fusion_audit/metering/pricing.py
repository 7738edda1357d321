"""What the door asks about money: the worst case of a request before it is sent, the cost of its answer after."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pytest_fusion_audit.errors import FusionAuditError
from pytest_fusion_audit.metering.models import Capabilities, capabilities
from pytest_fusion_audit.metering.price_table import bare_id, undated
from pytest_fusion_audit.metering.prices import PriceBook, Processing, UnknownPriceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_fusion_audit.metering.wire.facts import RequestFacts, ResponseFacts

#: Provider of endpoints on this machine: whatever they call their model, it is the one that was asked for.
LOCAL = "local"


class UnboundedRequestError(FusionAuditError):
    """Nothing bounds what a request can cost, so it was not sent."""


@dataclass(frozen=True, slots=True)
class DoorPricing:
    """Price book and capability table behind the three questions the transport asks.

    Attributes:
        book: prices of the run.
        provider_of: provider (``openai``, ``anthropic``, ``local`` or the name of a listed endpoint) by host.
        overrides: ``capabilities`` of the panel file by model id.
    """

    book: PriceBook
    provider_of: Callable[[str], str]
    overrides: Mapping[str, Capabilities] = field(default_factory=dict)

    def worst_case_of(self, host: str, facts: RequestFacts, *, batch: bool = False) -> int:
        """Most micro-dollars that one attempt of this request can cost.

        Raises:
            UnknownPriceError: no price for the model.
            UnboundedRequestError: no output limit on a model whose own is unknown, or input whose size nobody knows.
        """
        provider = self.provider_of(host)
        if facts.model is None:
            raise UnknownPriceError("the request names no model; nothing was sent")
        able = capabilities(provider, facts.model, self.overrides)
        output = facts.output_bound(able.max_output_tokens if able else None)
        if output is None:
            raise UnboundedRequestError(
                f"the request to {facts.model} states no output limit and that model's own is unknown; nothing was "
                "sent: set max_output_tokens, or `capabilities: {max_output_tokens: N}` in the panel file"
            )
        bound, searches = facts.input_tokens_bound, 0
        if facts.opaque_inputs or facts.server_tools:
            searches = _searches(facts)
            # Whatever stands elsewhere, or is fetched, one pass reads at most what the model can read.
            bound = max(bound, self._window(provider, facts)) * (searches + 1)
            output *= searches + 1
        geo = facts.parameters.get("inference_geo")
        if geo not in {None, "global"}:
            raise UnboundedRequestError(
                f"inference_geo: {geo!r} is billed at a surcharge no table states; leave it out"
            )
        return self.book.worst_case(
            provider,
            facts.model,
            input_tokens_bound=bound,
            max_output_tokens=output,
            processing="batch" if batch else _processing(facts),
            service_tier=facts.service_tier,
            cache_write=facts.cache_write,
            web_searches=searches,
        )

    def _window(self, provider: str, facts: RequestFacts) -> int:
        window = self.book.context_window(provider, facts.model or "")
        if window is None:
            what = ", ".join((*facts.opaque_inputs, *facts.server_tools))
            raise UnboundedRequestError(f"{facts.model}: nothing bounds the tokens of {what}; nothing was sent")
        return window

    def cost_of(self, host: str, facts: RequestFacts, answer: ResponseFacts, *, batch: bool = False) -> int | None:
        """Micro-dollars of an answer; None when it states no usage or the model that answered has no known price."""
        if answer.usage is None:
            return None
        provider = self.provider_of(host)
        usage = answer.usage
        if usage.service_tier is None and facts.service_tier in {"priority", "fast"}:
            usage = replace(usage, service_tier=facts.service_tier)
        model = answer.model or facts.model
        if provider == LOCAL and facts.model is not None:
            model = facts.model
        if model is None:
            return None
        try:
            return self.book.cost(provider, model, usage, processing="batch" if batch else _processing(facts))
        except UnknownPriceError:
            return None

    def same_model(self, host: str, asked: str | None, answered: str | None) -> bool:
        """Whether the model that answered is the one asked for: the same id but for a provider prefix and a date."""
        if asked is None or answered is None or asked == answered:
            return asked == answered
        provider = self.provider_of(host)
        if provider == LOCAL:
            return True
        one, two = bare_id(provider, asked), bare_id(provider, answered)
        # A name without a date stands for any dated one; two different dates are two different models.
        return one == two or undated(one) == two or one == undated(two)


def _processing(facts: RequestFacts) -> Processing:
    return "flex" if facts.service_tier == "flex" else "standard"


def _searches(facts: RequestFacts) -> int:
    """Most web searches the request allows.

    Raises:
        UnboundedRequestError: other tools that the provider bills, or no limit on the searches.
    """
    others = sorted(set(facts.server_tools) - {"web_search"})
    if others:
        raise UnboundedRequestError(f"{facts.model}: {', '.join(others)}: billed beside the tokens at no known price")
    if facts.server_tool_uses is None:
        raise UnboundedRequestError(
            f"{facts.model}: nothing limits its web searches; state max_uses (Anthropic) or max_tool_calls (Responses)"
        )
    return facts.server_tool_uses
