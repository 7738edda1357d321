"""The headline of a scorecard: the uplift with its n, interval and p, or why there is none to report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.report.numbers import interval, p_text, points

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Criterion the headline is read from.
HEADLINE = "1.1"

_LABELS = {
    "imported": "imported",
    "offline": "simulated",
    "live": "live",
}


def mode_label(scorecard: Mapping[str, Any]) -> str:
    """What kind of run this is, as every surface heads it.

    >>> mode_label({"mode": "imported", "claim_eligible": False})
    'imported, not claim-eligible'
    """
    label = _LABELS.get(scorecard["mode"], scorecard["mode"])
    return f"{label}, claim-eligible" if scorecard["claim_eligible"] else f"{label}, not claim-eligible"


def incomplete(scorecard: Mapping[str, Any]) -> str | None:
    """``INCOMPLETE n/m`` with the reasons, None for a complete run."""
    if scorecard["complete"]:
        return None
    coverage = scorecard["coverage"]
    reasons = _reasons(coverage)
    return f"INCOMPLETE {coverage['scored']}/{coverage['planned']}" + (f" rows: {reasons}" if reasons else "")


def rows_text(coverage: Mapping[str, Any]) -> str:
    """Rows of the system under audit that were scored, and beside them those of splits that are not about it.

    >>> caps = {"planned": 60, "scored": 57, "by_reason": {"provider_error": 3}}
    >>> rows_text({"planned": 780, "scored": 780, "by_reason": {}, "beside": {"suite/caps": caps}})
    '780/780 scored; beside the audit: suite/caps 57/60 (3 provider_error)'
    """
    text = f"{coverage['scored']}/{coverage['planned']} scored"
    others = [
        f"{name} {rows['scored']}/{rows['planned']}" + (f" ({_reasons(rows)})" if rows["by_reason"] else "")
        for name, rows in coverage.get("beside", {}).items()
    ]
    return f"{text}; beside the audit: {', '.join(others)}" if others else text


def _reasons(coverage: Mapping[str, Any]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in coverage["by_reason"].items())


def headline(scorecard: Mapping[str, Any]) -> str:
    """The uplift in one sentence. An uplift that an error withholds is never printed as a number that won."""
    errors = [finding for finding in scorecard["validity"] if finding["severity"] == "error"]
    row = next((row for row in scorecard["criteria"] if row["id"] == HEADLINE), None)
    if errors:
        codes = ", ".join(dict.fromkeys(finding["code"] for finding in errors))
        unidentified = "; uplift not identified" if any("not identified" in f["message"] for f in errors) else ""
        return f"withheld: {codes}{unidentified}"
    if row is None or row["status"] == "not_run":
        why = row["reasons"][0] if row and row["reasons"] else "no such criterion in this rubric"
        return f"not measured: {why}"
    measured = dict(row["measured"])
    claimable = scorecard["complete"] and measured.get("held_out") is True
    if not claimable:
        measured.pop("decision", None)  # the word "shown" is for complete, held-out comparisons only
    text = uplift_text(measured) + _beside_control(measured.get("equal_dollars"))
    if scorecard["complete"] and not claimable:
        return f"{text}: not known to be held out, no claim"
    if not scorecard["complete"]:
        return f"INCOMPLETE {scorecard['coverage']['scored']}/{scorecard['coverage']['planned']}, no claim: {text}"
    return text


def _beside_control(control: Mapping[str, Any] | None) -> str:
    """What one model does for the same money, where the compound is not shown to do better; empty otherwise."""
    if not control or control.get("uplift") is None:
        return ""
    if control["uplift"] > 0 and control.get("decision") == "shown":
        return ""
    says = "no uplift" if control["uplift"] <= 0 else "no uplift shown"
    model = "" if control.get("of_best_single") else f" (of {control['of']}, not of the best single)"
    return (
        f"; {says} over {control['over']}{model} at equal dollars: {points(control['uplift'])} points, "
        f"{control['wins']} won, {control['losses']} lost of {control['n']}, exact p {p_text(control.get('exact_p'))}"
    )


def _p_values(measured: Mapping[str, Any]) -> str:
    """The p that decides, named: exact McNemar, or the larger of it and a permutation over clusters or members."""
    exact, deciding = measured.get("exact_p"), measured.get("decision_p", measured.get("exact_p"))
    beside = f"mid-p {p_text(measured.get('mid_p'))}"
    if exact == deciding:
        return f"exact p {p_text(exact)} ({beside})"
    clustered = measured.get("clustered_p")
    how = "permutation over clusters" if clustered == deciding else "the largest over all members"
    return f"p {p_text(deciding)} ({how}; exact {p_text(exact)}, {beside})"


def uplift_text(measured: Mapping[str, Any]) -> str:
    """Uplift, member, interval, counts and p of one comparison, with the words that its p allows."""
    text = (
        f"{points(measured.get('uplift'))} points over {measured.get('over', 'n/a')} "
        f"{interval(measured.get('tango_low'), measured.get('tango_high'))} (Tango), "
        f"{measured.get('wins', 'n/a')} won, {measured.get('losses', 'n/a')} lost of {measured.get('n', 'n/a')}, "
        f"{_p_values(measured)}"
    )
    decision = measured.get("decision")
    return f"{text}: {decision}" if decision else text
