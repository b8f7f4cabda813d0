"""What a host refuses in the middle of a load, as errors of the load."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from vlmcore._host_memory import in_gib
from vlmcore.errors import VlmcoreError, WeightsBudgetError, WeightsError

__all__ = ["granted"]

_NO_THREAD = "start new thread"  # as Python says it
_NO_MEMORY = "allocate memory"  # as torch says it of memory of the host


@contextlib.contextmanager
def granted(path: str, needed_bytes: int) -> Iterator[None]:
    """
    Say of memory and threads that the host did not grant whose weights they were for.

    Args:
        path: The weights.
        needed_bytes: What they need.

    Raises:
        WeightsBudgetError: If the block ran out of memory.
        WeightsError: If it could start no thread.
    """
    try:
        yield
    except VlmcoreError:
        raise
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, MemoryError) or _NO_MEMORY in str(error):
            problem = f"needs {in_gib(needed_bytes)}, and the host does not grant them"
            raise WeightsBudgetError(path, problem, needed_bytes, 0) from error
        if _NO_THREAD in str(error):
            problem = "cannot be read: the host lets this process start no thread more"
            raise WeightsError(path, problem) from error
        raise
