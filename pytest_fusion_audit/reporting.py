"""The controller's side of a session: lost results, the scorecard and its artifacts, the exit status."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fusion_audit import billing
from pytest_fusion_audit.errors import FusionAuditError, one_line
from pytest_fusion_audit.items import SCORE, of_audit
from pytest_fusion_audit.options import FOR_BILLED, only_looks
from pytest_fusion_audit.terms import KEY_GUARD

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from pytest_fusion_audit.options import Settings
    from pytest_fusion_audit.rubric.scorecard import Scorecard

EXIT_RESULTS_LOST = 12
_DEFAULT_REPORT = ".report.json"  # pytest-json-report's own default for --json-report-file


class AuditReporter:
    """Collects findings from the test reports, scores the stored evidence, writes and shows the scorecard."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.config = config
        self.settings = settings
        self.collected: set[str] = set()
        self.reported: set[str] = set()
        self.scores: dict[str, int] = {}  # criterion id -> score its item recorded
        self.audited = False
        self.billed = False
        self.scorecard: Scorecard | None = None
        self.spend: list[str] = []
        self.troubles: list[str] = []
        self.usage_error: str | None = None
        self._aim_json_report()

    def _aim_json_report(self) -> None:
        """``--json-report`` without a file goes to the run directory; a path the user gave stays."""
        option = self.config.option
        asked = getattr(option, "json_report", False) and option.json_report_file == _DEFAULT_REPORT
        if not asked or self.settings.run_id is None or only_looks(self.config):
            return
        from pytest_fusion_audit.evidence.rundir import RunDirectory  # noqa: PLC0415

        with suppress(FusionAuditError):  # an unusable id must not become a path; it is refused later
            folder = RunDirectory(self.settings.base, self.settings.run_id).path
            option.json_report_file = str(folder / "report.json")

    # -- what was to run, and what came back

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Remember the items of a serial session."""
        self._expect(item.nodeid for item in session.items)
        self.audited = self.audited or bool(of_audit(session.items))
        self.billed = self.billed or bool(billing.billed(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Iterable[str]) -> None:
        """Remember the items of a worker."""
        self._expect(ids)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over a user's mistake that a worker found."""
        output = getattr(node, "workeroutput", None) or {}
        self.usage_error = output.get("fusion_usage_error", self.usage_error)
        self.billed = self.billed or bool(output.get("fusion_billed"))

    def _expect(self, ids: Iterable[str]) -> None:
        self.collected.update(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take a finding out of the test report."""
        self.reported.add(report.nodeid)
        if report.when != "call":
            return
        for name, value in report.user_properties:
            if name.startswith("fusion_") and isinstance(value, dict):
                self.audited = True
                if name == SCORE:
                    self.scores[value["id"]] = value["score"]

    # -- the end of the session

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None, None, None]:
        """Write ledger and scorecard before the terminal's summary, set the exit status after everybody else."""
        ours = (self.audited or self.billed) and not only_looks(self.config)
        if self.usage_error is None and ours:
            self._write()
        lost = sorted(self.collected - self.reported) if ours else []
        if self.usage_error is not None:
            # A worker found it: nothing of the audit ran, so nothing that is worse can have been found by it.
            if exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
                session.exitstatus = pytest.ExitCode.USAGE_ERROR
        elif exitstatus == pytest.ExitCode.OK and lost:
            named = ", ".join(lost[:3]) + (" …" if len(lost) > 3 else "")
            self.troubles.append(f"{len(lost)} results were lost on their way ({named}): run again")
            session.exitstatus = EXIT_RESULTS_LOST
        elif exitstatus == pytest.ExitCode.OK and self.troubles:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        result = yield
        if ours and self.usage_error is None:
            self._search_for_keys(session)
        return result

    def _search_for_keys(self, session: pytest.Session) -> None:
        """Fail the session when a key stands in the run directory, after everybody has written."""
        guard = self.config.pluginmanager.get_plugin(KEY_GUARD)
        if guard is None or self.settings.run_id is None:
            return
        from pytest_fusion_audit.evidence.rundir import RunDirectory  # noqa: PLC0415
        from pytest_fusion_audit.metering.scan import check_no_keys  # noqa: PLC0415

        try:
            run = RunDirectory(self.settings.base, self.settings.run_id)
            if run.path.exists():
                check_no_keys(run.path, guard.scrubber)
        except (FusionAuditError, OSError) as error:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            self._say(f"ERROR: {one_line(error)}")

    def _say(self, line: str) -> None:
        """Say something after the terminal's summary, or without a terminal reporter."""
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None:
            sys.stderr.write(f"{line}\n")
        else:
            reporter.write_line(line, red=True)

    def _write(self) -> None:
        from pytest_fusion_audit.fixtures import evidence_of, prepare_run  # noqa: PLC0415
        from pytest_fusion_audit.report.artifacts import write_artifacts  # noqa: PLC0415
        from pytest_fusion_audit.rubric.loading import load_rubric  # noqa: PLC0415
        from pytest_fusion_audit.rubric.scorecard import score_rubric  # noqa: PLC0415

        if self.billed:
            try:
                self.spend = billing.write_spend(self.config)
            except (FusionAuditError, OSError) as error:
                self.troubles.append(f"spend ledger not written: {one_line(error)}")
        if not self.audited:
            return
        try:
            run = prepare_run(self.config)
            self.scorecard = score_rubric(evidence_of(self.config, again=self.billed), load_rubric())
            write_artifacts(run, self.scorecard)
        except (FusionAuditError, OSError) as error:
            self.troubles.append(f"scorecard not written: {one_line(error)}")
            return
        ours = {criterion: score.score for criterion, score in self.scorecard.scores.items()}
        for criterion, recorded in sorted(self.scores.items()):
            if criterion in ours and ours[criterion] != recorded:
                self.troubles.append(
                    f"{criterion}: its item recorded {recorded}, the evidence gives {ours[criterion]}; "
                    "the scorecard keeps what the evidence gives"
                )

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the scorecard and, after it, what went wrong."""
        write = terminalreporter.write_line
        if self.scorecard is not None:
            from pytest_fusion_audit.report.text import scorecard_lines  # noqa: PLC0415

            colour = bool(terminalreporter.hasmarkup)
            width = max(60, terminalreporter._tw.fullwidth)  # noqa: SLF001 - pytest offers no other way
            for line in scorecard_lines(self.scorecard.to_json(), colour=colour, width=width):
                write(line)
            counts = [sum(value == digit for value in self.scores.values()) for digit in (2, 1, 0)]
            write(
                f" items     {len(self.scores)} criteria scored in this session: "
                f"{counts[0]} x 2, {counts[1]} x 1, {counts[2]} x 0"
            )
        for line in self.spend:
            write(line)
        idle = [name for name in self.settings.for_phases if not (self.billed and name in FOR_BILLED)]
        if (self.audited or self.billed) and idle:
            write(f" note      without effect, no phase is selected: {', '.join(idle)}")
        if self.usage_error is not None:
            write(f"ERROR: {self.usage_error}", red=True)
        for trouble in self.troubles:
            write(f"ERROR: {trouble}", red=True)
