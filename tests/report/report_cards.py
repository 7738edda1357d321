"""A scorecard by hand, and one computed from the shipped rubric: what reports are tested on."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from pytest_fusion_audit import load_rubric

UPLIFT: dict[str, Any] = {
    "n": 220,
    "wins": 31,
    "losses": 12,
    "uplift": 19 / 220,
    "tango_low": 0.0292,
    "tango_high": 0.1465,
    "held_out": True,
    "exact_p": 0.0054,
    "mid_p": 0.0037,
    "decision": "shown",
    "over": "opus",
}
FINDINGS: dict[str, dict[str, Any]] = {
    "error": {
        "code": "truncated_answers",
        "severity": "error",
        "message": "38 of 86 answers of gpt are empty, limit 5 %: uplift not identified",
        "evidence": ["phase3/bank-slim.json"],
        "affects": ["1.1", "1.3"],
    },
    "warning": {
        "code": "estimates_only",
        "severity": "warning",
        "message": "no measured amounts on 11 lines",
        "evidence": ["spend-ledger.jsonl"],
        "affects": ["7.1"],
    },
}


SLOW = (
    "7.2 Latency overhead: scored 1 (p95 3.10 x single (total), bar 2.5 x); bar: 7.2 = 2; n = 220; "
    "evidence: locked.json; next: pytest audits/ -m replay -k 7.2"
)


def published(criterion: str) -> dict[str, Any]:
    """A published score that its evidence does not support."""
    return {
        "code": "published_score_unsupported",
        "severity": "warning",
        "message": f"{criterion} was published as 2, this evidence gives 1: too few",
        "evidence": ["published.json"],
        "affects": [criterion],
    }


def card(**changes: Any) -> dict[str, Any]:
    """A complete live scorecard: 1.1 at 2, everything else not run."""
    rubric = load_rubric()
    criteria = [
        {
            "id": criterion.id,
            "title": criterion.title,
            "status": "met" if criterion.id == "1.1" else "not_run",
            "score": 2 if criterion.id == "1.1" else 0,
            "class": "measured",
            "by": criterion.by,
            "measured": dict(UPLIFT) if criterion.id == "1.1" else {},
            "threshold": criterion.met,
            "evidence": ["locked.json"] if criterion.id == "1.1" else [],
            "reasons": [] if criterion.id == "1.1" else ["needs a drill: planted"],
        }
        for criterion in rubric.criteria
    ]
    document: dict[str, Any] = {
        "schema": "fusion-scorecard/1",
        "run_id": "demo",
        "mode": "live",
        "subject": {"hash": "5b", "doors": [], "panel": ["gpt = gpt-5.5", "opus = claude-opus-4-8"]},
        "complete": True,
        "coverage": {"planned": 780, "scored": 780, "by_reason": {}},
        "claim_eligible": True,
        "terminal_state": None,
        "gates": {
            name: {
                "passed": name == "A",
                "would_pass_simulated": name == "A",
                "reasons": [] if name == "A" else [SLOW],
            }
            for name in "ABCD"
        },
        "validity": [],
        "total": {
            "score": 3.3333333,
            "out_of": 104,
            "simulated": 0.0,
            "attested": 0.0,
            "by_tool": 0.0,
            "measured_criteria": 1,
            "reachable": 3.3333333,
        },
        "dimensions": [
            {"id": d.id, "title": d.title, "weight": d.weight, "score": 3.3333333 if d.id == 1 else 0.0}
            for d in rubric.dimensions
        ],
        "criteria": criteria,
        "measurements": {},
        "spend": {"cap_usd": 500.0, "spent_usd": 412.5, "estimated_usd": 430.0, "by_phase": {}},
        "published": [],
        "imports": [],
    }
    return {**deepcopy(document), **changes}
