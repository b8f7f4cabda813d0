"""What clients of openpi say and understand, for one robot and one layout."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from vlmcore._arguments import require_kind
from vlmcore._optional import optional_dependency
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError
from vlmcore.limits import WireLimits
from vlmcore.policy.interface import PolicyInfo
from vlmcore.secrets import Secret
from vlmcore_robotics.clients._terms import Terms
from vlmcore_robotics.wire.observation_layout import ObservationLayout
from vlmcore_robotics.wire.openpi import OpenPICodec
from vlmcore_robotics.wire.policy_info import info_from_metadata
from vlmcore_robotics.wire.ports import OPENPI_PORT

if TYPE_CHECKING:
    from vlmcore_robotics.clients._websocket_line import WebSocketLine

__all__ = ["OpenPIWords"]

_SCHEMES = ("ws", "wss")


class OpenPIWords:
    """
    Requests and answers of openpi; the arguments are those of `WebSocketPolicy`.

    Attributes:
        terms: Where the policy is, for which robot, and how long it may take.

    Raises:
        ContractError: If an argument is not as described there.
        EndpointError: If *endpoint* is no address, or not one that may be dialled.
        MissingDependencyError: If websockets is not installed.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        embodiment: Embodiment,
        layout: ObservationLayout,
        name: str | None,
        api_key: Secret | None,
        timeout_s: float,
        allow_remote: bool,
        tls: ssl.SSLContext | None,
        limits: WireLimits | None,
    ) -> None:
        self.terms = Terms.agreed(
            endpoint,
            schemes=_SCHEMES,
            default_scheme=_SCHEMES[0],
            default_port=OPENPI_PORT,
            embodiment=embodiment,
            name=name,
            timeout_s=timeout_s,
            token=api_key,
            token_field="api_key",  # noqa: S106 - a name
            allow_remote=allow_remote,
            tls=tls,
        )
        require_kind("layout", layout, ObservationLayout)
        _require_places(layout, embodiment)
        self._codec = OpenPICodec(
            policy=self.terms.policy,
            layout=layout,
            action_names=embodiment.actions.names,
            limits=limits or WireLimits(),
        )
        with optional_dependency("robotics", "websockets"):
            from vlmcore_robotics.clients import _websocket_line  # noqa: PLC0415 - the door
        self._line_type = _websocket_line.WebSocketLine

    def new_line(self) -> WebSocketLine:
        """Begin a connection; the handshake is among what is to be sent."""
        return self._line_type(
            self.terms.endpoint,
            policy=self.terms.policy,
            api_key=self.terms.token,
            limits=self._codec.limits,
        )

    def request(self, observation: Observation) -> bytes:
        """
        Write a request.

        Raises:
            ContractError: If it is not an observation of the robot, or not one of the layout.
        """
        self.terms.require_fits(observation)
        return self._codec.encode_request(observation)

    def chunk(self, answer: bytes | str, observation: Observation, info: PolicyInfo) -> ActionChunk:
        """
        Read an answer.

        Raises:
            PolicyRefusedError: If the policy failed.
            PolicyProtocolError: If it is no answer, or not of the horizon that was announced.
        """
        chunk = self._codec.decode_answer(answer, observed_at_s=observation.captured_at_s)
        return self.terms.kept(chunk, info)

    def learned(self, metadata: bytes | str, before: PolicyInfo | None) -> PolicyInfo:
        """
        Read what a server says about itself, and compare it with the robot and with what it said.

        Raises:
            PolicyRefusedError: If it is the text of an error.
            PolicyProtocolError: If it cannot be read, does not fit the robot, or differs from what
                was said on the connection before.
        """
        said = self._codec.decode_metadata(metadata)
        try:
            info = info_from_metadata(said, name=self.terms.policy)
        except ContractError as error:
            raise self.terms.fault(f"its metadata: {error}") from error
        required = {key.camera for key in self._codec.layout.cameras if key.required}
        cameras = [each for each in self.terms.embodiment.cameras if each.name in required]
        return self.terms.learned(info, before, cameras=cameras)


def _require_places(layout: ObservationLayout, robot: Embodiment) -> None:
    """Refuse a layout that no observation of the robot can be laid out by."""
    if layout.state_count != len(robot.state_names):
        raise ContractError(
            "layout",
            f"got {layout.state_count} numbers of state, expected the {len(robot.state_names)} of "
            f"{robot.name!r}: {', '.join(robot.state_names)}",
        )
    needed = [key.camera for key in layout.cameras if key.required]
    missing = [name for name in needed if name not in robot.camera_names]
    if missing:
        raise ContractError(
            "layout",
            f"got the cameras {missing}, expected those of {robot.name!r}: "
            f"{', '.join(robot.camera_names)}",
        )
