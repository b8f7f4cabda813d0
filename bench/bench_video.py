"""
How long do 16 frames of a minute of video take: ours, decoding everything, transformers?

A minute of 1080p at 30 frames a second is made, as x264 writes it by itself (a key frame in 250
frames) and with a key frame a second. Each side takes the same 16 frames, evenly apart, in a
process of its own, in turns. Prints the median and the spread of the seconds, the peak of memory
above what the imports take, the ratio to decoding everything, paired by turn, and whether the
frames are the same. Then what a budget of pixels and a scan for scenes and motion take.

    python bench/bench_video.py --rounds 5
    python bench/bench_video.py --seconds 10 --rounds 1
    python bench/bench_video.py --folder made  # keeps the videos, and takes them again
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import attrs
import av
import numpy as np

from vlmcore._arrays import UInt8Array
from vlmcore.media.budgets import PixelBudget
from vlmcore.media.selections import FrameSampling, SamplingStrategy
from vlmcore.media.video import sample_video

HEIGHT, WIDTH, RATE_HZ, FRAMES = 1080, 1920, 30, 16
EVENLY = FrameSampling(max_frames=FRAMES, strategy=SamplingStrategy.UNIFORM)
ALL, TRANSFORMERS, OURS = "decode everything", "transformers", "ours"


@attrs.frozen
class Taken:
    """What a side took, and what it gave."""

    seconds: float
    peak_mib: float
    digest: str


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="turns of each side")
    parser.add_argument("--seconds", type=int, default=60, help="length of the video")
    parser.add_argument("--gop", type=int, action="append", help="frames from key to key frame")
    parser.add_argument("--folder", type=Path, help="where the videos are made, and stay")
    options = parser.parse_args(arguments)
    if options.rounds < 1 or options.seconds < 1:
        parser.error("expected at least 1 round and 1 second")
    with tempfile.TemporaryDirectory() as folder:
        same = [
            compare(made(options.folder or Path(folder), options.seconds, gop), options.rounds)
            for gop in options.gop or (250, RATE_HZ)
        ]
    return 0 if all(same) else 1


def made(folder: Path, seconds: int, gop: int) -> Path:
    """Make a video unless it is there, and say which it is."""
    path = folder / f"{seconds}-{gop}.mp4"
    if not path.exists():
        make(path, seconds, gop)
    print(f"\n{seconds} s, a key frame in {gop} frames, {path.stat().st_size / 1e6:.1f} MB")
    return path


def make(path: Path, seconds: int, gop: int) -> None:
    """Write a video of a textured room in which a ball moves, cut every ten seconds."""
    random = np.random.default_rng(0)
    rows, columns = np.indices((HEIGHT, WIDTH))
    with av.open(str(path), "w") as container:
        options = {"preset": "veryfast", "g": str(gop), "keyint_min": "1"}
        stream: Any = container.add_stream("h264", RATE_HZ, options=options)
        stream.height, stream.width, stream.pix_fmt = HEIGHT, WIDTH, "yuv420p"
        for index in range(seconds * RATE_HZ):
            if index % (10 * RATE_HZ) == 0:
                texture = random.integers(0, 256, (HEIGHT // 8, WIDTH // 8, 3), np.uint8)
                room = np.kron(texture // 2 + 40, np.ones((8, 8, 1), np.uint8))
            picture = room.copy()
            x, y = 300 + index * 7 % 1300, 300 + index * 5 % 480
            picture[(columns - x) ** 2 + (rows - y) ** 2 < 120**2] = (250, 60, 40)
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def evenly(total: int) -> list[int]:
    """Say which frames all sides take."""
    return [int(each) for each in np.linspace(0, total - 1, FRAMES)]


def decode_everything(path: str) -> UInt8Array:
    with av.open(path) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        wanted = set(evenly(stream.frames))
        kept = [frame for i, frame in enumerate(container.decode(stream)) if i in wanted]
        return np.stack([frame.to_ndarray(format="rgb24") for frame in kept])


def by_transformers(path: str) -> UInt8Array:
    from transformers.video_utils import load_video  # noqa: PLC0415 - one side alone loads it

    def chosen(metadata: Any, **_: Any) -> Any:
        return np.array(evenly(metadata.total_num_frames))

    pixels: UInt8Array = load_video(path, sample_indices_fn=chosen, backend="pyav")[0]
    return pixels


def by_us(path: str) -> UInt8Array:
    return sample_video(path, EVENLY).pixels


def within_a_megapixel(path: str) -> UInt8Array:
    return sample_video(path, EVENLY, budget=PixelBudget.of_megapixels(1.0)).pixels


def scanned(path: str) -> UInt8Array:
    return sample_video(path, FrameSampling(max_frames=FRAMES)).pixels


SIDES: dict[str, Callable[[str], UInt8Array]] = {
    ALL: decode_everything,
    TRANSFORMERS: by_transformers,
    OURS: by_us,
    "ours, 1 megapixel": within_a_megapixel,
    "ours, hybrid": scanned,
}


def compare(path: Path, rounds: int) -> bool:
    """Run the sides in turns, print, and say whether all gave the same frames."""
    taken: dict[str, list[Taken]] = {name: [] for name in SIDES}
    for _ in range(rounds):
        for name in SIDES:
            taken[name].append(measured(name, path))
    for name, turns in taken.items():
        seconds = [each.seconds for each in turns]
        ratios = [a.seconds / b.seconds for a, b in zip(taken[ALL], turns, strict=True)]
        peak = statistics.median(each.peak_mib for each in turns)
        print(
            f"{name:20} {statistics.median(seconds):6.2f} s ({min(seconds):.2f} to "
            f"{max(seconds):.2f})  {peak:6.0f} MiB  x{statistics.median(ratios):.2f}"
        )
    digests = {each.digest for name in (ALL, TRANSFORMERS, OURS) for each in taken[name]}
    print("the same frames" if len(digests) == 1 else "NOT the same frames")
    return len(digests) == 1


def measured(name: str, path: Path) -> Taken:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=measure, args=(name, str(path), there))
    process.start()
    taken: Taken = here.recv()
    process.join()
    return taken


def measure(name: str, path: str, line: Connection) -> None:
    side = SIDES[name]
    if name == TRANSFORMERS:
        import transformers.video_utils  # noqa: F401, PLC0415 - not part of the time
    sample_video(warm_up(), FrameSampling(max_frames=1))
    before = peak_mib()
    start = time.perf_counter()
    pixels = side(path)
    seconds = time.perf_counter() - start
    line.send(Taken(seconds, peak_mib() - before, hashlib.sha256(pixels.tobytes()).hexdigest()))


def warm_up() -> bytes:
    """Make a tiny video, so that what is loaded once is loaded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tiny.mp4"
        with av.open(str(path), "w") as container:
            stream: Any = container.add_stream("mpeg4", 10)
            stream.height, stream.width, stream.pix_fmt = 32, 32, "yuv420p"
            frame = av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), format="rgb24")
            container.mux(stream.encode(frame))
            container.mux(stream.encode(None))
        return path.read_bytes()


def peak_mib() -> float:
    """Read the largest memory that this process had."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 1024


if __name__ == "__main__":
    sys.exit(main())
