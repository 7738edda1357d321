"""One answer in a run of another tool, and the evidence record it becomes.

A model that answers is a member and its answer a candidate; an arm that the user names in ``fusion-import.yaml``
(``compound``, ``self:…``) is not, and its answer is the outcome of that arm.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pytest_fusion_audit.evidence.container import is_member, member_arm
from pytest_fusion_audit.evidence.records import ANSWERLESS_OUTCOMES, UNSCORED_OUTCOMES, ArmOutcome, Candidate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from pytest_fusion_audit.evidence.records import Outcome, Verdict

#: Words for a grade, as inspect_ai reads them: correct, incorrect, partial, no answer.
_GRADES: Final = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_WORDS: Final = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the rows of one arm of one run go.

    Attributes:
        arm: without a configuration: ``member:gpt``, ``compound``.
        config: configuration the user or the importer told apart, None for the incumbent.
        replicate: index of the run among the runs of this arm in one import.
        repeats_before: repeats in the runs before this one; a repeat of an arm that is no member is a replicate.
    """

    suite: str
    split: str
    arm: str
    config: str | None = None
    replicate: int = 0
    repeats_before: int = 0

    @property
    def full_arm(self) -> str:
        """The arm as measurements name it."""
        return self.arm if self.config is None else f"{self.arm}@{self.config}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a tool recorded of one answer. None is unknown.

    Attributes:
        repeat: 0 for the first answer to a task, the primary sample.
        unscored: nothing graded the answer, so it is neither right nor wrong, however it ended.
        spoiled: the row stands twice with different values; no verdict of it counts.
    """

    task: str
    repeat: int = 0
    requested_model: str | None = None
    resolved_model: str | None = None
    parameters: Mapping[str, JsonValue] | None = None
    finish_reason: str | None = None
    outcome: Outcome | None = None
    passed: bool | None = None
    unscored: bool = False
    spoiled: bool = False
    score: float | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_micro_usd: int | None = None
    latency_s: float | None = None
    chars: int | None = None
    sha256: str | None = None

    @property
    def verdict(self) -> Verdict | None:
        """Verdict as records hold it: an upstream fault has none, what nothing graded is not failed by its ending."""
        if self.spoiled:
            return "ungradeable"
        if self.outcome in UNSCORED_OUTCOMES:
            return None
        if self.passed is None or self.unscored:
            return "ungradeable" if self.outcome in ANSWERLESS_OUTCOMES else None
        return "passed" if self.passed else "failed"


def record_of(answer: Answer, place: Place, source: str) -> Candidate | ArmOutcome:
    """The evidence record of an answer."""
    if is_member(place.arm):
        return Candidate(
            task=answer.task,
            suite=place.suite,
            split=place.split,
            member=place.arm.removeprefix("member:"),
            config=place.config,
            sample=answer.repeat,
            replicate=place.replicate,
            requested_model=answer.requested_model,
            resolved_model=answer.resolved_model,
            parameters_asked=answer.parameters,
            finish_reason=answer.finish_reason,
            outcome=answer.outcome,
            input_tokens=answer.input_tokens,
            cached_tokens=answer.cached_tokens,
            output_tokens=answer.output_tokens,
            reasoning_tokens=answer.reasoning_tokens,
            cost_micro_usd=answer.cost_micro_usd,
            latency_s=_float(answer.latency_s),
            answer_chars=answer.chars,
            answer_sha256=answer.sha256,
            verdict=answer.verdict,
            score=_float(answer.score),
            source=source,
        )
    scored = answer.verdict in {"passed", "failed"}
    return ArmOutcome(
        task=answer.task,
        suite=place.suite,
        split=place.split,
        arm=place.full_arm,
        replicate=place.repeats_before + answer.repeat,
        state="scored" if scored else "not_run",
        reason=None if scored else (answer.outcome if answer.outcome in UNSCORED_OUTCOMES else answer.verdict),
        outcome=answer.outcome,
        passed=answer.passed if scored else None,
        score=_float(answer.score),
        cost_micro_usd=answer.cost_micro_usd,
        latency_s=_float(answer.latency_s),
        output_tokens=answer.output_tokens,
        model=answer.requested_model,
        source=source,
    )


def _float(value: float | None) -> float | None:
    """A figure as it is read back from an evidence file: 1 is 1.0."""
    return None if value is None else float(value)


def arm_named(name: str) -> tuple[str, str | None]:
    """An arm's name as users write it, apart from its configuration.

    >>> arm_named("compound"), arm_named("member:gpt@16384")
    (('compound', None), ('member:gpt', '16384'))
    """
    arm, at, config = name.partition("@")
    return arm, config if at else None


def member_arm_of(model: str) -> str:
    """Arm of a model: characters that separate the parts of an arm's or measurement's name are replaced.

    >>> member_arm_of("claude-x@20990101"), member_arm_of("openai/gpt-x")
    ('member:claude-x-20990101', 'member:openai:gpt-x')
    """
    return member_arm(model.translate(str.maketrans("@#~/", "---:")))


def grade_of(value: Any) -> float | None:
    """A recorded score as a number; None when the tool marked it as not scored (NaN, null).

    Raises:
        ValueError: the value is a list, an object or a word that is no grade: whether it is right cannot be told.

    >>> grade_of("C"), grade_of("P"), grade_of(True), grade_of("0.25"), grade_of(float("nan"))
    (1.0, 0.5, 1.0, 0.25, None)
    """
    if value is None:
        return None
    if isinstance(value, str):
        known = _GRADES.get(value, _WORDS.get(value.lower()))
        if known is not None:
            return known
        value = float(value)
    if not isinstance(value, (bool, int, float)):
        raise ValueError("not a single number")  # noqa: TRY004 - of a value, as float() says it
    number = float(value)
    if math.isnan(number):
        return None
    if math.isinf(number):
        raise ValueError("not a finite number")
    return number


def text_sha256(text: str) -> str:
    """Hex digest of a text; half characters, which JSON can spell and UTF-8 cannot, are digested as they are."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def content_sha256(value: Any) -> str:
    """Hex digest of a JSON value, whatever the order of its keys."""
    return text_sha256(json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")))
