"""
The action safety gate: what a policy proposes passes here before a robot moves by it.

`SafetyGate.vet` turns an `ActionChunk` into a `VettedChunk`, or raises. It keeps numbers within the
limits of an embodiment; it is not a safety controller.
"""

from vlmcore.safety.audit import audit
from vlmcore.safety.findings import Findings, Violation, ViolationKind
from vlmcore.safety.gate import SafetyGate, VettedChunk
from vlmcore.safety.latch import SafetyLatch
from vlmcore.safety.remedies import NonFinite, Remedy
from vlmcore.safety.report import RefusalReason, SafetyReport, SafetySummary

__all__ = [
    "Findings",
    "NonFinite",
    "RefusalReason",
    "Remedy",
    "SafetyGate",
    "SafetyLatch",
    "SafetyReport",
    "SafetySummary",
    "VettedChunk",
    "Violation",
    "ViolationKind",
    "audit",
]
