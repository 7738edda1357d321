"""The runs of lm-evaluation-harness in one import: each samples file with its model, its results file and its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pytest_fusion_audit.evidence.importers.answers import arm_named, member_arm_of
from pytest_fusion_audit.evidence.importers.base import Context, Source, refusal
from pytest_fusion_audit.evidence.importers.lm_eval_results import (
    Results,
    SamplesFile,
    folder_of,
    read_results,
    samples_file,
)
from pytest_fusion_audit.evidence.importers.tool_runs import Standing, ToolRun, short_names, standings

if TYPE_CHECKING:
    from collections.abc import Sequence

SAMPLES: Final = "lm-eval-samples"
RESULTS: Final = "lm-eval-results"


@dataclass(frozen=True, slots=True)
class Run:
    """A samples file, its model, and where its rows go."""

    file: SamplesFile
    model: str | None
    standing: Standing

    @property
    def results(self) -> Results | None:
        """Results file of the same run, None when it is not in the import."""
        return self.file.results

    @property
    def task(self) -> str:
        """The task, as the names of the files and the results file have it."""
        return self.file.task or self.file.source.stem


def run_of(source: Source, context: Context) -> Run:
    """The run of one samples file.

    Raises:
        ImportRefusedError: nothing tells which model answered.
    """
    if source in context.sources.get(SAMPLES, []):
        return all_runs(context)[source.name]
    return _placed([source], [], context)[source.name]


def all_runs(context: Context) -> dict[str, Run]:
    """Every samples file of the import with its model and place."""
    samples = context.sources.get(SAMPLES, [])
    results = context.sources.get(RESULTS, [])
    return context.once(SAMPLES, lambda: _placed(samples, results, context))


def _placed(samples: Sequence[Source], results: Sequence[Source], context: Context) -> dict[str, Run]:
    known = [read_results(source) for source in results]
    files = [samples_file(source, known) for source in samples]
    models = {file.source.name: _model(file, context) for file in files}
    short = short_names({model: model.rpartition("/")[2] for model in models.values() if model is not None})
    versions: dict[str, set[str]] = {}
    for file in files:
        version = file.results.version(file.task) if file.results is not None and file.task is not None else None
        versions.setdefault(file.task or file.source.stem, set()).update({version} if version is not None else ())
    placed = []
    for file in files:
        source, task = file.source, file.task or file.source.stem
        naming = context.naming(source)
        model = models[source.name]
        if naming.arm is not None:
            arm, config = arm_named(naming.arm)
        else:
            assert model is not None  # noqa: S101 - _model refuses a file with neither
            arm, config = member_arm_of(short[model]), None
        version = file.results.version(task) if file.results is not None else None
        suite = f"{task}-v{version}" if version is not None and len(versions[task]) > 1 else task
        asked = file.results.settings(task) if file.results is not None and naming.arm is None else ""
        identity = f"{folder_of(source)} {file.stamp}" if file.stamp is not None else source.name
        placed.append(
            ToolRun(
                file=source.name,
                suite=naming.suite or suite,
                split=naming.split or "all",
                arm=arm,
                config=naming.config or config,
                identity=identity,
                lineage=identity,
                settings=asked,
                started=file.stamp or "",
            )
        )
    table = standings(placed)
    return {file.source.name: Run(file, models[file.source.name], table[file.source.name, ""]) for file in files}


def _model(file: SamplesFile, context: Context) -> str | None:
    """The model's name: of the results file, else of the folder that the harness names after it."""
    if file.results is not None and file.results.model is not None:
        return file.results.model
    folder = folder_of(file.source).rpartition("/")[2]
    if folder:
        return folder.replace("__", "/")
    if context.naming(file.source).arm is None:
        then = "import the results file of the run beside it, or name the arm in a fusion-import.yaml"
        raise refusal(file.source, "does not say which model answered, and no results file does", then=then)
    return None
