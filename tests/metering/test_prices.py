"""Prices: exact ids only (case 2), subsets never added (case 1), one rounding up, and a worst case that is one."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

import pytest
from genai_prices.data import providers
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fusion_audit.metering.price_table import ROW_NAMES, candidate_ids, table_price
from pytest_fusion_audit.metering.prices import PanelPrice, PriceBook, PricingError, UnknownPriceError
from pytest_fusion_audit.metering.usage import Usage

AT = datetime(2026, 11, 30, tzinfo=UTC)
BOOK = PriceBook(at=AT)
PRICED = [
    (maker.id, model.id)
    for maker in providers
    if maker.id in {"openai", "anthropic"}
    for model in maker.models
    if table_price(maker.id, model.id, AT) is not None
]
TIERS = [None, "default", "standard", "flex", "priority", "fast", "batch", "something new"]
models = st.sampled_from(
    [
        ("openai", "gpt-5.5"),
        ("openai", "gpt-5.4"),
        ("openai", "gpt-5.6-luna"),
        ("openai", "gpt-4.1"),
        ("openai", "gpt-5.5-pro"),
        ("anthropic", "claude-opus-4-8"),
        ("anthropic", "claude-sonnet-4-5"),
        ("anthropic", "claude-fable-5-2"),
    ]
)
processings = st.sampled_from(["standard", "batch", "flex"])


@st.composite
def usages(draw, most_in=600_000, most_out=200_000, tiers=TIERS):
    total = draw(st.integers(0, most_in))
    cached = draw(st.integers(0, total))
    short = draw(st.integers(0, total - cached))
    long = draw(st.integers(0, total - cached - short))
    out = draw(st.integers(0, most_out))
    return Usage(
        input_tokens=total,
        cached_tokens=cached,
        cache_write_5m_tokens=short,
        cache_write_1h_tokens=long,
        output_tokens=out,
        reasoning_tokens=draw(st.integers(0, out)),
        service_tier=draw(st.sampled_from(tiers)),
        inconsistent=draw(st.booleans()),
    )


def cost(model, total_in, out, cached=0, *, book=BOOK, provider="openai", processing="standard", **more):
    usage = Usage(input_tokens=total_in, output_tokens=out, cached_tokens=cached, **more)
    return book.cost(provider, model, usage, processing=processing)


def test_by_hand():
    # 2,000 x 5 + 8,000 x 0.5 + 3,000 x 30 dollars per million; reasoning is inside the 3,000
    assert cost("gpt-5.5", 10_000, 3_000, 8_000, reasoning_tokens=2_600) == 104_000
    assert cost("gpt-5.5", 10_000, 3_000, 8_000, processing="batch") == 52_000
    assert (
        cost("claude-opus-4-8", 1_000, 100, 200, provider="anthropic", cache_write_5m_tokens=300)
        == 500 * 5 + 200 * 0.5 + 300 * 6.25 + 100 * 25
    )
    assert cost("gpt-5.5", 272_000, 10) == 272_000 * 5 + 300
    assert cost("gpt-5.5", 272_001, 10) == 272_001 * 10 + 450  # the long-context step prices the whole call


def test_a_usage_that_contradicts_itself_is_priced_at_the_full_input_rate():
    assert cost("gpt-5.5", 100, 10, 120, inconsistent=True) == 800
    assert cost("gpt-5.5", 100, 10, 50, inconsistent=True) == 800


@pytest.mark.parametrize(
    ("provider", "model", "resolved"),
    [
        ("openai", "gpt-5.5", "gpt-5.5"),
        ("openai", "gpt-5.5-2026-04-23", "gpt-5.5"),
        ("openai", "gpt-5.5-20260423", "gpt-5.5"),
        ("openai", "openai/gpt-5.5-2026-04-23", "gpt-5.5"),
        ("openai", "gpt-5.5-pro-2026-05-02", "gpt-5.5-pro"),
        ("anthropic", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("anthropic", "anthropic/claude-opus-4-8", "claude-opus-4-8"),
        # a dated id of its own keeps its own price, with a prefix too
        ("openai", "openai/gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("openai", "gpt-4o-2024-08-06", "gpt-4o"),
        # nothing near, no alias, no sibling, no other maker's
        ("openai", "gpt-5.5-mini", None),
        ("openai", "gpt-5.5-chat", None),
        ("openai", "gpt-5.5-2026-04-23-preview", None),
        ("openai", "gpt-5.5-2026-04", None),
        ("openai", "GPT-5.5", None),
        ("openai", "openai/openai/gpt-5.5", None),
        ("openai", "azure/gpt-5.5", None),
        ("openai", "claude-opus-4-8", None),
        ("anthropic", "claude-opus-4-8-fast", None),
        ("anthropic", "claude-opus-4.8", None),
        ("azure", "gpt-5.5", None),
        ("openai", "", None),
        ("openai", "openai/", None),
        # priced by pictures or sound too, so text tokens alone are not its price
        ("openai", "gpt-audio", None),
        ("openai", "text-embedding-3-small", None),
    ],
)
def test_exact_id_or_none(provider, model, resolved):
    assert BOOK.resolve(provider, model) == resolved
    if resolved is None:
        with pytest.raises(UnknownPriceError, match="nothing was sent"):
            BOOK.cost(provider, model, Usage(input_tokens=1, output_tokens=1))
        with pytest.raises(UnknownPriceError):
            BOOK.worst_case(provider, model, input_tokens_bound=1, max_output_tokens=1)


@settings(deadline=None)
@given(st.sampled_from(PRICED), st.text("-abz0123456789./", min_size=1, max_size=8))
def test_a_name_with_something_behind_it_never_takes_a_siblings_price(entry, tail):
    provider, model = entry
    resolved = BOOK.resolve(provider, model + tail)
    assert resolved is None or resolved == model + tail or resolved in candidate_ids(provider, model + tail)
    assert resolved is None or (model + tail).startswith(resolved)


@settings(deadline=None)
@given(models, usages(), processings)
def test_cost_is_the_exact_sum_rounded_up_once(entry, usage, processing):
    provider, model = entry
    usage = Usage(
        input_tokens=usage.input_tokens,
        cached_tokens=usage.cached_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.reasoning_tokens,
    )
    entry_in_table = next(m for p in providers if p.id == provider for m in p.models if m.id == model)
    context = {"standard": None, "batch": {"processing": "batch"}, "flex": {"service_tier": "flex"}}[processing]
    rates = entry_in_table.get_prices(AT, context)

    def rate(key):
        value = getattr(rates, key)
        tiers = [tier.price for tier in getattr(value, "tiers", ()) if usage.input_tokens > tier.start]
        return tiers[-1] if tiers else getattr(value, "base", value)

    cached = rate("cache_read_mtok")
    exact = (
        (usage.input_tokens - usage.cached_tokens) * rate("input_mtok")
        + usage.cached_tokens * (rate("input_mtok") if cached is None else cached)
        + usage.output_tokens * rate("output_mtok")
    )
    assert BOOK.cost(provider, model, usage, processing=processing) == exact.to_integral_value(ROUND_CEILING)


@pytest.mark.parametrize(("provider", "model"), PRICED)
def test_every_row_of_every_model_makes_sense(provider, model):
    price = BOOK.price(provider, model)
    for name in ROW_NAMES:
        for _, rates in price.rows[name].steps:
            assert min(rates) >= 0
            assert rates.cached <= rates.input
            assert rates.input <= rates.write_5m <= rates.write_1h
    for one, two in (("batch", "standard"), ("flex", "standard"), ("standard", "priority"), ("standard", "fast")):
        assert price.rows[one].steps[0][1].input <= price.rows[two].steps[0][1].input


@settings(deadline=None)
@given(models, usages(), processings, st.integers(0, 400_000), st.integers(0, 50_000))
def test_more_tokens_never_cost_less(entry, usage, processing, more_in, more_out):
    bigger = Usage(
        input_tokens=usage.input_tokens + more_in,
        cached_tokens=usage.cached_tokens,
        cache_write_5m_tokens=usage.cache_write_5m_tokens,
        cache_write_1h_tokens=usage.cache_write_1h_tokens,
        output_tokens=usage.output_tokens + more_out,
        service_tier=usage.service_tier,
        inconsistent=usage.inconsistent,
    )
    low, high = (BOOK.cost(*entry, one, processing=processing) for one in (usage, bigger))
    assert 0 <= low <= high


@settings(deadline=None)
@given(models, st.integers(0, 600_000), st.integers(0, 600_000), st.integers(0, 9_999), processings)
def test_cached_tokens_never_cost_more_than_plain_ones(entry, total, cached, out, processing):
    provider, model = entry
    more = {"provider": provider, "processing": processing}
    assert cost(model, total, out, min(cached, total), **more) <= cost(model, total, out, **more)


@settings(deadline=None)
@given(models, usages(), processings)
def test_wild_counts_are_never_negative(entry, usage, processing):
    wild = Usage(
        input_tokens=usage.input_tokens // 7,
        cached_tokens=usage.cached_tokens,
        cache_write_5m_tokens=usage.cache_write_5m_tokens,
        cache_write_1h_tokens=usage.cache_write_1h_tokens,
        output_tokens=usage.output_tokens,
        inconsistent=usage.inconsistent,
    )
    assert BOOK.cost(*entry, wild, processing=processing) >= 0


def test_the_reported_tier_is_what_is_billed_and_batch_is_batch():
    assert cost("gpt-5.5", 1_000_00, 0, service_tier="flex") == 250_000
    assert cost("gpt-5.5", 100_000, 0, service_tier="priority") == 1_250_000
    assert cost("gpt-5.5", 100_000, 0, processing="flex") == 250_000
    assert cost("gpt-5.5", 100_000, 0, processing="flex", service_tier="default") == 500_000
    assert cost("gpt-5.5", 100_000, 0, processing="batch", service_tier="default") == 250_000
    assert cost("claude-opus-4-8", 100_000, 0, provider="anthropic", service_tier="fast") == 1_000_000
    assert (
        cost("claude-opus-4-8", 100_000, 0, provider="anthropic", processing="batch", service_tier="batch") == 250_000
    )


def test_prices_hold_at_the_moment_of_the_book():
    before, after = (PriceBook(at=datetime(2026, month, 1, tzinfo=UTC)) for month in (7, 11))
    assert cost("gpt-5.6-luna", 100_000, 0, book=before) == 5 * cost("gpt-5.6-luna", 100_000, 0, book=after)
    # the table's batch prices have a first day: before it the standard price is charged, and the row says so
    assert cost("gpt-5.5", 100_000, 0, book=before, processing="batch") == 500_000
    assert "batch" not in before.price("openai", "gpt-5.5").stated
    assert "batch" in after.price("openai", "gpt-5.5").stated
    assert PriceBook(at=datetime(2026, 7, 1)).at == before.at  # noqa: DTZ001 - that is the point


def test_the_table_is_read_only_when_something_is_priced():
    code = (
        "import sys; from pytest_fusion_audit.metering import models, prices, pricing; "
        "from pytest_fusion_audit.metering.wire import base; prices.PriceBook(); "
        "print(sorted({'genai_prices', 'openai', 'anthropic', 'httpx2'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# -- worst case --


@settings(max_examples=300, deadline=None)
@given(
    models,
    usages(),
    processings,
    st.sampled_from(["default", "standard_only", "flex", "priority", "fast", "auto"]),
    st.integers(0, 50_000),
    st.sampled_from([None, "none", "5m", "1h"]),
)
def test_no_usage_within_the_bounds_costs_more_than_the_worst_case(  # noqa: PLR0917 - hypothesis passes them
    entry, usage, processing, asked, slack, write
):
    reported = {
        "default": [None, "default"],
        "standard_only": [None, "standard"],
        "flex": ["flex", "default"],
        "priority": ["priority", "default"],
        "fast": ["fast", "priority", "standard"],
        "auto": [None, "default", "flex", "priority"],
    }[asked]
    short = usage.cache_write_5m_tokens if write != "none" else 0
    long = usage.cache_write_1h_tokens if write in {None, "1h"} else 0
    worst = BOOK.worst_case(
        *entry,
        input_tokens_bound=usage.input_tokens + slack,
        max_output_tokens=usage.output_tokens,
        processing=processing,
        service_tier=asked,
        cache_write=write,
    )
    for tier in reported:
        billed = Usage(
            input_tokens=usage.input_tokens,
            cached_tokens=usage.cached_tokens,
            cache_write_5m_tokens=short,
            cache_write_1h_tokens=long,
            output_tokens=usage.output_tokens,
            service_tier=tier,
            inconsistent=usage.inconsistent,
        )
        assert BOOK.cost(*entry, billed, processing=processing) <= worst


def test_worst_cases_by_hand():
    def worst(**more):
        return PriceBook(at=AT).worst_case("openai", "gpt-5.5", **more)

    small = {"input_tokens_bound": 900, "max_output_tokens": 4096}
    assert worst(**small) == 127_380
    assert worst(**small, processing="batch") == 63_690
    assert worst(**small, processing="flex") == 127_380  # may be served at the standard tier
    assert worst(**small, service_tier="auto") == 318_450
    assert worst(input_tokens_bound=272_001, max_output_tokens=0) == 2_720_010
    claude = {"input_tokens_bound": 1_000, "max_output_tokens": 0}
    ends = {
        write: PriceBook(at=AT).worst_case("anthropic", "claude-opus-4-8", **claude, cache_write=write)
        for write in ("none", "5m", "1h")
    }
    assert ends == {"none": 5_000, "5m": 6_250, "1h": 10_000}


def test_a_provider_seen_to_bill_priority_is_reserved_at_it():
    book = PriceBook(at=AT)
    bounds = {"input_tokens_bound": 100, "max_output_tokens": 100}
    before = book.worst_case("openai", "gpt-5.5", **bounds)
    cost("gpt-5.5", 1, 1, book=book, service_tier="priority")
    assert book.worst_case("openai", "gpt-5.4", **bounds) == 2 * book.worst_case(
        "openai", "gpt-5.4", **bounds, service_tier="default"
    )
    assert book.worst_case("openai", "gpt-5.5", **bounds) == before * Fraction(5, 2)
    assert book.worst_case("openai", "gpt-5.5", **bounds, service_tier="default") == before


def test_web_searches_are_part_of_both():
    assert cost("claude-opus-4-8", 0, 0, provider="anthropic", web_searches=3) == 30_000
    bounds = {"input_tokens_bound": 0, "max_output_tokens": 0, "web_searches": 3}
    assert BOOK.worst_case("anthropic", "claude-opus-4-8", **bounds) == 30_000
    with pytest.raises(UnknownPriceError, match="web searches"):
        PriceBook({"mine": panel(1, 2)}).worst_case("host", "mine", **bounds)


# -- pricing of the panel file --


def panel(one, two, **more):
    return PanelPrice.from_mapping({"input": one, "output": two, **more})


def test_a_panel_price_is_used_for_ids_the_table_does_not_know():
    book = PriceBook({"gpt-5.5-mini": panel("0.25", 2, cached_input="0.025", batch_multiplier="0.5")}, at=AT)
    assert book.resolve("openai", "openai/gpt-5.5-mini-2026-05-01") == "gpt-5.5-mini"
    assert cost("gpt-5.5-mini", 1_000_000, 1_000, 400_000, book=book) == 150_000 + 10_000 + 2_000
    assert cost("gpt-5.5-mini", 1_000_000, 0, book=book, processing="batch") == 125_000
    assert cost("gpt-5.5-mini", 1_000_000, 0, book=book, processing="flex") == 125_000
    assert book.differences == ()


def test_what_a_panel_price_leaves_out_follows_input():
    book = PriceBook({"mine": panel(4, 8)})
    assert cost("mine", 100, 0, 100, book=book, provider="host") == 400
    assert cost("mine", 100, 0, book=book, provider="host", cache_write_5m_tokens=100) == 500
    assert cost("mine", 100, 0, book=book, provider="host", cache_write_1h_tokens=100) == 800
    assert cost("mine", 100, 0, book=book, provider="host", processing="batch") == 400
    assert cost("free", 100, 5, book=PriceBook({"free": panel(0, 0)}), provider="local") == 0


@settings(deadline=None)
@given(usages(), processings, st.integers(1, 4000), st.integers(1, 9000), st.booleans())
def test_of_table_and_panel_the_dearer_is_charged_and_reserved(usage, processing, one, two, cached):
    mine = panel(Decimal(one) / 100, Decimal(two) / 100, **({"cached_input": Decimal(one) / 900} if cached else {}))
    both, alone = PriceBook({"gpt-5.5": mine}, at=AT), PriceBook({"x": mine}, at=AT)
    charged = both.cost("openai", "gpt-5.5", usage, processing=processing)
    assert charged >= BOOK.cost("openai", "gpt-5.5", usage, processing=processing)
    if (
        usage.service_tier is None
        and processing == "standard"
        and not usage.cached_tokens
        and usage.input_tokens < 272_000
    ):
        plain = Usage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
        assert both.cost("openai", "gpt-5.5", plain) == max(
            BOOK.cost("openai", "gpt-5.5", plain), alone.cost("openai", "x", plain)
        )
    assert charged <= both.worst_case(
        "openai",
        "gpt-5.5",
        input_tokens_bound=usage.input_tokens,
        max_output_tokens=usage.output_tokens,
        processing=processing,
        service_tier="priority",
    )


@settings(deadline=None)
@given(usages(), processings)
def test_a_panel_price_equal_to_the_table_changes_nothing_in_any_tier(usage, processing):
    book = PriceBook({"gpt-5.5": panel(5, 30, cached_input="0.5"), "claude-opus-4-8": panel("5.0", "25.00")}, at=AT)
    assert book.differences == ()
    for entry in (("openai", "gpt-5.5"), ("anthropic", "claude-opus-4-8")):
        assert book.cost(*entry, usage, processing=processing) == BOOK.cost(*entry, usage, processing=processing)


def test_differences_name_what_differs():
    book = PriceBook({"gpt-5.5": panel(1.25, 10), "claude-opus-4-8": panel(5, 75), "unheard-of": panel(1, 1)}, at=AT)
    told = [(d.provider, d.model, d.field, d.table, d.panel) for d in book.differences]
    assert told == [
        ("openai", "gpt-5.5", "input", 5.0, 1.25),
        ("openai", "gpt-5.5", "output", 30.0, 10.0),
        ("anthropic", "claude-opus-4-8", "output", 25.0, 75.0),
    ]
    assert cost("gpt-5.5", 1000, 0, book=book) == 5000
    assert cost("claude-opus-4-8", 0, 1000, book=book, provider="anthropic") == 75_000


@pytest.mark.parametrize(
    ("pricing", "field"),
    [
        ({}, "input"),
        ({"input": 1}, "output"),
        ({"input": -1, "output": 1}, "input"),
        ({"input": "much", "output": 1}, "input"),
        ({"input": True, "output": 1}, "input"),
        ({"input": float("nan"), "output": 1}, "input"),
        ({"input_per_1m_tokens": 1, "output_per_1m_tokens": float("inf")}, "output_per_1m_tokens"),
        ({"input": 1, "output": 1, "currency": "EUR"}, "currency"),
        ({"input": 1, "output": 1, "batch_multiplier": "half"}, "batch_multiplier"),
    ],
)
def test_a_pricing_block_that_is_none_is_refused_by_field(pricing, field):
    with pytest.raises(PricingError, match=rf"^panel\.yaml: gpt\.pricing\.{field}: "):
        PanelPrice.from_mapping(pricing, "panel.yaml: gpt.pricing")


def test_fusionkits_names_are_read_and_other_keys_ignored():
    block = {"input_per_1m_tokens": 1.25, "output_per_1m_tokens": 10.0, "currency": "USD", "source": "a page"}
    assert PanelPrice.from_mapping(block) == panel("1.25", 10)
