"""How every server begins and ends, whatever it speaks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import TYPE_CHECKING

import attrs

from vlmcore._arrays import require_finite_between
from vlmcore.errors import EndpointError
from vlmcore_robotics.servers._terms import Address

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Server"]


class Server(ABC):
    """
    Listens at an address, until it is stopped; once.

    Args:
        address: Where it listens.
        scheme: How a client calls that, as ``"ws"``.
    """

    def __init__(self, address: Address, scheme: str) -> None:
        self._address = address
        self._scheme = scheme
        self._is_used = False

    @property
    def url(self) -> str:
        """Where a client on this machine reaches it; with the port that was taken, once started."""
        return self._address.url(self._scheme)

    async def start(self) -> None:
        """
        Listen.

        Raises:
            EndpointError: If that is not possible, as when the port is in use, or when it was
                started or stopped before.
        """
        if self._is_used:
            raise EndpointError(self.url, "it was started or stopped before: make another server")
        try:
            port = await self._listen(self._address.numeric, self._address.port)
        except OSError as error:
            raise EndpointError(self.url, f"cannot listen there: {error.strerror}") from error
        self._is_used = True
        self._address = attrs.evolve(self._address, port=port)

    async def stop(self, *, grace_s: float = 5.0) -> None:
        """
        Take no more requests, answer those that are in hand, and hang up.

        Args:
            grace_s: How long answers may take, 0 to 600 seconds; then they are given up.

        Raises:
            ContractError: If *grace_s* is not as described.
        """
        require_finite_between(0.0, 600.0, grace_s=grace_s)
        self._is_used = True
        await self._hang_up(grace_s)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    @abstractmethod
    async def _listen(self, host: str, port: int) -> int:
        """Listen at *host*, in numbers; say at which port."""

    @abstractmethod
    async def _hang_up(self, grace_s: float) -> None:
        """Answer what is in hand within *grace_s*, and end."""
