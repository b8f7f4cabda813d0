"""Tests of `vlmcore_robotics.wire.ndarrays`: three spellings of arrays, one reader."""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.wire.messages import ARRAYS, golden
from vlmcore._arrays import immutable
from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.limits import WireLimits
from vlmcore_robotics.wire.frames import FrameKind, decode_frame, encode_frame
from vlmcore_robotics.wire.ndarrays import ArraySpelling

FILES = {
    ArraySpelling.OPENPI: "openpi-arrays",
    ArraySpelling.MSGPACK_NUMPY: "msgpack-numpy-arrays",
    ArraySpelling.NPY: "npy-arrays",
}
KIND = FrameKind.REQUEST
FOUR = np.float32([1, 2]).tobytes()


def encode(value: Any, spelling: ArraySpelling = ArraySpelling.OPENPI) -> bytes:
    return encode_frame(value, kind=KIND, spelling=spelling)


def decode(frame: bytes) -> Any:
    return decode_frame(frame, kind=KIND)


def spell(**parts: Any) -> bytes:
    return encode(parts)


def openpi(**parts: Any) -> bytes:
    return spell(**{"__ndarray__": True, "data": FOUR, "dtype": "<f4", "shape": [2], **parts})


def nd(**parts: Any) -> bytes:
    return spell(**{"nd": True, "type": "<f4", "kind": b"", "shape": [2], "data": FOUR, **parts})


def npy(file: bytes) -> bytes:
    return spell(__ndarray_class__=True, as_npy=file)


def saved(array: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def outcome(action: Callable[[], Any]) -> Any:
    """Take what *action* gives, or the limit that it exceeds."""
    try:
        return action()
    except LimitExceededError as error:
        return error.limit


def refused(action: Callable[..., Any], *arguments: Any) -> ContractError:
    with pytest.raises(ContractError) as caught:
        action(*arguments)
    return caught.value


@pytest.mark.parametrize("spelling", ArraySpelling)
def test_arrays_are_written_to_the_byte_as_the_real_packages_write_them(
    spelling: ArraySpelling,
) -> None:
    """
    openpi-client, msgpack-numpy and numpy.save wrote the golden bytes.
    """
    assert golden(FILES[spelling]) == encode(ARRAYS, spelling)


@pytest.mark.parametrize("spelling", ArraySpelling)
def test_arrays_are_read_from_what_the_real_packages_write(spelling: ArraySpelling) -> None:
    """
    With their types and shapes; no spelling has to be announced.
    """
    read = decode(golden(FILES[spelling]))

    assert list(ARRAYS) == list(read)
    for name, value in ARRAYS.items():
        if isinstance(value, np.ndarray):
            assert (value.dtype, value.shape) == (read[name].dtype, read[name].shape)
            assert np.array_equal(value, read[name])
        else:
            assert value == read[name]
            as_plain = spelling is ArraySpelling.NPY and isinstance(value, np.generic)
            assert as_plain or type(value) is type(read[name])


def test_text_keys_and_the_kind_f_are_read_as_other_servers_send_them() -> None:
    """
    Three dialects call themselves openpi; all are accepted, the canonical one is sent.
    """
    for frame in (
        openpi(),
        nd(),
        nd(kind="f"),
        nd(kind=b"f"),
        encode({b"nd": True, b"type": b"<f4", b"shape": [2], b"data": FOUR}),
        encode({b"__ndarray__": True, b"data": FOUR, b"dtype": b"<f4", b"shape": (2,)}),
    ):
        assert [1.0, 2.0] == decode(frame).tolist()


def test_a_number_is_read_from_its_bytes_and_not_from_text() -> None:
    """
    np.float32 gave ValueError, np.False_ True, int32 bytes "0000" 0, and b"1.50" was text 1.5.
    """
    numbers = {
        ("<f4", struct.pack("<f", 1.5)): np.float32(1.5),
        ("|b1", b"\x00"): np.False_,
        ("<i4", b"0000"): np.int32(808464432),
        ("<f4", b"1.50"): np.frombuffer(b"1.50", "<f4")[0],
        (">i2", b"\x01\x02"): np.int16(258),
    }
    for (dtype, data), number in numbers.items():
        read = decode(spell(nd=False, type=dtype, data=data))
        assert (number, type(number)) == (read, type(read))
    assert refused(decode, spell(nd=False, type="<f4", data=b"1.5")).problem == (
        "got 3 bytes for <f4 of shape [], expected 4"
    )


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("<f4", "1.5"),
        ("<i4", 1.5),
        ("<i4", True),
        ("|b1", 1),
        ("|u1", 256),
        ("<u4", -1),
        ("<i8", b"1"),
    ],
)
def test_a_plain_value_of_another_kind_is_no_number_of_that_type(dtype: str, value: Any) -> None:
    """
    Nothing is cut, wrapped or parsed.
    """
    error = refused(decode, encode({"x": {"__npgeneric__": True, "data": value, "dtype": dtype}}))
    assert ("frame['x']", True) == (error.field, error.problem.startswith("got "))


@pytest.mark.parametrize("value", [1 + 2j, np.complex64(1), np.array([1j])])
def test_complex_numbers_are_refused_both_ways(value: Any) -> None:
    """
    There is no split in real and imaginary parts on the real wire.
    """
    assert "got " in refused(encode, {"x": value}).problem
    assert "complex" in refused(decode, encode({"complex": True, "data": "(1+2j)"})).problem
    parts = {"real": b"", "imag": b""}
    assert parts == decode(encode(parts))


@pytest.mark.parametrize(
    "dtype",
    [
        "i4,f4",
        "|O",
        "O",
        "<U1",
        "|S1",
        "<M8[s]",
        "<m8[s]",
        "<c8",
        "|V8",
        "<f16",
        ">f16",
        "float32",
        "f4",
        "=f4",
        "<f4\n",
        "|b2",
        "<b1",
        "<i1",
        "<f1",
    ],
)
def test_the_type_decides_and_not_the_kind(dtype: str) -> None:
    """
    Void, text, times, complex numbers and objects passed with kind ''; nothing is unpickled.
    """
    for frame in (
        openpi(dtype=dtype),
        nd(type=dtype),
        spell(nd=False, type=dtype, data=b"x"),
        spell(__npgeneric__=True, dtype=dtype, data=1),
    ):
        assert "got an array of type " in refused(decode, frame).problem


@pytest.mark.parametrize(
    "value",
    [
        np.array(["a"]),
        np.array([b"a"]),
        np.array([None]),
        np.array(["2026-01-01"], "M8[s]"),
        np.zeros(1, "i4,f4"),
        np.longdouble([1]),
        np.ma.masked_array([1.0], [True]),
        np.datetime64("2026-01-01"),
    ],
)
def test_types_that_are_no_numbers_are_not_written(value: Any) -> None:
    """
    A mask would be lost, an object would have to be pickled.
    """
    assert "array" == refused(encode, [value]).field


@pytest.mark.parametrize("spelling", ArraySpelling)
@pytest.mark.parametrize("dtype", [">f4", ">i8", ">u2", "<f2"])
def test_either_byte_order_is_read_and_little_endian_is_written(
    spelling: ArraySpelling, dtype: str
) -> None:
    """
    A big-endian array was "not a numeric array" two steps later.
    """
    array = np.array([[1, 2], [3, 4]], dtype)
    little = array.astype(array.dtype.newbyteorder("<"))
    assert encode(little, spelling) == encode(array, spelling)
    for frame in (openpi(data=array.tobytes(), dtype=dtype, shape=[2, 2]), npy(saved(array))):
        read = decode(frame)
        assert (array.tolist(), True) == (read.tolist(), read.dtype.isnative)


@pytest.mark.parametrize(
    "shape",
    [[-1], [2.9], [2.0], [True, 2], ["2"], [None], 2, None, {"a": 1}, [2**31], [[2]], b"\x02"],
)
def test_a_shape_is_whole_numbers(shape: Any) -> None:
    """
    -1 was accepted, 2.9 was cut to 2.
    """
    for frame in (openpi(shape=shape), nd(shape=shape)):
        assert "shape" in refused(decode, frame).problem


@pytest.mark.parametrize("shape", [[], [1], [3], [2, 2], [0], [0, 2**31 - 1]])
def test_bytes_are_as_many_as_type_and_shape_say(shape: list[int]) -> None:
    """
    To the byte: a buffer that is too large was cut in silence.
    """
    for frame in (openpi(shape=shape), nd(shape=shape)):
        error = refused(decode, frame)
        assert "got 8 bytes for <f4" in error.problem or isinstance(error, LimitExceededError)


@pytest.mark.parametrize("shape", [[2**31 - 1] * 2, [2**30, 0], [0] + [2**31 - 1] * 5, [1] * 7])
def test_a_huge_shape_is_refused_before_there_is_an_array(shape: list[int]) -> None:
    """
    A cap in elements was 1 GiB of float64; this one is in bytes, and in axes.
    """
    error = refused(decode, openpi(shape=shape, data=b""))
    assert isinstance(error, LimitExceededError)
    assert error.limit == ("max_rank" if len(shape) == 7 else "max_binary_bytes")


def test_an_array_with_more_axes_than_six_is_not_written() -> None:
    """
    The peer would refuse it.
    """
    assert isinstance(refused(encode, np.zeros((1,) * 7)), LimitExceededError)
    assert (1,) * 6 == decode(encode(np.zeros((1,) * 6))).shape


@pytest.mark.parametrize("spelling", ArraySpelling)
@pytest.mark.parametrize(
    ("limit", "value"),
    [
        ("max_nodes", [np.zeros((2, 3))] * 3),
        ("max_text_bytes", [np.zeros((2, 3))] * 3),
        ("max_binary_bytes", np.zeros((2, 3))),
        ("max_depth", [np.zeros((2, 3))]),
        ("max_entries", np.zeros((2, 3))),
        ("max_rank", np.zeros((2, 3))),
    ],
)
def test_an_array_that_was_written_before_is_held_to_the_limits_of_this_time(
    spelling: ArraySpelling, limit: str, value: Any
) -> None:
    """
    What is the same for all arrays of a shape is remembered; how much is written is not.
    """
    frame = encode(value, spelling)
    for tight in range(1, 180):
        limits = WireLimits(**{limit: tight})
        written = outcome(
            lambda: encode_frame(value, kind=KIND, spelling=spelling, limits=limits)  # noqa: B023
        )
        read = outcome(lambda: decode_frame(frame, kind=KIND, limits=limits))  # noqa: B023
        assert written in (frame, limit)
        assert (written == limit) is isinstance(read, str)
    assert frame == written


@pytest.mark.parametrize(
    "frame",
    [
        openpi(more=1),
        openpi(nd=True),
        nd(more=1),
        spell(__ndarray__=True, data=FOUR, dtype="<f4"),
        spell(__npgeneric__=True, data=1),
        spell(nd=True, type="<f4", data=FOUR),
        spell(nd=False, type="<f4", data=FOUR[:4], shape=[]),
        spell(__ndarray_class__=True),
    ],
)
def test_an_array_has_exactly_its_keys(frame: bytes) -> None:
    """
    What stands beside them would be lost without a word.
    """
    assert "got an array of the keys " in refused(decode, frame).problem


@pytest.mark.parametrize(
    "value",
    [{"nd": 3, "type": 1, "data": 2}, {"nd": True}, {"data": b"x", "type": "<f4"}, {"nd": None}],
)
def test_a_map_that_only_shares_a_key_with_an_array_is_a_map(value: Any) -> None:
    """
    A robot may have a state called nd.
    """
    assert value == decode(encode(value))


@pytest.mark.parametrize("data", ["text", 1, None, [1, 2]])
def test_the_data_of_an_array_is_bytes(data: Any) -> None:
    """
    Not text that happens to have the right length.
    """
    for frame in (openpi(data=data), nd(data=data)):
        assert "as the data of an array, expected bytes" in refused(decode, frame).problem


def test_bytes_other_than_0_and_1_are_no_truth_values() -> None:
    """
    NumPy would have taken them for true, and compared them as unequal to true.
    """
    assert (
        "other than 0 and 1"
        in refused(decode, openpi(data=b"\x02", dtype="|b1", shape=[1])).problem
    )


@pytest.mark.parametrize("spelling", ArraySpelling)
def test_pixels_are_not_copied_when_they_are_read(spelling: ArraySpelling) -> None:
    """
    The array is a view of the frame, in memory that nobody can write to.
    """
    frame = encode({"image": ARRAYS["uint8"]}, spelling)
    image = decode(frame)["image"]

    assert np.shares_memory(image, np.frombuffer(frame, np.uint8))
    assert np.shares_memory(image, immutable(image))
    with pytest.raises(ValueError, match="read-only"):
        image[0, 0, 0] = 1


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_files_of_numpy_are_read_in_every_version_and_order(
    version: tuple[int, int], order: Any
) -> None:
    """
    Servers of GR00T N1.5 and N1.6 send them.
    """
    array = np.array(np.arange(6, dtype="<i4").reshape(2, 3), order=order)
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=version)

    assert np.array_equal(array, decode(npy(file.getvalue())))


@pytest.mark.parametrize(
    "file",
    [
        b"",
        b"\x93NUMPY",
        saved(np.zeros(2))[:60],
        saved(np.zeros(2)).replace(b"NUMPY", b"NUMPX"),
        saved(np.zeros(2)).replace(b"\x01\x00", b"\x04\x00", 1),
        saved(np.zeros(2)).replace(b"False", b"11111"),
        saved(np.zeros(2)).replace(b"(2,)", b"(-2)"),
        saved(np.zeros(2)).replace(b"(2,)", b"2*1 "),
        saved(np.zeros(2)).replace(b"'descr'", b"'__i__'"),
    ],
)
def test_what_is_no_file_of_numpy_is_refused(file: bytes) -> None:
    """
    The header is matched, not evaluated.
    """
    assert "got an array that is no file of NumPy" in refused(decode, npy(file)).problem


def test_a_file_of_numpy_with_objects_in_it_is_not_unpickled() -> None:
    """
    A payload of kind 'O' went to pickle.loads: a program of somebody else's.
    """

    class Bomb:
        def __reduce__(self) -> Any:
            return (pytest.fail, ("it was unpickled",))

    error = refused(decode, npy(saved(np.array([Bomb()], object), allow_pickle=True)))
    assert "got an array of type '|O'" in error.problem
    for frame in (nd(type="|O", kind=b"O"), nd(type=[["a", "<f4"]], kind=b"V")):
        assert "got an array of type" in refused(decode, frame).problem


def test_a_long_header_of_a_file_is_refused_unread() -> None:
    """
    One of 4 GiB can be declared in twelve bytes.
    """
    for length, error in ((1025, LimitExceededError), (1024, ContractError)):
        file = b"\x93NUMPY\x02\x00" + struct.pack("<I", length) + b" " * 100
        assert type(refused(decode, npy(file))) is error


def test_a_file_of_numpy_has_as_many_bytes_as_it_says() -> None:
    """
    Neither fewer nor more.
    """
    file = saved(np.zeros(2))
    assert (
        "got 17 bytes for <f8 of shape [2], expected 16"
        in refused(decode, npy(file + b"x")).problem
    )
    assert "got 15 bytes for <f8" in refused(decode, npy(file[:-1])).problem


numbers = st.sampled_from(
    ["|b1", "|u1", "|i1", "<u2", "<i2", "<f2", "<u4", "<f4", "<i8", ">f8", ">i4"]
)
shapes = st.lists(st.integers(0, 4), max_size=6)


@given(numbers, shapes, st.sampled_from(ArraySpelling), st.randoms())
def test_any_array_is_read_as_it_was_written(
    dtype: str, shape: list[int], spelling: ArraySpelling, chance: Any
) -> None:
    """
    In type, shape and every bit, NaN and -0.0 among them.
    """
    kind = np.dtype(dtype)
    data = chance.randbytes(math.prod(shape) * kind.itemsize)
    data = bytes(each & 1 for each in data) if dtype == "|b1" else data
    array = np.frombuffer(data, kind).reshape(shape)
    read = decode(encode(array, spelling))

    assert (kind.newbyteorder("="), array.shape) == (read.dtype, read.shape)
    assert (
        array.astype(kind.newbyteorder("<")).tobytes()
        == read.astype(kind.newbyteorder("<")).tobytes()
    )
    assert not read.flags.writeable
