"""Tests of `vlmcore_robotics.clients._turns`: what every client does around a call."""

from __future__ import annotations

import asyncio

import pytest

from openpi_cases import ROBOT
from vlmcore._net.deadline import Deadline
from vlmcore.policy.interface import PolicyInfo
from vlmcore_robotics.clients._terms import Terms
from vlmcore_robotics.clients._turns import AsyncClient


class Client(AsyncClient):
    """A client without a connection, whose calls wait for news."""

    def __init__(self) -> None:
        super().__init__(
            Terms.agreed(
                "localhost:9",
                schemes=("ws",),
                default_scheme="ws",
                default_port=9,
                embodiment=ROBOT,
                name=None,
                timeout_s=30.0,
                token=None,
                allow_remote=False,
            )
        )
        self.news: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def ask(self) -> str:
        async def heard() -> str:
            return await self.news

        return await self._alone(Deadline(30.0), heard)

    async def _connected(self) -> PolicyInfo:
        raise AssertionError

    def _cut(self) -> None: ...

    async def _leave(self) -> None: ...

    async def _give_up(self) -> None: ...


@pytest.mark.parametrize("rounds", range(6))
def test_a_call_that_is_cancelled_as_its_answer_comes_is_cancelled(rounds: int) -> None:
    """
    A task that was told to stop must not act on the answer.
    """

    async def run() -> None:
        client = Client()
        task = asyncio.create_task(client.ask())
        for _ in range(5):
            await asyncio.sleep(0)
        client.news.set_result("chunk")
        for _ in range(rounds):
            await asyncio.sleep(0)
        if task.cancel():
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(run())
