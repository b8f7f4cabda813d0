"""Tests of `vlmcore._net.waiting`."""

from __future__ import annotations

import asyncio

import pytest

from vlmcore._net.waiting import in_time


@pytest.mark.parametrize("rounds", range(6))
def test_a_task_that_is_cancelled_as_news_comes_is_cancelled(rounds: int) -> None:
    """
    And does not go on with the news, as if nobody had said anything.
    """

    async def run() -> None:
        news: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def heard() -> str:
            return await news

        task = asyncio.create_task(in_time(heard(), 30))
        for _ in range(5):
            await asyncio.sleep(0)
        news.set_result("news")
        for _ in range(rounds):
            await asyncio.sleep(0)
        if task.cancel():  # it had not ended yet
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(run())


def test_what_takes_too_long_is_ended_before_that_is_told() -> None:
    """
    Whoever hears of it may use at once what was used.
    """
    said = []

    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            said.append("ended")

    with pytest.raises(TimeoutError):
        asyncio.run(in_time(slow(), 0.01))
    assert ["ended"] == said


def test_what_is_raised_is_raised() -> None:
    """
    As it would be by itself.
    """

    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        asyncio.run(in_time(fail(), 30))
