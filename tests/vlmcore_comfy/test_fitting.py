"""What comes over links is held to what a node declares: ComfyUI looks at widgets only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError
from vlmcore_comfy.catalog import load_catalog
from vlmcore_comfy.declaring import Input, Node, choice, integer, number, text
from vlmcore_comfy.fitting import fitting

NODES = load_catalog().nodes
_OTHERS = {
    "STRING": (None, 5, b"x", ["a"], {"a": 1}),
    "BOOLEAN": (None, 1, "no", np.zeros(3)),
    "INT": (None, True, 2.5, "5", math.nan, np.zeros(3), 10**30, -(10**30)),
    "FLOAT": (None, True, "5", math.nan, math.inf, -math.inf, np.zeros(3), 10**400),
    "COMBO": (None, True, "no label of this", 2.5, [1], np.zeros(3), {"a": 1}),
}


def _inputs() -> list[tuple[Node[..., Any], Input]]:
    return [(node, each) for node in NODES.values() for each in node.inputs]


@pytest.mark.parametrize(
    ("node", "declared"),
    _inputs(),
    ids=lambda each: each.id if isinstance(each, Node) else each.name,
)
def test_no_node_begins_with_what_does_not_fit(node: Node[..., Any], declared: Input) -> None:
    """
    Whatever another node gave for a text, a number, a switch or a choice, the answer names it.
    """
    for value in _OTHERS.get(declared.type, ()):
        if declared.type == "COMBO" and declared.is_open and isinstance(value, str):
            continue
        if declared.type == "INT" and "max" not in declared.options and type(value) is int:
            continue
        with pytest.raises(ContractError) as caught:
            node(**{declared.name: value})
        assert caught.value.field == declared.name
        assert len(str(caught.value)) < 1500
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("node", NODES.values(), ids=lambda node: node.id)
def test_every_default_fits(node: Node[..., Any]) -> None:
    """
    Where a node starts is what it takes.
    """
    defaults = {
        each.name: each.options["default"] for each in node.inputs if "default" in each.options
    }
    assert fitting(node.inputs, defaults) == defaults


@given(value=st.one_of(st.integers(), st.integers(-5, 15)))
def test_a_whole_number_is_taken_within_its_range_and_nowhere_else(value: int) -> None:
    """
    Both ends are within.
    """
    declared = (integer("count", 3, 0, 10),)
    if 0 <= value <= 10:
        assert fitting(declared, {"count": value}) == {"count": value}
    else:
        with pytest.raises(ContractError, match=r"count: got .*, expected 0 to 10"):
            fitting(declared, {"count": value})


@given(value=st.floats())
def test_a_number_is_taken_within_its_range_and_nowhere_else(value: float) -> None:
    """
    What is not a number is within no range.
    """
    declared = (number("share", 0.5, 0.0, 1.0),)
    if 0 <= value <= 1:
        assert fitting(declared, {"share": value}) == {"share": value}
    else:
        with pytest.raises(ContractError, match=r"share: got .*, expected 0.0 to 1.0"):
            fitting(declared, {"share": value})


def test_an_array_of_one_number_is_that_number() -> None:
    """
    Other packs give out what NumPy and torch count in.
    """
    declared = (integer("count", 3, 0, 10), number("share", 0.5, 0.0, 1.0))
    taken = fitting(declared, {"count": np.int64(4), "share": np.array(0.25)})
    assert taken == {"count": 4, "share": 0.25}
    assert [type(each) for each in taken.values()] == [int, float]


def test_a_label_that_is_almost_one_is_answered_with_what_was_meant() -> None:
    """
    An open choice takes any label, and nothing but a label.
    """
    labels = ("Pretty JSON", "Compact JSON")
    with pytest.raises(ContractError, match=r"expected one of .*did you mean 'Pretty JSON'"):
        fitting((choice("how", labels),), {"how": "pretty json"})
    free = (choice("how", labels, is_open=True),)
    assert fitting(free, {"how": "mine"}) == {"how": "mine"}
    with pytest.raises(ContractError, match="how: got int, expected text"):
        fitting(free, {"how": 5})


def test_what_was_not_given_is_left_to_the_function() -> None:
    """
    An optional input that no graph names has the default of the function.
    """
    assert fitting((text("words"),), {}) == {}
