"""What both clients of openpi are told when they are made, and what they make of it."""

from __future__ import annotations

import ssl
from typing import Any

import attrs

from vlmcore._arrays import require_finite_between
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation, check_fits
from vlmcore.endpoint import Endpoint
from vlmcore.errors import ContractError, PolicyError, PolicyProtocolError
from vlmcore.limits import WireLimits
from vlmcore.policy.fitting import differences_between
from vlmcore.policy.interface import PolicyInfo
from vlmcore.secrets import Secret
from vlmcore_robotics.clients._boundary import Boundary
from vlmcore_robotics.wire.observation_layout import ObservationLayout
from vlmcore_robotics.wire.openpi import OpenPICodec
from vlmcore_robotics.wire.policy_info import info_from_metadata

__all__ = ["Terms"]

_PORT = 8000
_PATIENCE_S = (0.1, 600.0)
_SCHEMES = ("ws", "wss")
_AGREED = ("action_names", "action_units", "state_names", "cameras", "horizon", "rate_hz")


@attrs.frozen(kw_only=True)
class Terms:
    """
    Where a policy is, for which robot, in which words, and how long it may take.

    Attributes:
        endpoint: Where the server listens.
        embodiment: The robot.
        codec: The words.
        timeout_s: How long a call may take.
        api_key: What the server is shown.
        tls: How the server proves who it is; ``None`` where nothing is encrypted.
        boundary: Says in errors of ours what goes wrong.
    """

    endpoint: Endpoint
    embodiment: Embodiment
    codec: OpenPICodec
    timeout_s: float
    api_key: Secret | None
    tls: ssl.SSLContext | None
    boundary: Boundary

    @classmethod
    def agreed(
        cls,
        endpoint: str,
        *,
        embodiment: Embodiment,
        layout: ObservationLayout,
        name: str | None,
        timeout_s: float,
        api_key: Secret | None,
        allow_remote: bool,
        tls: ssl.SSLContext | None,
        limits: WireLimits | None,
    ) -> Terms:
        """
        Check what a client is made with.

        Raises:
            ContractError: If an argument is not as described in `WebSocketPolicy`.
            EndpointError: If *endpoint* is no address, or not one that may be dialled.
        """
        where = Endpoint.parse(
            endpoint,
            schemes=_SCHEMES,
            default_scheme=_SCHEMES[0],
            default_port=_PORT,
            allow_remote=allow_remote,
        )
        _require_kind("embodiment", embodiment, Embodiment)
        _require_kind("layout", layout, ObservationLayout)
        if api_key is not None:
            _require_kind("api_key", api_key, Secret)
        if tls is not None:
            _require_kind("tls", tls, ssl.SSLContext)
        low_s, high_s = _PATIENCE_S
        require_finite_between(low_s, high_s, timeout_s=timeout_s)
        _require_places(layout, embodiment)
        if api_key is not None and not where.is_confidential:
            raise ContractError("api_key", "got one, expected none where nothing is encrypted")
        name = where.origin if name is None else name
        return cls(
            endpoint=where,
            embodiment=embodiment,
            codec=OpenPICodec(
                policy=name,
                layout=layout,
                action_names=embodiment.actions.names,
                limits=limits or WireLimits(),
            ),
            timeout_s=float(timeout_s),
            api_key=api_key,
            tls=_tls(where, tls),
            boundary=Boundary(
                policy=name, origin=where.origin, waits_s=float(timeout_s), secret=api_key
            ),
        )

    def request(self, observation: Observation) -> bytes:
        """
        Write a request.

        Raises:
            ContractError: If it is not an observation of the robot, or not one of the layout.
        """
        if not isinstance(observation, Observation):
            raise ContractError(
                "observation", f"got {type(observation).__name__}, expected an Observation"
            )
        check_fits(observation, self.embodiment, all_cameras=False)
        return self.codec.encode_request(observation)

    def chunk(self, answer: bytes | str, observation: Observation, info: PolicyInfo) -> ActionChunk:
        """
        Read an answer.

        Raises:
            PolicyRefusedError: If the policy failed.
            PolicyProtocolError: If it is no answer, or not of the horizon that was announced.
        """
        chunk = self.codec.decode_answer(answer, observed_at_s=observation.captured_at_s)
        if info.horizon not in (None, chunk.horizon):
            raise PolicyProtocolError(
                self.codec.policy,
                f"got {chunk.horizon} steps, expected the {info.horizon} of its metadata",
                "theirs",
            )
        return chunk

    def learned(self, metadata: bytes | str, before: PolicyInfo | None) -> PolicyInfo:
        """
        Read what a server says about itself, and compare it with the robot and with what it said.

        Raises:
            PolicyRefusedError: If it is the text of an error.
            PolicyProtocolError: If it cannot be read, does not fit the robot, or differs from what
                was said on the connection before.
        """
        policy = self.codec.policy
        said = self.codec.decode_metadata(metadata)
        try:
            info = info_from_metadata(said, name=policy)
        except ContractError as error:
            raise PolicyProtocolError(policy, f"its metadata: {error}", "theirs") from error
        wrong = differences_between(info, self.embodiment)
        if wrong:
            raise PolicyProtocolError(
                policy, f"it is not for {self.embodiment.name!r}: {'; '.join(wrong)}", "theirs"
            )
        info = self._completed(info)
        changed = [
            f"{field}: got {getattr(info, field)!r:.200}, before {getattr(before, field)!r:.200}"
            for field in _AGREED
            if before is not None and getattr(info, field) != getattr(before, field)
        ]
        if changed:
            raise PolicyProtocolError(
                policy,
                f"another policy answers now, make a new client for it: {'; '.join(changed)}",
                "theirs",
            )
        return info

    def closed(self) -> PolicyError:
        """Say that the client is closed."""
        return PolicyError(self.codec.policy, "this policy is closed: make it again")

    def _completed(self, info: PolicyInfo) -> PolicyInfo:
        """Fill in what the server does not say and the robot and the layout do."""
        robot = self.embodiment
        required = {key.camera for key in self.codec.layout.cameras if key.required}
        return attrs.evolve(
            info,
            action_names=robot.actions.names,
            state_names=robot.state_names,
            cameras=info.cameras or [each for each in robot.cameras if each.name in required],
        )


def _require_kind(field: str, value: Any, kind: type) -> None:
    if not isinstance(value, kind):
        raise ContractError(field, f"got {type(value).__name__}, expected {kind.__name__}")


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


def _tls(endpoint: Endpoint, given: ssl.SSLContext | None) -> ssl.SSLContext | None:
    if endpoint.scheme == "wss":
        return given or ssl.create_default_context()
    if given is not None:
        raise ContractError("tls", f"got one, expected none with {endpoint.scheme}")
    return None
