"""The third door: ``provider/name`` ids, for gateways that know a single OpenAI-compatible upstream.

``openai/…`` goes to OpenAI with the bare id. ``anthropic/…`` in a chat completion becomes a message for Anthropic. Such
a gateway sends every model the same sampling parameters, so what a model refuses (a temperature, a seed) is left out
here and counted, as our own clients do; what would change the question is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pytest_fusion_audit.errors import FusionAuditError
from pytest_fusion_audit.metering.models import Capabilities, capabilities, shaped
from pytest_fusion_audit.metering.translate import request_to_messages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_fusion_audit.metering.wire.base import Dialect

Maker = Literal["openai", "anthropic"]
MAKERS: tuple[Maker, ...] = ("openai", "anthropic")
_SAMPLING = ("temperature", "top_p", "seed")
_LIMITS = ("max_tokens", "max_completion_tokens")


class ForeignDialectError(FusionAuditError):
    """A maker's model was asked for in a dialect that it does not speak and that is not translated."""


@dataclass(frozen=True, slots=True)
class Passage:
    """Where a request goes and as what.

    Attributes:
        base: base URL of the maker.
        path: path behind it.
        document: body to send.
        translated: whether the answer has to be translated back.
        not_sent: parameters that the model refuses, left out.
    """

    base: str
    path: str
    document: Mapping[str, Any]
    translated: bool = False
    not_sent: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ThirdDoor:
    """The makers behind one OpenAI-compatible upstream.

    Attributes:
        bases: maker -> base URL; no bases, no third door.
        overrides: ``capabilities`` of the panel file by model id.
    """

    bases: Mapping[Maker, str] = field(default_factory=dict)
    overrides: Mapping[str, Capabilities] = field(default_factory=dict)

    def passage(self, dialect: Dialect, path: str, document: Mapping[str, Any]) -> Passage | None:
        """The way of a request whose model is ``maker/name``; None for any other model.

        Raises:
            TranslationError: a field that cannot be translated.
            ForeignDialectError: the maker does not speak this dialect.
        """
        model = document.get("model")
        prefix, slash, name = model.partition("/") if isinstance(model, str) else ("", "", "")
        maker = next((maker for maker in self.bases if maker == prefix), None)
        if maker is None or not slash or not name:
            return None
        base, bare = self.bases[maker], {**document, "model": name}
        if dialect == "openai.chat":
            sent, not_sent = self._accepted(maker, name, bare)
            if maker == "openai":
                return Passage(base, path, sent, not_sent=not_sent)
            able = capabilities(maker, name, self.overrides)
            most = able.max_output_tokens if able else None
            message = request_to_messages(sent, model=name, default_max_tokens=most)
            return Passage(base, "/v1/messages", message, translated=True, not_sent=not_sent)
        if dialect.partition(".")[0] == maker:
            return Passage(base, path, bare)
        raise ForeignDialectError(
            f"model: {model} cannot be asked for in {dialect}, which is not translated; nothing was sent. "
            "Ask in chat completions, or in the maker's own dialect"
        )

    def _accepted(self, maker: Maker, name: str, document: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """A chat request with what the model accepts, in the words that it accepts, and what was left out."""
        asked = {field: document[field] for field in _SAMPLING if document.get(field) is not None}
        effort = document.get("reasoning_effort")
        api: Literal["openai.chat", "anthropic.messages"] = "openai.chat" if maker == "openai" else "anthropic.messages"
        _, refused = shaped(maker, name, {**asked, "effort": effort}, api=api, overrides=self.overrides)
        left_out = {field: value for field, value in refused.items() if field in _SAMPLING}
        sent = {field: value for field, value in document.items() if field not in left_out}
        able = capabilities(maker, name, self.overrides)
        if able is not None and maker == "openai":
            stated = [sent.pop(field) for field in _LIMITS if sent.get(field) is not None]
            if len(stated) == 1:
                sent[able.limit_field] = stated[0]
            elif stated:
                sent |= dict(zip(_LIMITS, stated, strict=True))
        return sent, left_out


def models_listed(maker: Maker, body: Any) -> list[dict[str, Any]]:
    """The models of one maker's listing as OpenAI lists them, with ``provider/name`` ids."""
    listed = body.get("data") if isinstance(body, dict) else None
    return [
        {"id": f"{maker}/{model['id']}", "object": "model", "created": model.get("created", 0), "owned_by": maker}
        for model in (listed if isinstance(listed, list) else ())
        if isinstance(model, dict) and isinstance(model.get("id"), str)
    ]
