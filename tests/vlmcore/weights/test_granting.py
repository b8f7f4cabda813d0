"""Memory and threads that a host does not grant, in the middle of a load."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from vlmcore.errors import WeightsBudgetError, WeightsError
from vlmcore.weights import _arena
from vlmcore.weights._crew import work_off
from vlmcore.weights._granting import granted
from vlmcore.weights.loading import load_weights
from vlmcore.weights.opening import open_files
from vlmcore.weights.packing import pack
from vlmcore.weights.report import Way
from vlmcore.weights.tuning import autotune
from vlmcore.weights.verifying import verify
from vlmcore.weights.writing import write_pack
from weight_cases import some_tensors

Work = Callable[[Path], object]


def verify_file(path: Path) -> object:
    with open_files(path) as files:
        return verify(files)


WORK: dict[str, Work] = {
    "views": load_weights,
    "copy": lambda path: load_weights(path, way=Way.COPY),
    "verify": verify_file,
    "pack": lambda path: pack(path, path.with_name("other")),
    "tune": lambda path: autotune(path, memory=path.with_name("memory.json")),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Path(write_pack(some_tensors(), tmp_path / "m.flashpack").path)


def threads_of_ours() -> list[str]:
    return [each.name for each in threading.enumerate() if "vlmcore" in each.name]


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_a_host_that_lets_no_thread_start_is_an_error_of_the_weights(
    work: Work, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    As where a container may have a few processes only; nothing is left behind by it.
    """

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(WeightsError, match=r"m\.flashpack: .* start no thread more"):
            work(path)
    assert [] == threads_of_ours()
    assert not path.with_name("other").exists()
    work(path)


def test_what_has_begun_before_no_thread_could_start_has_ended_when_that_is_told() -> None:
    """
    Nobody writes to memory any more that its owner gives back.
    """
    ended: list[int] = []

    class Few(ThreadPoolExecutor):
        def submit(self, *work: Any) -> Any:
            if work[-1] == 2:
                raise RuntimeError("can't start new thread")
            return super().submit(*work)

    def work(part: int) -> None:
        time.sleep(0.05)
        ended.append(part)

    with Few(2) as pool:
        with pytest.raises(RuntimeError, match="new thread"):
            work_off(pool, work, [(part, 1) for part in range(3)], path="m")
        assert [0, 1] == sorted(ended)


@pytest.mark.parametrize("work", list(WORK.values())[1:], ids=list(WORK)[1:])
def test_memory_that_a_host_does_not_grant_is_an_error_of_the_weights(
    work: Work, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    As where the shell bounds it: nothing tells it beforehand.
    """

    def refuse(_: int) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(_arena, "_anonymous", refuse)
    with pytest.raises(WeightsBudgetError, match=r"m\.flashpack: needs .* not grant them"):
        work(path)
    assert [] == threads_of_ours()
    assert not path.with_name("other").exists()


@pytest.mark.parametrize(
    "error", [RuntimeError("something else"), KeyboardInterrupt(), WeightsError("m", "is another")]
)
def test_what_else_goes_wrong_stays_what_it_is(error: BaseException) -> None:
    """
    Also errors of the caller's own functions.
    """
    with pytest.raises(type(error)) as caught, granted("m", 5):
        raise error
    assert error is caught.value
