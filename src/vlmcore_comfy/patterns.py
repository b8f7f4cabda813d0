"""Regular expressions that strangers wrote, over texts: they can be stopped, and have a bound."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from vlmcore.errors import ContractError
from vlmcore.limits import TextLimits, require_at_most
from vlmcore_comfy.hosting import ALONE, Host

__all__ = ["replace_pattern", "split_at_pattern"]

_LIMITS = TextLimits()
_CHILD = Path(__file__).with_name("_pattern_child.py")
_LOOK_EVERY_S = 0.05


def replace_pattern(
    text: str,
    pattern: str,
    replacement: str,
    *,
    case_sensitive: bool,
    most: int,
    comfyui: Host = ALONE,
) -> tuple[str, int]:
    r"""
    Replace what a regular expression finds.

    Args:
        text: Where it is replaced.
        pattern: The expression, in the words of Python's ``re``.
        replacement: What comes in its place; ``\1`` and ``\g<name>`` are what groups found.
        case_sensitive: Whether capital letters are others.
        most: How often; 0 for each time.
        comfyui: Whom it runs in.

    Returns:
        The text, and how often it was replaced.

    Raises:
        ContractError: If the expression is none, or takes too long.
        LimitExceededError: If it is too long itself.
    """
    answer = _asked(
        comfyui,
        work="replace",
        text=text,
        pattern=pattern,
        replacement=replacement,
        case_sensitive=case_sensitive,
        most=most,
    )
    return str(answer["text"]), int(answer["count"])


def split_at_pattern(text: str, pattern: str, *, comfyui: Host = ALONE) -> list[str]:
    """
    Split a text wherever a regular expression finds something.

    Raises:
        ContractError: If the expression is none, or takes too long.
        LimitExceededError: If it is too long itself.
    """
    answer = _asked(comfyui, work="split", text=text, pattern=pattern, case_sensitive=True)
    return list(answer["items"])


def _asked(comfyui: Host, **question: Any) -> dict[str, Any]:
    """Have it done by another process, which is ended when it takes too long or nobody waits."""
    field = "search" if question["work"] == "replace" else "delimiter"
    pattern = question["pattern"]
    if not pattern:
        raise ContractError(field, "is empty, expected a regular expression")
    require_at_most("max_pattern_characters", len(pattern), _LIMITS.max_pattern_characters)
    bounds = {
        "max_characters": _LIMITS.max_text_characters,
        "max_items": _LIMITS.max_items,
    }
    sent: bytes | None = json.dumps({**question, **bounds}).encode()
    ends_s = time.monotonic() + _LIMITS.max_pattern_s
    with subprocess.Popen(  # noqa: S603 - our own file, by our own Python
        [sys.executable, "-I", "-S", str(_CHILD)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as child:
        try:
            while True:
                comfyui.raise_if_stopped()
                try:
                    told, _ = child.communicate(sent, timeout=_LOOK_EVERY_S)
                    break
                except subprocess.TimeoutExpired:
                    sent = None  # it is on its way
                if time.monotonic() > ends_s:
                    raise ContractError(
                        field,
                        f"{pattern!a:.80} takes more than {_LIMITS.max_pattern_s} s over this "
                        "text: nested repeats as (a+)+ do",
                    )
        finally:
            child.kill()
    answer = json.loads(told) if told else {"problem": "its process ended before it was done"}
    if "problem" in answer:
        raise ContractError(field, f"{pattern!a:.80}: {answer['problem']}")
    return dict(answer)
