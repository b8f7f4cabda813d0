"""
What happens with chunks over time: replanning, handing on, recording, playing back.

`ChunkBroker` stands between a control loop and a policy; `hand_off` gives what the gate let pass to
what moves the robot.
"""

from vlmcore.rollout.blending import blend_chunks, smallest_overlap
from vlmcore.rollout.brokers import ChunkBroker
from vlmcore.rollout.ensembling import TemporalEnsemble
from vlmcore.rollout.handoff import ActionSink, hand_off
from vlmcore.rollout.plans import ActionPlan, EnsembleBlend, LinearBlend
from vlmcore.rollout.replan import ReplanReport

__all__ = [
    "ActionPlan",
    "ActionSink",
    "ChunkBroker",
    "EnsembleBlend",
    "LinearBlend",
    "ReplanReport",
    "TemporalEnsemble",
    "blend_chunks",
    "hand_off",
    "smallest_overlap",
]
