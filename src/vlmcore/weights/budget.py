"""How much memory reading may take besides the weights, and how many readers share it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from vlmcore._arrays import require_count
from vlmcore._host_memory import free_host_bytes, in_gib
from vlmcore.errors import ContractError

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ReadBudget"]

_MIB = 0x10_0000
_PART_OF_FREE = 8  # of what the host has free, staging takes one part in so many


@attrs.frozen(kw_only=True)
class ReadBudget:
    """
    How files are read: the memory for staging, the readers that share it, and past which cache.

    The defaults are for local disks: parts of 4 MiB, eight at a time, keep one busy, and two
    readers copy what is in memory already as fast as it can be copied.

    Attributes:
        staging_bytes: The most memory that is taken for bytes on their way. It is a bound, and not
            taken before it is needed.
        readers: How many parts are read at once, each by a thread of its own.
        chunk_bytes: The size of one part.
        cached_readers: How many of the readers copy from the page cache at once.
        direct: Whether to read past the page cache; ``None`` decides it for each part by what is in
            the cache, and reads from there what is.
        steps_down: What was asked for and not taken, and why, one sentence each.

    Example:
        >>> budget = ReadBudget.for_host(free_bytes=64 << 20)
        >>> budget.staging_bytes >> 20, budget.readers, budget.chunk_bytes >> 20
        (8, 2, 4)
        >>> budget.steps_down
        ('staging_bytes: 256.0 MiB asked for, 8.0 MiB taken: the host has 64.0 MiB free',)
    """

    staging_bytes: int = 256 * _MIB
    readers: int = 8
    chunk_bytes: int = 4 * _MIB
    cached_readers: int = 2
    direct: bool | None = None
    steps_down: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        require_count(
            staging_bytes=self.staging_bytes,
            readers=self.readers,
            chunk_bytes=self.chunk_bytes,
            cached_readers=self.cached_readers,
        )
        if self.readers > _MOST_READERS:
            raise ContractError("readers", f"got {self.readers}, expected at most {_MOST_READERS}")
        if self.chunk_bytes % _PAGE:
            raise ContractError(
                "chunk_bytes", f"got {self.chunk_bytes}, expected a multiple of {_PAGE}"
            )
        if self.readers * self.chunk_bytes > self.staging_bytes:
            raise ContractError(
                "staging_bytes",
                f"got {self.staging_bytes}, expected at least readers times chunk_bytes, "
                f"{self.readers * self.chunk_bytes}",
            )
        if self.direct is not None and not isinstance(self.direct, bool):
            raise ContractError("direct", f"got {self.direct!r:.80}, expected True, False or None")

    @classmethod
    def for_host(
        cls,
        *,
        staging_bytes: int = 256 * _MIB,
        readers: int = 8,
        chunk_bytes: int = 4 * _MIB,
        cached_readers: int = 2,
        direct: bool | None = None,
        free_bytes: int | None = None,
    ) -> Self:
        """
        Make a budget that this host can bear: smaller than asked for where it has little memory.

        Staging takes at most an eighth of what is free, and never less than one page a reader; then
        there are fewer readers, and smaller parts.

        Args:
            staging_bytes: As of the budget.
            readers: As of the budget.
            chunk_bytes: As of the budget.
            cached_readers: As of the budget.
            direct: As of the budget.
            free_bytes: What the host has free; ``None`` asks it, and its control groups.

        Raises:
            ContractError: If a value is no whole number of at least 1.
        """
        require_count(staging_bytes=staging_bytes, readers=readers, chunk_bytes=chunk_bytes)
        free = free_host_bytes() if free_bytes is None else free_bytes
        taken = staging_bytes
        steps: tuple[str, ...] = ()
        if free is not None and taken > max(free // _PART_OF_FREE, _PAGE):
            taken = max(free // _PART_OF_FREE, _PAGE)
            asked = f"{in_gib(staging_bytes)} asked for, {in_gib(taken)} taken"
            steps = (f"staging_bytes: {asked}: the host has {in_gib(free)} free",)
        chunk = max(min(chunk_bytes, taken) // _PAGE * _PAGE, _PAGE)
        fitting = max(min(readers, taken // chunk, _MOST_READERS), 1)
        if fitting < readers and not steps:
            steps += (f"readers: {readers} asked for, {fitting} taken: there is no room for more",)
        return cls(
            staging_bytes=max(taken, chunk),
            readers=fitting,
            chunk_bytes=chunk,
            cached_readers=cached_readers,
            direct=direct,
            steps_down=steps,
        )


_PAGE = 0x1000
_MOST_READERS = 256
