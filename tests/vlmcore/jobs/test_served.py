"""Captioning jobs whose model is behind a server: one that refuses, dies, and comes back."""

from __future__ import annotations

import base64
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, PngImagePlugin

from caption_cases import Opened, caption, captions, draw, draw_many
from model_server_cases import (
    HANG_UP,
    QUICK,
    Asked,
    ScriptedModelServer,
    answers,
    refuses,
    serving,
)
from vlmcore.errors import ModelServerKeyError, ModelServerUnavailableError
from vlmcore.jobs import JobProgress, Result
from vlmcore.jobs import _calls as calls
from vlmcore.vlm.remote.predictors import OpenAICompatiblePredictor
from vlmcore.vlm.remote.retrying import Retries

SAYS = answers("A dog.")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait a moment only before a server is asked again that was away."""
    monkeypatch.setattr(calls, "_FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(calls, "_LONGEST_WAIT_S", 0.1)


def at(url: str, retries: Retries = QUICK) -> Opened:
    return Opened(OpenAICompatiblePredictor(url, model="m", retries=retries), is_served=True)


def test_a_server_is_asked_many_things_at_once(tmp_path: Path) -> None:
    """
    As many as there may be in flight, and no more; each image has its answer.
    """
    draw_many(tmp_path, 12)
    together, most, lock = threading.Barrier(4), [0, 0], threading.Lock()

    def script(asked: Asked) -> Iterator[bytes]:
        with lock:
            most[0] += 1
            most[1] = max(most)
        together.wait(60)
        with lock:
            most[0] -= 1
        yield from SAYS(asked)

    with serving(script) as server:
        report = caption(tmp_path, at(server.url), in_flight=4)
    assert (12, 4) == (report.counts[Result.CAPTIONED], most[1])


def test_a_server_that_has_no_time_is_sent_less_until_it_has(tmp_path: Path) -> None:
    """
    429 with Retry-After, now and then: every image has its caption.
    """
    draw_many(tmp_path, 40)
    busy = refuses(429, "slow down", more="retry-after: 0\r\n")
    scripts = [busy if n % 3 == 0 else SAYS for n in range(30)]
    with serving(*scripts, SAYS) as server:
        report = caption(tmp_path, at(server.url), in_flight=8)
        assert 50 == len(server.asked)
    assert (40, 0) == (report.counts[Result.CAPTIONED], report.failed)


def test_a_server_that_refuses_for_longer_is_asked_again_later(tmp_path: Path) -> None:
    """
    When it is asked no more within a call, the question goes back to the others.
    """
    draw_many(tmp_path, 6)
    busy = refuses(503, "loading")
    with serving(*[busy] * 6, SAYS) as server:
        report = caption(tmp_path, at(server.url, Retries(times=0)), in_flight=3)
    assert (6, 0) == (report.counts[Result.CAPTIONED], report.failed)


def test_a_server_that_dies_and_comes_back_is_waited_for(tmp_path: Path) -> None:
    """
    It is told meanwhile what the job waits for; no image is lost or fails.
    """
    draw_many(tmp_path, 20)
    told: set[str] = set()

    def progress(told_of: JobProgress) -> None:
        told.add(told_of.waiting_for)

    dead = [lambda _asked: [HANG_UP]] * 7
    with serving(*[SAYS] * 7, *dead, SAYS) as server:
        report = caption(tmp_path, at(server.url), in_flight=2, progress=progress)
    assert (20, 0) == (report.counts[Result.CAPTIONED], report.failed)
    assert 20 == len(captions(tmp_path))
    assert {""} < told
    assert all(each.startswith("the server, which is away for ") for each in told - {""})


def _serve_until_killed(told: Connection, port: int, answered: int) -> None:
    """Answer a few questions, and die over the next as a process does that ran out of memory."""

    def die(_asked: Asked) -> Iterable[bytes]:
        os.kill(os.getpid(), signal.SIGKILL)
        return []

    server = ScriptedModelServer(*[SAYS] * answered, die, port=port)
    told.send(server.port)
    told.recv()


@pytest.mark.skipif(sys.platform == "win32", reason="kills by signals")
def test_a_server_whose_process_is_killed_and_started_again_on_its_port_is_found_again(
    tmp_path: Path,
) -> None:
    """
    Connections that were open are gone, and for a while nothing listens: no image fails for that.
    """
    draw_many(tmp_path, 20)
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("forkserver")
    processes: list[BaseProcess] = []

    def start(port: int, answered: int) -> int:
        processes.append(
            context.Process(target=_serve_until_killed, args=(theirs, port, answered), daemon=True)
        )
        processes[-1].start()
        assert ours.poll(60)
        return int(ours.recv())

    def progress(told: JobProgress) -> None:
        if told.waiting_for and len(processes) == 1:
            processes[0].join(60)
            assert -signal.SIGKILL == processes[0].exitcode
            start(port, 99)

    port = start(0, 7)
    try:
        url = f"http://localhost:{port}/v1"
        report = caption(tmp_path, at(url), in_flight=4, progress=progress, patience_s=60.0)
    finally:
        for process in processes:
            process.kill()
            process.join()
    assert (2, 20, 0) == (len(processes), report.counts[Result.CAPTIONED], report.failed)
    assert 20 == len(captions(tmp_path))


def test_a_server_that_stays_away_ends_the_job(tmp_path: Path) -> None:
    """
    After as long as was to be waited; what was answered is kept.
    """
    draw_many(tmp_path, 3)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(ModelServerUnavailableError, match="nothing listens there"):
        caption(tmp_path, at(f"http://localhost:{port}/v1"), patience_s=0.05)
    with serving(SAYS) as server:
        assert 3 == caption(tmp_path, at(server.url)).counts[Result.CAPTIONED]


def test_a_key_that_is_refused_ends_the_job_and_keeps_what_was_answered(tmp_path: Path) -> None:
    """
    No other question is sent; the next run asks what is left.
    """
    draw_many(tmp_path, 30)
    with serving(*[SAYS] * 10, refuses(401, "bad key")) as server:
        model = at(server.url)
        with pytest.raises(ModelServerKeyError):
            caption(tmp_path, model, in_flight=2)
        assert 10 + 2 >= len(server.asked)
    assert 10 == len(captions(tmp_path))
    assert (1, 1) == (model.opened, model.closed)
    with serving(SAYS) as server:
        report = caption(tmp_path, at(server.url))
        assert (10, 20) == (report.counts[Result.DONE], len(server.asked))


def test_what_is_on_its_way_when_a_key_is_refused_is_waited_for_and_kept(tmp_path: Path) -> None:
    """
    It may have been paid for.
    """
    draw_many(tmp_path, 5)
    came, refused = threading.Semaphore(0), threading.Event()

    def slow(asked: Asked) -> Iterable[bytes]:
        came.release()
        assert refused.wait(60)
        time.sleep(0.2)  # so that the news of the other is the first to come
        said: Iterable[bytes] = SAYS(asked)
        return said

    def refuse(asked: Asked) -> Iterable[bytes]:
        assert came.acquire(timeout=60)
        refused.set()
        return refuses(401, "bad key")(asked)

    with serving(slow, refuse) as server:
        with pytest.raises(ModelServerKeyError):
            caption(tmp_path, at(server.url), in_flight=2)
        assert 2 == len(server.asked)
    assert 1 == len(captions(tmp_path))


@pytest.mark.parametrize(("count", "in_flight"), [(1, 64), (2, 64), (3, 1)])
def test_a_server_that_breaks_over_the_last_images_fails_them_and_the_job_ends_well(
    count: int, in_flight: int, tmp_path: Path
) -> None:
    """
    With nothing else left to ask there was no telling it from a server that is ill: the job waited
    as long as for one that is away, and ended with an error, in every run.
    """
    draw_many(tmp_path, count)
    with serving(refuses(500, "cannot")) as server:
        model = at(server.url, Retries(times=0))
        report = caption(tmp_path, model, in_flight=in_flight, patience_s=600.0)
        assert 4 * count <= len(server.asked)
    assert (0, count) == (report.counts[Result.CAPTIONED], report.failed)
    assert "asked 4 times" in report.failures[0].problem


def test_images_that_a_server_breaks_over_keep_no_other_from_being_asked(tmp_path: Path) -> None:
    """
    Asked one after the other, two of them took turns for ever.
    """
    draw_many(tmp_path, 4)
    poison: list[Any] = []

    def script(asked: Asked) -> Iterable[bytes]:
        url = asked.document["messages"][-1]["content"][0]["image_url"]["url"]
        if len(poison) < 2 and url not in poison:
            poison.append(url)
        broken: Iterable[bytes] = (refuses(500, "no") if url in poison else SAYS)(asked)
        return broken

    with serving(script) as server:
        model = at(server.url, Retries(times=0))
        report = caption(tmp_path, model, in_flight=1, patience_s=600.0)
    assert (2, 2) == (report.counts[Result.CAPTIONED], report.failed)


def test_a_server_that_says_it_is_overloaded_is_waited_for_even_over_the_last_image(
    tmp_path: Path,
) -> None:
    draw_many(tmp_path, 1)
    with serving(*[refuses(503, "later")] * 5, SAYS) as server:
        report = caption(tmp_path, at(server.url, Retries(times=0)), patience_s=600.0)
        assert 6 == len(server.asked)
    assert (1, 0) == (report.counts[Result.CAPTIONED], report.failed)


@pytest.mark.parametrize("status", [400, 500])
def test_an_image_that_a_server_refuses_fails_and_the_others_go_on(
    status: int, tmp_path: Path
) -> None:
    """
    Where it says so at once, and where it breaks each time over the same one.
    """
    paths = draw_many(tmp_path, 12)
    paths[5].unlink()
    draw(paths[5], 5, (31, 17))
    poison: list[Any] = []

    def script(asked: Asked) -> Iterable[bytes]:
        url = asked.document["messages"][-1]["content"][0]["image_url"]["url"]
        if not poison or url in poison:
            poison[:] = [url]
            return refuses(status, "cannot")(asked)
        return SAYS(asked)

    with serving(script) as server:
        report = caption(tmp_path, at(server.url, Retries(times=0)), in_flight=1, patience_s=60.0)
    assert (11, 1) == (report.counts[Result.CAPTIONED], report.failed)
    assert "cannot" in report.failures[0].problem


def test_metadata_is_never_put_in_a_prompt_and_is_stripped_before_upload(tmp_path: Path) -> None:
    """
    Neither the place where a picture was taken nor what somebody wrote into it leaves the machine.
    """
    image = Image.new("RGB", (9, 7), (1, 2, 3))
    exif = Image.Exif()
    exif[0x010E] = "SECRET description"
    exif.get_ifd(0x8825)[1] = "N"
    exif.get_ifd(0x8825)[29] = "SECRET date"
    text = PngImagePlugin.PngInfo()
    text.add_text("parameters", "SECRET prompt")
    image.save(tmp_path / "a.jpg", exif=exif, comment=b"SECRET comment")
    image.save(tmp_path / "b.png", pnginfo=text, exif=exif)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with serving(SAYS) as server:
        caption(tmp_path, at(server.url))
        for asked in server.asked:
            content = asked.document["messages"][-1]["content"]
            urls = [each["image_url"]["url"] for each in content if "image_url" in each]
            sent = asked.body + b"".join(base64.b64decode(url.partition(",")[2]) for url in urls)
            assert (1, False) == (len(urls), b"SECRET" in sent or b"Exif" in sent)
    assert before == {path: path.read_bytes() for path in before}
