"""One normalised usage: what a response says it consumed, in the same words for both makers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts of one call, every one an int >= 0. Breakdowns are inside their totals and never added to them.

    OpenAI's totals already include their breakdowns; Anthropic's ``input_tokens`` leaves out what was read from or
    written to the cache, so both are added when its usage is read. ``inconsistent`` marks a response whose breakdown
    exceeds its total or is not a count: such a call is priced at the full input rate, because a discount that
    contradicts itself is not one (finding ``usage_inconsistent``).
    """

    input_tokens: int  # everything the model read, cached and cache-written tokens included
    cached_tokens: int = 0  # read from the cache
    cache_write_5m_tokens: int = 0  # also OpenAI's cache writes, whose shorter retention is half an hour
    cache_write_1h_tokens: int = 0  # also OpenAI's writes of twelve hours
    output_tokens: int = 0  # reasoning included
    reasoning_tokens: int = 0
    web_searches: int = 0  # searches the provider ran and bills beside the tokens
    service_tier: str | None = None  # as the response reports it: default, flex, priority, standard, batch, fast …
    inconsistent: bool = False

    @property
    def plain_input_tokens(self) -> int:
        """Input neither read from nor written to the cache; never negative."""
        apart = self.cached_tokens + self.cache_write_5m_tokens + self.cache_write_1h_tokens
        return max(0, self.input_tokens - apart)
