"""
The conformance kit for policy servers and their clients, over real sockets.

`check_server` holds a server to what it promises, as a good client and as one that means harm.
`HostileServer` is a server that misbehaves in a way that is chosen, for those who write clients.
"""

from vlmcore_robotics.testing.behaviours import Behaviour, behaviours_of
from vlmcore_robotics.testing.hostile_server import HostileServer
from vlmcore_robotics.testing.protocols import PolicyProtocol
from vlmcore_robotics.testing.server_checks import (
    SERVER_CHECKS,
    Finding,
    ServerCheck,
    ServerCheckError,
    ServerCheckReport,
    ServerCheckResult,
    check_server,
)

__all__ = [
    "SERVER_CHECKS",
    "Behaviour",
    "Finding",
    "HostileServer",
    "PolicyProtocol",
    "ServerCheck",
    "ServerCheckError",
    "ServerCheckReport",
    "ServerCheckResult",
    "behaviours_of",
    "check_server",
]
