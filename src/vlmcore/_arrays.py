"""Canonical arrays and the plain checks that contracts share."""

from __future__ import annotations

import enum
import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from vlmcore._arguments import shown
from vlmcore.errors import ContractError

__all__ = [
    "BoolArray",
    "Float64Array",
    "UInt8Array",
    "as_tuple",
    "immutable",
    "plain_float",
    "readonly_float64",
    "readonly_frames",
    "readonly_image",
    "require_count",
    "require_finite",
    "require_finite_between",
    "require_member",
    "require_name",
    "require_names",
    "require_positive",
    "require_text",
]

BoolArray: TypeAlias = npt.NDArray[np.bool_]
Float64Array: TypeAlias = npt.NDArray[np.float64]
UInt8Array: TypeAlias = npt.NDArray[np.uint8]

_EXACT = 1 << 53  # float64 holds every whole number up to here
_NOT_IN_NAMES = frozenset(("Cc", "Cs", "Zl", "Zp"))  # controls, surrogates, line separators
_DIRECTIONS = frozenset(("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"))
_Scalar = TypeVar("_Scalar", bound=np.generic)


def readonly_image(value: Any, *, field: str) -> UInt8Array:
    """
    Check an image of shape ``[H, W, 3]``, uint8 RGB, and return a read-only view of it.

    The pixels are not copied: a frame can be large, and the view cannot be written through.

    Raises:
        ContractError: If the value is not such an array.
    """
    return _readonly_rgb(value, field=field, axes="[H, W, 3]", rank=3)


def readonly_frames(value: Any, *, field: str) -> UInt8Array:
    """
    Check frames of shape ``[T, H, W, 3]``, uint8 RGB, and return a read-only view of them.

    Raises:
        ContractError: If the value is not such an array.
    """
    return _readonly_rgb(value, field=field, axes="[T, H, W, 3]", rank=4)


def _readonly_rgb(value: Any, *, field: str, axes: str, rank: int) -> UInt8Array:
    expected = f"expected a uint8 RGB array of shape {axes}; vlmcore.load_image() makes one"
    if not isinstance(value, np.ndarray):
        raise ContractError(field, f"got {type(value).__name__}, {expected}")
    if isinstance(value, np.ma.MaskedArray):
        raise ContractError(field, "got a masked array, expected a plain one: masks would be lost")
    array = np.asarray(value)  # what a subclass says of itself need not be so
    if array.dtype != np.uint8 or array.ndim != rank or array.shape[-1] != 3 or array.size == 0:
        raise ContractError(field, f"got {array.dtype} of shape {list(array.shape)}, {expected}")
    view: UInt8Array = array.view()
    view.flags.writeable = False
    return view


def immutable(array: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    """
    Copy *array* into memory that is read-only for good.

    A read-only flag on memory of its own can be lifted again by whoever holds the array; memory
    that belongs to ``bytes`` cannot be written to, but by what does not ask, as torch. What is
    there already, by plain arrays alone, is not copied again: a subclass may name any owner.
    """
    plain: npt.NDArray[_Scalar] = np.asarray(array)
    owner: Any = plain
    while type(owner) is np.ndarray:
        owner = owner.base
    if type(owner) is bytes and plain.flags.c_contiguous:
        return plain.view(np.ndarray)
    return np.frombuffer(plain.tobytes(), plain.dtype).reshape(plain.shape)


def readonly_float64(value: Any, *, field: str, axes: str) -> Float64Array:
    """
    Copy numbers into a float64 array that cannot be written to.

    Arrays of float16, float32, float64 and of whole numbers are taken, and lists or tuples of
    numbers. NaN and infinity pass: whether they may be there is the caller's to say.

    Args:
        value: The numbers.
        field: The name of the field, for the error.
        axes: The axes that are expected, as ``"[T, D]"``.

    Raises:
        ContractError: If it is anything else: another number of axes, bool, text, complex, uint8
            (which is what pixels are), objects, or whole numbers that float64 cannot hold.
    """
    array = value if isinstance(value, np.ndarray) else _array_of_lists(value, field, axes)
    if isinstance(array, np.ma.MaskedArray):
        raise ContractError(field, "got a masked array, expected a plain one: masks would be lost")
    array = np.asarray(array)  # what a subclass says of itself need not be so
    kind, width = array.dtype.kind, array.dtype.itemsize
    if kind not in "fiu" or width > 8 or array.dtype == np.uint8:
        raise ContractError(
            field,
            f"got {array.dtype}, expected float16, float32, float64 or whole numbers "
            "other than uint8, which is what pixels are",
        )
    if array.ndim != axes.count(",") + 1:
        raise ContractError(
            field, f"got an array of shape {list(array.shape)}, expected one of axes {axes}"
        )
    is_whole = kind in "iu" and array.size > 0
    if is_whole and not -_EXACT <= int(array.min()) <= int(array.max()) <= _EXACT:
        raise ContractError(field, "got whole numbers beyond 2**53, which float64 cannot hold")
    with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN
        return immutable(array.astype(np.float64, copy=False))


def _array_of_lists(value: Any, field: str, axes: str) -> npt.NDArray[Any]:
    """Read nested lists; NumPy by itself takes ``[True, "1.5"]`` for numbers."""
    if not isinstance(value, (list, tuple)):
        way_out = ": .numpy() makes one" if hasattr(value, "numpy") else ""
        expected = f"expected an array or lists of numbers, axes {axes}{way_out}"
        raise ContractError(field, f"got {type(value).__name__}, {expected}")
    inner = axes[1:-1].partition(", ")[2]
    if not inner or not value:
        _require_numbers(value, field)
        return np.array(value, np.float64)
    rows = [
        readonly_float64(row, field=f"{field}[{i}]", axes=f"[{inner}]")
        for i, row in enumerate(value)
    ]
    for i, row in enumerate(rows):
        if row.shape != rows[0].shape:
            raise ContractError(
                f"{field}[{i}]",
                f"got shape {list(row.shape)}, expected that of {field}[0], {list(rows[0].shape)}",
            )
    return np.stack(rows)


def _require_numbers(values: Sequence[Any], field: str) -> None:
    if set(map(type, values)) <= {float}:  # what nearly every list is
        return
    for i, value in enumerate(values):
        if not isinstance(plain_float(value), float):
            raise ContractError(f"{field}[{i}]", f"got {shown(value)}, expected a number")


def as_tuple(value: Any) -> Any:
    """
    Make a tuple of what is a sequence, and leave everything else as it is.

    Text is not a sequence of names, and neither is an array without axes, which only says that it
    can be iterated over: a check that follows refuses them. Texts in it become plain ones.
    """
    is_plain = type(value) is tuple and {*map(type, value)} == {str}  # what it mostly is
    if is_plain or not isinstance(value, Iterable) or isinstance(value, str):
        return value
    try:  # a text of another class may say what it is equal to
        return tuple(str.__str__(each) if isinstance(each, str) else each for each in value)
    except TypeError:
        return value


def plain_float(value: Any) -> Any:
    """
    Turn a number of Python or NumPy into a plain float, and leave everything else as it is.

    Bool, text, complex, spans of time and whole numbers that float64 cannot hold are left: a check
    that follows refuses them.
    """
    if not isinstance(value, (int, float, np.number)) or isinstance(value, (bool, np.timedelta64)):
        return value
    if isinstance(value, (int, np.integer)):
        return float(value) if -_EXACT <= int(value) <= _EXACT else value
    if isinstance(value, (float, np.float16, np.float32)):
        return float(value)
    return value


def require_text(**texts: str) -> None:
    """
    Require non-blank strings.

    Raises:
        ContractError: If a value is not a string, or is blank.
    """
    for field, text in texts.items():
        if not isinstance(text, str):
            raise ContractError(field, f"got {type(text).__name__}, expected text")
        if not text.strip():
            raise ContractError(field, "got blank text, expected at least one character")


def require_count(**counts: int) -> None:
    """
    Require whole numbers of at least 1.

    Raises:
        ContractError: If a value is not an integer, or is below 1.
    """
    for field, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ContractError(field, f"got {shown(count)}, expected a whole number of at least 1")


def require_positive(**numbers: float) -> None:
    """
    Require finite numbers above zero.

    Raises:
        ContractError: If a value is not a finite number, or is not above zero.
    """
    for field, number in numbers.items():
        if not _is_finite_number(number) or number <= 0:
            raise ContractError(field, f"got {shown(number)}, expected a finite number above 0")


def require_finite_between(low: float, high: float, **numbers: float) -> None:
    """
    Require finite numbers within ``[low, high]``.

    Raises:
        ContractError: If a value is not a finite number, or is outside the range.
    """
    for field, number in numbers.items():
        if not _is_finite_number(number) or not low <= number <= high:
            raise ContractError(
                field, f"got {shown(number)}, expected a number from {low} to {high}"
            )


def require_finite(**numbers: float) -> None:
    """
    Require finite numbers.

    Raises:
        ContractError: If a value is not a finite number.
    """
    for field, number in numbers.items():
        if not _is_finite_number(number):
            raise ContractError(field, f"got {shown(number)}, expected a finite number")


def require_member(kind: type[enum.Enum], /, **values: object) -> None:
    """
    Require members of an enum; their text is not one of them.

    Raises:
        ContractError: If a value is not a member of *kind*.
    """
    for field, value in values.items():
        if not isinstance(value, kind):
            names = ", ".join(str(member) for member in kind)
            raise ContractError(field, f"got {shown(value)}, expected one of {names}")


def require_name(field: str, name: Any, *, max_characters: int, may_be_empty: bool = False) -> None:
    """
    Require a name: text on one line that is not blank, or empty text where that may be.

    Raises:
        ContractError: If it is not text, is blank, is too long, or has characters in it that
            control a terminal or the order of writing, or that cannot be encoded.
    """
    if may_be_empty and isinstance(name, str) and not name:
        return
    require_text(**{field: name})
    if len(name) > max_characters:
        raise ContractError(field, f"got {len(name)} characters, expected at most {max_characters}")
    if not name.isascii() or not name.isprintable():
        for character in name:
            if (
                unicodedata.category(character) in _NOT_IN_NAMES
                or unicodedata.bidirectional(character) in _DIRECTIONS
            ):
                raise ContractError(
                    field, f"got {name[:80]!a}, expected no control characters ({character!a})"
                )


def require_names(field: str, names: Any, *, max_count: int, max_characters: int) -> None:
    """
    Require a tuple of 1 to *max_count* names, each there once.

    Raises:
        ContractError: If it is not one; the names that are there twice are listed.
    """
    if not isinstance(names, tuple):
        raise ContractError(field, f"got {type(names).__name__}, expected a tuple of names")
    if set(map(type, names)) == {str} and _are_names(names, max_count, max_characters):
        return
    _check_names(field, names, max_count=max_count, max_characters=max_characters)


@lru_cache(maxsize=64)
def _are_names(names: tuple[str, ...], max_count: int, max_characters: int) -> bool:
    """Remember what was checked: every chunk of a run has the same names."""
    try:
        _check_names("names", names, max_count=max_count, max_characters=max_characters)
    except ContractError:
        return False
    return True


def _check_names(
    field: str, names: tuple[Any, ...], *, max_count: int, max_characters: int
) -> None:
    if not 1 <= len(names) <= max_count:
        raise ContractError(field, f"got {len(names)} names, expected 1 to {max_count}")
    for i, name in enumerate(names):
        require_name(f"{field}[{i}]", name, max_characters=max_characters)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ContractError(field, f"got {twice} more than once, expected each name once")


def _is_finite_number(number: object) -> bool:
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return False
    if isinstance(number, int):
        return -_EXACT <= number <= _EXACT
    return math.isfinite(number)
