"""selector_outside_pool, oracle_contains_fused, best_single_post_hoc: figures that contradict the pool they are of."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_fusion_audit.analysis.arms import ArmRef, task_rates, turns_of
from pytest_fusion_audit.analysis.pool import Pool, pool_of
from pytest_fusion_audit.analysis.validity.facts import compounds, is_system, where
from pytest_fusion_audit.analysis.validity.finding import Finding, criteria, files, listed
from pytest_fusion_audit.analysis.validity.split_roles import is_choosing
from pytest_fusion_audit.evidence.container import Evidence, is_member
from pytest_fusion_audit.evidence.records import Claim, Fused

#: Policies whose answer is a candidate, word for word.
SELECTORS = frozenset({"select_best", "exec_select", "judge_pick_verbatim", "exec_select_public_private"})
#: Published rates are often rounded to three or four places.
SAME_RATE = 5e-4

OF_POLICIES = criteria("2.1", "2.3", "3.1", "3.2", "4.1", "4.2")
OF_ORACLE = criteria("2.1", "2.3", "3.2")
OF_BEST_SINGLE = criteria("1.1", "1.2", "1.3", "2.1", "5.1", "7.1")


def policy_of(arm: str) -> str | None:
    """Policy in the name of an arm.

    >>> policy_of("compound:select_best@trunc8000"), policy_of("self:gpt*6:rewrite"), policy_of("compound")
    ('select_best', 'rewrite', None)
    """
    parts = arm.partition("@")[0].split(":")
    least = {"compound": 2, "self": 3}.get(parts[0], 0)
    return parts[-1] if least and len(parts) >= least else None


def selector_outside_pool(evidence: Evidence) -> list[Finding]:
    """Arms that answer with a candidate word for word, and pass where no candidate passes.

    Undecided where the pool is not known to be whole: locked rows hold the first sample of each member only.
    """
    findings = []
    chosen_by = {(turn.suite, turn.split) for turn in evidence.of(Fused) if turn.policy in SELECTORS}
    for suite, split in evidence.splits:
        selectors = [arm for arm in evidence.arms(suite, split) if policy_of(arm) in SELECTORS]
        if not selectors and (suite, split) not in chosen_by:
            continue
        pool = pool_of(evidence, suite, split)
        told: list[str] = []
        sources: set[str] = set()
        for arm in evidence.arms(suite, split):
            outside, decided = _outside(evidence, ArmRef(suite, split, arm), pool)
            if outside:
                told.append(f"{arm} on {len(outside)} of {decided} ({listed(outside)})")
                sources.update(evidence.arm(suite, split, arm)[task].source for task in outside)
                sources.update(c.source for task in outside for c in evidence.candidates(suite, split).get(task, ()))
        if told:
            message = (
                f"{where(suite, split)}: selects a candidate verbatim and passes where every candidate fails: "
                f"{'; '.join(told)}. Either it falls back to a written answer where nothing was picked, or one answer "
                "got two verdicts"
            )
            findings.append(Finding("selector_outside_pool", "error", message, files(sources), OF_POLICIES))
    return findings


def _outside(evidence: Evidence, ref: ArmRef, pool: Pool) -> tuple[list[str], int]:
    """Tasks the arm passes outside its pool, and the tasks on which that can be told."""
    turns = {turn.task: turn for turn in turns_of(evidence, ref.suite, ref.split) if turn.arm == ref.arm}
    outside: list[str] = []
    decided = 0
    for task, row in sorted(evidence.arm(*ref).items()):
        turn = turns.get(task)
        policy = policy_of(ref.arm) or (turn.policy if turn is not None else None)
        if policy not in SELECTORS or row.passed is None or _wrote_instead(turn):
            continue
        verdicts = _shown(turn, pool, ref, task)
        if verdicts is None or any(verdict is None for verdict in verdicts):
            continue
        decided += 1
        if row.passed and not any(verdicts):
            outside.append(task)
    return outside, decided


def _wrote_instead(turn: Fused | None) -> bool:
    """Whether the turn is known to have answered with something else than a candidate."""
    return turn is not None and (turn.pick_status in {"none", "parse_failure"} or turn.fallback is not None)


def _shown(turn: Fused | None, pool: Pool, ref: ArmRef, task: str) -> list[bool | None] | None:
    """Verdicts of the candidates an arm chose from; None when they are not known to be all there."""
    verdicts = pool.verdicts.get(task, {})
    if turn is not None and turn.candidate_ids:
        return [verdicts.get(name) for name in turn.candidate_ids]
    incumbent = is_system(ref.arm) and "@" not in ref.arm
    return list(verdicts.values()) if pool.whole and incumbent and verdicts else None


def oracle_contains_fused(evidence: Evidence) -> list[Finding]:
    """Oracles a file states that are reached only by counting the fused answer as a candidate.

    Such an oracle cannot be exceeded: no rescue shows, and regret is never negative. Decided where the candidates are
    all there, or where the file that states the oracle is the file of the rows.
    """
    findings = []
    for claim in evidence.of(Claim):
        if claim.quantity != "oracle" or claim.suite is None or claim.split is None:
            continue
        if isinstance(claim.value, bool) or not isinstance(claim.value, (int, float)):
            continue
        pool = pool_of(evidence, claim.suite, claim.split)
        arms = [claim.arm] if claim.arm else list(compounds(evidence, claim.suite, claim.split))
        for arm in arms:
            ref = ArmRef(claim.suite, claim.split, arm)
            rates = task_rates(evidence, ref)
            shared = sorted(pool.tasks.keys() & rates.keys())
            rows = evidence.arm(*ref)
            if not shared or not (pool.whole or any(claim.source in files([rows[task].source]) for task in shared)):
                continue
            candidates = sum(pool.right(task) > 0 for task in shared)
            with_fused = sum(pool.right(task) > 0 or rates[task] > 0 for task in shared)
            n = len(shared)
            stated_with = abs(claim.value - with_fused / n) <= SAME_RATE
            if stated_with and with_fused > candidates:
                message = (
                    f"{claim.source}: the oracle it states for {where(*ref)} ({claim.value:.4f} of {n}) counts the "
                    f"fused answer: candidates alone reach {candidates} of {n}, candidates or {arm} {with_fused}; no "
                    "fused arm can exceed it"
                )
                sources = files([claim.source, *(rows[task].source for task in shared)])
                findings.append(Finding("oracle_contains_fused", "error", message, sources, OF_ORACLE))
                break
    return findings


def best_single_post_hoc(evidence: Evidence) -> list[Finding]:
    """Best singles that a file names on the split it evaluates, without a registration that named them before."""
    told: dict[str, set[str]] = {}
    names: dict[str, set[str]] = {}
    sources: set[str] = set()
    for claim in evidence.of(Claim):
        if claim.quantity != "best_single" or claim.suite is None or claim.split is None or is_choosing(claim.split):
            continue
        pool = pool_of(evidence, claim.suite, claim.split)
        name = _named(claim)
        if pool.named is not None or name is None:
            continue
        rates = {member: rate for member, rate in pool.matrix.pass_rates().items() if rate is not None}
        best = not rates or rates.get(name) == max(rates.values())
        if best:
            n = f" (the highest of {len(rates)} on these {pool.n} tasks)" if rates else ""
            told.setdefault(where(claim.suite, claim.split), set()).add(f"{name}{n}")
            names.setdefault(claim.suite, set()).add(name)
            sources.add(claim.source)
    if not told:
        return []
    places = "; ".join(f"{place}: {listed(singles)}" for place, singles in sorted(told.items()))
    message = (
        f"best single chosen on the evaluated split, and the file does not say so: {places}; name it on dev, or "
        "compare with every member"
    )
    return [Finding("best_single_post_hoc", "warning", message, files(sources), OF_BEST_SINGLE)]


def _named(claim: Claim) -> str | None:
    value = claim.value
    if isinstance(value, Mapping):
        value = value.get("arm", value.get("model"))
    if not isinstance(value, str):
        return claim.arm.removeprefix("member:") if claim.arm is not None and is_member(claim.arm) else None
    return value.removeprefix("member:")
