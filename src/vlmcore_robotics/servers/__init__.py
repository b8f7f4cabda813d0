"""Servers of policies: one inference at a time, behind each wire format."""

from vlmcore_robotics.servers.http import HttpPolicyServer
from vlmcore_robotics.servers.runtime import PolicyRuntime, RuntimeHealth, TimedChunk
from vlmcore_robotics.servers.threads import serve_in_thread
from vlmcore_robotics.servers.websocket import OpenPIServer
from vlmcore_robotics.servers.zeromq import GrootServer

__all__ = [
    "GrootServer",
    "HttpPolicyServer",
    "OpenPIServer",
    "PolicyRuntime",
    "RuntimeHealth",
    "TimedChunk",
    "serve_in_thread",
]
