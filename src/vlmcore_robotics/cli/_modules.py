"""Policies that code of the user's own makes: the one place that imports what a person names."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from typing import Any

from vlmcore.cli.commands import Terminal
from vlmcore.errors import ContractError
from vlmcore.policy.interface import Policy
from vlmcore.secrets import redact

__all__ = ["made_by"]


def made_by(module: str, name: str, terminal: Terminal, *, is_here: bool) -> Policy:
    """
    Import a module, and take a policy of it; what is none yet is called without arguments.

    Args:
        module: The module, as in ``import``.
        name: What is in it, with dots where it is in something else.
        terminal: Where it is said whose code is run.
        is_here: Whether modules of the working folder are found, too.

    Raises:
        ContractError: If there is no such module, its code fails, or no policy comes of it.
    """
    word = f"{module}:{name}"
    here = str(Path.cwd())
    if is_here and here not in sys.path:
        sys.path.insert(0, here)
    try:
        found = _taken(module, name, terminal)
    except Exception as error:
        raise ContractError(word, _failure(error)) from error
    if found is None:
        way_out = "" if is_here else "; --import-here looks into this folder, too"
        raise ContractError(word, f"there is no module {module!r}{way_out}")
    if not isinstance(found, Policy):
        raise ContractError(
            word, f"gave {type(found).__name__}, expected a Policy: info, infer, reset, close"
        )
    return found


def _taken(module: str, name: str, terminal: Terminal) -> Any:
    """Take what is named, and call it unless it is a policy; ``None`` without such a module."""
    if importlib.util.find_spec(module) is None:
        return None
    found: Any = importlib.import_module(module)
    terminal.note(f"runs the code of {module} ({getattr(found, '__file__', 'built in')})")
    for part in name.split("."):
        found = getattr(found, part)
    return found if isinstance(found, Policy) and not isinstance(found, type) else found()


def _failure(error: Exception) -> str:
    """Say what foreign code raised, and where."""
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1] if frames else None
    place = "" if last is None else f" ({Path(last.filename).name}, line {last.lineno})"
    return redact(f"{type(error).__name__}: {error}{place}")
