"""
The door to Ray: images are read by tasks, and asked about by a pool of actors with a model each.

What a worker returns is small, an image's digest and the answers; journal and captions are written
by the process that began the job, as they are without Ray.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import math
import os
import queue
import signal
import socket
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt
import pandas as pd
import ray
import ray.data
from ray.exceptions import RayError

from vlmcore.errors import JobError, VlmcoreError
from vlmcore.jobs._calls import Calls
from vlmcore.jobs.asking import questions_about
from vlmcore.jobs.batching import Batches
from vlmcore.jobs.clusters import RayCluster
from vlmcore.jobs.journal import Answer
from vlmcore.jobs.models import JobModel
from vlmcore.jobs.orders import Asking, Order, Told
from vlmcore.jobs.reading import Looking, Seen
from vlmcore.secrets import redact

__all__ = ["answered", "connected", "looked_at"]

_COLUMN = "each"
_LOOKS_AT_ONCE = 64  # images of a task, of which nothing is told before the last
_ASKED_AT_ONCE = 16  # the same for an actor, at least
_BATCHES_AT_ONCE = 4  # of a model in the actor's process, which are sorted by size together
_CPUS_TO_LOOK = 0.5  # two share a processor, as each waits for files half of the time
_TRIES = 4  # of images whose actor died each time
_TICK_S = 0.5
_DIALS_S = 10.0

_Batch: TypeAlias = dict[str, npt.NDArray[np.object_]]


@contextlib.contextmanager
def connected(cluster: RayCluster) -> Iterator[None]:
    """
    Be connected to a cluster; one that was made for the block ends with it.

    Raises:
        JobError: If it cannot be reached.
    """
    with _quiet(), contextlib.ExitStack() as stack:
        if cluster.address is not None or not ray.is_initialized():
            _connect(cluster)
            stack.callback(ray.shutdown)
        yield


def _connect(cluster: RayCluster) -> None:
    address = "local" if cluster.address is None else cluster.address
    options: dict[str, Any] = {}
    if address == "local":
        # Readers need processors beside those of the models, or they would wait for ever.
        cpus = max(os.cpu_count() or 1, math.ceil(cluster.models * cluster.cpus) + 1)
        options = {"include_dashboard": False, "num_cpus": cpus}
    try:
        if cluster.dialled is not None:  # as Ray itself tries for minutes
            socket.create_connection(cluster.dialled, timeout=_DIALS_S).close()
        with _own_signals():
            ray.init(address, logging_level=logging.ERROR, log_to_driver=False, **options)
    except (OSError, RuntimeError, ValueError, RayError) as error:
        problem = f"no cluster of Ray answers there: {redact(str(error), max_characters=300)}"
        raise JobError(address, problem) from error
    gpus = float(ray.cluster_resources().get("GPU", 0.0))
    if address == "local" and cluster.models * cluster.gpus > gpus:
        ray.shutdown()
        wanted = f"{cluster.models} x {cluster.gpus:g}"
        raise JobError("gpus", f"got {wanted}, expected at most the {gpus:g} of this machine")


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Keep Ray from having SIGTERM end the process at once: a job ends after what came."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Have Ray Data show nothing, and keep things in order; its settings are those of a process."""
    context = ray.data.DataContext.get_current()
    loggers = [logging.getLogger(name) for name in ("ray", "ray.data")]
    levels = [logger.level for logger in loggers]
    before = context.enable_progress_bars, context.execution_options.preserve_order
    context.enable_progress_bars, context.execution_options.preserve_order = False, True
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"ray\.data")  # few images, many actors
            warnings.filterwarnings("ignore", message="`ray_remote_args`")  # see pyproject.toml
            yield
    finally:
        context.enable_progress_bars, context.execution_options.preserve_order = before
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def looked_at(orders: Iterable[Order], looking: Looking) -> Generator[list[Seen], None, None]:
    """
    Have tasks look at images, and give what they saw, without pixels, in the order of *orders*.

    All orders are taken at once; what is seen may be taken in another thread.
    """
    look = functools.partial(_look, looking=looking, keeps_pixels=False)
    dataset = _read(orders, look, _LOOKS_AT_ONCE)
    return ([looked.seen for looked in block] for block in _blocks(dataset))


def answered(
    orders: Iterable[Order],
    looking: Looking,
    model: JobModel,
    *,
    cluster: RayCluster,
    asking: Asking,
) -> Generator[list[Told], None, None]:
    """
    Have images looked at and asked about, and give what was said in the order of *orders*.

    All orders are taken at once; what is said may be taken in another thread. Ray holds back the
    readers where the models do not keep up, and the models where nobody takes what they say.

    Args:
        orders: The images.
        looking: How they are looked at.
        model: What is asked; each actor loads it.
        cluster: How many actors there are.
        asking: What is asked, and how.
    """
    look = functools.partial(_look, looking=looking, keeps_pixels=True)
    many = asking.in_flight if model.is_served else asking.batch_size * _BATCHES_AT_ONCE
    at_once = max(_ASKED_AT_ONCE, many)
    told = _read(orders, look, at_once).map_batches(
        _Ask,
        fn_constructor_args=(model, asking, cluster.models),
        batch_size=at_once,
        batch_format="numpy",
        compute=ray.data.ActorPoolStrategy(size=cluster.models),
        num_cpus=cluster.cpus,
        num_gpus=cluster.gpus,
        max_task_retries=_TRIES,
    )
    return _blocks(told)


def _read(orders: Iterable[Order], look: Callable[[_Batch], _Batch], at_once: int) -> Any:
    # Not all orders in the memory of this process: some hold the bytes of an image. What a task
    # makes of a block is one block, so that blocks are small, and none is long in coming.
    blocks = [ray.put(pd.DataFrame({_COLUMN: part})) for part in _parts(orders, at_once)]
    read = ray.data.from_pandas_refs(blocks)
    # Other resources than those of the models, or Ray would have them look themselves, and wait.
    return read.map_batches(look, batch_size=None, batch_format="numpy", num_cpus=_CPUS_TO_LOOK)


def _parts(orders: Iterable[Order], at_once: int) -> Iterator[list[Order]]:
    waiting = iter(orders)
    while part := list(itertools.islice(waiting, at_once)):
        yield part


def _batch(values: Iterable[object]) -> _Batch:
    listed = list(values)
    column = np.empty(len(listed), dtype=object)
    column[:] = listed
    return {_COLUMN: column}


def _blocks(dataset: Any) -> Generator[list[Any], None, None]:
    """Give what workers return, as it comes; what they raise is raised as it was."""
    try:
        for batch in dataset.iter_batches(batch_size=None, batch_format="numpy"):
            yield list(batch[_COLUMN])
    except RayError as error:
        raise _cause(error) from error


def _cause(error: BaseException) -> VlmcoreError:
    found: BaseException | None = error
    while found is not None:
        inner = getattr(found, "cause", None)
        for each in (found, inner):
            if isinstance(each, VlmcoreError):
                return each
        found = inner if isinstance(inner, BaseException) else found.__cause__
    last = (str(error).strip() or type(error).__name__).splitlines()[-1]
    return JobError("ray", f"a worker failed: {redact(last, max_characters=500)}")


@attrs.frozen
class _Looked:
    order: Order
    seen: Seen


def _look(orders: _Batch, *, looking: Looking, keeps_pixels: bool) -> _Batch:
    looks = []
    for order in orders[_COLUMN]:
        seen = looking.look(order.item, order.done)
        looks.append(_Looked(order, seen if keeps_pixels else attrs.evolve(seen, pixels=None)))
    return _batch(looks)


class _Ask:
    """An actor: a model, and the calls to it."""

    def __init__(self, model: JobModel, asking: Asking, models: int) -> None:
        self._asking = asking
        self._size = 1 if model.is_served else asking.batch_size
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._calls = Calls(
            model,
            in_flight=max(1, asking.in_flight // models),
            patience_s=asking.patience_s,
            wake=lambda: self._wakes.put(None),
        )

    def __call__(self, looks: _Batch) -> _Batch:
        """Answer all questions about a few images, or those before the model failed for good."""
        asking = self._asking
        batches = Batches(self._size, asking.limits.max_ahead_bytes)
        answers: dict[str, list[Answer]] = defaultdict(list)
        pictures: list[_Looked] = list(looks[_COLUMN])
        for looked in pictures:
            order, seen = looked.order, looked.seen
            if seen.pixels is None or seen.digest is None:
                continue
            without = order.answered.get(seen.digest, frozenset())
            questions, refused = questions_about(
                seen, asking.prompts, asking.marks, without=without
            )
            answers[seen.item.key] += refused
            for question in questions:
                batches.add(question)
        batches.complete()
        error = None
        try:
            self._answers(batches, answers)
        except VlmcoreError as failed:
            error = failed
        return _batch(
            Told(
                seen=attrs.evolve(looked.seen, pixels=None),
                answers=tuple(answers[looked.seen.item.key]),
                error=error,
            )
            for looked in pictures
        )

    def _answers(self, batches: Batches, answers: dict[str, list[Answer]]) -> None:
        while batches or not self._calls.is_idle:
            while self._calls.has_room and (batch := batches.take()):
                self._calls.send(batch)
            with contextlib.suppress(queue.Empty):
                self._wakes.get(timeout=_TICK_S)
            for asked in self._calls.collect(len(batches)):
                if asked.answer is None:
                    batches.put_back([asked.question])
                else:
                    answers[asked.question.key].append(asked.answer)
