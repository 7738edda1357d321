"""The evidence record types: everything an audit learns is one of these, and criteria read nothing else.

Records are frozen dataclasses. `None` means unknown and stays unknown: it is never 0 and never False. Money is integer
micro-dollars (``*_micro_usd``), latency is seconds, tasks are joined by ``(suite, split, id)``. Every record names the
file it was learned from in ``source`` (a path relative to what was imported, or to the run directory).

An arm is named ``<kind>[:<what>][@<config>]``: ``member:gpt``, ``compound``, ``compound:select_best``,
``self:gpt*6:rewrite``, ``served``; ``@<config>`` is absent for the incumbent.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads the annotations when a file is read
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, JsonValue

Outcome: TypeAlias = Literal[
    "answered",
    "truncated",
    "refused",
    "empty",
    "no_text",
    "context_length",
    "provider_error",
    "pipeline_error",
    "censored_budget",
    "censored_rate_limit",
]
Verdict: TypeAlias = Literal["passed", "failed", "timeout", "crashed", "ungradeable"]
State: TypeAlias = Literal["scored", "pipeline_error", "not_run"]
PickStatus: TypeAlias = Literal["named", "none", "parse_failure"]

#: Outcomes that say nothing about right or wrong: they leave the pair on both sides and make the run incomplete.
UNSCORED_OUTCOMES: frozenset[Outcome] = frozenset(
    {"context_length", "provider_error", "censored_budget", "censored_rate_limit"}
)
#: Outcomes in which the answer was cut or missing although the provider did its job.
CUT_OUTCOMES: frozenset[Outcome] = frozenset({"truncated", "empty", "no_text"})
#: Outcomes that leave nothing to grade: scored and failed even where the source wrote no verdict.
ANSWERLESS_OUTCOMES: frozenset[Outcome] = CUT_OUTCOMES | {"refused"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task of one split. Hidden tests are known by hash only."""

    id: str
    suite: str
    split: str
    task_class: Annotated[str | None, Field(alias="class")] = None
    cluster: str | None = None
    date: str | None = None  # ISO 8601 date of publication (contest day)
    difficulty: str | None = None
    checker: str | None = None
    public_tests: int | None = None
    total_tests: int | None = None
    hidden_tests_sha256: str | None = None
    prompt_sha256: str | None = None  # hex, possibly a prefix of 16 digits as the source recorded it
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One draw of one member on one task. ``sample`` 0 is the primary sample; ``replicate`` is the seed's index."""

    task: str
    suite: str
    split: str
    member: str
    config: str | None = None  # None = the incumbent configuration
    sample: int = 0
    replicate: int = 0
    turn: int = 0
    requested_model: str | None = None
    resolved_model: str | None = None
    parameters_asked: Mapping[str, JsonValue] | None = None
    parameters_sent: Mapping[str, JsonValue] | None = None  # as seen on the wire
    finish_reason: str | None = None
    outcome: Outcome | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_micro_usd: int | None = None
    latency_s: float | None = None
    answer_chars: int | None = None
    answer_sha256: str | None = None
    extraction: str | None = None
    public_passed: int | None = None
    public_total: int | None = None
    private_passed: int | None = None
    private_total: int | None = None
    verdict: Verdict | None = None
    score: float | None = None  # 0..1, where the suite grades
    regrades: tuple[Verdict, ...] = ()  # further verdicts on the same answer, for verdict_unstable
    call_ids: tuple[str, ...] = ()
    source: str = ""

    @property
    def id(self) -> str:
        """Identity of the candidate within its task, as ``fused.candidate_ids`` and ``fused.pick`` name it."""
        name = self.member if self.config is None else f"{self.member}@{self.config}"
        return f"{name}#{self.sample}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """One turn of a compound arm: what judge and synthesizer did with the candidates of a task."""

    task: str
    suite: str
    split: str
    arm: str = "compound"
    replicate: int = 0
    policy: str | None = None
    candidate_ids: tuple[str, ...] | None = None  # in display order; None = not recorded
    characters_kept: tuple[int, ...] | None = None
    judge_model: str | None = None
    synthesizer_model: str | None = None
    pick: str | None = None  # a candidate id
    pick_member: str | None = None  # where the source names only the member picked, not which of its draws
    pick_status: PickStatus | None = None  # None = the source does not record picks
    judge_confidence: float | None = None
    parse_retries: int | None = None
    reply_sha256: str | None = None
    fallback: str | None = None
    stage_cost_micro_usd: Mapping[str, int | None] = field(default_factory=dict)  # panel, judge, synthesizer
    stage_latency_s: Mapping[str, float | None] = field(default_factory=dict)
    outcome: Outcome | None = None
    verdict: Verdict | None = None
    score: float | None = None
    cost_micro_usd: int | None = None  # of the whole turn; None when any stage is unknown
    latency_s: float | None = None
    regrades: tuple[Verdict, ...] = ()
    reason: str | None = None
    call_ids: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmOutcome:
    """Verdict of an arm on a task where nothing is known of the turns behind it."""

    task: str
    suite: str
    split: str
    arm: str
    replicate: int = 0
    state: State = "scored"
    reason: str | None = None
    outcome: Outcome | None = None
    passed: bool | None = None
    score: float | None = None
    cost_micro_usd: int | None = None
    latency_s: float | None = None
    output_tokens: int | None = None
    model: str | None = None
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One billed run of a phase: a line of a spend ledger. ``recorded`` tells whose ledger it is."""

    phase: str
    suite: str | None = None
    tasks: int | None = None
    est_micro_usd: int | None = None
    measured_micro_usd: int | None = None
    cum_micro_usd: int | None = None
    git_sha: str | None = None
    note: str | None = None
    line: int = 0  # position in the ledger, from 1
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drill:
    """Result of one scripted fault or soak against the served target."""

    drill: str
    criteria: tuple[str, ...] = ()
    trials: int | None = None
    passed: int | None = None
    facts: Mapping[str, JsonValue] = field(default_factory=dict)
    absent: bool = False  # none of the target's documented doors offers the capability
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """What is known of a split: how it was made and which ids it planned (``ids`` None = not recorded)."""

    suite: str
    split: str
    how: str | None = None  # seed | window | manifest | recorded
    ids: tuple[str, ...] | None = None
    planned: int | None = None
    complete: bool | None = None
    seed: int | None = None
    window: tuple[str, str] | None = None
    note: str | None = None
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPlan:
    """A registration: what was sealed before a locked split was opened."""

    suite: str
    split: str
    arms: tuple[str, ...]
    n: int
    alpha: float = 0.05
    expected_uplift: float | None = None
    expected_discordance: float | None = None
    role: str | None = None  # primary | replication | non_coding
    classes: tuple[str, ...] = ()
    baseline_settings: Mapping[str, JsonValue] = field(default_factory=dict)  # member -> its own best setting
    equal_dollar_arm: str | None = None
    registered_utc: str | None = None
    look: int = 1  # 1 = first opening of these tasks
    reuse: str | None = None
    ids_sha256: str | None = None
    subject_hash: str | None = None
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One decision of a router or depth policy on one task."""

    task: str
    suite: str
    split: str
    router: str
    decision: str  # an arm's name
    signal: str | None = None
    learned: bool = False
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelChoice:
    """Which panel compositions were considered, on what figures, and which one was chosen."""

    compositions: tuple[Mapping[str, JsonValue], ...]
    chosen: tuple[str, ...]
    reason: str | None = None
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Facts about a configuration or a run, by kind of fact (``what``).

    ``panel``: members, models, pricing, sampling. ``run``: what a benchmark run recorded of itself (models, hashes,
    cap, seed, cost scope). ``suite``: public, agentic, coding, family. ``history``: one earlier run.
    """

    what: str
    facts: Mapping[str, JsonValue]
    suite: str | None = None
    split: str | None = None
    subject_hash: str | None = None
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attestation:
    """A reviewer's statement that names an artifact and its sha256."""

    criterion: str
    artifact: str
    sha256: str
    statement: str
    verified: bool | None = None
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault met on the way, with its smallest reproduction."""

    where: str
    summary: str
    reproduction: str | None = None
    status: str = "open"
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One attempt of the hill climb, accepted or not, with the figures before and after."""

    change: str
    tier: int
    accepted: bool
    arm_before: str | None = None
    arm_after: str | None = None
    target: str = "compound"  # or member:<id>: each member gets its own tuning
    facts: Mapping[str, JsonValue] = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A figure somebody published about their own run. It is compared with ours and never used in its place."""

    quantity: str
    value: JsonValue
    suite: str | None = None
    split: str | None = None
    arm: str | None = None
    criterion: str | None = None
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A counted, visible exclusion or oddity met while a file was read; validity checks lift it into findings."""

    code: str
    message: str
    count: int = 1
    items: tuple[str, ...] = ()  # at most ten, for people


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedFile:
    """One file an import read: what it was taken for, and what stayed unknown."""

    source: str
    sha256: str
    format: str
    records: Mapping[str, int] = field(default_factory=dict)  # kind -> how many records came from it
    unknown: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()


Record: TypeAlias = (
    Task
    | Candidate
    | Fused
    | ArmOutcome
    | Phase
    | Drill
    | Split
    | ComparisonPlan
    | Route
    | PanelChoice
    | Config
    | Attestation
    | Fault
    | Change
    | Claim
    | ImportedFile
)

#: File name (``evidence/<kind>.jsonl``) of each record type, in the order in which they are written.
KINDS: dict[str, type] = {
    "import": ImportedFile,
    "config": Config,
    "split": Split,
    "comparison_plan": ComparisonPlan,
    "task": Task,
    "candidate": Candidate,
    "fused": Fused,
    "arm_outcome": ArmOutcome,
    "route": Route,
    "phase": Phase,
    "drill": Drill,
    "panel_choice": PanelChoice,
    "attestation": Attestation,
    "fault": Fault,
    "change": Change,
    "claim": Claim,
}


def kind_of(record: Record) -> str:
    """Name of the record's kind, the stem of its evidence file."""
    return _KIND_BY_TYPE[type(record)]


_KIND_BY_TYPE = {record_type: kind for kind, record_type in KINDS.items()}
