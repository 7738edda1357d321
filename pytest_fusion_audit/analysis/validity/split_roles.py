"""Which part a split plays: worked on, locked, called held out, registered. Decided on plain names."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.analysis.names import first_word, place, plain
from pytest_fusion_audit.analysis.validity.facts import compounds, member_arms, split_name
from pytest_fusion_audit.evidence.container import is_member
from pytest_fusion_audit.evidence.records import ComparisonPlan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_fusion_audit.evidence.container import Evidence

#: Splits in which things are tried, chosen or calibrated; an uplift measured there is never the headline.
WORKING_SPLITS = frozenset(
    {
        *("dev", "development", "val", "valid", "validation", "train", "training", "tune", "tuning"),
        *("smoke", "baseline", "bank", "monitor", "caps", "manifest"),
    }
)
#: Splits on which a best single or a setting may be chosen: choosing is what they are for.
CHOOSING_SPLITS = frozenset({"dev", "development", "val", "valid", "validation"})
#: First words by which people say that nobody tuned on a split, besides "locked". Such a name accuses where the split
#: was read before; it proves nothing, so it earns no held-out credit (`is_locked` does).
HELD_OUT_WORDS = frozenset(
    {
        *("final", "test", "testing", "holdout", "heldout", "held", "hold", "hidden", "unseen", "blind"),
        *("eval", "evaluation", "official"),
    }
)


@per_evidence
def _plans(evidence: Evidence) -> Mapping[tuple[str, str], tuple[ComparisonPlan, ...]]:
    by_place: dict[tuple[str, str], list[ComparisonPlan]] = {}
    for plan in evidence.of(ComparisonPlan):
        by_place.setdefault(place(plan.suite, plan.split), []).append(plan)
    return MappingProxyType({key: tuple(plans) for key, plans in by_place.items()})


def plans_of(evidence: Evidence, suite: str, split: str) -> tuple[ComparisonPlan, ...]:
    """Registrations of a split, in recorded order."""
    return _plans(evidence).get(place(suite, split), ())


def is_working(split: str) -> bool:
    """Whether the split is one to work on, by the first word of its name.

    >>> is_working("Dev "), is_working("baseline-8550"), is_working("dev2"), is_working("locked")
    (True, True, True, False)
    """
    return first_word(split) in WORKING_SPLITS


def is_choosing(split: str) -> bool:
    """Whether the split is one to choose on, by the first word of its name."""
    return first_word(split) in CHOOSING_SPLITS


def named_locked(split: str) -> bool:
    """Whether the split is a locked one by its name.

    >>> named_locked("locked-p"), named_locked("Locked "), named_locked("final")
    (True, True, False)
    """
    return plain(split).startswith("locked")


def is_locked(evidence: Evidence, suite: str, split: str) -> bool:
    """Whether the split is a locked one: named so, or registered."""
    return named_locked(split) or bool(plans_of(evidence, suite, split))


def is_called_held_out(evidence: Evidence, suite: str, split: str) -> bool:
    """Whether the split is locked, or has a name by which people call what nobody tuned on."""
    return is_locked(evidence, suite, split) or first_word(split) in HELD_OUT_WORDS


@per_evidence
def headline_splits(evidence: Evidence) -> tuple[tuple[str, str], ...]:
    """Splits in which a compound was evaluated and which nothing was tuned on by their name."""
    return tuple(
        (suite, split)
        for suite, split in evidence.splits
        if not is_working(split) and compounds(evidence, suite, split)
    )


@per_evidence
def arms_beside(evidence: Evidence) -> frozenset[tuple[str, str, str]]:
    """Arms (suite, split, name) that are not about the system under audit, where there is one: models of other people.

    They are members that no headline split knows, in any configuration, on splits where no compound and no control was
    run and that nobody registered. Without a headline split there is nothing to be beside.
    """
    headline = headline_splits(evidence)
    panel = {split_name(arm)[0] for split in headline for arm in member_arms(evidence, *split)}
    return frozenset(
        (suite, split, arm)
        for suite, split in evidence.splits
        if headline and not plans_of(evidence, suite, split) and all(map(is_member, evidence.arms(suite, split)))
        for arm in evidence.arms(suite, split)
        if split_name(arm)[0] not in panel
    )
