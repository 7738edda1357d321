"""Many questions at once, as a phase asks them: in batches at half price, at the flex tier, or each by itself.

``prefer`` of fusion.yaml states the wish of a phase; what becomes of it stands in `metering.processing`. Whichever way
a question goes, its answer is stored under the same key: a resume with another wish finds it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pytest_fusion_audit.metering.batch_requests import BatchRequest
from pytest_fusion_audit.metering.caps import CAP_OF_PHASE
from pytest_fusion_audit.metering.clients import Completion, Prompt, default_api
from pytest_fusion_audit.metering.limits import CostLimitExceeded
from pytest_fusion_audit.metering.processing import processing_for
from pytest_fusion_audit.metering.retry import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import JsonValue

    from pytest_fusion_audit.metering.door import OpenDoor
    from pytest_fusion_audit.metering.prices import Processing
    from pytest_fusion_audit.metering.scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question to one model.

    Attributes:
        endpoint: id in the panel file, or a maker with ``model``.
        prompt: the question.
        scope: what it is for; together with the request it has to be unique.
        model: id, for an endpoint that names none.
        asked: sampling and limits in our words, see `models.shaped`.
    """

    endpoint: str
    prompt: Prompt
    scope: Scope
    model: str | None = None
    asked: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a question.

    ``answered``: see ``completion``, whose facts may still be an outcome without an answer. ``censored_budget``: it did
    not fit below a cap; nothing was sent. ``pending``: a batch has it and patience ended; ask again, in any process.
    """

    status: Literal["answered", "censored_budget", "pending"]
    completion: Completion | None = None
    reason: str | None = None


async def ask_all(
    door: OpenDoor,
    questions: Sequence[Question],
    *,
    prefer: Processing | None = None,
    patience_s: float | None = None,
) -> list[Answer]:
    """Ask many questions of one phase.

    Args:
        door: open.
        questions: in the order in which they may use up the phase's money.
        prefer: how to send them; None takes the wish of fusion.yaml for the phase (``prefer``).
        patience_s: how long to wait for batches at most; None waits for as long as it takes.

    Returns:
        One answer for each question, in their order.

    Raises:
        KeyRefusedError, QuotaExhaustedError, RunStoppedError, BatchAccessError: the run has been stopped.
        ConfigError: a request is refused as it is. ReplayMissError: an answer is not stored. What the other questions
            got is stored, and found when they are asked again.
    """
    if prefer not in {None, "standard", "flex", "batch"}:
        raise ConfigError(f"prefer={prefer!r}: give standard, flex or batch; nothing was sent")
    ways = [_processing(door, question, prefer) for question in questions]
    batched = {at: question for at, question in enumerate(questions) if ways[at] == "batch"}
    ended = await _batched(door, batched, patience_s)

    async def by_itself(at: int) -> Answer:
        question = questions[at]
        try:
            completion = await door.complete(
                question.endpoint,
                question.prompt,
                question.scope,
                model=question.model,
                asked=question.asked,
                flex=ways[at] == "flex",
            )
        except CostLimitExceeded as refusal:
            return Answer("censored_budget", reason=str(refusal))
        return Answer("answered", completion)

    left = [at for at in range(len(questions)) if at not in ended]
    answers = dict(zip(left, await asyncio.gather(*(by_itself(at) for at in left)), strict=True))
    return [(ended | answers)[at] for at in range(len(questions))]


def _processing(door: OpenDoor, question: Question, prefer: Processing | None) -> Processing:
    wish = prefer or door.door.prefer.get(CAP_OF_PHASE.get(question.scope.phase, ""), "standard")
    route, model = door.route(question.endpoint, question.model)
    offered = door.door.preflight.pricing.price(route.host, model).stated
    return processing_for(wish, default_api(route.provider), offered={*offered, "standard"})


async def _batched(door: OpenDoor, questions: Mapping[int, Question], patience_s: float | None) -> dict[int, Answer]:
    """Have questions answered in batches; gives those that end here.

    What is stored then is taken from the store like any answer, and what no batch answered is asked by itself.
    """
    requests = []
    for at, question in questions.items():
        route, model = door.route(question.endpoint, question.model)
        url, body = door.models(route).request(route.provider, model, question.prompt, question.asked)
        requests.append(BatchRequest(url=url, body=body, scope=question.scope, custom_id=str(at)))
    if not requests:
        return {}
    report = await door.batches.run(requests, patience_s=patience_s)
    ended: dict[int, Answer] = {}
    for name, outcome in report.outcomes.items():
        if outcome.status == "no_budget":
            ended[int(name)] = Answer("censored_budget", reason=outcome.reason)
        elif outcome.status == "pending":
            ended[int(name)] = Answer("pending", reason=outcome.reason)
    return ended
