"""Observations as documents, without the pixels."""

from __future__ import annotations

from typing import Any

from vlmcore.contracts.faults import Faults
from vlmcore.contracts.observation import CameraSummary, ObservationSummary
from vlmcore.contracts.schemas import OBSERVATION_SUMMARY
from vlmcore.contracts.shapes import path_of

__all__ = ["observation_summary_from_document", "observation_summary_to_document"]


def observation_summary_to_document(summary: ObservationSummary) -> dict[str, Any]:
    """Write *summary* as a document, in plain values of JSON."""
    return {
        **OBSERVATION_SUMMARY.header(),
        "task": summary.instruction,
        "state": summary.state.tolist(),
        "timestamp": summary.captured_at_s,
        "history_fps": summary.frame_rate_hz,
        "cameras": {
            name: {"frames": camera.frames, "height": camera.height_px, "width": camera.width_px}
            for name, camera in summary.cameras.items()
        },
    }


def observation_summary_from_document(value: Any) -> ObservationSummary:
    """
    Read a summary from a document, in plain values of JSON.

    Raises:
        DocumentError: If there are faults; all of them are listed.
    """
    faults = Faults(OBSERVATION_SUMMARY.name)
    data = OBSERVATION_SUMMARY.read(value, faults)
    cameras = {}
    for name, said in data.get("cameras", {}).items():
        with faults.at(path_of("$.cameras", name)):
            cameras[name] = CameraSummary(
                frames=said["frames"], height_px=said["height"], width_px=said["width"]
            )
    return faults.finish(
        lambda: ObservationSummary(
            instruction=data["task"],
            state=data["state"],
            cameras=cameras,
            frame_rate_hz=data["history_fps"],
            captured_at_s=data["timestamp"],
        ),
        instruction="$.task",
        cameras="$.cameras",
    )
