"""Write what a scorecard is read from later: ``scorecard.json`` and ``rubric-scorecard.md``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.report.markdown import rubric_scorecard_md

if TYPE_CHECKING:
    from pytest_fusion_audit.evidence.rundir import RunDirectory
    from pytest_fusion_audit.rubric.scorecard import Scorecard


def write_artifacts(run: RunDirectory, scorecard: Scorecard) -> None:
    """Write both artifacts of a run, each whole or not at all; the same scorecard gives the same bytes.

    Raises:
        OSError: the run directory cannot be written.
    """
    with run.locked():
        run.write_text("scorecard.json", scorecard.dumps())
        run.write_text("rubric-scorecard.md", rubric_scorecard_md(scorecard.to_json()))
