"""What sets of arms solve together: oracles of subsets over bit-packed columns, and Shapley values.

"Some arm of the set passes" is a coverage game over tasks. With one bit per task, the oracle of a set is the number of
ones in the OR of its columns, so thousands of sets cost a few array operations.
"""

from __future__ import annotations

from itertools import chain, combinations, islice
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_SETS_AT_A_TIME: Final = 16_384  # bounds memory: a chunk of sets times one word per 64 tasks
_WORD_BYTES: Final = 8
_ONES_PER_BYTE: Final = np.array([value.bit_count() for value in range(256)], dtype=np.uint8)


def _packed(passed: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return one row of 64-bit words per arm, one bit per task; at least one word."""
    octets = np.packbits(passed, axis=0).T  # arms x bytes
    words = max(1, -(-octets.shape[1] // _WORD_BYTES))
    padded = np.zeros((octets.shape[0], words * _WORD_BYTES), dtype=np.uint8)
    padded[:, : octets.shape[1]] = octets
    return padded.view(np.uint64)


def _ones(words: NDArray[np.uint64]) -> list[int]:
    """Count the bits set in each row."""
    # numpy 1 has no bitwise_count
    bits = np.bitwise_count(words) if hasattr(np, "bitwise_count") else _ONES_PER_BYTE[words.view(np.uint8)]
    return [int(count) for count in bits.sum(axis=1, dtype=np.int64).tolist()]


def subset_solves(passed: NDArray[np.bool_], size: int) -> Iterator[int]:
    """Count the tasks that each set of ``size`` arms solves together.

    Args:
        passed: tasks x arms.
        size: arms in a set, from 0.

    Yields:
        How many tasks at least one arm of the set passes, for the sets in the order of
        ``itertools.combinations(range(arms), size)``.
    """
    columns = _packed(passed)
    numbers = chain.from_iterable(combinations(range(columns.shape[0]), size))
    if size == 0:
        yield 0
        return
    while (members := np.fromiter(islice(numbers, _SETS_AT_A_TIME * size), dtype=np.intp)).size:
        members = members.reshape(-1, size)
        covered = columns[members[:, 0]]
        for place in range(1, size):
            covered |= columns[members[:, place]]
        yield from _ones(covered)


def shapley_solves(passed: NDArray[np.bool_]) -> list[float]:
    """Divide the tasks solved by somebody among the arms by their Shapley values.

    In a coverage game the value has a closed form at any number of arms: a task that s arms solve is a unanimity-like
    game whose solvers are interchangeable and whose other arms add nothing, so each solver gets 1/s of it (Shapley
    1953, symmetry and null player; additivity over tasks).

    Args:
        passed: tasks x arms.

    Returns:
        One value per arm in tasks; they add up to the number of tasks that at least one arm solves.
    """
    solvers = passed.sum(axis=1)
    share = np.divide(1.0, solvers, out=np.zeros(len(solvers)), where=solvers > 0)
    return [float(value) for value in share @ passed]
