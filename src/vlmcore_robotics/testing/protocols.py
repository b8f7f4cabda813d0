"""Which protocols the kit speaks."""

from __future__ import annotations

import enum

__all__ = ["PolicyProtocol"]


class PolicyProtocol(enum.Enum):
    """A protocol of policy servers; the value is its name for people and for commands."""

    OPENPI = "openpi"
    HTTP = "http"
    GROOT = "groot"

    @property
    def schemes(self) -> tuple[str, ...]:
        """The schemes of addresses; where something is encrypted, it is the last of them."""
        match self:
            case PolicyProtocol.OPENPI:
                return ("ws", "wss")
            case PolicyProtocol.HTTP:
                return ("http", "https")
            case PolicyProtocol.GROOT:
                return ("tcp",)
