"""The pytest plugin: options, marks, order of items, and one read of the run before the first item.

Autoloaded in every project that has the package installed, so this module imports pytest and the standard library
only; everything else is imported when a session holds an item of an audit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_fusion_audit import billing
from pytest_fusion_audit import items as audit_items
from pytest_fusion_audit.errors import FusionAuditError, one_line
from pytest_fusion_audit.options import add_options, only_looks, settings_of
from pytest_fusion_audit.reporting import AuditReporter
from pytest_fusion_audit.terms import KEY_GUARD, may_spend, terms_of

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest_plugins = ("pytest_fusion_audit.fixtures",)

_REPORTER = "fusion-audit-reporter"

MARKS = (
    "criterion(id): the criterion of the rubric that this item scores",
    "dimension(n): the dimension of the rubric that the criterion belongs to",
    "replay: reads stored evidence only; sends nothing and costs nothing",
    "drill: a scripted fault against the served target is a source of this criterion",
    "billed: may send requests that cost money (it uses the fixture door or budget); runs only with consent",
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
        from pytest_fusion_audit.rubric.loading import load_rubric, use_rubric  # noqa: PLC0415 - only when asked for

        try:
            load_rubric(settings.rubric)
        except FusionAuditError as error:
            raise pytest.UsageError(one_line(error)) from None
        use_rubric(settings.rubric)
    if not hasattr(config, "workerinput"):  # the reporter lives in the controller
        config.pluginmanager.register(AuditReporter(config, settings), _REPORTER)
    if settings.run_id is not None:
        from pytest_fusion_audit.key_guard import KeyGuard  # noqa: PLC0415 - not in sessions that audit nothing

        config.pluginmanager.register(KeyGuard(), KEY_GUARD)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Give the rubric of the session back, for processes that run several sessions."""
    if settings_of(config).rubric is not None:
        from pytest_fusion_audit.rubric.loading import use_rubric  # noqa: PLC0415

        use_rubric(None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the rubric's marks, and ``billed``, on the items of an audit and bring them into the rubric's order."""
    billing.mark(items)
    audit_items.mark(items)
    audit_items.order(items)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Decide on spending, check the run and store the import once, after selection and before the first item runs.

    A user's mistake ends here as one line: a usage error in the controller; in a worker of xdist, which must not die,
    the audit's items are dropped and the line travels to the controller.
    """
    config = session.config
    billed = billing.billed(session.items)
    audited = audit_items.of_audit(session.items)
    if not (billed or audited) or only_looks(config):
        return
    from pytest_fusion_audit.fixtures import prepare_run  # noqa: PLC0415

    output: dict[str, Any] | None = getattr(config, "workeroutput", None)
    guard = config.pluginmanager.get_plugin(KEY_GUARD)
    try:
        if guard is not None:
            guard.check_ids([*billed, *audited])
        if billed:
            billing.prepare(config, billed)
            if output is not None:
                output["fusion_billed"] = True
        if audited:
            prepare_run(config)
    except (FusionAuditError, OSError) as error:
        message = one_line(error)
        if output is None:
            raise pytest.UsageError(message) from None
        output["fusion_usage_error"] = message
        session.items[:] = [item for item in session.items if item not in billed and item not in audited]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Fail a criterion item that ended well without a score: a finding that was not made is not a finding.

    What this package raises on purpose is a line for people, in items of an audit and in those that are billed.
    """
    report: pytest.TestReport = yield  # type: ignore[assignment]
    if call.excinfo is not None and isinstance(call.excinfo.value, FusionAuditError) and report.failed:
        report.longrepr = one_line(call.excinfo.value)
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


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Name the run, and say what may be spent, where and by whose word; silent in sessions that name no run."""
    settings = settings_of(config)
    if settings.run_id is None:
        return []
    from pytest_fusion_audit import __version__  # noqa: PLC0415

    if may_spend(config):
        try:
            lines = terms_of(config).lines()
        except (FusionAuditError, OSError):
            lines = []  # told, as an error, when an item that is billed is selected
        if lines:
            return [f"fusion-audit {__version__} · run {settings.run_id} · {lines[0]}", *lines[1:]]
    what = "answers from the store" if settings.mode == "replay" else "reads stored evidence"
    return [f"fusion-audit {__version__} · run {settings.run_id} · {what}, nothing is sent or billed"]
