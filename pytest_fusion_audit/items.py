"""Items of an audit: which they are, their marks, their order. Recognised by their parameters, never by file name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Names under which findings travel in ``user_properties`` (and so through xdist, junit and json-report).
SCORE = "fusion_score"
GATE = "fusion_gate"

_PARAMETERS = ("criterion", "gate")


def _subject(item: pytest.Item) -> Any:
    """The Criterion or Gate an item is parametrized with, else None."""
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return None
    for name in _PARAMETERS:
        subject = callspec.params.get(name)
        if type(subject).__module__.startswith("pytest_fusion_audit.rubric."):
            return subject
    return None


def is_of_audit(item: pytest.Item) -> bool:
    """Whether the item scores a criterion or decides a gate."""
    return _subject(item) is not None


def of_audit(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The audit's items among all."""
    return [item for item in items if is_of_audit(item)]


def mark(items: Iterable[pytest.Item]) -> None:
    """Put ``criterion``, ``dimension``, ``replay``, ``drill`` and the gates' marks on the audit's items."""
    for item in items:
        subject = _subject(item)
        if subject is None:
            continue
        if hasattr(subject, "dimension"):
            item.add_marker(pytest.mark.criterion(subject.id))
            item.add_marker(pytest.mark.dimension(subject.dimension))
            item.add_marker(pytest.mark.replay)
            if "drill" in subject.source:
                item.add_marker(pytest.mark.drill)
            gates = subject.gates
        else:
            gates = (subject.id,)
        for gate in gates:
            item.add_marker(getattr(pytest.mark, f"gate_{gate.lower()}"))


def order(items: list[pytest.Item]) -> None:
    """Criteria in the rubric's order, then gates; items of other people keep their places."""
    places = [place for place, item in enumerate(items) if is_of_audit(item)]
    ranked = sorted((items[place] for place in places), key=_rank)
    for place, item in zip(places, ranked, strict=True):
        items[place] = item


def _rank(item: pytest.Item) -> tuple[int, tuple[int, ...], str]:
    subject = _subject(item)
    if hasattr(subject, "dimension"):
        numbers = tuple(int(part) for part in subject.id.split(".") if part.isdigit())
        return 0, numbers, item.nodeid
    return 1, (), item.nodeid
