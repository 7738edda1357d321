from __future__ import annotations

import gc
import weakref

import pytest

from pytest_fusion_audit.analysis.memo import per_evidence
from tests.analysis.analysis_records import evidence, outcomes


def test_each_call_is_computed_once_per_evidence_and_argument():
    calls = []

    @per_evidence
    def figure(run, name, *, twice=False):
        calls.append((run, name, twice))
        return len(calls)

    one, two = evidence(outcomes("compound", "+")), evidence(outcomes("compound", "+"))
    assert [figure(one, "a"), figure(one, "a"), figure(one, "a", twice=True), figure(two, "a")] == [1, 1, 2, 3]
    assert [figure(one, "b"), figure(one, "a", twice=True)] == [4, 2]


def test_results_go_with_their_evidence():
    @per_evidence
    def figure(run):
        return 1

    run = evidence(outcomes("compound", "+"))
    alive = weakref.ref(run)
    figure(run)
    del run
    gc.collect()
    assert alive() is None


def test_none_is_a_result_too():
    calls = []

    @per_evidence
    def figure(run):
        calls.append(run)

    run = evidence()
    assert figure(run) is None
    assert figure(run) is None
    assert len(calls) == 1


def test_an_argument_without_hash_is_refused():
    @per_evidence
    def figure(run, names):
        return len(names)

    with pytest.raises(TypeError):
        figure(evidence(), ["a"])
