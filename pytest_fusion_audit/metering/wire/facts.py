"""What a request asks for and what a response says, in the same words for every dialect."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_fusion_audit.errors import FusionAuditError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from pytest_fusion_audit.evidence.records import Outcome
    from pytest_fusion_audit.metering.usage import Usage

Dialect: TypeAlias = Literal["openai.chat", "openai.responses", "anthropic.messages", "openai.models", "other"]
CacheWrite: TypeAlias = Literal["none", "5m", "1h"]


class WireError(FusionAuditError):
    """A request body that cannot be read as what its path says; nothing is sent and nothing is billed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFacts:
    """What decides the price and the answer of one request. Prompts are never in it.

    ``prompt_bytes`` is the length of the whole body. Both makers' tokenizers work on bytes, so a prompt has at most as
    many tokens as bytes, and what a message costs beside its text is less than the JSON around it.
    ``input_tokens_bound`` adds what the provider puts in unseen. ``max_output_tokens`` is the limit the request itself
    states for *all* its choices together (``n`` times the limit); None when it states none.
    """

    dialect: Dialect
    model: str | None
    max_output_tokens: int | None
    stream: bool
    prompt_bytes: int
    parameters: Mapping[str, JsonValue] = field(default_factory=dict)  # as sent; names in ``PARAMETERS``
    service_tier: str | None = None  # as sent; Anthropic's ``speed: fast`` reads as "fast"
    choices: int = 1
    hidden_tokens: int = 0  # bound on what the provider adds to the prompt (its own instructions for tools)
    cache_write: CacheWrite = "none"  # dearest kind of cache entry this request can make the provider write
    server_tools: tuple[str, ...] = ()  # tools the provider runs and bills beside the tokens (web_search, …)
    server_tool_uses: int | None = 0  # most uses of them the request allows; None = it sets no limit
    opaque_inputs: tuple[str, ...] = ()  # inputs whose tokens the body does not bound (file ids, earlier turns, …)
    sent_model: str | None = None  # name by which the host knows the model, where it is another than ``model``

    @property
    def free(self) -> bool:
        """Whether it costs nothing, whatever comes back: a list of models is not sold."""
        return self.dialect == "openai.models"

    @property
    def input_tokens_bound(self) -> int:
        """Most input tokens the body can be billed for, unless it names ``opaque_inputs`` or ``server_tools``."""
        return self.prompt_bytes + self.hidden_tokens

    def output_bound(self, model_maximum: int | None) -> int | None:
        """Most output tokens this request can be billed for, None when nothing bounds them.

        Args:
            model_maximum: the model's own maximum per choice (``models.capabilities``), None when unknown.
        """
        if self.max_output_tokens is not None:
            return self.max_output_tokens
        return None if model_maximum is None else model_maximum * self.choices


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseFacts:
    """What one response says. ``usage`` None = it does not say, so the cost is unknown and the reservation stays.

    ``text`` is every text block joined with nothing between, None when there is none. ``error_message`` is at most
    ``ERROR_EXTRACT`` characters of what the other side wrote and is *not scrubbed*: whoever writes it down scrubs it.
    """

    model: str | None = None
    request_id: str | None = None
    text: str | None = None
    finish_reason: str | None = None  # as on the wire
    outcome: Outcome = "pipeline_error"
    usage: Usage | None = None
    error_code: str | None = None
    error_message: str | None = None
    blocks_ignored: Mapping[str, int] = field(default_factory=dict)  # block type -> how many
    tool_calls: int = 0


#: Version of Anthropic's API that we ask in, whatever the SDK would send. The next one refuses every temperature, top_p
#: and top_k, and answers that were stored before an SDK was upgraded are to be found after it.
ANTHROPIC_VERSION = "2023-06-01"

#: Longest extract of somebody else's error text that a message of ours quotes.
ERROR_EXTRACT = 200

#: Fields of a request that are facts about sampling and limits, never prompts: kept as sent in the journal.
PARAMETERS: tuple[str, ...] = (
    "temperature",
    "top_p",
    "top_k",
    "seed",
    "n",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tool_calls",
    "frequency_penalty",
    "presence_penalty",
    "reasoning_effort",
    "reasoning",
    "thinking",
    "verbosity",
    "service_tier",
    "speed",
    "inference_geo",
    "store",
    "stream",
    "stream_options",
    "logprobs",
    "top_logprobs",
    "truncation",
    "parallel_tool_calls",
    "prompt_cache_retention",
    "background",
)
