"""An inspect_ai log in memory: its samples, one each, and the grade that decides each of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_fusion_audit.evidence.importers.answers import Answer, grade_of
from pytest_fusion_audit.evidence.importers.bank_stream import Digest
from pytest_fusion_audit.evidence.importers.base import refusal
from pytest_fusion_audit.evidence.importers.inspect_header import Facts, Scorer, scorer_of
from pytest_fusion_audit.evidence.importers.inspect_sample import Sample, sample_of
from pytest_fusion_audit.evidence.importers.rows import Repeats

if TYPE_CHECKING:
    from pytest_fusion_audit.evidence.importers.answers import Place
    from pytest_fusion_audit.evidence.importers.inspect_container import Log


@dataclass(slots=True)
class GradedLog:
    """One log with its samples graded.

    Attributes:
        samples: first epoch first, then in the order of the plan.
        spoiled: keys of samples that stand twice with different values.
        grades: grade by sample key; None where the tool gave none.
        ungraded: ids of samples whose score is no single number.
        off_scale: some grade is outside 0..1, so what passes cannot be told.
    """

    log: Log
    facts: Facts
    place: Place
    scorer: Scorer | None
    samples: list[Sample]
    repeats: Repeats
    spoiled: set[tuple[str, int]]
    grades: dict[tuple[str, int], float | None] = field(default_factory=dict)
    ungraded: list[str] = field(default_factory=list)
    off_scale: bool = False

    @property
    def primaries(self) -> dict[str, Sample]:
        """First sample read of each task: it tells what the task asked."""
        first: dict[str, Sample] = {}
        for sample in self.samples:
            first.setdefault(sample.id, sample)
        return first

    @property
    def missing(self) -> int | None:
        """Planned samples that the log does not hold; None when the plan is not recorded."""
        if self.facts.ids is not None:
            planned = {(task, epoch) for task in self.facts.ids for epoch in range(1, self.facts.epochs + 1)}
            return len(planned - {sample.key for sample in self.samples})
        if self.facts.planned is not None:
            return max(0, self.facts.planned * self.facts.epochs - len(self.samples))
        return None

    @property
    def complete(self) -> bool | None:
        """Whether every planned sample was run and none ended in an error; None when the plan is not recorded."""
        if not self.facts.finished or any(sample.error is not None for sample in self.samples):
            return False
        missing = self.missing
        return None if missing is None else missing == 0

    def answer(self, sample: Sample) -> Answer:
        """What is known of a sample, in our words."""
        grade = self.grades[sample.key]
        spoiled = sample.key in self.spoiled
        graded = grade is not None and not (spoiled or sample.withdrawn or self.off_scale)
        return Answer(
            task=sample.id,
            repeat=sample.epoch - 1,
            requested_model=self.facts.model,
            resolved_model=sample.resolved_model,
            parameters=self.facts.parameters or None,
            finish_reason=sample.finish_reason,
            outcome=sample.outcome,
            passed=grade is not None and grade >= 1 if graded else None,
            unscored=not graded,
            spoiled=spoiled,
            score=grade if graded and sample.error is None else None,
            input_tokens=sample.input_tokens,
            cached_tokens=sample.cached_tokens,
            output_tokens=sample.output_tokens,
            reasoning_tokens=sample.reasoning_tokens,
            cost_micro_usd=sample.cost_micro_usd,
            latency_s=sample.latency_s,
            chars=sample.answer.chars if sample.answer is not None else None,
            sha256=sample.answer.sha256 if sample.answer is not None else None,
        )


def graded_log(log: Log, facts: Facts, place: Place) -> GradedLog:
    """Samples of a log, one per id and epoch, with their grades.

    Raises:
        ImportRefusedError: a sample is malformed, or the log claims success and holds no sample.
    """
    first: dict[tuple[str, int], Sample] = {}
    data: dict[tuple[str, int], str] = {}
    repeats = Repeats()
    spoiled: set[tuple[str, int]] = set()
    for row in log.samples:
        sample = sample_of(row, facts.model)
        digest = Digest.of(repr(row.data)).sha256  # by text: NaN is not equal to itself
        if sample.key not in first:
            first[sample.key], data[sample.key] = sample, digest
        elif data[sample.key] == digest:
            repeats.same.setdefault(sample.id)
        else:
            repeats.spoiled.setdefault(sample.id)
            spoiled.add(sample.key)
    order = {task: index for index, task in enumerate(facts.ids or ())}
    samples = sorted(first.values(), key=lambda s: (s.epoch, order.get(s.id, len(order)), s.id))
    if not samples and facts.finished:  # what failed at once stays visible; an empty success is no evidence
        of = f" of {facts.planned}" if facts.planned is not None else ""
        then = "run it with log_samples on, or leave the file out"
        raise refusal(log.source, f"claims success but holds 0{of} samples", then=then)
    graded = GradedLog(log, facts, place, scorer_of(log, samples), samples, repeats, spoiled)
    for sample in samples:
        try:
            value = graded.scorer.value(sample) if graded.scorer is not None else None
            graded.grades[sample.key] = grade_of(value)
        except ValueError:
            graded.grades[sample.key] = None
            graded.ungraded.append(sample.id)
    graded.off_scale = any(grade is not None and not 0 <= grade <= 1 for grade in graded.grades.values())
    return graded
