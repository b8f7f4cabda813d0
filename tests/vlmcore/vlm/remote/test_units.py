"""Loops in text that comes without tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.vlm.remote._units import TextLoops


@pytest.mark.parametrize(
    "loop",
    ["!" * 700, "no " * 80, "a red square and " * 30, "一只狗和" * 30, "A\n" * 80, "🐶" * 600],
)
def test_a_loop_is_found(loop: str) -> None:
    """
    In any language.
    """
    assert TextLoops().add(loop)


@pytest.mark.parametrize(
    "text",
    [
        "-" * 400,
        "| a | b |\n" * 3,
        "One dog, two dogs, three dogs, four dogs, five dogs.",
        "\n".join(f"{i}. A square at {i * 7}" for i in range(60)),
        "哈" * 100,
    ],
)
def test_a_ruler_a_table_and_a_list_are_no_loops(text: str) -> None:
    """
    What people write may repeat.
    """
    assert not TextLoops().add(text)


@given(text=st.text(alphabet="ab !-一\n", max_size=400), size=st.integers(1, 50))
def test_how_the_text_is_cut_makes_no_difference(text: str, size: int) -> None:
    """
    Servers cut where they like.
    """
    pieces, whole = TextLoops(), TextLoops()
    found = [pieces.add(text[at : at + size]) for at in range(0, len(text), size)]
    assert whole.add(text) is any(found)
