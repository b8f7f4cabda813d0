"""Modules whose weights are read when they are needed, part by part, within a budget."""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from operator import attrgetter

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from vlmcore._closing import Closing
from vlmcore.weights._arena import HUGE_PAGE, allocate
from vlmcore.weights._granting import granted
from vlmcore.weights._layout import ALIGNMENT, lay_out
from vlmcore.weights._parts import Part
from vlmcore.weights._torch.checking import PieceChecks, require_checksums
from vlmcore.weights._torch.into import fill
from vlmcore.weights._torch.matching import Match, Pair
from vlmcore.weights._torch.placeholders import LazyParameters, LazyWeight, Placeholder
from vlmcore.weights._torch.reading import Reading
from vlmcore.weights._torch.staging import Ring, place
from vlmcore.weights._torch.tensors import tensor_over, torch_dtype
from vlmcore.weights.index import TensorEntry
from vlmcore.weights.pool import WeightPool
from vlmcore.weights.ranges import FileRange, RangeReader

__all__ = ["LazyLoad"]

_SMALL, _LARGE = 0x1_0000, 0x200_0000  # bytes: below the one a heap, above the other large pages


class LazyLoad(Closing):
    """
    The weights of one module, which come from open files when they are needed.

    Buffers, and what a module holds on to by other ways than its attributes, are read at once and
    stay; that counts against the budget too.

    Args:
        module: The module.
        found: What of the files goes where in it.
        reading: How files are read. They are closed with this.
        pool: The budget.

    Attributes:
        report: What was read at once.

    Raises:
        WeightsBudgetError: If what stays, or the weights of one module, are beyond the budget.
        WeightsError: If what stays cannot be read.
    """

    def __init__(self, module: nn.Module, found: Match, reading: Reading, pool: WeightPool) -> None:
        self._reading = reading
        self._pool = pool
        self._reader = RangeReader(reading.files, reading.budget)
        self._parts: list[Part] = []
        self._reserved_bytes = 0
        staying = [pair for pair in found.pairs if _stays(pair)]
        coming = [pair for pair in found.pairs if not _stays(pair)]
        try:
            self._keep(sum(_nbytes(pair) for pair in staying))
            placeholders = self._plan(coming)
            self.report = fill(module, found, reading, staying)
        except BaseException:
            self.close()
            raise
        for pair, placeholder in zip(coming, placeholders, strict=True):
            for owner, name in pair.target.holders:
                _lazy_parameters(owner)[name] = placeholder

    def close(self) -> None:
        """Give the memory back; a module that needs its weights afterwards is told so."""
        parts, self._parts = self._parts, []
        for part in parts:
            self._pool.remove(part)
        self._pool.release(self._reserved_bytes)
        self._reserved_bytes = 0
        self._reader.close()
        self._reading.files.close()

    def _keep(self, nbytes: int) -> None:
        self._pool.reserve(self._reading.files.path, nbytes)
        self._reserved_bytes = nbytes

    def _plan(self, pairs: Sequence[Pair]) -> list[Placeholder]:
        """Make a part of the weights of each module; a tied one goes with the first that has it."""
        by_owner: dict[nn.Module, list[Pair]] = {}
        for pair in pairs:
            by_owner.setdefault(pair.target.holders[0][0], []).append(pair)
        made: dict[int, Placeholder] = {}
        for group in by_owner.values():
            part = self._part_of(group)
            self._pool.add(part)
            self._parts.append(part)
            for position, pair in enumerate(group):
                name = pair.target.names[0]
                lazy = LazyWeight(name, self._pool, part, position, self._reading.device)
                shape = torch.Size(pair.entry.shape)
                made[id(pair)] = Placeholder(lazy, shape, pair.dtype)
        return [made[id(pair)] for pair in pairs]

    def _part_of(self, pairs: list[Pair]) -> Part:
        return Part(
            path=self._reading.files.path,
            nbytes=_rounded(sum(_nbytes(pair) + ALIGNMENT for pair in pairs)),
            load=lambda: self._load(pairs),
            is_changed=lambda weights: any(each._version != each.version_read for each in weights),  # noqa: SLF001
        )

    def _load(self, pairs: list[Pair]) -> list[nn.Parameter]:
        """Read the weights of one module. Each knows its version, so that writes are noticed."""
        self._reading.files.check_unchanged()
        needed = sum(_nbytes(pair) for pair in pairs)
        with (
            granted(self._reading.files.path, needed),
            torch.inference_mode(mode=False),
            torch.no_grad(),
        ):
            if self._reading.device.type == "cpu":
                converted = [pair for pair in pairs if torch_dtype(pair.entry.dtype) != pair.dtype]
                plain = [pair for pair in pairs if torch_dtype(pair.entry.dtype) == pair.dtype]
                tensors = {**self._plain(plain), **self._converted(converted)}
            else:
                wanted = {pair.entry.name: pair.dtype for pair in pairs}
                tensors, _ = self._reading.read(wanted)
            weights = []
            for pair in pairs:
                weight = nn.Parameter(tensors[pair.entry.name], requires_grad=False)
                weight.version_read = weight._version  # type: ignore[attr-defined]  # noqa: SLF001
                weights.append(weight)
        self._reading.files.check_unchanged()
        return weights

    def _plain(self, pairs: list[Pair]) -> dict[str, torch.Tensor]:
        """Read weights to where they stay, all of them at once."""
        entries = _in_order(pairs)
        layout = lay_out(entries)
        arena = _memory(layout.nbytes)
        self._reader.read(
            FileRange(
                file=each.file, start=each.start, into=arena[each.at :][: each.stop - each.start]
            )
            for each in layout.segments
        )
        places = layout.places
        raws = {each.name: arena[places[each.name] :][: each.nbytes] for each in entries}
        require_checksums(self._reading.files.path, raws, self._reading.expected)
        return {each.name: tensor_over(torch.from_numpy(raws[each.name]), each) for each in entries}

    def _converted(self, pairs: list[Pair]) -> dict[str, torch.Tensor]:
        """Read weights by way of staging memory, which may be less than they are in the file."""
        entries, how = _in_order(pairs), self._reading
        flat = {
            pair.entry.name: torch.from_numpy(_memory(_nbytes(pair))).view(pair.dtype)
            for pair in pairs
        }
        checks = PieceChecks(entries, how.expected)
        ring = Ring(
            how.budget.staging_bytes,
            sum(entry.nbytes for entry in entries),
            part_bytes=how.budget.chunk_bytes,
            pins=False,
        )
        for chunk, slot in ring.chunks(entries, self._reader):
            place(chunk, slot, flat)
            checks.note(chunk, slot)
        checks.finish(how.files.path)
        return {each.name: flat[each.name].reshape(each.shape) for each in entries}


def _stays(pair: Pair) -> bool:
    """Buffers change while a module runs, and recurrent modules hold their weights in a list."""
    owners = (owner for owner, _ in pair.target.holders)
    return pair.target.is_buffer or any(isinstance(owner, nn.RNNBase) for owner in owners)


def _lazy_parameters(owner: nn.Module) -> LazyParameters:
    """Let those who ask *owner* for a parameter ask for the weight."""
    found = owner.__dict__["_parameters"]
    if not isinstance(found, LazyParameters):
        found = owner.__dict__["_parameters"] = LazyParameters(found)
    return found


def _nbytes(pair: Pair) -> int:
    return math.prod(pair.entry.shape) * pair.dtype.itemsize


def _in_order(pairs: Sequence[Pair]) -> list[TensorEntry]:
    return sorted((pair.entry for pair in pairs), key=attrgetter("file", "start", "stop"))


def _rounded(nbytes: int) -> int:
    """What memory for *nbytes* really takes."""
    if nbytes < _SMALL:
        return nbytes
    page = HUGE_PAGE if nbytes >= _LARGE else mmap.PAGESIZE
    return nbytes + -nbytes % page


def _memory(nbytes: int) -> npt.NDArray[np.uint8]:
    """Allocate memory that goes back to the host at once when nobody holds it any more."""
    if nbytes < _SMALL:
        return torch.empty(nbytes, dtype=torch.uint8).numpy()  # starts at a multiple of 64 bytes
    return allocate(nbytes, large_pages=nbytes >= _LARGE)
