"""Tests of `vlmcore.rollout._inference_thread`."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from vlmcore.rollout._inference_thread import InferenceThread


def test_calls_are_made_one_after_the_other_on_one_thread() -> None:
    """
    And what they return or raise is in their futures.
    """
    thread = InferenceThread("test")
    idents = [thread.submit(threading.get_ident) for _ in range(3)]
    failing = thread.submit(divmod, 1, 0)
    assert 1 == len({each.result(30) for each in idents} - {threading.get_ident()})
    with pytest.raises(ZeroDivisionError):
        failing.result(30)
    thread.shutdown(wait=True)


def test_a_call_that_was_cancelled_is_not_made() -> None:
    """
    What waits behind one that hangs can be taken back.
    """
    thread, may_end, made = InferenceThread("test"), threading.Event(), threading.Event()
    first, second = thread.submit(may_end.wait, 30), thread.submit(made.set)
    assert second.cancel()
    may_end.set()
    assert first.result(30)
    thread.shutdown(wait=True)
    assert not made.is_set()


def test_a_thread_that_was_never_needed_is_never_started() -> None:
    """
    Shutting it down starts nothing and waits for nothing.
    """
    before = threading.active_count()
    InferenceThread("test").shutdown(wait=True)
    assert before == threading.active_count()


def test_a_call_that_hangs_does_not_keep_a_program_from_ending() -> None:
    """
    The interpreter waits for threads of concurrent.futures, for ever if it must.
    """
    program = (
        "import threading\n"
        "from vlmcore.rollout._inference_thread import InferenceThread\n"
        "hangs = threading.Event()\n"
        "InferenceThread('test').submit(hangs.wait)\n"
        "print('done')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert "done\n" == done.stdout
