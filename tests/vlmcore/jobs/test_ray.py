"""Tests of jobs on a cluster of Ray, beside the same on one machine; `nox -s ray` runs them."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from caption_cases import Recorder, captions, draw, draw_many, opened_journal, pattern, plan_of
from vlmcore.errors import ContractError, JobError, ModelServerKeyError
from vlmcore.jobs import JobReport, Result, Table, TableKind, caption_images
from vlmcore.jobs.clusters import RayCluster
from vlmcore.jobs.prompts import CaptionPrompt
from vlmcore.jobs.templates import PromptTemplate
from vlmcore.testing import EchoPredictor, echo
from vlmcore.vlm.predictor import Predictor
from vlmcore.vlm.prompt import Prompt

ray = pytest.importorskip("ray", reason="Ray is not installed: nox -s ray")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
HERE = RayCluster()


@attrs.frozen
class EchoModel:
    """A model that any process can make; it may end its process, or refuse, at a given image."""

    log: Path
    dies_at: str = ""
    refuses_at: str = ""
    dies_once: bool = True
    takes_s: float = 0.0
    identity: str = "echo"
    is_served: bool = False

    def open(self) -> Predictor:
        return EchoPredictor(answer=self._say)

    def close(self, predictor: Predictor) -> None:
        predictor.close()

    def _say(self, prompt: Prompt) -> str:
        said = echo(prompt)
        time.sleep(self.takes_s)
        with self.log.open("a") as log:
            log.write(f"{os.getpid()} {said}\n")
        has_died = self.dies_once and "died" in self.log.read_text()
        if self.dies_at and self.dies_at in said and not has_died:
            with self.log.open("a") as log:
                log.write("died\n")
            os.kill(os.getpid(), signal.SIGKILL)
        if self.refuses_at and self.refuses_at in said:
            raise ModelServerKeyError("echo", "the key is refused")
        return said


@pytest.fixture(scope="module", autouse=True)
def here() -> Iterator[None]:
    """A cluster of this machine, which all tests of the file share."""
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers have no tests
    ray.init("local", num_cpus=3, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def counts(report: JobReport) -> dict[Result, int]:
    return {result: count for result, count in report.counts.items() if count}


def mixed(folder: Path) -> Path:
    """Images of three sizes, two of the same pixels, one like another, and three that are none."""
    folder.mkdir(parents=True)
    draw_many(folder, 7)
    for name, kind in (("same-1", "png"), ("same-2", "bmp")):
        pattern(1).save(folder / f"{name}.{kind}")
    pattern(1, 48).save(folder / "similar.png")
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 no more")
    (folder / "empty.png").touch()
    (folder / "text.png").write_text("hello")
    return folder


def told_by_journal(folder: Path) -> list[tuple[Any, ...]]:
    with opened_journal(folder) as journal:
        database = journal.database
        return [
            *database.execute(
                "SELECT position, key, size, hex(digest), width_px, height_px, outcome, problem, "
                "duplicate_of, hex(pixels), hex(likeness) FROM images ORDER BY position"
            ),
            *database.execute(
                "SELECT key, hex(digest), mark, model, text, value, stop, problem FROM answers "
                "ORDER BY key, digest, mark"
            ),
        ]


@pytest.mark.parametrize(
    "fields", [{}, {"reuse_identical": True}, {"near_duplicates": 4, "reuse_identical": True}]
)
def test_a_cluster_gives_the_answers_and_the_journal_of_one_machine(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    """
    Row by row; and what either has done, the other finds done.
    """
    told = {}
    for name, cluster in (("local", None), ("ray", HERE)):
        folder = mixed(tmp_path / name)
        table = Table(path=tmp_path / f"{name}.jsonl", kind=TableKind.JSONL)
        plan = plan_of(
            folder,
            prompts=[
                CaptionPrompt(text="How many objects are there?", name="count"),
                CaptionPrompt(text=PromptTemplate(text="What is {stem}?"), name="what"),
            ],
            sidecars=plan_of(folder).sidecars,
            tables=[table],
            **fields,
        )
        report = caption_images(plan, "embedded", cluster=cluster)
        other = caption_images(plan, "embedded", cluster=None if cluster else HERE)
        assert not set(counts(other)) - {Result.DONE, Result.DUPLICATE, Result.FAILED}
        told[name] = (
            counts(report),
            counts(other),
            sorted(each.problem for each in report.failures),
            told_by_journal(folder),
            captions(folder),
            [json.loads(line) for line in table.path.read_text().splitlines()],
        )
    assert told["local"] == told["ray"]


def test_a_key_that_is_refused_ends_the_job_with_what_came_kept(tmp_path: Path) -> None:
    """
    The error is that of the model, as on one machine; the next run asks the rest.
    """
    folder = tmp_path / "in"
    draw_many(folder, 40)
    log = tmp_path / "log"
    model = EchoModel(log, refuses_at="#000027")
    plan = plan_of(folder, batch_size=2)
    with pytest.raises(ModelServerKeyError):
        caption_images(plan, model, cluster=HERE)
    kept = len(captions(folder))
    assert 0 < kept < 40
    assert kept == counts(caption_images(plan, EchoModel(log), cluster=HERE))[Result.DONE]
    assert 40 == len(captions(folder))


def test_an_actor_that_dies_is_replaced_and_the_job_goes_on(tmp_path: Path) -> None:
    """
    What it was asked is asked again; every image has one caption.
    """
    folder = tmp_path / "in"
    draw_many(folder, 24)
    log = tmp_path / "log"
    report = caption_images(
        plan_of(folder, batch_size=2), EchoModel(log, dies_at="#00000c"), cluster=HERE
    )
    assert "died" in log.read_text()
    assert {Result.CAPTIONED: 24} == counts(report)
    assert 24 == len(captions(folder))


def test_an_image_that_ends_every_actor_ends_the_job(tmp_path: Path) -> None:
    """
    After a few tries, in one sentence, with what came before it kept.
    """
    folder = tmp_path / "in"
    draw_many(folder, 40)
    model = EchoModel(tmp_path / "log", dies_at="#000027", dies_once=False)
    with pytest.raises(JobError, match="a worker failed") as error:
        caption_images(plan_of(folder, batch_size=2), model, cluster=HERE)
    assert "\n" not in str(error.value)
    assert 0 < len(captions(folder)) < 40


def test_a_stopped_job_keeps_what_came_and_goes_on(tmp_path: Path) -> None:
    """
    No more is taken of the workers.
    """
    folder = tmp_path / "in"
    draw_many(folder, 60)
    model = EchoModel(tmp_path / "log", takes_s=0.02)
    stop = threading.Event()

    def tell(progress: Any) -> None:
        if progress.done:
            stop.set()

    plan = plan_of(folder, batch_size=1)
    report = caption_images(plan, model, cluster=HERE, stop=stop, progress=tell)
    assert report.was_stopped
    done = counts(report)[Result.CAPTIONED]
    assert 0 < done < 60
    again = caption_images(plan, model, cluster=HERE)
    assert {Result.DONE: done, Result.CAPTIONED: 60 - done} == counts(again)


def test_a_rerun_of_changed_images_asks_about_those_only(tmp_path: Path) -> None:
    """
    One that is as it was before is not asked about again, whatever it was in between.
    """
    folder = tmp_path / "in"
    paths = draw_many(folder, 4)
    log = tmp_path / "log"
    for number, asked in ((1, 4), (99, 5), (1, 5)):
        draw(paths[1], number, (6, 8))
        os.utime(paths[1], ns=(number, number))
        caption_images(plan_of(folder), EchoModel(log), cluster=HERE)
        assert asked == len(log.read_text().splitlines())
    assert "#000001" in captions(folder)["00001"]


def test_a_cluster_that_nobody_answers_for_is_told_of_soon(tmp_path: Path) -> None:
    """
    In one sentence, and not after the minutes that Ray tries.
    """
    draw_many(tmp_path, 1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(JobError, match="no cluster of Ray answers there") as error:
            caption_images(plan_of(tmp_path), "embedded", cluster=RayCluster(address=address))
    assert address == error.value.where
    assert "\n" not in str(error.value)


def test_a_predictor_cannot_be_asked_by_a_cluster(tmp_path: Path) -> None:
    """
    Its name can.
    """
    draw_many(tmp_path, 1)
    with pytest.raises(ContractError, match="expected its name"):
        caption_images(plan_of(tmp_path), Recorder().predictor, cluster=HERE)
