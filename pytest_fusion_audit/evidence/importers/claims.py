"""Figures a file states about itself, as claims under the names of our own measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_fusion_audit.evidence.records import Claim

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pytest_fusion_audit.evidence.importers.rows import Row

_REGRET = {
    "oracle_rate": "oracle",
    "judge_pick_rate": "judge_pick_rate",
    "total_regret": "regret/total",
    "judge_regret": "regret/judge",
    "synthesis_regret": "regret/synthesis",
    "judge_pick_accuracy": "judge_pick_accuracy",
    "judge_pick_accuracy_strict": "judge_pick_accuracy_strict",
}


@dataclass(frozen=True, slots=True)
class Claims:
    """Makes the claims of one file about one split."""

    suite: str
    split: str
    source: str

    def of(self, arm: str | None, figures: dict[str, JsonValue], criterion: str | None = None) -> list[Claim]:
        """One claim per figure that is stated."""
        return [
            Claim(
                quantity=name,
                value=value,
                suite=self.suite,
                split=self.split,
                arm=arm,
                criterion=criterion,
                source=self.source,
            )
            for name, value in figures.items()
            if value is not None
        ]

    def regret_split(self, arm: str, row: Row | None) -> list[Claim]:
        """Claims of a ``regret_split`` object about an arm. Its oracle counts the fused answer among the candidates."""
        if row is None:
            return []
        figures: dict[str, JsonValue] = {ours: row.number(theirs) for theirs, ours in _REGRET.items()}
        figures["picks_named"] = row.count("picks_named")
        return self.of(arm, figures)

    def paired(
        self, arm: str, other: str, row: Row | None, prefix: str = "", uplift: float | None = None
    ) -> list[Claim]:
        """Claims of a McNemar object: wins, losses, corrected chi-square, whether its authors call it significant."""
        figures: dict[str, JsonValue] = {"uplift": uplift}
        if row is not None:
            figures |= {
                "wins": row.count(f"{prefix}wins"),
                "losses": row.count(f"{prefix}losses"),
                "chi2_cc": row.number(f"{prefix}statistic"),
                "significant": row.flag("significant"),
            }
        return self.of(f"{arm}~{other}", figures)

    def interval(self, arm: str, row: Row, name: str) -> list[Claim]:
        """Claims of a Wilson interval (z = 1.96) given as ``[low, high]``."""
        value = row.data.get(name)
        if value is None:
            return []
        if not (isinstance(value, list) and len(value) == 2 and all(isinstance(v, (int, float)) for v in value)):
            raise row.refuse(name, "a pair of numbers")
        return self.of(arm, {"wilson_low": value[0], "wilson_high": value[1]})
