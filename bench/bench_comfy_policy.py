"""
How long does a graph that asks a policy take in a real ComfyUI?

A ComfyUI is started with the nodes, and a policy server that answers at once, each in a process of
its own. The graph ``examples/comfyui/policy-http.json`` is queued time after time: an observation,
a policy over HTTP that is asked each time, the gate, a preview that is saved, and what the actions
are. Prints the best, the median and the worst of what ComfyUI says that it took from the start of a
graph to its end, and of what the one who queues it waits, its websocket included.

    python bench/bench_comfy_policy.py --comfyui ~/ComfyUI --python ~/ComfyUI/.venv/bin/python
    python bench/bench_comfy_policy.py --comfyui ~/ComfyUI --median-at-most 53
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

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
    with tempfile.TemporaryDirectory() as folder, policy_server("http") as policy:
        graph = graph_from_json(GRAPH.read_text(encoding="utf-8"), name=GRAPH.name)
        graph = with_inputs(graph, {"4.endpoint": policy, "4.ask_again": True})
        with comfyui(options.comfyui.resolve(), Path(folder, "base")) as running:
            timed = [timed_run(running.url, graph) for _ in range(WARM_UP + options.rounds)]
    ran, waited = zip(*timed[WARM_UP:], strict=True)
    show("in ComfyUI", ran)
    show("for the caller", waited)
    median_ms = statistics.median(ran)
    if median_ms > options.median_at_most:
        print(f"the median is {median_ms:.1f} ms, expected {options.median_at_most:g} at most")
        return 1
    return 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time the policy graph in a real ComfyUI.")
    parser.add_argument("--comfyui", type=Path, required=True, help="a checkout of ComfyUI")
    parser.add_argument("--python", type=Path, help="the Python that it runs in, with vlmcore")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--median-at-most", type=float, default=float("inf"), metavar="MS")
    return parser.parse_args()


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
