"""
What does a captioning job cost beside its model, and does its memory stay flat?

`local` captions the same mixed images three times in turn, in this process, with the embedded
model: by the loop that people write (open, ask, write a text file), by the job, and by the model
alone on pictures that were decoded before, which is the limit. `memory` runs jobs over more and
more images, each in a process of its own, and prints the most memory that each held. `served` asks
a server in a process of its own that takes a fixed time for each answer; the ideal is that time for
each wave of calls in flight together, and nothing else. In turn with the job, the same pictures are
asked about over bare sockets, encoded before, with nothing read or kept of the answers: what this
machine and that server can do. `ray` runs the same jobs in this process
and on a Ray of this machine, with one copy of the model, in turn: with the embedded model, and with
one that takes no time, for what Ray itself costs. It needs `pip install "vlmcore[ray]"`.

    python bench/bench_captions.py local --images 512 --rounds 3
    python bench/bench_captions.py memory --images 1000 4000 16000
    python bench/bench_captions.py served --images 6400 --in-flight 64 --latency 0.1
    python bench/bench_captions.py ray --images 128 --rounds 3
"""

from __future__ import annotations

import argparse
import base64
import json
import multiprocessing
import os
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from vlmcore import load_image, load_predictor
from vlmcore.jobs import CaptionPlan, FolderImages, Result, Sidecars, caption_images
from vlmcore.jobs.clusters import RayCluster
from vlmcore.jobs.models import JobModel
from vlmcore.jobs.prompts import CaptionPrompt
from vlmcore.media.budgets import PixelBudget
from vlmcore.media.encoding import encode_jpeg, encode_png
from vlmcore.testing import EchoPredictor
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.predictor import Predictor
from vlmcore.vlm.prompt import Prompt

PROMPT = "Describe this image in one sentence."
SIZES = ((640, 480), (480, 640), (1024, 768), (1920, 1080), (224, 224), (300, 900))
BUDGET = PixelBudget(longest_edge_px=448)
OPTIONS = GenerationOptions(max_new_tokens=24)
SCENES = Path(sys.modules["vlmcore"].__file__ or "").parent / "embedded" / "samples"


def draw(folder: Path, count: int, *, sizes: Sequence[tuple[int, int]] = SIZES) -> None:
    """Fill a folder with images of several sizes and formats, each with other bytes."""
    from PIL import Image  # noqa: PLC0415

    scenes = [Image.fromarray(load_image(path)) for path in sorted(SCENES.glob("*.png"))]
    made: list[bytes] = []
    for i in range(min(count, 4 * len(sizes))):
        size = sizes[i % len(sizes)]
        pixels = np.asarray(scenes[i % len(scenes)].resize(size))
        made.append(encode_jpeg(pixels) if i % 3 else encode_png(pixels))
    for i in range(count):
        data = made[i % len(made)]
        kind = "jpg" if data[:2] == b"\xff\xd8" else "png"
        # What comes behind the end of an image changes its digest, and not its pixels.
        (folder / f"{i:06}.{kind}").write_bytes(data + i.to_bytes(4, "big"))


def plan(folder: Path, *, batch_size: int = 8, in_flight: int = 64) -> CaptionPlan:
    return CaptionPlan(
        source=FolderImages(folder),
        prompts=CaptionPrompt(text=PROMPT, options=OPTIONS),
        sidecars=Sidecars(),
        budget=BUDGET,
        batch_size=batch_size,
        in_flight=in_flight,
    )


def clear(folder: Path) -> None:
    for path in folder.glob("*.txt"):
        path.unlink()
    shutil.rmtree(folder / ".vlmcore", ignore_errors=True)


def by_loop(folder: Path, predictor: Predictor) -> None:
    for path in sorted(folder.iterdir()):
        image = BUDGET.apply(load_image(path))
        answer = predictor.generate(Prompt(text=PROMPT, images=(image,)), OPTIONS)
        path.with_suffix(".txt").write_text(answer.text, encoding="utf-8")


def by_job(folder: Path, predictor: Predictor, batch_size: int) -> None:
    report = caption_images(plan(folder, batch_size=batch_size), predictor)
    assert not report.failed, report


def local(arguments: argparse.Namespace) -> None:
    predictor = load_predictor("embedded", reuse=False)
    with tempfile.TemporaryDirectory() as name, predictor:
        folder = Path(name)
        draw(folder, arguments.images)
        paths = sorted(folder.iterdir())
        images = [BUDGET.apply(load_image(path)) for path in paths]
        images.sort(key=lambda image: image.shape)
        prompts = [Prompt(text=PROMPT, images=(image,)) for image in images]
        size = arguments.batch_size
        sides: dict[str, Callable[[], object]] = {
            "model": lambda: [
                predictor.generate_many(prompts[i : i + size], OPTIONS, batch_size=size)
                for i in range(0, len(prompts), size)
            ],
            "job": lambda: by_job(folder, predictor, size),
            "loop": lambda: by_loop(folder, predictor),
        }
        predictor.generate_many(prompts[:size], OPTIONS, batch_size=size)
        took: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(arguments.rounds):
            for side, run in sides.items():
                clear(folder)
                began_s = time.perf_counter()
                run()
                took[side].append(time.perf_counter() - began_s)
                print(f"{side}: {arguments.images / took[side][-1]:.2f} images/s", flush=True)
        for side in ("job", "loop"):
            ratios = [model / own for model, own in zip(took["model"], took[side], strict=True)]
            print(f"{side}: {spread([100 * ratio for ratio in ratios])} % of the model alone")
        ratios = [loop / job for loop, job in zip(took["loop"], took["job"], strict=True)]
        print(f"the job is {spread(ratios)} times as fast as the loop")


def spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def peak_bytes(folder: str, told: multiprocessing.connection.Connection) -> None:
    began_s = time.perf_counter()
    report = caption_images(plan(Path(folder)), EchoPredictor())
    assert not report.failed, report
    status = Path("/proc/self/status").read_text(encoding="ascii")
    kib = int(status.partition("VmHWM:")[2].split()[0])
    told.send((kib << 10, time.perf_counter() - began_s))


def memory(arguments: argparse.Namespace) -> None:
    spawning = multiprocessing.get_context("spawn")
    for count in arguments.images:
        with tempfile.TemporaryDirectory() as name:
            draw(Path(name), count, sizes=((320, 240), (240, 320)))
            heard, told = spawning.Pipe(duplex=False)
            process = spawning.Process(target=peak_bytes, args=(name, told))
            process.start()
            peak, took_s = heard.recv()
            process.join()
        print(f"{count:,} images: {peak / 1e6:.0f} MB at most, {count / took_s:.0f} images/s")


def bare_requests(folder: Path) -> list[bytes]:
    """Write the requests about the images of a folder; those of equal pixels are the same."""
    written: dict[bytes, bytes] = {}
    requests = []
    for path in sorted(folder.glob("*.*")):
        pixels = load_image(path)
        if pixels.tobytes() not in written:
            picture = base64.b64encode(encode_jpeg(pixels)).decode()
            url = {"url": f"data:image/jpeg;base64,{picture}"}
            parts = [{"type": "image_url", "image_url": url}, {"type": "text", "text": PROMPT}]
            body = json.dumps(
                {
                    "model": "any",
                    "messages": [{"role": "user", "content": parts}],
                    "max_tokens": OPTIONS.max_new_tokens,
                    "stream": True,
                }
            ).encode()
            head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: {len(body)}"
            written[pixels.tobytes()] = head.encode() + b"\r\n\r\n" + body
        requests.append(written[pixels.tobytes()])
    return requests


def by_sockets(port: int, requests: Sequence[bytes], in_flight: int) -> None:
    left = iter(requests)

    def ask() -> None:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            for request in left:
                connection.sendall(request)
                came = b""
                while not came.endswith(b"\r\n0\r\n\r\n"):
                    came = came[-7:] + connection.recv(1 << 16)

    threads = [threading.Thread(target=ask) for _ in range(in_flight)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def by_served_job(folder: Path, address: str, in_flight: int) -> None:
    report = caption_images(plan(folder, in_flight=in_flight), address)
    assert not report.failed, report


def served(arguments: argparse.Namespace) -> None:
    from bench_many_in_flight import run as serve  # noqa: PLC0415

    heard, told = multiprocessing.Pipe(duplex=False)
    server = multiprocessing.Process(target=serve, args=(told, arguments.latency, 1), daemon=True)
    server.start()
    port = heard.recv()
    address = f"http://127.0.0.1:{port}#any"
    ideal_hz = arguments.in_flight / arguments.latency
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            draw(folder, arguments.images, sizes=((224, 224),))
            requests = bare_requests(folder)
            sides: dict[str, Callable[[], object]] = {
                "sockets": lambda: by_sockets(port, requests, arguments.in_flight),
                "job": lambda: by_served_job(folder, address, arguments.in_flight),
            }
            rates: dict[str, list[float]] = {side: [] for side in sides}
            for _ in range(arguments.rounds):
                for side, run in sides.items():
                    clear(folder)
                    began_s, busy_s = time.perf_counter(), time.process_time()
                    run()
                    rates[side].append(arguments.images / (time.perf_counter() - began_s))
                    busy_s = time.process_time() - busy_s
                    print(
                        f"{side}: {rates[side][-1]:.0f} images/s of {ideal_hz:.0f}; "
                        f"{1e3 * busy_s / arguments.images:.2f} ms of this process for each",
                        flush=True,
                    )
            for side, found in rates.items():
                print(f"{side}: {spread([100 * rate / ideal_hz for rate in found])} % of the ideal")
            shares = [100 * job / bare for bare, job in zip(*rates.values(), strict=True)]
            print(f"the job: {spread(shares)} % of bare sockets")
    finally:
        server.terminate()


class EchoModel:
    """A job's model that takes no time."""

    identity = "echo"
    is_served = False

    def open(self) -> Predictor:
        return EchoPredictor()

    def close(self, predictor: Predictor) -> None:
        predictor.close()


def on_ray(arguments: argparse.Namespace) -> None:
    import ray  # noqa: PLC0415

    cores = os.cpu_count() or 1
    cluster = RayCluster(cpus=cores)  # as many threads as the model has here
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    began_s = time.perf_counter()
    ray.init("local", num_cpus=cores + 1, include_dashboard=False, log_to_driver=False)
    print(f"Ray begins in {time.perf_counter() - began_s:.1f} s", flush=True)
    models: dict[str, str | JobModel] = {"echo": EchoModel(), "embedded": "embedded"}
    for name, model in models.items():
        count = arguments.images * (arguments.echoes if name == "echo" else 1)
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            draw(folder, count)
            sides = {"local": None, "ray": cluster}
            took: dict[str, list[float]] = {side: [] for side in sides}
            for _ in range(arguments.rounds):
                for side, where in sides.items():
                    clear(folder)
                    began_s = time.perf_counter()
                    report = caption_images(plan(folder), model, cluster=where)
                    took[side].append(time.perf_counter() - began_s)
                    assert report.counts[Result.CAPTIONED] == count, report
        for side, times in took.items():
            print(f"{name}, {count} images, {side}: {spread(times)} s", flush=True)
        ratios = [ray / local for local, ray in zip(took["local"], took["ray"], strict=True)]
        print(f"{name}: Ray takes {spread(ratios)} times as long", flush=True)
    ray.shutdown()


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").strip().splitlines()[0], allow_abbrev=False
    )
    inner = parser.add_subparsers(required=True)
    one = inner.add_parser("local")
    one.add_argument("--images", type=int, default=512)
    one.add_argument("--rounds", type=int, default=3)
    one.add_argument("--batch-size", type=int, default=8)
    one.set_defaults(run=local)
    one = inner.add_parser("memory")
    one.add_argument("--images", type=int, nargs="+", default=[1000, 4000, 16000])
    one.set_defaults(run=memory)
    one = inner.add_parser("served")
    one.add_argument("--images", type=int, default=6400)
    one.add_argument("--in-flight", type=int, default=64)
    one.add_argument("--latency", type=float, default=0.1)
    one.add_argument("--rounds", type=int, default=3)
    one.set_defaults(run=served)
    one = inner.add_parser("ray")
    one.add_argument("--images", type=int, default=128)
    one.add_argument("--echoes", type=int, default=4, help="times as many for the quick model")
    one.add_argument("--rounds", type=int, default=3)
    one.set_defaults(run=on_ray)
    arguments = parser.parse_args(words)
    arguments.run(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
