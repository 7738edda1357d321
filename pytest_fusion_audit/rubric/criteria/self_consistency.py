"""2.5: the panel against one of its own models, sampled as often. How much is diversity, how much only more draws?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.samples import SelfConsistency, matched_samples, self_consistency
from pytest_fusion_audit.analysis.validity.compute import samples_of
from pytest_fusion_audit.analysis.validity.pairs import with_p
from pytest_fusion_audit.rubric.capping import Figure, capped, not_run
from pytest_fusion_audit.rubric.default_policy import default_policy
from pytest_fusion_audit.rubric.evaluations import evidence_files, figures, holding_of, suite_facts

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.rubric.loading import Criterion
    from pytest_fusion_audit.rubric.score import Score


def beats_self_consistency(criterion: Criterion, evidence: Evidence) -> Score:
    """Exact McNemar of the compound against one model sampled as often and fused with itself.

    Each self arm meets the compound of its policy; where no default policy is recorded every matched policy has to win,
    and the largest p decides.
    """
    pairs = _pairs(evidence)
    if not pairs:
        return not_run(
            criterion,
            evidence,
            "needs a billed measurement: one model sampled as often as the panel, on the panel's tasks",
        )
    decisive = max(pairs, key=lambda pair: (not pair.comparison.shows_uplift, pair.comparison.decision_p or 0.0))
    comparison = decisive.comparison
    suite, split, arm = comparison.first
    holding = holding_of(evidence, suite, split)
    deepest = matched_samples(evidence, suite, split)[-1:]
    measured: dict[str, JsonValue] = {
        **figures(comparison),
        "arm": str(comparison.first),
        "over": comparison.second.arm,
        "samples": decisive.samples,
        "panel_samples": _panel_samples(evidence, decisive),
        "policies": {f"{p.comparison.first.arm}~{p.comparison.second.arm}": figures(p.comparison) for p in pairs},
        "oracle_gap_at_matched_samples": {str(found.samples): found.gap for found in deepest},
    }
    return capped(
        criterion,
        evidence,
        Figure(
            met=True,
            measured=measured,
            sources=frozenset({"billed", "locked"}) if holding == "held out" else frozenset({"billed"}),
            lacking={"locked": "the self arm and the panel on a locked split"},
            evidence=evidence_files(
                evidence, [ref for p in pairs for ref in (p.comparison.first, p.comparison.second)]
            ),
            holding=holding,
            where=f"{suite}/{split}",
            n=comparison.n,
            p=comparison.decision_p,
            shown=comparison.shows_uplift,
            caps=_caps(evidence, decisive, suite),
            shortfalls=()
            if comparison.shows_uplift
            else (f"{arm} over {comparison.second.arm}: {with_p(comparison)}",),
        ),
    )


def _pairs(evidence: Evidence) -> list[SelfConsistency]:
    """Comparisons of one split: a held-out one, else the largest; of the default policy where it is known."""
    by_split: dict[tuple[str, str], list[SelfConsistency]] = {}
    for suite, split in evidence.splits:
        found = [
            pair
            for pair in self_consistency(evidence, suite, split)
            if pair.comparison.n and "@" not in pair.comparison.first.arm
        ]
        if found:
            by_split[suite, split] = found
    if not by_split:
        return []
    place = min(
        by_split,
        key=lambda key: (holding_of(evidence, *key) != "held out", -max(p.comparison.n for p in by_split[key]), key),
    )
    default = default_policy(evidence)
    of_default = [pair for pair in by_split[place] if default is not None and pair.policy == default]
    return sorted(
        of_default or by_split[place], key=lambda pair: (pair.comparison.first.arm, pair.comparison.second.arm)
    )


def _panel_samples(evidence: Evidence, pair: SelfConsistency) -> float | None:
    """Samples behind the panel's answer: by its turns, else by whatever else of the run tells."""
    if pair.panel_samples is not None:
        return pair.panel_samples
    known = samples_of(evidence, pair.comparison.first)
    return None if known is None else known.count


def _caps(evidence: Evidence, pair: SelfConsistency, suite: str) -> tuple[str, ...]:
    caps = []
    panel = _panel_samples(evidence, pair)
    if panel is None:
        caps.append(
            f"samples of the panel's turns not recorded: {pair.samples} of {pair.member} are not known to match"
        )
    elif panel != pair.samples:
        caps.append(f"samples differ: {pair.samples} of {pair.member}, {panel:g} of the panel")
    if suite_facts(evidence, suite).get("coding") is not True:
        caps.append(f"{suite} is not known to be about code")
    return tuple(caps)
