"""The real openpi-client asks our server; ``nox -s openpi`` installs it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed

from openpi_cases import INFO, LAYOUT, PLAN, SEEN, echoing, seen_at, serving
from vlmcore.errors import PolicyError
from vlmcore.secrets import Secret
from vlmcore.testing import ScriptedPolicy

openpi_client = pytest.importorskip("openpi_client")
client_module = pytest.importorskip("openpi_client.websocket_client_policy")

pytestmark = pytest.mark.filterwarnings("ignore:connect.. must be used as a context manager")


@contextmanager
def asking(url: str, **options: Any) -> Iterator[Any]:
    """Make a real client, and hang up for it."""
    policy = client_module.WebsocketClientPolicy(url, **options)
    try:
        yield policy
    finally:
        policy._ws.close()


def request(seen: Any = SEEN) -> dict[str, Any]:
    return LAYOUT.request_from(seen)


def test_the_real_client_reads_our_metadata_and_our_chunks() -> None:
    """
    With the timings that it knows.
    """
    with serving(ScriptedPolicy([PLAN], info=INFO)) as url, asking(url) as policy:
        assert "scripted" == policy.get_server_metadata()["policy_info"]["name"]
        answers = [policy.infer(request()) for _ in range(3)]
    for answer in answers:
        assert np.array_equal(PLAN, answer["actions"])
        assert np.float64 == answer["actions"].dtype
        assert answer["policy_timing"]["infer_ms"] <= answer["server_timing"]["infer_ms"]
    assert answers[1]["server_timing"]["prev_total_ms"] > 0


def test_what_the_real_client_sends_is_what_the_policy_sees() -> None:
    """
    Frames, state and instruction.
    """
    policy = echoing()
    with serving(policy) as url, asking(url) as real:
        real.infer(request(seen_at(0.25)))
    seen = policy.shown[0]
    assert np.array_equal(SEEN.images["front"], seen.images["front"])
    assert ([0.25, 0.0], "pick up the cup") == (seen.state.tolist(), seen.instruction)


def test_the_real_client_raises_our_words_and_is_hung_up_on() -> None:
    """
    As its own server does it, without the traceback.
    """
    failing = ScriptedPolicy([PolicyError("scripted", "no camera")], info=INFO)
    with serving(failing) as url, asking(url) as policy:
        with pytest.raises(RuntimeError, match=r"^Error in inference server:\nno camera$"):
            policy.infer(request())
        with pytest.raises(ConnectionClosed):
            policy.infer(request())
        with asking(url) as again, pytest.raises(RuntimeError, match="no camera"):
            again.infer(request())


def test_the_key_of_the_real_client_is_checked() -> None:
    """
    Sent in the header that it sends.
    """
    with serving(api_key=Secret("sk-123456")) as url:
        with asking(url, api_key="sk-123456") as policy:
            assert policy.infer(request())
        with pytest.raises(Exception, match="401"), asking(url, api_key="sk-654321"):
            pytest.fail("it was let in")


def test_real_clients_wait_for_each_other() -> None:
    """
    And each gets its own answer.
    """
    found: dict[int, float] = {}

    def ask(number: int) -> None:
        with asking(url) as policy:
            found[number] = float(policy.infer(request(seen_at(float(number))))["actions"][0, 0])

    with serving(echoing(delay_s=0.05)) as url:
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert {i: float(i) for i in range(4)} == found


def test_a_restart_of_our_server_is_a_new_connection_for_the_real_client() -> None:
    """
    The port is the same, and nothing of the first server is left.
    """
    with serving() as url, asking(url) as policy:
        policy.infer(request())
    port = int(url.rpartition(":")[2])
    with serving(port=port) as url, asking(url) as policy:
        assert policy.infer(request(seen_at(0.5)))["actions"][0, 0] == 0.5
