"""
How fast are weights loaded, beside other loaders and beside what the disk and the memory give?

Each load is a process of its own; the ways are taken in turns, cold and then warm, every other
round in the other order. Its clock stops when every page was touched: a loader that maps is made
to, others write to all of their memory, and so do the limits. Just before its clock starts, each
touches memory and frees it, so that a virtual machine has it from its host: what was free for some
seconds may have gone back there.
Cold means that no page of the files is in the page cache of this system, which is verified; a host
around it may still have them. Prints the median and the spread of each, its ratio to the limit, the
seconds of processors that it took, which a busy machine does not change much, and the peak of its
memory. Each way must give the same bytes.

With ``--results FILE`` each load is kept in that file, and what is there is not done again: a long
comparison may be stopped, and go on later.

    python bench/weights/checkpoint.py FOLDER
    python bench/weights/compare.py FOLDER --rounds 5
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import mmap
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from loads import GPU_WAYS, WAYS

HERE = Path(__file__).parent


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ways", nargs="*", default=list(WAYS), metavar="WAY")
    parser.add_argument("--gpu", action="store_true", help="compare loads onto a GPU, too")
    parser.add_argument("--touch-gigabytes", type=float, default=5.0)
    parser.add_argument("--results", type=Path, help="where loads are kept, one a line, as JSON")
    options = parser.parse_args(arguments)
    options.ways += GPU_WAYS if options.gpu else ()
    results = kept(options.results)
    done = {(each["turn"], each["state"], each["way"]) for each in results}
    with contextlib.suppress(KeyboardInterrupt):  # shows what there is by then
        for turn, state, way in order(options.rounds, options.ways):
            if (turn, state, way) in done:
                continue
            prepare(options.folder, state)
            more = ["--digest"] if turn == 0 and state == "cold" else []
            more += ["--touch-gigabytes", str(options.touch_gigabytes)]
            result = {"turn": turn, "state": state, "way": way, **load(way, options.folder, more)}
            results.append(result)
            keep(options.results, result)
            took = f"{result['seconds']:.3f} s, CPU {result['cpu_seconds']:.3f} s"
            print(f"{turn} {state} {way}: {took}", file=sys.stderr, flush=True)
    show(options.ways, results)
    print(f"\nload average {os.getloadavg()[0]:.1f} at the end, {os.cpu_count()} cores")
    digests = {each["way"]: each["digest"] for each in results if "digest" in each}
    if len(set(digests.values())) > 1:
        print("not the same bytes:", digests)
        return 1
    return 0


def order(rounds: int, ways: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Go through the loads, round by round."""
    for turn in range(rounds):
        for state in ("cold", "warm"):
            for way in ways[:: -1 if turn % 2 else 1]:
                yield turn, state, way


def kept(path: Path | None) -> list[dict[str, Any]]:
    """Read what was measured before; a line that a stop has cut off goes."""
    if path is None or not path.exists():
        return []
    text = path.read_text(encoding="ascii")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="ascii")
    return [json.loads(line) for line in whole.splitlines()]


def keep(path: Path | None, result: dict[str, Any]) -> None:
    """Keep what was measured now."""
    if path is not None:
        with path.open("a", encoding="ascii") as file:
            file.write(json.dumps(result) + "\n")


def prepare(folder: Path, state: str) -> None:
    """Bring the page cache into a known state."""
    for path in (folder / "model.safetensors", folder / "model.flashpack"):
        fd = os.open(path, os.O_RDONLY)
        size = os.fstat(fd).st_size
        os.fsync(fd)  # what is not on the disk yet cannot be dropped
        for _ in range(4):
            share = cached_share(fd, size)
            if share == 0 if state == "cold" else share > 0.99:
                break
            if state == "cold":
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            else:
                for at in range(0, size, 8 << 20):
                    os.pread(fd, 8 << 20, at)
        else:
            raise SystemExit(f"{path}: {share:.4f} of it is in the page cache, expected {state}")
        os.close(fd)


def cached_share(fd: int, size: int) -> float:
    """Return how much of a file is in the page cache."""
    with mmap.mmap(fd, size, prot=mmap.PROT_READ) as mapped:
        view = np.frombuffer(mapped, np.uint8)
        states = np.zeros(-(-size // mmap.PAGESIZE), np.uint8)
        places = (ctypes.c_void_p(each.ctypes.data) for each in (view, states))
        address, into = places
        assert ctypes.CDLL(None).mincore(address, ctypes.c_size_t(size), into) == 0
        del view
        return float((states & 1).mean())


def load(way: str, folder: Path, more: list[str]) -> dict[str, Any]:
    """Load in a process of its own, whose waiting threads leave the processors to others."""
    words = [sys.executable, str(HERE / "loads.py"), way, str(folder), *more]
    ended = subprocess.run(
        words,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_WAIT_POLICY": "passive"},
    )
    if ended.returncode:
        raise SystemExit(f"{way}: {ended.stderr[-2000:]}")
    return json.loads(ended.stdout.splitlines()[-1])


def show(ways: Sequence[str], results: Sequence[dict[str, Any]]) -> None:
    """Print a table, as the documentation has it."""
    measured: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for each in results:
        measured.setdefault((each["way"], each["state"]), []).append(each)
    limits = {
        state: statistics.median(each["seconds"] for each in measured[way, state])
        for state, way in (("cold", "limit: direct read"), ("warm", "limit: buffered read"))
        if (way, state) in measured
    }
    print(
        "| way | rounds | cold, s | of the limit | CPU, s | warm, s | of the limit | CPU, s |",
        end="",
    )
    print(" peak, MB |\n|---|---|---|---|---|---|---|---|---|")
    for way in ways:
        if (way, "warm") not in measured:
            continue
        cells = [str(len(measured[way, "warm"]))]
        for state in ("cold", "warm"):
            seconds = sorted(each["seconds"] for each in measured[way, state])
            median = statistics.median(seconds)
            cells.append(f"{median:.2f} ({seconds[0]:.2f}-{seconds[-1]:.2f})")
            cells.append(f"{median / limits[state]:.2f}" if state in limits else "")
            busy = statistics.median(each["cpu_seconds"] for each in measured[way, state])
            cells.append(f"{busy:.2f}")
        peak = max(each["peak_mb"] for state in ("cold", "warm") for each in measured[way, state])
        print(f"| {way} | {' | '.join(cells)} | {peak:.0f} |")
    show_goals(measured, limits)


def show_goals(
    measured: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]], limits: Mapping[str, float]
) -> None:
    """Print what is wanted, and whether it is so."""
    medians = {
        place: statistics.median(each["seconds"] for each in loads)
        for place, loads in measured.items()
    }
    peers = ("limit", "vlmcore", *GPU_WAYS)
    for kind in ("pack", "safetensors"):
        views, copy = f"vlmcore views, {kind}", f"vlmcore copy, {kind}"
        if (views, "cold") in medians and "cold" in limits:
            goal(f"{views}, cold, of the limit", medians[views, "cold"] / limits["cold"], 1.3)
        if (views, "warm") in medians:
            goal(f"{views}, warm, seconds", medians[views, "warm"], 0.1)
        for state in ("cold", "warm"):
            others = [
                seconds
                for (way, when), seconds in medians.items()
                if when == state and not way.startswith(peers) and is_copy(way)
            ]
            if (copy, state) in medians and others:
                goal(f"{copy}, {state}, of the best peer", medians[copy, state] / min(others), 1.0)
            for way in (views, copy):
                if (f"{way}, compared", state) in medians and (way, state) in medians:
                    ratio = medians[f"{way}, compared", state] / medians[way, state]
                    goal(f"{way}, {state}, compared, of it without", ratio, 1.25)
            device = f"vlmcore device, {kind}"
            if {(device, state), ("limit: bus", state)} <= medians.keys() and state in limits:
                slower = max(limits[state], medians["limit: bus", state])
                goal(f"{device}, {state}, of the limit", medians[device, state] / slower, 1.1)
            for way, held in ((copy, 1), (device, 0)):
                show_peak(f"{way}, {state}", measured.get((way, state), ()), held)


def show_peak(name: str, loads: Sequence[Mapping[str, Any]], held: int) -> None:
    """Print how much memory was taken besides the weights that are *held* by the process."""
    more = [each["peak_mb"] - held * each["file_mb"] for each in loads if "file_mb" in each]
    if more:
        goal(f"{name}, MB besides the weights", max(more), 336)  # 320 MiB: staging, and 64 MiB


def is_copy(way: str) -> bool:
    """Say whether a way ends with memory of its own."""
    return not way.endswith("touched")


def goal(name: str, value: float, most: float) -> None:
    """Print one line."""
    print(
        f"{'met   ' if value <= most else 'missed'} {name}: {value:.2f}, at most {most} is wanted"
    )


if __name__ == "__main__":
    sys.exit(main())
