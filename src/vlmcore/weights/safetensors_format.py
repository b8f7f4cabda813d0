"""The format of safetensors: where a header is, what it says, and what an index of shards says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from operator import attrgetter
from typing import Any, TypeAlias

import attrs

from vlmcore.errors import ContractError
from vlmcore.limits import WeightLimits, require_at_most
from vlmcore.weights._json_stream import JsonStream
from vlmcore.weights._plain_entries import Known, plain_entry
from vlmcore.weights._plain_texts import LENGTHS, NAME, WHOLE
from vlmcore.weights.dtypes import DType
from vlmcore.weights.index import TensorEntry

__all__ = [
    "HEAD_BYTES",
    "METADATA",
    "Header",
    "Shards",
    "header_span",
    "parse_header",
    "parse_shards",
]

HEAD_BYTES = 8
"""The length of the header as a little-endian 64-bit number: the start of a file."""

METADATA = "__metadata__"
"""What a header calls that which is no tensor."""

_KEYS = {"dtype", "shape", "data_offsets"}
_PLAIN = re.compile(
    rf',"(?!{METADATA}")({NAME})":'
    rf'{{("dtype":"\w{{1,16}}","shape":\[{LENGTHS}\]),"data_offsets":\[({WHOLE}),({WHOLE})\]}}',
    re.ASCII,
)  # as writers write it


_Kind: TypeAlias = tuple[DType, tuple[int, ...], int]  # and bytes


@attrs.frozen
class Header:
    """
    What one file says.

    Attributes:
        entries: Its tensors, in the order of the header.
        metadata: Its ``__metadata__``.
    """

    entries: list[TensorEntry]
    metadata: Mapping[str, str]


@attrs.frozen
class Shards:
    """
    What the index of several files says.

    Attributes:
        files: The name of the file that each tensor is in.
        metadata: The texts of its ``metadata``.
    """

    files: Mapping[str, str]
    metadata: Mapping[str, str]


def header_span(head: bytes, *, size_bytes: int, limits: WeightLimits) -> tuple[int, int]:
    """
    Find the header of a file.

    Args:
        head: The first `HEAD_BYTES` of the file.
        size_bytes: The size of the file.
        limits: How large a header may be.

    Returns:
        Its first byte and the byte after its last; the payload starts where it ends.

    Raises:
        ContractError: If it would end after the file does.
        LimitExceededError: If the header is larger than *limits* allow.
    """
    if min(len(head), size_bytes) < HEAD_BYTES:  # some files have a size of 0 and more to read
        raise ContractError("header", f"got a file of {size_bytes} bytes, expected at least 10")
    length = int.from_bytes(head[:HEAD_BYTES], "little")
    if length > size_bytes - HEAD_BYTES:
        raise ContractError(
            "header",
            f"got a length of {length}, expected at most {size_bytes - HEAD_BYTES}, "
            "what the file has: no safetensors, or cut off",
        )
    require_at_most("max_header_bytes", length, limits.max_header_bytes)
    return HEAD_BYTES, HEAD_BYTES + length


def parse_header(header: bytes, *, file: int, size_bytes: int, limits: WeightLimits) -> Header:
    """
    Read the header of a file, and check it against the size of the file.

    The tensors must fill what is behind the header, without holes, as the format asks for.

    Args:
        header: The JSON.
        file: The position of the file in the checkpoint.
        size_bytes: The size of the file.
        limits: How much it may say.

    Raises:
        ContractError: If it is no such JSON, or cannot be true of such a file.
        LimitExceededError: If there is more in it than *limits* allow.
    """
    base = HEAD_BYTES + len(header)
    stream = JsonStream(header, limit="max_header_bytes", max_bytes=limits.max_header_bytes)
    del header  # it is held as text now
    entries: list[TensorEntry] = []
    metadata: dict[str, str] | None = None
    known = Known[_Kind]()
    words: str | None = None
    for name in stream.members():
        if name == METADATA:
            if metadata is not None:
                raise ContractError(METADATA, "got it twice, expected it once")
            metadata = _metadata(stream.value(most=limits.max_metadata_bytes))
            continue
        require_at_most("max_tensors", len(entries) + 1, limits.max_tensors)
        entry = _entry(name, stream.value(), file=file, base=base, limits=limits)
        entries.append(entry)
        if words is not None:
            known.note(words, (entry.dtype, entry.shape, entry.nbytes))
        words = _run(stream, known, entries, file=file, base=base, most=limits.max_tensors)
    stream.end()
    _require_filled(entries, base, size_bytes)
    return Header(entries, metadata or {})


def parse_shards(index: bytes, *, limits: WeightLimits) -> Shards:
    """
    Read the index of a checkpoint in several files, ``*.safetensors.index.json``.

    Raises:
        ContractError: If it is no such JSON, or names a file that is not beside it.
        LimitExceededError: If there is more in it than *limits* allow.
    """
    stream = JsonStream(index, limit="max_header_bytes", max_bytes=limits.max_header_bytes)
    del index
    files: dict[str, str] | None = None
    metadata: Any = None
    for key in stream.members():
        if key != "weight_map":
            value = stream.value(most=limits.max_metadata_bytes)
            metadata = value if key == "metadata" else metadata
        elif files is None:
            files = _weight_map(stream, limits)
        else:
            raise ContractError("weight_map", "got it twice, expected it once")
    stream.end()
    if not files:
        raise ContractError("weight_map", "got none, expected the file of each tensor")
    said = metadata.items() if isinstance(metadata, dict) else ()
    return Shards(files, {name: text for name, text in said if isinstance(text, str)})


def _weight_map(stream: JsonStream, limits: WeightLimits) -> dict[str, str]:
    shards: dict[str, str] = {}
    files: dict[str, str] = {}
    for name in stream.members():
        require_at_most("max_tensors", len(shards) + 1, limits.max_tensors)
        if name in shards:
            raise ContractError("weight_map", f"got {name!a:.90} twice, expected it once")
        file = stream.value()
        if file not in files if isinstance(file, str) else True:
            require_at_most("max_files", len(files) + 1, limits.max_files)
            files[_plain_file_name(file)] = file
        shards[name] = files[file]
    return shards


def _plain_file_name(file: Any) -> str:
    is_plain = isinstance(file, str) and file.isprintable() and not set(file) & set("/\\:")
    if not is_plain or not file.endswith(".safetensors") or file.startswith("."):
        raise ContractError(
            "weight_map", f"got the file {file!a:.90}, expected the name of one beside the index"
        )
    return str(file)


def _metadata(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise ContractError(METADATA, f"got {value!a:.80}, expected texts by name")
    return value


def _entry(name: str, value: Any, *, file: int, base: int, limits: WeightLimits) -> TensorEntry:
    if not isinstance(value, dict) or value.keys() != _KEYS:
        raise ContractError(
            f"{name!a:.90}", f"got {value!a:.80}, expected an object of {', '.join(sorted(_KEYS))}"
        )
    shape, offsets = value["shape"], value["data_offsets"]
    if not isinstance(shape, list) or not isinstance(offsets, list) or len(offsets) != 2:
        raise ContractError(f"{name!a:.90}", f"got {value!a:.80}, expected lists, two offsets")
    require_at_most("max_rank", len(shape), limits.max_rank)
    start, stop = offsets
    if type(start) is not int or type(stop) is not int or start < 0 or stop < 0:
        raise ContractError(f"{name!a:.90}", f"got data_offsets {offsets!a:.60}, expected bytes")
    try:
        dtype = DType.of_safetensors(value["dtype"])
    except ContractError as error:
        raise ContractError(f"dtype of {name!a:.90}", error.problem) from None
    return TensorEntry(
        name=name,
        dtype=dtype,
        shape=tuple(shape),
        file=file,
        start=base + start,
        stop=base + stop,
    )


def _run(
    stream: JsonStream,
    known: Known[_Kind],
    entries: list[TensorEntry],
    *,
    file: int,
    base: int,
    most: int,
) -> str | None:
    """Read tensors of kinds that are known; return the words for what has to be looked at next."""
    for found in stream.run(_PLAIN):
        name, words, first, last = found.groups()
        kind = known.get(words)
        start, stop = int(first), int(last)
        if kind is None or stop - start != kind[2] or len(entries) == most:
            return words
        entries.append(
            plain_entry(name, kind[0], kind[1], file=file, start=base + start, stop=base + stop)
        )
    return None


def _require_filled(entries: list[TensorEntry], base: int, size_bytes: int) -> None:
    reached = base
    for entry in sorted(entries, key=attrgetter("start", "stop")):
        if entry.start != reached:
            raise ContractError(
                entry.name,
                f"got bytes from {entry.start} on, expected from {reached} on: "
                "tensors follow each other without holes and do not overlap",
            )
        reached = entry.stop
    if reached != size_bytes:
        raise ContractError(
            "header",
            f"got a file of {size_bytes} bytes, expected {reached}: "
            "it was cut, or something was added",
        )
