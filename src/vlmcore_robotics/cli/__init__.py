"""``vlmcore policy``: serve policies, ask those behind a server, record and replay them."""

from vlmcore_robotics.cli._policy import add_command

__all__ = ["add_command"]
