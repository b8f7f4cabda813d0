"""``vlmcore policy conformance``: hold a policy server to what every one must do."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vlmcore.cli.commands import ExitCode, Terminal, add_parser, option_error, token_of
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.errors import ContractError
from vlmcore_robotics.cli._layouts import groot_layout_of, openpi_layout_of
from vlmcore_robotics.cli._remotes import add_remote, protocol_of, trust_of
from vlmcore_robotics.cli._robots import add_robot, robot_from

if TYPE_CHECKING:
    from vlmcore_robotics.testing.server_checks import ServerCheckResult

__all__ = ["add"]

_EPILOG = """\
The server is asked for actions many times, and then attacked: with requests that are none, with
messages that ask for much memory, by clients that hang up, drip or say nothing. After each attack a
good call must be answered. Nothing is sent to a robot; do it to no server that a robot listens to,
and to none that is not yours.

A risk breaks no client and lets somebody do harm: as a page in a browser that may call the server.
"""


def add(commands: Any) -> None:
    """Add the command to *commands*."""
    parser = add_parser(
        commands,
        "conformance",
        work=_conformance,
        summary="hold a policy server to what every one must do",
        epilog=_EPILOG,
        done="nothing failed",
        incomplete="something did, or, with --strict, there is a risk",
    )
    add_remote(parser)
    add_robot(parser)
    group = parser.add_argument_group("checks")
    group.add_argument("--strict", action="store_true", help="a risk is a failure, too")
    group.add_argument(
        "--deterministic",
        action="store_true",
        help="the same observations give the same actions: then it is seen whether clients get "
        "what others asked for",
    )
    group.add_argument(
        "--good-only", action="store_true", help="call the server as a good client does only"
    )
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="one JSON object")


def _conformance(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    from vlmcore_robotics.testing.protocols import PolicyProtocol  # noqa: PLC0415
    from vlmcore_robotics.testing.server_checks import (  # noqa: PLC0415
        SERVER_CHECKS,
        Finding,
        check_server,
    )

    robot = robot_from(arguments)
    protocol = protocol_of(arguments.url)

    def tell(result: ServerCheckResult) -> None:
        if not arguments.json and result.finding is not Finding.SKIPPED:
            terminal.line(str(result))

    try:
        report = check_server(
            arguments.url,
            protocol=PolicyProtocol(protocol),
            embodiment=robot,
            layout=_layout(protocol, arguments.layout, robot, terminal),
            token=token_of(arguments.source_token_env, arguments.token_option),
            tls=trust_of(arguments.url, arguments),
            allow_remote=arguments.allow_remote,
            deterministic=arguments.deterministic,
            timeout_s=arguments.timeout_s,
            checks=[
                check for check in SERVER_CHECKS if not (arguments.good_only and check.is_hostile)
            ],
            on_result=tell,
        )
    except ContractError as error:
        raise option_error(error, "--timeout-s", "--layout", "--embodiment") from None
    if arguments.json:
        terminal.document(report.to_document(), indent=2)
    else:
        terminal.line(str(report))
    conforms = report.is_conforming(strict=arguments.strict)
    return ExitCode.DONE if conforms else ExitCode.INCOMPLETE


def _layout(protocol: str, word: str | None, robot: Embodiment, terminal: Terminal) -> Any:
    match protocol:
        case "openpi":
            return openpi_layout_of(word, robot, terminal)
        case "groot":
            return groot_layout_of(word, robot, terminal)
        case _:
            return None
