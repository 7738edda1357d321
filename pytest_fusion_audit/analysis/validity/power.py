"""underpowered, never_worse_unproven: what so few tasks could and could not have shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pytest_fusion_audit.analysis.arms import ArmRef
from pytest_fusion_audit.analysis.memo import per_evidence
from pytest_fusion_audit.analysis.validity.facts import compounds, member_arms, source_files, where
from pytest_fusion_audit.analysis.validity.finding import Finding, criteria, files, points
from pytest_fusion_audit.analysis.validity.pairs import pair
from pytest_fusion_audit.analysis.validity.split_roles import headline_splits
from pytest_fusion_audit.evidence.records import Claim, ComparisonPlan
from pytest_fusion_audit.stats import paired_lower_bound, paired_test

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_fusion_audit.evidence.container import Evidence

#: Power below which a registered n cannot carry its claim.
LEAST_POWER = 0.80
#: Registered effect and discordance where a registration states none (statistics.md, before phase 3).
EXPECTED_UPLIFT = 0.08
EXPECTED_DISCORDANCE = 0.16
#: Criterion 1.3's bar.
SMALLEST_UPLIFT = 0.03
#: Loss that a never-worse claim has to exclude, one-sided 95 %.
TOLERATED_LOSS = 0.05

OF_POWER = {
    "primary": criteria("1.1", "1.3"),
    "replication": criteria("1.2", "1.3"),
    "non_coding": criteria("1.6"),
}
ANY_ROLE = criteria("1.1", "1.2", "1.3")
OF_SIZE = criteria("1.3")
NEVER_WORSE = criteria("1.4")


@dataclass(frozen=True, slots=True)
class Counts:
    """One headline comparison: from rows, or as a file states it where it keeps no rows of the member."""

    ref: ArmRef
    other: str
    wins: int
    losses: int
    n: int
    sources: tuple[str, ...]
    stated: bool = False

    @property
    def discordance(self) -> float:
        """Share of tasks on which the two disagree."""
        return (self.wins + self.losses) / self.n

    @property
    def uplift(self) -> float:
        """Uplift over the other arm."""
        return (self.wins - self.losses) / self.n

    def words(self) -> str:
        """The comparison with its counts."""
        how = ", as the file states" if self.stated else ""
        return f"{self.ref.arm} against {self.other} {self.wins} won, {self.losses} lost of {self.n}{how}"


@per_evidence
def headline_comparisons(evidence: Evidence) -> tuple[Counts, ...]:
    """Compounds against every member on headline splits, incumbents only where there are any."""
    found: list[Counts] = []
    for suite, split in headline_splits(evidence):
        arms = compounds(evidence, suite, split)
        members = member_arms(evidence, suite, split)
        for arm in [arm for arm in arms if "@" not in arm] or arms:
            ref = ArmRef(suite, split, arm)
            sources = source_files(evidence, suite, split, [arm])
            for member in members:
                counts = pair(evidence, ref, ArmRef(suite, split, member))
                if counts.n and max(counts.seeds) == 1:
                    more = source_files(evidence, suite, split, [member])
                    found.append(Counts(ref, member, counts.wins, counts.losses, counts.n, files([*sources, *more])))
            if not members:
                found.extend(_stated(evidence, ref, sources))
    return tuple(found)


def _stated(evidence: Evidence, ref: ArmRef, sources: Sequence[str]) -> list[Counts]:
    """The comparison with the best single that a file states, where it keeps no rows of any member."""
    stated: dict[str, dict[str, Claim]] = {}
    for claim in evidence.of(Claim):
        first, _, other = (claim.arm or "").partition("~")
        if (claim.suite, claim.split) == ref[:2] and first == ref.arm and other:
            stated.setdefault(other, {})[claim.quantity] = claim
    n = sum(row.passed is not None for row in evidence.arm(*ref).values())
    found = []
    for other, values in sorted(stated.items()):
        wins, losses = (_count(values.get(name)) for name in ("wins", "losses"))
        if wins is not None and losses is not None and n and wins + losses <= n:
            found.append(Counts(ref, other, wins, losses, n, files([*sources, values["wins"].source]), stated=True))
    return found


def _count(claim: Claim | None) -> int | None:
    value = None if claim is None else claim.value
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def underpowered(evidence: Evidence) -> list[Finding]:
    """Registrations that could not show their effect, and headline comparisons that could not show 1.3's."""
    return [*_registered(evidence), *_too_few_for_size(evidence)]


def _tasks_needed(
    uplift: float, discordance: float, *, alpha: float = 0.05, method: Literal["exact", "normal"] = "exact"
) -> int | None:
    # Imported here: it brings scipy.special, which a replay without a null result does without.
    from pytest_fusion_audit.stats import required_tasks  # noqa: PLC0415

    return required_tasks((discordance + uplift) / 2, (discordance - uplift) / 2, alpha=alpha, method=method)


def _power(uplift: float, discordance: float, n: int, alpha: float) -> float:
    from pytest_fusion_audit.stats import paired_power  # noqa: PLC0415 - as above

    return paired_power((discordance + uplift) / 2, (discordance - uplift) / 2, n, alpha=alpha) if n > 0 else 0.0


def _registered(evidence: Evidence) -> list[Finding]:
    findings = []
    for plan in evidence.of(ComparisonPlan):
        uplift = EXPECTED_UPLIFT if plan.expected_uplift is None else plan.expected_uplift
        discordance = EXPECTED_DISCORDANCE if plan.expected_discordance is None else plan.expected_discordance
        discordance = max(discordance, abs(uplift))
        power = _power(uplift, discordance, plan.n, plan.alpha)
        if power < LEAST_POWER:
            needed = _tasks_needed(uplift, discordance, alpha=plan.alpha)
            message = (
                f"{where(plan.suite, plan.split)}: the registered {plan.n} tasks have {100 * power:.0f} % power for "
                f"{points(uplift)} at discordance {discordance:.3f} (exact test, alpha {plan.alpha:g}), 80 % need "
                f"{needed} tasks"
            )
            affects = OF_POWER.get(plan.role or "", ANY_ROLE)
            findings.append(Finding("underpowered", "error", message, files([plan.source]), affects))
    return findings


def _too_few_for_size(evidence: Evidence) -> list[Finding]:
    """One warning for all headline comparisons that do not show 1.3's uplift and could not have."""
    told: dict[str, str] = {}
    sources: list[str] = []
    for counts in headline_comparisons(evidence):
        p = paired_test(counts.wins, counts.losses, counts.n).exact_p
        if p is not None and p < 0.05 and counts.uplift >= SMALLEST_UPLIFT:
            continue
        needed = _tasks_needed(SMALLEST_UPLIFT, max(counts.discordance, SMALLEST_UPLIFT), method="normal")
        if needed is None or counts.n >= needed:
            continue
        place = f"{where(*counts.ref)} against {counts.other}"
        told[place] = f"{place}: {counts.n} tasks, {needed:,} needed at discordance {counts.discordance:.3f}"
        sources.extend(counts.sources)
    if not told:
        return []
    message = f"too few tasks to show {points(SMALLEST_UPLIFT)} with 80 % power: {'; '.join(told.values())}"
    return [Finding("underpowered", "warning", message, files(sources), OF_SIZE)]


def never_worse_unproven(evidence: Evidence) -> list[Finding]:
    """Suites on which a loss of more than 5 points against some member is not excluded; one finding per suite."""
    by_suite: dict[str, list[tuple[float, Counts]]] = {}
    for counts in headline_comparisons(evidence):
        low = paired_lower_bound(counts.wins, counts.losses, counts.n)
        if low is not None and low < -TOLERATED_LOSS:
            by_suite.setdefault(counts.ref.suite, []).append((low, counts))
    findings = []
    for suite, found in sorted(by_suite.items()):
        low = min(bound for bound, _ in found)
        ranked = sorted(found, key=lambda item: (item[0], item[1].ref, item[1].other))
        texts = [f"{where(*counts.ref[:2])} {counts.words()} (bound {points(bound)})" for bound, counts in ranked]
        message = (
            f"{suite}: worse by up to {-100 * low:.1f} points not excluded (one-sided 95 % Tango bound): "
            f"{'; '.join(texts[:5])}" + (f" and {len(texts) - 5} more" if len(texts) > 5 else "")
        )
        sources = files(source for _, counts in found for source in counts.sources)
        findings.append(Finding("never_worse_unproven", "warning", message, sources, NEVER_WORSE))
    return findings
