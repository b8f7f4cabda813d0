"""
How does the HTTP server stand 64 clients at once, and does health wait for an inference?

Each client keeps a connection and asks again as soon as it is answered, with three cameras as JPEG
in JSON; clients run in processes beside the server's, on the same cores, and health is asked all
the while, 50 times a second. Then it is asked of an idle server, and while an inference runs and
every client waits for one. Prints how long answers took, and fails where one was an error or health
took too long: while an inference runs, or among clients who take the cores.

    python bench/bench_http_server.py --clients 64 --requests 20
    python bench/bench_http_server.py --health-at-most-ms 50 --crowded-at-most-ms 100
"""

from __future__ import annotations

import argparse
import http.client
import multiprocessing
import os
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Event
from urllib.parse import urlsplit

import numpy as np

from vlmcore.contracts.observation import Observation
from vlmcore.policy.interface import PolicyInfo
from vlmcore.testing import ScriptedPolicy
from vlmcore_robotics.servers.http import HttpPolicyServer
from vlmcore_robotics.servers.runtime import PolicyRuntime
from vlmcore_robotics.servers.threads import serve_in_thread
from vlmcore_robotics.wire.http_messages import HttpEndpoint, HttpRequest
from vlmcore_robotics.wire.http_v1 import HttpCodec

NAMES = tuple(f"joint_{i}" for i in range(8))
CAMERAS = ("front", "left", "right")
STEPS = 50
CODEC = HttpCodec(policy="bench", action_names=NAMES)
INFO = PolicyInfo(name="bench", action_names=NAMES)

_PAUSE_S = 0.02
is_over: list[Event] = []  # of a process; it is given one when it starts

Question = tuple[str, str, bytes, dict[str, str]]  # method, path, body, headers


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--clients", type=int, default=64, help="at once")
    parser.add_argument("--requests", type=int, default=20, help="of each client")
    parser.add_argument("--processes", type=int, default=4, help="that the clients run in")
    parser.add_argument("--side", type=int, default=224, help="of a frame, in pixels")
    parser.add_argument(
        "--health-at-most-ms", type=float, help="fail when its p99 is above while an inference runs"
    )
    parser.add_argument("--crowded-at-most-ms", type=float, help="the same, among all clients")
    options = parser.parse_args(arguments)

    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    request = question(CODEC.encode_request(observation(options.side)))
    print(f"\n{options.clients} clients, {len(request[2]) / 1024:.0f} KiB a request")
    errors, crowded_ms = crowd(request, options.clients, options.requests, options.processes)
    print("\nhealth, while an inference runs")
    busy_ms = health(request, options.clients)
    failed = [f"{errors} requests failed, none wanted"] if errors else []
    failed += [
        f"health {when}: {p99:.1f} ms, at most {most:g} wanted"
        for when, p99, most in (
            ("while an inference runs", busy_ms, options.health_at_most_ms),
            ("among all clients", crowded_ms, options.crowded_at_most_ms),
        )
        if most is not None and p99 > most
    ]
    print("\n".join(["", *failed]))
    return 1 if failed else 0


def crowd(request: Question, clients: int, requests: int, processes: int) -> tuple[int, float]:
    """Ask from many clients at once; return how many requests failed, and the p99 of health."""
    policy = ScriptedPolicy(lambda _: np.zeros((STEPS, len(NAMES))), info=INFO)
    context = multiprocessing.get_context("spawn")
    with (
        PolicyRuntime(policy, max_waiting=clients) as runtime,
        serve_in_thread(HttpPolicyServer(runtime, port=0, max_clients=2 * clients)) as url,
        context.Pool(processes + 1, is_over_by, (over := context.Event(),)) as pool,
    ):
        pool.map(abs, range(processes + 1), 1)  # they have started
        shares = [clients // processes + (i < clients % processes) for i in range(processes)]
        began_at_s = time.perf_counter()
        crowded = pool.starmap_async(
            client_process, [(url, request, n, requests) for n in shares], 1
        )
        healthy = question(CODEC.ask(HttpEndpoint.HEALTH))
        asked = pool.apply_async(watch, (url, healthy))
        try:
            answers = crowded.get()
        finally:
            over.set()
        taken_s = time.perf_counter() - began_at_s
        health_taken, health_failed = asked.get()
    times = [taken for share, _ in answers for taken in share]
    errors = health_failed + sum(failed for _, failed in answers)
    show("infer", times)
    show("health, among", health_taken)
    print(f"  {len(times) / taken_s:.0f} answers a second, {errors} errors")
    return errors, p99_ms(health_taken)


def client_process(
    url: str, request: Question, clients: int, requests: int
) -> tuple[list[float], int]:
    """Be some of the clients; return how long each answer took, and how many were errors."""
    with ThreadPoolExecutor(clients) as threads:
        futures = [threads.submit(client, url, request, requests) for _ in range(clients)]
        answers = [future.result() for future in futures]
    return [taken for share, _ in answers for taken in share], sum(failed for _, failed in answers)


def is_over_by(event: Event) -> None:
    """Tell a process by what it knows that the clients are done."""
    is_over.append(event)


def watch(url: str, request: Question) -> tuple[list[float], int]:
    """Ask for health until the clients are done."""
    (over,) = is_over
    times, failed = [], 0
    while not over.wait(_PAUSE_S):
        taken, wrong = client(url, request, 1)
        times += taken
        failed += wrong
    return times, failed


def client(url: str, request: Question, requests: int) -> tuple[list[float], int]:
    connection, times, failed = connect(url), [], 0
    for _ in range(requests):
        began_at_s = time.perf_counter()
        failed += ask(connection, request) != 200
        times.append(time.perf_counter() - began_at_s)
    connection.close()
    return times, failed


def health(request: Question, clients: int) -> float:
    """Ask for health, idle and while every client waits; return the p99 of the latter."""
    healthy = question(CODEC.ask(HttpEndpoint.HEALTH))
    answer = threading.Event()  # until then, one inference goes on

    def infer(_: Observation) -> np.ndarray:
        answer.wait()
        return np.zeros((STEPS, len(NAMES)))

    policy = ScriptedPolicy(infer, info=INFO)
    with (
        PolicyRuntime(policy, max_waiting=clients) as runtime,
        serve_in_thread(HttpPolicyServer(runtime, port=0, max_clients=2 * clients)) as url,
    ):
        show("health, idle", client(url, healthy, 200)[0])
        waiting = [connect(url) for _ in range(clients)]
        for each in waiting:
            each.request(*request)
        while runtime.health.in_hand < clients:
            time.sleep(0.01)
        taken = client(url, healthy, 200)[0]
        show("health, busy", taken)
        answer.set()
        for each in waiting:
            each.close()
    return p99_ms(taken)


def p99_ms(times: list[float]) -> float:
    return 1000 * statistics.quantiles(times, n=100)[98]


def question(request: HttpRequest) -> Question:
    return request.method, request.path, request.body, dict(request.headers)


def connect(url: str) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)


def ask(connection: http.client.HTTPConnection, request: Question) -> int:
    connection.request(*request)
    response = connection.getresponse()
    response.read()
    return response.status


def show(what: str, times: list[float]) -> None:
    cuts = [1000 * each for each in statistics.quantiles(times, n=100)]
    print(
        f"  {what:<14} best {1000 * min(times):7.1f}  p50 {cuts[49]:7.1f}  p99 {cuts[98]:7.1f} ms"
        f"  of {len(times)}"
    )


def observation(side: int) -> Observation:
    pixels = np.random.default_rng(0).integers(0, 256, (len(CAMERAS), side, side, 3), np.uint8)
    return Observation(
        instruction="pick up the cup",
        state=np.zeros(len(NAMES)),
        images=dict(zip(CAMERAS, pixels, strict=True)),
        frame_rate_hz=10.0,
        captured_at_s=0.0,
    )


if __name__ == "__main__":
    sys.exit(main())
