"""Tests of `vlmcore.contracts.actions`: a chunk holds what came, and nobody else's memory."""

from __future__ import annotations

import copy
import http
import math
import pickle
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.contracts.actions import ActionChunk, ActionStep, Stream
from vlmcore.contracts.documents import action_chunk_from_json, action_chunk_to_json
from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.testing.contract_strategies import action_chunks, hostile_actions, json_objects

PLAN: dict[str, Any] = {"names": ("x", "y"), "source": "test", "observed_at_s": 1.5}


def chunk(values: Any = ((1.0, 2.0), (3.0, 4.0)), **fields: Any) -> ActionChunk:
    return ActionChunk(values=values, **PLAN | fields)


def test_a_later_write_does_not_change_a_chunk() -> None:
    """
    The values are a copy, in memory that nobody can write to.
    """
    mine = np.zeros((2, 2))
    made = chunk(mine)
    mine[:] = 7.0

    assert [[0.0, 0.0], [0.0, 0.0]] == made.values.tolist()
    with pytest.raises(ValueError, match="read-only"):
        made.values[0, 0] = 1.0
    with pytest.raises(ValueError, match="WRITEABLE"):
        made.values.flags.writeable = True


@pytest.mark.parametrize(
    "kind", ["f2", "f4", "f8", ">f4", ">f8", "i1", "i2", "i4", "i8", "u2", "u8"]
)
def test_floats_and_whole_numbers_are_taken_exactly(kind: str) -> None:
    """
    Up to 2**53, in either byte order and any layout.
    """
    made = chunk(np.array([[0, 2], [1, 3]], kind).T)

    assert np.float64 == made.values.dtype
    assert made.values.dtype.isnative
    assert [[0.0, 1.0], [2.0, 3.0]] == made.values.tolist()


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((2, 2), np.uint8),
        np.zeros((2, 2), bool),
        np.zeros((2, 2), complex),
        np.zeros((2, 2), object),
        np.zeros((2, 2), "U3"),
        np.zeros((2, 2), np.longdouble),
        np.zeros((2, 2), "M8[s]"),
        np.ma.zeros((2, 2)),
        np.full((2, 2), 2**53 + 2, np.int64),
        np.full((2, 2), -(2**63), np.int64),
        np.full((2, 2), 2**63, np.uint64),
        np.zeros(2),
        np.zeros((1, 2, 2)),
        np.zeros(()),
        [[True, 1.0]],
        [[np.True_, 1.0]],
        [["1.5", "2"]],
        [[None, 1.0]],
        [[1j, 1.0]],
        [[2**53 + 1, 1.0]],
        [[10**400, 1.0]],
        [[1.0, 2.0], [1.0]],
        [1.0, 2.0],
        [],
        "12",
        b"12",
        {"x": 1},
        None,
        3.0,
    ],
    ids=lambda value: repr(value)[:30],
)
def test_uint8_bool_complex_and_the_rest_are_no_actions(wrong: Any) -> None:
    """
    uint8 is what pixels are; a bool, a text of digits and a half of a complex number are nothing.
    """
    with pytest.raises(ContractError, match=r"^values"):
        chunk(wrong)


def test_whole_numbers_up_to_2_to_the_53_are_exact() -> None:
    """
    Beyond, float64 has gaps.
    """
    assert [[2.0**53, -(2.0**53)]] == chunk([[2**53, -(2**53)]]).values.tolist()


def test_nan_infinity_subnormals_and_negative_zero_are_kept_for_the_gate_to_find() -> None:
    """
    A chunk is a proposal; also float32 that went over to infinity is one.
    """
    made = chunk(np.array([[np.nan, np.float32(np.inf)], [5e-324, -0.0]]))

    assert not made.is_finite
    assert [[np.nan, np.inf], [5e-324, -0.0]] == pytest.approx(made.values, nan_ok=True, abs=0)
    assert np.signbit(made.values[1, 1])
    assert chunk().is_finite


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((0, 2), "got 0 steps, expected 1 to 4,096"),
        ((4097, 2), "got 4097 steps"),
        ((2, 0), "got 0 dimensions, expected 1 to 2,048"),
        ((1, 2049), "got 2049 dimensions"),
    ],
)
def test_a_chunk_has_1_to_4096_steps_of_1_to_2048_dimensions(
    shape: tuple[int, int], message: str
) -> None:
    """
    The limits belong to what is allowed.
    """
    with pytest.raises(ContractError, match=f"^values: {message}"):
        chunk(np.zeros(shape))
    assert 4096 == chunk(np.zeros((4096, 2))).horizon
    names = tuple(map(str, range(2048)))
    assert 2048 == len(chunk(np.zeros((1, 2048)), names=names).names)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"names": ("x",)}, "^names: got 1 names, expected one a dimension, 2"),
        ({"names": ("x", "x")}, r"^names: got \['x'\] more than once"),
        ({"names": ("x", " ")}, r"^names\[1\]: got blank"),
        ({"names": "xy"}, "^names: got str"),
        ({"names": None}, "^names: got NoneType"),
        ({"source": ""}, "^source: got blank"),
        ({"source": "a\x00b"}, "^source: got .* control"),
        ({"observed_at_s": math.nan}, "^observed_at_s: got nan, expected a finite number"),
        ({"observed_at_s": math.inf}, "^observed_at_s: got inf"),
        ({"observed_at_s": None}, "^observed_at_s: got None"),
        ({"observed_at_s": True}, "^observed_at_s: got True"),
        ({"streams": ("x",)}, "^streams: got .* expected a tuple of Stream"),
        ({"metadata": [1]}, "^metadata: got list, expected an object"),
    ],
)
def test_a_chunk_says_which_field_is_wrong(fields: dict[str, Any], message: str) -> None:
    """
    Also that it was observed at no time at all.
    """
    with pytest.raises(ContractError, match=message):
        chunk(**fields)


def stream(name: str, start: int, end: int) -> Stream:
    return Stream(name=name, start=start, end=end)


def test_streams_are_parts_side_by_side() -> None:
    """
    Each is taken by its name.
    """
    made = chunk(streams=[stream("arm", 0, 1), stream("gripper", 1, 2)])

    assert [[2.0], [4.0]] == made.stream("gripper").tolist()
    with pytest.raises(ContractError, match=r"^name: got 'leg', expected one of: arm, gripper$"):
        made.stream("leg")
    with pytest.raises(ContractError, match=r"there are no streams$"):
        chunk().stream("arm")


@pytest.mark.parametrize(
    ("streams", "message"),
    [
        ((stream("a", 0, 1),), "^streams: got an end at 1, expected all dimensions, 2"),
        ((stream("a", 1, 2),), r"^streams\[0\]: got a start at 1, expected 0"),
        ((stream("a", 0, 2), stream("b", 1, 2)), r"^streams\[1\]: got a start at 1, expected 2"),
        ((stream("a", 0, 1), stream("a", 1, 2)), r"^streams: got \['a'\] more than once"),
        ((stream("a", 0, 3),), "^streams: got an end at 3"),
    ],
)
def test_streams_leave_no_gap_and_do_not_overlap(streams: Any, message: str) -> None:
    """
    Every dimension is in one.
    """
    with pytest.raises(ContractError, match=message):
        chunk(streams=streams)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"start": -1}, "start"),
        ({"start": True}, "start"),
        ({"end": 0}, "end"),
        ({"end": 1.0}, "end"),
        ({"name": ""}, "name"),
    ],
)
def test_a_stream_has_a_start_below_its_end(fields: dict[str, Any], field: str) -> None:
    """
    In whole numbers.
    """
    with pytest.raises(ContractError, match=f"^{field}: got "):
        Stream(**{"name": "a", "start": 0, "end": 1, **fields})


def test_metadata_are_json_values_that_nobody_can_change() -> None:
    """
    To the bottom.
    """
    mine = {"a": [1, {"b": None}]}
    made = chunk(metadata=mine)
    mine["a"].append(2)

    assert {"a": (1, {"b": None})} == dict(made.metadata)
    with pytest.raises(TypeError):
        made.metadata["a"] = 1  # type: ignore[index]
    with pytest.raises(TypeError):
        made.metadata["a"][1]["b"] = 1


def endless() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["again"] = [value, value]
    return value


@pytest.mark.parametrize(
    "wrong",
    [
        {"a": math.nan},
        {"a": [math.inf]},
        {"a": {1: 2}},
        {"a": np.zeros(2)},
        {"a": np.float32(1)},
        {"a": b"x"},
        {"a": 1 << 64},
        {"a": "\ud800"},
        {"\ud800": 1},
        {"a": {1, 2}},
    ],
    ids=repr,
)
def test_what_json_does_not_know_is_no_metadata(wrong: Any) -> None:
    """
    A chunk can always be written.
    """
    with pytest.raises(ContractError, match=r"^metadata"):
        chunk(metadata=wrong)


def test_whole_numbers_of_a_class_of_their_own_are_metadata() -> None:
    """
    The status of an answer is an IntEnum; looking for one in a range takes years.
    """
    assert {"status": 200} == dict(chunk(metadata={"status": http.HTTPStatus.OK}).metadata)
    assert int is type(chunk(metadata={"status": http.HTTPStatus.OK}).metadata["status"])


def test_metadata_that_contain_themselves_end() -> None:
    """
    At the limit of depth.
    """
    with pytest.raises(LimitExceededError, match=r"^max_depth"):
        chunk(metadata=endless())


def test_metadata_are_as_deep_as_a_document_that_is_read_back() -> None:
    """
    What was written of a chunk with the deepest metadata is a chunk again, and no deeper one is.
    """
    deep: dict[str, Any] = {}
    for _ in range(30):
        deep = {"a": deep}

    made = chunk(metadata=deep)

    assert action_chunk_from_json(action_chunk_to_json(made)) == made
    with pytest.raises(LimitExceededError, match="max_depth"):
        chunk(metadata={"a": deep})


def test_a_step_has_its_values_under_their_names() -> None:
    """
    In the order of the chunk.
    """
    step = chunk().step(1)

    assert ("test", 1, [("x", 3.0), ("y", 4.0)]) == (
        step.source,
        step.step_index,
        list(step.action.items()),
    )
    assert step == pickle.loads(pickle.dumps(step))
    with pytest.raises(TypeError):
        step.action["x"] = 1.0  # type: ignore[index]


@pytest.mark.parametrize("wrong", [-1, 2, True, 1.0, None])
def test_a_step_that_is_not_there_is_refused(wrong: Any) -> None:
    """
    Also -1: the last step is a step to be named.
    """
    with pytest.raises(ContractError, match=r"^index: got .*, expected a step from 0 to 1"):
        chunk().step(wrong)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"action": {"x": math.nan}}, r"^action.*expected"),
        ({"action": {"x": True}}, r"^action\['x'\]: got True"),
        ({"action": {"x": "1"}}, r"^action\['x'\]: got '1'"),
        ({"action": {}}, "^action: got 0 names"),
        ({"action": {" ": 1}}, r"^action\[0\]: got blank"),
        ({"action": [1]}, "^action: got list"),
        ({"step_index": -1}, "^step_index: got -1"),
        ({"step_index": 4096}, "^step_index: got 4096"),
        ({"step_index": True}, "^step_index: got True"),
        ({"source": ""}, "^source"),
    ],
)
def test_one_step_is_finite(fields: dict[str, Any], message: str) -> None:
    """
    One clear error each.
    """
    with pytest.raises(ContractError, match=message):
        ActionStep(**{"source": "s", "step_index": 0, "action": {"x": 1}, **fields})


def test_a_chunk_with_nan_equals_itself() -> None:
    """
    It did not: ``from_json(to_json(chunk)) == chunk`` was false, and nobody was told.
    """
    made = chunk([[math.nan, 1.0]])

    assert made == chunk([[math.nan, 1.0]])
    assert made != chunk([[math.nan, 2.0]])
    assert made != chunk([[math.nan, 1.0]], source="other")
    assert made != chunk([[math.nan, 1.0]], metadata={"a": 1})
    assert made != chunk([[math.nan, 1.0]] * 2)
    assert made != made.values.tolist()


def test_chunks_that_are_equal_have_one_hash() -> None:
    """
    NaN as NaN, and -0.0 as 0.0.
    """
    one, other = (chunk([[zero, math.nan]], metadata={"a": [1]}) for zero in (0.0, -0.0))
    assert {one} == {one, other}
    assert 2 == len({one, chunk([[0.0, 1.0]])})


@pytest.mark.parametrize(
    ("fields", "said"), [({"numpy": lambda _: None}, ": .numpy() makes one"), ({}, "")]
)
def test_a_tensor_is_told_how_it_becomes_an_array(fields: dict[str, Any], said: str) -> None:
    """
    "got Tensor" is true, and no help.
    """
    with pytest.raises(ContractError) as error:
        chunk(type("Tensor", (), fields)())
    expected = "expected an array or lists of numbers, axes [T, D]"
    assert f"values: got Tensor, {expected}{said}" == str(error.value)


def test_numpy_takes_a_chunk_for_its_values() -> None:
    """
    It was an array of one object, of no axes.
    """
    made = chunk([[0.5, 1.0]])
    assert [[0.5, 1.0]] == np.asarray(made).tolist()
    assert np.shares_memory(np.asarray(made), made.values)
    assert not np.asarray(made).flags.writeable
    assert np.array(made, copy=True).flags.writeable
    assert np.float32 == np.asarray(made, np.float32).dtype
    with pytest.raises(ContractError, match=r"^copy: got False for float32"):
        made.__array__(np.float32, copy=False)


@given(action_chunks(hostile=True))
def test_a_chunk_is_the_same_after_a_copy_or_in_another_process(made: ActionChunk) -> None:
    """
    And still cannot be written to.
    """
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made)), attrs.evolve(made)):
        assert made == other
        assert not other.values.flags.writeable


@given(st.data())
def test_any_float64_goes_through_unchanged(data: st.DataObject) -> None:
    """
    Bit by bit.
    """
    values = data.draw(hostile_actions(steps=3, dims=2))

    assert values.tobytes() == chunk(values).values.tobytes()
    assert values.tobytes() == chunk(values.tolist()).values.tobytes()


@given(json_objects())
def test_any_json_object_is_metadata(metadata: dict[str, Any]) -> None:
    """
    Of any depth that is drawn.
    """
    assert chunk(metadata=metadata) == chunk(metadata=chunk(metadata=metadata).metadata)
