"""Tests of `vlmcore.jobs.ray_engine`: what it decides, with workers in the same process."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest

from caption_cases import (
    Given,
    Opened,
    Recorder,
    captions,
    draw,
    draw_many,
    item_of_bytes,
    pattern,
    plan_of,
    said_of,
)
from vlmcore.errors import (
    ContractError,
    JobError,
    MissingDependencyError,
    ModelServerKeyError,
    VlmcoreError,
)
from vlmcore.jobs import JobReport, Result, Sidecars, caption_images
from vlmcore.jobs.asking import questions_about
from vlmcore.jobs.clusters import RayCluster
from vlmcore.jobs.items import FileContent, Item
from vlmcore.jobs.journal import Answer
from vlmcore.jobs.orders import Order, Told
from vlmcore.jobs.reading import Looking, Seen
from vlmcore.jobs.sources.archives import MemberContent
from vlmcore.vlm.prompt import Prompt

HERE = RayCluster()
BLOCK = 4


@attrs.define
class Cluster:
    """Stands for the door to Ray: its workers are functions, and work when they are asked to."""

    connections: int = 0
    looks: list[str] = attrs.field(factory=list)
    orders: list[Order] = attrs.field(factory=list)
    before_answers: Callable[[], None] = lambda: None
    failure: VlmcoreError | None = None

    @contextlib.contextmanager
    def connected(self, cluster: RayCluster) -> Iterator[None]:
        assert cluster is HERE
        self.connections += 1
        yield

    def looked_at(self, orders: Iterable[Order], looking: Looking) -> Iterator[list[Seen]]:
        listed = list(orders)
        self.looks += [order.item.key for order in listed]
        return ([without_pixels(looking, order)] for order in listed)

    def answered(
        self, orders: Iterable[Order], looking: Looking, model: Any, *, cluster: Any, asking: Any
    ) -> Iterator[list[Told]]:
        listed = list(orders)
        self.orders += listed
        assert cluster is HERE
        return self._blocks(listed, looking, model, asking)

    def _blocks(
        self, orders: list[Order], looking: Looking, model: Any, asking: Any
    ) -> Iterator[list[Told]]:
        self.before_answers()
        for i in range(0, len(orders), BLOCK):
            yield [told(order, looking, model, asking) for order in orders[i : i + BLOCK]]
        if self.failure is not None:
            raise self.failure


def without_pixels(looking: Looking, order: Order) -> Seen:
    return attrs.evolve(looking.look(order.item, order.done), pixels=None)


def told(order: Order, looking: Looking, model: Any, asking: Any) -> Told:
    seen = looking.look(order.item, order.done)
    if seen.pixels is None or seen.digest is None:
        return Told(seen=seen)
    without = order.answered.get(seen.digest, frozenset())
    questions, answers = questions_about(seen, asking.prompts, asking.marks, without=without)
    try:
        for question in questions:
            text = model.open().generate(question.prompt, question.options).text
            answers.append(Answer(mark=question.mark, text=text, stop="end"))
    except VlmcoreError as error:
        return Told(seen=attrs.evolve(seen, pixels=None), answers=tuple(answers), error=error)
    return Told(seen=attrs.evolve(seen, pixels=None), answers=tuple(answers))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """The door, with the workers behind it."""
    standing = Cluster()
    module: Any = ModuleType("vlmcore.jobs._ray")
    module.connected = standing.connected
    module.looked_at = standing.looked_at
    module.answered = standing.answered
    monkeypatch.setitem(sys.modules, "vlmcore.jobs._ray", module)
    monkeypatch.setattr("vlmcore.jobs._ray", module, raising=False)
    return standing


def caption(folder: Path, model: Recorder | None = None, **fields: Any) -> JobReport:
    stop, progress = fields.pop("stop", None), fields.pop("progress", lambda _progress: None)
    asked = Opened((model or Recorder()).predictor)
    plan = plan_of(folder, **fields)
    return caption_images(plan, asked, cluster=HERE, stop=stop, progress=progress)


def counts(report: JobReport) -> dict[Result, int]:
    return {result: count for result, count in report.counts.items() if count}


def test_a_rerun_with_nothing_to_do_reaches_no_cluster(tmp_path: Path, cluster: Cluster) -> None:
    """
    What one machine has done is done for a cluster, too.
    """
    draw_many(tmp_path, 9)
    assert {Result.CAPTIONED: 9} == counts(caption(tmp_path))
    assert {Result.DONE: 9} == counts(caption(tmp_path))
    assert 1 == cluster.connections
    assert f"{said_of(1, (6, 8))}\n" == captions(tmp_path)["00001"]


def test_only_what_is_not_known_is_ordered(tmp_path: Path, cluster: Cluster) -> None:
    """
    Where bytes are those that are known, workers do not decode them, as of what was only touched.
    """
    paths = draw_many(tmp_path, 4)
    caption(tmp_path)
    cluster.orders.clear()
    draw(paths[1], 55)
    paths[2].write_bytes(paths[2].read_bytes())
    draw(tmp_path / "new.png", 77)
    model = Recorder()
    report = caption(tmp_path, model)
    assert ["00001.png", "00002.png", "new.png"] == [o.item.key for o in cluster.orders]
    assert [True, True, False] == [order.done is not None for order in cluster.orders]
    assert [said_of(55), said_of(77)] == model.asked
    assert {Result.DONE: 3, Result.CAPTIONED: 2} == counts(report)


def test_images_with_the_same_pixels_are_ordered_once(tmp_path: Path, cluster: Cluster) -> None:
    """
    The others take over what is said, whatever it is.
    """
    for name in ("a.png", "b.bmp", "c.png"):
        pattern(3).save(tmp_path / name)
    draw(tmp_path / "d.png", 7)
    report = caption(tmp_path, reuse_identical=True)
    assert ["a.png", "d.png"] == [order.item.key for order in cluster.orders]
    assert {Result.CAPTIONED: 2, Result.REUSED: 2} == counts(report)
    assert 1 == len({captions(tmp_path)[name] for name in "abc"})


def test_an_image_that_changes_between_two_looks_lends_its_answers_to_nobody(
    tmp_path: Path, cluster: Cluster
) -> None:
    """
    Those who waited for it fail, and are asked about by the next run.
    """
    pattern(3).save(tmp_path / "a.png")
    pattern(3).save(tmp_path / "b.bmp")
    cluster.before_answers = lambda: pattern(4).save(tmp_path / "a.png")
    report = caption(tmp_path, reuse_identical=True)
    assert {Result.CAPTIONED: 1, Result.FAILED: 1} == counts(report)
    assert "which changed meanwhile" in report.failures[0].problem
    cluster.before_answers = lambda: None
    again = caption(tmp_path, reuse_identical=True)
    assert {Result.DONE: 1, Result.CAPTIONED: 1} == counts(again)


def test_an_image_like_an_earlier_one_is_not_ordered(tmp_path: Path, cluster: Cluster) -> None:
    """
    Nor looked at again by a rerun.
    """
    pattern(3).save(tmp_path / "a.png")
    pattern(3, 48).save(tmp_path / "b.png")
    report = caption(tmp_path, near_duplicates=4)
    assert {Result.CAPTIONED: 1, Result.DUPLICATE: 1} == counts(report)
    assert ["a.png"] == [order.item.key for order in cluster.orders]
    cluster.looks.clear()
    again = caption(tmp_path, near_duplicates=4)
    assert {Result.DONE: 1, Result.DUPLICATE: 1} == counts(again)
    assert [] == cluster.looks


def test_an_image_that_cannot_be_read_fails_alone(tmp_path: Path, cluster: Cluster) -> None:
    """
    Also one that vanishes before a worker reads it.
    """
    paths = draw_many(tmp_path, 3)
    (tmp_path / "text.png").write_text("hello")
    cluster.before_answers = paths[1].unlink
    report = caption(tmp_path)
    assert {Result.CAPTIONED: 2, Result.FAILED: 2} == counts(report)


@pytest.mark.usefixtures("cluster")
def test_what_the_model_refuses_for_good_ends_the_job_with_the_rest_kept(tmp_path: Path) -> None:
    """
    Of the same block, too.
    """
    draw_many(tmp_path, 6)

    def say(prompt: Prompt) -> str:
        if prompt.images[0][0, 0, 2] == 5:
            raise ModelServerKeyError("echo", "the key is refused")
        return "yes"

    with pytest.raises(ModelServerKeyError):
        caption(tmp_path, Recorder(say))
    assert 5 == len(captions(tmp_path))
    assert {Result.DONE: 5, Result.CAPTIONED: 1} == counts(caption(tmp_path))


def test_what_came_before_the_cluster_failed_is_kept(tmp_path: Path, cluster: Cluster) -> None:
    """
    The error is told, and the next run goes on.
    """
    draw_many(tmp_path, 6)
    cluster.failure = JobError("ray", "a worker failed: it was killed")
    with pytest.raises(JobError, match="a worker failed"):
        caption(tmp_path)
    assert 6 == len(captions(tmp_path))


def test_a_stopped_job_takes_no_more(tmp_path: Path, cluster: Cluster) -> None:
    """
    What came is kept, and it is told that it was stopped.
    """
    draw_many(tmp_path, 40)
    stop = threading.Event()
    cluster.before_answers = stop.set
    report = caption(tmp_path, stop=stop)
    assert report.was_stopped
    assert report.counts[Result.CAPTIONED] == len(captions(tmp_path)) <= 2 * BLOCK
    assert not caption(tmp_path).was_stopped


@pytest.mark.parametrize("fields", [{}, {"reuse_identical": True}])
def test_a_job_that_is_stopped_at_once_orders_nothing(
    tmp_path: Path, cluster: Cluster, fields: dict[str, Any]
) -> None:
    """
    And reaches no cluster.
    """
    draw_many(tmp_path, 3)
    stop = threading.Event()
    stop.set()
    report = caption(tmp_path, stop=stop, **fields)
    assert report.was_stopped
    assert 0 == cluster.connections


def test_workers_are_told_whole_paths(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    They may be in another folder.
    """
    path = draw(tmp_path / "in" / "a.png", 1)
    monkeypatch.chdir(tmp_path)
    member = MemberContent(Path("in/a.png"), "a.png", 0, path.stat().st_size)
    items = [
        Item(key="a", content=FileContent(Path("in/a.png"))),
        Item(key="b", content=member),
        item_of_bytes("c", path),
    ]
    caption(tmp_path, source=Given([items], place=tmp_path), sidecars=Sidecars(folder=tmp_path))
    contents: list[Any] = [order.item.content for order in cluster.orders]
    assert [path, path] == [contents[0].path, contents[1].archive]
    assert 3 == len(captions(tmp_path))


@pytest.mark.usefixtures("cluster")
def test_a_predictor_cannot_go_to_other_processes(tmp_path: Path) -> None:
    """
    Its name can.
    """
    draw_many(tmp_path, 1)
    with pytest.raises(ContractError, match="expected its name"):
        caption_images(plan_of(tmp_path), Recorder().predictor, cluster=HERE)


def test_without_ray_it_is_said_what_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Before any image is read.
    """
    draw_many(tmp_path, 1)
    monkeypatch.delitem(sys.modules, "vlmcore.jobs._ray", raising=False)
    monkeypatch.delattr("vlmcore.jobs._ray", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setitem(sys.modules, "pandas", ModuleType("pandas"))
    with pytest.raises(MissingDependencyError, match=r"vlmcore\[ray\]"):
        caption_images(plan_of(tmp_path), "embedded", cluster=HERE)
