"""What a call costs and what it can cost at most, in integer micro-dollars rounded up once.

A model is priced by its exact id only (case 2): ``genai-prices`` by itself would match an invented snapshot to a
sibling and an unknown processing to the standard price, so its list of models is read directly, at a fixed moment. The
``pricing`` of a panel file or of a listed host is used for ids the table does not know; where several know one, the
dearest of their prices of each call is reserved and charged, and ``PriceBook.differences`` tells where they differ
(finding ``prices_differ``).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_fusion_audit.errors import FusionAuditError
from pytest_fusion_audit.metering.price_table import (
    MICRO,
    PanelPrice,
    Price,
    PricingError,
    Row,
    RowName,
    candidate_ids,
    panel_price,
    table_price,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_fusion_audit.metering.usage import Usage
    from pytest_fusion_audit.metering.wire.facts import CacheWrite

__all__ = [
    "PanelPrice",
    "Price",
    "PriceBook",
    "PriceDifference",
    "PricingError",
    "Processing",
    "UnknownPriceError",
]

Processing: TypeAlias = Literal["standard", "batch", "flex"]

#: Whose statement of a price it is, where it is not a listed host's.
PANEL_FILE = "the panel file"
_TIER_ROWS: dict[str, RowName] = {"flex": "flex", "priority": "priority", "fast": "fast"}


class UnknownPriceError(FusionAuditError):
    """A model without a known price: refused before the first call, never billed as 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceDifference:
    """A rate that is stated otherwise than in the table, in dollars per million tokens.

    ``where`` is `PANEL_FILE`, or the listed host that states it; ``panel`` is the rate stated there.
    """

    provider: str
    model: str
    field: str  # input, cached_input or output
    table: float
    panel: float
    where: str = PANEL_FILE


class PriceBook:
    """Prices of all models of a run, fixed at one moment.

    Args:
        panel_pricing: ``pricing`` blocks by model id, as the panel file states them.
        at: the moment whose prices hold; now when None. Prices change at midnight UTC of listed days, so a run that
            takes days opens a new book on each resume.
        further: further statements, by whose they are, see `beside`.
    """

    def __init__(
        self,
        panel_pricing: Mapping[str, PanelPrice] | None = None,
        at: datetime | None = None,
        *,
        further: Mapping[str, Mapping[str, PanelPrice]] | None = None,
    ) -> None:
        moment = datetime.now(UTC) if at is None else at
        self.at = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        self._stated = {PANEL_FILE: dict(panel_pricing or {}), **(further or {})}
        self._known: dict[tuple[str, str], tuple[Price, ...]] = {}
        self._dear_rows_seen: dict[str, set[RowName]] = {}

    def beside(self, where: str, pricing: Mapping[str, PanelPrice]) -> PriceBook:
        """A book of the same moment with one more statement of prices: the dearest of all that know a model holds.

        Args:
            where: whose statement it is: a listed host.
            pricing: its ``pricing`` blocks by model id.
        """
        further = {name: stated for name, stated in self._stated.items() if name != PANEL_FILE}
        return PriceBook(self._stated[PANEL_FILE], self.at, further={**further, where: pricing})

    def resolve(self, provider: str, model: str) -> str | None:
        """The id under which a model is priced: exact, or exact after one provider prefix and one date; else None."""
        prices = self._prices(provider, model)
        return prices[0].model if prices else None

    def price(self, provider: str, model: str) -> Price:
        """The rows of a model (the table's where it knows the model).

        Raises:
            UnknownPriceError: see ``resolve``.
        """
        return self._must(provider, model)[0]

    def context_window(self, provider: str, model: str) -> int | None:
        """Most tokens a prompt of this model can have, None when the table does not tell."""
        prices = self._prices(provider, model)
        return prices[0].context_window if prices else None

    @property
    def differences(self) -> tuple[PriceDifference, ...]:
        """Where a statement and the table give different list prices of one model, sorted by maker, model and field."""
        return tuple(
            difference
            for where, pricing in self._stated.items()
            for provider in ("openai", "anthropic")
            for model in sorted(pricing)
            for difference in self._differences(where, provider, model, pricing[model])
        )

    def _differences(self, where: str, provider: str, model: str, pricing: PanelPrice) -> Iterator[PriceDifference]:
        listed = self._listed(provider, model)
        if listed is None:
            return
        stated = panel_price(listed.model, pricing, listed)
        theirs, ours = listed.rows["standard"].steps[0][1], stated.rows["standard"].steps[0][1]
        for field, one, two in (
            ("input", theirs.input, ours.input),
            ("cached_input", theirs.cached, ours.cached),
            ("output", theirs.output, ours.output),
        ):
            stated_here = field != "cached_input" or pricing.cached_input is not None
            if one != two and stated_here:
                yield PriceDifference(
                    provider=provider, model=model, field=field, table=one / MICRO, panel=two / MICRO, where=where
                )

    def cost(self, provider: str, model: str, usage: Usage, *, processing: Processing = "standard") -> int:
        """Micro-dollars of one call, rounded up once; the dearer of table and panel where both know the model.

        ``batch`` is the batch price whatever tier the response reports. Otherwise the reported tier decides, because
        that is what is billed: a flex request served at the default tier costs the standard price.

        Raises:
            UnknownPriceError: see ``resolve``.
        """
        prices = self._must(provider, model)
        row = _row_of(processing, usage.service_tier)
        if row in {"priority", "fast"}:
            self._dear_rows_seen.setdefault(provider, set()).add(row)
        return max(_micro(_cost(price, price.rows[row], usage)) for price in prices)

    def worst_case(
        self,
        provider: str,
        model: str,
        *,
        input_tokens_bound: int,
        max_output_tokens: int,
        processing: Processing = "standard",
        service_tier: str | None = None,
        cache_write: CacheWrite | None = None,
        web_searches: int = 0,
    ) -> int:
        """Most micro-dollars that one attempt within these bounds can cost, in the dearest tier that may apply.

        Args:
            provider: maker whose table applies.
            model: id as asked for.
            input_tokens_bound: most input tokens, long-context steps below it included.
            max_output_tokens: most output tokens of all choices together.
            processing: how it is sent. A flex request may be served, and billed, at the standard tier.
            service_tier: as sent. ``priority``, ``fast`` and ``auto`` may be billed as priority; so may a request
                without any once a response of this provider has reported that tier (it is a setting of the account).
            cache_write: dearest cache entry the request can make the provider write; None = any.
            web_searches: most searches the provider may run.

        Raises:
            UnknownPriceError: see ``resolve``; also web searches of a model whose price for them is unknown.
        """
        rows = self._rows_that_may_apply(provider, processing, service_tier)
        worst = 0
        for price in self._must(provider, model):
            if web_searches and price.web_search is None:
                raise UnknownPriceError(f"{model!r} of {provider} has no known price for web searches; switch them off")
            beside = web_searches * (price.web_search or 0)
            for name in rows:
                for rates in price.rows[name].up_to(input_tokens_bound):
                    kinds = [rates.input, rates.cached]
                    if cache_write != "none":
                        kinds.append(rates.write_5m)
                    if cache_write in {None, "1h"}:
                        kinds.append(rates.write_1h)
                    worst = max(worst, input_tokens_bound * max(kinds) + max_output_tokens * rates.output + beside)
        return _micro(worst)

    def _rows_that_may_apply(self, provider: str, processing: Processing, asked: str | None) -> set[RowName]:
        if processing == "batch":
            return {"batch"}
        rows: set[RowName] = {"standard", processing}
        if asked is None:
            rows |= self._dear_rows_seen.get(provider, set())
        elif asked == "auto":
            rows.add("priority")
        elif asked in {"priority", "fast"}:
            rows |= {"priority", "fast"}
        return rows

    def _prices(self, provider: str, model: str) -> tuple[Price, ...]:
        key = (provider, model)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._look_up(provider, model)
        return found

    def _look_up(self, provider: str, model: str) -> tuple[Price, ...]:
        names = candidate_ids(provider, model)
        listed = self._listed(provider, model)
        found = [] if listed is None else [listed]
        for pricing in self._stated.values():
            stated = next((name for name in names if name in pricing), None)
            if stated is not None:
                found.append(panel_price(listed.model if listed else stated, pricing[stated], listed))
        return tuple(found)

    def _listed(self, provider: str, model: str) -> Price | None:
        """The table's price."""
        prices = (table_price(provider, name, self.at) for name in candidate_ids(provider, model))
        return next((price for price in prices if price is not None), None)

    def _must(self, provider: str, model: str) -> tuple[Price, ...]:
        prices = self._prices(provider, model)
        if not prices:
            raise UnknownPriceError(
                f"{model!r} of {provider} has no known price (tried {', '.join(candidate_ids(provider, model))}); "
                "nothing was sent: name the model exactly, or give its endpoint a `pricing` in the panel file"
            )
        return prices


def _row_of(processing: Processing, reported: str | None) -> RowName:
    if processing == "batch":
        return "batch"
    if reported is None:
        return processing
    return _TIER_ROWS.get(reported, "standard")


def _cost(price: Price, row: Row, usage: Usage) -> int:
    """Femto-dollars of a call by one row."""
    rates = row.at(usage.input_tokens)
    total = usage.output_tokens * rates.output + usage.web_searches * (price.web_search or 0)
    long = min(usage.cache_write_1h_tokens, usage.input_tokens)
    short = min(usage.cache_write_5m_tokens, usage.input_tokens - long)
    written = long * rates.write_1h + short * rates.write_5m
    if usage.inconsistent:
        # Counts that contradict each other earn no discount: nothing is cheaper than plain input.
        return total + max(written, (long + short) * rates.input) + (usage.input_tokens - long - short) * rates.input
    cached = min(usage.cached_tokens, usage.input_tokens - long - short)
    return total + written + cached * rates.cached + (usage.input_tokens - long - short - cached) * rates.input


def _micro(femto: int) -> int:
    return -(-femto // MICRO)
