"""Hypothesis strategies for names and numbers, which contracts are made of."""

from __future__ import annotations

import math

from vlmcore._optional import optional_dependency

with optional_dependency("testing", "hypothesis"):
    from hypothesis import strategies as st

__all__ = ["finite_numbers", "hostile_numbers", "names", "some_names", "texts"]

_HOSTILE = (
    math.nan,
    math.inf,
    -math.inf,
    5e-324,  # the smallest subnormal
    -0.0,
    1.7976931348623157e308,  # the largest
    3.4028235677973366e38,  # just over the largest float32
    9007199254740993.0,
    0.1 + 0.2,
    math.nextafter(math.pi, 4.0),
)


def names(*, max_size: int = 12) -> st.SearchStrategy[str]:
    """
    Names in any script, of what names may hold.

    Args:
        max_size: Characters at the most.
    """
    characters = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp", "Cf"))
    return st.text(characters, min_size=1, max_size=max_size).filter(str.strip)


def some_names(smallest: int, largest: int) -> st.SearchStrategy[list[str]]:
    """Lists of *smallest* to *largest* names, each there once."""
    return st.lists(names(), min_size=smallest, max_size=largest, unique=True)


def texts(*, min_size: int = 0) -> st.SearchStrategy[str]:
    """Text in any script, of what can be encoded."""
    return st.text(st.characters(codec="utf-8"), min_size=min_size, max_size=40)


def finite_numbers(largest: float = 1e6) -> st.SearchStrategy[float]:
    """Numbers from minus *largest* to *largest*."""
    return st.floats(-largest, largest, allow_nan=False)


def hostile_numbers() -> st.SearchStrategy[float]:
    """
    Any float64, more often the ones that break things: NaN, infinity, subnormals, -0.0.

    Example:
        >>> from hypothesis import find
        >>> find(hostile_numbers(), lambda number: number != number)
        nan
    """
    return st.sampled_from(_HOSTILE) | st.floats() | finite_numbers(10.0)
