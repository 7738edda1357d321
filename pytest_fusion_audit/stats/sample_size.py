"""Sample size of a paired comparison: the tasks an effect needs, and the least uplift that n tasks can show."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

import numpy as np

from pytest_fusion_audit.stats.interval import two_sided_z
from pytest_fusion_audit.stats.power import (
    MAX_TASKS,
    PowerMethod,
    conditional_power,
    discordant_window,
    mean_over_discordant,
    paired_power,
    task_rates,
)
from pytest_fusion_audit.stats.validation import choice, open_share, probability, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable


def _normal_tasks(won: float, lost: float, power: float, alpha: float) -> int:
    discordance, uplift = won + lost, won - lost
    spread = math.sqrt(max(0.0, discordance - uplift * uplift))
    distance = two_sided_z(1.0 - alpha) * math.sqrt(discordance) + NormalDist().inv_cdf(power) * spread
    # A power below the size of the test is had with any n; squared, the distance would claim otherwise.
    return max(1, math.ceil(max(0.0, distance) ** 2 / uplift**2))


def _first_enough(reach: Callable[[int], bool], multiples: int) -> int | None:
    """Return the smallest m in 1..multiples with reach(m), for a ``reach`` that stays true once it is."""
    if not reach(multiples):
        return None
    low, high = 0, multiples
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reach(middle) else (middle, high)
    return high


def _searched_tasks(
    rates: tuple[float, float], target: float, test: tuple[float, str], grid: int, ceiling: int
) -> int | None:
    """Return the first multiple of ``grid`` up to ``ceiling`` (and one more) whose power reaches ``target``."""
    discordance, share = min(1.0, sum(rates)), rates[0] / sum(rates)
    multiples = ceiling // grid + 1
    rejects = conditional_power(discordant_window(multiples * grid, discordance)[1], share, *test)
    # The power is nearly, not quite, increasing in n. With the running maximum over the discordant count it is, and
    # that lies above: no n before this bound reaches the target, so the search may start there and still find the
    # first.
    bound = np.maximum.accumulate(rejects)
    start = _first_enough(lambda m: mean_over_discordant(bound, m * grid, discordance) >= target, multiples)
    if start is None:
        return None
    sizes = range(start * grid, multiples * grid + 1, grid)
    return next((n for n in sizes if mean_over_discordant(rejects, n, discordance) >= target), None)


def _enumerated_tasks(rates: tuple[float, float], target: float, test: tuple[float, str], grid: int) -> int | None:
    """Return the first multiple of ``grid`` whose power reaches ``target``, or None up to `MAX_TASKS`."""
    # The normal approximation only says how large the tables have to be; a small alpha can need more.
    ceiling = min(MAX_TASKS, _normal_tasks(*rates, max(target, 0.5), test[0]) + math.ceil(100.0 / sum(rates)))
    found = _searched_tasks(rates, target, test, grid, ceiling)
    while found is None and ceiling < MAX_TASKS:
        ceiling = min(MAX_TASKS, 2 * ceiling)
        found = _searched_tasks(rates, target, test, grid, ceiling)
    return found


def required_tasks(  # noqa: PLR0917 - the signature is a contract
    p_win: float,
    p_loss: float,
    power: float = 0.8,
    alpha: float = 0.05,
    method: Literal["exact", "mid_p", "normal"] = "exact",
    step: int = 1,
) -> int:
    """Return how many tasks a paired comparison needs: the smallest multiple of ``step`` with enough power.

    With discordance near 1 the power of a discrete test is saw-toothed, so a slightly larger n may fall short again;
    `paired_power` tells for the n that is registered.

    Args:
        p_win: probability that a task is a win.
        p_loss: probability that a task is a loss; it must differ from p_win.
        power: probability of showing the difference that is wanted.
        alpha: two-sided size of the test.
        method: "exact" or "mid_p" enumerate; "normal" is the closed form
            ceil((z_(1-alpha/2) sqrt(d) + z_power sqrt(d - u**2))**2/u**2) with d = p_win + p_loss and
            u = p_win - p_loss (Connor 1987), rounded up to the grid.
        step: grid of n, a count of at least 1.

    Raises:
        ValueError: a probability outside its range, p_win = p_loss (no n shows a difference of nothing), an unknown
            method, step no whole number >= 1, or more than `MAX_TASKS` tasks needed.

    >>> required_tasks(0.12, 0.04, step=5), required_tasks(0.12, 0.04, method="mid_p")
    (210, 191)

    """
    won, lost = task_rates(p_win, p_loss)
    target, size = open_share("power", power), open_share("alpha", alpha)
    grid = whole_number("step", step, least=1)
    choice("method", method, ("exact", "mid_p", "normal"))
    if won == lost:
        raise ValueError(
            f"p_win must differ from p_loss, but both are {p_win}: no number of tasks shows a difference of nothing"
        )
    # An uplift whose square underflows is beyond the table anyway.
    tiny = abs(won - lost) <= 1.0 / MAX_TASKS
    approximate = MAX_TASKS + 1 if tiny else _normal_tasks(won, lost, target, size)
    found: int | None
    if method == "normal":
        found = -(-approximate // grid) * grid
    elif max(approximate, grid) > MAX_TASKS:
        found = None
    else:
        found = _enumerated_tasks((won, lost), target, (size, method), grid)
    if found is None or found > MAX_TASKS:
        raise ValueError(f"p_win {p_win} against p_loss {p_loss} needs more than {MAX_TASKS} tasks")
    return found


def minimum_detectable_uplift(
    n: int,
    *,
    discordance: float | None = None,
    p_loss: float | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    method: PowerMethod = "exact",
) -> float | None:
    """Return the least uplift that n tasks show with the wanted power.

    Exactly one of ``discordance`` and ``p_loss`` says what is held fixed.

    Args:
        n: tasks, a count.
        discordance: p_win + p_loss, held fixed while the uplift grows.
        p_loss: probability of a loss, held fixed while p_win grows.
        power: probability of showing the uplift that is wanted.
        alpha: two-sided size of the test.
        method: "exact" or "mid_p".

    Returns:
        The uplift p_win - p_loss as a share of 1, right to 1e-6 and on the side that has the power; None when even
        the largest possible uplift does not reach it (n = 0 included).

    Raises:
        ValueError: neither or both of discordance and p_loss, a probability outside its range, n no whole number
            >= 0, or an unknown method.

    >>> round(minimum_detectable_uplift(220, discordance=0.16), 3)
    0.078

    """
    tasks, target = whole_number("n", n), open_share("power", power)
    if (discordance is None) == (p_loss is None):
        raise ValueError("discordance or p_loss must be given, and not both")

    def enough(uplift: float) -> bool:
        if discordance is not None:
            won, lost = (discordance + uplift) / 2.0, max(0.0, (discordance - uplift) / 2.0)
        else:
            lost = float(p_loss or 0.0)
            won = lost + uplift
        return paired_power(min(won, 1.0 - lost), lost, tasks, alpha, method) >= target

    if discordance is not None:
        high = probability("discordance", discordance)
    else:
        high = 1.0 - 2.0 * probability("p_loss", p_loss)
    if high <= 0.0 or not enough(high):
        return None
    low = 0.0
    while high - low > 1e-7:
        middle = (low + high) / 2.0
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
