"""Places that are written as JSON; of an answer that is cut or broken in parts, the whole parts."""

from __future__ import annotations

from typing import Any

from vlmcore.contracts.json_found import find_json
from vlmcore.contracts.json_text import read_json
from vlmcore.contracts.shapes import path_of
from vlmcore.errors import ContractError
from vlmcore.limits import DocumentLimits, VisionLimits, require_at_most
from vlmcore.vision._written import Kind, Notes, Written, in_xy_order, wrong_numbers
from vlmcore.vision.dialects import Dialect

__all__ = ["read_json_places"]

_VISION = VisionLimits()
_LIMITS = DocumentLimits(
    max_document_bytes=4 * _VISION.max_text_characters, max_depth=16, max_nodes=_VISION.max_nodes
)
_DEEPEST = 3  # lists in objects in lists
_LABELS = ("label", "text_content", "name")
_SCORES = ("score", "confidence")
_SIDES = ("x_min", "y_min", "x_max", "y_max")


def read_json_places(text: str, dialect: Dialect, notes: Notes) -> None:
    """Read every object that says where something is."""
    _Reader(dialect, notes).read(text, "$", 0)


class _Reader:
    def __init__(self, dialect: Dialect, notes: Notes) -> None:
        self._dialect = dialect
        self._notes = notes

    def read(self, text: str, path: str, depth: int) -> None:
        found = find_json(text)
        require_at_most("max_detections", len(found.parts), _VISION.max_detections)
        if found.is_cut:
            self._notes.fault(path, "is cut or broken: an object or a list is not closed")
        elif not found.parts and not depth:
            self._notes.fault(path, "has no JSON")
        is_one = len(found.parts) == 1 and not found.is_cut and not depth
        for i, part in enumerate(found.parts):
            self._part(part, path if is_one else f"{path}[{i}]", depth)

    def _part(self, text: str, path: str, depth: int) -> None:
        try:
            value = read_json(text, limits=_LIMITS)
        except ContractError as error:
            self._notes.fault(path, error.problem)
            if depth < _DEEPEST and "{" in text[1:]:
                self.read(text[1:-1], path, depth + 1)  # its parts may be sound
            return
        self._value(value, path, depth)

    def _value(self, value: Any, path: str, depth: int) -> None:
        if isinstance(value, list):
            for i, each in enumerate(value):
                self._value(each, f"{path}[{i}]", depth + 1)
        elif not isinstance(value, dict):
            self._notes.fault(path, f"got {type(value).__name__}, expected an object")
        elif not self._object(value, path):
            inner = {key: each for key, each in value.items() if isinstance(each, (list, dict))}
            if not inner or depth >= _DEEPEST:
                self._notes.fault(path, "has no place: no box, no point and no polygon")
                return
            for key, each in inner.items():
                self._value(each, path_of(path, key), depth + 1)

    def _object(self, value: dict[str, Any], path: str) -> bool:
        """Take the places of an object, and say whether it has any."""
        dialect = self._dialect
        found = False
        for key, kind in (
            (dialect.box_key, Kind.BOX),
            (dialect.point_key, Kind.POINT),
            ("polygon", Kind.POLYGON),
        ):
            if key in value and not _is_list_of_objects(value[key]):
                found = True
                numbers = _flat(value[key]) if kind is Kind.POLYGON else value[key]
                self._place(value, path_of(path, key), kind, numbers)
        for keys, kind in ((_SIDES, Kind.BOX), (("x", "y"), Kind.POINT)):
            if all(key in value for key in keys):
                found = True
                self._place(value, path, kind, [value[key] for key in keys], named=True)
        return found

    def _place(
        self, value: dict[str, Any], path: str, kind: Kind, numbers: Any, *, named: bool = False
    ) -> None:
        problem = wrong_numbers(numbers, kind)
        score = next((value[key] for key in _SCORES if key in value), None)
        label = next((value[key] for key in _LABELS if key in value), None)
        if not problem and isinstance(score, (bool, str, list, dict)):
            problem = f"got the score {score!r:.40}, expected a number"
        if not problem and not isinstance(label, (str, type(None))):
            problem = f"got the label {label!r:.40}, expected a text"
        if problem:
            self._notes.fault(path, problem)
            return
        ordered = tuple(numbers) if named else in_xy_order(numbers, self._dialect)
        self._notes.add(Written(path, kind, ordered, label, score))


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(each, dict) for each in value)


def _flat(value: Any) -> Any:
    """Make one list of pairs, which is how most write corners."""
    if isinstance(value, list) and all(isinstance(pair, list) for pair in value):
        return [number for pair in value for number in pair]
    return value
