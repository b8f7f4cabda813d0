"""Where tensors go in a file that is written: as upstream lays it out, byte for byte."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from vlmcore._json_values import frozen_object
from vlmcore.errors import ContractError
from vlmcore.weights.dtypes import DType
from vlmcore.weights.flashpack_format import MAGIC
from vlmcore.weights.index import TensorEntry, WeightFile, WeightFormat, WeightIndex
from vlmcore.weights.safetensors_format import METADATA

__all__ = ["ALIGN_BYTES", "Layout", "TensorSpec", "lay_out_flashpack", "lay_out_safetensors"]

ALIGN_BYTES = 128
"""What a tensor of a pack is aligned to within its block, as upstream packs."""

# The order of dtypes in which the writer of safetensors sorts, the last one first.
_ORDER = (
    DType.BOOL,
    DType.UINT8,
    DType.INT8,
    DType.FLOAT8_E5M2,
    DType.FLOAT8_E4M3FN,
    DType.FLOAT8_E8M0FNU,
    DType.FLOAT8_E4M3FNUZ,
    DType.FLOAT8_E5M2FNUZ,
    DType.INT16,
    DType.UINT16,
    DType.FLOAT16,
    DType.BFLOAT16,
    DType.INT32,
    DType.UINT32,
    DType.FLOAT32,
    DType.COMPLEX64,
    DType.FLOAT64,
    DType.INT64,
    DType.UINT64,
)


@attrs.frozen
class TensorSpec:
    """
    A tensor that is to be written.

    Attributes:
        name: Its name.
        dtype: The type of its numbers.
        shape: Its axes.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)


@attrs.frozen(kw_only=True, eq=False)
class Layout:
    """
    A file as it will be.

    Attributes:
        format: Its format.
        head: What comes before the tensors.
        entries: The tensors, in the order in which they are written; zeros go between them.
        payload_stop: Where the payload ends, and *tail* begins.
        tail: What comes behind.
    """

    format: WeightFormat
    head: bytes
    entries: tuple[TensorEntry, ...]
    payload_stop: int
    tail: bytes

    @property
    def size_bytes(self) -> int:
        """The size of the file."""
        return self.payload_stop + len(self.tail)

    def index(self, name: str) -> WeightIndex:
        """Say what such a file of this *name* says of its tensors."""
        file = WeightFile(name=name, size_bytes=self.size_bytes)
        return WeightIndex(format=self.format, files=(file,), entries=self.entries)


def lay_out_flashpack(tensors: Sequence[TensorSpec], *, align_bytes: int = ALIGN_BYTES) -> Layout:
    """
    Lay out a pack: version 3 for one dtype, version 4 for several.

    The largest tensors come first, and those of a dtype together, in a block of their own.

    Args:
        tensors: The tensors, in the order of the caller.
        align_bytes: What each is aligned to.

    Raises:
        ContractError: If there is nothing to pack: no tensors, or none with a number in it.
    """
    if align_bytes < 0:
        raise ContractError("align_bytes", f"got {align_bytes}, expected 0 or more")
    by_dtype: dict[DType, list[TensorSpec]] = {}
    for spec in sorted(tensors, key=lambda each: -each.elements):
        by_dtype.setdefault(spec.dtype, []).append(spec)
    blocks: list[dict[str, Any]] = []
    records: list[dict[str, Any]] = []
    entries: list[TensorEntry] = []
    reached = 0
    for number, (dtype, specs) in enumerate(by_dtype.items()):
        item = dtype.itemsize
        step = math.lcm(align_bytes, item) if align_bytes else item
        start = -(-reached // step) * step
        offset = 0
        for spec in specs:
            offset = -(-offset // (step // item)) * (step // item) if align_bytes else offset
            records.append(
                {
                    "name": spec.name,
                    "shape": list(spec.shape),
                    "offset": offset,
                    "length": spec.elements,
                    "macroblock": number,
                }
            )
            entries.append(_entry(spec, start + offset * item))
            offset += spec.elements
        reached = start + offset * item
        blocks.append(
            {
                "dtype": dtype.value,
                "offset_bytes": start,
                "length_bytes": offset * item,
                "length_elems": offset,
            }
        )
    if reached == 0:
        raise ContractError("tensors", "got no numbers, expected something to pack")
    footer = _footer(blocks, records, align_bytes, reached)
    text = json.dumps(footer, separators=(",", ":"), ensure_ascii=False).encode()
    return Layout(
        format=WeightFormat(footer["format"]),
        head=b"",
        entries=tuple(entries),
        payload_stop=reached,
        tail=text + len(text).to_bytes(8, "little") + MAGIC,
    )


def _footer(
    blocks: list[dict[str, Any]], records: list[dict[str, Any]], align_bytes: int, payload: int
) -> dict[str, Any]:
    if len(blocks) > 1:
        return {
            "format": WeightFormat.FLASHPACK_V4.value,
            "align_bytes": align_bytes,
            "total_payload_bytes": payload,
            "total_elems": sum(block["length_elems"] for block in blocks),
            "macroblocks": blocks,
            "index": records,
        }
    for record in records:
        del record["macroblock"]
    return {
        "format": WeightFormat.FLASHPACK_V3.value,
        "target_dtype": blocks[0]["dtype"],
        "align_bytes": align_bytes,
        "total_elems": blocks[0]["length_elems"],
        "index": records,
    }


def lay_out_safetensors(
    tensors: Sequence[TensorSpec], *, metadata: Mapping[str, str] | None = None
) -> Layout:
    """
    Lay out a file of safetensors: wide types first, then by name.

    Args:
        tensors: The tensors, in any order.
        metadata: What goes under ``__metadata__``, if anything.

    Raises:
        ContractError: If a name would not be read again, or safetensors keeps it for itself,
            ``__metadata__``; or it has no word for a dtype: complex32, complex128.
    """
    for spec in tensors:
        _entry(spec, 0)  # what cannot be read again is said before names are sorted and encoded
        if spec.name == METADATA:
            raise ContractError("name", f"got {METADATA!r}, which safetensors keeps for itself")
        if spec.dtype.safetensors is None:
            raise ContractError(
                f"dtype of {spec.name!a:.90}",
                f"got {spec.dtype.value}, expected one that safetensors has",
            )
    header: dict[str, Any] = {}
    if metadata is not None:
        header[METADATA] = dict(frozen_object(metadata, field="metadata"))
        if not all(isinstance(text, str) for text in metadata.values()):
            raise ContractError("metadata", "got something else, expected texts by name")
    placed: list[tuple[TensorSpec, int]] = []
    reached = 0
    for spec in sorted(tensors, key=lambda each: (-_ORDER.index(each.dtype), each.name)):
        stop = reached + spec.elements * spec.dtype.itemsize
        header[spec.name] = {
            "dtype": spec.dtype.safetensors,
            "shape": list(spec.shape),
            "data_offsets": [reached, stop],
        }
        placed.append((spec, reached))
        reached = stop
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    head = len(text).to_bytes(8, "little") + text
    return Layout(
        format=WeightFormat.SAFETENSORS,
        head=head,
        entries=tuple(_entry(spec, len(head) + start) for spec, start in placed),
        payload_stop=len(head) + reached,
        tail=b"",
    )


def _entry(spec: TensorSpec, start: int) -> TensorEntry:
    return TensorEntry(
        name=spec.name,
        dtype=spec.dtype,
        shape=spec.shape,
        file=0,
        start=start,
        stop=start + spec.elements * spec.dtype.itemsize,
    )
