"""A budget for weights that come and go: what is in memory, what leaves, and who waits for whom."""

from __future__ import annotations

import threading
from collections.abc import Callable

import hypothesis.strategies as st
import pytest
from hypothesis import given

from vlmcore.errors import ContractError, WeightsBudgetError, WeightsError
from vlmcore.weights._parts import Part
from vlmcore.weights.pool import WeightPool


class Shelf:
    """Parts by name, and which of them were read."""

    def __init__(self, pool: WeightPool, names: str = "abcd", nbytes: int = 10) -> None:
        self.pool = pool
        self.read: list[str] = []
        self.changed: set[str] = set()
        self.before: Callable[[str], None] = lambda _: None
        self.parts = {name: self.part(name, nbytes) for name in names}
        for part in self.parts.values():
            pool.add(part)

    def part(self, name: str, nbytes: int) -> Part:
        def load() -> str:
            self.before(name)
            self.read.append(name)
            return name

        return Part(
            path="file", nbytes=nbytes, load=load, is_changed=lambda value: value in self.changed
        )

    def get(self, names: str) -> str:
        return "".join(self.pool.get(self.parts[name]) for name in names)

    @property
    def present(self) -> str:
        return "".join(name for name, part in self.parts.items() if part.value is not None)


def shelf(budget_bytes: int, **options) -> Shelf:
    return Shelf(WeightPool(budget_bytes, reads_ahead=False), **options)


def test_weights_are_read_once_while_there_is_room() -> None:
    """
    What is in memory is given again.
    """
    held = shelf(40)

    assert "abcdabcd" == held.get("abcdabcd")
    assert list("abcd") == held.read
    assert (40, 40, 40) == (
        held.pool.resident_bytes,
        held.pool.peak_bytes,
        held.pool.loaded_bytes,
    )


def test_the_budget_is_never_exceeded() -> None:
    """
    Weights leave before others come.
    """
    held = shelf(25)

    held.get("abcdabcdabcd")

    assert 20 == held.pool.peak_bytes


def test_where_no_order_is_known_what_was_used_longest_ago_leaves() -> None:
    """
    As in the first round.
    """
    held = shelf(20)

    held.get("abc")

    assert "bc" == held.present


def test_what_is_needed_last_leaves_first() -> None:
    """
    In rounds, what was used longest ago is what is needed next: it stays.
    """
    held = shelf(30)
    held.get("abcdabcd")
    held.read.clear()

    held.get("abcdabcd")

    assert 3 == len(held.read)  # and not 8, as if what was used longest ago left


def test_weights_that_were_written_to_stay() -> None:
    """
    What somebody wrote is nowhere else.
    """
    held = shelf(20)
    held.get("a")
    held.changed.add("a")

    held.get("bcd")

    assert "ad" == held.present
    assert 10 == held.pool.evict()
    assert "a" == held.present


def test_a_budget_full_of_weights_that_stay_is_an_error() -> None:
    """
    With how much is needed, and how much is left.
    """
    held = shelf(20)
    held.get("ab")
    held.changed.update("ab")

    with pytest.raises(WeightsBudgetError) as error:
        held.get("c")

    assert (10, 0) == (error.value.needed_bytes, error.value.available_bytes)


def test_a_part_larger_than_the_budget_is_refused_when_it_is_added() -> None:
    """
    And not in the middle of an answer.
    """
    held = shelf(20)
    held.pool.reserve("file", 15)

    with pytest.raises(WeightsBudgetError, match=r"file: one module of it needs"):
        held.pool.add(held.part("x", 6))

    held.pool.release(15)
    held.pool.add(held.part("x", 6))


def test_what_is_reserved_takes_the_room_of_others() -> None:
    """
    They leave for it, and it is counted.
    """
    held = shelf(30)
    held.get("abc")

    held.pool.reserve("file", 12)

    assert 22 == held.pool.resident_bytes
    with pytest.raises(WeightsBudgetError):
        held.pool.reserve("file", 19)


def test_models_share_a_budget() -> None:
    """
    The weights of the model that is not used leave for those of the other.
    """
    pool = WeightPool(40, reads_ahead=False)
    one, other = Shelf(pool), Shelf(pool, "wxyz")

    one.get("abcdabcd")
    other.get("wxyzwxyz")

    assert ("", "wxyz") == (one.present, other.present)


def test_what_is_removed_leaves_and_can_be_asked_for_no_more() -> None:
    """
    Whoever asks is told that it is closed.
    """
    held = shelf(40)
    held.get("abcd")

    held.pool.remove(held.parts["b"])

    assert 30 == held.pool.resident_bytes
    with pytest.raises(WeightsError, match="is closed, and its weights are needed"):
        held.get("b")


def test_a_read_that_fails_takes_no_room_and_is_tried_again() -> None:
    """
    The error is that of the read.
    """
    held = shelf(20)

    def fail(_: str) -> None:
        raise WeightsError("file", "gone")

    held.before = fail
    with pytest.raises(WeightsError, match="gone"):
        held.get("a")
    assert 0 == held.pool.resident_bytes

    held.before = lambda _: None
    assert "a" == held.get("a")


def test_two_threads_that_need_the_same_weights_wait_for_one_read() -> None:
    """
    Nothing is read twice.
    """
    held = shelf(20)
    reading, go_on = threading.Event(), threading.Event()

    def wait(_: str) -> None:
        reading.set()
        assert go_on.wait(10)

    held.before = wait
    threads = [threading.Thread(target=held.get, args="a") for _ in range(2)]
    for thread in threads:
        thread.start()
    assert reading.wait(10)
    go_on.set()
    for thread in threads:
        thread.join(10)

    assert ["a"] == held.read


def test_a_thread_waits_for_room_that_another_is_reading_into() -> None:
    """
    What is being read can leave once it is there, and not before.
    """
    held = shelf(10)
    reading, go_on = threading.Event(), threading.Event()

    def wait(name: str) -> None:
        if name == "a":
            reading.set()
            assert go_on.wait(10)

    held.before = wait
    first = threading.Thread(target=held.get, args="a")
    second = threading.Thread(target=held.get, args="b")
    first.start()
    assert reading.wait(10)
    second.start()
    go_on.set()
    first.join(10)
    second.join(10)

    assert ["a", "b"] == held.read
    assert 10 == held.pool.peak_bytes


def test_what_comes_next_is_read_meanwhile() -> None:
    """
    In the order seen the last time, within the budget.
    """
    pool = WeightPool(80)
    held = Shelf(pool, "abcdefgh")
    held.get("abcdefgh")
    pool.evict()
    read_b = threading.Event()
    held.before = lambda name: read_b.set() if name == "b" else None

    held.get("a")

    assert read_b.wait(10)


def test_a_failure_to_read_ahead_is_told_to_who_needs_it() -> None:
    """
    Nobody asked for it yet: no thread dies of it.
    """
    pool = WeightPool(80)
    held = Shelf(pool, "abcdefgh")
    held.get("abcdefgh")
    pool.evict()
    tried = threading.Event()

    def fail(name: str) -> None:
        if name == "b":
            tried.set()
            raise WeightsError("file", "gone")

    held.before = fail
    held.get("a")
    assert tried.wait(10)

    with pytest.raises(WeightsError, match="gone"):
        held.get("b")


@given(st.text("abcdef", max_size=60), st.integers(1, 6), st.booleans())
def test_any_order_gives_the_right_weights_within_the_budget(names, room, reads_ahead) -> None:
    """
    Whatever is needed in whatever order.
    """
    held = Shelf(WeightPool(10 * room, reads_ahead=reads_ahead), "abcdef")

    assert names == held.get(names)
    assert held.pool.peak_bytes <= 10 * room


def test_many_threads_get_the_right_weights_within_the_budget() -> None:
    """
    Each goes its own way through them.
    """
    held = Shelf(WeightPool(30), "abcdef")
    orders = ["abcdef" * 20, "fedcba" * 20, "aceacefbd" * 10, "a" * 50]
    got: list[str] = []
    threads = [
        threading.Thread(target=lambda names=names: got.append(held.get(names))) for names in orders
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert sorted(orders) == sorted(got)
    assert held.pool.peak_bytes <= 30


@pytest.mark.parametrize("budget_bytes", [0, -1, 1.5, True])
def test_a_budget_is_a_number_of_bytes(budget_bytes) -> None:
    """
    At least one.
    """
    with pytest.raises(ContractError, match="budget_bytes"):
        WeightPool(budget_bytes)
