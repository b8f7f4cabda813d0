"""Whatever is raised while a model is loaded or runs, as an error that names it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import transformers

from vlmcore.errors import (
    ModelError,
    ModelMemoryError,
    VlmcoreError,
    WeightsBudgetError,
    WeightsError,
)
from vlmcore.vlm.backends._placing import free_bytes
from vlmcore.vlm.backends._weights import IncompleteError

__all__ = ["failures_named", "failures_while"]


@contextmanager
def failures_named(name: str, needed: int, device: torch.device) -> Iterator[None]:
    """Name the model in whatever transformers and PyTorch raise while loading."""
    try:
        yield
    except WeightsBudgetError as error:
        raise ModelMemoryError(
            name, str(error), error.needed_bytes, error.available_bytes
        ) from error
    except WeightsError as error:
        raise ModelError(name, str(error)) from error
    except VlmcoreError:
        raise
    except IncompleteError as error:
        raise ModelError(name, str(error)) from error
    except Exception as error:
        line = str(error).strip().partition("\n")[0]
        if _is_out_of_memory(error):
            problem = f"memory ran out on {device} while loading ({line})"
            raise ModelMemoryError(name, problem, needed, free_bytes(device)) from error
        version = transformers.__version__
        problem = f"transformers {version} cannot load it ({type(error).__name__}: {line})"
        raise ModelError(name, problem) from error


@contextmanager
def failures_while(doing: str, name: str, kind: type[ModelError]) -> Iterator[None]:
    """
    Name the model in whatever transformers and PyTorch raise while it runs.

    Raises:
        ModelMemoryError: If memory ran out.
        ModelError: Of *kind*, if it fails otherwise; errors of ours pass as they are.
    """
    try:
        yield
    except WeightsError as error:  # those that come when they are needed
        raise kind(name, f"its weights cannot be read: {error}") from error
    except VlmcoreError:
        raise
    except (torch.OutOfMemoryError, MemoryError) as error:
        problem = f"memory ran out while {doing}; ask for less at once ({error})"
        raise ModelMemoryError(name, problem) from error
    except Exception as error:
        problem = f"it failed while {doing} ({type(error).__name__}: {error})"
        raise kind(name, problem) from error


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    # The allocator of the host has no error class of its own.
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
