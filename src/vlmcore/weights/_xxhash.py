"""The door of xxhash: checksums that are as fast as memory."""

from __future__ import annotations

from vlmcore._optional import optional_dependency

with optional_dependency("weights", "xxhash"):
    from xxhash import xxh3_128

__all__ = ["xxh3_128"]
