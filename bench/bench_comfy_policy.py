"""
How long does a graph that asks a policy take in a real ComfyUI?

A ComfyUI is started with the nodes, and a policy server that answers at once, each in a process of
its own. The graph ``examples/comfyui/policy-http.json``, or another, is queued time after time: an
observation, a policy over HTTP, the gate, a preview that is saved, and what the actions are. What
was observed has another time in each, so that nothing is remembered. Prints the best, the median
and the worst of what ComfyUI says that it took from the start of a graph to its end, and of what
the one who queues it waits, its websocket included. With a pack of nodes that go by the same names,
a second ComfyUI runs the same graph with those in turn, and the ratios are printed.

    python bench/bench_comfy_policy.py --comfyui ~/ComfyUI --python ~/ComfyUI/.venv/bin/python
    python bench/bench_comfy_policy.py --comfyui ~/ComfyUI --beside ~/pack --graph ~/pack/graph.json
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np

from vlmcore.media.encoding import encode_png
from vlmcore_comfy.graphs import Graph, graph_from_json, with_inputs
from vlmcore_comfy.queueing import ComfyServer, Queued

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))

from comfyui.running import comfyui, policy_server  # noqa: E402 - it stands among the tests

GRAPH = ROOT / "examples" / "comfyui" / "policy-http.json"
WARM_UP = 5


def main() -> int:
    options = parsed()
    if options.python:
        os.environ["COMFYUI_PYTHON"] = str(options.python)
    graph = graph_from_json(options.graph.read_text(encoding="utf-8"), name=options.graph.name)
    packs = {"ours": None} | ({"theirs": options.beside} if options.beside else {})
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in packs}
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        policy = stack.enter_context(policy_server("http"))
        checkout = options.comfyui.resolve()
        urls = {}
        for name, pack in packs.items():
            base = Path(folder, name)
            urls[name] = stack.enter_context(comfyui(checkout, base, pack)).url
            draw_inputs(graph, base / "input")
        for i in range(WARM_UP + options.rounds):
            for name, url in urls.items():
                changes = dict.fromkeys(inputs_called(graph, "timestamp"), i + 1.0)
                changes |= dict.fromkeys(inputs_called(graph, "endpoint"), policy)
                took[name].append(timed_run(url, with_inputs(graph, changes)))
    for name, times in took.items():
        print(name)
        ran, waited = zip(*times[WARM_UP:], strict=True)
        show("in ComfyUI", ran)
        show("for the caller", waited)
    if options.beside:
        ratios = [theirs / ours for (ours, _), (theirs, _) in zip(*took.values(), strict=True)][
            WARM_UP:
        ]
        low, median, high = min(ratios), statistics.median(ratios), max(ratios)
        print(f"theirs takes {median:.2f} times as long ({low:.2f} to {high:.2f})")
    return 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time the policy graph in a real ComfyUI.")
    parser.add_argument("--comfyui", type=Path, required=True, help="a checkout of ComfyUI")
    parser.add_argument("--python", type=Path, help="the Python that it runs in, with vlmcore")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--graph", type=Path, default=GRAPH, help="a graph in ComfyUI's API form")
    parser.add_argument("--beside", type=Path, metavar="PACK", help="another pack of such nodes")
    return parser.parse_args()


def inputs_called(graph: Graph, name: str) -> list[str]:
    return [f"{key}.{name}" for key, node in graph.items() if name in node["inputs"]]


def draw_inputs(graph: Graph, folder: Path) -> None:
    """Draw the picture that a graph loads, in the size of a robot's camera."""
    folder.mkdir(exist_ok=True)
    pixels = np.indices((480, 640)).sum(axis=0)[..., None] // np.array([5, 7, 11])
    for place in inputs_called(graph, "image"):
        name = graph[place.partition(".")[0]]["inputs"]["image"]
        if isinstance(name, str):
            (folder / name).write_bytes(encode_png(pixels.astype(np.uint8)))


def timed_run(url: str, graph: Graph) -> tuple[float, float]:
    """Queue the graph, and give the milliseconds that it ran and those that were waited."""
    began_s = time.perf_counter()
    events = list(ComfyServer(url).run(graph))
    waited_ms = 1000 * (time.perf_counter() - began_s)
    (queued,) = (event for event in events if isinstance(event, Queued))
    messages = history_of(url, queued.prompt_id)["status"]["messages"]
    at_ms = {name: data["timestamp"] for name, data in messages}
    return at_ms["execution_success"] - at_ms["execution_start"], waited_ms


def history_of(url: str, prompt_id: str) -> dict[str, Any]:
    """Read what came of a graph; ComfyUI writes it down a moment after it says that it is done."""
    ends_s = time.monotonic() + 30
    while time.monotonic() < ends_s:
        with urlopen(f"{url}/history/{prompt_id}", timeout=30) as answer:  # noqa: S310 - ours, http
            history: dict[str, dict[str, Any]] = json.load(answer)
        if prompt_id in history:
            return history[prompt_id]
        time.sleep(0.01)
    raise TimeoutError(f"ComfyUI does not tell what came of {prompt_id}")


def show(what: str, times_ms: tuple[float, ...]) -> None:
    print(
        f"  {what:<16} best {min(times_ms):6.1f}  median {statistics.median(times_ms):6.1f}"
        f"  worst {max(times_ms):6.1f} ms  of {len(times_ms)}"
    )


if __name__ == "__main__":
    sys.exit(main())
