"""The pytest plugin: options, marks, order of items, and one read of the run before the first item.

Autoloaded in every project that has the package installed, so this module imports pytest and the standard library
only; everything else is imported when a session holds an item of an audit.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fusion_audit import items as audit_items
from pytest_fusion_audit.options import add_options, only_looks, settings_of
from pytest_fusion_audit.reporting import AuditReporter

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest_plugins = ("pytest_fusion_audit.fixtures",)

_REPORTER = "fusion-audit-reporter"

MARKS = (
    "criterion(id): the criterion of the rubric that this item scores",
    "dimension(n): the dimension of the rubric that the criterion belongs to",
    "replay: reads stored evidence only; sends nothing and costs nothing",
    "drill: a scripted fault against the served target is a source of this criterion",
    "gate_a: gate A, proven uplift, and the criteria it rests on",
    "gate_b: gate B, explained uplift, and the criteria it rests on",
    "gate_c: gate C, acceptable economics, and the criteria it rests on",
    "gate_d: gate D, trustworthy loop, and the criteria it rests on",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the ``--fusion-…`` options."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Declare marks and register the reporter. Creates no file and no folder."""
    for mark in MARKS:
        config.addinivalue_line("markers", mark)
    settings = settings_of(config)
    if settings.rubric is not None:
        from pytest_fusion_audit.errors import FusionAuditError  # noqa: PLC0415 - only when asked for
        from pytest_fusion_audit.rubric.loading import load_rubric, use_rubric  # noqa: PLC0415

        try:
            load_rubric(settings.rubric)
        except FusionAuditError as error:
            raise pytest.UsageError(one_line(error)) from None
        use_rubric(settings.rubric)
    if not hasattr(config, "workerinput"):  # the reporter lives in the controller
        config.pluginmanager.register(AuditReporter(config, settings), _REPORTER)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Give the rubric of the session back, for processes that run several sessions."""
    if settings_of(config).rubric is not None:
        from pytest_fusion_audit.rubric.loading import use_rubric  # noqa: PLC0415

        use_rubric(None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the rubric's marks on the items of an audit and bring them into the rubric's order."""
    audit_items.mark(items)
    audit_items.order(items)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Check the run and store the import once, after selection and before the first item runs.

    A user's mistake ends here as one line: a usage error in the controller; in a worker of xdist, which must not die,
    the audit's items are dropped and the line travels to the controller.
    """
    config = session.config
    if not audit_items.of_audit(session.items) or only_looks(config):
        return
    from pytest_fusion_audit.errors import FusionAuditError  # noqa: PLC0415
    from pytest_fusion_audit.fixtures import prepare_run  # noqa: PLC0415

    try:
        prepare_run(config)
    except (FusionAuditError, OSError) as error:
        message = one_line(error)
        output: dict[str, Any] | None = getattr(config, "workeroutput", None)
        if output is None:
            raise pytest.UsageError(message) from None
        output["fusion_usage_error"] = message
        session.items[:] = [item for item in session.items if not audit_items.is_of_audit(item)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Fail a criterion item that ended well without a score: a finding that was not made is not a finding."""
    report: pytest.TestReport = yield  # type: ignore[assignment]
    if report.when == "call" and report.passed and audit_items.is_of_audit(item):
        recorded = {name for name, _ in item.user_properties}
        if not recorded & {audit_items.SCORE, audit_items.GATE}:
            report.outcome = "failed"
            report.longrepr = f"{item.name}: recorded no score; call score(criterion.measure(evidence))"
    return report  # type: ignore[return-value]


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """Show the digit a criterion scored instead of a dot. The item has passed: a score is a finding."""
    if report.when != "call" or not report.passed:
        return None
    for name, value in report.user_properties:
        if name == audit_items.SCORE and isinstance(value, dict):
            digit = value["score"]
            colour = {0: "red", 1: "yellow", 2: "green"}[digit]
            return "passed", str(digit), (f"SCORE {digit}", {colour: True})
    return None


def pytest_report_header(config: pytest.Config) -> str | None:
    """Name the run; silent in sessions that name none."""
    settings = settings_of(config)
    if settings.run_id is None:
        return None
    from pytest_fusion_audit import __version__  # noqa: PLC0415

    return f"fusion-audit {__version__} · run {settings.run_id} · reads stored evidence, nothing is sent or billed"


def one_line(error: BaseException) -> str:
    """The error as one line for people, without a traceback."""
    text = " ".join(str(error).split())
    if isinstance(error, OSError):
        name = Path(error.filename).name if error.filename else "the run directory"
        return f"cannot read or write {name}: {error.strerror}; nothing was sent or billed, make room and run again"
    return text
