"""Our own clients: both makers' SDKs on top of the metered transport, and one call that asks any model.

SDK retries are off (`metering.retry` is the only policy), what repeats stands first and unchanged so that prompt caches
hit, and nothing is kept at the provider that it can be asked not to keep.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2

from pytest_fusion_audit.errors import FusionAuditError
from pytest_fusion_audit.metering.concurrency import Concurrency
from pytest_fusion_audit.metering.models import Api, Capabilities, capabilities, shaped
from pytest_fusion_audit.metering.processing import after_refusal
from pytest_fusion_audit.metering.retry import (
    ConfigError,
    KeyRefusedError,
    QuotaExhaustedError,
    Reply,
    RetryPolicy,
    persistently,
)
from pytest_fusion_audit.metering.scope import HEADER, Scope
from pytest_fusion_audit.metering.sdk import (
    ANTHROPIC_URL,
    OPENAI_URL,
    TIMEOUT_S,
    anthropic_client,
    openai_client,
    read_failure,
    read_reply,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from pytest_fusion_audit.metering.prices import Processing
    from pytest_fusion_audit.metering.transport import MeteredTransport
    from pytest_fusion_audit.metering.wire.base import ResponseFacts

__all__ = ["Completion", "Models", "Prompt", "anthropic_client", "default_api", "openai_client"]
_PATHS: Mapping[Api, str] = {
    "openai.chat": "/chat/completions",
    "openai.responses": "/responses",
    "anthropic.messages": "/v1/messages",
}


def default_api(provider: str) -> Api:
    """The dialect in which a maker is asked."""
    return "anthropic.messages" if provider == "anthropic" else "openai.chat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One question, with what repeats in front.

    Attributes:
        text: what only this call says.
        system: instructions. They stand before everything else, so that calls share a cache only if they share these:
            what differs between two readers of the same candidates belongs into ``text``.
        stable: parts that several calls share unchanged, in the order in which they stay the same longest: the task,
            then the candidates.
        cache: ask Anthropic to cache up to the end of ``stable`` (a write costs a quarter more, a read a tenth).
    """

    text: str
    system: str | None = None
    stable: tuple[str, ...] = ()
    cache: bool = True

    def fields(self, api: Api) -> dict[str, Any]:
        """The prompt as fields of a request."""
        if api == "anthropic.messages":
            return self._anthropic()
        content = "\n\n".join((*self.stable, self.text))
        messages = [{"role": "user", "content": content}]
        if api == "openai.responses":
            return {"input": messages} | ({"instructions": self.system} if self.system is not None else {})
        if self.system is not None:
            messages.insert(0, {"role": "system", "content": self.system})
        return {"messages": messages}

    def _anthropic(self) -> dict[str, Any]:
        blocks: list[dict[str, Any]] = [{"type": "text", "text": part} for part in self.stable]
        if blocks and self.cache:
            blocks[-1]["cache_control"] = {"type": "ephemeral"}
        blocks.append({"type": "text", "text": self.text})
        fields: dict[str, Any] = {"messages": [{"role": "user", "content": blocks}]}
        if self.system is not None:
            fields["system"] = self.system
        return fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What came of a question.

    Attributes:
        facts: the answer, or the outcome when there is none (``provider_error``, ``censored_rate_limit``, …).
        calls: ids of its calls in the journal, one an attempt; the last one gave ``facts``.
        sent: parameters as sent.
        not_sent: parameters that were asked for and that the model refuses.
        stored: the answer was bought before and comes from the store.
        latency_s: of the attempt that gave ``facts``; of a stored one, what it took then. None when unknown.
    """

    facts: ResponseFacts
    calls: tuple[str, ...]
    sent: Mapping[str, JsonValue]
    not_sent: Mapping[str, JsonValue]
    stored: bool
    latency_s: float | None


@dataclass(slots=True)
class Models:
    """Asks models of all endpoints through one door, with one policy and one set of limits.

    Attributes:
        transport: the run's transport.
        urls: base URL by provider, as each SDK wants it.
        variables: name of the variable that holds the key, by provider.
        concurrency: how many calls at once.
        policy: how long to wait, how often to ask again.
        overrides: ``capabilities`` of the panel file by model id.
        timeout_s: longest silence of the other side.
    """

    transport: MeteredTransport
    urls: Mapping[str, str] = field(default_factory=lambda: {"openai": OPENAI_URL, "anthropic": ANTHROPIC_URL})
    variables: Mapping[str, str] = field(
        default_factory=lambda: {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
    )
    concurrency: Concurrency = field(default_factory=Concurrency)
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    overrides: Mapping[str, Capabilities] = field(default_factory=dict)
    timeout_s: float = TIMEOUT_S
    _clients: dict[tuple[str, bool], Any] = field(default_factory=dict)

    async def complete(
        self,
        provider: str,
        model: str,
        prompt: Prompt,
        scope: Scope,
        *,
        asked: Mapping[str, JsonValue] | None = None,
        api: Api | None = None,
        stream: bool = False,
        flex: bool = False,
    ) -> Completion:
        """Ask one model once, waiting out what passes.

        Args:
            provider: maker, or the name of an endpoint in ``urls``.
            model: id as that endpoint knows it.
            prompt: the question.
            scope: what the call is for.
            asked: sampling and limits in our words, see `models.shaped`.
            api: defaults to the maker's own: messages for Anthropic, else chat completions.
            stream: keep the connection busy while a long answer is written; the facts are the same.
            flex: at OpenAI's flex tier, and at the standard one when there is no room or the model has no such tier.

        Raises:
            KeyRefusedError, QuotaExhaustedError: the run has been stopped.
            ConfigError: the request is refused as it is.
            CostLimitExceeded, RunStoppedError, ReplayMissError: nothing was sent.
        """
        api = api or default_api(provider)
        body, parameters, not_sent = self._body(provider, model, prompt, asked or {}, api)
        if stream:
            body["stream"] = True
        if flex and api != "anthropic.messages":
            body["service_tier"] = "flex"
        calls: list[str] = []

        async def attempt() -> Reply:
            async with self.concurrency.of(model).slot() as slot:
                reply = await self._attempt(provider, api, body, scope)
                slot.tell(reply.status)
            if reply.call is not None:
                calls.append(reply.call)
            return reply

        async def ask() -> Reply:
            reply = await attempt()
            tier: Processing = "flex" if body.get("service_tier") == "flex" else "standard"
            if after_refusal(tier, reply.status or 0, reply.facts.error_code) is None:
                return reply
            del body["service_tier"]  # no room at that tier: nothing was billed, and waiting for it may take hours
            return await attempt()

        variable = self.variables.get(provider)
        try:
            reply = await persistently(ask, variable=variable, policy=self.policy)
        except (KeyRefusedError, QuotaExhaustedError) as error:
            if self.transport.mode == "live":
                self.transport.calls.ledger.stop(str(error))
            raise
        return Completion(
            facts=reply.facts,
            calls=tuple(calls),
            sent=parameters,
            not_sent=not_sent,
            stored=reply.stored,
            latency_s=reply.latency_s,
        )

    def request(
        self,
        provider: str,
        model: str,
        prompt: Prompt,
        asked: Mapping[str, JsonValue] | None = None,
        api: Api | None = None,
    ) -> tuple[str, bytes]:
        """URL and body of the request that `complete` would send, for a batch.

        Raises:
            ConfigError: no output limit is known, or no base URL.
        """
        api = api or default_api(provider)
        body, _, _ = self._body(provider, model, prompt, asked or {}, api)
        return f"{self._url(provider)}{_PATHS[api]}", json.dumps(body, ensure_ascii=False).encode()

    def _body(
        self, provider: str, model: str, prompt: Prompt, asked: Mapping[str, JsonValue], api: Api
    ) -> tuple[dict[str, Any], dict[str, JsonValue], dict[str, JsonValue]]:
        if api == "anthropic.messages" and asked.get("max_output_tokens") is None:
            able = capabilities(provider, model, self.overrides)
            if able is None or able.max_output_tokens is None:
                raise ConfigError(
                    f"{model}: messages need an output limit and the model's own is unknown; nothing was sent: set "
                    "max_output_tokens, or `capabilities: {max_output_tokens: N}` on its endpoint in the panel file"
                )
            asked = {**asked, "max_output_tokens": able.max_output_tokens}
        parameters, not_sent = shaped(provider, model, asked, api=api, overrides=self.overrides)
        body = {"model": model, **prompt.fields(api), **parameters}
        if provider == "openai":
            body["store"] = False
        return body, parameters, not_sent

    def _client(self, provider: str, *, messages: bool) -> Any:
        known = self._clients.get((provider, messages))
        if known is None:
            make = anthropic_client if messages else openai_client
            known = make(self.transport, base_url=self._url(provider), timeout_s=self.timeout_s)
            self._clients[provider, messages] = known
        return known

    def _url(self, provider: str) -> str:
        if provider not in self.urls:
            raise ConfigError(f"no base URL is known for {provider}; nothing was sent")
        return self.urls[provider]

    async def _attempt(self, provider: str, api: Api, body: dict[str, Any], scope: Scope) -> Reply:
        client = self._client(provider, messages=api == "anthropic.messages")
        options: Any = {"headers": {HEADER: scope.header()}}
        try:
            response = await client.post(_PATHS[api], cast_to=httpx2.Response, body=body, options=options)
        except FusionAuditError:
            raise
        except Exception as error:
            reply = read_failure(api, error)
            if reply is None:
                raise
            return reply
        return read_reply(api, response)

    async def aclose(self) -> None:
        """Close the clients; the transport stays open."""
        for client in self._clients.values():
            await client.close()
        self._clients.clear()
