from __future__ import annotations

from pytest_fusion_audit.analysis.classes import classes_of, clusters_of, registered_classes
from pytest_fusion_audit.evidence.records import ComparisonPlan
from tests.analysis.analysis_records import SPLIT, SUITE, evidence, outcomes, task


def test_classes_and_clusters_of_a_split_also_from_other_splits():
    run = evidence(
        outcomes("compound", "++++"),
        task("t0", task_class="b", cluster="x"),
        task("t1", task_class="a", split="dev"),
        task("t2", task_class="b"),
    )
    assert classes_of(run, SUITE, SPLIT) == {"a": {"t1"}, "b": {"t0", "t2"}}
    assert list(classes_of(run, SUITE, SPLIT)) == ["a", "b"]
    assert clusters_of(run, SUITE, SPLIT) == {"t0": "x"}


def test_registered_classes_are_those_of_this_split():
    plans = [
        ComparisonPlan(suite=SUITE, split=split, arms=(), n=1, classes=classes)
        for split, classes in ((SPLIT, ("b", "a")), (SPLIT, ("a", "c")), ("dev", ("z",)))
    ]
    assert registered_classes(evidence(plans), SUITE, SPLIT) == ("a", "b", "c")
