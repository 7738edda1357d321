"""Recorded runs of others lie beside the checkout, never in it; a test that reads them skips without them."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


def shared(relative: str) -> Path:
    """Path of a file or folder of ``../shared``, as in ``shared("runs/golden.json")``; skips the test without it."""
    path = SHARED / relative
    if not path.exists():
        pytest.skip(f"../shared/{relative} is not there: this test reads recorded runs kept beside the checkout")
    return path
