"""What both clients of openpi are made of: their terms, and how their errors are told."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from vlmcore._optional import optional_dependency
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.errors import PolicyError, VlmcoreError
from vlmcore.limits import WireLimits
from vlmcore.policy.interface import PolicyInfo
from vlmcore.secrets import Secret
from vlmcore_robotics.clients._boundary import Stage
from vlmcore_robotics.clients._openpi_terms import Terms
from vlmcore_robotics.wire.observation_layout import ObservationLayout

if TYPE_CHECKING:
    from vlmcore_robotics.clients._websocket_line import Line

__all__ = ["OpenPIClient"]


class OpenPIClient:
    """A client without its socket; the arguments are those of `WebSocketPolicy`."""

    def __init__(
        self,
        endpoint: str,
        *,
        embodiment: Embodiment,
        layout: ObservationLayout,
        name: str | None = None,
        api_key: Secret | None = None,
        timeout_s: float = 10.0,
        allow_remote: bool = False,
        tls: ssl.SSLContext | None = None,
        limits: WireLimits | None = None,
    ) -> None:
        self._terms = Terms.agreed(
            endpoint,
            embodiment=embodiment,
            layout=layout,
            name=name,
            api_key=api_key,
            timeout_s=timeout_s,
            allow_remote=allow_remote,
            tls=tls,
            limits=limits,
        )
        with optional_dependency("robotics", "websockets"):
            from vlmcore_robotics.clients import _websocket_line  # noqa: PLC0415 - the door
        self._line_type = _websocket_line.Line
        self._info: PolicyInfo | None = None
        self._stage = Stage.TURN
        self._is_closed = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._terms.endpoint.origin!r})"

    def _new_line(self) -> Line:
        terms = self._terms
        return self._line_type(
            terms.endpoint,
            policy=terms.codec.policy,
            api_key=terms.api_key,
            limits=terms.codec.limits,
        )

    def _problem(self, error: Exception, stage: Stage) -> VlmcoreError:
        if self._is_closed:
            return PolicyError(self._terms.codec.policy, "it was closed during the call")
        return self._terms.boundary.translated(error, stage)

    def _require_open(self) -> None:
        if self._is_closed:
            raise self._terms.closed()
