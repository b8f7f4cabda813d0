"""Messages that are random in three ways: without sense, real but damaged, of random structure."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from fuzz.decoders import Decoder
from vlmcore.errors import VlmcoreError
from vlmcore_robotics.wire.frames import FrameKind, decode_frame, encode_frame

__all__ = ["messages"]

_WORDS = (
    "__ndarray__",
    "__npgeneric__",
    "__ndarray_class__",
    "as_npy",
    "nd",
    "type",
    "kind",
    "data",
    "dtype",
    "shape",
    "actions",
    "error",
    "action_names",
    "endpoint",
    "get_action",
    "observation",
    "options",
    "video",
    "state",
    "language",
    "cameras",
    "policy_info",
    "server_timing",
    "task",
    "schema",
    "version",
    "encoding",
    "frame_index",
    "width",
    "height",
    "status",
    "complex",
    "as_json",
    "__ModalityConfig__",
    "__ModalityConfig_class__",
    "delta_indices",
    "modality_keys",
    "prompt",
    "name",
)
_TYPES = ("|u1", "<f4", "<f8", "|O", "<c8", "|V3", "<i8", "<U4", "|b1", "")


def messages(decoder: Decoder, *, count: int, seed: str) -> Iterator[bytes]:
    """Make *count* messages for *decoder*, the same ones for the same *seed*."""
    chance = random.Random(seed)
    for i in range(count):
        match i % 3:
            case 0:
                yield chance.randbytes(chance.randrange(300))
            case 1:
                yield damaged(chance.choice(decoder.real), chance)
            case _:
                yield structured(decoder, chance)


def damaged(real: bytes, chance: random.Random) -> bytes:
    """Change a few bytes of a message, or a part of it, or leave its end away."""
    message = bytearray(real)
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(message) + 1)
        match chance.randrange(4):
            case 0:
                message[at : at + 1] = bytes((chance.randrange(256),))
            case 1:
                message[at:at] = chance.randbytes(chance.randrange(9))
            case 2:
                del message[at : at + chance.randrange(9)]
            case _:
                start = chance.randrange(len(message) + 1)
                message[at:at] = message[start : start + chance.randrange(64)]
    return bytes(
        message[: chance.randrange(len(message) + 1)] if not chance.randrange(7) else message
    )


def structured(decoder: Decoder, chance: random.Random) -> bytes:
    """Make a value of random structure, or put one into a message that is real."""
    value = invented(chance, 4)
    if chance.randrange(2):
        value = replaced(read(chance.choice(decoder.real), decoder), value, chance)
    try:
        if decoder.is_packed:
            return encode_frame(value, kind=FrameKind.REQUEST)
        return json.dumps(value, default=str).encode()
    except VlmcoreError:  # too much of something: what is sent is what a peer can send
        return b"\xc0"


def read(real: bytes, decoder: Decoder) -> Any:
    try:
        return decode_frame(real, kind=FrameKind.REQUEST) if decoder.is_packed else json.loads(real)
    except (VlmcoreError, ValueError):
        return None


def replaced(value: Any, other: Any, chance: random.Random) -> Any:
    """Put *other* somewhere into *value*."""
    if isinstance(value, dict) and value and chance.randrange(4):
        key = chance.choice(list(value))
        return {**value, key: replaced(value[key], other, chance)}
    if isinstance(value, list) and value and chance.randrange(4):
        at = chance.randrange(len(value))
        return [*value[:at], replaced(value[at], other, chance), *value[at + 1 :]]
    return other


def invented(chance: random.Random, depth: int) -> Any:
    """Make a value of the words that decoders look for."""
    kind = chance.randrange(10 if depth else 8)
    if kind == 8:
        return [invented(chance, depth - 1) for _ in range(chance.randrange(4))]
    if kind == 9:
        words = chance.sample(_WORDS, chance.randrange(6))
        return {word: invented(chance, depth - 1) for word in words}
    return (
        None,
        bool(chance.randrange(2)),
        chance.choice((0, -1, 1, 255, 1 << 31, (1 << 63) - 1, -(1 << 63))),
        chance.choice((0.5, -0.0, 1e308, float("inf"), float("nan"))),
        chance.choice(_WORDS),
        chance.choice(_TYPES),
        chance.randbytes(chance.randrange(20)).decode("latin-1"),
        [chance.choice((0, 1, 2, 3, -1, 1 << 31)) for _ in range(chance.randrange(4))],
    )[kind]
