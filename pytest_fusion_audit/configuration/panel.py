"""Panel files: who is asked, who judges, who writes. FusionKit's form, read as it is; ``cutoff`` per endpoint is ours.

Keys of other tools are kept out, listed and ignored. Only models of OpenAI and Anthropic are audited (procedure R3), so
a panel that names another maker's is refused by field; ``openai-compatible`` endpoints are for loopback only. Which
hosts may be called is not for a panel file to say: see `metering.hosts`.
"""

from __future__ import annotations

from datetime import date  # noqa: TC003 - pydantic reads the annotations at run time
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from pytest_fusion_audit.configuration.fields import Count, Name, PlainUrl, Seconds, Section, Variable, Whole, shown
from pytest_fusion_audit.configuration.money_sections import TokenPricing
from pytest_fusion_audit.configuration.reading import parse_section, read_text

PanelProvider: TypeAlias = Literal["openai", "anthropic", "openai-compatible"]
MAKERS: Final = ("openai", "anthropic")
_SHORTEST_KEY = 8  # what is shorter is a placeholder, as FusionKit's own examples have it


class Pricing(TokenPricing):
    """Prices of an endpoint; further keys of FusionKit are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)


class Ignoring(Section):
    """A section of somebody else's file: what is not known here is ignored, and listed by `Panel.ignored`."""

    model_config = ConfigDict(extra="allow", frozen=True, hide_input_in_errors=True)
    known_elsewhere: ClassVar[frozenset[str]] = frozenset()

    @property
    def ignored(self) -> list[str]:
        """Names of the keys that are not read."""
        return sorted(shown(str(name)) for name in (self.model_extra or {}) if name not in self.known_elsewhere)


class PanelEndpoint(Ignoring):
    """One model that can be asked."""

    id: Name
    provider: PanelProvider
    model: Name
    base_url: PlainUrl | None = None
    api_key: Name | None = None
    api_key_env: Variable | None = None
    timeout_s: Seconds | None = None
    pricing: Pricing | None = None
    capabilities: dict[str, Any] = Field(default_factory=dict)
    cutoff: date | None = None  # training cutoff of the model

    @model_validator(mode="after")
    def _no_key_and_loopback_only(self) -> Self:
        if self.api_key is not None and len(self.api_key) >= _SHORTEST_KEY:
            raise ValueError("api_key: holds a key; take it out of the file and name its variable in api_key_env")
        if self.provider == "openai-compatible" and self.base_url is None:
            raise ValueError("base_url: an openai-compatible endpoint needs the URL of a server on this machine")
        return self


class Sampling(Ignoring):
    """What the panel asks every model for; what a model refuses is recorded as not sent."""

    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    max_tokens: Count | None = None
    seed: Whole | None = None


def _provider_of_id(entry: Any) -> Any:
    """An endpoint of FusionKit 0.10, which knows ids of the form ``provider/model`` only."""
    if not isinstance(entry, str):
        return entry
    provider, slash, model = entry.partition("/")
    return {"id": entry, "provider": provider, "model": model} if slash else {"id": entry, "model": entry}


class Panel(Ignoring):
    """A whole panel file."""

    known_elsewhere: ClassVar[frozenset[str]] = frozenset({"routekit_url"})

    endpoints: tuple[PanelEndpoint, ...] = ()
    routekit_model_ids: tuple[Annotated[PanelEndpoint, BeforeValidator(_provider_of_id)], ...] = ()
    panel_models: tuple[Name, ...] = ()
    judge_model: Name | None = None
    synthesizer_model: Name | None = None
    sampling: Sampling = Sampling()

    @model_validator(mode="after")
    def _everybody_is_known(self) -> Self:
        ids = [endpoint.id for endpoint in self.models]
        for field, named in (("endpoints", ids), ("panel_models", self.panel_models)):
            twice = sorted({name for name in named if list(named).count(name) > 1})
            if twice:
                raise ValueError(f"{field}: {shown(twice[0])} stands there twice; keep one")
        unknown = [name for name in self.panel_models if name not in ids]
        if unknown:
            raise ValueError(f"panel_models: {shown(unknown[0])} is not the id of an endpoint")
        for field in ("judge_model", "synthesizer_model"):
            name = getattr(self, field)
            if name is not None and ids and name not in ids:
                raise ValueError(f"{field}: {shown(name)} is not the id of an endpoint")
        return self

    @property
    def models(self) -> tuple[PanelEndpoint, ...]:
        """Every model that can be asked, in the order of the file."""
        return (*self.endpoints, *self.routekit_model_ids)

    def endpoint(self, id_: str) -> PanelEndpoint:
        """The endpoint of an id.

        Raises:
            KeyError: no such endpoint.
        """
        return {endpoint.id: endpoint for endpoint in self.models}[id_]

    def not_read(self) -> list[str]:
        """Dotted names of everything in the file that this tool does not read."""
        found = [*self.ignored, *(f"sampling.{name}" for name in self.sampling.ignored)]
        for endpoint in self.models:
            found += [f"endpoints[].{name}" for name in endpoint.ignored]
        return sorted(set(found))


def load_panel(path: str | Path, *, base: str | Path = ".", said_by: str = "--fusion-panel") -> Panel:
    """Load a panel file.

    Args:
        path: as the user names it.
        base: folder that a relative path starts from.
        said_by: option or field that named it, for messages.

    Raises:
        ConfigurationError: it cannot be read, or a field is wrong; names file, line and field.
    """
    name = Path(path).as_posix()
    text = read_text(Path(base) / path, name, said_by)
    assert text is not None  # noqa: S101 - it is not optional
    return parse_section(Panel, text, name)
