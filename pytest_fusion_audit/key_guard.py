"""Keeps keys out of everything a session writes: logs, warnings, tracebacks with locals, reports, junit, json.

Lives in sessions that name a run, in the controller and in every worker of xdist. A key is known by its value, by its
encoded forms and by its shape, whoever prints it (`metering.scrubbing`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_fusion_audit.metering.keys import KeyRing
from pytest_fusion_audit.metering.output_guard import guarding, scrub_report, scrub_warning
from pytest_fusion_audit.metering.scan import KeysFoundError

if TYPE_CHECKING:
    import warnings
    from collections.abc import Generator, Iterable

    from pytest_fusion_audit.metering.scrubbing import Scrubber


class KeyGuard:
    """Scrubs the reports of one session.

    Attributes:
        scrubber: knows every key of the environment.
    """

    def __init__(self) -> None:
        self.scrubber = KeyRing(os.environ).scrubber
        self._guard = guarding(self.scrubber)
        self._guard.__enter__()

    def learn(self, scrubber: Scrubber) -> None:
        """Go on with a scrubber that also knows the variables and URLs of the audit's configuration."""
        self.pytest_unconfigure()
        self.scrubber = scrubber
        self._guard = guarding(scrubber)
        self._guard.__enter__()

    def pytest_unconfigure(self) -> None:
        """Give logging, warnings and exception hooks back."""
        self._guard.__exit__(None, None, None)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Scrub the report of an item before anybody shows, stores or sends it."""
        report = yield
        scrub_report(report, self.scrubber)
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Scrub the report of a module that cannot be imported."""
        report = yield
        scrub_report(report, self.scrubber)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Scrub what joined a report after it was made: the message of a subtest."""
        scrub_report(report, self.scrubber)

    def check_ids(self, items: Iterable[pytest.Item]) -> None:
        """Return when no item's id holds a key: ids are shown, stored, and sent between processes as they are.

        Raises:
            KeysFoundError: one does; the message says where, not which.
        """
        for item in items:
            if self.scrubber.text(item.nodeid) != item.nodeid:
                raise KeysFoundError(
                    f"{item.path.name}: the id of a parametrized item holds a key; nothing was sent. Give parametrize "
                    "ids of its own (ids=…)"
                )

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        """Scrub a warning before it is shown or counted."""
        scrub_warning(warning_message, self.scrubber)
