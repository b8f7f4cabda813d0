"""Where every tensor of a checkpoint lies: one map for all formats."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import attrs

from vlmcore._arrays import as_tuple, require_member, require_name
from vlmcore._copying import through_constructor
from vlmcore.errors import ContractError
from vlmcore.limits import WeightLimits
from vlmcore.weights._plain_texts import NAME
from vlmcore.weights.dtypes import DType

__all__ = ["TensorEntry", "WeightFile", "WeightFormat", "WeightIndex", "is_tensor_name"]

_MOST = 0x7FFF_FFFF_FFFF_FFFF  # what a file system can address
_NAME_CHARACTERS = WeightLimits().max_name_characters
_PLAIN_NAME = re.compile(NAME, re.ASCII)  # what nearly every one is


class WeightFormat(enum.Enum):
    """How files say where their tensors are."""

    FLASHPACK_V3 = "flashpack_v3"
    FLASHPACK_V4 = "flashpack_v4"
    SAFETENSORS = "safetensors"


@attrs.frozen(kw_only=True)
class WeightFile:
    """
    One of the files of a checkpoint.

    Attributes:
        name: Its name in its folder, without a path.
        size_bytes: Its size when it was opened.
    """

    name: str
    size_bytes: int

    def __attrs_post_init__(self) -> None:
        require_name("name", self.name, max_characters=_NAME_CHARACTERS)
        _require_whole(self.name, size_bytes=self.size_bytes)


@attrs.frozen(kw_only=True)
class TensorEntry:
    """
    Where one tensor lies: its numbers, in C order and little-endian, are bytes of one file.

    Attributes:
        name: Its name, as ``"model.layers.0.mlp.up_proj.weight"``.
        dtype: The type of its numbers.
        shape: Its axes; ``()`` for a scalar, which is one number.
        file: The position in `WeightIndex.files` of the file that it is in.
        start: The first byte of it in that file.
        stop: The byte after its last.

    Example:
        >>> bias = TensorEntry(
        ...     name="bias", dtype=DType.BFLOAT16, shape=(3,), file=0, start=128, stop=134
        ... )
        >>> bias.nbytes
        6
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    file: int
    start: int
    stop: int

    def __attrs_post_init__(self) -> None:
        if type(self.name) is not str or _PLAIN_NAME.fullmatch(self.name) is None:
            _require_tensor_name(self.name)
        if type(self.dtype) is not DType:
            require_member(DType, dtype=self.dtype)
        if type(self.shape) is not tuple:
            object.__setattr__(self, "shape", as_tuple(self.shape))
            self._require_numbers()
        start, stop = self.start, self.stop
        for number in (self.file, start, stop, *self.shape):
            if type(number) is not int or not 0 <= number <= _MOST:
                self._require_numbers()
        needed = math.prod(self.shape) * self.dtype.itemsize
        if stop - start != needed:
            raise ContractError(
                self.name,
                f"got bytes {self.start} to {self.stop}, expected {needed} bytes: "
                f"{self.dtype.value} of shape {list(self.shape)}",
            )
        if not needed:
            self._require_possible()

    def _require_possible(self) -> None:
        """Arrays of no numbers count how far apart they would be, and cannot be any size either."""
        apart = math.prod(filter(None, self.shape)) * self.dtype.itemsize
        if apart > _MOST:
            raise ContractError(
                f"shape of {self.name}"[:90],
                f"got {list(self.shape)!r:.60}, expected axes that an array can have, "
                "also where one of them is 0",
            )

    def _require_numbers(self) -> None:
        _require_whole(self.name, self.shape, file=self.file, start=self.start, stop=self.stop)

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return self.stop - self.start

    @property
    def is_aligned(self) -> bool:
        """Whether it starts at a multiple of the size of its numbers, as views want it."""
        return self.start % self.dtype.itemsize == 0


def is_tensor_name(name: str) -> bool:
    """
    Say whether a tensor may have this name: text on one line, without a path.

    Example:
        >>> is_tensor_name("lm_head.weight"), is_tensor_name("../lm_head.weight")
        (True, False)
    """
    try:
        _require_tensor_name(name)
    except ContractError:
        return False
    return True


def _in_order(entries: Any) -> Any:
    entries = as_tuple(entries)
    if not isinstance(entries, tuple) or set(map(type, entries)) - {TensorEntry}:
        raise ContractError("entries", "got something else, expected a sequence of TensorEntry")
    if all(a.start < b.start and a.file == b.file for a, b in pairwise(entries)):
        return entries  # as nearly all come: to compare four fields of each takes much longer
    return tuple(sorted(entries, key=attrgetter("file", "start", "stop", "name")))


def _frozen_texts(texts: Any) -> Any:
    if not isinstance(texts, Mapping):
        raise ContractError("metadata", f"got {type(texts).__name__}, expected texts by name")
    for pair in texts.items():
        if not all(isinstance(each, str) for each in pair):
            raise ContractError("metadata", f"got {pair!a:.90}, expected texts by name")
    return MappingProxyType(dict(texts))


@attrs.frozen(kw_only=True, repr=False)
class WeightIndex(Mapping[str, TensorEntry]):
    """
    Where all tensors of a checkpoint lie; a mapping from their names, in the order of its files.

    It is true of its files as a whole: each name is there once, each range lies inside its file,
    and no byte belongs to two tensors.

    Attributes:
        format: The format of the files.
        files: The files; in a checkpoint of several, as its index names them.
        entries: The tensors by where they lie, file by file from the first byte to the last.
        metadata: What else the files say, as texts: the ``__metadata__`` of safetensors.
        aliases: Names that stand for a tensor of another name, as safetensors notes tied weights.
    """

    format: WeightFormat
    files: tuple[WeightFile, ...] = attrs.field(converter=as_tuple)
    entries: tuple[TensorEntry, ...] = attrs.field(converter=_in_order)
    metadata: Mapping[str, str] = attrs.field(factory=dict, converter=_frozen_texts)
    aliases: Mapping[str, str] = attrs.field(factory=dict, converter=_frozen_texts)
    _by_name: dict[str, TensorEntry] = attrs.field(init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        require_member(WeightFormat, format=self.format)
        for file in self.files:
            if not isinstance(file, WeightFile):
                raise ContractError("files", f"got {type(file).__name__}, expected WeightFile")
        by_name = {entry.name: entry for entry in self.entries}
        object.__setattr__(self, "_by_name", by_name)
        if len(by_name) != len(self.entries):
            raise ContractError("entries", f"got {_twice(self.entries)!a:.90} twice")
        _require_apart(self.entries, self.files)
        for alias, name in self.aliases.items():
            _require_tensor_name(alias)
            if alias in by_name or name not in by_name:
                raise ContractError(
                    "aliases",
                    f"got {alias!a:.90} for {name!a:.90}, expected a new name for a tensor",
                )

    __reduce__ = through_constructor

    def __getitem__(self, name: str) -> TensorEntry:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __repr__(self) -> str:
        return f"<WeightIndex {self.format.value}: {len(self)} tensors, {self.payload_bytes} bytes>"

    @property
    def payload_bytes(self) -> int:
        """Bytes of all tensors together, without what lies between them."""
        return sum(entry.nbytes for entry in self.entries)


def _require_apart(entries: tuple[TensorEntry, ...], files: tuple[WeightFile, ...]) -> None:
    """Require ranges inside their files that do not overlap; they come sorted."""
    file, reached, before = -1, 0, ""
    for entry in entries:
        if entry.file >= len(files):
            raise ContractError(entry.name, f"got file {entry.file}, expected one of {len(files)}")
        if entry.file != file:
            file, reached = entry.file, 0
        if entry.start < reached:
            raise ContractError(
                entry.name, f"got bytes from {entry.start} on, which belong to {before!a:.90}"
            )
        if entry.stop > files[file].size_bytes:
            raise ContractError(
                entry.name,
                f"got bytes up to {entry.stop}, expected at most {files[file].size_bytes}, "
                "the size of its file",
            )
        reached, before = entry.stop, entry.name


def _require_tensor_name(name: Any) -> None:
    require_name("name", name, max_characters=_NAME_CHARACTERS)
    if "/" in name or "\\" in name:
        raise ContractError("name", f"got {name!a:.90}, expected no path separators")


def _require_whole(of: str, shape: Any = (), **numbers: Any) -> None:
    if not isinstance(shape, tuple):
        raise ContractError(f"shape of {of}", f"got {type(shape).__name__}, expected a tuple")
    for field, number in (*numbers.items(), *(("shape", length) for length in shape)):
        if type(number) is not int or not 0 <= number <= _MOST:
            is_short = not isinstance(number, int) or number.bit_length() < 80
            shown = f"{number!r:.40}" if is_short else "a huge one"
            raise ContractError(
                f"{field} of {of}", f"got {shown}, expected a whole number from 0 to 2**63 - 1"
            )


def _twice(entries: tuple[TensorEntry, ...]) -> str:
    seen: set[str] = set()
    for entry in entries:
        if entry.name in seen:
            return entry.name
        seen.add(entry.name)
    return ""
