"""Chat completions ⇄ Anthropic messages: requests, answers, errors and streams, both ways.

For gateways that know a single OpenAI-compatible upstream and call ``anthropic/…`` through it. A translation keeps the
meaning or does not happen: what the other dialect cannot say is refused with the name of its field, before anything is
sent. Answers were paid for and are never refused for what they hold beside text and tool calls: thinking and unknown
blocks are left out, as `wire` leaves them out.
"""

from __future__ import annotations

from pytest_fusion_audit.metering.translate.answers import (
    answer_to_chat,
    answer_to_messages,
    error_to_chat,
    error_to_messages,
)
from pytest_fusion_audit.metering.translate.chat_request import request_to_messages
from pytest_fusion_audit.metering.translate.chat_stream import ChatChunks
from pytest_fusion_audit.metering.translate.fields import TranslationError
from pytest_fusion_audit.metering.translate.messages_request import request_to_chat
from pytest_fusion_audit.metering.translate.messages_stream import MessageEvents

__all__ = [
    "ChatChunks",
    "MessageEvents",
    "TranslationError",
    "answer_to_chat",
    "answer_to_messages",
    "error_to_chat",
    "error_to_messages",
    "request_to_chat",
    "request_to_messages",
]
