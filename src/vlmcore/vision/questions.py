"""What a model is asked about a video whose frames were chosen, so that it answers with events."""

from __future__ import annotations

import enum

from vlmcore.media.selections import FrameSelection
from vlmcore.vision.scenes import SceneState

__all__ = ["VideoTask", "reasoning_prompt"]

_MOST_STATE = 4000  # characters of what is known already


class VideoTask(enum.Enum):
    """What is wanted of a video; the values are how it is asked for."""

    TIMELINE = "List the actions in this video in their order."
    ROBOTICS = (
        "Describe this scene for a robot: which things there are, where, what moves, what could be "
        "grasped, and what is in the way."
    )
    MONITOR = (
        "Watch this video for whatever is unsafe or unusual. If there is nothing, say so and list "
        "no events."
    )
    SUMMARY = "Summarise this video in detail, in the order in which things happen."
    QUESTION = "Answer the question about this video."


def reasoning_prompt(
    selection: FrameSelection,
    task: VideoTask,
    question: str = "",
    *,
    max_events: int = 24,
    scene: SceneState | None = None,
) -> str:
    """
    Ask for the events of a video in JSON, as `vlmcore.vision.events.EVENTS_SCHEMA` has them.

    Args:
        selection: The frames that the model is shown; their times are in the question.
        task: What is wanted.
        question: What is asked beside; of `VideoTask.QUESTION` it is the question.
        max_events: How many events there may be.
        scene: What is known already.

    Example:
        >>> from vlmcore.media.selections import FrameReason, SampledFrame, SamplingStrategy
        >>> one = SampledFrame(timestamp_s=0.5, index=4, reason=FrameReason.COVERAGE, change=None)
        >>> shown = FrameSelection(
        ...     frames=(one,), strategy=SamplingStrategy.UNIFORM, scanned_frames=0, duration_s=1.0
        ... )
        >>> "0.50" in reasoning_prompt(shown, VideoTask.TIMELINE)
        True
    """
    times = ", ".join(f"{time_s:.2f}" for time_s in selection.timestamps_s)
    parts = [
        task.value,
        f"The frames are at these seconds: {times}. The video lasts {selection.duration_s:.2f} s.",
    ]
    if question.strip():
        parts.append(f"Question: {question.strip()}")
    if scene is not None:
        known = scene.summary[:_MOST_STATE]
        parts.append(f"What is known of the scene already:\n{known}")
    parts.append(
        f'Answer with one JSON object and nothing else: {{"summary": text, "events": [at most '
        f'{max_events} of {{"start_s": seconds, "end_s": seconds, "description": text, '
        '"objects": [names], "confidence": 0 to 1}]}. Use the times above.'
    )
    return "\n\n".join(parts)
