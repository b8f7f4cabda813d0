"""The conformance kit for policy servers: what every one must do, whoever calls."""

from __future__ import annotations

import enum
import ssl
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.secrets import Secret, redact
from vlmcore.testing._promises import BrokenPromiseError, keep_within
from vlmcore_robotics.testing._hostile_promises import HOSTILE_PROMISES
from vlmcore_robotics.testing._server_promises import GOOD_PROMISES, ServerPromise
from vlmcore_robotics.testing._server_under_test import (
    NotForThisError,
    RiskError,
    ServerUnderTest,
)
from vlmcore_robotics.testing.protocols import PolicyProtocol
from vlmcore_robotics.wire.groot_layout import GrootLayout
from vlmcore_robotics.wire.observation_layout import ObservationLayout

__all__ = [
    "SERVER_CHECKS",
    "Finding",
    "ServerCheck",
    "ServerCheckError",
    "ServerCheckReport",
    "ServerCheckResult",
    "check_server",
]

_CONVERSATIONS = 20  # that a check may hold, one after the other


class Finding(enum.Enum):
    """What a check found."""

    PASSED = "passed"
    RISK = "risk"
    FAILED = "failed"
    SKIPPED = "skipped"


@attrs.frozen(kw_only=True)
class ServerCheckResult:
    """
    What one check found.

    Attributes:
        name: The promise, as a sentence.
        finding: Whether it is kept. A risk breaks no client, and lets somebody do harm.
        why: What was found, or why it was skipped; empty where it is kept.
    """

    name: str
    finding: Finding
    why: str = ""

    def __str__(self) -> str:
        why = f": {self.why}" if self.why else ""
        return f"{self.finding.value:7}  {self.name}{why}"


class ServerCheckError(AssertionError):
    """
    A server breaks promises; an `AssertionError`, so that test runners call it a failure.

    Attributes:
        report: All that was found.
    """

    def __init__(self, report: ServerCheckReport) -> None:
        super().__init__(report)
        self.report = report

    def __str__(self) -> str:
        wrong = (*self.report.of(Finding.FAILED), *self.report.of(Finding.RISK))
        return "\n  ".join([str(self.report), *map(str, wrong)])


@attrs.frozen(kw_only=True)
class ServerCheckReport:
    """
    What was found in a server.

    Attributes:
        url: Where it is.
        protocol: What it speaks.
        results: What each check found, in their order.
    """

    url: str
    protocol: PolicyProtocol
    results: tuple[ServerCheckResult, ...]

    def of(self, finding: Finding) -> tuple[ServerCheckResult, ...]:
        """List what was found so."""
        return tuple(each for each in self.results if each.finding is finding)

    def is_conforming(self, *, strict: bool = False) -> bool:
        """Say whether nothing failed; where it is *strict*, that there is no risk either."""
        return not (self.of(Finding.FAILED) or (strict and self.of(Finding.RISK)))

    def require_conforming(self, *, strict: bool = False) -> None:
        """
        Require what `is_conforming` says.

        Raises:
            ServerCheckError: If it is not so.
        """
        if not self.is_conforming(strict=strict):
            raise ServerCheckError(self)

    def to_document(self) -> dict[str, Any]:
        """Write it as plain values, for JSON."""
        return {
            "url": self.url,
            "protocol": self.protocol.value,
            **{each.value: len(self.of(each)) for each in Finding},
            "checks": [
                {"name": each.name, "finding": each.finding.value, "why": each.why}
                for each in self.results
            ],
        }

    def __str__(self) -> str:
        counted = ", ".join(f"{len(self.of(each))} {each.value}" for each in Finding)
        return f"{self.url} ({self.protocol.value}): {counted}"


@attrs.frozen
class ServerCheck:
    """
    One promise of a server, with the code that holds it to it.

    Attributes:
        name: The promise, as a sentence.
    """

    name: str
    _promise: ServerPromise = attrs.field(repr=False)

    @property
    def is_basic(self) -> bool:
        """Whether nothing else makes sense where it is not kept."""
        return self._promise.is_basic

    @property
    def is_hostile(self) -> bool:
        """Whether it means the server harm."""
        return self._promise in HOSTILE_PROMISES

    def __call__(self, server: ServerUnderTest) -> ServerCheckResult:
        """Hold *server* to it, in a thread of its own: what hangs does not hang the tests."""
        skipped: list[str] = []

        def check() -> None:
            try:
                self._promise.check(server)
            except NotForThisError as error:
                skipped.append(str(error))

        try:
            keep_within(_CONVERSATIONS * server.target.patience_s, check)
        except BrokenPromiseError as error:
            finding = Finding.RISK if isinstance(error, RiskError) else Finding.FAILED
            why = redact(str(error), server.target.token)  # a server may say it in its errors
            return ServerCheckResult(name=self.name, finding=finding, why=why)
        if skipped:
            return ServerCheckResult(name=self.name, finding=Finding.SKIPPED, why=skipped[0])
        return ServerCheckResult(name=self.name, finding=Finding.PASSED)


def check_server(
    url: str,
    *,
    protocol: PolicyProtocol,
    embodiment: Embodiment,
    layout: ObservationLayout | GrootLayout | None = None,
    observation: Observation | None = None,
    token: Secret | None = None,
    tls: ssl.SSLContext | None = None,
    allow_remote: bool = False,
    deterministic: bool = False,
    timeout_s: float = 10.0,
    checks: Sequence[ServerCheck] | None = None,
    on_result: Callable[[ServerCheckResult], None] | None = None,
) -> ServerCheckReport:
    """
    Hold a policy server to every promise: first as a good client, then as one that means harm.

    It is asked for actions many times, and attacked. Do that to no server that a robot listens to,
    and to no server that is not yours.

    Args:
        url: Where it is, as ``"localhost:8000"``.
        protocol: What it speaks.
        embodiment: The robot that its policy is for.
        layout: The keys of its policy, for openpi and for GR00T.
        observation: What it is shown; unless given, `vlmcore.testing.example_observation`.
        token: What it has to be shown.
        tls: How it proves who it is; as browsers do it unless given.
        allow_remote: Whether it may be on another host.
        deterministic: Whether the same observations, in their order, give the same numbers. Then
            it is looked at whether clients get what others asked for.
        timeout_s: How long an answer may take, 0.1 to 600 seconds.
        checks: Some of `SERVER_CHECKS`; all of them unless given.
        on_result: Is told what each check found, as soon as it has.

    Returns:
        What each check found; nothing is raised for what the server does.

    Raises:
        ContractError: If an argument is not as described.
        EndpointError: If *url* is no address, or not one that may be dialled.

    Example:
        >>> from vlmcore.contracts.presets import find_embodiment
        >>> from vlmcore.policy.interface import PolicyInfo
        >>> from vlmcore.testing import ScriptedPolicy
        >>> from vlmcore_robotics.servers import OpenPIServer, PolicyRuntime, serve_in_thread
        >>> from vlmcore_robotics.wire.layouts import aloha_layout
        >>> robot = find_embodiment("aloha_bimanual_template")
        >>> info = PolicyInfo(
        ...     name="still", action_names=robot.actions.names, state_names=robot.state_names,
        ...     cameras=robot.cameras, horizon=1, rate_hz=robot.actions.rate_hz,
        ... )
        >>> with PolicyRuntime(ScriptedPolicy([[[0.0] * 14]], info=info)) as runtime:
        ...     server = OpenPIServer(runtime, layout=aloha_layout(), port=0)
        ...     with serve_in_thread(server) as url:
        ...         report = check_server(
        ...             url, protocol=PolicyProtocol.OPENPI, embodiment=robot,
        ...             layout=aloha_layout(), deterministic=True,
        ...         )
        >>> report.is_conforming(strict=True)
        True
    """
    server = ServerUnderTest.at(
        url,
        protocol=protocol,
        embodiment=embodiment,
        layout=layout,
        observation=observation,
        token=token,
        tls=tls,
        allow_remote=allow_remote,
        deterministic=deterministic,
        timeout_s=timeout_s,
    )
    results: list[ServerCheckResult] = []
    missing = ""
    for check in SERVER_CHECKS if checks is None else checks:
        if missing:
            why = f"not tried, since it is not so that {missing}"
            result = ServerCheckResult(name=check.name, finding=Finding.SKIPPED, why=why)
        else:
            result = check(server)
        if check.is_basic and result.finding is Finding.FAILED:
            missing = check.name
        results.append(result)
        if on_result is not None:
            on_result(result)
    origin = server.target.endpoint.origin
    return ServerCheckReport(url=origin, protocol=protocol, results=tuple(results))


SERVER_CHECKS: tuple[ServerCheck, ...] = tuple(
    ServerCheck(promise.words, promise) for promise in (*GOOD_PROMISES, *HOSTILE_PROMISES)
)
"""Every check, in the order in which they make sense."""
