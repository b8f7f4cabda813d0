"""Tests of `vlmcore_robotics.servers._message_threads`."""

from __future__ import annotations

import os
import threading

import pytest

from vlmcore_robotics.servers._message_threads import message_threads


@pytest.mark.parametrize(
    ("cores", "threads"), [(None, 1), (1, 1), (2, 1), (3, 1), (4, 2), (8, 4), (64, 4)]
)
def test_health_does_not_wait_for_as_many_decoders_as_there_are_cores(
    cores: int | None, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    At most every second core decodes pictures at once; the event loop has the others.
    """
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    at_once, most, lock, hurry = 0, 0, threading.Lock(), threading.Event()

    def work() -> None:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
            if at_once == threads:
                hurry.set()
        hurry.wait(60)
        with lock:
            at_once -= 1

    with message_threads() as executor:
        for _ in range(3 * threads):
            executor.submit(work)
    assert threads == most
