"""
What a user's type checker sees: read by mypy and pyright, never run.

`assert_type` fails the check when an inferred type changes; a ``type: ignore`` that is no longer
needed fails it too, so each of those lines is an error that users are promised.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type

import vlmcore
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.policy import AsyncPolicy, ForkingPolicy, Policy, PolicyInfo
from vlmcore.rollout import (
    ActionSink,
    ChunkBroker,
    ConstantPolicy,
    ControlLoop,
    EpisodeFailure,
    EpisodePolicy,
    EpisodeReader,
    EpisodeStep,
    FlightRecorder,
    LinearBlend,
    LoopCounts,
    OpenLoopReport,
    PrefetchingBroker,
    ShadowPolicy,
    ShadowReport,
    Watchdog,
    blend_chunks,
    evaluate_open_loop,
    hand_off,
)
from vlmcore.rollout.recorded_moments import EpisodeMoments, RecordedEpisode
from vlmcore.safety import Remedy, SafetyReport, ViolationKind
from vlmcore.testing import (
    AsyncScriptedPolicy,
    EchoPredictor,
    PolicyCheckReport,
    ScriptedPolicy,
    check_policy,
    check_predictor,
)
from vlmcore_robotics.clients import (
    AsyncHttpPolicy,
    AsyncWebSocketPolicy,
    AsyncZmqPolicy,
    HttpPolicy,
    WebSocketPolicy,
    ZmqPolicy,
)
from vlmcore_robotics.datasets import LeRobotDatasetReader, Pictures, export_lerobot
from vlmcore_robotics.datasets.lerobot_export import LeRobotExport
from vlmcore_robotics.servers import (
    GrootServer,
    HttpPolicyServer,
    PolicyRuntime,
    TimedChunk,
    serve_in_thread,
)
from vlmcore_robotics.testing import (
    Behaviour,
    HostileServer,
    PolicyProtocol,
    ServerCheckReport,
    check_server,
)
from vlmcore_robotics.wire.groot_layout import GrootLayout
from vlmcore_robotics.wire.http_frames import WireEncoding
from vlmcore_robotics.wire.http_messages import ContentType
from vlmcore_robotics.wire.observation_layout import ObservationLayout


def journey(path: Path, pixels: npt.NDArray[np.float32], cancel: vlmcore.CancelToken) -> None:
    """The README's journey, with every type named."""
    image = vlmcore.load_image(path, limits=vlmcore.ImageLimits(max_pixels=100))
    assert_type(image, npt.NDArray[np.uint8])

    prompt = vlmcore.Prompt.of("What is this?", path, pixels, b"raw")
    assert_type(prompt, vlmcore.Prompt)
    assert_type(prompt.images, tuple[npt.NDArray[np.uint8], ...])
    options = vlmcore.GenerationOptions(max_new_tokens=3, stop=(".",))

    with vlmcore.load_predictor("embedded") as predictor:
        assert_type(predictor, vlmcore.Predictor)
        answer = predictor.generate(prompt, options, cancel=cancel)
        assert_type(answer, vlmcore.Generation)
        assert_type(answer.stop_reason, vlmcore.StopReason)
        assert_type(predictor.generate_many([prompt]), list[vlmcore.Generation])
        with predictor.stream(prompt) as stream:
            for piece in stream:
                assert_type(piece, str)
        assert_type(stream.result, vlmcore.Generation)


def vetting(arm: vlmcore.Embodiment, chunk: vlmcore.ActionChunk) -> vlmcore.VettedChunk:
    """What a policy proposes and what may be handed on are two types."""
    gate = vlmcore.SafetyGate(embodiment=arm, remedy=Remedy.CLAMP)
    assert_type(chunk.values, npt.NDArray[np.float64])
    report = gate.check(chunk, last_command=None)
    assert_type(report, SafetyReport)
    assert_type(report.counts, dict[ViolationKind, int])
    vetted = gate.vet(chunk, last_command=[0.0])
    assert_type(vetted.as_float32(), npt.NDArray[np.float32])
    assert_type(vetted.as_chunk(), vlmcore.ActionChunk)
    return vetted


def rolling_out(
    policy: Policy, gate: vlmcore.SafetyGate, observe: Callable[[], vlmcore.Observation]
) -> None:
    """A control loop: what the broker gives is vetted, and a sink is what accepts it."""

    class Printer:
        def accept(self, vetted: vlmcore.VettedChunk, /) -> None:
            self.last = vetted

    sink: ActionSink = Printer()
    broker = ChunkBroker(policy, gate, replan_every=8, blend=LinearBlend(overlap=4))
    vetted = broker.step(observe, last_command=[0.0])
    assert_type(vetted, vlmcore.VettedChunk)
    hand_off(vetted, sink, now_s=1.0, max_age_s=0.5)
    ahead = PrefetchingBroker(policy, gate, prefetch_at=4)
    watched: ActionSink = Watchdog(sink, limit_s=0.5)
    loop = ControlLoop(ahead, watched, observe=observe, max_age_s=1.0)
    assert_type(loop.run(last_command=[0.0], steps=3), LoopCounts)
    assert_type(ahead.counts.starved, int)
    chunk = vetted.as_chunk()
    assert_type(blend_chunks(chunk, chunk, executed=1, overlap=2, space=None), vlmcore.ActionChunk)
    hand_off(chunk, sink, now_s=1.0, max_age_s=0.5)  # type: ignore[arg-type]


def reasons(answer: vlmcore.Generation) -> str:
    """A `match` that names every stop reason is whole: mypy would say if one were missing."""
    match answer.stop_reason:
        case vlmcore.StopReason.END:
            return "whole"
        case vlmcore.StopReason.LENGTH:
            return "cut"
        case vlmcore.StopReason.CANCELLED:
            return "stopped"
        case vlmcore.StopReason.REPETITION:
            return "in a loop"
        case vlmcore.StopReason.FILTERED:
            return "withheld"


def protocols(prompt: vlmcore.Prompt) -> None:
    """The predictor without a model is a `Predictor`, and so may one of a user's be."""
    predictor: vlmcore.Predictor = EchoPredictor()
    check_predictor(lambda: predictor, prompt)


def policies(observation: Observation) -> None:
    """The policies without a model are policies, and factories of either kind may be checked."""
    policy: Policy = ScriptedPolicy([])
    awaited: AsyncPolicy = AsyncScriptedPolicy([])

    async def connect() -> AsyncPolicy:
        return awaited

    assert_type(check_policy(lambda: policy, observation), PolicyCheckReport)
    check_policy(connect, observation)
    check_policy(lambda: 3, observation)  # type: ignore[arg-type, return-value]


def serving(runtime: PolicyRuntime, seen: vlmcore.Observation) -> None:
    """What several clients ask of one policy comes back one after the other."""
    policy: ForkingPolicy = ScriptedPolicy([])
    assert_type(policy.fork(), Policy)
    assert_type(runtime.submit(seen, session="arm").result(), TimedChunk)
    assert_type(runtime.reset(session="arm").result(), None)
    with serve_in_thread(HttpPolicyServer(runtime, port=0)) as url:
        assert_type(url, str)
    PolicyRuntime(ScriptedPolicy)  # type: ignore[arg-type]
    HttpPolicyServer(runtime, token="sk-1")  # type: ignore[arg-type]


def over_http(robot: Embodiment, seen: Observation) -> None:
    """The clients are policies, one of them for asyncio; encodings are members, not words."""
    with HttpPolicy("localhost", embodiment=robot, encoding=WireEncoding.PNG) as remote:
        policy: Policy = remote
        assert_type(remote, HttpPolicy)
        assert_type(remote.infer(seen), vlmcore.ActionChunk)
    awaited: AsyncPolicy = AsyncHttpPolicy(
        "localhost", embodiment=robot, content_type=ContentType.JSON
    )
    assert_type((policy, awaited), tuple[Policy, AsyncPolicy])
    HttpPolicy("localhost", embodiment=robot, encoding="png")  # type: ignore[arg-type]
    HttpPolicy("localhost", embodiment=robot, token="sk-1")  # type: ignore[arg-type]


async def over_websocket(robot: Embodiment, layout: ObservationLayout, seen: Observation) -> None:
    """The clients of openpi are policies, and stay themselves in a ``with``."""
    with WebSocketPolicy("localhost", embodiment=robot, layout=layout) as remote:
        policy: Policy = remote
        assert_type(remote, WebSocketPolicy)
    async with AsyncWebSocketPolicy("localhost", embodiment=robot, layout=layout) as awaited:
        assert_type(awaited, AsyncWebSocketPolicy)
        assert_type(await awaited.infer(seen), vlmcore.ActionChunk)
    policy.close()


def over_zeromq(runtime: PolicyRuntime, robot: Embodiment, layout: GrootLayout) -> None:
    """The clients are policies, one of them for asyncio; a layout of GR00T is no other one."""
    with ZmqPolicy("localhost", embodiment=robot, layout=layout) as remote:
        policy: Policy = remote
        assert_type(remote.info, PolicyInfo)
    awaited: AsyncPolicy = AsyncZmqPolicy("localhost", embodiment=robot, layout=layout)
    with serve_in_thread(GrootServer(runtime, layout=layout, port=0)) as url:
        assert_type(url, str)
    assert_type((policy, awaited), tuple[Policy, AsyncPolicy])
    ZmqPolicy("localhost", embodiment=robot, layout={})  # type: ignore[arg-type]
    GrootServer(runtime, layout=layout, api_token="tok-1")  # type: ignore[arg-type]


def recordings(policy: Policy, episode: EpisodeReader, data: LeRobotDatasetReader) -> None:
    """Episodes of ours and of data sets are compared with a policy, and may be mixed."""
    assert_type(evaluate_open_loop(policy, [episode]), OpenLoopReport)
    evaluate_open_loop(policy, data, every=2)
    evaluate_open_loop(policy, [episode, *data])
    one: RecordedEpisode = data[0]
    one = EpisodeMoments(episode)
    evaluate_open_loop(policy, [one])
    evaluate_open_loop(policy, "run.jsonl")  # type: ignore[arg-type]
    assert_type(export_lerobot([episode], "out", pictures=Pictures.NONE), LeRobotExport)
    export_lerobot([episode], "out", pictures="none")  # type: ignore[arg-type]


def recorded_policies(
    policy: Policy, robot: vlmcore.Embodiment, gate: vlmcore.SafetyGate, chunk: vlmcore.ActionChunk
) -> None:
    """What records, replays and compares policies is a policy, and some of them fork."""
    recorder: Policy = FlightRecorder(policy, robot, clock=lambda: 0.0)
    replayed: ForkingPolicy = EpisodePolicy(EpisodeReader("run.jsonl"))
    constant: ForkingPolicy = ConstantPolicy(chunk)
    shadow = ShadowPolicy(recorder, constant, gate, last_command=lambda seen: seen.state)
    _policy: Policy = shadow
    assert_type(shadow.report(), ShadowReport)
    for event in EpisodeReader("run.jsonl").events():
        assert_type(event, EpisodeStep | EpisodeFailure)
    ShadowPolicy(replayed, constant, gate)  # type: ignore[call-arg]
    FlightRecorder(policy, robot)  # type: ignore[call-arg]


def testing_servers(robot: vlmcore.Embodiment, layout: ObservationLayout) -> None:
    """What is held to promises, and what keeps none."""
    openpi = PolicyProtocol.OPENPI
    report = check_server("localhost", protocol=openpi, embodiment=robot, layout=layout)
    assert_type(report, ServerCheckReport)
    assert_type([each.why for each in report.results], list[str])
    with HostileServer(openpi, Behaviour.LATE, embodiment=robot) as server:
        assert_type(server.url, str)
    check_server("localhost", protocol="openpi", embodiment=robot)  # type: ignore[arg-type]


def errors(error: vlmcore.VlmcoreError) -> None:
    """Errors are told apart by their class and read by their attributes."""
    if isinstance(error, vlmcore.LimitExceededError):
        assert_type(error.allowed, int)
    if isinstance(error, vlmcore.ModelMemoryError):
        assert_type(error.needed_bytes, int | None)


def mistakes(predictor: vlmcore.Predictor, prompt: vlmcore.Prompt) -> None:
    """What a type checker refuses."""
    vlmcore.Prompt("What is this?")  # type: ignore[call-arg]
    vlmcore.GenerationOptions(max_new_tokens="3")  # type: ignore[arg-type]
    predictor.generate("What is this?")  # type: ignore[arg-type]
    predictor.generate(prompt, cancel=True)  # type: ignore[arg-type]
    prompt.text = "changed"  # type: ignore[misc]
    vlmcore.load_image("a.png", layout="CWH")  # type: ignore[arg-type]
    vlmcore.load_predicter("embedded")  # type: ignore[attr-defined]


def unsafe_mistakes(gate: vlmcore.SafetyGate, policy: Policy, seen: vlmcore.Observation) -> None:
    """What a type checker refuses next to a robot."""
    chunk = policy.infer(seen)
    gate.vet(chunk)  # type: ignore[call-arg]
    _vetted: vlmcore.VettedChunk = chunk  # type: ignore[assignment]
    vlmcore.SafetyGate(remedy="clamp")  # type: ignore[arg-type]
