"""Hypothesis strategies for JSON, which `vlmcore.testing.contract_strategies` offers."""

from __future__ import annotations

from typing import Any

from vlmcore._optional import optional_dependency

with optional_dependency("testing", "hypothesis"):
    from hypothesis import strategies as st

__all__ = ["hostile_json", "json_objects"]


def json_objects(*, max_leaves: int = 10) -> st.SearchStrategy[dict[str, Any]]:
    """
    JSON objects with anything in them that JSON knows.

    Args:
        max_leaves: Values in lists and objects at the most.
    """
    texts = st.text(st.characters(codec="utf-8"), max_size=8)
    scalars = (
        st.none()
        | st.booleans()
        | st.integers(-(1 << 63), (1 << 64) - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | texts
    )
    values = st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
        max_leaves=max_leaves,
    )
    return st.dictionaries(texts, values, max_size=4)


def hostile_json() -> st.SearchStrategy[str]:
    """
    Text that is JSON, nearly JSON, or nothing of the kind.

    Example:
        >>> from hypothesis import find
        >>> find(hostile_json(), lambda text: "NaN" in text)
        'NaN'
    """
    pieces = st.sampled_from(
        (
            "NaN",
            "Infinity",
            "-",
            "1e999",
            "[",
            "]",
            "{",
            "}",
            ":",
            ",",
            '"a"',
            "null",
            "1",
            "\ud800",
        )
    )
    return st.lists(pieces, max_size=12).map("".join) | st.text(max_size=20)
