"""One sample of an inspect_ai log: how it ended, what it was scored, what it used. No text of it is kept."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pytest_fusion_audit.evidence.importers.bank_stream import Digest
from pytest_fusion_audit.evidence.importers.base import printable
from pytest_fusion_audit.evidence.importers.outcomes import outcome_of

if TYPE_CHECKING:
    from pytest_fusion_audit.evidence.importers.rows import Row
    from pytest_fusion_audit.evidence.records import Outcome

FIELDS: Final = {
    "id", "epoch", "input", "choices", "target", "description", "sandbox", "files", "setup", "output", "scores",
    "score",
    "metadata", "model_usage", "role_usage", "model_fallbacks", "started_at", "completed_at", "total_time",
    "working_time", "uuid", "invalidation", "error", "error_retries", "limit", "turn_count", "token_limit",
    "token_limit_type", "token_limit_usage", "message_limit", "time_limit",
}  # fmt: skip

#: Limits that cut a sample short. A person who stops one (``operator``) says nothing about the model.
_LIMITS: Final = {"context", "time", "working", "message", "token", "turn", "cost", "custom"}
_ERROR_NAME: Final = re.compile(r"[A-Za-z_][\w.]{0,79}")


@dataclass(slots=True)
class Sample:
    """What is kept of a sample. Scores are as recorded, by scorer; None is unknown."""

    id: str
    epoch: int
    place: str
    scores: Mapping[str, Any] = field(default_factory=dict)
    prompt_sha256: str | None = None
    finish_reason: str | None = None
    outcome: Outcome | None = None
    resolved_model: str | None = None
    answer: Digest | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_micro_usd: int | None = None
    other_models: tuple[str, ...] = ()
    latency_s: float | None = None
    error: str | None = None  # class name only: messages and tracebacks hold paths
    limit: str | None = None
    retries: int = 0
    withdrawn: bool = False  # marked invalid, or stopped by a person

    @property
    def key(self) -> tuple[str, int]:
        """What tells the samples of a log apart."""
        return self.id, self.epoch


def sample_of(row: Row, model: str) -> Sample:
    """Read a sample.

    Args:
        row: the sample without messages and events.
        model: the model under test; usage of other models (graders, members of a compound) is not its own.

    Raises:
        ImportRefusedError: a field is not of its form; names sample and field.
    """
    place = row.where
    sample = Sample(id=row.id("id"), epoch=row.count("epoch") or 1, place=place)
    row.where = f"{place}, sample {sample.id} epoch {sample.epoch}"
    sample.prompt_sha256 = _prompt_sha256(row.data.get("input"))
    sample.latency_s = row.number("total_time", 0)
    sample.retries = len(row.rows("error_retries"))
    sample.limit = _limit(row)
    sample.withdrawn = row.data.get("invalidation") is not None or sample.limit == "operator"
    error = row.data.get("error")
    if error is not None:
        sample.error = _error_name(error)
    _read_scores(row, sample)
    _read_output(row, sample)
    _read_usage(row, sample, model)
    return sample


def _limit(row: Row) -> str | None:
    value = row.data.get("limit")
    if isinstance(value, str):  # summaries write the bare word
        return printable(value)
    limit = row.child("limit")
    return limit.text("type") if limit is not None else None


def _error_name(error: Any) -> str:
    """``RuntimeError('no answer')`` is kept as ``RuntimeError``."""
    message = error.get("message") if isinstance(error, Mapping) else error
    match = _ERROR_NAME.match(message) if isinstance(message, str) else None
    return match.group() if match is not None else "error"


def _prompt_sha256(value: Any) -> str | None:
    """Digest of what the sample asks: its text, or role and text of each message (message ids differ by run)."""
    if isinstance(value, str):
        return Digest.of(value).sha256
    if not isinstance(value, list):
        return None
    said = [[m.get("role"), _parts(m.get("content"))] for m in value if isinstance(m, Mapping)]
    return Digest.of(json.dumps(said, ensure_ascii=False)).sha256


def _parts(content: Any) -> Any:
    if not isinstance(content, list):
        return content if isinstance(content, str) else None
    return [[part.get("type"), part.get("text")] for part in content if isinstance(part, Mapping)]


def _read_scores(row: Row, sample: Sample) -> None:
    scores = row.child("scores")
    if scores is None and row.data.get("score") is not None:  # logs of 2024 had one score without a name
        score = row.child("score")
        sample.scores = {"": score.data.get("value") if score is not None else None}
    elif scores is not None:
        inside = {name: scores.child(name) for name in scores.data}
        sample.scores = {name: score.data.get("value") for name, score in inside.items() if score is not None}


def _read_output(row: Row, sample: Sample) -> None:
    output = row.child("output")
    if sample.error is not None:
        sample.outcome = "provider_error"
        return
    blank = None
    if output is not None:
        sample.resolved_model = output.text("model")
        choices = output.rows("choices")
        if choices:
            sample.finish_reason = choices[0].text("stop_reason")
        completion = output.data.get("completion")
        if completion is not None and not isinstance(completion, str):
            raise output.refuse("completion", "a text")
        if completion is not None and (choices or completion):
            sample.answer = Digest.of(completion)
            blank = sample.answer.blank
    sample.outcome = _outcome(sample, blank=blank)


def _outcome(sample: Sample, *, blank: bool | None) -> Outcome | None:
    if sample.limit in _LIMITS:
        return "refused" if sample.finish_reason == "content_filter" else "truncated"
    if sample.finish_reason is None or sample.finish_reason == "unknown":
        return None
    if sample.finish_reason == "tool_calls" and blank:
        return None  # an agent that ends with a call: whether it answered is for its tools to tell
    return outcome_of(None, sample.finish_reason, blank=blank)


def _read_usage(row: Row, sample: Sample, model: str) -> None:
    usage = row.child("model_usage")
    if usage is None or not usage.data:
        return
    own = usage.child(model) if model in usage.data else None
    sample.other_models = tuple(sorted(printable(name) for name in usage.data if name != model))
    if own is None:
        return
    fresh, output = own.count("input_tokens"), own.count("output_tokens")
    if not fresh and not output:
        return  # nothing was reported: an answer without a single token is none
    read, written = own.count("input_tokens_cache_read"), own.count("input_tokens_cache_write")
    sample.input_tokens = None if fresh is None else fresh + (read or 0) + (written or 0)  # fresh excludes the cache
    sample.cached_tokens = read
    sample.output_tokens = output
    sample.reasoning_tokens = own.count("reasoning_tokens")
    if not sample.other_models:  # what a compound's other models cost is part of its answer, what a grader costs is not
        sample.cost_micro_usd = own.money("total_cost")
