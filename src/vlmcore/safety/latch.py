"""A gate that shuts for good when a policy has been unsafe too many times in a row."""

from __future__ import annotations

import threading
from typing import Any, NoReturn

import attrs

from vlmcore._arrays import require_count, require_text
from vlmcore.contracts.actions import ActionChunk
from vlmcore.errors import ContractError, UnsafeActionError
from vlmcore.safety.gate import SafetyGate, VettedChunk
from vlmcore.safety.report import RefusalReason, SafetyReport

__all__ = ["SafetyLatch"]


class SafetyLatch:
    """
    A gate that shuts for good when a policy has been unsafe too many times in a row.

    A chunk is unsafe if the gate found anything in it, whether it was remedied or refused; one that
    is safe as it came starts the count again. After *max_consecutive* unsafe chunks the latch has
    tripped: nothing passes any more until `rearm` is called, which is for a person to do, who has
    looked at what the policy did, and not for the loop that drives the robot. What else must not go
    on, as a loop that runs dry, may `trip` it.

    It is safe for threads, which take turns; what is in a row is in the order of their turns. A
    signal handler may `rearm` it at any time. Use one for each robot: there are no copies.

    Args:
        gate: Vets each chunk.
        max_consecutive: How many unsafe chunks in a row trip it.

    Raises:
        ContractError: If *gate* is no gate, or *max_consecutive* is not a whole number above 0.

    Example:
        >>> from vlmcore.contracts.embodiment import ActionDim, ActionSpace
        >>> slide = ActionDim(name="x", unit="m", low=-1.0, high=1.0, max_step=0.1)
        >>> gate = SafetyGate(space=ActionSpace(dims=(slide,), rate_hz=20))
        >>> latch = SafetyLatch(gate, max_consecutive=1)
        >>> jump = ActionChunk(values=[[0.9]], names=("x",), source="doc", observed_at_s=0.0)
        >>> for chunk in (jump, attrs.evolve(jump, values=[[0.05]])):
        ...     try:
        ...         latch.vet(chunk, last_command=[0.0])
        ...     except UnsafeActionError as error:
        ...         print(error.reason)
        violations
        tripped
    """

    def __init__(self, gate: SafetyGate, *, max_consecutive: int = 3) -> None:
        if not isinstance(gate, SafetyGate):
            raise ContractError("gate", f"got {type(gate).__name__}, expected a SafetyGate")
        require_count(max_consecutive=max_consecutive)
        self._gate = gate
        self._max_consecutive = max_consecutive
        self._consecutive = 0
        self._tripped: tuple[SafetyReport, str] | None = None  # by which chunk, and why
        self._turn = threading.RLock()  # a signal handler may come in between

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse: of two latches for one robot each would count the half."""
        raise TypeError("a SafetyLatch is not copied or pickled: make another around its gate")

    @property
    def gate(self) -> SafetyGate:
        """What vets each chunk."""
        return self._gate

    @property
    def max_consecutive(self) -> int:
        """How many unsafe chunks in a row trip it."""
        return self._max_consecutive

    @property
    def consecutive(self) -> int:
        """How many chunks in a row have been unsafe up to now."""
        return self._consecutive

    @property
    def is_tripped(self) -> bool:
        """Whether nothing passes until `rearm` is called."""
        return self._tripped is not None

    def vet(self, chunk: ActionChunk, *, last_command: Any, position: Any = None) -> VettedChunk:
        """
        Let *chunk* pass as the gate does, unless the latch has tripped.

        The chunk that trips it may still leave as the remedy made it; those after it do not, safe
        or not.

        Args:
            chunk: As for `SafetyGate.vet`.
            last_command: As for `SafetyGate.vet`.
            position: As for `SafetyGate.vet`.

        Raises:
            UnsafeActionError: As for `SafetyGate.vet`; and with `RefusalReason.TRIPPED` and the
                report of the chunk that tripped it, if it has.
            ContractError: As for `SafetyGate.vet`; such a chunk does not count.
        """
        with self._turn:
            if self._tripped is not None:
                report, why = self._tripped
                raise UnsafeActionError(report, RefusalReason.TRIPPED.value, why)
            try:
                vetted = self._gate.vet(chunk, last_command=last_command, position=position)
            except UnsafeActionError as error:
                self._count(error.report)
                raise
            self._count(vetted.report)
            return vetted

    def trip(self, report: SafetyReport, why: str) -> None:
        """
        Shut, for a reason that the gate does not know of; one that has tripped keeps its own.

        Args:
            report: On what was put to the gate last.
            why: One sentence, which those who ask are told.

        Raises:
            ContractError: If *report* is no `SafetyReport`, or *why* is blank.
        """
        if not isinstance(report, SafetyReport):
            raise ContractError("report", f"got {type(report).__name__}, expected a SafetyReport")
        require_text(why=why)
        with self._turn:
            if self._tripped is None:
                self._shut(report, why)

    def rearm(self) -> None:
        """Let chunks pass again, and start counting anew; for a person to call."""
        with self._turn:
            self._consecutive, self._tripped = 0, None

    def _count(self, report: Any) -> None:
        self._consecutive = 0 if report.findings is None else self._consecutive + 1
        if self._consecutive >= self._max_consecutive:
            self._shut(report, f"unsafe chunks in a row: {self._max_consecutive}")

    def _shut(self, report: Any, why: str) -> None:
        reason = RefusalReason.TRIPPED
        shut = attrs.evolve(
            report, changed=False, cut_steps=0, safe_for_handoff=False, reason=reason
        )
        self._tripped = shut, why
