"""
Policies: what maps an observation to the next actions, wherever it runs.

A policy proposes; nothing that it says is safe to execute before a gate has vetted it.
"""

from vlmcore.policy.fitting import differences_between, require_expected
from vlmcore.policy.interface import (
    AsyncPolicy,
    ForkingPolicy,
    ObservingPolicy,
    OffloadingPolicy,
    Policy,
    PolicyInfo,
)

__all__ = [
    "AsyncPolicy",
    "ForkingPolicy",
    "ObservingPolicy",
    "OffloadingPolicy",
    "Policy",
    "PolicyInfo",
    "differences_between",
    "require_expected",
]
