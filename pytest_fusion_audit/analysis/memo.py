"""Results that several criteria need are computed once per `Evidence`, which is immutable.

The key is the evidence object itself, held weakly: when a run is dropped, so is everything that was derived from it.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from pytest_fusion_audit.evidence.container import Evidence

P = ParamSpec("P")
R = TypeVar("R")


def per_evidence(function: Callable[Concatenate[Evidence, P], R]) -> Callable[Concatenate[Evidence, P], R]:
    """Remember the results of a pure function of evidence and hashable arguments.

    The result is shared between callers: it has to be immutable, or be treated as such.

    Raises:
        TypeError: a call passes an argument that cannot be hashed.
    """
    remembered: WeakKeyDictionary[Evidence, dict[Hashable, Any]] = WeakKeyDictionary()

    @wraps(function)
    def lookup(evidence: Evidence, /, *args: P.args, **kwargs: P.kwargs) -> R:
        results = remembered.setdefault(evidence, {})
        key = (args, tuple(sorted(kwargs.items())))
        if key not in results:
            results[key] = function(evidence, *args, **kwargs)
        return cast("R", results[key])

    return lookup
