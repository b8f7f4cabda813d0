"""Chunks whose dimensions come in another order."""

from __future__ import annotations

import attrs

from vlmcore.contracts.actions import ActionChunk
from vlmcore.errors import ContractError

__all__ = ["in_order"]


def in_order(chunk: ActionChunk, names: tuple[str, ...]) -> ActionChunk:
    """
    Put the dimensions of a chunk in the order of *names*; its parts are side by side no longer.

    Raises:
        ContractError: If they are other ones.
    """
    if chunk.names == names:
        return chunk
    if set(chunk.names) != set(names):
        raise ContractError(
            "chunk.names", f"got {', '.join(chunk.names)}, expected {', '.join(names)}"
        )
    order = [chunk.names.index(name) for name in names]
    return attrs.evolve(chunk, values=chunk.values[:, order], names=names, streams=())
