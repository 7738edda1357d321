"""Paired comparison of two arms over the same tasks: McNemar's test and intervals for the uplift.

Per task, a win is "the compound right and the other arm wrong", a loss the reverse; tasks on which both agree carry
no evidence about the difference. The uplift is d = (wins - losses)/n, a share of 1 (0.086 is +8.6 points).

One rule decides for every caller (`decision`): the exact p below alpha is "shown"; when only the mid-p is below alpha
it reads "borderline: not shown".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from pytest_fusion_audit.stats.binomial import coin_mass, coin_tail
from pytest_fusion_audit.stats.interval import Interval, two_sided_z
from pytest_fusion_audit.stats.newcombe import newcombe_interval
from pytest_fusion_audit.stats.tango import tango_interval
from pytest_fusion_audit.stats.validation import choice, open_share, paired_counts, probability, whole_number

Decision = Literal["shown", "borderline: not shown", "not shown"]
"""How a comparison reads; None stands beside it for a comparison that was never made."""

SHOWN: Final = "shown"
BORDERLINE: Final = "borderline: not shown"
NOT_SHOWN: Final = "not shown"


def decision(exact_p: float | None, mid_p: float | None, alpha: float = 0.05) -> Decision | None:
    """Return how a comparison reads at ``alpha``: the only rule, whoever asks.

    Args:
        exact_p: the p value that decides, None when nothing was compared.
        mid_p: its mid-p companion, which can only make a result "borderline"; None when there is none.
        alpha: two-sided size of the test; a p equal to it does not reject.

    Returns:
        "shown" when exact_p < alpha, "borderline: not shown" when only mid_p < alpha, else "not shown";
        None when exact_p is None.

    Raises:
        ValueError: a p lies outside [0, 1] or alpha outside (0, 1).

    >>> decision(0.0625, 0.03125)
    'borderline: not shown'

    """
    size = open_share("alpha", alpha)
    if exact_p is None:
        return None
    if probability("exact_p", exact_p) < size:
        return SHOWN
    if mid_p is not None and probability("mid_p", mid_p) < size:
        return BORDERLINE
    return NOT_SHOWN


@dataclass(frozen=True, slots=True)
class PairedTest:
    """McNemar's test of "wins and losses are equally likely", in its usual forms; all two-sided.

    Attributes:
        exact_p: exact binomial p; it decides every claim.
        mid_p: exact p less the probability of the observed split (Fagerland, Lydersen, Laake 2013).
        chi2: (w - l)**2/(w + l), McNemar's statistic without correction, 1 degree of freedom.
        chi2_p: its asymptotic p; too small with few pairs (5 to 0 reads .025, exactly it is .0625).
        chi2_cc: max(abs(w - l) - 1, 0)**2/(w + l), with the continuity correction (Edwards 1948).
        chi2_cc_p: its asymptotic p, for comparison with older reports.

    Every field is None when there was no task; with tasks but no discordant one every p is 1 and both statistics 0.
    The six fields know no direction: compare wins with losses for that.

    """

    exact_p: float | None
    mid_p: float | None
    chi2: float | None
    chi2_p: float | None
    chi2_cc: float | None
    chi2_cc_p: float | None

    def decision(self, alpha: float = 0.05) -> Decision | None:
        """Return how this test reads at ``alpha``; see the function `decision`.

        Raises:
            ValueError: alpha lies outside (0, 1).

        >>> [paired_test(w, l).decision() for w, l in [(6, 0), (5, 0), (4, 0)]]
        ['shown', 'borderline: not shown', 'not shown']

        """
        return decision(self.exact_p, self.mid_p, alpha)


def _chi_square_p(statistic: float) -> float:
    # The upper tail of chi-square with one degree of freedom is the two-sided normal tail.
    return math.erfc(math.sqrt(statistic / 2.0))


def paired_test(wins: int, losses: int, n: int | None = None) -> PairedTest:
    """Test a paired difference: exact and mid-p McNemar, with both chi-square forms beside them.

    exact = min(1, 2 P(X <= min(wins, losses))) for X ~ Bin(wins + losses, 1/2); mid-p = exact - P(X = min), and
    1 - P(X = min)/2 when wins = losses > 0 (Fagerland, Lydersen, Laake 2013, eq. 4 and 5).

    Args:
        wins: tasks only the first arm solved, a count.
        losses: tasks only the second arm solved, a count.
        n: all tasks compared; it only tells "nothing compared" (0: every field None) from "no disagreement"
            (p = 1, statistic 0). None, unknown, is treated as the latter.

    Raises:
        ValueError: a count is no whole number >= 0, or wins + losses > n.

    >>> test = paired_test(31, 12, 220)
    >>> round(test.exact_p, 4), round(test.mid_p, 4), test.decision()
    (0.0054, 0.0037, 'shown')
    >>> paired_test(0, 0, 0).exact_p is None
    True

    """
    won, lost = whole_number("wins", wins), whole_number("losses", losses)
    if n is not None and paired_counts(won, lost, n)[2] == 0:
        return PairedTest(None, None, None, None, None, None)
    discordant, smaller, gap = won + lost, min(won, lost), abs(won - lost)
    if discordant == 0:
        return PairedTest(1.0, 1.0, 0.0, 1.0, 0.0, 1.0)
    mass = coin_mass(smaller, discordant)
    exact = min(1.0, 2.0 * coin_tail(smaller, discordant))
    mid = 1.0 - mass / 2.0 if gap == 0 else max(0.0, exact - mass)
    chi2 = gap * gap / discordant
    chi2_cc = max(gap - 1, 0) ** 2 / discordant
    return PairedTest(exact, mid, chi2, _chi_square_p(chi2), chi2_cc, _chi_square_p(chi2_cc))


def loss_detected(wins: int, losses: int, n: int | None = None, alpha: float = 0.05) -> bool | None:
    """Return whether the other arm is significantly better, by the less forgiving mid-p.

    A claim needs the exact p; a warning of harm must not hide behind its conservatism, so losses are detected by
    mid-p.

    Args:
        wins: tasks only the first arm solved, a count.
        losses: tasks only the second arm solved, a count.
        n: all tasks compared, or None when unknown.
        alpha: two-sided size of the test.

    Returns:
        True when losses > wins and mid-p < alpha; None when n is 0.

    Raises:
        ValueError: counts as in `paired_test`; alpha outside (0, 1).

    >>> loss_detected(0, 5), loss_detected(5, 0)
    (True, False)

    """
    size = open_share("alpha", alpha)
    mid = paired_test(wins, losses, n).mid_p
    return None if mid is None else int(losses) > int(wins) and mid < size


def paired_interval(  # noqa: PLR0917 - the four counts of the table, and how to read them
    wins: int,
    losses: int,
    n: int,
    both: int | None = None,
    level: float = 0.95,
    method: Literal["tango", "newcombe"] = "tango",
) -> Interval | None:
    """Return an interval for the uplift d = (wins - losses)/n.

    Args:
        wins: tasks only the first arm solved, a count.
        losses: tasks only the second arm solved, a count.
        n: all tasks compared, a count.
        both: tasks both arms solved; Newcombe's interval needs it, Tango's does not depend on it.
        level: coverage, two-sided. The lower bound at level 0.90 is the one-sided 95 % bound.
        method: "tango", the score interval (Tango 1998), or "newcombe", square-and-add with his continuity
            corrected phi (Newcombe 1998, method 10) as a check.

    Returns:
        `Interval` in shares of 1, inside [-1, 1]; None when n is 0, since nothing is known then.

    Raises:
        ValueError: a count is no whole number >= 0, wins + losses (+ both) > n, level outside (0, 1), an unknown
            method, or Newcombe's without ``both``.

    >>> [round(bound, 4) for bound in paired_interval(31, 12, 220)]
    [0.0292, 0.1465]
    >>> [round(bound, 4) for bound in paired_interval(6, 16, 161, both=59, method="newcombe")]
    [-0.1186, -0.0046]

    """
    won, lost, tasks = paired_counts(wins, losses, n)
    choice("method", method, ("tango", "newcombe"))
    z = two_sided_z(level)
    if both is not None and won + lost + whole_number("both", both) > tasks:
        raise ValueError(f"wins + losses + both must not exceed n, but {won} + {lost} + {both} > {tasks}")
    if method == "newcombe":
        if both is None:
            raise ValueError("both is needed by method 'newcombe': the count of tasks that both arms solved")
        return newcombe_interval(int(both), won, lost, tasks, z)
    return tango_interval(won, lost, tasks, z)


def paired_lower_bound(wins: int, losses: int, n: int, level: float = 0.95) -> float | None:
    """Return the one-sided lower Tango bound of the uplift: "worse by more than this is excluded".

    Args:
        wins: tasks only the first arm solved, a count.
        losses: tasks only the second arm solved, a count.
        n: all tasks compared, a count.
        level: one-sided coverage.

    Returns:
        A share of 1 inside [-1, 1]; None when n is 0.

    Raises:
        ValueError: counts as in `paired_interval`; level outside (0, 1).

    >>> round(paired_lower_bound(10, 10, 100), 4)
    -0.0763

    """
    won, lost, tasks = paired_counts(wins, losses, n)
    # z of the one-sided level; below 0.5 it is negative and there is no two-sided level that would give it.
    share = open_share("level", level)
    if share <= 0.5:
        raise ValueError(f"level of a one-sided bound must be above 0.5, not {level!r}")
    bounds = tango_interval(won, lost, tasks, two_sided_z(2.0 * share - 1.0))
    return None if bounds is None else bounds.low
