"""
Entries of tensors of which a header says nothing new: nearly all of them, so they are made fast.

A header says the same of many tensors, but for their names and places. What it says is looked at
closely once; where it comes again, word by word, it is known.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from vlmcore.weights.dtypes import DType
from vlmcore.weights.index import TensorEntry

__all__ = ["Known", "plain_entry"]

_What = TypeVar("_What")
_MOST = 0x400  # a model says tens of things of its tensors; what says more is looked at closely


class Known(dict[str, _What], Generic[_What]):
    """What was looked at closely, by the words it was said in."""

    def note(self, words: str, what: _What) -> None:
        """Remember it, while there is room."""
        if len(self) < _MOST:
            self[words] = what


def plain_entry(
    name: str, dtype: DType, shape: tuple[int, ...], *, file: int, start: int, stop: int
) -> TensorEntry:
    """Make an entry of parts that are known to be what they have to be, and to fit."""
    entry: TensorEntry = _new(TensorEntry)
    _set_name(entry, name)
    _set_dtype(entry, dtype)
    _set_shape(entry, shape)
    _set_file(entry, file)
    _set_start(entry, start)
    _set_stop(entry, stop)
    return entry


_new: Any = object.__new__  # as the class itself, which is frozen, does one level below
_set_name, _set_dtype, _set_shape, _set_file, _set_start, _set_stop = (
    getattr(TensorEntry, field).__set__
    for field in ("name", "dtype", "shape", "file", "start", "stop")
)
