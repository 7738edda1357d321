"""The sections of ``fusion.yaml``, one class each, with the defaults that hold where the file says nothing."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from pytest_fusion_audit.configuration.fields import Count, Name, PhaseName, Processing, Seconds, Section, Share, Whole
from pytest_fusion_audit.configuration.money_sections import CapsUsd, Endpoints, Spend, Target


class Suites(Section):
    """Suites by what they are there for; the embedded ones unless others are named."""

    primary: Name = "pocket-stdio"
    replication: Name | None = "pocket-functions"
    non_coding: Name | None = "pocket-reasoning"
    multi_turn: Name | None = "pocket-repair"


class Window(Section):
    """Dates of the tasks to take, both ends included."""

    since: date | None = None
    until: date | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.since is not None and self.until is not None and self.since > self.until:
            raise ValueError("since: is later than until")
        return self


Size = Whole | Name  # a number of tasks, or the path of a manifest


class Splits(Section):
    """Sizes (or manifests) of the four splits, and the seed that draws them."""

    seed: Whole = 0
    dev: Size = 80
    val: Size = 40
    locked: Size = 220
    monitor: Size = 100
    window: Window = Window()


class Samples(Section):
    """Draws of each member; the first is the primary sample."""

    per_member: Count = 1
    temperatures: tuple[Annotated[float, Field(strict=True, ge=0, le=2)], ...] = ()

    @model_validator(mode="after")
    def _one_each(self) -> Self:
        if self.temperatures and len(self.temperatures) != self.per_member:
            raise ValueError("temperatures: give one per sample of a member, or none")
        return self


class Prompts(Section):
    """Prompt files of the user's own; None takes the shipped ones."""

    judge: Name | None = None
    synthesizer: Name | None = None


class Statistics(Section):
    """Levels and margins; rates are shares, 0.05 is five points."""

    alpha: Annotated[float, Field(strict=True, gt=0, lt=0.5)] = 0.05
    margin: Share = 0.05
    expected_uplift: Annotated[float, Field(strict=True, gt=0, le=1)] = 0.08
    truncation_limit: Share = 0.05
    seeds: Count = 1


class Holdout(Section):
    """How often the locked pool may be read."""

    vaults: Count = 1
    reuse: Literal["refused", "declared"] = "refused"


class Proposer(Section):
    """Where changes come from: a model (tier 1), a folder of variants (tiers 1, 2) or a command (tier 3)."""

    tier: Annotated[int, Field(strict=True, ge=1, le=3)]
    model: Name | None = None
    folder: Name | None = None
    command: Name | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if sum(source is not None for source in (self.model, self.folder, self.command)) != 1:
            raise ValueError("give exactly one of model, folder and command")
        return self


class Climb(Section):
    """The hill climb of phase 5."""

    proposers: tuple[Proposer, ...] = ()
    patience: Count = 3
    space: dict[Name, list[JsonValue]] = Field(default_factory=dict)  # setting -> values to try


class Gates(Section):
    """The target's own check commands, and how old evidence may be."""

    commands: tuple[Name, ...] = ()
    known_red: dict[Name, Name] = Field(default_factory=dict)  # command -> why it is red
    max_age_days: Count = 90


class AttestationEntry(Section):
    """A reviewer's statement about an artifact of the repository."""

    criterion: Annotated[str, Field(pattern=r"^[1-9][0-9]*\.[1-9][0-9]*$", strict=True)]
    artifact: Name
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    statement: Name


def _off(value: Any) -> Any:
    return "off" if value is False else value  # YAML 1.1 reads a bare ``off`` as false


class Git(Section):
    """What is done with artifacts and changes in git."""

    mode: Annotated[Literal["off", "commit", "push"], BeforeValidator(_off)] = "off"
    pull_request_command: Name | None = None


class Configuration(Section):
    """A whole ``fusion.yaml`` after defaults."""

    target: Target = Target()
    endpoints: Endpoints = Endpoints()
    panel: Name = "audits/panel.gpt-opus.yaml"
    suites: Suites = Suites()
    splits: Splits = Splits()
    samples: Samples = Samples()
    policy: Literal["rewrite", "select_best", "exec_select"] = "rewrite"
    judge: Name | None = None  # None: the panel file's
    synthesizer: Name | None = None
    prompts: Prompts = Prompts()
    truncate_candidates: Count | None = None  # characters kept of each candidate; None keeps all
    test_timeout_s: Seconds = 8.0
    max_output_tokens: Count | None = None  # None: the panel file's, else the model's own maximum
    spend: Spend = Spend()
    caps_usd: CapsUsd = CapsUsd()
    prefer: dict[PhaseName, Processing] = Field(default_factory=dict)
    concurrency: Count = 8
    statistics: Statistics = Statistics()
    holdout: Holdout = Holdout()
    climb: Climb = Climb()
    gates: Gates = Gates()
    fixer: Name | None = None  # command that repairs a fault (R7)
    attestations: tuple[AttestationEntry, ...] = ()
    git: Git = Git()

    @model_validator(mode="after")
    def _nothing_contradicts(self) -> Self:
        if self.prefer.get("served") in {"batch", "flex"}:
            raise ValueError("prefer.served: a served gateway answers at once, only standard is possible")
        if self.spend.budget_usd is not None and self.caps_usd.total is not None:
            highest = self.caps_usd.total
            if self.spend.budget_usd > highest:
                raise ValueError(f"spend.budget_usd: is above caps_usd.total of {highest:f} USD")
        return self

    def to_json(self) -> dict[str, JsonValue]:
        """Every field with its value after defaults, as builtins; money as JSON numbers with at most six decimals."""
        return {name: _plain(getattr(self, name)) for name in type(self).model_fields}


def _plain(value: Any) -> JsonValue:
    if isinstance(value, Section):
        return {name: _plain(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, dict):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, date):
        return value.isoformat()
    plain: JsonValue = value
    return plain
