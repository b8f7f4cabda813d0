"""Policies that cannot be used, and actions that must not be."""

from __future__ import annotations

from vlmcore.errors._base import VlmcoreError

__all__ = [
    "PolicyError",
    "PolicyProtocolError",
    "PolicyRefusedError",
    "PolicyStatusError",
    "PolicyTimeoutError",
    "PolicyUnavailableError",
    "UnsafeActionError",
]


class PolicyError(VlmcoreError):
    """
    A policy cannot be used.

    Attributes:
        policy: The policy as the caller named it.
        problem: What is wrong and what to do.
    """

    def __init__(self, policy: str, problem: str) -> None:
        super().__init__(policy, problem)
        self.policy = policy
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.policy}: {self.problem}"


class PolicyUnavailableError(PolicyError, ConnectionError):
    """A policy cannot be reached; nothing was asked yet, so trying again is sensible."""

    errno = strerror = None  # OSError takes two arguments for these


class PolicyTimeoutError(PolicyError, TimeoutError):
    """
    A policy was reached, and then silent for too long.

    Attributes:
        wait: What was waited for, as ``"reply"``.
        waited_s: For how long.
    """

    errno = strerror = None

    def __init__(self, policy: str, wait: str, waited_s: float) -> None:
        super().__init__(policy, f"no {wait} within {waited_s:.3g} s")
        self.args = (policy, wait, waited_s)
        self.wait = wait
        self.waited_s = waited_s


class PolicyProtocolError(PolicyError):
    """
    One side broke the protocol.

    Attributes:
        side: Whose fault it is: ``"ours"`` if the caller broke it, ``"theirs"`` if the peer did.
    """

    def __init__(self, policy: str, problem: str, side: str) -> None:
        super().__init__(policy, problem)
        self.args = (policy, problem, side)
        self.side = side


class PolicyRefusedError(PolicyError):
    """A policy answered with an error of its own; the problem is its words, cut."""


class PolicyStatusError(PolicyRefusedError):
    """
    A policy answered over HTTP with a status that says that it failed.

    Attributes:
        status: The status, as 404.
    """

    def __init__(self, policy: str, problem: str, status: int) -> None:
        super().__init__(policy, problem)
        self.args = (policy, problem, status)
        self.status = status

    def __str__(self) -> str:
        return f"{self.policy}: {self.problem} (HTTP {self.status})"


class UnsafeActionError(VlmcoreError):
    """
    Actions are not safe to execute, and nothing that was allowed makes them so.

    Attributes:
        report: What was found, a `vlmcore.safety.SafetyReport`.
        reason: Why nothing passed, a value of `vlmcore.safety.RefusalReason`.
        problem: What came and what was expected, where the report does not say it; else empty.
    """

    def __init__(self, report: object, reason: str, problem: str = "") -> None:
        super().__init__(report, reason)
        self.args = (report, reason, problem)
        self.report = report
        self.reason = reason
        self.problem = problem

    def __str__(self) -> str:
        said = f"{self.problem}; " if self.problem else ""
        return f"{self.reason}: {said}{self.report}"
