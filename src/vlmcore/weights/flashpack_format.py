"""The format of FlashPack, versions 3 and 4: where a footer is, and what it says."""

from __future__ import annotations

import math
import re
from operator import itemgetter
from typing import Any

import attrs

from vlmcore.errors import ContractError
from vlmcore.limits import WeightLimits, require_at_most
from vlmcore.weights._json_stream import JsonStream
from vlmcore.weights._plain_entries import Known, plain_entry
from vlmcore.weights._plain_texts import LENGTHS, NAME, WHOLE
from vlmcore.weights.dtypes import DType
from vlmcore.weights.index import TensorEntry, WeightFile, WeightFormat, WeightIndex

__all__ = ["MAGIC", "TAIL_BYTES", "footer_span", "parse_footer"]

MAGIC = b"FLASHPK\0"
TAIL_BYTES = 16
"""The length of the footer as a little-endian 64-bit number, then `MAGIC`; the end of a pack."""

_ENTRY_KEYS = ("name", "shape", "offset", "length")
_BLOCK_KEYS = ("dtype", "offset_bytes", "length_bytes", "length_elems")
_PLAIN = re.compile(
    rf',{{"name":"({NAME})","shape":\[({LENGTHS})\],'
    rf'"offset":({WHOLE}),"length":({WHOLE})(?:,"macroblock":({WHOLE}))?}}',
    re.ASCII,
)  # as writers write it
_MOST_KEYS = 32  # of the footer itself, which has six


def footer_span(tail: bytes, *, size_bytes: int, limits: WeightLimits) -> tuple[int, int]:
    """
    Find the footer of a pack.

    Args:
        tail: The last `TAIL_BYTES` of the file.
        size_bytes: The size of the file.
        limits: How large a footer may be.

    Returns:
        Its first byte and the byte after its last; the payload ends where it starts.

    Raises:
        ContractError: If it is no pack, or the footer would start before the file does.
        LimitExceededError: If the footer is larger than *limits* allow.
    """
    if len(tail) < TAIL_BYTES or not tail.endswith(MAGIC):
        raise ContractError(
            "footer", f"got {tail[-8:]!r} at the end, expected {MAGIC!r}: no pack, or cut off"
        )
    length = int.from_bytes(tail[-TAIL_BYTES : -len(MAGIC)], "little")
    stop = size_bytes - TAIL_BYTES
    if length > stop:
        raise ContractError(
            "footer", f"got a length of {length}, expected at most {stop}, what the file has"
        )
    require_at_most("max_header_bytes", length, limits.max_header_bytes)
    return stop - length, stop


def parse_footer(footer: bytes, *, file: WeightFile, limits: WeightLimits) -> WeightIndex:
    """
    Read the footer of a pack, and check it against the size of the file.

    Tensors must lie as the format lays them out: blocks one after the other, tensors in their block
    one after the other, each at the next multiple of the alignment, and the footer right behind. A
    pack that was cut, or whose offsets were moved, is found so.

    Args:
        footer: The JSON.
        file: The name and size of the file.
        limits: How much it may say.

    Raises:
        ContractError: If it is no such JSON, or cannot be true of such a file.
        LimitExceededError: If there is more in it than *limits* allow.
    """
    payload_bytes = file.size_bytes - TAIL_BYTES - len(footer)
    stream = JsonStream(footer, limit="max_header_bytes", max_bytes=limits.max_header_bytes)
    del footer  # it is held as text now
    head, blocks, records = _read(stream, limits)
    version = _version(head, has_blocks=blocks is not None)
    if blocks is None:
        whole = {"dtype": head.get("target_dtype"), "offset_bytes": 0, "length_bytes": None}
        blocks = [_block({**whole, "length_elems": head.get("total_elems")})]
    align = _whole(head, "align_bytes")
    _require_blocks(blocks, align=align, payload_bytes=payload_bytes)
    if version is WeightFormat.FLASHPACK_V4:
        _require_totals(head, blocks, payload_bytes)
    _require_layout(records, blocks, align)
    records.reverse()
    entries = [_entry(records.pop(), blocks) for _ in range(len(records))]  # none is held twice
    return WeightIndex(format=version, files=(file,), entries=entries)


@attrs.frozen
class _Block:
    dtype: DType
    start: int
    elements: int

    @property
    def stop(self) -> int:
        return self.start + self.elements * self.dtype.itemsize


_Record = tuple[str, tuple[Any, ...], int, int, int, bool]  # whether it is plain is last


def _read(
    stream: JsonStream, limits: WeightLimits
) -> tuple[dict[str, Any], list[_Block] | None, list[_Record]]:
    head: dict[str, Any] = {}
    blocks: list[_Block] | None = None
    records: list[_Record] | None = None
    for key in stream.members():
        if key in head:
            raise ContractError("footer", f"got the key {key!a:.40} twice, expected each once")
        head[key] = None
        if len(head) > _MOST_KEYS:
            raise ContractError("footer", f"got more than {_MOST_KEYS} keys, expected six or so")
        match key:
            case "index":
                records = _records(stream, limits)
            case "macroblocks":
                blocks = _blocks(stream, limits)
            case _:
                head[key] = stream.value()
    stream.end()
    if records is None:
        raise ContractError("index", "got none, expected the list of tensors")
    return head, blocks, records


def _records(stream: JsonStream, limits: WeightLimits) -> list[_Record]:
    records: list[_Record] = []
    known = Known[tuple[int, ...]]()
    words: str | None = None
    for _ in stream.elements():
        require_at_most("max_tensors", len(records) + 1, limits.max_tensors)
        record, where = stream.value(), f"index[{len(records)}]"
        _require_keys(record, where, _ENTRY_KEYS)
        name, shape = record["name"], record["shape"]
        if not isinstance(name, str) or not isinstance(shape, list):
            raise ContractError(where, f"got {record!a:.80}, expected a text and a list of lengths")
        require_at_most("max_rank", len(shape), limits.max_rank)
        offset, length = _whole(record, "offset", where), _whole(record, "length", where)
        block = _whole(record, "macroblock", where) if "macroblock" in record else 0
        records.append((name, tuple(shape), offset, length, block, False))
        if words is not None:
            known.note(words, tuple(shape))
        words = _run(stream, known, records, most=limits.max_tensors)
    return records


def _run(
    stream: JsonStream, known: Known[tuple[int, ...]], records: list[_Record], *, most: int
) -> str | None:
    """Read tensors of shapes that are known; return the shape of what has to be looked at next."""
    for found in stream.run(_PLAIN):
        name, words, offset, length, block = found.groups(default="0")
        shape = known.get(words)
        if shape is None or len(records) == most:
            return words
        records.append((name, shape, int(offset), int(length), int(block), True))
    return None


def _blocks(stream: JsonStream, limits: WeightLimits) -> list[_Block]:
    blocks: list[_Block] = []
    for _ in stream.elements():
        require_at_most("max_blocks", len(blocks) + 1, limits.max_blocks)
        blocks.append(_block(stream.value(), where=f"macroblocks[{len(blocks)}]"))
    return blocks


def _block(block: Any, where: str = "footer") -> _Block:
    _require_keys(block, where, _BLOCK_KEYS)
    try:
        dtype = DType(block["dtype"])
    except ValueError:
        raise ContractError(where, f"got the unknown dtype {block['dtype']!a:.40}") from None
    start, elements = _whole(block, "offset_bytes", where), _whole(block, "length_elems", where)
    size = elements * dtype.itemsize
    if block["length_bytes"] is not None and _whole(block, "length_bytes", where) != size:
        raise ContractError(
            where, f"got length_bytes {block['length_bytes']}, expected {size}: {elements} elements"
        )
    return _Block(dtype, start, elements)


def _version(head: dict[str, Any], *, has_blocks: bool) -> WeightFormat:
    version = head.get("format")
    expected = WeightFormat.FLASHPACK_V4 if has_blocks else WeightFormat.FLASHPACK_V3
    if version != expected.value:
        how = "with" if has_blocks else "without"
        raise ContractError(
            "format", f"got {version!a:.40}, expected {expected.value!r} {how} macroblocks"
        )
    return expected


def _require_blocks(blocks: list[_Block], *, align: int, payload_bytes: int) -> None:
    reached = 0
    for number, block in enumerate(blocks):
        item = block.dtype.itemsize
        expected = _next_multiple(reached, math.lcm(align, item) if align else item)
        if block.start != expected:
            raise ContractError(
                f"macroblocks[{number}]", f"got offset_bytes {block.start}, expected {expected}"
            )
        reached = block.stop
    if reached != payload_bytes:
        raise ContractError(
            "footer",
            f"got {payload_bytes} bytes before it, expected the {reached} that it speaks of: "
            "the pack was cut, or something was added",
        )


def _require_totals(head: dict[str, Any], blocks: list[_Block], payload_bytes: int) -> None:
    totals = {
        "total_payload_bytes": payload_bytes,
        "total_elems": sum(block.elements for block in blocks),
    }
    for key, expected in totals.items():
        if _whole(head, key) != expected:
            raise ContractError(key, f"got {head[key]}, expected {expected}")


def _entry(record: _Record, blocks: list[_Block]) -> TensorEntry:
    name, shape, offset, length, number, is_plain = record
    block = blocks[number]
    start = block.start + offset * block.dtype.itemsize
    stop = start + length * block.dtype.itemsize
    if is_plain and math.prod(shape) == length:
        return plain_entry(name, block.dtype, shape, file=0, start=start, stop=stop)
    return TensorEntry(
        name=name,
        dtype=block.dtype,
        shape=shape,
        file=0,
        start=start,
        stop=stop,
    )


def _require_layout(records: list[_Record], blocks: list[_Block], align: int) -> None:
    """Require that no element of a block is unaccounted for, but for padding; sort by place."""
    records.sort(key=itemgetter(4, 2, 3))
    reached = [0] * len(blocks)
    steps = [math.lcm(align, block.dtype.itemsize) // block.dtype.itemsize or 1 for block in blocks]
    for name, _, offset, length, number, _ in records:
        if number >= len(blocks):
            raise ContractError(
                "macroblock", f"got {number} for {name!a:.90}, expected one of {len(blocks)}"
            )
        expected = _next_multiple(reached[number], steps[number])
        if offset != expected:
            raise ContractError(
                f"{name!a:.90}",
                f"got the offset {offset} in macroblock {number}, expected {expected}: "
                "tensors follow each other and do not overlap",
            )
        reached[number] = offset + length
    for number, block in enumerate(blocks):
        if reached[number] != block.elements:
            raise ContractError(
                f"macroblocks[{number}]",
                f"got {block.elements} elements, expected {reached[number]}, where its tensors end",
            )


def _next_multiple(number: int, of: int) -> int:
    return -(-number // of) * of


def _require_keys(value: Any, where: str, keys: tuple[str, ...]) -> None:
    if not isinstance(value, dict):
        raise ContractError(where, f"got {type(value).__name__}, expected an object")
    for key in keys:
        if key not in value:
            raise ContractError(where, f"got no {key!r}, expected {', '.join(keys)}")


def _whole(values: dict[str, Any], key: str, where: str = "footer") -> int:
    value = values.get(key)
    if type(value) is not int or value < 0:
        raise ContractError(f"{where}.{key}", f"got {value!r:.40}, expected a whole number")
    return value
