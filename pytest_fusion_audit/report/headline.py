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
    reasons = ", ".join(f"{count} {reason}" for reason, count in coverage["by_reason"].items())
    return f"INCOMPLETE {coverage['scored']}/{coverage['planned']}" + (f" rows: {reasons}" if reasons else "")


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
    text = uplift_text(measured)
    if scorecard["complete"] and not claimable:
        return f"{text}: not known to be held out, no claim"
    if not scorecard["complete"]:
        return f"INCOMPLETE {scorecard['coverage']['scored']}/{scorecard['coverage']['planned']}, no claim: {text}"
    return text


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
