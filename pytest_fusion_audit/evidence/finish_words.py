"""The words providers have for the end of an answer: cut, refused, ended. A word that is none of them tells nothing.

Sources: the API references of OpenAI (``finish_reason``, ``incomplete_details.reason``), Anthropic (``stop_reason``),
Google (``finishReason``), Mistral and Hugging Face (``model_length``, ``eos_token``).
"""

from __future__ import annotations

from typing import Final

#: The answer ran into a limit: of output tokens, or of the model's context window.
CUT: Final = frozenset(
    {
        *("length", "max_tokens", "max_output_tokens", "max_completion_tokens", "max_length", "token_limit"),
        *("incomplete", "model_length", "model_context_window_exceeded"),
    }
)
#: The answer was withheld.
REFUSED: Final = frozenset(
    {
        *("content_filter", "refusal", "safety", "blocked", "blocklist", "prohibited_content", "recitation", "spii"),
        "guardrail_intervened",
    }
)
#: The model was done.
ENDED: Final = frozenset(
    {
        *("stop", "end_turn", "stop_sequence", "stop_token", "eos", "eos_token", "end", "complete", "completed"),
        *("tool_calls", "tool_use", "function_call"),
    }
)


def finish_word(finish_reason: str | None) -> str | None:
    """The word as it is looked up: lower case, without Google's prefix; None for none.

    >>> finish_word("FINISH_REASON_MAX_TOKENS"), finish_word("end-turn"), finish_word(" ")
    ('max_tokens', 'end_turn', None)
    """
    word = (finish_reason or "").strip().lower().replace("-", "_").replace(" ", "_")
    return word.removeprefix("finish_reason_") or None


def known_finish(finish_reason: str | None) -> bool:
    """Whether it is recorded how the answer ended, in a word that says so.

    >>> known_finish("MAX_TOKENS"), known_finish("because"), known_finish(None)
    (True, False, False)
    """
    word = finish_word(finish_reason)
    return word in CUT or word in REFUSED or word in ENDED
