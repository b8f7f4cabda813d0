"""``vlmcore policy serve``: serve a policy until somebody stops it."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from typing import Any

from vlmcore.cli.commands import ExitCode, Terminal, add_parser, option_error, token_of
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.errors import ContractError
from vlmcore_robotics.cli._layouts import groot_layout_of, openpi_layout_of
from vlmcore_robotics.cli._recording import add_recording, recorded
from vlmcore_robotics.cli._remotes import add_remote
from vlmcore_robotics.cli._robots import add_robot, robot_from
from vlmcore_robotics.cli._serving import Server, serve_until_stopped
from vlmcore_robotics.cli._sources import HELP, policy_of
from vlmcore_robotics.servers.runtime import PolicyRuntime

__all__ = ["add"]

_PROTOCOLS = ("openpi", "http", "groot")
_EPILOG = f"""\
{HELP}
The address is the first line that is written; Ctrl-C answers what is in hand, and stops. --record
writes every call to an episode at once, whoever asks: then all clients share the policy.

A token is read from the environment and is in no argument: --token-env names the variable with the
one that clients have to show, --source-token-env the one that the server behind a URL is shown.
"""
_OPTIONS = (
    "--host",
    "--port",
    "--layout",
    "--max-waiting",
    "--idle-offload-s",
)


def add(commands: Any) -> None:
    """Add the command to *commands*."""
    parser = add_parser(
        commands,
        "serve",
        work=_serve,
        summary="serve a policy: a model, a recording, a few numbers, or another server",
        epilog=_EPILOG,
        done="it was stopped by SIGTERM, and everything in hand was answered",
        incomplete="the policy cannot be loaded, or nothing can listen at the address",
        interrupted="it was stopped with Ctrl-C, and everything in hand was answered",
    )
    parser.add_argument("source", metavar="SOURCE", help="where the policy comes from, see below")
    add_robot(parser)
    parser.add_argument(
        "--protocol", choices=_PROTOCOLS, required=True, help="what the clients speak"
    )
    parser.add_argument(
        "--horizon", type=int, default=1, metavar="N", help="of constant:, how many steps"
    )
    parser.add_argument(
        "--import-here",
        action="store_true",
        help="of MODULE:NAME, look for the module in this folder, too",
    )
    add_remote(parser, is_source=True)
    _add_listening(parser)
    add_recording(parser)
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="the first line as one JSON object")
    group.add_argument("--quiet", "-q", action="store_true", help="no notes, only complaints")


def _add_listening(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("listening")
    group.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="another one than that of this machine takes --allow-clients (default: %(default)s)",
    )
    group.add_argument(
        "--port", type=int, metavar="N", help="0 takes one that is free (default: the protocol's)"
    )
    group.add_argument(
        "--allow-clients", action="store_true", help="clients may be on other machines"
    )
    group.add_argument(
        "--token-env", metavar="VARIABLE", help="the variable with what clients have to show"
    )
    group.add_argument(
        "--max-waiting",
        type=int,
        default=8,
        metavar="N",
        help="how many requests may wait (default: %(default)s)",
    )
    group.add_argument(
        "--idle-offload-s",
        type=float,
        metavar="SECONDS",
        help="let the policy give back its accelerator after so long without a request",
    )


def _serve(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    robot = robot_from(arguments)
    with contextlib.ExitStack() as stack:
        policy = policy_of(arguments.source, arguments, robot, terminal)
        stack.callback(policy.close)
        policy = stack.enter_context(recorded(policy, arguments, robot, terminal))
        try:
            runtime = PolicyRuntime(
                policy,
                max_waiting=arguments.max_waiting,
                idle_offload_s=arguments.idle_offload_s,
            )
            stack.enter_context(runtime)
            server = _server(runtime, arguments, robot, terminal)
        except ContractError as error:
            raise _option_error(error) from None
        return asyncio.run(
            serve_until_stopped(server, lambda: _announce(server, runtime, arguments, terminal))
        )


def _option_error(error: ContractError) -> ContractError:
    problem = error.problem
    if error.field == "host":
        problem = problem.replace("pass allow_remote=True", "--allow-clients says that it is meant")
    return option_error(ContractError(error.field, problem), *_OPTIONS)


def _server(
    runtime: PolicyRuntime, arguments: argparse.Namespace, robot: Embodiment, terminal: Terminal
) -> Server:
    token = token_of(arguments.token_env)
    options: dict[str, Any] = {"host": arguments.host, "allow_remote": arguments.allow_clients}
    if arguments.port is not None:
        options["port"] = arguments.port
    match arguments.protocol:
        case "openpi":
            from vlmcore_robotics.servers.websocket import OpenPIServer  # noqa: PLC0415

            layout = openpi_layout_of(arguments.layout, robot, terminal)
            return OpenPIServer(runtime, layout=layout, api_key=token, **options)
        case "http":
            from vlmcore_robotics.servers.http import HttpPolicyServer  # noqa: PLC0415

            return HttpPolicyServer(runtime, token=token, **options)
        case _:
            from vlmcore_robotics.servers.zeromq import GrootServer  # noqa: PLC0415

            groot = groot_layout_of(arguments.layout, robot, terminal)
            return GrootServer(runtime, layout=groot, api_token=token, **options)


def _announce(
    server: Server, runtime: PolicyRuntime, arguments: argparse.Namespace, terminal: Terminal
) -> None:
    name, protocol = runtime.info.name, arguments.protocol
    if arguments.json:
        terminal.document({"url": server.url, "protocol": protocol, "policy": name})
    else:
        terminal.line(f"serving {name} ({protocol}) at {server.url}")
