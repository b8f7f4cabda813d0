"""
What happens with chunks over time: replanning, handing on, recording, playing back.

`ChunkBroker` stands between a control loop and a policy, `PrefetchingBroker` also while the policy
thinks; `hand_off` gives what the gate let pass to what moves the robot, and `ControlLoop` does it
all at the rate of the robot. `EpisodeWriter` records what came of every chunk, `EpisodeReader`
reads it, and `replay` plays it back through a gate. `FlightRecorder` records what a policy did,
`EpisodePolicy` does it again.
"""

from vlmcore.rollout.blending import blend_chunks, smallest_overlap
from vlmcore.rollout.brokers import ChunkBroker
from vlmcore.rollout.control import ControlLoop, LoopCounts
from vlmcore.rollout.ensembling import TemporalEnsemble
from vlmcore.rollout.episode_calls import EpisodeFailure
from vlmcore.rollout.episode_differences import recheck
from vlmcore.rollout.episode_frames import encode_frames
from vlmcore.rollout.episode_reader import EpisodeReader
from vlmcore.rollout.episode_writer import EpisodeWriter
from vlmcore.rollout.episodes import EpisodeHeader, EpisodeStep
from vlmcore.rollout.flight_recorder import FlightRecorder, FramesKept
from vlmcore.rollout.forking_recorder import ForkingFlightRecorder
from vlmcore.rollout.freshness import Freshness, MaxAges, TimedObservation
from vlmcore.rollout.handoff import ActionSink, hand_off
from vlmcore.rollout.holding import Starvation, hold_still
from vlmcore.rollout.offsets import space_of_targets, to_targets
from vlmcore.rollout.open_loop import evaluate_open_loop
from vlmcore.rollout.open_loop_report import OpenLoopReport
from vlmcore.rollout.plans import ActionPlan, EnsembleBlend, LinearBlend
from vlmcore.rollout.prefetch_counts import PrefetchCounts
from vlmcore.rollout.prefetching import PrefetchingBroker
from vlmcore.rollout.recorded_policies import ConstantPolicy, EpisodePolicy
from vlmcore.rollout.replan import ReplanReport
from vlmcore.rollout.replay import replay
from vlmcore.rollout.rerun_export import export_to_rerun
from vlmcore.rollout.shadow import ShadowPolicy, ShadowReport
from vlmcore.rollout.watchdog import Watchdog

__all__ = [
    "ActionPlan",
    "ActionSink",
    "ChunkBroker",
    "ConstantPolicy",
    "ControlLoop",
    "EnsembleBlend",
    "EpisodeFailure",
    "EpisodeHeader",
    "EpisodePolicy",
    "EpisodeReader",
    "EpisodeStep",
    "EpisodeWriter",
    "FlightRecorder",
    "ForkingFlightRecorder",
    "FramesKept",
    "Freshness",
    "LinearBlend",
    "LoopCounts",
    "MaxAges",
    "OpenLoopReport",
    "PrefetchCounts",
    "PrefetchingBroker",
    "ReplanReport",
    "ShadowPolicy",
    "ShadowReport",
    "Starvation",
    "TemporalEnsemble",
    "TimedObservation",
    "Watchdog",
    "blend_chunks",
    "encode_frames",
    "evaluate_open_loop",
    "export_to_rerun",
    "hand_off",
    "hold_still",
    "recheck",
    "replay",
    "smallest_overlap",
    "space_of_targets",
    "to_targets",
]
