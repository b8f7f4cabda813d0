"""What every client is told when it is made: where the policy is, for which robot, for how long."""

from __future__ import annotations

import ssl
from collections.abc import Collection

import attrs

from vlmcore._arguments import require_kind, require_switch
from vlmcore._arrays import require_finite_between, require_name
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import CameraSpec, Embodiment
from vlmcore.contracts.observation import Observation, check_fits
from vlmcore.endpoint import Endpoint
from vlmcore.errors import ContractError, PolicyError, PolicyProtocolError
from vlmcore.limits import ContractLimits
from vlmcore.policy.fitting import differences_between
from vlmcore.policy.interface import PolicyInfo
from vlmcore.secrets import Secret
from vlmcore_robotics.clients._boundary import Boundary

__all__ = ["Terms"]

_PATIENCE_S = (0.1, 600.0)
_ENCRYPTED = ("https", "wss")
_AGREED = ("action_names", "action_units", "state_names", "cameras", "horizon", "rate_hz")


@attrs.frozen(kw_only=True)
class Terms:
    """
    Where a policy is, for which robot, and how long it may take; in whatever protocol.

    Attributes:
        policy: What it is called in chunks and errors.
        endpoint: Where the server listens.
        embodiment: The robot.
        timeout_s: How long a call may take.
        token: What the server is shown.
        tls: How the server proves who it is; ``None`` where nothing is encrypted.
        boundary: Says in errors of ours what goes wrong.
    """

    policy: str
    endpoint: Endpoint
    embodiment: Embodiment
    timeout_s: float
    token: Secret | None
    tls: ssl.SSLContext | None
    boundary: Boundary

    @classmethod
    def agreed(
        cls,
        endpoint: str,
        *,
        schemes: Collection[str],
        default_scheme: str,
        default_port: int,
        embodiment: Embodiment,
        name: str | None,
        timeout_s: float,
        token: Secret | None,
        allow_remote: bool,
        token_field: str = "token",  # noqa: S107 - a name
        tls: ssl.SSLContext | None = None,
        allow_readable_token: bool = False,
    ) -> Terms:
        """
        Check what a client is made with.

        Args:
            endpoint: As the caller wrote it.
            schemes: Those of the protocol.
            default_scheme: Which is meant where none is written.
            default_port: Which is meant where none is written.
            embodiment: The robot.
            name: What the policy is called; the endpoint if ``None``.
            timeout_s: How long a call may take.
            token: What the server is shown.
            allow_remote: Whether the server may be on another host.
            token_field: What the client calls *token*.
            tls: How an encrypted server proves who it is; as browsers do it if ``None``.
            allow_readable_token: Whether *token* may be sent where others can read it.

        Raises:
            ContractError: If an argument is not as a client describes it.
            EndpointError: If *endpoint* is no address, or not one that may be dialled.
        """
        where = Endpoint.parse(
            endpoint,
            schemes=schemes,
            default_scheme=default_scheme,
            default_port=default_port,
            allow_remote=allow_remote,
        )
        require_switch(allow_readable_token=allow_readable_token)
        require_kind("embodiment", embodiment, Embodiment)
        if token is not None:
            require_kind(token_field, token, Secret)
        low_s, high_s = _PATIENCE_S
        require_finite_between(low_s, high_s, timeout_s=timeout_s)
        if token is not None and not (where.is_confidential or allow_readable_token):
            raise ContractError(token_field, "got one, expected none where nothing is encrypted")
        name = where.origin if name is None else name
        require_name("name", name, max_characters=ContractLimits().max_name_characters)
        return cls(
            policy=name,
            endpoint=where,
            embodiment=embodiment,
            timeout_s=float(timeout_s),
            token=token,
            tls=_tls(where, tls),
            boundary=Boundary(
                policy=name, origin=where.origin, waits_s=float(timeout_s), secret=token
            ),
        )

    def require_fits(self, observation: Observation) -> None:
        """
        Check that an observation is one of the robot; cameras may be missing, others never there.

        Raises:
            ContractError: If it is not.
        """
        require_kind("observation", observation, Observation)
        check_fits(observation, self.embodiment, all_cameras=False)

    def learned(
        self,
        info: PolicyInfo,
        before: PolicyInfo | None,
        *,
        cameras: Collection[CameraSpec],
    ) -> PolicyInfo:
        """
        Compare what a server says about itself with the robot, and with what it said before.

        Args:
            info: What it says.
            before: What this returned on the connection before, if there was one.
            cameras: What the policy is shown where it does not say what it expects to see.

        Returns:
            What it says, filled up from the robot.

        Raises:
            PolicyProtocolError: If it does not fit the robot, or another policy answers now.
        """
        robot = self.embodiment
        wrong = differences_between(info, robot)
        if wrong:
            raise self.fault(f"it is not for {robot.name!r}: {'; '.join(wrong)}")
        info = attrs.evolve(
            info,
            action_names=robot.actions.names,
            state_names=robot.state_names,
            cameras=info.cameras or tuple(cameras),
        )
        changed = [
            f"{field}: got {getattr(info, field)!r:.200}, before {getattr(before, field)!r:.200}"
            for field in _AGREED
            if before is not None and getattr(info, field) != getattr(before, field)
        ]
        if changed:
            raise self.fault(
                f"another policy answers now, make a new client for it: {'; '.join(changed)}"
            )
        return info

    def kept(self, chunk: ActionChunk, info: PolicyInfo) -> ActionChunk:
        """
        Pass *chunk* on if it has as many steps as was announced.

        Raises:
            PolicyProtocolError: If it has not.
        """
        if info.horizon not in (None, chunk.horizon):
            raise self.fault(
                f"got {chunk.horizon} steps, expected the {info.horizon} of its metadata"
            )
        return chunk

    def fault(self, problem: str) -> PolicyProtocolError:
        """Say what the server did that is not of the protocol."""
        return PolicyProtocolError(self.policy, problem, "theirs")

    def closed(self) -> PolicyError:
        """Say that the client is closed."""
        return PolicyError(self.policy, "this policy is closed: make it again")


def _tls(endpoint: Endpoint, given: ssl.SSLContext | None) -> ssl.SSLContext | None:
    if given is not None:
        require_kind("tls", given, ssl.SSLContext)
    if endpoint.scheme in _ENCRYPTED:
        return given or ssl.create_default_context()
    if given is not None:
        raise ContractError("tls", f"got one, expected none with {endpoint.scheme}")
    return None
