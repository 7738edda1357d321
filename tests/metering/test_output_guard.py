"""Logs, warnings, tracebacks and reports: whatever others write about us holds no key."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
import threading
import types
import warnings
from typing import TYPE_CHECKING

import pytest
from _pytest._code.code import ExceptionInfo

from pytest_fusion_audit.metering.output_guard import (
    ScrubbingFilter,
    guarding,
    scrub_record,
    scrub_report,
    scrub_warning,
)
from pytest_fusion_audit.metering.scrubbing import Scrubber
from tests.metering.planted_keys import ANTHROPIC, KEYS, OPENAI, PASSWORD

if TYPE_CHECKING:
    from collections.abc import Iterator

SCRUBBER = Scrubber(KEYS)


class OddWarning(UserWarning):
    """A warning that cannot be made from its text alone."""

    def __init__(self, host: str, key: str) -> None:
        super().__init__(host, key)

    def __str__(self) -> str:
        return f"{self.args[0]} refused {self.args[1]}"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s %(request)s", defaults={"request": ""}))
    logger = logging.getLogger("planted")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    yield out
    logger.removeHandler(handler)
    logger.propagate = True


def failing() -> None:
    key = OPENAI
    raise RuntimeError(f"401 from api.openai.com: {key}")


def log_everything() -> None:
    logger = logging.getLogger("planted")
    logger.info("plain %s", OPENAI)
    logger.info("headers %r", {"x-api-key": ANTHROPIC, "n": 1})
    logger.info("bad %d format", OPENAI)
    logger.info("url https://user:%s@gw.example", PASSWORD, extra={"request": f"Bearer {OPENAI}"})
    try:
        failing()
    except RuntimeError:
        logger.exception("failed", stack_info=True)


def test_a_guarded_session_logs_no_key(log: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    factory = logging.getLogRecordFactory()
    handler = logging.getLogger("planted").handlers[0]
    handler.addFilter(ScrubbingFilter(SCRUBBER))  # extra fields are set after the record was made
    with guarding(SCRUBBER):
        log_everything()
    text = log.getvalue()
    assert not any(key in text for key in KEYS)
    assert "401 from api.openai.com: [key]" in text
    assert "headers {'x-api-key': '[key]', 'n': 1}" in text
    assert "bad %d format" in text
    assert "RuntimeError" in text
    assert logging.getLogRecordFactory() is factory


def test_a_filter_does_it_for_one_handler(log: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    logging.getLogger("planted").handlers[0].addFilter(ScrubbingFilter(SCRUBBER))
    log_everything()
    assert not any(key in log.getvalue() for key in KEYS)


def test_a_clean_record_says_what_it_said() -> None:
    record = logging.makeLogRecord({"msg": "%s of %d", "args": ("three", 4), "extra_number": 7})
    scrub_record(record, SCRUBBER)
    assert record.getMessage() == "three of 4"
    assert record.extra_number == 7  # type: ignore[attr-defined]


def test_a_process_of_its_own_shows_no_key_in_warnings_threads_or_at_its_end() -> None:
    program = """
import sys, threading, warnings
from pytest_fusion_audit.metering.output_guard import guarding
from pytest_fusion_audit.metering.scrubbing import Scrubber
from tests.metering.test_output_guard import OddWarning, failing
from tests.metering.planted_keys import KEYS, OPENAI, PASSWORD

show = warnings.showwarning
with guarding(Scrubber(KEYS)):
    warnings.warn(f"base_url https://user:{PASSWORD}@gw", stacklevel=1)
    warnings.warn(OddWarning("api.openai.com", OPENAI), stacklevel=1)
    thread = threading.Thread(target=failing)
    thread.start()
    thread.join()
    assert warnings.showwarning is not show
assert warnings.showwarning is show
guard = guarding(Scrubber(KEYS))
guard.__enter__()
failing()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert not any(key in done.stderr for key in KEYS)
    assert "UserWarning: base_url https://[key]@gw" in done.stderr
    assert "OddWarning: api.openai.com refused [key]" in done.stderr
    assert done.stderr.count("RuntimeError: 401 from api.openai.com: [key]") == 2


@pytest.mark.parametrize("message", [UserWarning(f"key {OPENAI}"), OddWarning("api.openai.com", OPENAI)])
def test_a_recorded_warning_keeps_kind_and_name(message: Warning) -> None:
    recorded = warnings.WarningMessage(message, type(message), "file.py", 1, line=f"warn('{OPENAI}')")
    scrub_warning(recorded, SCRUBBER)
    assert OPENAI not in f"{recorded.message} {recorded.message!r} {recorded.line}"
    assert isinstance(recorded.message, type(message))
    assert type(recorded.message).__name__ == type(message).__name__


def test_a_clean_warning_stays_the_object_it_is() -> None:
    message = OddWarning("api.openai.com", "nothing")
    recorded = warnings.WarningMessage(message, OddWarning, "file.py", 1)
    scrub_warning(recorded, SCRUBBER)
    assert recorded.message is message


def test_unhandled_exceptions_are_shown_without_keys(capsys: pytest.CaptureFixture[str]) -> None:
    hooks = sys.excepthook, threading.excepthook, sys.unraisablehook
    with guarding(SCRUBBER):
        try:
            failing()
        except RuntimeError as error:
            info = type(error), error, error.__traceback__
        sys.excepthook(*info)
        threading.excepthook(
            types.SimpleNamespace(exc_type=info[0], exc_value=info[1], exc_traceback=info[2], thread=None)
        )  # type: ignore[arg-type]
        sys.unraisablehook(
            types.SimpleNamespace(exc_type=info[0], exc_value=info[1], exc_traceback=info[2], object=None)
        )  # type: ignore[arg-type]
        threading.excepthook(
            types.SimpleNamespace(exc_type=SystemExit, exc_value=None, exc_traceback=None, thread=None)
        )  # type: ignore[arg-type]
    assert (sys.excepthook, threading.excepthook, sys.unraisablehook) == hooks
    shown = capsys.readouterr().err
    assert OPENAI not in shown
    assert shown.count("RuntimeError: 401 from api.openai.com: [key]") == 3


@pytest.mark.parametrize("style", ["long", "short", "line", "native", "value", "no"])
def test_a_report_of_any_style_is_scrubbed_in_place(style: str) -> None:
    try:
        try:
            failing()
        except RuntimeError as cause:
            raise ValueError({"headers": ANTHROPIC}) from cause
    except ValueError as error:
        representation = ExceptionInfo.from_exception(error).getrepr(showlocals=True, style=style)  # type: ignore[arg-type]
    report = pytest.TestReport(
        nodeid="test_x.py::test",
        location=("test_x.py", 1, "test"),
        keywords={OPENAI: 1},
        outcome="failed",
        longrepr=representation,
        when="call",
        sections=[("Captured stdout call", f"printed {OPENAI}"), (f"Captured {PASSWORD}", "")],
        user_properties=[("said", {"key": [ANTHROPIC]}), ("n", 1)],
    )
    scrub_report(report, SCRUBBER)
    text = f"{report.longreprtext} {report.sections} {report.user_properties} {report.keywords}"
    data = report._to_json()
    assert not any(key in text or key in str(data) for key in KEYS)
    assert report.nodeid == "test_x.py::test"
    assert report.user_properties[1] == ("n", 1)
    if style != "no":
        assert "[key]" in report.longreprtext


def test_reports_without_keys_are_as_they_were() -> None:
    class Foreign:
        held = OPENAI

    foreign = Foreign()
    report = pytest.TestReport(
        "a",
        ("a", 1, "a"),
        {},
        "skipped",
        ("file.py", 3, "Skipped: no OPENAI_API_KEY"),
        "setup",
        user_properties=[("o", foreign)],
    )
    scrub_report(report, SCRUBBER)
    assert report.longrepr == ("file.py", 3, "Skipped: no OPENAI_API_KEY")
    assert report.user_properties[0][1] is foreign
