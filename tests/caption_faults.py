"""
Kills a captioning job again and again, at moments drawn from a seed, and looks what is left.

``python tests/caption_faults.py --images 2000 --kills 20`` says what it found; ``--seed`` draws
other moments. After the last run every image has exactly one right caption, in its file and in the
table; a caption that was written by hand before is still there; no half file is left anywhere; and
no more was asked twice than what was being answered when a kill came.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

import attrs

from caption_cases import draw_many, plan_of, said_of
from vlmcore.jobs import ExistingCaption, Sidecars, Table, TableKind, caption_images
from vlmcore.testing import EchoPredictor, echo
from vlmcore.vlm.prompt import Prompt

BATCH = 4
SIZES = ((8, 6), (6, 8), (12, 4))
BY_HAND = 10  # each tenth image has a text already, to which is added


@attrs.frozen(kw_only=True)
class Outcome:
    """What the runs came to: how often they were killed, and how much was asked in all."""

    kills: int
    asked: int
    faults: tuple[str, ...]


def _run(folder: Path, asked: Connection) -> None:
    def answer(prompt: Prompt) -> str:
        asked.send_bytes(b".")
        return echo(prompt)

    sidecars = Sidecars(existing=ExistingCaption.APPEND)
    table = Table(path=folder / "captions.jsonl", kind=TableKind.JSONL)
    plan = plan_of(folder / "images", sidecars=sidecars, tables=[table], batch_size=BATCH)
    caption_images(plan, EchoPredictor(answer=answer))


class _Runs:
    """Runs of one job, each in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.asked = 0
        self._folder = folder
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["caption_faults"])

    def run(self, *, kill_after: int | None = None, kill_later_s: float = 0.0) -> bool:
        """Run it, and kill it after it has asked so often and a moment more; say if that came."""
        ours, theirs = self._context.Pipe(duplex=False)
        child = self._context.Process(target=_run, args=(self._folder, theirs))
        child.start()
        theirs.close()
        began = self.asked
        try:
            while kill_after is None or self.asked - began < kill_after:
                ours.recv_bytes()
                self.asked += 1
            time.sleep(kill_later_s)
            child.kill()
            while True:  # what it asked before it was dead
                ours.recv_bytes()
                self.asked += 1
        except EOFError:
            child.join()
        return child.exitcode != 0


def killed_again_and_again(folder: Path, *, images: int, kills: int, seed: int) -> Outcome:
    """Caption drawn images in a job that is killed, and run it to its end then."""
    for n, path in enumerate(draw_many(folder / "images", images)):
        if n % BY_HAND == 0:
            path.with_suffix(".txt").write_text("By hand.\n")
    moments, runs = random.Random(seed), _Runs(folder)
    count = 0
    for left in range(kills, 0, -1):
        most = max(1, 2 * (images - runs.asked) // (left + 1))
        later_s = moments.choice((0.0, 0.001, 0.005, 0.03))
        count += runs.run(kill_after=moments.randint(1, most), kill_later_s=later_s)
    faults = ["the last run failed"] if runs.run() else []
    faults += [*_faults_of_files(folder, images), *_faults_of_table(folder, images)]
    again = runs.asked - images
    if again > 2 * BATCH * count:  # one whose answers were not kept yet, and the one after it
        faults.append(f"{again} questions were asked twice, after {count} kills")
    return Outcome(kills=count, asked=runs.asked, faults=tuple(faults))


def _faults_of_files(folder: Path, images: int) -> list[str]:
    expected = {f"{n:05d}{end}" for n in range(images) for end in (".png", ".txt")}
    there = {path.name for path in (folder / "images").iterdir()}
    faults = [
        f"images/{name}: {'is left over' if name in there else 'is missing'}"
        for name in sorted(there ^ (expected | {".vlmcore"}))
    ]
    others = {path.name for path in folder.iterdir()} - {"images", "captions.jsonl"}
    faults += [f"{name}: is left over" for name in sorted(others)]
    for n in range(images):
        path = folder / "images" / f"{n:05d}.txt"
        text = f"{said_of(n, SIZES[n % 3])}\n"
        wanted = f"By hand.\n{text}" if n % BY_HAND == 0 else text
        if path.exists() and path.read_text() != wanted:
            faults.append(f"{path.name}: got {path.read_text()!r}, expected {wanted!r}")
    return faults


def _faults_of_table(folder: Path, images: int) -> list[str]:
    lines = (folder / "captions.jsonl").read_text().splitlines()
    found = [(row["key"], row["caption"]) for row in map(json.loads, lines)]
    wanted = [(f"{n:05d}.png", said_of(n, SIZES[n % 3])) for n in range(images)]
    return [] if found == wanted else ["captions.jsonl: has other rows than the images"]


def main() -> int:
    """Do it, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcome = killed_again_and_again(Path(folder), **vars(arguments))
    told = f"{outcome.kills} kills, {outcome.asked} questions for {arguments.images} images"
    sys.stdout.write("\n".join([told, *(outcome.faults or ("no fault",)), ""]))
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
