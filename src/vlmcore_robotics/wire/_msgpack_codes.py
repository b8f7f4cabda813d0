"""The first byte of each MessagePack value, and the numbers that follow it."""

from __future__ import annotations

import struct

__all__ = ["BINARY", "CONSTANTS", "LIST", "MAP", "NUMBERS", "SIZES", "TEXT"]

NUMBERS = {
    code: struct.Struct(form)
    for code, form in zip(
        (0xCA, 0xCB, 0xCC, 0xCD, 0xCE, 0xCF, 0xD0, 0xD1, 0xD2, 0xD3),
        (">f", ">d", ">B", ">H", ">I", ">Q", ">b", ">h", ">i", ">q"),
        strict=True,
    )
}
CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
SIZES = (struct.Struct(">B"), struct.Struct(">H"), struct.Struct(">I"))
BINARY, TEXT = range(0xC4, 0xC7), range(0xD9, 0xDC)  # lengths of 1, 2 and 4 bytes
LIST, MAP = range(0xDC, 0xDE), range(0xDE, 0xE0)  # lengths of 2 and 4 bytes
