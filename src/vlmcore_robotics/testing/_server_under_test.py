"""A server that is being tested, and all that it was heard to say."""

from __future__ import annotations

import contextlib
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs

from vlmcore._arguments import require_kind, require_switch
from vlmcore._arrays import require_finite_between, require_member
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation, check_fits
from vlmcore.endpoint import Endpoint
from vlmcore.errors import ContractError, VlmcoreError
from vlmcore.secrets import Secret
from vlmcore.testing._promises import BrokenPromiseError
from vlmcore.testing.example_observations import example_observation
from vlmcore_robotics.testing._line import Heard, Line, ShutDoorError, Target
from vlmcore_robotics.testing._lines import GrootLine, HttpLine, OpenPILine
from vlmcore_robotics.testing._tries import Request
from vlmcore_robotics.testing.protocols import PolicyProtocol
from vlmcore_robotics.wire.groot_layout import GrootLayout
from vlmcore_robotics.wire.observation_layout import ObservationLayout
from vlmcore_robotics.wire.ports import GROOT_PORT, HTTP_PORT, OPENPI_PORT

__all__ = ["NotForThisError", "RiskError", "ServerUnderTest"]

_TELLTALE = re.compile(
    rb"Traceback \(most recent call last\)"
    rb'|File "[^"\n]{1,200}", line \d+'
    rb"|(?:/home|/root|/usr|/opt|/srv|/tmp|/var|/Users)/[\w.-]+/[\w./-]*"
    rb"|[A-Z]:\\\\?[\w. -]+\\"
    rb"|site-packages"
)
_PORTS = {
    PolicyProtocol.HTTP: HTTP_PORT,
    PolicyProtocol.OPENPI: OPENPI_PORT,
    PolicyProtocol.GROOT: GROOT_PORT,
}


class RiskError(BrokenPromiseError):
    """What a check found does not break a client, and should not be so all the same."""


class NotForThisError(Exception):
    """A check is not about this server; the argument is why."""


@attrs.frozen(kw_only=True, eq=False)
class ServerUnderTest:
    """
    A server, and how to call it; the attributes are the arguments of `check_server`.

    Attributes:
        heard: What it said that it should not have said.
    """

    protocol: PolicyProtocol
    target: Target
    observation: Observation
    deterministic: bool
    heard: list[str] = attrs.field(factory=list)

    @classmethod
    def at(
        cls,
        url: str,
        *,
        protocol: PolicyProtocol,
        embodiment: Embodiment,
        layout: ObservationLayout | GrootLayout | None,
        observation: Observation | None,
        token: Secret | None,
        tls: ssl.SSLContext | None,
        allow_remote: bool,
        deterministic: bool,
        timeout_s: float,
    ) -> ServerUnderTest:
        """
        Check what is told about it; it is not called yet.

        Raises:
            ContractError: If an argument is not as described in `check_server`.
            EndpointError: If *url* is no address, or not one that may be dialled.
        """
        require_member(PolicyProtocol, protocol=protocol)
        require_kind("embodiment", embodiment, Embodiment)
        require_switch(deterministic=deterministic)
        _require("token", token, (Secret, type(None)))
        _require("tls", tls, (ssl.SSLContext, type(None)))
        kind: Any = {
            PolicyProtocol.OPENPI: ObservationLayout,
            PolicyProtocol.HTTP: type(None),
            PolicyProtocol.GROOT: GrootLayout,
        }[protocol]
        _require("layout", layout, kind)
        require_finite_between(0.1, 600.0, timeout_s=timeout_s)
        endpoint = Endpoint.parse(
            url,
            schemes=protocol.schemes,
            default_scheme=protocol.schemes[0],
            default_port=_PORTS[protocol],
            allow_remote=allow_remote,
        )
        if endpoint.scheme in ("wss", "https"):
            tls = tls or ssl.create_default_context()
        elif tls is not None:
            raise ContractError("tls", f"got one, expected none with {endpoint.scheme}")
        seen = example_observation(embodiment) if observation is None else observation
        check_fits(seen, embodiment, all_cameras=False)
        _require_places(layout, seen, embodiment)
        target = Target(
            endpoint=endpoint,
            embodiment=embodiment,
            layout=layout,
            token=token,
            tls=tls,
            patience_s=float(timeout_s),
        )
        return cls(protocol=protocol, target=target, observation=seen, deterministic=deterministic)

    @contextmanager
    def line(self, **changes: Any) -> Iterator[Line]:
        """
        Hold a conversation; what breaks off, or is none of the protocol, breaks a promise.

        Args:
            changes: What is other than in the target.
        """
        with self.calling():
            line = self._opened(attrs.evolve(self.target, **changes))
        try:
            with self.calling():
                yield line
        finally:
            self.look_at(bytes(line.stream.heard))
            line.close()

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Tell in words of a promise what goes wrong in a call."""
        try:
            yield
        except TimeoutError as error:
            problem = f"nothing came within {self.target.patience_s:g} s"
            raise BrokenPromiseError(problem) from error
        except (VlmcoreError, OSError, EOFError, ValueError, ShutDoorError) as error:
            kind = "" if isinstance(error, ShutDoorError) else f"{type(error).__name__}: "
            raise BrokenPromiseError(f"{kind}{error!s:.300}") from error

    def call(self, observation: Observation | None = None) -> ActionChunk:
        """Ask on a connection of its own, and require actions."""
        with self.line() as line:
            return line.ask(observation or self.observation)

    def request(self, line: Line) -> Request:
        """Write a request that is right, to be made wrong."""
        return Request(
            body=line.request(self.observation),
            spelling=line.spelling,
            is_document=isinstance(line, HttpLine),
        )

    def require_alive(self) -> None:
        """Require that the next call, of whoever it is, is answered."""
        try:
            self.call()
        except BrokenPromiseError as error:
            raise BrokenPromiseError(f"after it, a good call is not answered: {error}") from error

    def heard_after(self, line: Line, said: bytes) -> Heard:
        """
        Send *said*, which may be wrong, and hear what comes.

        Raises:
            BrokenPromiseError: If nothing comes in time.
        """
        try:
            line.redial()
            with contextlib.suppress(ConnectionError):  # who hangs up in the middle may have spoken
                line.stream.send(said)
            return line.hear(self.observation)
        except TimeoutError as error:
            waited = f"{self.target.patience_s:g} s"
            problem = f"it neither answered nor hung up within {waited}"
            raise BrokenPromiseError(problem) from error
        finally:
            self.look_at(bytes(line.stream.heard))

    def look_at(self, said: bytes) -> None:
        """Keep what tells of its files and of its code."""
        match = _TELLTALE.search(said)
        if match is not None:
            self.heard.append(match[0][:120].decode("latin-1"))

    def _opened(self, target: Target) -> Line:
        match self.protocol:
            case PolicyProtocol.OPENPI:
                return OpenPILine(target)
            case PolicyProtocol.HTTP:
                return HttpLine(target)
            case PolicyProtocol.GROOT:
                return GrootLine(target)


def _require(field: str, value: Any, kind: Any) -> None:
    if not isinstance(value, kind):
        raise ContractError(field, f"got {type(value).__name__}, expected {_named(kind)}")


def _named(kind: Any) -> str:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return " or ".join("None" if each is type(None) else each.__name__ for each in kinds)


def _require_places(layout: Any, seen: Observation, robot: Embodiment) -> None:
    """Refuse a layout that the robot cannot be laid out by."""
    if isinstance(layout, ObservationLayout):
        layout.request_from(seen)
    if isinstance(layout, GrootLayout) and layout.action_names != robot.actions.names:
        came = ", ".join(layout.action_names)
        raise ContractError(
            "layout",
            f"got actions {came}, expected those of {robot.name!r}: "
            f"{', '.join(robot.actions.names)}",
        )
