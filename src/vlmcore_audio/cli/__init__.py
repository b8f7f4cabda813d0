"""``vlmcore music``: make music, and covers of recordings."""

from vlmcore_audio.cli._music import add_command

__all__ = ["add_command"]
