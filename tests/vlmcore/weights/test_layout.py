"""Where tensors lie in memory of our own."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from vlmcore.weights._layout import ALIGNMENT, lay_out
from vlmcore.weights.dtypes import DType
from vlmcore.weights.index import TensorEntry


def entries_of(shapes: list[tuple[int, int, int]], base: int) -> list[TensorEntry]:
    """Make tensors of bytes: the gap before each, its size, and 0 where a new file begins."""
    entries, file, start = [], 0, base
    for i, (gap, size, is_new) in enumerate(shapes):
        if is_new == 0:
            file, start = file + 1, base
        start += gap
        entries.append(
            TensorEntry(
                name=f"t{i}",
                dtype=DType.UINT8,
                shape=(size,),
                file=file,
                start=start,
                stop=start + size,
            )
        )
        start += size
    return entries


shapes = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 0, 1, 64, 5000]),
        st.one_of(st.integers(0, 9000), st.sampled_from([64, 128, 4096, 8192])),
        st.integers(0, 5),
    ),
    max_size=30,
)


@given(shapes, st.integers(0, 200))
def test_tensors_are_aligned_apart_and_covered(
    shapes: list[tuple[int, int, int]], base: int
) -> None:
    """
    Each starts at a multiple of 64, none lies in another, and what is read covers each of them.
    """
    entries = entries_of(shapes, base)
    layout = lay_out(entries)
    spans = sorted((layout.places[each.name], each.nbytes) for each in entries if each.nbytes)
    assert {0} >= {at % ALIGNMENT for at in layout.places.values()}
    assert all(at + size <= after for (at, size), (after, _) in pairwise(spans))
    assert all(0 <= at and at + size <= layout.nbytes for at, size in spans)
    for each in entries:
        assert any(
            (segment.file, layout.places[each.name] - segment.at)
            == (each.file, each.start - segment.start)
            and segment.start <= each.start
            and each.stop <= segment.stop
            for segment in layout.segments
        )


@given(shapes, st.integers(0, 200))
def test_little_memory_is_lost_between_tensors(
    shapes: list[tuple[int, int, int]], base: int
) -> None:
    """
    At most a sector for each tensor, and nothing to speak of for a whole checkpoint.
    """
    entries = entries_of(shapes, base)
    payload = sum(each.nbytes for each in entries)
    assert lay_out(entries).nbytes <= payload + 0x2000 * len(entries)


def test_tensors_of_a_pack_lie_as_in_their_file() -> None:
    """
    A pack aligns its tensors: it is read in one piece, to memory that needs no staging.
    """
    layout = lay_out(entries_of([(0, 1024, 1), (0, 1000, 1), (24, 4096, 1)], 0))
    assert [(0, 6144, 0)] == [(each.start, each.stop, each.at) for each in layout.segments]


def test_no_tensors_need_no_memory() -> None:
    """
    A checkpoint without tensors is loaded as any other.
    """
    assert (0, ()) == (lay_out([]).nbytes, lay_out([]).segments)
