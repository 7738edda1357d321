"""Case 14 of ``../shared/cases``: resume with a changed configuration."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_fusion_audit.configuration import resume_differences
from tests.shared_data import shared

#: Names of the case -> ours. What is not a field of fusion.yaml here is a fact beside it in run.json.
_POLICIES = {"select_verbatim": "select_best"}


def ours(case: dict[str, Any]) -> dict[str, Any]:
    settings = {name: case[name] for name in ("judge", "synthesizer", "test_timeout_s")}
    settings["policy"] = _POLICIES[case["policy"]]
    settings["max_output_tokens"] = case["max_tokens"]
    settings["caps_usd"] = {"total": case["cap_usd"], "reserve": None}
    if "concurrency" in case:
        settings["concurrency"] = case["concurrency"]
    facts = ("temperature", "dataset_sha256", "prompts_sha256")
    return settings | {name: case[name] for name in facts} | {"panel_models": case["panel"]}


@pytest.mark.parametrize(
    "variant",
    [
        "identical",
        "omits_default_field",
        "concurrency_1",
        "cap_40",
        "judge_changed",
        "prompt_changed",
        "dataset_changed",
        "timeout_changed",
    ],
)
def test_case_14(variant: str) -> None:
    case = json.loads(shared("cases/14-resume-with-a-changed-config.json").read_text())
    stored, change = case["input"]["stored"], dict(case["input"]["resume_with"][variant])
    now = {**stored, **{name: value for name, value in change.items() if not name.startswith("__")}}
    for name in change.get("__remove__", ()):
        del now[name]
    fields = resume_differences(ours(stored), ours(now)).fields
    expected = case["expected"][variant]
    assert expected == ("resume" if not fields else f"refuse: {', '.join(fields)}")
