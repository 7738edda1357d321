"""The ``--fusion-…`` options: declared, typed and resolved in one place.

Options default to None and are plain values, so that xdist hands them to its workers as they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from pathlib import Path

MODES = ("live", "offline", "replay")


@dataclass(frozen=True)
class Settings:
    """What the options of a session say, after defaults."""

    base: Path  # folder that holds audit/
    run_id: str | None
    imports: tuple[str, ...]
    mode: str
    enforce: bool
    rubric: Path | None
    config: str | None  # as given; the default is looked for in ``base``
    budget: float | None  # US dollars
    spend: Literal["auto", "never"] | None
    panel: str | None
    resume: bool
    for_phases: tuple[str, ...]  # options given that only speak to phases and to items that are billed


def usd_amount(text: str) -> float:
    """An amount of dollars, at least 0."""
    try:
        amount = float(text)
    except ValueError:
        amount = -1.0
    if not 0 <= amount < 1e9:
        raise pytest.UsageError(f"{text!r} is not an amount of US dollars: give a number such as 25 or 0.50")
    return amount


def duration(text: str) -> str:
    """A duration such as 90s, 25m or 2h."""
    if not re.fullmatch(r"[1-9]\d*[smh]", text):
        raise pytest.UsageError(f"{text!r} is not a duration: give a number with s, m or h, such as 25m")
    return text


def phase_number(text: str) -> int:
    """A phase, 0 to 6."""
    if text not in {"0", "1", "2", "3", "4", "5", "6"}:
        raise pytest.UsageError(f"{text!r} is not a phase: give a number from 0 to 6")
    return int(text)


def seed_number(text: str) -> int:
    """A whole number, at least 0."""
    if not text.isdecimal():
        raise pytest.UsageError(f"{text!r} is not a whole number of at least 0")
    return int(text)


#: Options that an item that is billed (it uses the fixture ``door`` or ``budget``) already listens to.
FOR_BILLED = frozenset({"--fusion-config", "--fusion-budget", "--fusion-spend", "--fusion-panel", "--fusion-resume"})
#: Options that would keep something from being sent, or send it elsewhere: nobody may think that they do.
BEFORE_SENDING = frozenset({"--fusion-plan", "--fusion-until", "--fusion-deadline", "--fusion-target"})
#: Options that only speak to the phases of an audit and to what is billed. They are read and checked in every session;
#: in one that selects no such item they change nothing, and the session says so.
_FOR_PHASES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("config", {"metavar": "PATH", "help": "the audit's configuration (default: audits/fusion.yaml)"}),
    (
        "budget",
        {"metavar": "USD", "type": usd_amount, "help": "consent to spend at most USD over this run and its resumes"},
    ),
    ("spend", {"choices": ("auto", "never"), "help": "never: skip whatever would be billed (default under CI=true)"}),
    ("target", {"metavar": "TARGET", "help": "reference, fusionkit-0.8, fusionkit-0.10 or the URL of an endpoint"}),
    ("target-model", {"metavar": "NAME", "help": "model name to ask the target for"}),
    ("panel", {"metavar": "PATH", "help": "panel file: the endpoints that may be asked"}),
    ("suite", {"metavar": "NAME", "action": "append", "help": "suite to run (repeatable)"}),
    ("data", {"metavar": "PATH", "help": "folder or file with the suite's tasks"}),
    ("seeds", {"metavar": "N", "type": seed_number, "help": "number of seeds"}),
    ("seed", {"metavar": "N", "type": seed_number, "help": "seed of splits, order and sampling"}),
    ("resume", {"action": "store_true", "help": "go on with an interrupted run; what is stored is not paid again"}),
    ("plan", {"action": "store_true", "help": "print what the phases would do and cost, and stop"}),
    ("until", {"metavar": "PHASE", "type": phase_number, "help": "stop cleanly after this phase"}),
    ("deadline", {"metavar": "25m", "type": duration, "help": "stop cleanly after this time"}),
    ("git", {"choices": ("off", "commit", "push"), "help": "commit or push artifacts after each phase (default: off)"}),
    ("executor", {"metavar": "WHERE", "help": "where answers are graded: local or dask:ADDRESS"}),
    ("watch", {"action": "store_true", "help": "serve the report on loopback while the run goes on"}),
    ("underpowered-ok", {"action": "store_true", "help": "run a locked test with less than 80 %% power"}),
    ("allow-dirty", {"action": "store_true", "help": "run a locked test on a working tree with changes"}),
    ("unsafe-exec", {"action": "store_true", "help": "grade model-written code without a sandbox"}),
)


def add_options(parser: pytest.Parser) -> None:
    """Declare every option of the plugin."""
    group = parser.getgroup("fusion-audit", "audit of an LLM ensemble (pytest-fusion-audit)")
    add = group.addoption
    add(
        "--fusion-run-id",
        metavar="ID",
        default=None,
        help="run to read or write, in audit/ID: a name, 'now' (UTC, YYYYMMDD-HHMM) or 'latest'",
    )
    add(
        "--fusion-import",
        metavar="PATH",
        action="append",
        default=None,
        help="recorded run to score: a file or a folder, formats are recognised by content (repeatable)",
    )
    add(
        "--fusion-mode",
        choices=MODES,
        default=None,
        help="where phases and billed items get their answers (default: live)",
    )
    add(
        "--fusion-enforce",
        action="store_true",
        default=None,
        help="a shut gate is a failed item, also in a session that runs phases",
    )
    add("--fusion-rubric", metavar="PATH", default=None, help="a rubric file of your own instead of the shipped one")
    for name, how in _FOR_PHASES:
        add(f"--fusion-{name}", default=None, **how)


def settings_of(config: pytest.Config) -> Settings:
    """Resolve the options of a session once; ``now`` and ``latest`` become the run's name for all workers."""
    held = config.stash.get(_SETTINGS, None)
    if held is None:
        held = config.stash[_SETTINGS] = _resolve(config)
    return held


_SETTINGS = pytest.StashKey[Settings]()


def only_looks(config: pytest.Config) -> bool:
    """Whether the session shows items or fixtures without running them: it must check, create and write nothing."""
    names = ("collectonly", "setupplan", "showfixtures", "show_fixtures_per_test")
    return any(getattr(config.option, name, False) for name in names)


def _resolve(config: pytest.Config) -> Settings:
    option = config.option
    # With an ini file its folder is the project; without one pytest's rootdir follows the arguments and may lie
    # inside site-packages (--pyargs), so the folder the user stands in is taken.
    base = config.rootpath if config.inipath is not None else config.invocation_params.dir
    run_id: str | None = option.fusion_run_id
    if run_id in {"now", "latest"}:
        from pytest_fusion_audit.errors import FusionAuditError  # noqa: PLC0415
        from pytest_fusion_audit.evidence.rundir import resolve_run_id  # noqa: PLC0415

        try:
            run_id = option.fusion_run_id = resolve_run_id(run_id, base)
        except FusionAuditError as error:
            raise pytest.UsageError(str(error)) from None
    rubric = option.fusion_rubric
    given = [name for name, _ in _FOR_PHASES if getattr(option, f"fusion_{name.replace('-', '_')}") is not None]
    return Settings(
        base=base,
        run_id=run_id,
        imports=tuple(option.fusion_import or ()),
        mode=option.fusion_mode or "live",
        enforce=bool(option.fusion_enforce),
        rubric=None if rubric is None else (config.invocation_params.dir / rubric),
        config=option.fusion_config,
        budget=option.fusion_budget,
        spend=option.fusion_spend,
        panel=option.fusion_panel,
        resume=bool(option.fusion_resume),
        for_phases=tuple(f"--fusion-{name}" for name in given),
    )
