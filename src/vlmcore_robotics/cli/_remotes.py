"""A policy behind a server, by the address of the server."""

from __future__ import annotations

import argparse
import ssl
from typing import TYPE_CHECKING, Any, TypeAlias

from vlmcore._net.authorities import trusting
from vlmcore.cli.commands import Terminal, option_error, token_of
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.errors import ContractError
from vlmcore_robotics.cli._layouts import add_layout, groot_layout_of, openpi_layout_of
from vlmcore_robotics.wire.ports import GROOT_PORT, HTTP_PORT, OPENPI_PORT

if TYPE_CHECKING:
    from vlmcore_robotics.clients.http import HttpPolicy
    from vlmcore_robotics.clients.websocket import WebSocketPolicy
    from vlmcore_robotics.clients.zeromq import ZmqPolicy

    RemotePolicy: TypeAlias = WebSocketPolicy | HttpPolicy | ZmqPolicy

__all__ = ["PROTOCOLS", "add_remote", "client_of", "protocol_of", "trust_of"]

#: Which protocol an address with a scheme is of.
PROTOCOLS = {"ws": "openpi", "wss": "openpi", "http": "http", "https": "http", "tcp": "groot"}

_ENCRYPTED = ("wss", "https")
_OPTIONS = ("--timeout-s", "--layout", "--embodiment")
_TOKENS = ("token", "api_key", "api_token")


def add_remote(parser: argparse.ArgumentParser, *, is_source: bool = False) -> None:
    """Add the options that say how a server is reached; *is_source* if it may be none."""
    if not is_source:
        parser.add_argument(
            "url",
            metavar="URL",
            help=f"ws://host:{OPENPI_PORT} (openpi), http://host:{HTTP_PORT} (HTTP), "
            f"tcp://host:{GROOT_PORT} (GR00T); wss and https, too",
        )
    add_layout(parser)
    option = "--source-token-env" if is_source else "--token-env"
    parser.set_defaults(token_option=option)
    group = parser.add_argument_group("server behind a URL" if is_source else "server")
    group.add_argument(
        "--timeout-s",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="how long a call may take, all in all (default: %(default)s)",
    )
    group.add_argument(
        option,
        dest="source_token_env",
        metavar="VARIABLE",
        help="the environment variable with the token that the server is shown; none is unless "
        "this is given",
    )
    group.add_argument(
        "--allow-remote", action="store_true", help="the server may be on another host"
    )
    group.add_argument(
        "--ca",
        metavar="FILE",
        help="the authorities, in PEM, that say whom the server's certificate is of, instead of "
        "those that browsers know; for wss and https",
    )


def protocol_of(url: str) -> str:
    """
    Tell the protocol by the scheme of an address: ``openpi``, ``http`` or ``groot``.

    Raises:
        ContractError: If it has no scheme of them.
    """
    scheme, separator, _ = url.partition("://")
    protocol = PROTOCOLS.get(scheme.lower()) if separator else None
    if protocol is None:
        expected = ", ".join(f"{scheme}://" for scheme in PROTOCOLS)
        raise ContractError("URL", f"got {url[:80]!a}, expected an address with {expected}")
    return protocol


def trust_of(url: str, arguments: argparse.Namespace) -> ssl.SSLContext | None:
    """
    Trust whom ``--ca`` says; ``None`` where it is not given.

    Raises:
        ContractError: If it is no file of certificates, or nothing is encrypted at *url*.
    """
    if arguments.ca is None:
        return None
    scheme = url.partition("://")[0].lower()
    if scheme not in _ENCRYPTED:
        raise ContractError("--ca", f"got a file, expected none with {scheme}")
    try:
        return trusting(arguments.ca)
    except ContractError as error:
        raise ContractError("--ca", error.problem) from None


def client_of(
    url: str, arguments: argparse.Namespace, robot: Embodiment, terminal: Terminal
) -> RemotePolicy:
    """
    Make the client of a server; nothing is dialled yet.

    Raises:
        ContractError: If an option is not as described.
        EndpointError: If *url* is no address, or not one that may be dialled.
        MissingDependencyError: If a package is not installed.
    """
    protocol = protocol_of(url)
    token = token_of(arguments.source_token_env, arguments.token_option)
    tls = trust_of(url, arguments)
    options: dict[str, Any] = {
        "embodiment": robot,
        "timeout_s": arguments.timeout_s,
        "allow_remote": arguments.allow_remote,
    }
    try:
        match protocol:
            case "openpi":
                from vlmcore_robotics.clients.websocket import WebSocketPolicy  # noqa: PLC0415

                layout = openpi_layout_of(arguments.layout, robot, terminal)
                return WebSocketPolicy(url, layout=layout, api_key=token, tls=tls, **options)
            case "http":
                from vlmcore_robotics.clients.http import HttpPolicy  # noqa: PLC0415

                return HttpPolicy(url, token=token, tls=tls, **options)
            case _:
                from vlmcore_robotics.clients.zeromq import ZmqPolicy  # noqa: PLC0415

                groot = groot_layout_of(arguments.layout, robot, terminal)
                return ZmqPolicy(url, layout=groot, api_token=token, **options)
    except ContractError as error:
        if error.field in _TOKENS:
            raise ContractError(arguments.token_option, error.problem) from None
        raise option_error(error, *_OPTIONS) from None
