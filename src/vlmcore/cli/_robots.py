"""What a command line says about a robot: which one it is, and what was sent to it last."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from vlmcore._arrays import Float64Array
from vlmcore.cli._files import told_of
from vlmcore.cli._recordings import read_document
from vlmcore.contracts.documents import action_step_from_document
from vlmcore.contracts.embodiment import ActionSpace, Embodiment
from vlmcore.contracts.robot_files import read_embodiment
from vlmcore.errors import ContractError
from vlmcore.safety.references import read_last_command, read_position

__all__ = ["Start", "robot_of", "start_of", "streams_of"]

_UNKNOWN = "unknown"
_ZERO = "zero"


def robot_of(word: str) -> Embodiment:
    """
    Find the embodiment *word*: a template by its name or label, or a document in a file.

    Raises:
        ContractError: If there is none; its field is ``--embodiment``, or the file.
    """
    with told_of(word):
        try:
            return read_embodiment(word)
        except ContractError as error:
            if error.field != "name":
                raise
            problem = error.problem
    raise ContractError("--embodiment", problem)


def _is_file(word: str) -> bool:
    """Say whether *word* is a path, be there a file or not; numbers never are."""
    if word.lower().endswith(".json"):
        return True
    try:
        return bool(word.strip()) and not _is_number(word.partition(",")[0]) and Path(word).exists()
    except (OSError, ValueError):  # too long, or a NUL in it
        return False


@attrs.frozen(kw_only=True, eq=False)
class Start:
    """
    What is known of a robot before the first step.

    Attributes:
        last_command: What was sent last, shape ``[D]``; ``None`` if nobody knows.
        position: Where the things are that changes and rates move, by name; ``None`` if nobody
            knows.
    """

    last_command: Float64Array | None = None
    position: Mapping[str, float] | None = None


def start_of(previous: str | None, position: str | None, space: ActionSpace) -> Start:
    """
    Read what a command line says of a robot before the first step.

    Args:
        previous: What was sent last: nothing, ``unknown``, ``zero``, numbers by comma,
            ``name=number`` by comma, or a file with a list, an object or an action step in it.
        position: Nothing, ``unknown``, ``name=number`` by comma, or a file with an object in it.
        space: Whose dimensions they are.

    Raises:
        ContractError: If one is none of these; its field is the option, or the file.
    """
    value = [0.0] * len(space.dims) if previous == _ZERO else _said(previous, "--previous")
    at = _said(position, "--position")
    with _about(previous, "--previous"):
        command = read_last_command(value, space)
    with _about(position, "--position"):
        read_position(at, space)
    return Start(last_command=command, position=at)


@contextlib.contextmanager
def _about(word: str | None, option: str) -> Iterator[None]:
    """Say of an error that it is about the option, or about the file that was given."""
    try:
        yield
    except ContractError as error:
        place = word if word is not None and _is_file(word) else option
        is_whole = error.field in ("last_command", "position")
        raise ContractError(place, error.problem if is_whole else str(error)) from None


def _said(word: str | None, option: str) -> Any:
    """Read numbers, in order or by name; ``None`` if nobody knows."""
    if word is None or word == _UNKNOWN:
        return None
    if not _is_file(word):
        return _numbers(word, option)
    value = read_document(word)
    if value is None:
        raise ContractError(word, "holds null, expected numbers")
    if isinstance(value, dict) and "action" in value:
        with told_of(word):
            return action_step_from_document(value).action
    return value


def _numbers(word: str, option: str) -> list[float] | dict[str, float]:
    parts = word.split(",")
    if "=" not in word:
        return [_number(part, option) for part in parts]
    found: dict[str, float] = {}
    for part in parts:
        name, equals, number = part.rpartition("=")
        if not equals or name.strip() in found:
            expected = "name=number for each dimension, once"
            raise ContractError(option, f"got {part!r:.80}, expected {expected}")
        found[name.strip()] = _number(number, option)
    return found


def _number(text: str, option: str) -> float:
    if not _is_number(text):
        words = "numbers, name=number, a file or 'unknown'"
        raise ContractError(option, f"got {text!r:.80}, expected {words}")
    return float(text)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # Python reads 1_000


def streams_of(word: str | None) -> dict[str, int] | None:
    """
    Read the named parts of an answer and their widths, as ``arm=6,gripper=1``.

    Raises:
        ContractError: If it is anything else; its field is ``--streams``.
    """
    if word is None:
        return None
    found: dict[str, int] = {}
    for part in word.split(","):
        name, _, width = part.rpartition("=")
        name = name.strip()
        is_short = len(width) < 10  # Python refuses to read thousands of digits
        if not name or name in found or not (is_short and width.strip().isdecimal()):
            expected = "name=dimensions for each, once"
            raise ContractError("--streams", f"got {part!r:.80}, expected {expected}")
        found[name] = int(width)
    return found
