"""What a document does not know: null, written out, and not a key that is left away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from vlmcore.contracts.shapes import Shape

__all__ = ["Nullable"]


@attrs.frozen
class Nullable:
    """
    A value, or null where it is not known.

    Attributes:
        item: What it is if it is known.
    """

    item: Shape

    def faults(self, value: Any, path: str) -> Iterator[tuple[str, str]]:
        """Find what is wrong."""
        if value is not None:
            yield from self.item.faults(value, path)

    def schema(self) -> dict[str, Any]:
        """Say the same as JSON Schema."""
        return {"anyOf": [self.item.schema(), {"type": "null"}]}
