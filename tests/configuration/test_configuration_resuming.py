"""A resume is the same experiment: compared after defaults, speed and money may change, nothing else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fusion_audit.configuration import (
    MAY_CHANGE,
    Configuration,
    ConfigurationError,
    parse_configuration,
    resume_differences,
)

STORED = {
    "policy": "select_best",
    "judge": "gpt",
    "samples": {"per_member": 2},
    "test_timeout_s": 20,
    "panel_sha256": "p1",
    "prompts": {"judge": "judge.md"},
    "datasets": {"pocket-stdio": "d1"},
}


def test_the_same_settings_resume() -> None:
    found = resume_differences(STORED, json.loads(json.dumps(STORED)))
    assert (found.refused, found.allowed) == ((), ())
    found.check()


@pytest.mark.parametrize(
    "spelled",
    [
        {"concurrency": 8, "git": {"mode": "off"}},  # defaults spelled out
        {"synthesizer": None, "spend": None, "statistics": {"alpha": None}},  # null is absent
        {"test_timeout_s": 20.0, "splits": {"dev": 80}},
        {"note": None, "hashes": {}},
    ],
)
def test_a_default_left_out_a_null_and_the_value_spelled_out_are_the_same(spelled: dict[str, object]) -> None:
    assert resume_differences(STORED, STORED | spelled).fields == ()
    assert resume_differences(STORED | spelled, STORED).fields == ()


def test_a_stored_run_reads_back_as_itself() -> None:
    now = parse_configuration("spend: {consent: yes, budget_usd: 0.1}\nsplits: {window: {since: 2026-01-01}}")
    assert resume_differences(json.loads(json.dumps(now.to_json())), now).fields == ()


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"judge": "opus"}, ("judge",)),
        ({"judge": None}, ("judge",)),
        ({"test_timeout_s": 8}, ("test_timeout_s",)),
        ({"samples": {"per_member": 1}}, ("samples.per_member",)),
        ({"panel_sha256": "p2"}, ("panel_sha256",)),
        ({"panel_sha256": None}, ("panel_sha256",)),
        ({"datasets": {"pocket-stdio": "d2"}}, ("datasets.pocket-stdio",)),
        ({"datasets": {"pocket-stdio": "d1", "gsm8k": "d3"}}, ("datasets.gsm8k",)),
        ({"policy": "rewrite", "truncate_candidates": 1200, "concurrency": 1}, ("policy", "truncate_candidates")),
        ({"statistics": {"alpha": 0.01}}, ("statistics.alpha",)),
        ({"target": {"timeout_s": 5.0}}, ("target.timeout_s",)),
        ({"endpoints": {"allow": []}, "climb": {"patience": 9}}, ("climb.patience",)),
    ],
)
def test_what_can_change_an_answer_or_a_verdict_is_refused_and_listed(
    change: dict[str, object], fields: tuple[str, ...]
) -> None:
    found = resume_differences(STORED, STORED | change)
    assert found.fields == fields
    with pytest.raises(
        ConfigurationError, match=r"begun with other settings: .*nothing was sent.*--fusion-run-id"
    ) as e:
        found.check()
    assert all(field in str(e.value) for field in fields)


def test_speed_and_money_may_change_and_are_listed_for_the_log() -> None:
    now = STORED | {
        "caps_usd": {"total": 40, "baseline": 10},
        "spend": {"consent": True, "budget_usd": 40},
        "prefer": {"baseline": "batch"},
        "concurrency": 1,
        "git": {"mode": "push"},
    }
    found = resume_differences(STORED, now)
    assert found.refused == ()
    assert {change.field.split(".")[0] for change in found.allowed} == MAY_CHANGE
    by_field = {change.field: (change.before, change.after) for change in found.allowed}
    assert by_field["concurrency"] == (8, 1)
    assert by_field["caps_usd.total"] == (None, 40)
    assert by_field["prefer.baseline"] == (None, "batch")


def test_true_is_not_one() -> None:
    assert resume_differences({"flag": True}, {"flag": 1}).fields == ("flag",)


def test_a_stored_side_that_makes_no_sense_is_named() -> None:
    with pytest.raises(ConfigurationError, match="the stored settings: policy"):
        resume_differences({"policy": "other"}, {})


@given(st.sampled_from(sorted(Configuration.model_fields)), st.data())
def test_every_field_but_the_five_is_held_fast(name: str, data: st.DataObject) -> None:
    values = {
        "target": {"model": "m"},
        "endpoints": {
            "allow": [
                {
                    "url": "https://r.example",
                    "provider": "openai",
                    "api_key_env": "K",
                    "auth": "bearer",
                    "model_map": {"a": "b"},
                    "pricing": {"a": {"input_per_1m_tokens": 1, "output_per_1m_tokens": 2}},
                }
            ]
        },
        "panel": "other.yaml",
        "suites": {"primary": "gsm8k"},
        "splits": {"seed": 3},
        "samples": {"per_member": 4},
        "policy": "exec_select",
        "judge": "x",
        "synthesizer": "x",
        "prompts": {"judge": "x"},
        "truncate_candidates": 5,
        "test_timeout_s": 5.0,
        "max_output_tokens": 5,
        "spend": {"total_usd": data.draw(st.integers(1, 1000))},
        "caps_usd": {"total": data.draw(st.integers(100, 1000))},
        "prefer": {"climb": "flex"},
        "concurrency": 9,
        "statistics": {"seeds": 3},
        "holdout": {"vaults": 2},
        "climb": {"patience": 4},
        "gates": {"max_age_days": 1},
        "fixer": "x",
        "attestations": [{"criterion": "10.3", "artifact": "a", "sha256": "0" * 64, "statement": "s"}],
        "git": {"mode": "commit"},
    }
    assert set(values) == set(Configuration.model_fields)
    found = resume_differences({}, {name: values[name]})
    assert bool(found.refused) is (name not in MAY_CHANGE)
    assert bool(found.allowed) is (name in MAY_CHANGE)
