"""
Every bound on what comes in from outside, grouped by the door that it guards.

Limits guard doors, not rooms: contracts check that a value is true, doors check that it is not too
large, before memory is spent on it. A caller who needs other bounds passes a group of their own.
"""

from __future__ import annotations

from vlmcore.limits._artifacts import ArtifactLimits
from vlmcore.limits._base import require_at_most
from vlmcore.limits._graphs import GraphLimits
from vlmcore.limits._job_sources import JobSourceLimits
from vlmcore.limits._jobs import JobLimits
from vlmcore.limits._messages import (
    HttpLimits,
    ModelServerLimits,
    MusicLimits,
    WireLimits,
)
from vlmcore.limits._models import (
    DetectorLimits,
    ImageLimits,
    ModelLimits,
    PromptLimits,
    ReuseLimits,
    StructureLimits,
    VisionLimits,
    WeightLimits,
)
from vlmcore.limits._robots import (
    ChartLimits,
    ContractLimits,
    DatasetLimits,
    DocumentLimits,
    EpisodeLimits,
)
from vlmcore.limits._samples import ResamplingLimits, SampleLimits
from vlmcore.limits._suites import SuiteLimits
from vlmcore.limits._texts import TextLimits
from vlmcore.limits._videos import VideoLimits

__all__ = [
    "ArtifactLimits",
    "ChartLimits",
    "ContractLimits",
    "DatasetLimits",
    "DetectorLimits",
    "DocumentLimits",
    "EpisodeLimits",
    "GraphLimits",
    "HttpLimits",
    "ImageLimits",
    "JobLimits",
    "JobSourceLimits",
    "ModelLimits",
    "ModelServerLimits",
    "MusicLimits",
    "PromptLimits",
    "ResamplingLimits",
    "ReuseLimits",
    "SampleLimits",
    "StructureLimits",
    "SuiteLimits",
    "TextLimits",
    "VideoLimits",
    "VisionLimits",
    "WeightLimits",
    "WireLimits",
    "require_at_most",
]

for _name in __all__:  # where users import them from, in the reference too
    globals()[_name].__module__ = __name__
