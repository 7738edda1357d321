"""Where evidence comes from: commit and state of the working tree, versions, time. Unknown is never shown as clean."""

from __future__ import annotations

import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

_PACKAGES = (
    "pytest-fusion-audit", "pytest", "numpy", "scipy", "pydantic", "openai", "anthropic", "httpx2", "genai-prices"
)  # fmt: skip


def provenance(folder: Path) -> dict[str, Any]:
    """Provenance of a file written now: UTC time, git state of ``folder``, versions of what computes."""
    return {
        "written_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "git": git_state(folder),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
    }


def git_state(folder: Path) -> dict[str, Any]:
    """Commit (or null), dirty (true, false or null when unknown) and, where something is unknown, the reason.

    Files under ``audit/`` are outputs of runs and never make the tree dirty.
    """
    try:
        status = _git(folder, "status", "--porcelain", "--", ".", ":(exclude,top)audit")
    except FileNotFoundError:
        return {"commit": None, "dirty": None, "reason": "git is not installed"}
    except subprocess.TimeoutExpired:
        return {"commit": None, "dirty": None, "reason": "git did not answer within 10 s"}
    if status.returncode != 0:
        reason = (status.stderr.strip().splitlines() or ["git status failed"])[0]
        if "not a git repository" in reason:
            reason = "not a git repository"
        elif "dubious ownership" in reason:
            reason = "the repository belongs to another user"
        return {"commit": None, "dirty": None, "reason": reason}
    dirty = bool(status.stdout.strip())
    head = _git(folder, "rev-parse", "--verify", "--quiet", "HEAD")
    if head.returncode != 0:
        return {"commit": None, "dirty": dirty, "reason": "no commit yet"}
    return {"commit": head.stdout.strip(), "dirty": dirty, "reason": None}


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - fixed arguments, no shell
        ["git", "-C", str(folder), *arguments],  # noqa: S607 - the user's git
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
