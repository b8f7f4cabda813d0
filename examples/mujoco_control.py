"""
A simulated arm that a policy server moves: client, gate, latch, prefetching loop, recorder, clip.

Run it with ``nox -s mujoco``, or where ``gymnasium[mujoco]``, ``av`` and ``vlmcore[robotics]`` are
installed::

    MUJOCO_GL=egl python examples/mujoco_control.py --folder reached

It leaves ``clip.mp4`` and ``episode.jsonl`` in that folder, and prints what the gate did. The bar
below the clip is green where a step went through as it was proposed, yellow where the gate changed
it, and red where the arm stood still because no answer was there.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import gymnasium
import numpy as np
import numpy.typing as npt

from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import (
    ActionDim,
    ActionSpace,
    CameraSpec,
    Embodiment,
    LimitsSource,
)
from vlmcore.contracts.observation import Observation
from vlmcore.policy import PolicyInfo
from vlmcore.rollout import (
    ControlLoop,
    EpisodeHeader,
    EpisodeReader,
    EpisodeWriter,
    LinearBlend,
    MaxAges,
    PrefetchingBroker,
    Watchdog,
)
from vlmcore.safety import Remedy, SafetyGate, SafetyLatch, VettedChunk
from vlmcore_robotics.clients import WebSocketPolicy
from vlmcore_robotics.servers import OpenPIServer, PolicyRuntime, serve_in_thread
from vlmcore_robotics.wire.observation_layout import CameraKey, ObservationLayout, StateKey

RATE_HZ = 20
SIDE_PX = 256  # of the clip; the camera of the policy sees every other pixel
TURN = 2 * math.pi

ARM = Embodiment(
    name="Reacher",
    state_names=("shoulder", "elbow", "target_x", "target_y"),
    actions=ActionSpace(
        rate_hz=RATE_HZ,
        dims=(
            ActionDim(
                name="shoulder", unit="rad", low=-math.pi, high=math.pi, period=TURN, max_rate=4.0
            ),
            ActionDim(name="elbow", unit="rad", low=-2.8, high=2.8, max_rate=4.0),
        ),
    ),
    cameras=(CameraSpec(name="top", height_px=SIDE_PX // 2, width_px=SIDE_PX // 2),),
    limits_source=LimitsSource.TEMPLATE,
)
LAYOUT = ObservationLayout(
    cameras=[CameraKey(camera="top", key="observation/image")],
    state=[StateKey(key="observation/state", count=4)],
)

Pixels = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.float64]


class Reach:
    """A policy that knows the arm: it thinks for a while, and now and then it is badly wrong."""

    def __init__(self, *, thinks_s: float, seed: int) -> None:
        self.info = PolicyInfo(
            name="reach",
            action_names=ARM.actions.names,
            action_units=("rad", "rad"),
            state_names=ARM.state_names,
            horizon=16,
            rate_hz=RATE_HZ,
        )
        self._thinks_s = thinks_s
        self._chance = np.random.default_rng(seed)

    def infer(self, observation: Observation, /) -> ActionChunk:
        """Go from where the arm is to where its fingertip meets the target, at 3 rad/s."""
        time.sleep(self._thinks_s)
        at, goal = observation.state[:2], angles_of(observation.state[2:])
        way = np.array([math.remainder(goal[0] - at[0], TURN), goal[1] - at[1]])
        most = 3.0 / RATE_HZ * np.arange(1, 17)[:, np.newaxis]
        path = at + np.clip(way, -most, most)
        if self._chance.random() < 0.3:
            path[self._chance.integers(4, 16)] += self._chance.normal(0.0, 1.0, 2)
        path[:, 0] = np.remainder(path[:, 0] + math.pi, TURN) - math.pi
        return ActionChunk(
            values=path.clip(-3.1, 3.1),
            names=ARM.actions.names,
            source=self.info.name,
            observed_at_s=observation.captured_at_s,
        )

    def reset(self) -> None:
        """Forget nothing: there is nothing to forget."""

    def close(self) -> None:
        """Give nothing back: nothing is held."""


def angles_of(target: Numbers) -> tuple[float, float]:
    """Find the angles of shoulder and elbow that bring the fingertip to *target*."""
    upper, lower = 0.1, 0.11  # lengths of the arm in m
    x, y = target.tolist()
    bend = (x * x + y * y - upper**2 - lower**2) / (2 * upper * lower)
    elbow = math.acos(min(max(bend, -0.94), 1.0))
    reach = math.atan2(lower * math.sin(elbow), upper + lower * math.cos(elbow))
    return math.atan2(y, x) - reach, elbow


class Reacher:
    """The arm of gymnasium: what moves it, and what looks at it."""

    def __init__(self, *, seed: int) -> None:
        self._env: Any = gymnasium.make(
            "Reacher-v5",
            render_mode="rgb_array",
            width=SIDE_PX,
            height=SIDE_PX,
            frame_skip=1,
            max_episode_steps=10**6,
            default_camera_config={"distance": 0.62, "elevation": -75.0, "azimuth": 90.0},
        )
        self._env.reset(seed=seed)
        self._chance = np.random.default_rng(seed)
        self._sim = self._env.unwrapped
        model = self._sim.model
        model.vis.headlight.ambient[:] = 0.5
        model.light_castshadow[:] = model.vis.quality.offsamples = 0  # CPUs draw it
        self._steps = round(1 / RATE_HZ / self._sim.dt)
        self._frame = self._picture()
        self.frames: list[Pixels] = []
        self.misses_m: list[float] = []  # how far each target was when it went elsewhere

    @property
    def state(self) -> list[float]:
        """The angles of the arm, and where the target is."""
        angles: list[float] = self._sim.data.qpos.tolist()
        return angles

    def observe(self) -> Observation:
        """Give the newest frame, with the state that belongs to it."""
        return Observation(
            instruction="reach the red ball",
            state=self._state_then,
            images={"top": self._frame[::2, ::2]},
            frame_rate_hz=RATE_HZ,
            captured_at_s=self._captured_at_s,
        )

    def accept(self, vetted: VettedChunk) -> None:
        """Drive the motors towards the targets for one tick, then look."""
        goal = vetted.values[0]
        for _ in range(self._steps):
            at, speed = self._sim.data.qpos[:2], self._sim.data.qvel[:2]
            way = np.array([math.remainder(goal[0] - at[0], TURN), goal[1] - at[1]])
            self._env.step(np.clip(1.5 * way - 0.05 * speed, -1.0, 1.0).astype(np.float32))
        self._frame = self._picture()
        colour = (40, 170, 70)
        if vetted.source == "hold":
            colour = (210, 60, 50)
        elif vetted.report.changed:
            colour = (240, 190, 30)
        bar = np.full((16, SIDE_PX, 3), colour, np.uint8)
        self.frames.append(np.concatenate([self._frame, bar]))
        if len(self.frames) % 40 == 0:
            self._move_target()

    def close(self) -> None:
        """Close the simulator."""
        self._env.close()

    def _picture(self) -> Pixels:
        self._captured_at_s = time.monotonic()
        self._state_then = self.state
        picture: Pixels = self._env.render()
        return picture

    def _move_target(self) -> None:
        tip, target = (self._sim.get_body_com(name)[:2] for name in ("fingertip", "target"))
        self.misses_m.append(float(np.linalg.norm(tip - target)))
        angle, radius = self._chance.uniform(-math.pi, math.pi), self._chance.uniform(0.08, 0.19)
        position = self._sim.data.qpos.copy()
        position[2:] = radius * math.cos(angle), radius * math.sin(angle)
        self._sim.set_state(position, self._sim.data.qvel.copy())


def drive(folder: Path, *, steps: int, seed: int, thinks_s: float) -> list[str]:
    """Drive the arm, and leave a clip and an episode in *folder*; tell what happened."""
    policy = Reach(thinks_s=thinks_s, seed=seed)
    latch = SafetyLatch(SafetyGate(embodiment=ARM, remedy=Remedy.CLAMP), max_consecutive=20)
    arm = Reacher(seed=seed)
    with (
        PolicyRuntime(policy) as runtime,
        serve_in_thread(OpenPIServer(runtime, layout=LAYOUT, port=0)) as url,
        WebSocketPolicy(url, embodiment=ARM, layout=LAYOUT) as remote,
        EpisodeWriter(
            folder / "episode.jsonl", EpisodeHeader(embodiment=ARM), overwrite=True
        ) as recorder,
        Watchdog(arm, limit_s=1.0, on_silence=lambda: print("no command for 1 s")) as watched,
    ):
        broker = PrefetchingBroker(
            remote,
            latch,
            prefetch_at=10,
            blend=LinearBlend(overlap=4),
            max_ages=MaxAges(observation_s=1.0, chunk_s=2.0),
        )
        loop = ControlLoop(
            broker,
            watched,
            observe=arm.observe,
            max_age_s=2.0,
            recorder=recorder,
            record_frames=True,
            allow_template=True,
        )
        counts = loop.run(last_command=arm.state[:2], steps=steps)
        broker.wait_for_policy(timeout_s=10)
    arm.close()
    write_clip(folder / "clip.mp4", arm.frames)
    return [str(counts), str(broker.counts), *told(folder / "episode.jsonl", arm.misses_m)]


def told(episode: Path, misses_m: list[float]) -> list[str]:
    """Say what the gate did, by the recording, and how near the arm came to its targets."""
    found: Counter[str] = Counter()
    for step in EpisodeReader(episode):
        found.update({kind.value: n for kind, n in step.report.counts.items() if n})
    said = ", ".join(f"{count} {kind}" for kind, count in found.most_common()) or "nothing"
    near = ", ".join(f"{miss * 1000:.0f}" for miss in misses_m) or "no target was left"
    return [f"the gate found: {said}", f"mm from the ball when it went elsewhere: {near}"]


def write_clip(path: Path, frames: list[Pixels]) -> None:
    """Write an MP4 that browsers play."""
    with av.open(str(path), "w") as file:
        stream: Any = file.add_stream("libx264", rate=Fraction(RATE_HZ))
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        for pixels in frames:
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format="rgb24")
            file.mux(stream.encode(frame))
        file.mux(stream.encode())


def main() -> None:
    """Read the command line, and drive the arm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("reached"))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--thinks-s", type=float, default=0.15, help="how long an inference takes")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for line in drive(given.folder, steps=given.steps, seed=given.seed, thinks_s=given.thinks_s):
        print(line)


if __name__ == "__main__":
    main()
