"""Validity has tests of its own: here a test says which findings there are, or takes the real ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_fusion_audit.analysis.validity import Finding
from pytest_fusion_audit.rubric import capping

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def findings(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Replace the findings that scores are capped by; called without arguments there are none."""

    def plant(*found: Finding) -> None:
        monkeypatch.setattr(capping, "find", lambda _: found)

    plant()
    return plant


def error(code: str, *affects: str, message: str = "planted") -> Finding:
    """A validity error."""
    return Finding(code=code, severity="error", message=message, evidence=("locked.json",), affects=affects)
