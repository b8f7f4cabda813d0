"""
The types of our sockets: what may be joined to what, by the colours that the page gives them.

What travels through them are the contracts of the core, never JSON.
"""

from __future__ import annotations

__all__ = [
    "ACTIONS",
    "DETECTIONS",
    "EMBODIMENT",
    "EVENTS",
    "OBSERVATION",
    "SCENE_STATE",
    "TRACKS",
    "VETTED_ACTIONS",
    "VIDEO_SELECTION",
]

EMBODIMENT = "VLA_EMBODIMENT"
"""`vlmcore.contracts.embodiment.Embodiment`."""

OBSERVATION = "VLA_OBSERVATION"
"""`vlmcore_comfy.seeing.SeenBy`: what a robot saw, and which robot."""

ACTIONS = "VLA_ACTIONS"
"""`vlmcore.contracts.actions.ActionChunk`: what a policy proposes."""

VETTED_ACTIONS = "VLA_VETTED_ACTIONS"
"""`vlmcore.safety.vetted.VettedChunk`: what the gate let through; no other node gives it out."""

VIDEO_SELECTION = "VLM_VIDEO_SELECTION"
"""`vlmcore.media.selections.FrameSelection`: which frames of a video were taken, and when."""

TRACKS = "VLM_TRACKS"
"""`vlmcore.vision.tracks.Tracks`: things that were followed through frames."""

EVENTS = "VLM_EVENTS"
"""`vlmcore.vision.events.VideoEvents`: what happens in a video."""

SCENE_STATE = "VLM_SCENE_STATE"
"""`vlmcore.vision.scenes.SceneState`: what is known of a scene."""

DETECTIONS = "VLM_DETECTIONS"
"""`vlmcore_comfy.video_frames.Detected`: what was found in each frame, and the rate of frames."""
