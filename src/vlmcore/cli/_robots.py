"""What a command line says about a robot: which one it is, and what was sent to it last."""

from __future__ import annotations

from pathlib import Path

from vlmcore._arrays import Float64Array
from vlmcore.cli._files import told_of
from vlmcore.cli._recordings import read_document
from vlmcore.contracts.documents import action_step_from_document, embodiment_from_document
from vlmcore.contracts.embodiment import ActionSpace, Embodiment
from vlmcore.contracts.presets import find_embodiment
from vlmcore.errors import ContractError
from vlmcore.safety.audit import read_last_command

__all__ = ["UNKNOWN", "last_command", "robot_of"]

UNKNOWN = "unknown"
_ZERO = "zero"
_OPTION = "--previous"


def robot_of(word: str) -> Embodiment:
    """
    Find the embodiment *word*: a template by its name or label, or a document in a file.

    Raises:
        ContractError: If there is none; its field is ``--embodiment``, or the file.
    """
    try:
        return find_embodiment(word)
    except ContractError as error:
        if not _is_file(word):
            problem = f"{error.problem} (or the path of an embodiment document)"
            raise ContractError("--embodiment", problem) from None
    value = read_document(word)
    with told_of(word):
        return embodiment_from_document(value)


def _is_file(word: str) -> bool:
    """Say whether *word* is a path, be there a file or not."""
    if word.lower().endswith(".json"):
        return True
    try:
        return bool(word.strip()) and Path(word).exists()
    except (OSError, ValueError):  # too long, or a NUL in it
        return False


def last_command(word: str | None, space: ActionSpace) -> Float64Array | None:
    """
    Read what was sent to a robot last.

    Args:
        word: ``unknown`` or nothing; ``zero``; numbers by comma, or ``name=number`` by comma; or a
            file with a list, an object or an action step in it.
        space: Whose dimensions they are.

    Returns:
        Numbers in the order of the space, shape ``[D]``; ``None`` if nobody knows.

    Raises:
        ContractError: If it is none of these; its field is ``--previous``, or the file.
    """
    if word is None or word == UNKNOWN:
        return None
    if word == _ZERO:
        return read_last_command([0.0] * len(space.dims), space)
    if _is_file(word):
        value = read_document(word)
        with told_of(word):
            if isinstance(value, dict) and "action" in value:
                value = action_step_from_document(value).action
            return read_last_command(value, space)
    try:
        return read_last_command(_numbers(word), space)
    except ContractError as error:
        raise ContractError(_OPTION, error.problem) from None


def _numbers(word: str) -> list[float] | dict[str, float]:
    parts = word.split(",")
    if "=" not in word:
        return [_number(part) for part in parts]
    found: dict[str, float] = {}
    for part in parts:
        name, equals, number = part.rpartition("=")
        if not equals or name.strip() in found:
            expected = "name=number for each dimension, once"
            raise ContractError(_OPTION, f"got {part!r:.80}, expected {expected}")
        found[name.strip()] = _number(number)
    return found


def _number(text: str) -> float:
    try:
        if "_" not in text:  # Python reads 1_000
            return float(text)
    except ValueError:
        pass
    raise ContractError(
        _OPTION,
        f"got {text!r:.80}, expected numbers, name=number, a file, {_ZERO!r} or {UNKNOWN!r}",
    )
