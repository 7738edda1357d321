"""How a phase's calls are sent: in batches at half price, at the flex tier, or as they are. Pure choices.

``prefer`` of fusion.yaml states a wish per phase; what becomes of it depends on who answers and how. A wish that cannot
be fulfilled falls back to ``standard``, never to something dearer.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from pytest_fusion_audit.metering.prices import Processing
    from pytest_fusion_audit.metering.wire.base import Dialect

_BATCHED: frozenset[Dialect] = frozenset({"openai.chat", "openai.responses", "anthropic.messages"})
_FLEXIBLE: frozenset[Dialect] = frozenset({"openai.chat", "openai.responses"})
_ALL: frozenset[str] = frozenset({"batch", "flex", "standard"})


def processing_for(
    prefer: Processing, dialect: Dialect, *, offered: Collection[str] = _ALL, answer_needed_now: bool = False
) -> Processing:
    """How to send the calls of a phase.

    Args:
        prefer: the wish of fusion.yaml for the phase.
        dialect: what the calls speak. Anthropic has no flex tier.
        offered: tiers with a price of their own for this model (``Price.stated``): a batch at the full price only
            takes longer.
        answer_needed_now: streams, and calls that decide on the next call, cannot wait for a batch.

    >>> processing_for("flex", "anthropic.messages"), processing_for("batch", "openai.chat")
    ('standard', 'batch')
    """
    if prefer not in offered:
        return "standard"
    if prefer == "batch" and dialect in _BATCHED and not answer_needed_now:
        return "batch"
    if prefer == "flex" and dialect in _FLEXIBLE:
        return "flex"
    return "standard"


def sent_as(processing: Processing, body: bytes) -> bytes:
    """The body of a call for this processing: flex states its tier, the others leave the body alone.

    >>> sent_as("flex", b'{"model": "gpt-5.5"}')
    b'{"model": "gpt-5.5", "service_tier": "flex"}'
    """
    if processing != "flex":
        return body
    return json.dumps({**json.loads(body), "service_tier": "flex"}, ensure_ascii=False).encode()


def after_refusal(processing: Processing, status: int, code: str | None) -> Processing | None:
    """How to send a call again that was refused at this processing; None when another tier would not help.

    A flex call is refused with 429 when there is no room at that tier (nothing is billed), and with 400 by models
    that do not have it.

    >>> after_refusal("flex", 429, "resource_unavailable"), after_refusal("flex", 429, "insufficient_quota")
    ('standard', None)
    """
    if processing != "flex" or code == "insufficient_quota":
        return None
    tier_refused = status == 400 and code in {"unsupported_parameter", "unsupported_value", "invalid_service_tier"}
    return "standard" if status == 429 or tier_refused else None
