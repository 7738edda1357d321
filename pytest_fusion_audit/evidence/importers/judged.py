"""When a score is a pass, and rows whose score and whose ``passed`` say different things.

One bar stands for everybody: a score of 1 passes. A compound that is judged by a flag of its own, beside members that
are judged by their scores, would win on every task that all of them nearly solved. Of a row that contradicts itself
neither word is believed: it is excluded on both sides of every pair, counted and named.
"""

from __future__ import annotations

from typing import Final

from pytest_fusion_audit.evidence.records import Note

#: A score of this and more passes; the difference to 1 is what adding up fractions of tests may lose.
PASSING: Final = 1.0 - 1e-9
#: Reason of a row whose score and verdict contradict each other.
CONTRADICTED: Final = "passed_and_score_disagree"


def passes(score: float) -> bool:
    """Whether a score is a pass, for members and compounds alike.

    >>> passes(1), passes(0.999), passes(sum([0.1] * 10))
    (True, False, True)
    """
    return score >= PASSING


def contradict(passed: bool | None, score: float | None) -> bool:
    """Whether a verdict and a score of one row say different things by the bar that stands for everybody."""
    return passed is not None and score is not None and passed != passes(score)


def surely_contradict(passed: bool | None, score: float | None) -> bool:
    """The same where the file's verdicts may rest on a bar of its own: passed at 0, or failed at a full score."""
    return contradict(passed, score) and score is not None and (score <= 0 or passes(score))


def contradictions(ids: list[str]) -> list[Note]:
    """Note on rows that contradict themselves; none when there are none."""
    if not ids:
        return []
    text = (
        f"{len(ids)} rows whose passed and score contradict each other (a score of 1 passes, below it fails, for "
        "members and compound alike): excluded on both sides"
    )
    return [Note(code="totals_disagree", message=text, count=len(ids), items=tuple(ids[:10]))]
