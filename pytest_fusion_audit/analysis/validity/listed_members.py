"""Members that a run says its panel is made of, and those of them that have no row where the compound was evaluated.

An uplift "over every member" is over the members whose rows are there. A member that the panel file, the run's own
record, a registration or the compound's turns name, and that nobody shows, is not beaten: it is missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.matrix import panel_of
from pytest_fusion_audit.analysis.names import plain
from pytest_fusion_audit.analysis.validity.facts import compounds, family, model_of, rows, run_facts
from pytest_fusion_audit.analysis.validity.split_roles import plans_of
from pytest_fusion_audit.evidence.container import Evidence, is_member, member_arm
from pytest_fusion_audit.evidence.records import Config, Fused

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Doors of a gateway behind which no panel stands: a run through one of them lists its own model, not the panel's.
_OTHER_DOORS = frozenset({"self", "single", "router"})
_CANDIDATE = re.compile(r"(?P<member>[^#@]+)(?:@[^#]*)?#\d+")

#: Model id (None = not stated) and the files that list a member, by the member's name.
Listing = dict[str, tuple[str | None, set[str]]]


def missing_members(evidence: Evidence, suite: str, split: str) -> Mapping[str, tuple[str, ...]]:
    """Listed members without a row on a split, with the files that list them; empty where no member has a row.

    A compound that was recorded alone is compared with nobody, and no figure there says otherwise.
    """
    shown = [name.partition("@")[0] for name in panel_of(evidence, suite, split)]
    if not shown:
        return {}
    own = _of_runs(evidence, suite, split)
    _add_named_by_turns(evidence, suite, split, own)
    for plan in plans_of(evidence, suite, split):
        for arm in plan.arms:
            if is_member(arm):
                _add(own, arm.removeprefix("member:").partition("@")[0], None, plan.source)
    missing = _without_rows(evidence, suite, split, own, shown)
    panels = [_known(evidence, suite, split, panel, shown) for panel in _panel_files(evidence)]
    fitting = [found for found in panels if found is not None]
    if fitting:
        # Several panel files are several panels that were tried: the one that fits best is the split's.
        fewest: dict[str, set[str]] = min(fitting, key=len)
        for name, sources in fewest.items():
            missing[name] = missing.get(name, set()) | sources
    return {name: tuple(sorted(files)) for name, files in sorted(missing.items())}


def _add(listing: Listing, name: str, model: str | None, source: str) -> None:
    known, sources = listing.get(name, (None, set()))
    listing[name] = (known if known is not None else model, sources | {source})


def _of_runs(evidence: Evidence, suite: str, split: str) -> Listing:
    """Members that the records of the runs behind the split list as their models."""
    listing: Listing = {}
    for run in run_facts(evidence, suite, split):
        models = run.facts.get("models")
        door = str(run.facts.get("gateway_model") or "").rpartition("/")[2]
        if isinstance(models, Mapping) and door not in _OTHER_DOORS:
            for name, model in models.items():
                _add(listing, str(name), model if isinstance(model, str) else None, run.source)
    return listing


def _add_named_by_turns(evidence: Evidence, suite: str, split: str, listing: Listing) -> None:
    """Members whose candidates a compound's turns were shown, or whose answer the judge picked."""
    arms = set(compounds(evidence, suite, split))
    for turn in evidence.of(Fused):
        if (turn.suite, turn.split) != (suite, split) or turn.arm not in arms:
            continue
        named = [found["member"] for name in turn.candidate_ids or () if (found := _CANDIDATE.fullmatch(name))]
        for name in (*named, turn.pick_member):
            if name is not None:
                _add(listing, name, None, turn.source)


def _panel_files(evidence: Evidence) -> Iterable[Listing]:
    """Panel files: the members they name as the panel, else every member they know."""
    for config in evidence.of(Config):
        if config.what != "panel":
            continue
        models = {str(row.get("id")): row.get("model") for row in rows(config.facts.get("members"))}
        panel = config.facts.get("panel_models")
        listing: Listing = {}
        for name in panel if isinstance(panel, (list, tuple)) else models:
            model = models.get(str(name))
            _add(listing, str(name), model if isinstance(model, str) else None, config.source)
        yield listing


def _known(evidence: Evidence, suite: str, split: str, panel: Listing, shown: list[str]) -> dict[str, set[str]] | None:
    """Missing members of a panel file; None when it shares no member with the split and so is another's panel."""
    missing = _without_rows(evidence, suite, split, panel, shown)
    return missing if len(missing) < len(panel) else None


def _without_rows(
    evidence: Evidence, suite: str, split: str, listing: Listing, shown: list[str]
) -> dict[str, set[str]]:
    """Listed members that are none of those shown: neither by name, nor, one to one, by model."""
    free = {plain(name): name for name in shown}
    left: Listing = {}
    for name, entry in listing.items():
        if free.pop(plain(name), None) is None:
            left[name] = entry
    models = [_model(evidence, suite, split, name) for name in free.values()]
    missing: dict[str, set[str]] = {}
    for name, (model, sources) in left.items():
        own = family(model) if model is not None else None
        if own is not None and own in models:
            models.remove(own)
        else:
            missing[name] = sources
    return missing


def _model(evidence: Evidence, suite: str, split: str, name: str) -> str:
    """Model behind a shown member; other tools call a member by its model, with ``:`` where the id has ``/``."""
    return family(model_of(evidence, suite, split, member_arm(name)) or name.replace(":", "/"))
