"""
Random messages of policies and of their callers end in our errors, quickly and in little memory.

A third of them are bytes without any sense, a third are real messages in which a few bytes are
others or the end is missing, a third are values of random structure, made of the words that
decoders look for: five hundred for each decoder, and ten thousand where properties are tried for
long (``--hypothesis-profile=long``). ``nox -s fuzz`` lets a fuzzer look for worse ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from fuzz.decoders import DECODERS

FEW, MANY = 500, 10_000
LONGEST_S = 1.0  # of work for one message, on two busy cores
MOST_MIB = 64
TRY = Path(__file__).parents[1] / "fuzz" / "try_decoders.py"


Found = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def found() -> Found:
    """Show them to each decoder, in a process of its own; say what came of it."""
    if not sys.platform.startswith("linux"):
        pytest.skip("memory is read from /proc")
    count = MANY if settings().max_examples >= 1000 else FEW
    done = subprocess.run(
        [sys.executable, TRY, str(count)],
        capture_output=True,
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        timeout=60 + count,
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    said: Found = json.loads(done.stdout)
    return said


@pytest.mark.hypothesis
def test_random_messages_are_values_or_our_errors_within_time_and_memory(found: Found) -> None:
    """
    No other error, none that takes a second, and no 64 MiB for all of them.
    """
    assert set(DECODERS) == found.keys()
    assert {} == {name: each["wrong"] for name, each in found.items() if each["wrong"]}
    assert {} == {name: each for name, each in found.items() if each["slowest_s"] >= LONGEST_S}
    assert MOST_MIB > sum(each["grown_mib"] for each in found.values())


def test_the_messages_reach_what_decoders_read(found: Found) -> None:
    """
    Noise that ends at the first byte would try nothing.
    """
    refusals = {name for name in DECODERS if name.endswith(("failure", "text", "line"))}
    assert {} == {
        name: each for name, each in found.items() if not each["read"] and name not in refusals
    }


def test_each_real_message_is_read() -> None:
    """
    Else damage to it would be none.
    """
    refusals = {name for name in DECODERS if name.endswith(("failure", "text", "line"))}
    for name in DECODERS.keys() - refusals:
        for message in DECODERS[name].real:
            DECODERS[name].decode(message)
