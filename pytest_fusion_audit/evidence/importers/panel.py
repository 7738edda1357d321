"""FusionKit panel file (YAML): who is asked, who judges, who writes, with which sampling.

Keys and hosts that stand in such a file are not taken over.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.evidence.importers.base import Context, Peek, Reading, Source
from pytest_fusion_audit.evidence.importers.panel_prices import table_price
from pytest_fusion_audit.evidence.importers.rows import Row, unknown_fields
from pytest_fusion_audit.evidence.importers.text import load_yaml
from pytest_fusion_audit.evidence.records import Config, Note

if TYPE_CHECKING:
    from pydantic import JsonValue

_FIELDS = {
    "endpoints", "default_model", "judge_model", "synthesizer_model", "default_mode", "panel_models", "sampling",
    "budget", "prompts", "routekit_url", "routekit_model_ids", "synthesis_select_best",
}  # fmt: skip
_ENDPOINT = {
    "id", "provider", "model", "base_url", "api_key", "api_key_env", "timeout_s", "pricing", "cutoff", "capabilities",
    "tags",
}  # fmt: skip
_SAMPLING = ("temperature", "top_p", "max_tokens", "seed")


class Panel:
    """Importer of ``fusionkit-panel``."""

    format = "fusionkit-panel"
    stage = 0

    def recognises(self, _source: Source, peek: Peek) -> bool:
        """A mapping with panel models and the endpoints (0.8) or model ids (0.10) behind them."""
        known = bool(peek.keys & {"endpoints", "routekit_model_ids"})
        return peek.container in {"yaml", "json"} and "panel_models" in peek.keys and known

    def read(self, source: Source, _context: Context) -> Reading:
        """One ``panel`` fact; unknown keys are listed and ignored. See `Importer.read`."""
        document = Row(source, "", load_yaml(source))
        unread = set(document.others(_FIELDS))
        panel = document.ids("panel_models") or ()
        members: list[JsonValue] = []
        notes: list[Note] = []
        endpoints = {row.id("id"): row for row in document.rows("endpoints")}
        for row in endpoints.values():
            unread.update(f"endpoints[].{name}" for name in row.others(_ENDPOINT))
        for member in [*panel, *(name for name in endpoints if name not in panel)]:
            if member in endpoints:
                members.append(_member(endpoints[member]))
            elif member in (document.ids("routekit_model_ids") or ()):
                provider, _, model = member.rpartition("/")
                members.append(_priced({"id": member, "provider": provider or None, "model": model}))
            else:
                text = f"panel member {member} has no endpoint"
                notes.append(Note(code="member_without_endpoint", message=text, items=(member,)))
        sampling = document.child("sampling")
        settings: dict[str, JsonValue] = {}
        if sampling is not None:
            settings = {name: v for name in _SAMPLING if (v := sampling.number(name)) is not None}
            unread.update(f"sampling.{name}" for name in sampling.others(_SAMPLING))
        facts: dict[str, JsonValue] = {
            "members": members,
            "panel_models": list(panel),
            "judge": document.text("judge_model"),
            "synthesizer": document.text("synthesizer_model"),
            "default_model": document.text("default_model"),
            "default_mode": document.text("default_mode"),
            "select_best": document.flag("synthesis_select_best"),
            "sampling": settings,
        }
        known = {name: value for name, value in facts.items() if value is not None}
        missing = [name for name in ("seed", "temperature", "max_tokens") if name not in settings]
        unknown = (
            *(f"sampling.{name}" for name in missing),
            *(() if _any(members, "cutoff") else ("training cutoffs",)),
            "prompts",
            "resolved models",
        )
        return Reading(
            [Config(what="panel", facts=known, source=source.name)], unknown, (*notes, *unknown_fields(unread))
        )


def _any(members: list[JsonValue], name: str) -> bool:
    return any(isinstance(member, dict) and name in member for member in members)


def _member(row: Row) -> JsonValue:
    facts: dict[str, JsonValue] = {
        "id": row.id("id"),
        "provider": row.text("provider"),
        "model": row.text("model"),
        "cutoff": _date(row),
    }
    pricing = row.child("pricing")
    if pricing is not None:
        per_million = {
            "input": pricing.number("input_per_1m_tokens", 0),
            "output": pricing.number("output_per_1m_tokens", 0),
        }
        facts["pricing"] = {name: value for name, value in per_million.items() if value is not None}
    return _priced(facts)


def _priced(facts: dict[str, Any]) -> JsonValue:
    model = facts.get("model")
    if isinstance(model, str):
        facts["table_pricing"] = table_price(model, facts.get("provider"))
    return {name: value for name, value in facts.items() if value is not None}


def _date(row: Row) -> str | None:
    value = row.data.get("cutoff")
    return value.isoformat()[:10] if isinstance(value, dt.date) else row.text("cutoff")
