"""The columns of the tables of a data set."""

from __future__ import annotations

import enum

import attrs

__all__ = ["Column", "ColumnKind"]


class ColumnKind(enum.Enum):
    """What is in a column, in words for errors."""

    FLOAT = "numbers with a point"
    WHOLE = "whole numbers"
    TIME = "times"
    TEXT = "texts"
    TEXTS = "lists of texts"
    PICTURE = "pictures in bytes"
    NUMBERS = "lists of numbers"
    PER_CHANNEL = "lists of numbers, one a channel"
    COUNTS = "lists of whole numbers"


@attrs.frozen
class Column:
    """
    One column.

    Attributes:
        name: Its name.
        kind: What is in it.
        width: How many numbers a row has, where it has numbers with a point.
    """

    name: str
    kind: ColumnKind
    width: int = 1
