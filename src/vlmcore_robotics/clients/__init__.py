"""Clients of policy servers: a socket, a deadline and a session around each wire format."""

from vlmcore_robotics.clients.async_http import AsyncHttpPolicy
from vlmcore_robotics.clients.async_websocket import AsyncWebSocketPolicy
from vlmcore_robotics.clients.async_zeromq import AsyncZmqPolicy
from vlmcore_robotics.clients.http import HttpPolicy
from vlmcore_robotics.clients.websocket import WebSocketPolicy
from vlmcore_robotics.clients.zeromq import ZmqPolicy

__all__ = [
    "AsyncHttpPolicy",
    "AsyncWebSocketPolicy",
    "AsyncZmqPolicy",
    "HttpPolicy",
    "WebSocketPolicy",
    "ZmqPolicy",
]
