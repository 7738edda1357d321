"""Header of an inspect_ai log: which task and model, what was asked, how the run ended, which score counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pytest_fusion_audit.evidence.importers.answers import content_sha256
from pytest_fusion_audit.evidence.importers.base import Source, printable, refusal
from pytest_fusion_audit.evidence.importers.inspect_container import Log, read_log
from pytest_fusion_audit.evidence.importers.rows import Row, checked_id, whole_characters
from pytest_fusion_audit.evidence.importers.text import finite

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import JsonValue

    from pytest_fusion_audit.evidence.importers.inspect_sample import Sample

#: Parameters of a call that can change its answer; what only moves it (retries, connections, caches) is left out.
PARAMETERS: Final = (
    "max_tokens", "temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty", "num_choices",
    "best_of", "reasoning_effort", "reasoning_tokens", "effort", "system_message", "internal_tools",
)  # fmt: skip
_TEXTS: Final = {"system_message"}  # asked for, but a prompt: only its digest is kept
_LIMITS: Final = (
    "message_limit", "token_limit", "token_limit_type", "turn_limit", "time_limit", "working_limit", "cost_limit",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Facts:
    """Header of one log, read once per import to tell its runs apart.

    Attributes:
        ids: ids of the samples planned; None in old logs.
        planned: number of tasks planned; None when a limit hides it.
        parameters: what every call was asked to use.
        settings: digest of everything asked, the seed excepted: runs of equal settings are repetitions.
    """

    task: str
    version: str
    model: str
    status: str
    finished: bool
    eval_id: str
    task_id: str
    created: str
    epochs: int
    ids: tuple[str, ...] | None
    planned: int | None
    parameters: Mapping[str, JsonValue]
    settings: str
    run: Mapping[str, JsonValue]  # further facts for the run's own record


def facts_of(source: Source) -> Facts:
    """Header facts of a log file; see `read_log` for errors."""
    return header_facts(read_log(source, header_only=True))


def header_facts(log: Log) -> Facts:
    """Header facts of a log that was read."""
    spec = log.header.child("eval")
    assert spec is not None  # noqa: S101 - read_log refused the log otherwise
    task, model = spec.text("task"), spec.text("model")
    if task is None or model is None:
        raise spec.refuse("task" if task is None else "model", "a name")
    status = log.header.text("status") or ""
    status = status if log.ended and status else "started"
    created = spec.text("created") or ""
    config = _values(spec, "config")
    ids, planned = _planned(spec, limited=config.get("limit") is not None or config.get("sample_id") is not None)
    plan = log.header.child("plan")
    asked = {**_values(spec, "model_generate_config"), **(_values(plan, "config") if plan is not None else {})}
    parameters = {name: asked[name] for name in PARAMETERS if asked.get(name) is not None}
    for name, value in parameters.items():
        if name in _TEXTS or not isinstance(value, (bool, int, float, str)):
            parameters[name] = content_sha256(value)
        elif isinstance(value, str):
            parameters[name] = whole_characters(value)
        elif isinstance(value, float) and not finite(value):
            raise refusal(log.source, f"{value} is not a figure", f"field {name} of the generate config")
    eval_id = spec.text("eval_id") or spec.text("run_id") or f"{log.source.name} {created}"
    epochs = spec.child("config")
    return Facts(
        task=task,
        version=printable(str(spec.data.get("task_version") or 0)),
        model=model,
        status=status,
        finished=status == "success",
        eval_id=eval_id,
        task_id=spec.text("task_id") or eval_id,
        created=created,
        epochs=(epochs.count("epochs") if epochs is not None else None) or 1,
        ids=ids,
        planned=planned,
        parameters=parameters,
        settings=_settings(spec, plan, {name: value for name, value in parameters.items() if name != "seed"}, config),
        run=_run_facts(spec),
    )


def _values(row: Row, name: str) -> dict[str, Any]:
    inside = row.child(name)
    return {} if inside is None else dict(inside.data)


def _planned(spec: Row, *, limited: bool) -> tuple[tuple[str, ...] | None, int | None]:
    dataset = spec.child("dataset")
    if dataset is None:
        return None, None
    value = dataset.data.get("sample_ids")
    if isinstance(value, list) and value:
        ids = tuple(checked_id(spec.source, str(item), "field eval.dataset.sample_ids") for item in value)
        return ids, len(ids)
    return None, None if limited else dataset.count("samples")


def _settings(spec: Row, plan: Row | None, parameters: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """Digest of what was asked. Defaults are not in it: they are written down differently by version."""
    steps = plan.rows("steps") if plan is not None else []
    asked = {
        "parameters": parameters,
        "solver": [[step.data.get("solver"), step.data.get("params_passed") or {}] for step in steps],
        "task_args": spec.data.get("task_args_passed", spec.data.get("task_args")) or {},
        "model_args": {k: v for k, v in _values(spec, "model_args").items() if v is not None},
        "limits": {name: config[name] for name in _LIMITS if config.get(name) is not None},
    }
    return content_sha256(asked)


def _run_facts(spec: Row) -> dict[str, JsonValue]:
    """Facts that name no host and no path: of the revision the commit, never its address."""
    packages = spec.child("packages")
    revision = spec.child("revision")
    dataset = spec.child("dataset")
    facts: dict[str, JsonValue] = {
        "harness_version": packages.text("inspect_ai") if packages is not None else None,
        "repo_sha": revision.text("commit") if revision is not None else None,
        "repo_dirty": revision.flag("dirty") if revision is not None else None,
        "dataset": (dataset.text("name") or "").rpartition("/")[2] or None if dataset is not None else None,
    }
    return {name: value for name, value in facts.items() if value is not None}


@dataclass(slots=True)
class Scorer:
    """The score that decides.

    Attributes:
        name: as the log's results name it.
        scorer: key of the sample's scores.
        stated: the results' own row about it, None when the run has no results.
        others: scores of the log that are not read.
    """

    name: str
    scorer: str
    stated: Row | None = None
    others: list[str] = field(default_factory=list)

    def value(self, sample: Sample) -> Any:
        """The sample's score, None when this scorer wrote none. A score of several values has one per name."""
        if self.scorer not in sample.scores:
            return next(iter(sample.scores.values()), None) if list(sample.scores) == [""] else None
        value = sample.scores[self.scorer]
        return value[self.name] if isinstance(value, dict) and self.name in value else value


def scorer_of(log: Log, samples: Iterable[Sample]) -> Scorer | None:
    """The headline score when the log names one, else the first of its results, else the first score of a sample."""
    results = log.header.child("results")
    rows = results.rows("scores") if results is not None else []
    spec = log.header.child("eval")
    headline = (results.child("headline") if results is not None else None) or (
        spec.child("headline_metric") if spec is not None else None
    )
    wanted = (headline.text("score") or headline.text("scorer")) if headline is not None else None
    stated = next((row for row in rows if wanted in {row.text("name"), row.text("scorer")}), rows[0] if rows else None)
    if stated is not None:
        name = stated.text("name") or stated.text("scorer") or ""
        others = [text for row in rows if row is not stated and (text := row.text("name")) is not None]
        return Scorer(name, stated.text("scorer") or name, stated, others)
    planned = spec.rows("scorers") if spec is not None else []
    listed = [text for row in planned if (text := row.text("name")) is not None]
    listed += [printable(name) for sample in samples for name in sample.scores if name not in listed]
    return Scorer(listed[0], listed[0], None, list(dict.fromkeys(listed[1:]))) if listed else None
