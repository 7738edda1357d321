"""Session fixtures of an audit. What is heavy is imported when a fixture is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_fusion_audit.items import GATE, SCORE
from pytest_fusion_audit.options import settings_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.evidence.rundir import RunDirectory
    from pytest_fusion_audit.metering.budget import Budget
    from pytest_fusion_audit.metering.door import Door
    from pytest_fusion_audit.rubric.gates import GateResult
    from pytest_fusion_audit.rubric.score import Score

_RUN: pytest.StashKey[RunDirectory] = pytest.StashKey()
_EVIDENCE: pytest.StashKey[Evidence] = pytest.StashKey()


def prepare_run(config: pytest.Config) -> RunDirectory:
    """Open the session's run; store the import if one is given. Idempotent over workers, sessions and crashes.

    Raises:
        FusionAuditError: no run is named, it does not exist, or the import is refused; nothing was stored then.
    """
    held = config.stash.get(_RUN, None)
    if held is not None:
        return held
    from pytest_fusion_audit.errors import EvidenceError  # noqa: PLC0415
    from pytest_fusion_audit.evidence.rundir import RunDirectory  # noqa: PLC0415

    settings = settings_of(config)
    if settings.run_id is None:
        raise EvidenceError(
            "an audit needs the name of a run: add --fusion-run-id=ID (a name, 'now' or 'latest'), "
            "and --fusion-import=PATH to score a recorded run"
        )
    run = RunDirectory(settings.base, settings.run_id)
    if "" in settings.imports:
        raise EvidenceError("--fusion-import= names nothing (an unset variable?): give a file or a folder")
    if settings.imports:
        from pytest_fusion_audit.evidence.importers import read_sources  # noqa: PLC0415

        paths = [config.invocation_params.dir / path for path in settings.imports]
        run.store_import(read_sources(paths), settings={})
    config.stash[_EVIDENCE] = run.evidence()
    config.stash[_RUN] = run
    return run


def evidence_of(config: pytest.Config, *, again: bool = False) -> Evidence:
    """The evidence the session scores, read back from the run directory once per process, or ``again``."""
    run = prepare_run(config)
    if again:
        config.stash[_EVIDENCE] = run.evidence()
    return config.stash[_EVIDENCE]


@pytest.fixture(scope="session")
def run(pytestconfig: pytest.Config) -> RunDirectory:
    """The run directory ``audit/<run-id>/``. Price ceiling: 0 USD."""
    return prepare_run(pytestconfig)


@pytest.fixture(scope="session")
def door(pytestconfig: pytest.Config) -> Iterator[Door]:
    """All model traffic of the session, metered. Price ceiling: what was agreed to, over a run and its resumes."""
    from pytest_fusion_audit.billing import open_session_door  # noqa: PLC0415

    opened = open_session_door(pytestconfig)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def budget(door: Door) -> Budget:
    """Money of the run in micro-dollars, the only door to a phase's. Price ceiling: see ``door``."""
    return door.budget


@pytest.fixture(scope="session")
def evidence(run: RunDirectory, pytestconfig: pytest.Config) -> Evidence:  # noqa: ARG001 - the run comes first
    """All evidence of the run, read-only. Price ceiling: 0 USD, it only reads what is stored."""
    return evidence_of(pytestconfig)


@pytest.fixture
def score(request: pytest.FixtureRequest) -> Callable[[Score | GateResult], None]:
    """Record the finding of an item: the score of a criterion, or the decision on a gate.

    A score of 0, 1 or 2 passes: it is a finding. A shut gate fails its item with one line a reason.
    """
    item = request.node

    def record(finding: Score | GateResult) -> None:
        facts: dict[str, Any] = finding.to_json()
        if "score" in facts:
            item.user_properties.append((SCORE, facts))
            return
        facts = {"gate": finding.gate, "title": finding.title, **facts}  # type: ignore[union-attr]
        item.user_properties.append((GATE, facts))
        if not facts["passed"]:
            reasons = [f"gate {facts['gate']} {facts['title']}: shut", *facts["reasons"]]
            pytest.fail("\n  ".join(reasons), pytrace=False)

    return record
