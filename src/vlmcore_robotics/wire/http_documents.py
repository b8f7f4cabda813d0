"""
The documents of the HTTP protocol, key by key: what is read, and what the published page says.

An observation has the keys of its schema; keys that are not known are passed over at its top, so
that a newer client can say more to an older server. Within frames they are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import numpy as np

from vlmcore.contracts.observation import Observation
from vlmcore.contracts.schemas import DocumentKind
from vlmcore.contracts.shapes import Field, ListOf, MapOf, Number, Record, Text, Whole
from vlmcore.errors import ContractError
from vlmcore.limits import ContractLimits, HttpLimits
from vlmcore_robotics.wire.http_frames import WireEncoding, frames_from, frames_to
from vlmcore_robotics.wire.http_messages import ContentType

__all__ = [
    "observation_from_document",
    "observation_kind",
    "observation_to_document",
    "require_object",
]

_LIMITS = ContractLimits()
_SIDE = Whole(smallest=1, largest=_LIMITS.max_frame_pixels)


@attrs.frozen(kw_only=True)
class FrameData:
    """The bytes of a frame: base64 in JSON; bytes, or an array of pixels, in MessagePack."""

    content_type: ContentType

    def faults(self, value: Any, path: str) -> Iterator[tuple[str, str]]:
        """Find what is wrong."""
        is_json = self.content_type is ContentType.JSON
        if not isinstance(value, str if is_json else (bytes, np.ndarray)):
            expected = "base64 text" if is_json else "bytes or an array"
            yield path, f"got {type(value).__name__}, expected {expected}"
        elif not (value.size if isinstance(value, np.ndarray) else value):
            yield path, "got nothing, expected the bytes of a frame"

    def schema(self) -> dict[str, Any]:
        """Say the same as JSON Schema."""
        return {"type": "string", "contentEncoding": "base64", "minLength": 1}


def observation_kind(content_type: ContentType) -> DocumentKind:
    """Say what an observation is as a document of *content_type*."""
    frame = Record(
        fields={
            "encoding": Field(
                Text(one_of=tuple(each.word(content_type) for each in WireEncoding)),
                "How the frame is encoded.",
            ),
            "data": Field(FrameData(content_type=content_type), "The encoded frame."),
            "frame_index": Field(
                Whole(smallest=0, largest=_LIMITS.max_frames - 1),
                "Which frame of the history it is; 0 is the oldest.",
                optional=True,
            ),
            "height": Field(_SIDE, "Of plain pixels in base64.", optional=True),
            "width": Field(_SIDE, "Of plain pixels in base64.", optional=True),
        }
    )
    frames = ListOf(item=frame, fewest=1, most=_LIMITS.max_frames)
    return DocumentKind(
        name="robot-observation",
        title="What a policy is shown, with the pixels.",
        keys={
            "task": Field(Text(longest=_LIMITS.max_task_characters), "The instruction."),
            "state": Field(
                ListOf(item=Number(), fewest=1, most=_LIMITS.max_state), "What the robot reports."
            ),
            "timestamp": Field(
                Number(), "The client's clock at the newest frame, in seconds.", optional=True
            ),
            "history_fps": Field(Number(positive=True), "Frames a second.", optional=True),
            "cameras": Field(
                MapOf(item=frames, fewest=1, most=_LIMITS.max_cameras),
                "The frames of each camera by its name, oldest first: as many of each, or one.",
            ),
        },
    )


_KINDS = {content_type: observation_kind(content_type) for content_type in ContentType}


def observation_to_document(
    observation: Observation,
    encoding: WireEncoding,
    content_type: ContentType,
    *,
    quality: int,
    limits: HttpLimits,
) -> dict[str, Any]:
    """
    Write an observation, with all of its frames.

    Raises:
        ContractError: If it is none, or *quality* is out of range.
        LimitExceededError: If its frames are too large.
        MissingDependencyError: If Pillow is needed and not installed.
    """
    seen: Any = observation
    if not isinstance(seen, Observation):
        raise ContractError("observation", f"got {type(seen).__name__}, expected an Observation")
    frames = frames_to(observation, encoding, content_type, quality=quality, limits=limits)
    return {
        **_KINDS[content_type].header(),
        "task": observation.instruction,
        "state": observation.state.tolist(),
        "timestamp": observation.captured_at_s,
        "history_fps": observation.frame_rate_hz,
        "cameras": frames,
    }


def observation_from_document(
    value: Any, content_type: ContentType, *, captured_at_s: float, limits: HttpLimits
) -> Observation:
    """
    Read an observation.

    Args:
        value: What was read from the body.
        content_type: What it was read as.
        captured_at_s: Reading of the server's monotonic clock when it came: the client's clock is
            another.
        limits: How large its frames may be.

    Raises:
        DocumentError: If it has faults; all of them are listed.
        ContractError: If it is not such an observation.
        LimitExceededError: If its frames are too large.
        MissingDependencyError: If Pillow is needed and not installed.
    """
    require_object("observation", value)
    kind = _KINDS[content_type]
    known = {key: value[key] for key in ("schema", "version", *kind.keys) if key in value}
    state = known.get("state")
    if isinstance(state, np.ndarray) and state.ndim == 1 and len(state) <= _LIMITS.max_state:
        known["state"] = state.tolist()
    data = kind.check(known)
    return Observation(
        instruction=data["task"],
        state=data["state"],
        images=frames_from(data["cameras"], content_type, limits=limits),
        frame_rate_hz=data.get("history_fps", 1.0),
        captured_at_s=captured_at_s,
    )


def require_object(field: str, value: Any) -> None:
    """
    Require what JSON calls an object.

    Raises:
        ContractError: If it is something else.
    """
    if not isinstance(value, Mapping):
        raise ContractError(field, f"got {type(value).__name__}, expected an object")
