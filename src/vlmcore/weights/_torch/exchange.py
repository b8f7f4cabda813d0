"""Several ranks read a checkpoint together: each its share, and all get all of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import attrs
import torch
import torch.distributed as dist

from vlmcore.errors import ContractError, WeightsError
from vlmcore.weights._chunks import Chunk, cut
from vlmcore.weights._torch.staging import Ring, Slot
from vlmcore.weights.index import TensorEntry
from vlmcore.weights.ranges import RangeReader

__all__ = ["Crew", "crew_of"]

_HEAD = 0x400  # bytes of a message before its chunk: whether it is one, and why not
_WORDS = _HEAD - 2
_FINE, _FAILED = 1, 2


@attrs.frozen(kw_only=True, eq=False)
class Crew:
    """
    The ranks that read together.

    Attributes:
        group: Their process group; ``None`` is that of all processes.
        rank: Which of them this process is.
        size: How many they are.
        device: Where their messages are: on the CPU, or where their backend wants them.
    """

    group: Any
    rank: int
    size: int
    device: torch.device

    def agree(self, path: str, prepare: Callable[[], bytes]) -> None:
        """
        Prepare in every rank, and require that all could, and prepared the same.

        Args:
            path: The checkpoint, for errors.
            prepare: Prepares, and returns what must be the same everywhere.

        Raises:
            WeightsError: If another rank could not, or has another checkpoint.
            Exception: What *prepare* raises here, once the others know.
        """
        own: Exception | None = None
        content = b""
        try:
            content = prepare()
        except Exception as error:  # noqa: BLE001 - raised again when the others know
            own = error
        heads = self._tell(path, _head(own, hashlib.sha256(content).hexdigest().encode()))
        if own is not None:
            raise own
        _require_fine(path, heads)
        for rank, head in enumerate(heads):
            if head != heads[self.rank]:
                problem = "has other files, other tensors of them, or another budget"
                raise WeightsError(path, f"rank {rank} {problem} than rank {self.rank}")

    def share(
        self,
        path: str,
        entries: Iterable[TensorEntry],
        reader: RangeReader,
        ring: Ring,
        *,
        go_on: Callable[[], None],
    ) -> Iterator[tuple[Chunk, Slot]]:
        """
        Read every rank's share, and give all of it to all: one chunk of each rank at a time.

        Args:
            path: The checkpoint, for errors.
            entries: Its tensors, the same in every rank.
            reader: Reads this rank's share.
            ring: What it reads into; its parts are of the same size in every rank.
            go_on: Asked before each round; raises if this rank shall not go on.

        Yields:
            Each chunk, in the order of the files, and what holds its bytes until the next is taken.

        Raises:
            WeightsError: If a rank cannot read its share, does not go on, or is gone.
            Exception: What *go_on* raises here, once the others know.
        """
        chunks = list(cut(entries, ring.chunk_bytes))
        mine = torch.zeros(_HEAD + ring.chunk_bytes, dtype=torch.uint8)
        all_of_them = [torch.zeros_like(mine, device=self.device) for _ in range(self.size)]
        reading = ring.fill(chunks[self.rank :: self.size], reader)
        for first in range(0, len(chunks), self.size):
            own = self._next(reading, mine, go_on, is_due=first + self.rank < len(chunks))
            self._gather(path, all_of_them, mine)
            if own is not None:
                raise own
            heads = [bytes(each[:_HEAD].cpu().numpy()) for each in all_of_them]
            _require_fine(path, heads)
            for chunk, message in zip(chunks[first:], all_of_them, strict=False):
                yield chunk, Slot(message, lead=_HEAD)

    def _next(
        self,
        reading: Iterator[tuple[Chunk, Slot]],
        message: torch.Tensor,
        go_on: Callable[[], None],
        *,
        is_due: bool,
    ) -> Exception | None:
        """Put the next chunk of this rank, or why there is none, into its message."""
        own: Exception | None = None
        try:
            go_on()
            if is_due:
                chunk, slot = next(reading)
                body = slot.memory[slot.lead : slot.lead + chunk.nbytes]
                message[_HEAD : _HEAD + chunk.nbytes].copy_(body)
        except Exception as error:  # noqa: BLE001 - raised again when the others know
            own = error
        message[:_HEAD] = torch.frombuffer(bytearray(_head(own, b"")), dtype=torch.uint8)
        return own

    def _tell(self, path: str, head: bytes) -> list[bytes]:
        mine = torch.frombuffer(bytearray(head), dtype=torch.uint8)
        heads = [torch.zeros_like(mine, device=self.device) for _ in range(self.size)]
        self._gather(path, heads, mine)
        return [bytes(each.cpu().numpy()) for each in heads]

    def _gather(self, path: str, into: list[torch.Tensor], mine: torch.Tensor) -> None:
        try:
            dist.all_gather(into, mine.to(self.device), group=self.group)
        except RuntimeError as error:
            line = str(error).strip().partition("\n")[0]
            raise WeightsError(path, f"another rank is gone ({line:.200})") from error


def crew_of(group: Any, device: torch.device) -> Crew:
    """
    Find out which rank of which group this process is.

    Raises:
        ContractError: If the ranks were not introduced to each other, or this is none of the group.
    """
    if not dist.is_available() or not dist.is_initialized():
        problem = "got no ranks, expected torch.distributed.init_process_group to have been called"
        raise ContractError("group", problem)
    rank = dist.get_rank(group)
    if rank < 0:
        raise ContractError("group", "got a group that this process is not in")
    on_host = dist.get_backend(group) in ("gloo", "mpi")
    place_of = torch.device("cpu") if on_host else device
    return Crew(group=group, rank=rank, size=dist.get_world_size(group), device=place_of)


def _head(failure: Exception | None, content: bytes) -> bytes:
    """Say whether all is well, and what, in the first bytes of a message."""
    code, words = _FINE, content
    if failure is not None:
        code, words = _FAILED, f"{type(failure).__name__}: {failure}".encode()[:_WORDS]
    return bytes([code]) + words.ljust(_HEAD - 1, b"\0")


def _require_fine(path: str, heads: Sequence[bytes]) -> None:
    for rank, head in enumerate(heads):
        if head[0] != _FINE:
            words = head[1:].rstrip(b"\0").decode("utf-8", "replace")
            raise WeightsError(path, f"rank {rank} cannot load it ({words})")
