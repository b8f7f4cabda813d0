"""``vlmcore policy call``: ask a policy behind a server once, and look at what it proposes."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any, cast

import attrs

from vlmcore.cli.commands import CODES, ExitCode, Terminal, add_parser, write_bytes
from vlmcore.cli.robot_commands import Start, note_template, verdict_lines
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.documents import action_chunk_to_document
from vlmcore.contracts.json_text import write_json
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError, UnsafeActionError
from vlmcore.media.encoding import encode_png
from vlmcore.policy.interface import Policy
from vlmcore.safety.documents import safety_report_to_document
from vlmcore.safety.gate import SafetyGate
from vlmcore.safety.report import SafetyReport
from vlmcore.safety.vetted import VettedChunk
from vlmcore_robotics.cli._observing import add_observation, observation_from
from vlmcore_robotics.cli._remotes import add_remote, client_of
from vlmcore_robotics.cli._robots import add_gate, add_robot, gate_of, robot_from, start_from
from vlmcore_robotics.cli._showing import chunk_document, chunk_lines, durations, info_document

__all__ = ["add"]

_EPILOG = """\
What comes is put to the safety gate, and nothing is sent to a robot. --previous is what was sent to
the robot last, as for 'vlmcore actions check'; without it no target is safe.
"""


def add(commands: Any) -> None:
    """Add the command to *commands*."""
    parser = add_parser(
        commands,
        "call",
        work=_call,
        summary="ask a policy behind a server, and say whether what it proposes is safe",
        epilog=_EPILOG,
        codes=(*CODES[:-1], ExitCode.UNSAFE, CODES[-1]),
        done="it answered, and the actions are safe, as they came or as they were made",
        incomplete="it could not be asked, or a file cannot be used",
    )
    add_remote(parser)
    add_robot(parser)
    add_observation(parser)
    add_gate(parser)
    group = parser.add_argument_group("output")
    group.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="ask so often, and tell how long it took"
    )
    group.add_argument("--json", action="store_true", help="one JSON object")
    group.add_argument(
        "--output", "-o", metavar="OUT", help="write what may be executed, as a chunk document"
    )
    group.add_argument("--plot", metavar="PNG", help="draw what came in its bounds")
    group.add_argument("--quiet", "-q", action="store_true", help="no notes, only complaints")


def _call(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    if arguments.repeat < 1:
        raise ContractError("--repeat", f"got {arguments.repeat}, expected at least 1")
    robot = robot_from(arguments)
    observation = observation_from(arguments, robot)
    calling = _Calling(
        terminal=terminal,
        gate=gate_of(robot, arguments.mode),
        start=start_from(arguments, robot, observation),
    )
    with client_of(arguments.url, arguments, robot, terminal) as policy:
        chunk, took_s = _asked(policy, observation, arguments.repeat)
        info = policy.info
    report, vetted = calling.vet(chunk)
    if arguments.output is not None and vetted is not None:
        document = action_chunk_to_document(vetted.as_chunk())
        write_bytes(arguments.output, f"{write_json(document)}\n".encode())
    if arguments.plot is not None:
        write_bytes(arguments.plot, encode_png(calling.picture(chunk, report)))
    if arguments.json:
        terminal.document(
            {
                "url": policy.endpoint.url,
                "policy": info_document(info),
                "chunk": chunk_document(chunk),
                "report": safety_report_to_document(report),
                "calls": arguments.repeat,
                **durations(took_s),
            },
            indent=2,
        )
    else:
        calling.tell(chunk, report, vetted, took_s)
    note_template(terminal, robot)
    if arguments.output is not None and vetted is None:
        terminal.complain(f"vlmcore: {arguments.output}: is not written, nothing is safe")
    return ExitCode.UNSAFE if vetted is None else ExitCode.DONE


def _asked(policy: Policy, observation: Observation, times: int) -> tuple[ActionChunk, list[float]]:
    took_s = []
    for _ in range(times):
        began_s = time.perf_counter()
        seen = attrs.evolve(observation, captured_at_s=time.monotonic())
        chunk = policy.infer(seen)
        took_s.append(time.perf_counter() - began_s)
    return chunk, took_s


@attrs.frozen(kw_only=True, eq=False)
class _Calling:
    """What is done with a chunk that came."""

    terminal: Terminal
    gate: SafetyGate
    start: Start

    def vet(self, chunk: ActionChunk) -> tuple[SafetyReport, VettedChunk | None]:
        try:
            vetted = self.gate.vet(
                chunk, last_command=self.start.last_command, position=self.start.position
            )
        except UnsafeActionError as error:
            return cast("SafetyReport", error.report), None
        return vetted.report, vetted

    def picture(self, chunk: ActionChunk, report: SafetyReport) -> Any:
        return chunk.preview(
            space=self.gate.actions, report=report, last_command=self.start.last_command
        )

    def tell(
        self,
        chunk: ActionChunk,
        report: SafetyReport,
        vetted: VettedChunk | None,
        took_s: Sequence[float],
    ) -> None:
        said = durations(took_s)
        self.terminal.line(
            f"{chunk.horizon} steps of {len(chunk.names)} actions in {said['median_ms']:.1f} ms"
        )
        for line in chunk_lines(chunk, self.gate.actions):
            self.terminal.line(line)
        for line in verdict_lines(report, self.gate.actions, vetted):
            self.terminal.line(line)
        if len(took_s) > 1:
            self.terminal.line(
                f"{len(took_s)} calls: {said['fastest_ms']:.1f} to {said['slowest_ms']:.1f} ms, "
                f"median {said['median_ms']:.1f} ms"
            )
