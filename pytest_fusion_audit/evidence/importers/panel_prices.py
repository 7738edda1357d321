"""List prices of a model, by exact id only: a price that is merely near is worse than none."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import JsonValue

_DATED = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8})\Z")


def exact_ids(model: str) -> tuple[str, ...]:
    """Ids under which a model may stand in a table: as written, then without one provider prefix and one date suffix.

    >>> exact_ids("openai/gpt-5.5-2026-04-24")
    ('openai/gpt-5.5-2026-04-24', 'gpt-5.5')
    """
    bare = _DATED.sub("", model.partition("/")[2] or model)
    return (model,) if bare == model else (model, bare)


def table_price(model: str, provider: object = None) -> dict[str, JsonValue] | None:
    """Dollars per million input and output tokens from the offline table, None when it does not know the id.

    Standard tier; where a price changed over time the latest one listed. ``provider`` picks the maker's own entry when
    several providers sell the same id; ``openai-compatible`` and unknown providers take any maker's.
    """
    return dict(found) if (found := _look_up(model, provider if isinstance(provider, str) else "")) else None


@lru_cache(maxsize=256)
def _look_up(model: str, provider: str) -> dict[str, JsonValue] | None:
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - half a second that only panel files need

    providers = get_snapshot().providers
    prefix = model.partition("/")[0] if "/" in model else ""
    ordered = sorted(
        providers, key=lambda p: (p.id not in {provider, prefix}, p.id not in {"openai", "anthropic"}, p.id)
    )
    for name in exact_ids(model):
        for seller in ordered:
            for entry in seller.models:
                if entry.id == name:
                    return _per_million(entry.prices)
    return None


def _per_million(prices: Any) -> dict[str, JsonValue] | None:
    if isinstance(prices, list):  # dated prices: the latest start, the undated one first
        dated = [
            (str(getattr(one.constraint, "start_date", "")), index, one.prices) for index, one in enumerate(prices)
        ]
        prices = max(dated, key=lambda item: item[:2])[2]
    found: dict[str, JsonValue] = {}
    for ours, theirs in (("input", "input_mtok"), ("output", "output_mtok")):
        value = getattr(prices, theirs, None)
        value = getattr(value, "base", value)  # tiers by length of the prompt: the first is the list price
        if value is not None:
            found[ours] = float(value)
    return found or None
