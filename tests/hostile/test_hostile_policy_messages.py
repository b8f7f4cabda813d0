"""Random messages of policies and of their callers end in our errors, quickly and in little memory.

Half of them are bytes without any sense, half of them real messages in which some bytes are others,
or the end is missing: five hundred for each decoder, and ten thousand where properties are tried
for long (``--hypothesis-profile=long``).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import settings

from golden.wire.messages import golden
from groot_cases import CODECS, seen
from vlmcore.errors import VlmcoreError
from vlmcore_robotics.wire.groot_calls import read_modalities
from vlmcore_robotics.wire.groot_dialects import GrootDialect
from vlmcore_robotics.wire.http_messages import ContentType, HttpResponse
from vlmcore_robotics.wire.http_v1 import HttpCodec

FEW, MANY = 500, 10_000
LONGEST_S = 1.0  # for one message, on two busy cores
STATUS = Path("/proc/self/status")
HTTP = HttpCodec(policy="act", action_names=("x",))
REQUESTS = {
    each: attrs.evolve(HTTP, content_type=each).encode_request(seen()) for each in ContentType
}


def read_http_request(body: bytes, content_type: ContentType) -> Any:
    request = attrs.evolve(REQUESTS[content_type], body=body)
    return HTTP.decode_request(request, captured_at_s=0.0)


def read_http_answer(body: bytes, content_type: ContentType) -> Any:
    headers = {"content-type": content_type.value}
    answer = HttpResponse(status=200, headers=headers, body=body)
    return HTTP.decode_answer(answer, observed_at_s=0.0)


def decoders() -> dict[str, tuple[bytes, Callable[[bytes], Any]]]:
    """Name each decoder, with a real message that it reads."""
    found: dict[str, tuple[bytes, Callable[[bytes], Any]]] = {}
    for dialect in GrootDialect:
        codec, name = CODECS[dialect], f"groot-{dialect.value.lower()}"
        found |= {
            f"{name}-answer": (
                golden(f"{name}-answer"),
                lambda frame, codec=codec: codec.decode_answer(frame, observed_at_s=0.0),
            ),
            f"{name}-request": (
                golden(f"{name}-request"),
                lambda frame, codec=codec: codec.decode_call(frame, captured_at_s=0.0),
            ),
            f"{name}-modalities": (
                golden(f"{name}-modalities"),
                lambda frame: read_modalities(frame, policy="groot"),
            ),
        }
    for each in ContentType:
        found |= {
            f"http-{each.name}-request": (
                REQUESTS[each].body,
                lambda body, each=each: read_http_request(body, each),
            ),
            f"http-{each.name}-answer": (
                b'{"actions": [[1.0, 2], [3, 4]], "server_timing": {"infer_ms": 5}}',
                lambda body, each=each: read_http_answer(body, each),
            ),
        }
    return found


DECODERS = decoders()


def messages(real: bytes, seed: str) -> Any:
    chance = random.Random(seed)
    is_long = settings().max_examples >= 1000
    for i in range(MANY if is_long else FEW):
        message = bytearray(real if i % 2 else chance.randbytes(chance.randrange(300)))
        for _ in range(chance.randrange(4)):
            if message:
                message[chance.randrange(len(message))] = chance.randrange(256)
        yield bytes(message[: chance.randrange(len(message) + 1)] if i % 7 == 0 else message)


def peak_mib() -> int:
    if not STATUS.exists():
        pytest.skip("memory is read from /proc")
    return int(STATUS.read_text().split("VmHWM:")[1].split()[0]) // 1024


@pytest.mark.hypothesis
@pytest.mark.parametrize("name", DECODERS)
def test_random_messages_are_values_or_our_errors_within_time_and_memory(name: str) -> None:
    """
    No other error, none that takes a second, and no 64 MiB for all of them.
    """
    real, decode = DECODERS[name]
    before, slowest = peak_mib(), 0.0
    for message in messages(real, name):
        started = time.process_time()
        try:  # noqa: SIM105 - the time is taken around it
            decode(message)
        except VlmcoreError:
            pass
        slowest = max(slowest, time.process_time() - started)
    assert LONGEST_S > slowest
    assert peak_mib() - before < 64
