"""From the words of other tools to our outcomes: how an answer ended, whatever its verdict."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, get_args

from pytest_fusion_audit.evidence.finish_words import CUT, ENDED, REFUSED, finish_word, known_finish
from pytest_fusion_audit.evidence.importers.base import printable
from pytest_fusion_audit.evidence.records import UNSCORED_OUTCOMES, Note, Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

_OUTCOMES: frozenset[str] = frozenset(get_args(Outcome))
#: Words for a verdict that a source may state beside, or instead of, passed or not.
VERDICTS: frozenset[str] = frozenset(get_args(Verdict))

#: Words for a call that did its job.
FINE = frozenset({"ok", "succeeded", "success", "completed", "complete", "done", "scored", "answered", "passed"})
_UPSTREAM_FAULT = frozenset(
    {
        "error",
        "failed",
        "failure",
        "api_error",
        "provider_error",
        "infra_error",
        "model_failed",
        "timeout",
        "timed_out",
        "rate_limited",
        "rate_limit",
        "overloaded",
        "unavailable",
        "connection_error",
        "server_error",
    }
)


def outcome_of(status: str | None, finish_reason: str | None, *, blank: bool | None) -> Outcome | None:
    """How an answer ended.

    Args:
        status: the source's word for the call, None when it has none.
        finish_reason: the provider's word for the end of the answer, None when not recorded.
        blank: whether the answer is empty or white space; None when neither text nor length is recorded.

    Returns:
        A fault of the provider first, then what the finish reason says whatever the text, then ``empty`` for a blank
        answer, ``answered`` for a text (which without a finish reason may still have been cut), None when nothing
        tells: a text that ended for a reason of unknown meaning is neither whole nor cut.

    >>> outcome_of(None, "length", blank=True), outcome_of("ok", None, blank=True)
    ('truncated', 'empty')
    >>> outcome_of(None, "model_context_window_exceeded", blank=False), outcome_of(None, "because", blank=False)
    ('truncated', None)
    >>> outcome_of("error", None, blank=None), outcome_of(None, "refusal", blank=False)
    ('provider_error', 'refused')
    """
    named = _named((status or "").lower())
    if named in UNSCORED_OUTCOMES or named == "pipeline_error":
        return named
    finish = finish_word(finish_reason)
    ended: Outcome | None = "truncated" if finish in CUT else "refused" if finish in REFUSED else None
    if ended is None and named != "answered":
        ended = named
    if ended is not None or blank:
        return ended or "empty"
    if finish is not None and finish not in ENDED:
        return None
    return "answered" if blank is False or finish in ENDED or named == "answered" else None


def _named(word: str) -> Outcome | None:
    if word in _UPSTREAM_FAULT:
        return "provider_error"
    if word == "refusal":
        return "refused"
    return word if word in _OUTCOMES else None  # type: ignore[return-value]  # membership proves it


def known_status(status: str) -> bool:
    """Whether the word is one we can read; others are noted and taken for fine."""
    word = status.lower()
    return word in FINE or _named(word) is not None


def unknown_finish(reasons: Iterable[str | None]) -> list[Note]:
    """Note that counts and names finish reasons nobody here can read; none when there are none."""
    strange = Counter(printable(word) for word in reasons if word and finish_word(word) and not known_finish(word))
    if not strange:
        return []
    words = [f"{word} ({count})" for word, count in sorted(strange.items())]
    text = (
        f"{strange.total()} answers ended for a reason of unknown meaning, whether they were cut is not known: "
        f"{', '.join(words[:10])}"
    )
    return [Note(code="unknown_finish", message=text, count=strange.total(), items=tuple(sorted(strange)[:10]))]


def verdict_of(passed: bool | None, outcome: Outcome | None, stated: str | None = None) -> Verdict | None:
    """Verdict of a graded answer; a call that never gave an answer has none, whatever the source wrote.

    ``stated`` is the source's own word of `VERDICTS`, which tells more than passed or not (a time-out, a crash, a task
    that nobody can grade).
    """
    if outcome in UNSCORED_OUTCOMES:
        return None
    if stated in VERDICTS:
        return stated  # type: ignore[return-value]  # membership proves it
    return None if passed is None else "passed" if passed else "failed"
