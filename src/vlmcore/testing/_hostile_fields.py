"""A Hypothesis strategy for what a contract of any kind must take or refuse."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np

from vlmcore._optional import optional_dependency
from vlmcore.limits import ContractLimits

with optional_dependency("testing", "hypothesis"):
    from hypothesis import strategies as st

__all__ = ["HOSTILE_VALUES", "hostile_fields"]

HOSTILE_VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    int(np.iinfo(np.uint64).max),
    (10**440) ** 10,  # more digits than Python writes
    0.5,
    -0.0,
    5e-324,
    1.7976931348623157e308,
    math.nan,
    -math.inf,
    1j,
    "",
    " ",
    "1.5",
    "\ud800",
    "\x1b[2J",
    "\u202e",
    "x" * (ContractLimits().max_task_characters + 1),
    b"",
    b"\xff\xd8\xff",
    (),
    [],
    [math.nan],
    [True, "1.5"],
    [[0.0], [0.0, 1.0]],
    ("a", "a"),
    (1, 0),
    {},
    {"": None},
    {"a": math.nan},
    {1: 1.0},
    {"a"},
    range(3),
    object(),
    int,
    np.float32(0.1),
    np.int64(3),
    np.timedelta64(1, "s"),
    np.array(1.0),
    np.zeros(0),
    np.zeros((0, 3)),
    np.zeros((1, 1, 1, 1, 1)),
    np.full(3, math.nan),
    np.zeros(2, np.uint8),
    np.zeros(2, np.complex128),
    np.array(["1.5"]),
    np.array([1.0, None], object),
    np.ma.masked_equal([0.0, 1.0], 0.0),
)


@st.composite
def hostile_fields(draw: st.DrawFn, contracts: st.SearchStrategy[Any]) -> dict[str, Any]:
    """
    The fields of a contract with one of them wrong, odd, or taken from another field.

    What they are given to takes them, or raises an error of vlmcore; nothing else.

    Args:
        draw: Given by hypothesis.
        contracts: What draws true ones, as `observations`; all must be of attrs.

    Example:
        >>> from hypothesis import find
        >>> from vlmcore.contracts.embodiment import CameraSpec
        >>> from vlmcore.errors import VlmcoreError
        >>> from vlmcore.testing.contract_strategies import camera_specs
        >>> fields = find(hostile_fields(camera_specs()), lambda fields: fields["name"] is None)
        >>> try:
        ...     CameraSpec(**fields)
        ... except VlmcoreError as error:
        ...     print(error)
        name: got NoneType, expected text
    """
    contract = draw(contracts)
    fields = {
        field.name: getattr(contract, field.name)
        for field in attrs.fields(type(contract))
        if field.init
    }
    wrong = draw(st.sampled_from(sorted(fields)))
    others = [value for name, value in fields.items() if name != wrong]
    fields[wrong] = draw(st.sampled_from((*HOSTILE_VALUES, *others)))
    return fields
