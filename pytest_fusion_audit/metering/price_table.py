"""Price rows: what a token of one model costs, by kind of token, processing and length of the prompt.

Rates come from the offline snapshot inside ``genai-prices`` or from a panel file's ``pricing``. They are read as
Decimal and kept as whole femto-dollars per token, so that pricing a call is exact integer arithmetic with one rounding
at its end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from pytest_fusion_audit.errors import FusionAuditError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

#: A row is one of these. ``fast`` is Anthropic's fast mode and the older name of OpenAI's priority.
RowName: TypeAlias = Literal["standard", "batch", "flex", "priority", "fast"]
ROW_NAMES: tuple[RowName, ...] = ("standard", "batch", "flex", "priority", "fast")
#: One micro-dollar in the unit of the rates. A dollar per million tokens is a micro-dollar per token.
MICRO = 10**9

_CONTEXTS: dict[RowName, dict[str, str]] = {
    "batch": {"processing": "batch"},
    "flex": {"service_tier": "flex"},
    "priority": {"service_tier": "priority"},
    "fast": {"service_tier": "fast", "speed": "fast"},
}
# What a model may be billed for and still be priced by text tokens alone; audio, pictures and hours are not.
_TEXT_KEYS = frozenset(
    {
        "input_mtok",
        "output_mtok",
        "cache_read_mtok",
        "cache_write_mtok",
        "cache_write_1h_mtok",
        "web_searches_kcount",
        "storage_searches_kcount",
    }
)
_DATED = re.compile(r"-(?:20\d\d-\d\d-\d\d|20\d{6})\Z")
_MAKERS = ("openai", "anthropic")


class PricingError(FusionAuditError):
    """A ``pricing`` block of a panel file or of fusion.yaml cannot be read; the message names the field."""


class Rates(NamedTuple):
    """Femto-dollars per token, by kind of token."""

    input: int
    cached: int
    write_5m: int
    write_1h: int
    output: int


@dataclass(frozen=True, slots=True)
class Row:
    """Rates of one processing by total input tokens: the last step whose start is exceeded holds for the whole call."""

    steps: tuple[tuple[int, Rates], ...]  # (start, rates), ascending; the first start is -1

    def at(self, input_tokens: int) -> Rates:
        """Rates of a call with this many input tokens."""
        for start, rates in reversed(self.steps):
            if input_tokens > start:
                return rates
        return self.steps[0][1]

    def up_to(self, input_tokens: int) -> tuple[Rates, ...]:
        """Rates that a call of at most this many input tokens can get."""
        return tuple(rates for start, rates in self.steps if input_tokens > start) or (self.steps[0][1],)


@dataclass(frozen=True, slots=True)
class Price:
    """Every row of one model. A row that the source does not state is the standard row; ``stated`` tells them apart."""

    model: str
    source: Literal["table", "panel"]
    rows: Mapping[RowName, Row]
    stated: frozenset[RowName]
    web_search: int | None = None  # femto-dollars a search, None = not stated
    context_window: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelPrice:
    """A ``pricing`` block: dollars per million tokens. What it leaves out follows the input price.

    ``batch_multiplier`` scales every rate for batch and flex. Cache writes default to Anthropic's 1.25 and 2 times
    input, the dearest that either maker asks.
    """

    input: Decimal
    output: Decimal
    cached_input: Decimal | None = None
    cache_write_5m: Decimal | None = None
    cache_write_1h: Decimal | None = None
    batch_multiplier: Decimal | None = None

    @classmethod
    def from_mapping(cls, pricing: Mapping[str, Any], where: str = "pricing") -> PanelPrice:
        """Read a block with our names (``input`` …) or FusionKit's (``input_per_1m_tokens`` …); other keys are ignored.

        Raises:
            PricingError: a currency other than USD, a missing input or output price, or one that is no amount.
        """
        if str(pricing.get("currency") or "USD").upper() != "USD":
            raise PricingError(f"{where}.currency: {pricing['currency']!r}; prices are read in USD only")
        values: dict[str, Decimal] = {}
        for field in ("input", "output", "cached_input", "cache_write_5m", "cache_write_1h"):
            for key in (field, f"{field}_per_1m_tokens"):
                if pricing.get(key) is not None:
                    values[field] = _amount(pricing[key], f"{where}.{key}")
        if pricing.get("batch_multiplier") is not None:
            values["batch_multiplier"] = _amount(pricing["batch_multiplier"], f"{where}.batch_multiplier")
        missing = [field for field in ("input", "output") if field not in values]
        if missing:
            raise PricingError(f"{where}.{missing[0]}: missing; give dollars per million tokens for input and output")
        return cls(**values)


def _amount(value: object, where: str) -> Decimal:
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        amount = Decimal("NaN")
    if isinstance(value, bool) or not amount.is_finite() or amount < 0:
        raise PricingError(f"{where}: {value!r:.40} is not an amount of dollars")
    return amount


@lru_cache(maxsize=1024)
def candidate_ids(provider: str, model: str) -> tuple[str, ...]:
    """Ids under which a model may stand in a table, in the order to try them: nothing fuzzy.

    As written; without one prefix that names the provider or a maker; without one date (-YYYY-MM-DD, -YYYYMMDD).

    >>> candidate_ids("openai", "openai/gpt-5.5-2026-04-23")
    ('openai/gpt-5.5-2026-04-23', 'gpt-5.5-2026-04-23', 'openai/gpt-5.5', 'gpt-5.5')
    """
    bare = bare_id(provider, model)
    ordered = (model, bare, undated(model), undated(bare))
    return tuple(dict.fromkeys(name for name in ordered if name))


def bare_id(provider: str, model: str) -> str:
    """The id without one prefix that names the provider or a maker."""
    prefix, slash, rest = model.partition("/")
    return rest if slash and rest and prefix in {provider, *_MAKERS} else model


def undated(model: str) -> str:
    """The id without one date at its end."""
    return _DATED.sub("", model)


@cache
def _table() -> Mapping[tuple[str, str], Any]:
    from genai_prices.data import providers  # noqa: PLC0415 - half a second, and only sessions that price need it

    # The bundled data, never a snapshot that somebody fetched meanwhile: prices must not change with the network.
    return {(one.id, model.id): model for one in providers if one.id in _MAKERS for model in one.models}


def table_price(provider: str, model: str, at: datetime) -> Price | None:
    """Price of an exact id at a moment; None when the table does not know it, or not as a model that writes text."""
    entry = _table().get((provider, model))
    if entry is None:
        return None
    standard = entry.get_prices(at)
    keys = {key for key, value in vars(standard).items() if value is not None}
    if not {"input_mtok", "output_mtok"} <= keys <= _TEXT_KEYS:
        return None
    rows: dict[RowName, Row] = {"standard": _row(standard)}
    stated: set[RowName] = {"standard"}
    for name, context in _CONTEXTS.items():
        if any(
            variant.when.items() <= context.items() and (variant.constraint is None or variant.constraint.active(at))
            for variant in entry.price_variants or ()
        ):
            rows[name] = _row(entry.get_prices(at, context))
            stated.add(name)
        else:
            rows[name] = rows["standard"]
    search = getattr(standard, "web_searches_kcount", None)
    return Price(
        model=model,
        source="table",
        rows=rows,
        stated=frozenset(stated),
        web_search=None if search is None else _femto(search * 1000),
        context_window=entry.context_window,
    )


def _row(prices: Any) -> Row:
    """A row out of the table's price object, whose rates are Decimals or tiers by total input."""
    starts = {-1}
    for value in vars(prices).values():
        starts.update(tier.start for tier in getattr(value, "tiers", ()))

    def at(key: str, start: int) -> Decimal | None:
        value = getattr(prices, key)
        rate = getattr(value, "base", value)
        for tier in getattr(value, "tiers", ()):
            if tier.start <= start:
                rate = tier.price
        return rate if isinstance(rate, Decimal) else None

    steps = []
    for start in sorted(starts):
        whole = at("input_mtok", start) or Decimal(0)
        short = at("cache_write_mtok", start)
        short = whole if short is None else short
        long = at("cache_write_1h_mtok", start)
        cached = at("cache_read_mtok", start)
        rates = (
            whole,
            whole if cached is None else cached,
            short,
            short if long is None else long,
            at("output_mtok", start) or Decimal(0),
        )
        steps.append((start, Rates(*map(_femto, rates))))
    return Row(tuple(steps))


def panel_price(model: str, pricing: PanelPrice, listed: Price | None) -> Price:
    """Price that a panel file states, with every row that the list price has.

    Where the table knows the model, a stated rate moves each of its rows and steps in the proportion in which it
    differs from the list price, so that equal figures give equal prices in every tier. Else there is one step, and
    batch and flex differ from standard by ``batch_multiplier`` only.
    """
    if listed is None:
        rates = _panel_rates(pricing)
        standard = Row(((-1, rates),))
        half = standard if pricing.batch_multiplier is None else Row(((-1, _scaled(rates, pricing.batch_multiplier)),))
        rows: dict[RowName, Row] = dict.fromkeys(ROW_NAMES, standard)
        rows |= {"batch": half, "flex": half}
        stated: set[RowName] = {"standard"} if pricing.batch_multiplier is None else {"standard", "batch", "flex"}
        return Price(model, "panel", rows, frozenset(stated))
    base = listed.rows["standard"].steps[0][1]
    mine = _panel_rates(pricing, base)
    moved = {
        name: Row(tuple((start, _moved(rates, base, mine)) for start, rates in row.steps))
        for name, row in listed.rows.items()
    }
    if pricing.batch_multiplier is not None:
        moved["batch"] = Row(
            tuple((start, _scaled(rates, pricing.batch_multiplier)) for start, rates in moved["standard"].steps)
        )
    return Price(model, "panel", moved, listed.stated, listed.web_search, listed.context_window)


def _panel_rates(pricing: PanelPrice, base: Rates | None = None) -> Rates:
    """Rates of the block; what it leaves out keeps its proportion to the input price, listed or by default."""
    whole = _femto(pricing.input)

    def follow(stated: Decimal | None, listed: int, default: str) -> int:
        if stated is not None:
            return _femto(stated)
        if base is None or base.input == 0:
            return _femto(pricing.input * Decimal(default))
        return -(-listed * whole // base.input)

    return Rates(
        input=whole,
        cached=follow(pricing.cached_input, base.cached if base else 0, "1"),
        write_5m=follow(pricing.cache_write_5m, base.write_5m if base else 0, "1.25"),
        write_1h=follow(pricing.cache_write_1h, base.write_1h if base else 0, "2"),
        output=_femto(pricing.output),
    )


def _moved(rates: Rates, base: Rates, mine: Rates) -> Rates:
    return Rates(
        *(
            stated if listed == 0 else -(-rate * stated // listed)
            for rate, listed, stated in zip(rates, base, mine, strict=True)
        )
    )


def _scaled(rates: Rates, factor: Decimal) -> Rates:
    return Rates(*(int((rate * factor).to_integral_value(rounding=ROUND_CEILING)) for rate in rates))


def _femto(dollars_per_million: Decimal) -> int:
    """Femto-dollars per token, rounded up (no published rate has so many decimals)."""
    return int((dollars_per_million * MICRO).to_integral_value(rounding=ROUND_CEILING))
