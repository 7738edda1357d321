"""The adaptive limit: shrinks on 429 only and once a round, grows slowly, first come first served."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fusion_audit.metering.concurrency import AdaptiveLimit, Concurrency


def open_calls(limit: AdaptiveLimit, statuses: list[int | None]) -> int:
    """Let as many calls as there are statuses run at once; returns the most that were open."""

    async def main() -> int:
        most = 0

        async def call(status: int | None) -> None:
            nonlocal most
            async with limit.slot() as slot:
                most = max(most, limit.open)
                await asyncio.sleep(0)
                slot.tell(status)

        await asyncio.gather(*(call(status) for status in statuses))
        return most

    return asyncio.run(main())


def test_no_more_than_the_limit_are_open() -> None:
    limit = AdaptiveLimit(5)
    assert open_calls(limit, [200] * 50) == 5
    assert (limit.open, limit.limit) == (0, 5.0)


def test_429s_of_one_round_shrink_it_once() -> None:
    limit = AdaptiveLimit(10)
    open_calls(limit, [429] * 10)
    assert limit.limit == 7.0
    open_calls(limit, [429] * 7)
    assert limit.limit == pytest.approx(4.9)


@pytest.mark.parametrize("status", [500, 503, 529, 400, None])
def test_nothing_else_moves_it(status: int | None) -> None:
    limit = AdaptiveLimit(10, start=4)
    open_calls(limit, [status] * 20)
    assert limit.limit == 4.0


def test_it_grows_by_about_one_a_round_and_never_past_the_most() -> None:
    limit = AdaptiveLimit(6, start=2)
    open_calls(limit, [200] * 2)
    assert 2.8 < limit.limit <= 3.0
    open_calls(limit, [200] * 60)
    assert limit.limit == 6.0


def test_it_never_falls_below_one() -> None:
    limit = AdaptiveLimit(3)
    for _ in range(20):
        open_calls(limit, [429])
    assert limit.limit == 1.0
    assert open_calls(limit, [200]) == 1


def test_an_exception_in_a_call_gives_its_slot_back() -> None:
    limit = AdaptiveLimit(1)

    async def main() -> None:
        with pytest.raises(ValueError, match="x"):
            async with limit.slot():
                raise ValueError("x")
        async with limit.slot():
            pass

    asyncio.run(main())


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([200, 429, 503, None]), st.booleans()), max_size=25),
    st.integers(1, 4),
)
def test_slots_are_never_lost(calls: list[tuple[int, int | None, bool]], most: int) -> None:
    limit = AdaptiveLimit(most)

    async def main() -> None:
        async def call(steps: int, status: int | None) -> None:
            async with limit.slot() as slot:
                assert limit.open <= most
                for _ in range(steps):
                    await asyncio.sleep(0)
                slot.tell(status)

        tasks = []
        for steps, status, cancelled in calls:
            tasks.append(asyncio.ensure_future(call(steps, status)))
            await asyncio.sleep(0)
            if cancelled:
                tasks[-1].cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert limit.open == 0
    assert not limit._waiting
    assert 1 <= limit.limit <= most


def test_the_first_to_come_is_the_first_to_go() -> None:
    limit = AdaptiveLimit(1)
    begun: list[int] = []

    async def main() -> None:
        async def call(number: int) -> None:
            async with limit.slot():
                begun.append(number)
                await asyncio.sleep(0)

        await asyncio.gather(*(call(number) for number in range(6)))

    asyncio.run(main())
    assert begun == list(range(6))


def test_limits_are_per_model() -> None:
    concurrency = Concurrency(most=4, per_model={"claude-opus-4-8": 2})
    assert [concurrency.of(name).most for name in ("gpt-5.5", "claude-opus-4-8")] == [4, 2]
    assert concurrency.of("gpt-5.5") is concurrency.of("gpt-5.5")


@pytest.mark.parametrize(("most", "start"), [(0, None), (3, 4), (3, 0)])
def test_a_limit_that_lets_nobody_through_is_refused(most: int, start: int | None) -> None:
    with pytest.raises(ValueError, match="lets nobody through"):
        AdaptiveLimit(most, start)
