"""What the free text of ``action_mode`` says of a number, in documents that say it nowhere else."""

from __future__ import annotations

import re

from vlmcore.contracts.dimensions import Reference

__all__ = ["reference_of"]

_WORD = re.compile(r"[^\W_]+")
_DELTA = frozenset(("delta", "deltas"))
_VELOCITY = frozenset(("velocity", "velocities"))
# Beside one of these, "delta" and "velocity" may speak of a bound, or of what the numbers are not.
_DOUBT = re.compile(
    r"absolute|positions?|max(imum)?|limit(s|ed)?|bound(s|ed)?|per|no[nt]?|never|without|instead|than"
)


def reference_of(mode: str, action: str) -> Reference | None:
    """
    Say what the numbers of *action* are by the words of *mode*.

    Returns:
        A change where "delta" is a word of it, a rate where "velocity" is, a target otherwise and
        for grippers; ``None`` if it can be read in two ways.

    Example:
        >>> reference_of("delta end-effector pose", "dx")
        <Reference.DELTA: 'delta'>
        >>> reference_of("absolute joint position (velocity-limited)", "elbow") is None
        True
    """
    if "gripper" in action.casefold():
        return Reference.ABSOLUTE
    if _is_doubtful(mode):
        return None
    words = _words(mode)
    if words & _DELTA:
        return Reference.DELTA
    return Reference.VELOCITY if words & _VELOCITY else Reference.ABSOLUTE


def _is_doubtful(mode: str) -> bool:
    """Say whether "delta" or "velocity" is in *mode* in a way that can mean something else."""
    words = _words(mode)
    is_delta, is_velocity = bool(words & _DELTA), bool(words & _VELOCITY)
    if is_delta or is_velocity:
        return is_delta is is_velocity or any(map(_DOUBT.fullmatch, words))
    return any(part in mode.casefold() for part in ("delta", "velocit"))  # in a longer word


def _words(mode: str) -> set[str]:
    return set(_WORD.findall(mode.casefold()))
