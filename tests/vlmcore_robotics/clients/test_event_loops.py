"""Our clients for ``asyncio`` in more than one event loop, as of several ``asyncio.run``."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest

from kit_cases import CLIENTS, LAYOUTS, ROBOT, serving
from openpi_cases import seen_at
from vlmcore.errors import PolicyError

awaited = pytest.mark.parametrize("client", [name for name in CLIENTS if "async" in name])


def made(client: str, url: str) -> Any:
    protocol, make = CLIENTS[client]
    layout = LAYOUTS[protocol]
    return make(url, embodiment=ROBOT, **({} if layout is None else {"layout": layout}))


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # each loop leaves a connection
@awaited
def test_a_client_may_be_used_in_one_event_loop_after_another(client: str) -> None:
    """
    It said that the server broke the protocol, and the call after that one never ended.
    """
    with serving(CLIENTS[client][0]) as url:
        policy = made(client, url)

        async def ask(number: float) -> Any:
            return (await policy.infer(seen_at(number))).values[0, 0]

        assert [1.0, 2.0, 3.0] == [asyncio.run(ask(number)) for number in (1.0, 2.0, 3.0)]
        asyncio.run(policy.aclose())
    gc.collect()  # here, where what is left behind may be told


@awaited
def test_a_client_is_not_used_in_two_event_loops_at_once(client: str) -> None:
    """
    They are not safe for threads, which two loops that run are in.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def there(awaitable: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(awaitable, loop).result(30)

    with serving(CLIENTS[client][0]) as url:
        policy = made(client, url)
        there(policy.infer(seen_at(1.0)))
        for call in (lambda: policy.infer(seen_at(2.0)), policy.connect, policy.reset):
            with pytest.raises(PolicyError, match="another event loop, which still runs"):
                asyncio.run(call())
        assert 3.0 == there(policy.infer(seen_at(3.0))).values[0, 0]
        there(policy.aclose())
    loop.call_soon_threadsafe(loop.stop)
    thread.join(30)
    loop.close()
