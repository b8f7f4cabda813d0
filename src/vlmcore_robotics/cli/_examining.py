"""The steps of an examination of a policy server, each with what was seen and what to do."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import attrs

from vlmcore.cli.commands import Terminal
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.errors import (
    ContractError,
    EndpointError,
    PolicyError,
    PolicyProtocolError,
    PolicyRefusedError,
    PolicyTimeoutError,
    PolicyUnavailableError,
    VlmcoreError,
)
from vlmcore.policy.interface import PolicyInfo
from vlmcore.safety.gate import SafetyGate
from vlmcore.safety.remedies import Remedy
from vlmcore_robotics.cli._probing import Spoken, spoken_at
from vlmcore_robotics.cli._remotes import PROTOCOLS, client_of, protocol_of
from vlmcore_robotics.cli._robots import state_as_command
from vlmcore_robotics.cli._showing import durations

if TYPE_CHECKING:
    from vlmcore_robotics.cli._remotes import RemotePolicy

__all__ = ["Examination", "Step"]

_CALLS = 3
_LONGEST_PROBE_S = 3.0
_SAID = ("action_names", "action_units", "state_names", "cameras", "horizon", "rate_hz")

_NO_TOKEN = ("401", "403", "oken")
_ADVICE = (
    (PolicyUnavailableError, "look whether the server still runs, and whether it is busy"),
    (PolicyTimeoutError, "--timeout-s waits longer; a model may be slow at its first call"),
    (PolicyProtocolError, "look at the server's log; it may be of another version"),
    (PolicyRefusedError, "look at its log, and at --layout: keys that it misses end like this"),
    (PolicyError, "look at the server's log"),
    (ContractError, "look at --layout and --embodiment: they do not go together"),
)


@attrs.frozen(kw_only=True)
class Step:
    """
    A step of the examination.

    Attributes:
        name: What was tried.
        works: Whether it works; ``None`` for what is told and is no fault.
        seen: What was seen.
        advice: What to do about it; empty if there is nothing to do.
    """

    name: str
    works: bool | None
    seen: str
    advice: str = ""


class Examination:
    """
    Examines one server.

    Args:
        arguments: What the command line says of it.
        robot: The robot that it is to drive.
        terminal: Where notes about options go.
    """

    def __init__(
        self, arguments: argparse.Namespace, robot: Embodiment, terminal: Terminal
    ) -> None:
        self._arguments, self._robot, self._terminal = arguments, robot, terminal
        self._protocol = protocol_of(arguments.url)

    def steps(self) -> Iterator[Step]:
        """
        Take the steps, one after the other, up to the first that fails.

        Raises:
            ContractError: If an option is not as described.
            MissingDependencyError: If a package is not installed.
        """
        try:
            client = client_of(self._arguments.url, self._arguments, self._robot, self._terminal)
        except EndpointError as error:
            seen = str(error).partition(": pass ")[0]  # the advice says what to do
            yield Step(name="address", works=False, seen=seen, advice=_about_address(error))
            return
        where = client.endpoint
        kind = "this machine" if where.is_loopback else "another machine"
        yield Step(name="address", works=True, seen=f"{where.url}, on {kind}")
        with contextlib.closing(client):
            for step in self._reached(client):
                yield step
                if step.works is False:
                    return
            yield from self._asked(client)

    def _reached(self, client: RemotePolicy) -> Iterator[Step]:
        """Look whether something listens, and what it speaks."""
        patience_s = min(self._arguments.timeout_s, _LONGEST_PROBE_S)
        try:
            spoken = spoken_at(client.endpoint, timeout_s=patience_s)
        except OSError as error:
            yield Step(
                name="port",
                works=False,
                seen=f"nothing can be reached there: {error.strerror or error}",
                advice="start the server, as with 'vlmcore policy serve', or look at its port",
            )
            return
        yield Step(name="port", works=True, seen=f"something listens at {client.endpoint.port}")
        seen, advice = f"it speaks {spoken.value}", ""
        works: bool | None = True
        if spoken is Spoken.SILENCE:
            works, advice = None, "a server that is busy is silent, too: the next step tells"
        elif spoken.protocol != self._protocol:
            works = None if spoken in (Spoken.OTHER, Spoken.OTHER_HTTP) else False
            seen = f"it seems to speak {spoken.value}, and {self._protocol} is asked for"
            advice = _about_protocol(spoken)
        yield Step(name="protocol", works=works, seen=seen, advice=advice)

    def _asked(self, client: RemotePolicy) -> Iterator[Step]:
        """Shake hands, compare, and ask."""
        try:
            info = client.info
        except VlmcoreError as error:
            yield Step(name="handshake", works=False, seen=str(error), advice=_about(error))
            return
        yield Step(name="handshake", works=True, seen=f"the policy is {_named(info)!r}")
        yield self._compared(info)
        from vlmcore.testing.example_observations import example_observation  # noqa: PLC0415

        seen = example_observation(self._robot)
        try:
            chunk, took_s = _called(client, seen)
        except VlmcoreError as error:
            yield Step(name="call", works=False, seen=str(error), advice=_about(error))
            return
        said = durations(took_s)
        yield Step(
            name="call",
            works=True,
            seen=f"{chunk.horizon} steps of {len(chunk.names)} actions; {len(took_s)} calls took "
            f"{said['fastest_ms']:.1f} to {said['slowest_ms']:.1f} ms",
        )
        yield self._gated(chunk, seen, said["median_ms"] / 1000)

    def _compared(self, info: PolicyInfo) -> Step:
        """Say what was compared with the robot, which a client refuses where it differs."""
        silent = [field for field in _SAID if getattr(info, field) is None]
        seen = f"what it says fits {self._robot.name!r}"
        if not silent:
            return Step(name="robot", works=True, seen=seen)
        return Step(
            name="robot",
            works=None,
            seen=f"{seen}; it does not say its {', '.join(silent)}",
            advice="nobody can compare what is not said: look at the server's documentation",
        )

    def _gated(self, chunk: ActionChunk, seen: Observation, took_s: float) -> Step:
        is_told = set(self._robot.actions.names) <= set(self._robot.state_names)
        start = state_as_command(self._robot)(seen) if is_told else None
        gate = SafetyGate(embodiment=self._robot, remedy=Remedy.REPORT)
        try:
            report = gate.check(chunk, last_command=start)
        except ContractError as error:
            return Step(name="gate", works=False, seen=str(error), advice="look at --embodiment")
        lasts_s = chunk.horizon / self._robot.actions.rate_hz
        slow = (
            f" A chunk lasts {lasts_s:.2f} s and takes {took_s:.2f} s: the robot would wait."
            if took_s > lasts_s
            else ""
        )
        if report.safe_for_handoff:
            return Step(name="gate", works=None if slow else True, seen="safe", advice=slow.strip())
        why = report.reason.value.replace("_", " ") if report.reason else "unsafe"
        advice = "it was an example: 'vlmcore policy call' shows it what you say." + slow
        return Step(name="gate", works=None, seen=f"would refuse this answer: {why}", advice=advice)


def _called(client: RemotePolicy, seen: Observation) -> tuple[ActionChunk, list[float]]:
    took_s = []
    for _ in range(_CALLS):
        began_s = time.perf_counter()
        chunk = client.infer(attrs.evolve(seen, captured_at_s=time.monotonic()))
        took_s.append(time.perf_counter() - began_s)
    return chunk, took_s


def _named(info: PolicyInfo) -> str:
    """Take the server's own name for its policy, if it has one."""
    said = info.metadata.get("policy_info")
    name = said.get("name") if isinstance(said, Mapping) else None
    return name if isinstance(name, str) else info.name


def _about_address(error: EndpointError) -> str:
    if "allow_remote" in str(error):
        return "--allow-remote says that another machine is meant"
    if "is not encrypted" in str(error):
        return "ask by wss:// or https://, or through a tunnel that ends on this machine"
    return "look at the address: scheme://host:port"


def _about_protocol(spoken: Spoken) -> str:
    if spoken is Spoken.TLS:
        return "ask by wss:// or https://"
    schemes = [scheme for scheme, name in PROTOCOLS.items() if name == spoken.protocol]
    if schemes:
        return f"ask by {' or '.join(f'{scheme}://' for scheme in schemes)}"
    return "look at the port: another program listens there"


def _about(error: VlmcoreError) -> str:
    """Say what to do about a call that failed."""
    words = str(error)
    if isinstance(error, PolicyProtocolError) and "it is not for" in words:
        return "serve a policy of this robot, or say another --embodiment"
    if isinstance(error, PolicyProtocolError) and "certificate" in words:
        return "--ca names the file of an authority that browsers do not know"
    if isinstance(error, PolicyRefusedError) and any(sign in words for sign in _NO_TOKEN):
        return "--token-env names the variable with the token"
    return next((advice for kind, advice in _ADVICE if isinstance(error, kind)), "")
