"""The threads that read and write messages beside the event loop of a server."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

__all__ = ["message_threads"]

_MOST = 4


def message_threads() -> ThreadPoolExecutor:
    """
    Make the threads of one server: one for two cores.

    More of them decode no faster and take the time of the event loop, and who asks for health
    while pictures of many clients are decoded waits for all of them.
    """
    count = max(1, min(_MOST, (os.cpu_count() or 1) // 2))
    return ThreadPoolExecutor(count, thread_name_prefix="messages")
