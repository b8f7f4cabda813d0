"""The tokens of policy servers: from the environment of ComfyUI, and to hosts that it names."""

from __future__ import annotations

from collections.abc import Collection

from vlmcore.endpoint import Endpoint
from vlmcore.secrets import Secret, hosts_from_env

__all__ = ["token_for"]

_HOSTS = "VLA_POLICY_HOSTS"


def token_for(variable: str, address: str, *, schemes: Collection[str]) -> Secret | None:
    """
    Give the token that a server is shown.

    A graph comes from anywhere and names any server: a token goes to this machine, and beside it
    only to hosts that ``VLA_POLICY_HOSTS`` lists.

    Args:
        variable: The environment variable that holds it.
        address: Where the server is.
        schemes: Which are understood; the first is meant where none is written.

    Raises:
        EndpointError: If *address* is none.
        ContractError: If the variable holds what is no token.
    """
    token = Secret.from_env(variable)
    if token is None:
        return None
    schemes = tuple(schemes)
    endpoint = Endpoint.parse(
        address, schemes=schemes, default_scheme=schemes[0], default_port=1, allow_remote=True
    )
    return token if endpoint.is_loopback or endpoint.host in hosts_from_env(_HOSTS) else None
