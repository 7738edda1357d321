"""What the door asks about money: the worst case of a request before it is sent, the cost of its answer after."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pytest_fusion_audit.errors import FusionAuditError
from pytest_fusion_audit.metering.endpoints import maker_of
from pytest_fusion_audit.metering.models import Capabilities, capabilities
from pytest_fusion_audit.metering.price_table import bare_id, undated
from pytest_fusion_audit.metering.prices import PanelPrice, PriceBook, PriceDifference, Processing, UnknownPriceError
from pytest_fusion_audit.metering.settling import as_asked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pytest_fusion_audit.metering.endpoints import Endpoint
    from pytest_fusion_audit.metering.price_table import Price
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
        listed: books of hosts that state prices of their own, by host, see `listed_books`. There a model is priced by
            the panel's name of it, whatever the host calls it, and stands in the table of its maker.
    """

    book: PriceBook
    provider_of: Callable[[str], str]
    overrides: Mapping[str, Capabilities] = field(default_factory=dict)
    listed: Mapping[str, PriceBook] = field(default_factory=dict)

    def worst_case_of(self, host: str, facts: RequestFacts, *, batch: bool = False) -> int:
        """Most micro-dollars that one attempt of this request can cost.

        Raises:
            UnknownPriceError: no price for the model.
            UnboundedRequestError: no output limit on a model whose own is unknown, or input whose size nobody knows.
        """
        if facts.model is None:
            raise UnknownPriceError("the request names no model; nothing was sent")
        provider, book = self._terms(host, facts.model)
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
            bound = max(bound, _window(book, provider, facts)) * (searches + 1)
            output *= searches + 1
        geo = facts.parameters.get("inference_geo")
        if geo not in {None, "global"}:
            raise UnboundedRequestError(
                f"inference_geo: {geo!r} is billed at a surcharge no table states; leave it out"
            )
        return book.worst_case(
            provider,
            facts.model,
            input_tokens_bound=bound,
            max_output_tokens=output,
            processing="batch" if batch else _processing(facts),
            service_tier=facts.service_tier,
            cache_write=facts.cache_write,
            web_searches=searches,
        )

    def cost_of(self, host: str, facts: RequestFacts, answer: ResponseFacts, *, batch: bool = False) -> int | None:
        """Micro-dollars of an answer; None when it states no usage or the model that answered has no known price."""
        if answer.usage is None:
            return None
        usage = answer.usage
        if usage.service_tier is None and facts.service_tier in {"priority", "fast"}:
            usage = replace(usage, service_tier=facts.service_tier)
        model = answer.model or facts.model
        if facts.model is not None and answer.model is not None and self._by_panels_name(host, facts, answer.model):
            model = facts.model
        if model is None:
            return None
        provider, book = self._terms(host, model)
        try:
            return book.cost(provider, model, usage, processing="batch" if batch else _processing(facts))
        except UnknownPriceError:
            return None

    def same_model(self, host: str, asked: str | None, answered: str | None) -> bool:
        """Whether the model that answered is the one asked for: the same id but for a provider prefix and a date."""
        if asked is None or answered is None or asked == answered:
            return asked == answered
        if self._is_local(host):
            return True
        provider = self.provider_of(host)
        one, two = bare_id(provider, asked), bare_id(provider, answered)
        # A name without a date stands for any dated one; two different dates are two different models.
        return one == two or undated(one) == two or one == undated(two)

    def price(self, host: str, model: str) -> Price:
        """Price of a model at a host, to be asked before anything is sent.

        Raises:
            UnknownPriceError: it has none.
        """
        provider, book = self._terms(host, model)
        return book.price(provider, model)

    @property
    def differences(self) -> tuple[PriceDifference, ...]:
        """Where the panel file or a listed host state other list prices than the table, each once."""
        books = (self.book, *(self.listed[host] for host in sorted(self.listed)))
        return tuple(dict.fromkeys(difference for book in books for difference in book.differences))

    def _terms(self, host: str, model: str) -> tuple[str, PriceBook]:
        """In whose table a model stands, and the book that holds at the host."""
        book = self.listed.get(host)
        if book is None:
            return self.provider_of(host), self.book
        return maker_of(model) or self.provider_of(host), book

    def _is_local(self, host: str) -> bool:
        return host not in self.listed and self.provider_of(host) == LOCAL

    def _by_panels_name(self, host: str, facts: RequestFacts, answered: str) -> bool:
        return as_asked(self, host, facts, answered) if host in self.listed else self._is_local(host)


def listed_books(book: PriceBook, endpoints: Iterable[Endpoint]) -> dict[str, PriceBook]:
    """Books of the hosts that state prices: theirs, the panel file's or the table's, whichever is dearest."""
    books = {}
    for endpoint in endpoints:
        if endpoint.pricing:
            where = endpoint.host
            stated = {
                model: PanelPrice.from_mapping(pricing.model_dump(exclude_none=True), f"{where}: pricing of {model}")
                for model, pricing in endpoint.pricing.items()
            }
            books[where] = book.beside(where, stated)
    return books


def _window(book: PriceBook, provider: str, facts: RequestFacts) -> int:
    window = book.context_window(provider, facts.model or "")
    if window is None:
        what = ", ".join((*facts.opaque_inputs, *facts.server_tools))
        raise UnboundedRequestError(f"{facts.model}: nothing bounds the tokens of {what}; nothing was sent")
    return window


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
