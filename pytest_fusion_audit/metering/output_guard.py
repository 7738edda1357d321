"""Keys in what others write about us: log records, warnings, tracebacks, reports of a test session.

One guard around a session covers logging, warnings and unhandled exceptions; reports are scrubbed by the plugin, which
holds them (`scrub_report`, `scrub_warning`), before they are shown, written or sent to another process.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
import warnings
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from pytest_fusion_audit.metering.scrubbing import Scrubber

#: Objects of these modules are reports through and through and may be changed in place.
_REPORT_MODULES = frozenset({"_pytest.reports", "_pytest.subtests", "_pytest._code.code"})


class ScrubbingFilter(logging.Filter):
    """Lets every record through, without keys; for handlers that exist before or outside of `guarding`."""

    def __init__(self, scrubber: Scrubber) -> None:
        super().__init__()
        self._scrubber = scrubber

    def filter(self, record: logging.LogRecord) -> bool:
        """Scrub a record's message, traceback and extra fields; always True."""
        scrub_record(record, self._scrubber)
        return True


def scrub_record(record: logging.LogRecord, scrubber: Scrubber) -> None:
    """Take keys out of a log record; its arguments and its exception become text, so that no handler formats them."""
    try:
        message = record.getMessage()
    except Exception:  # noqa: BLE001 - a message that cannot be formatted is the logging call's fault, and not ours to hide
        message = f"{record.msg!r} {record.args!r}"
    record.msg, record.args = scrubber.text(message), None
    if record.exc_info:
        record.exc_text = record.exc_text or "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
        record.exc_info = None
    for name, value in list(vars(record).items()):
        if name not in {"msg", "args"}:
            setattr(record, name, scrubber.deep(value))


@contextmanager
def guarding(scrubber: Scrubber) -> Iterator[None]:
    """Scrub log records, shown warnings and unhandled exceptions of this process for as long as the context lasts.

    Whoever enters it by hand keeps the object: one that nobody holds has already ended.
    """
    with ExitStack() as stack:
        stack.enter_context(_guarded_logging(scrubber))
        stack.enter_context(_guarded_warnings(scrubber))
        stack.enter_context(_guarded_exceptions(scrubber))
        yield


@contextmanager
def _guarded_logging(scrubber: Scrubber) -> Iterator[None]:
    make = logging.getLogRecordFactory()

    def clean(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(*args, **kwargs)
        scrub_record(record, scrubber)
        return record

    logging.setLogRecordFactory(clean)
    try:
        yield
    finally:
        if logging.getLogRecordFactory() is clean:
            logging.setLogRecordFactory(make)


@contextmanager
def _guarded_warnings(scrubber: Scrubber) -> Iterator[None]:
    show = warnings.showwarning

    def clean(  # noqa: PLR0917 - the signature that the standard library calls
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        show(_clean_warning(message, scrubber), category, filename, lineno, file, line and scrubber.text(line))

    warnings.showwarning = clean
    try:
        yield
    finally:
        if warnings.showwarning is clean:
            warnings.showwarning = show


def _clean_warning(message: Warning | str, scrubber: Scrubber) -> Warning | str:
    """The warning without keys; one whose text is clean stays the object it is."""
    text = str(message)
    scrubbed = scrubber.text(text)
    if scrubbed == text:
        return message
    return scrubbed if isinstance(message, str) else _renamed(type(message))(scrubbed)


def _renamed(category: type[Warning]) -> type[Warning]:
    """A plain warning of the same name and kind: the original's constructor may want other arguments."""
    return type(category.__name__, (category,), {"__init__": _init, "__str__": _str, "__module__": category.__module__})


def _init(self: Warning, text: str) -> None:
    self.args = (text,)


def _str(self: Warning) -> str:
    return str(self.args[0])


@contextmanager
def _guarded_exceptions(scrubber: Scrubber) -> Iterator[None]:
    before = sys.excepthook, threading.excepthook, sys.unraisablehook

    def clean(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
        sys.stderr.write(scrubber.text("".join(traceback.format_exception(kind, error, trace))))

    def in_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_type is not SystemExit:
            clean(args.exc_type, args.exc_value, args.exc_traceback)

    def unraisable(args: sys.UnraisableHookArgs) -> None:
        clean(args.exc_type, args.exc_value, args.exc_traceback)

    hooks = clean, in_thread, unraisable
    sys.excepthook, threading.excepthook, sys.unraisablehook = hooks
    try:
        yield
    finally:
        if sys.excepthook is clean:
            sys.excepthook = before[0]
        if threading.excepthook is in_thread:
            threading.excepthook = before[1]
        if sys.unraisablehook is unraisable:
            sys.unraisablehook = before[2]


def scrub_warning(recorded: warnings.WarningMessage, scrubber: Scrubber) -> None:
    """Take keys out of a recorded warning, in place (pytest's ``pytest_warning_recorded``, tryfirst)."""
    recorded.message = _clean_warning(recorded.message, scrubber)
    if recorded.line:
        recorded.line = scrubber.text(recorded.line)


def scrub_report(report: object, scrubber: Scrubber) -> None:
    """Take keys out of a test report, in place: traceback with locals, captured output, properties, sections.

    For a wrapper around ``pytest_runtest_makereport`` and ``pytest_make_collect_report``, in workers too. Walks the
    attributes of pytest's own objects; builtins are replaced by scrubbed copies, other objects are left alone.
    """
    _walk(report, scrubber, set())


def _walk(value: Any, scrubber: Scrubber, seen: set[int]) -> Any:
    if isinstance(value, list):
        value[:] = [_walk(entry, scrubber, seen) for entry in value]
        return value
    if type(value) is tuple:
        return tuple(_walk(entry, scrubber, seen) for entry in value)
    if isinstance(value, str | bytes | dict):
        return scrubber.deep(value)
    if type(value).__module__ not in _REPORT_MODULES or id(value) in seen:
        return value
    seen.add(id(value))
    slots = {name: getattr(value, name) for name in getattr(type(value), "__slots__", ()) if hasattr(value, name)}
    for name, held in (slots | getattr(value, "__dict__", {})).items():
        new = _walk(held, scrubber, seen)
        if new is not held:
            object.__setattr__(value, name, new)
    return value
