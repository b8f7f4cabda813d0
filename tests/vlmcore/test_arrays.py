"""Tests of `vlmcore._arrays`."""

from __future__ import annotations

import enum
import math
from typing import Any

import numpy as np
import pytest

from vlmcore._arrays import (
    as_tuple,
    immutable,
    plain_float,
    readonly_float64,
    readonly_frames,
    readonly_image,
    require_count,
    require_finite,
    require_finite_between,
    require_member,
    require_name,
    require_names,
    require_positive,
    require_text,
)
from vlmcore.errors import ContractError

IMAGE = np.zeros((4, 6, 3), dtype=np.uint8)


def test_an_image_becomes_a_view_that_cannot_be_written_through() -> None:
    """
    Pixels are shared, not copied, and the caller's own array stays writable.
    """
    view = readonly_image(IMAGE, field="image")

    assert np.shares_memory(IMAGE, view)
    assert (False, True) == (view.flags.writeable, IMAGE.flags.writeable)


def test_frames_have_one_axis_more() -> None:
    """
    Axes are ``[T, H, W, 3]``.
    """
    assert (2, 4, 6, 3) == readonly_frames(np.stack([IMAGE, IMAGE]), field="video").shape


@pytest.mark.parametrize(
    ("wrong", "came"),
    [
        (IMAGE.astype(np.float32), r"float32 of shape \[4, 6, 3\]"),
        (IMAGE[..., 0], r"uint8 of shape \[4, 6\]"),
        (IMAGE[..., :2], r"uint8 of shape \[4, 6, 2\]"),
        (IMAGE[:0], r"uint8 of shape \[0, 6, 3\]"),
        (IMAGE[np.newaxis], r"uint8 of shape \[1, 4, 6, 3\]"),
        ([[0, 0, 0]], "list"),
        ("a.png", "str"),
    ],
)
def test_what_is_no_image_is_refused_with_the_way_out(wrong: Any, came: str) -> None:
    """
    The message names the field, what came, and what makes an image of it.
    """
    with pytest.raises(ContractError, match=f"^image: got {came}, expected .*load_image"):
        readonly_image(wrong, field="image")


def test_one_image_is_no_video() -> None:
    """
    A missing time axis is not guessed.
    """
    with pytest.raises(ContractError, match=r"^video: .*\[T, H, W, 3\]"):
        readonly_frames(IMAGE, field="video")


@pytest.mark.parametrize("wrong", ["", " \n", None, b"text", 3])
def test_text_is_text_with_something_in_it(wrong: Any) -> None:
    """
    Bytes and blanks are not.
    """
    require_text(name="a")
    with pytest.raises(ContractError, match=r"^name: got "):
        require_text(name=wrong)


@pytest.mark.parametrize("wrong", [0, -1, True, 1.0, "1", None])
def test_a_count_is_a_whole_number_of_at_least_one(wrong: Any) -> None:
    """
    ``True`` is not 1.
    """
    require_count(frames=1)
    with pytest.raises(ContractError, match=r"^frames: got "):
        require_count(frames=wrong)


@pytest.mark.parametrize("wrong", [0, -0.5, math.nan, math.inf, True, "1", None])
def test_a_rate_is_a_finite_number_above_zero(wrong: Any) -> None:
    """
    NaN fails every comparison, so it is looked for.
    """
    require_positive(rate_hz=0.5)
    with pytest.raises(ContractError, match=r"^rate_hz: got "):
        require_positive(rate_hz=wrong)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan, math.inf, True, "0"])
def test_a_bounded_number_is_within_its_bounds(wrong: Any) -> None:
    """
    Both ends belong to the range.
    """
    require_finite_between(0, 1, top_p=0)
    require_finite_between(0, 1, top_p=1.0)
    with pytest.raises(ContractError, match=r"^top_p: got .*from 0 to 1"):
        require_finite_between(0, 1, top_p=wrong)


def test_an_immutable_array_is_a_copy_that_nobody_can_write_to() -> None:
    """
    Made once: what is immutable already is shared.
    """
    mine = np.arange(6.0).reshape(2, 3).T
    made = immutable(mine)
    mine[:] = 9

    assert [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]] == made.tolist()
    with pytest.raises(ValueError, match="WRITEABLE"):
        made.flags.writeable = True
    assert np.shares_memory(made, immutable(made))
    assert made.T.tolist() == immutable(made.T).tolist()


class Liar(np.ndarray):
    """An array that names an owner it has not, and converts itself to what is somebody else's."""

    mine: Any
    base = b"x"  # type: ignore[assignment]

    def astype(self, *_: Any, **__: Any) -> Any:
        return self.mine

    view = copy = tobytes = astype  # type: ignore[assignment]


def lying(dtype: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Make an array that lies, and the memory that it would give away."""
    mine = np.zeros(shape, dtype)
    liar = np.ndarray.view(mine, Liar)
    liar.mine = mine
    return liar, mine


def test_a_subclass_that_lies_about_its_owner_is_copied() -> None:
    """
    A subclass with another ``base`` or ``astype`` shared the memory of the caller.
    """
    for make, dtype, shape in (
        (immutable, np.float64, (2, 3)),
        (lambda value: readonly_float64(value, field="x", axes="[T, D]"), np.float64, (2, 3)),
        (lambda value: readonly_float64([*value], field="x", axes="[T, D]"), np.float32, (2, 3)),
        (lambda value: immutable(readonly_image(value, field="x")), np.uint8, (2, 3, 3)),
        (lambda value: immutable(readonly_frames(value, field="x")), np.uint8, (1, 2, 3, 3)),
    ):
        liar, mine = lying(dtype, shape)
        made = make(liar)
        mine[:] = 99
        assert (np.ndarray, 0) == (type(made), made.max())
        assert not np.shares_memory(mine, made)


def test_what_only_says_that_it_can_be_iterated_over_is_left() -> None:
    """
    An array without axes raised a TypeError of NumPy where a tuple was expected.
    """
    alone = np.array(3)
    assert alone is as_tuple(alone)
    assert 3 == as_tuple(np.int64(3))


def test_a_name_is_plain_text_whatever_class_it_came_as() -> None:
    """
    Otherwise it decides itself which other name it equals.
    """

    class Liar(str):
        __slots__ = ()

        def __eq__(self, _other: object) -> bool:
            return True

        __hash__ = str.__hash__

    made = as_tuple([Liar("x"), np.str_("y"), "z", 1])
    assert [str, str, str, int] == [type(each) for each in made]
    assert made == ("x", "y", "z", 1)
    assert ((1, 2), "ab") == (as_tuple(np.array([1, 2])), as_tuple("ab"))


@pytest.mark.parametrize(
    ("value", "number"),
    [(1, 1.0), (2**53, 2.0**53), (np.int8(3), 3.0), (np.float16(0.5), 0.5), (np.float64(2), 2.0)],
)
def test_numbers_of_python_and_numpy_become_plain_floats(value: Any, number: float) -> None:
    """
    Exactly.
    """
    assert (float, number) == (type(plain_float(value)), plain_float(value))


@pytest.mark.parametrize(
    "value",
    [
        *(True, np.True_, "1", None, 1j, np.complex64(1), 2**53 + 1, np.longdouble(1), [1.0]),
        *(np.timedelta64(1), np.timedelta64(3, "s"), np.timedelta64("NaT"), np.datetime64(1, "s")),
    ],
)
def test_what_is_no_number_is_left_for_a_check_to_refuse(value: Any) -> None:
    """
    Nothing is guessed.
    """
    assert plain_float(value) is value


def test_lists_of_numbers_and_of_rows_become_arrays() -> None:
    """
    Rows may be arrays.
    """
    assert [1.0, 2.5] == readonly_float64([1, 2.5], field="x", axes="[D]").tolist()
    rows = [np.float32([1, 2]), (3, 4)]
    assert [[1.0, 2.0], [3.0, 4.0]] == readonly_float64(rows, field="x", axes="[T, D]").tolist()


@pytest.mark.parametrize(
    "wrong",
    [math.nan, -math.inf, True, "1", None, 10**400, 10**5000],
    ids=lambda value: type(value).__name__,
)
def test_a_finite_number_is_one(wrong: Any) -> None:
    """
    Also one that Python refuses to write out is refused in our words.
    """
    require_finite(low=-0.0)
    with pytest.raises(ContractError, match=r"^low: got .*, expected a finite number"):
        require_finite(low=wrong)


def test_a_member_of_an_enum_is_not_its_value() -> None:
    """
    Text is for documents.
    """
    kind = enum.Enum("kind", {"ONE": "one"})
    require_member(kind, field=kind["ONE"])
    with pytest.raises(ContractError, match=r"^field: got 'one', expected one of kind.ONE"):
        require_member(kind, field="one")


@pytest.mark.parametrize("name", ["x", "a b", "größe", "関節", "🤖", "x" * 8])
def test_names_may_be_in_any_script(name: str) -> None:
    """
    On one line.
    """
    require_name("name", name, max_characters=8)


@pytest.mark.parametrize(
    "wrong", ["", " ", "a\n", "\x7f", "\x85", "\u2028", "\u202e", "\u2066", "\ud800", "x" * 9, b"x"]
)
def test_a_name_cannot_move_a_cursor_or_turn_the_line_round(wrong: Any) -> None:
    """
    Reports are read in terminals.
    """
    with pytest.raises(ContractError, match=r"^name: got "):
        require_name("name", wrong, max_characters=8)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ((), "^names: got 0 names, expected 1 to 2"),
        (("a", "b", "c"), "^names: got 3 names"),
        (("a", "a"), r"^names: got \['a'\] more than once"),
        (("a", 1), r"^names\[1\]: got int"),
        (["a"], "^names: got list"),
    ],
)
def test_names_are_there_once_each(wrong: Any, message: str) -> None:
    """
    The second look at the same names finds the same.
    """
    require_names("names", ("a", "b"), max_count=2, max_characters=8)
    for _ in range(2):
        with pytest.raises(ContractError, match=message):
            require_names("names", wrong, max_count=2, max_characters=8)
