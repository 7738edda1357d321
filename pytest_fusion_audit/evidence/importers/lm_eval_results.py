"""The results file of an lm-evaluation-harness run: which model ran, how, and the harness's own figures."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pytest_fusion_audit.evidence.importers.answers import content_sha256
from pytest_fusion_audit.evidence.importers.rows import Row
from pytest_fusion_audit.evidence.importers.text import load_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from pytest_fusion_audit.evidence.importers.base import Source

#: Time of a run as the harness writes it into the names of all its files.
STAMP: Final = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?"
_STAMPED: Final = re.compile(rf"(?:.*_)?(?P<stamp>{STAMP})")
_SAMPLES: Final = re.compile(rf"samples_(?P<task>.+?)(?:_(?P<stamp>{STAMP}))?")

#: Metrics whose direction is known without a results file, from the harness's metric registry.
HIGHER_IS_BETTER: Final[Mapping[str, bool]] = {
    "exact_match": True, "acc": True, "pass@1": True, "pass_at_1": True, "acc_norm": True, "acc_bytes": True,
    "acc_mutual_info": True, "f1": True, "mcc": True, "bleu": True, "chrf": True, "likelihood": True,
    "brier_score": False, "ter": False, "perplexity": False, "word_perplexity": False, "byte_perplexity": False,
    "bits_per_byte": False, "wer": False,
}  # fmt: skip
#: Which of several metrics decides, first come.
PREFERRED: Final = ("exact_match", "acc", "pass@1", "pass_at_1")

_MODEL_ARGUMENTS: Final = ("pretrained", "model", "model_name", "path")
_PRIVATE: Final = re.compile(r"key|token|secret|password|url|path|dir|device|header", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Results:
    """One results file.

    Attributes:
        folder, stamp: what ties it to its samples files.
        model: name of the model, None when the file has none.
    """

    source: Source
    top: Row
    folder: str
    stamp: str | None
    model: str | None

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks with a configuration, in file order; groups have none."""
        configs = self.top.child("configs")
        return tuple(configs.data) if configs is not None else ()

    def inside(self, *names: str) -> Row | None:
        """The object under a path of keys; None when a step is missing."""
        row: Row | None = self.top
        for name in names:
            row = row.child(name) if row is not None else None
        return row

    def version(self, task: str) -> str | None:
        """Version of a task's definition: results of two versions do not compare."""
        versions = self.top.child("versions")
        value = versions.data.get(task) if versions is not None else None
        return str(value) if isinstance(value, (int, float, str)) else None

    def planned(self, task: str) -> int | None:
        """Number of documents that the run was to answer."""
        row = self.inside("n-samples", task)
        return row.count("effective") if row is not None else None

    def figure(self, task: str, metric: str, filter_name: str) -> float | None:
        """The harness's own value of a metric; ``N/A`` is none."""
        row = self.inside("results", task)
        value = row.data.get(f"{metric},{filter_name}") if row is not None else None
        return value if isinstance(value, (int, float)) and value == value else None  # noqa: PLR0124 - NaN is none

    def higher_is_better(self, task: str, metric: str) -> bool | None:
        """Direction of a metric as the file states it."""
        row = self.inside("higher_is_better", task)
        return row.flag(metric) if row is not None and metric in row.data else None

    def is_mean(self, task: str, metric: str) -> bool:
        """Whether the figure of a metric is the mean of its rows (the default), so that it can be checked."""
        config = self.inside("configs", task)
        for row in config.rows("metric_list") if config is not None else []:
            if row.data.get("metric") == metric:
                return bool(row.data.get("aggregation", "mean") == "mean")
        return True

    def settings(self, task: str) -> str:
        """Digest of what was asked, seeds excepted: runs of equal settings are repetitions."""
        config = self.top.child("config")
        of_task = self.inside("configs", task)
        arguments = model_arguments(config)
        return content_sha256(
            {
                "model": config.data.get("model") if config is not None else None,
                "arguments": {
                    k: v for k, v in arguments.items() if k not in _MODEL_ARGUMENTS and not _PRIVATE.search(k)
                },
                "generation": of_task.data.get("generation_kwargs") if of_task is not None else None,
                "overridden": config.data.get("gen_kwargs") or None if config is not None else None,
                "shots": of_task.data.get("num_fewshot") if of_task is not None else None,
                "prompts": [self.top.data.get(k) for k in ("chat_template_sha", "system_instruction_sha")],
            }
        )

    def facts(self, task: str) -> dict[str, JsonValue]:
        """Facts for the run's own record; nothing of the machine it ran on."""
        config = self.top.child("config") or Row(self.source, "config", {})
        of_task = self.inside("configs", task) or Row(self.source, f"configs.{task}", {})
        generation = of_task.child("generation_kwargs")
        date = self.top.number("date", 0)
        known: dict[str, JsonValue] = {
            "harness_version": self.top.text("lm_eval_version"),
            "repo_sha": self.top.text("git_hash"),
            "task_version": self.version(task),
            "prompt_template_hash": self.top.text("chat_template_sha"),
            "config_hash": self.settings(task),
            "generated_at": datetime.fromtimestamp(date, UTC).isoformat() if date is not None and date < 1e11 else None,
            "output_cap": generation.count("max_gen_toks") if generation is not None else None,
            "harness_seed": config.count("random_seed"),
            "few_shots": of_task.count("num_fewshot"),
            "repeats": of_task.count("repeats"),
        }
        return {name: value for name, value in known.items() if value is not None}


def model_arguments(config: Row | None) -> Mapping[str, Any]:
    """Arguments of the model: an object, in older versions a text ``pretrained=x,dtype=y``."""
    value = config.data.get("model_args") if config is not None else None
    if isinstance(value, str):
        return dict(part.split("=", 1) for part in value.split(",") if "=" in part)
    return value if isinstance(value, dict) else {}


def read_results(source: Source) -> Results:
    """Read a results file.

    Raises:
        ImportRefusedError: no JSON object, or a field that is not of its form.
    """
    top = Row(source, "", load_json(source, constants=True))
    arguments = model_arguments(top.child("config"))
    named = [top.text("model_name"), *(arguments.get(name) for name in _MODEL_ARGUMENTS)]
    model = next((name for name in named if isinstance(name, str) and name.strip()), None)
    match = _STAMPED.fullmatch(source.stem)
    return Results(source, top, folder_of(source), match.group("stamp") if match is not None else None, model)


def folder_of(source: Source) -> str:
    """Folder of a file inside the import; empty for a file that was named itself."""
    return source.name.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class SamplesFile:
    """What the name of a samples file says."""

    source: Source
    task: str | None
    stamp: str | None
    results: Results | None = field(default=None)


def samples_file(source: Source, known: list[Results]) -> SamplesFile:
    """A samples file and the results file of its run: of the same time in the same folder, else of the same time."""
    match = _SAMPLES.fullmatch(source.stem)
    task, stamp = (match.group("task"), match.group("stamp")) if match is not None else (None, None)
    beside = [results for results in known if results.folder == folder_of(source)]
    if stamp is not None:
        fitting = [results for results in beside if results.stamp == stamp]
        elsewhere = [results for results in known if results.stamp == stamp]
        unnamed = [results for results in beside if results.stamp is None]
        found = fitting or (elsewhere if len(elsewhere) == 1 else []) or (unnamed if len(unnamed) == 1 else [])
    else:
        found = beside if len(beside) == 1 else []
    results = found[0] if found else None
    if task is None and results is not None and len(results.tasks) == 1:
        task = results.tasks[0]
    return SamplesFile(source, task, stamp, results)
